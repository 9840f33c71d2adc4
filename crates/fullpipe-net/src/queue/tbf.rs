//! Token bucket filter: sch_tbf.c with one rate, over a FIFO. Unlike htb it charges before it sends:
//! a packet waits until the bucket holds tokens for all of its bytes.

use serde::{Deserialize, Serialize};

use super::discipline::{Discipline, Environment, Outcome, Parameters};
use super::fifo::Fifo;
use crate::packet::Packet;

const NS_PER_S: u64 = 1_000_000_000;

/// Parameters of sch_tbf.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Bytes of credit that gather while it idles (tc has no default).
    pub burst_bytes: u32,
}

impl Parameters for Params {
    fn shapes(&self) -> bool {
        true
    }
}

/// A bucket over a FIFO.
#[derive(Debug)]
pub(crate) struct Tbf<P> {
    queue: Fifo<P>,
    rate_bps: u64,
    burst_bytes: u32,
    burst_ns: u64,
    /// Tokens at `filled_ns`, as time.
    tokens_ns: u64,
    filled_ns: u64,
}

impl<P: Packet> Tbf<P> {
    fn cost_ns(&self, packet: &P) -> u64 {
        u64::from(packet.wire_bytes()) * 8 * NS_PER_S / self.rate_bps
    }

    fn tokens_at(&self, now_ns: u64) -> u64 {
        self.burst_ns
            .min(self.tokens_ns + (now_ns - self.filled_ns))
    }
}

impl<P: Packet> Discipline<P> for Tbf<P> {
    type Params = Params;

    fn new(params: &Params, environment: &Environment) -> Self {
        let rate_bps = environment.rate_bps;
        let burst_ns = u64::from(params.burst_bytes) * 8 * NS_PER_S / rate_bps;
        Self {
            queue: Fifo::limited(environment.limit_bytes, environment.limit_packets),
            rate_bps,
            burst_bytes: params.burst_bytes,
            burst_ns,
            tokens_ns: burst_ns,
            filled_ns: 0,
        }
    }

    /// tbf_enqueue(): a packet larger than the bucket could never leave.
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
        let cost_ns = self.cost_ns(self.queue.first()?);
        let left_ns = tokens_ns.checked_sub(cost_ns)?;
        self.tokens_ns = left_ns;
        self.filled_ns = now_ns;
        self.queue.dequeue(now_ns, outcome)
    }

    fn next_ready_ns(&self, now_ns: u64) -> Option<u64> {
        let cost_ns = self.cost_ns(self.queue.first()?);
        Some(now_ns + cost_ns.saturating_sub(self.tokens_at(now_ns)))
    }
}

#[cfg(test)]
pub(super) mod tests;
