//! Random extra delay that never reorders, in the two forms of bless2025, section V.

use serde::{Deserialize, Serialize};

use crate::rng::Rng;

/// Random extra delay.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// How the delay is drawn.
    pub shape: Shape,
    /// Its largest value: uniform over 0..=max.
    pub max_ns: u64,
}

/// The forms of bless2025, section V.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Each packet draws its own delay; it leaves no earlier than the packet before it.
    PerPacket,
    /// A slot draws a delay when its first packet arrives; packets that arrive before the slot's time
    /// leave with it, at once.
    Slotted,
}

/// A source of release times.
#[derive(Clone, Debug)]
pub struct JitterSource {
    shape: Shape,
    max_ns: u64,
    /// When the last packet, or the last slot, leaves; `None` before the first.
    last_release_ns: Option<u64>,
    rng: Rng,
}

impl JitterSource {
    /// Delays are uniform over 0..=max.
    pub fn new(params: &Params, seed: u64) -> Self {
        Self {
            shape: params.shape,
            max_ns: params.max_ns,
            last_release_ns: None,
            rng: Rng::new(seed),
        }
    }

    /// When a packet that arrives at `now_ns` leaves: never before the packet ahead of it. A slot
    /// that starts right now still takes the packet.
    pub fn release_ns(&mut self, now_ns: u64) -> u64 {
        let last_ns = self.last_release_ns.filter(|&at_ns| at_ns >= now_ns);
        if let (Shape::Slotted, Some(slot_ns)) = (self.shape, last_ns) {
            return slot_ns;
        }
        let own_ns = now_ns + self.rng.up_to(self.max_ns);
        let release_ns = last_ns.map_or(own_ns, |at_ns| at_ns.max(own_ns));
        self.last_release_ns = Some(release_ns);
        release_ns
    }
}

#[cfg(test)]
mod tests;
