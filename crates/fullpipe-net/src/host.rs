//! How long a host takes to handle each arriving packet. Knows no packets.
//!
//! Packets are handled one after the other, so the second of a burst is handled a little later than a single
//! one. Without that the minimum RTT would recur to the microsecond in every round, and senders would find
//! the path empty too often. The random part keeps hosts from running in lockstep.

use crate::rng::Rng;

/// Least time for a packet, and the most that is added at random: about a kernel's receive path.
const COST_NS: u32 = 1000;
/// A host keeps up with its link: a packet takes at most one part of so many of its time on the wire.
const SHARE: u64 = 4;

/// The end that receives.
#[derive(Clone, Debug)]
pub struct Host {
    /// In 32 bits, for which drawing a random number is one multiplication.
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

    /// When all packets that have arrived are handled, and an answer can leave.
    pub fn free_ns(&self) -> u64 {
        self.free_ns
    }
}

#[cfg(test)]
mod tests;
