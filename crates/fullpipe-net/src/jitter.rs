//! Random extra delay that never reorders, in the two forms of seed 004, section V.

use fullpipe_scenario::{Jitter, JitterShape};

use crate::rng::Rng;

/// A source of release times.
#[derive(Clone, Debug)]
pub struct JitterSource {
    shape: JitterShape,
    max_ns: u64,
    /// When the last packet, or the current slot, leaves.
    last_release_ns: u64,
    rng: Rng,
}

impl JitterSource {
    /// Delays are uniform over 0..=max.
    pub fn new(jitter: &Jitter, seed: u64) -> Self {
        Self {
            shape: jitter.shape,
            max_ns: jitter.max_ns,
            last_release_ns: 0,
            rng: Rng::new(seed),
        }
    }

    /// When a packet that arrives at `now_ns` leaves: never before the packet ahead of it.
    pub fn release_ns(&mut self, now_ns: u64) -> u64 {
        if self.shape == JitterShape::Slotted && now_ns < self.last_release_ns {
            return self.last_release_ns;
        }
        let own_ns = now_ns + self.rng.up_to(self.max_ns);
        self.last_release_ns = own_ns.max(self.last_release_ns);
        self.last_release_ns
    }
}
