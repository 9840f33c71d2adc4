//! First in, first out, tail drop: bfifo and pfifo (sch_fifo.c).
//!
//! An entry is a burst: consecutive packets that were sent at once and differ only in their numbers. It
//! is split as its packets leave.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::discipline::{Discipline, Environment, Outcome, Parameters};
use crate::packet::Packet;

/// A FIFO has no parameters but its limits.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {}

impl Parameters for Params {}

/// The packets of a burst that have not left.
#[derive(Debug)]
struct Burst<P> {
    /// Represents them ([`Packet::first_of_burst`]).
    packet: P,
    count: u32,
    /// Packets at its end that did not fit.
    dropped: u32,
}

/// A FIFO limited in bytes, packets, both or neither.
#[derive(Debug)]
pub(crate) struct Fifo<P> {
    /// The burst that is leaving is not in `others`, so a packet that leaves changes only this entry.
    first: Option<Burst<P>>,
    /// Bytes on the wire of each of its packets.
    first_bytes: u32,
    others: VecDeque<Burst<P>>,
    /// Sums over `others`.
    other_packets: u64,
    other_bytes: u64,
    limit_bytes: u64,
    limit_packets: u64,
}

impl<P> Fifo<P> {
    /// A FIFO with these limits.
    pub(crate) fn limited(limit_bytes: Option<u64>, limit_packets: Option<u32>) -> Self {
        Self {
            first: None,
            first_bytes: 0,
            others: VecDeque::new(),
            other_packets: 0,
            other_bytes: 0,
            limit_bytes: limit_bytes.unwrap_or(u64::MAX),
            limit_packets: limit_packets.map_or(u64::MAX, u64::from),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The packet that leaves next, with the flags of its burst's last one.
    pub(crate) fn first(&self) -> Option<&P> {
        self.first.as_ref().map(|burst| &burst.packet)
    }

    fn first_packets(&self) -> u64 {
        self.first.as_ref().map_or(0, |burst| burst.count.into())
    }

    fn len(&self) -> u64 {
        self.first_packets() + self.other_packets
    }

    /// Bytes on the wire of all packets.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.first_packets() * u64::from(self.first_bytes) + self.other_bytes
    }
}

impl<P: Packet> Fifo<P> {
    /// Adds the first packets of a burst, as many as the limits allow (bfifo_enqueue(),
    /// pfifo_enqueue()). Returns how many.
    #[inline]
    fn push(&mut self, burst: &P, count: u32) -> u32 {
        let wire_bytes = u64::from(burst.wire_bytes());
        let mut taken = u64::from(count);
        let waiting_bytes = self.waiting_bytes();
        if waiting_bytes + taken * wire_bytes > self.limit_bytes {
            taken = (self.limit_bytes - waiting_bytes) / wire_bytes;
        }
        taken = taken.min(self.limit_packets - self.len());
        if taken > 0 {
            let burst = Burst {
                packet: *burst,
                count: taken as u32,
                dropped: count - taken as u32,
            };
            if self.is_empty() {
                self.first_bytes = wire_bytes as u32;
                self.first = Some(burst);
            } else {
                self.other_packets += taken;
                self.other_bytes += taken * wire_bytes;
                self.others.push_back(burst);
            }
        }
        taken as u32
    }

    #[inline(never)] // once a burst
    fn begin_next_burst(&mut self) {
        self.first = self.others.pop_front();
        let Some(next) = &self.first else {
            return;
        };
        self.first_bytes = next.packet.wire_bytes();
        self.other_packets -= u64::from(next.count);
        self.other_bytes -= u64::from(next.count) * u64::from(self.first_bytes);
    }
}

impl<P: Packet> Discipline<P> for Fifo<P> {
    type Params = Params;

    fn new(_: &Params, environment: &Environment) -> Self {
        Self::limited(environment.limit_bytes, environment.limit_packets)
    }

    #[inline]
    fn enqueue(&mut self, _now_ns: u64, packet: P, outcome: &mut Outcome<P>) {
        if self.push(&packet, 1) == 0 {
            outcome.drop(packet);
        }
    }

    /// Drops the packets at the burst's end that do not fit.
    #[inline]
    fn enqueue_burst(&mut self, _now_ns: u64, burst: &P, count: u32, outcome: &mut Outcome<P>) {
        let taken = self.push(burst, count);
        if taken < count {
            drop_last(burst, count, count - taken, outcome);
        }
    }

    #[inline]
    fn choose(&mut self, _now_ns: u64, _taken: &mut Option<P>, _outcome: &mut Outcome<P>) -> bool {
        !self.is_empty()
    }

    #[inline]
    fn front<'a>(&'a self, _taken: &'a Option<P>) -> Option<(&'a P, bool)> {
        let first = self.first.as_ref()?;
        Some((&first.packet, first.count + first.dropped > 1))
    }

    #[inline(always)] // after `front`, which has checked the same
    fn leave(&mut self, _taken: &mut Option<P>) -> u32 {
        let Some(first) = &mut self.first else {
            return 0;
        };
        let wire_bytes = self.first_bytes;
        first.count -= 1;
        if first.count == 0 {
            self.begin_next_burst();
        } else {
            first.packet.skip_first_of_burst();
        }
        wire_bytes
    }
}

/// Drops so many packets at the end of a burst.
#[inline(never)]
fn drop_last<P: Packet>(burst: &P, count: u32, dropped: u32, outcome: &mut Outcome<P>) {
    let mut burst = *burst;
    for others in (0..count).rev() {
        let packet = burst.split_first(others);
        if others < dropped {
            outcome.drop(packet);
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
