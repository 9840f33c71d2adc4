//! Token bucket filter: sch_tbf.c with one rate, over a FIFO. Unlike htb it charges before it sends:
//! a packet waits until the bucket holds all of its bytes.

use crate::discipline::{Discipline, Outcome};
use crate::fifo::Fifo;
use crate::Packet;

const NS_PER_S: u64 = 1_000_000_000;

/// A bucket over a FIFO.
#[derive(Debug)]
pub(crate) struct Tbf<P> {
    queue: Fifo<P>,
    rate_bps: u64,
    burst_bytes: u32,
    burst_ns: u64,
    /// Time that the bucket holds, as of `filled_ns`.
    tokens_ns: u64,
    filled_ns: u64,
}

impl<P: Packet> Tbf<P> {
    pub(crate) fn new(
        rate_bps: u64,
        burst_bytes: u32,
        limit_bytes: Option<u64>,
        limit_packets: Option<u32>,
    ) -> Self {
        let burst_ns = u64::from(burst_bytes) * 8 * NS_PER_S / rate_bps;
        Self {
            queue: Fifo::new(limit_bytes, limit_packets),
            rate_bps,
            burst_bytes,
            burst_ns,
            tokens_ns: burst_ns,
            filled_ns: 0,
        }
    }

    fn cost_ns(&self, packet: &P) -> u64 {
        u64::from(packet.wire_bytes()) * 8 * NS_PER_S / self.rate_bps
    }

    fn tokens_at(&self, now_ns: u64) -> u64 {
        self.burst_ns
            .min(self.tokens_ns + (now_ns - self.filled_ns))
    }
}

impl<P: Packet> Discipline<P> for Tbf<P> {
    /// tbf_enqueue(): what is larger than the bucket could never leave.
    fn enqueue(&mut self, now_ns: u64, packet: P, outcome: &mut Outcome<P>) {
        if packet.wire_bytes() > self.burst_bytes {
            outcome.drop(packet);
            return;
        }
        self.queue.enqueue(now_ns, packet, outcome);
    }

    /// tbf_dequeue()
    fn dequeue(&mut self, now_ns: u64, outcome: &mut Outcome<P>) -> Option<P> {
        let tokens_ns = self.tokens_at(now_ns);
        let cost_ns = self.cost_ns(self.queue.front()?.0);
        let left_ns = tokens_ns.checked_sub(cost_ns)?;
        self.tokens_ns = left_ns;
        self.filled_ns = now_ns;
        self.queue.dequeue(now_ns, outcome)
    }

    fn bytes(&self) -> u64 {
        self.queue.bytes()
    }

    fn packets(&self) -> usize {
        self.queue.packets()
    }

    fn next_ready_ns(&self, now_ns: u64) -> Option<u64> {
        let cost_ns = self.cost_ns(self.queue.front()?.0);
        Some(now_ns + cost_ns.saturating_sub(self.tokens_at(now_ns)))
    }
}
