//! A capture of the packets at both ends of the path, as tcpdump on each host would see them: each packet
//! as it crosses the host's port, behind its queue discipline. It must not know what is in a packet.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::os::fd::OwnedFd;

use fullpipe_plan::stream::Frame;
use nix::net::if_::if_nametoindex;

use crate::activity::{Activity, Run};
use crate::agenda::Task;
use crate::clock::{now_ns, real_ns};
use crate::net::Topology;
use crate::packet_socket::{capture_socket, missed, receive};
use crate::sink::Sink;

/// Of a packet this is kept: its headers with all options.
const KEPT_BYTES: usize = 128;
/// How often sockets are read.
const PERIOD_NS: u64 = 10_000_000;
/// A frame of the stream is shorter than 1 MiB.
const MOST_BYTES: usize = 1 << 19;
const NS_PER_S: u64 = 1_000_000_000;
/// The port of each host.
const PORT: &str = "eth0";

/// The hosts' ports that are watched; none unless the request wants a capture.
pub(super) struct Capture {
    /// By end: near, where data "up" is sent, and far.
    taps: [Vec<OwnedFd>; 2],
    /// CLOCK_REALTIME, in which packets are stamped, less CLOCK_MONOTONIC.
    clock_ns: u64,
}

impl Activity for Capture {
    type Socket = Infallible;
    type Task = ();

    fn open(run: &mut Run) -> Result<Self, String> {
        let mut taps = [Vec::new(), Vec::new()];
        if run.request.capture {
            for (end, taps) in taps.iter_mut().enumerate() {
                for node in hosts(&run.topology, end) {
                    let node = &run.topology.nodes[node];
                    node.enter()?;
                    let told = |error: &dyn std::fmt::Display| {
                        format!("{}: capturing packets: {error}", node.name)
                    };
                    let index = if_nametoindex(PORT).map_err(|error| told(&error))?;
                    taps.push(capture_socket(index).map_err(|error| told(&error))?);
                }
            }
            run.agenda.add(PERIOD_NS, Task::Capture);
        }
        Ok(Self {
            taps,
            clock_ns: real_ns() - now_ns(),
        })
    }

    fn due(
        &mut self,
        (): (),
        due_ns: u64,
        run: &mut Run,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        run.agenda.add(due_ns + PERIOD_NS, Task::Capture);
        self.drain(run.start_ns, sink)
    }

    fn end(&mut self, _t_ns: u64, run: &mut Run, sink: &mut dyn Sink) -> Result<(), String> {
        self.drain(run.start_ns, sink)?;
        let counts = self.taps.iter().flatten().map(missed);
        let lost: u32 = counts.map(|count| count.unwrap_or(0)).sum();
        if lost > 0 {
            let sentence = format!("the capture lacks {lost} packets, for which it had no room");
            sink.put(&Frame::Problem(sentence));
        }
        Ok(())
    }
}

impl Capture {
    fn drain(&self, start_ns: u64, sink: &mut dyn Sink) -> Result<(), String> {
        for (end, taps) in self.taps.iter().enumerate() {
            let mut records = Vec::new();
            for tap in taps {
                let mut kept = [0; KEPT_BYTES];
                let failed = |error| format!("capturing packets: {error}");
                while let Some((bytes, stamp_ns)) = receive(tap, &mut kept).map_err(failed)? {
                    let at_ns = stamp_ns.saturating_sub(self.clock_ns + start_ns);
                    put_record(at_ns, bytes, &kept, &mut records);
                    if records.len() > MOST_BYTES {
                        sink.put(&Frame::Packets(end as u8, std::mem::take(&mut records)));
                    }
                }
            }
            if !records.is_empty() {
                sink.put(&Frame::Packets(end as u8, records));
            }
        }
        Ok(())
    }
}

/// The nodes that are hosts of that end.
fn hosts(topology: &Topology, end: usize) -> BTreeSet<usize> {
    let ends = [
        &topology.flow_ends,
        &topology.probe_ends,
        &topology.application_ends,
        &topology.traffic_ends,
    ];
    ends.into_iter().flatten().map(|pair| pair[end].0).collect()
}

/// A record of a capture (pcap-savefile(5)): time, bytes that are kept, bytes of the frame.
fn put_record(at_ns: u64, bytes: usize, kept: &[u8], records: &mut Vec<u8>) {
    let kept = &kept[..bytes.min(kept.len())];
    let fields = [
        (at_ns / NS_PER_S) as u32,
        (at_ns % NS_PER_S) as u32,
        kept.len() as u32,
        bytes as u32,
    ];
    records.extend(fields.iter().flat_map(|field| field.to_le_bytes()));
    records.extend(kept);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_its_time_and_the_begin_of_its_frame() {
        let mut records = Vec::new();
        put_record(3_000_000_007, 1514, &[9; KEPT_BYTES], &mut records);
        put_record(0, 60, &[9; KEPT_BYTES], &mut records);
        assert_eq!(records.len(), 2 * 16 + KEPT_BYTES + 60);
        let field = |at: usize| u32::from_le_bytes(records[at..at + 4].try_into().expect("four"));
        assert_eq!([0, 4, 8, 12].map(field), [3, 7, KEPT_BYTES as u32, 1514]);
        assert_eq!([8, 12].map(|at| field(16 + KEPT_BYTES + at)), [60, 60]);
    }
}
