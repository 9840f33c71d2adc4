//! First in, first out, tail drop: bfifo and pfifo (sch_fifo.c).
//!
//! An entry is a run: packets that were handed down at once and differ in nothing but their numbers.
//! So a burst takes one place, and is cut as it leaves; elsewhere each packet is a run of its own.

use std::collections::VecDeque;

use crate::discipline::{Discipline, Outcome};
use crate::Packet;

/// What is left of a run.
#[derive(Debug)]
struct Run<P> {
    /// What stands for it ([`Packet::end_follows`]).
    burst: P,
    count: u32,
    /// Its last packets, which found no room.
    dropped: u32,
}

/// A FIFO limited in bytes, packets, both or neither.
#[derive(Debug)]
pub(crate) struct Fifo<P> {
    /// The run that leaves, apart from the others: of what is kept, a packet that leaves changes only
    /// how many are left of it.
    first: Option<Run<P>>,
    /// Bytes on the wire of each of its packets.
    first_bytes: u32,
    others: VecDeque<Run<P>>,
    /// What the others have.
    other_packets: u64,
    other_bytes: u64,
    limit_bytes: u64,
    limit_packets: u64,
}

impl<P> Fifo<P> {
    pub(crate) fn new(limit_bytes: Option<u64>, limit_packets: Option<u32>) -> Self {
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

    fn first_packets(&self) -> u64 {
        self.first.as_ref().map_or(0, |burst| burst.count.into())
    }

    pub(crate) fn len(&self) -> u64 {
        self.first_packets() + self.other_packets
    }

    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.first_packets() * u64::from(self.first_bytes) + self.other_bytes
    }
}

impl<P: Packet> Fifo<P> {
    /// A run comes; returns how many of it, from the first on, are taken: what would exceed a limit is
    /// dropped (bfifo_enqueue(), pfifo_enqueue()).
    #[inline]
    pub(crate) fn push(&mut self, burst: &P, count: u32) -> u32 {
        let wire_bytes = u64::from(burst.wire_bytes());
        let mut taken = u64::from(count);
        let waiting_bytes = self.waiting_bytes();
        if waiting_bytes + taken * wire_bytes > self.limit_bytes {
            taken = (self.limit_bytes - waiting_bytes) / wire_bytes;
        }
        taken = taken.min(self.limit_packets - self.len());
        if taken > 0 {
            let burst = Run {
                burst: *burst,
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

    /// The same, and what found no room is dropped.
    #[inline]
    pub(crate) fn enqueue_burst(&mut self, burst: &P, count: u32, outcome: &mut Outcome<P>) {
        let taken = self.push(burst, count);
        if taken < count {
            behind(taken, burst, count, |packet| outcome.drop(packet));
        }
    }

    /// The first of the others is the run that leaves from now on.
    #[inline(never)] // once a run
    fn begin_next(&mut self) {
        self.first = self.others.pop_front();
        let Some(next) = &self.first else {
            return;
        };
        self.first_bytes = next.burst.wire_bytes();
        self.other_packets -= u64::from(next.count);
        self.other_bytes -= u64::from(next.count) * u64::from(self.first_bytes);
    }

    /// What stands for the first run, and whether others of it follow its first packet.
    #[inline]
    pub(crate) fn front(&self) -> Option<(&P, bool)> {
        let first = self.first.as_ref()?;
        Some((&first.burst, first.count + first.dropped > 1))
    }

    /// The first packet leaves; returns its bytes on the wire.
    #[inline(always)] // behind a look at the front
    pub(crate) fn leave(&mut self) -> u32 {
        let Some(first) = &mut self.first else {
            return 0;
        };
        let wire_bytes = self.first_bytes;
        first.count -= 1;
        if first.count == 0 {
            self.begin_next();
        } else {
            first.burst.drop_first();
        }
        wire_bytes
    }
}

impl<P: Packet> Discipline<P> for Fifo<P> {
    #[inline]
    fn enqueue(&mut self, _now_ns: u64, packet: P, outcome: &mut Outcome<P>) {
        if self.push(&packet, 1) == 0 {
            outcome.drop(packet);
        }
    }

    #[inline]
    fn dequeue(&mut self, _now_ns: u64, _outcome: &mut Outcome<P>) -> Option<P> {
        let (burst, is_followed) = self.front()?;
        let packet = burst.first(is_followed);
        self.leave();
        Some(packet)
    }

    fn bytes(&self) -> u64 {
        self.waiting_bytes()
    }

    fn packets(&self) -> usize {
        self.len() as usize
    }
}

/// The last packets of a run, all but so many.
#[inline(never)]
pub(crate) fn behind<P: Packet>(taken: u32, burst: &P, count: u32, mut each: impl FnMut(P)) {
    let mut burst = *burst;
    for others in (0..count).rev() {
        let packet = burst.split_first(others);
        if count - others > taken {
            each(packet);
        }
    }
}
