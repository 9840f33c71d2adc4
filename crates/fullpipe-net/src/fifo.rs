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

    #[inline]
    pub(crate) fn front(&self) -> Option<&P> {
        self.packets.front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.bytes
    }
}

impl<P: Packet> Fifo<P> {
    /// False: a packet that would exceed a limit is dropped (bfifo_enqueue(), pfifo_enqueue()).
    #[inline]
    pub(crate) fn push(&mut self, packet: &P) -> bool {
        let bytes = self.bytes + u64::from(packet.wire_bytes());
        if bytes > self.limit_bytes || self.packets.len() >= self.limit_packets {
            return false;
        }
        self.bytes = bytes;
        self.packets.push_back(*packet);
        true
    }

    /// The first packet leaves; returns its bytes on the wire. Who wants it has copied it: a copy that
    /// is returned is copied again on its way.
    #[inline]
    pub(crate) fn leave(&mut self) -> u32 {
        let wire_bytes = self.packets.front().map_or(0, Packet::wire_bytes);
        self.bytes -= u64::from(wire_bytes);
        self.packets.pop_front();
        wire_bytes
    }
}

impl<P: Packet> Discipline<P> for Fifo<P> {
    #[inline]
    fn enqueue(&mut self, _now_ns: u64, packet: P, outcome: &mut Outcome<P>) {
        if !self.push(&packet) {
            outcome.drop(packet);
        }
    }

    #[inline]
    fn dequeue(&mut self, _now_ns: u64, _outcome: &mut Outcome<P>) -> Option<P> {
        let packet = *self.front()?;
        self.leave();
        Some(packet)
    }

    fn bytes(&self) -> u64 {
        self.waiting_bytes()
    }

    fn packets(&self) -> usize {
        self.len()
    }
}
