//! How long a host takes to handle what arrives: never what arrives, or for whom.
//!
//! Packets are handled one after the other, so the second of a burst is a little later than a lone
//! one. That little decides when a sender believes that it has seen the path empty: without it the
//! least RTT would come back to the microsecond in every round. And no two hosts are in step for
//! ever.

use crate::rng::Rng;

/// Least time for a packet, and the most that chance adds: what a kernel's receive path takes.
const COST_NS: u32 = 1000;
/// A host keeps up with its link: it takes at most this part of a packet's time on the wire.
const SHARE: u64 = 4;

/// The end that receives.
#[derive(Clone, Debug)]
pub struct Host {
    /// In 32 bits, for which a random number is one multiplication.
    cost_ns: u32,
    free_ns: u64,
    rng: Rng,
}

impl Host {
    /// A host behind a link on which a full packet takes `packet_ns`.
    pub fn new(packet_ns: u64, seed: u64) -> Self {
        Self {
            cost_ns: u64::from(COST_NS).min(packet_ns / SHARE) as u32,
            free_ns: 0,
            rng: Rng::new(seed),
        }
    }

    /// A packet arrives.
    pub fn handle(&mut self, now_ns: u64) {
        let begins_ns = now_ns.max(self.free_ns);
        let cost_ns = u64::from(self.cost_ns);
        self.free_ns = begins_ns + cost_ns + self.rng.up_to(cost_ns);
    }

    /// When all that has arrived is handled, and an answer to it can leave.
    pub fn free_ns(&self) -> u64 {
        self.free_ns
    }
}

#[cfg(test)]
mod tests;
