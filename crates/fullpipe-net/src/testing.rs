//! What the tests share: a packet with an id, queues, directions of a wire, files.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use crate::kernel::Kernel;
use crate::link::WireDirection;
use crate::packet::{Ecn, HostPair, Packet, PureAck};
use crate::queue::{fifo, Aqm, Qdisc, Queue};
use crate::trace::TraceFile;

pub(crate) const MTU_BYTES: u32 = 1500;
pub(crate) const FRAME_BYTES: u32 = MTU_BYTES + 14;
pub(crate) const MS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TestPacket {
    pub(crate) id: u64,
    pub(crate) flow: u32,
    pub(crate) bytes: u32,
    pub(crate) ecn: bool,
    pub(crate) marked: bool,
    pub(crate) send_at_ns: u64,
    pub(crate) codepoint: Ecn,
    pub(crate) hosts: (u32, u32),
    pub(crate) dscp: u8,
    /// It ends a burst.
    pub(crate) is_last: bool,
    pub(crate) ack: Option<PureAck>,
}

impl TestPacket {
    pub(crate) fn new(id: u64, flow: u32, bytes: u32) -> Self {
        Self {
            id,
            flow,
            bytes,
            ecn: false,
            marked: false,
            send_at_ns: 0,
            codepoint: Ecn::Ect0,
            hosts: (0, 0),
            dscp: 0,
            is_last: false,
            ack: None,
        }
    }

    pub(crate) fn with_ecn(mut self) -> Self {
        self.ecn = true;
        self
    }

    pub(crate) fn send_at(mut self, at_ns: u64) -> Self {
        self.send_at_ns = at_ns;
        self
    }
}

impl Packet for TestPacket {
    fn wire_bytes(&self) -> u32 {
        self.bytes
    }

    fn flow_key(&self) -> u32 {
        self.flow
    }

    fn ecn(&self) -> Ecn {
        match (self.ecn, self.marked) {
            (false, _) => Ecn::NotEct,
            (true, false) => self.codepoint,
            (true, true) => Ecn::Ce,
        }
    }

    fn mark_ce(&mut self) {
        self.marked = true;
    }

    fn clear_last_flags(&mut self) {
        self.is_last = false;
    }

    fn skip_first_of_burst(&mut self) {
        self.id += 1;
    }

    fn pacing_time_ns(&self) -> u64 {
        self.send_at_ns
    }

    fn hosts(&self) -> HostPair {
        HostPair {
            source: self.hosts.0,
            destination: self.hosts.1,
        }
    }

    fn dscp(&self) -> u8 {
        self.dscp
    }

    fn clear_dscp(&mut self) {
        self.dscp = 0;
    }

    fn pure_ack(&self) -> Option<PureAck> {
        self.ack
    }
}

pub(crate) fn queue(
    aqm: Aqm,
    limit_bytes: Option<u64>,
    limit_packets: Option<u32>,
) -> Queue<TestPacket> {
    let qdisc = Qdisc {
        limit_bytes,
        limit_packets,
        aqm,
    };
    Queue::new(&qdisc, 100_000_000, MTU_BYTES, 1)
}

/// A queue that a test drives packet by packet, with all that it drops.
pub(crate) struct Hand {
    pub(crate) queue: Queue<TestPacket>,
    dropped: Vec<TestPacket>,
}

impl Hand {
    /// Limited in nothing, at 100 Mbit/s.
    pub(crate) fn new(aqm: Aqm) -> Self {
        Self::limited(aqm, None, None)
    }

    /// Limited in bytes and in packets, at 100 Mbit/s.
    pub(crate) fn limited(aqm: Aqm, bytes: Option<u64>, packets: Option<u32>) -> Self {
        Self::over(queue(aqm, bytes, packets))
    }

    pub(crate) fn over(queue: Queue<TestPacket>) -> Self {
        Self {
            queue,
            dropped: Vec::new(),
        }
    }

    /// Packets arrive at once: this one, and others with the ids that follow.
    pub(crate) fn offer(&mut self, now_ns: u64, packet: TestPacket, count: u64) {
        for id in packet.id..packet.id + count {
            let packet = TestPacket { id, ..packet };
            self.queue.enqueue(now_ns, packet, &mut self.dropped);
        }
    }

    pub(crate) fn take(&mut self, now_ns: u64) -> Option<TestPacket> {
        self.queue.dequeue(now_ns, &mut self.dropped)
    }

    /// Ids of packets that leave now, at most so many.
    pub(crate) fn ids(&mut self, now_ns: u64, most: usize) -> Vec<u64> {
        let taken = std::iter::from_fn(|| self.take(now_ns));
        taken.take(most).map(|packet| packet.id).collect()
    }

    /// Flows of packets that leave now, at most so many.
    pub(crate) fn flows(&mut self, now_ns: u64, most: usize) -> Vec<u32> {
        let taken = std::iter::from_fn(|| self.take(now_ns));
        taken.take(most).map(|packet| packet.flow).collect()
    }

    /// Ids of packets that were dropped since the last call.
    pub(crate) fn dropped(&mut self) -> Vec<u64> {
        self.dropped.drain(..).map(|packet| packet.id).collect()
    }
}

/// One of the kernels that a queue may have the rules of.
pub(crate) fn some_kernel(index: usize) -> Option<Kernel> {
    Kernel::ALL.get(index % (Kernel::ALL.len() + 1)).copied()
}

/// A direction of a wire with an unlimited FIFO and a constant rate and delay.
pub(crate) fn plain_direction(rate_bps: Option<u64>, delay_ns: u64) -> WireDirection {
    WireDirection {
        rate_bps,
        delay_ns,
        qdisc: Qdisc {
            limit_bytes: None,
            limit_packets: None,
            aqm: Aqm::Fifo(fifo::Params {}),
        },
        loss: None,
        rate_steps: Vec::new(),
        delay_steps: Vec::new(),
        overhead: None,
        rate_trace: None,
        delay_trace: None,
        impairments: None,
    }
}

/// A queue of any discipline with any limits.
pub(crate) fn any_qdisc() -> impl Strategy<Value = Qdisc> {
    let limit_bytes = prop::option::of(u64::from(FRAME_BYTES)..60_000);
    let limit_packets = prop::option::of(1..60u32);
    (limit_bytes, limit_packets, Aqm::any()).prop_map(|(limit_bytes, limit_packets, aqm)| Qdisc {
        limit_bytes,
        limit_packets,
        aqm,
    })
}

/// A file that is removed when this is dropped.
pub(crate) struct TemporaryFile(PathBuf);

impl TemporaryFile {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("fullpipe-{}-{name}", std::process::id()));
        fs::write(&path, text).expect("a temporary file");
        Self(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("a plain name")
    }

    pub(crate) fn trace(&self) -> Option<TraceFile> {
        Some(TraceFile {
            path: self.path().to_owned(),
            sha256: String::new(),
        })
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
