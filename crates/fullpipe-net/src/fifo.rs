//! First in, first out, tail drop: bfifo and pfifo (sch_fifo.c).

use std::collections::VecDeque;

use crate::Packet;

/// A FIFO limited in bytes, packets, both or neither.
#[derive(Debug)]
pub(crate) struct Fifo<P> {
    packets: VecDeque<P>,
    bytes: u64,
    limit_bytes: u64,
    limit_packets: usize,
}

impl<P: Packet> Fifo<P> {
    pub(crate) fn new(limit_bytes: Option<u64>, limit_packets: Option<u32>) -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
            limit_bytes: limit_bytes.unwrap_or(u64::MAX),
            limit_packets: limit_packets.map_or(usize::MAX, |limit| limit as usize),
        }
    }

    /// A packet that would exceed a limit is given back.
    pub(crate) fn enqueue(&mut self, packet: P) -> Result<(), P> {
        let bytes = self.bytes + u64::from(packet.wire_bytes());
        if bytes > self.limit_bytes || self.packets.len() >= self.limit_packets {
            return Err(packet);
        }
        self.bytes = bytes;
        self.packets.push_back(packet);
        Ok(())
    }

    pub(crate) fn dequeue(&mut self) -> Option<P> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.wire_bytes());
        Some(packet)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }
}
