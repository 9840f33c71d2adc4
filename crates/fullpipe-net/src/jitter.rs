//! Random extra delay that never reorders, in the two forms of bless2025, section V.

use fullpipe_plan::{Jitter, JitterShape};

use crate::rng::Rng;

/// A source of release times.
#[derive(Clone, Debug)]
pub struct JitterSource {
    shape: JitterShape,
    max_ns: u64,
    /// When the last packet, or the last slot, leaves; `None` before the first.
    last_release_ns: Option<u64>,
    rng: Rng,
}

impl JitterSource {
    /// Delays are uniform over 0..=max.
    pub fn new(jitter: &Jitter, seed: u64) -> Self {
        Self {
            shape: jitter.shape,
            max_ns: jitter.max_ns,
            last_release_ns: None,
            rng: Rng::new(seed),
        }
    }

    /// When a packet that arrives at `now_ns` leaves: never before the packet ahead of it. A slot
    /// that starts right now still takes the packet.
    pub fn release_ns(&mut self, now_ns: u64) -> u64 {
        let last_ns = self.last_release_ns.filter(|&at_ns| at_ns >= now_ns);
        if let (JitterShape::Slotted, Some(slot_ns)) = (self.shape, last_ns) {
            return slot_ns;
        }
        let own_ns = now_ns + self.rng.up_to(self.max_ns);
        let release_ns = last_ns.map_or(own_ns, |at_ns| at_ns.max(own_ns));
        self.last_release_ns = Some(release_ns);
        release_ns
    }
}
