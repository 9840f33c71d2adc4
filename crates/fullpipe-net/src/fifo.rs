//! First in, first out, tail drop: bfifo and pfifo (sch_fifo.c).

use std::collections::VecDeque;

use crate::discipline::{Discipline, Outcome};
use crate::Packet;

/// A FIFO limited in bytes, packets, both or neither.
#[derive(Debug)]
pub(crate) struct Fifo<P> {
    packets: VecDeque<P>,
    bytes: u64,
    limit_bytes: u64,
    limit_packets: usize,
}

impl<P> Fifo<P> {
    pub(crate) fn new(limit_bytes: Option<u64>, limit_packets: Option<u32>) -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
            limit_bytes: limit_bytes.unwrap_or(u64::MAX),
            limit_packets: limit_packets.map_or(usize::MAX, |limit| limit as usize),
        }
    }

    pub(crate) fn front(&self) -> Option<&P> {
        self.packets.front()
    }
}

impl<P: Packet> Discipline<P> for Fifo<P> {
    /// A packet that would exceed a limit is dropped (bfifo_enqueue(), pfifo_enqueue()).
    #[inline]
    fn enqueue(&mut self, _now_ns: u64, packet: P, outcome: &mut Outcome<P>) {
        let bytes = self.bytes + u64::from(packet.wire_bytes());
        if bytes > self.limit_bytes || self.packets.len() >= self.limit_packets {
            outcome.drop(packet);
            return;
        }
        self.bytes = bytes;
        self.packets.push_back(packet);
    }

    #[inline]
    fn dequeue(&mut self, _now_ns: u64, _outcome: &mut Outcome<P>) -> Option<P> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.wire_bytes());
        Some(packet)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn packets(&self) -> usize {
        self.packets.len()
    }
}
