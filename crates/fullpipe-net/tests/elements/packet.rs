//! A packet that remembers who it is, and ways to make queues.

use fullpipe_net::{Ecn, HostPair, Packet, PureAck, Queue};
use fullpipe_plan::{Aqm, Qdisc, Wire};

pub(crate) const FRAME_BYTES: u32 = 1514;
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

    fn end_follows(&mut self) {
        self.is_last = false;
    }

    fn drop_first(&mut self) {
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
    Queue::new(&qdisc, 100_000_000, 1)
}

/// A way of a wire with a FIFO without a limit, and nothing that changes or damages.
pub(crate) fn plain_direction(rate_bps: Option<u64>, delay_ns: u64) -> Wire {
    Wire {
        rate_bps,
        delay_ns,
        qdisc: Qdisc {
            limit_bytes: None,
            limit_packets: None,
            aqm: Aqm::Fifo,
        },
        loss: None,
        rate_steps: Vec::new(),
        delay_steps: Vec::new(),
        rate_trace: None,
        delay_trace: None,
        damage: None,
    }
}
