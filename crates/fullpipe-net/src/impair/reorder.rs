//! Reordering as netem does it (sch_netem.c, netem_enqueue()): after `gap - 1` packets that were
//! delayed, the next one leaves at once with a probability, and so overtakes the delayed ones.

use serde::{Deserialize, Serialize};

use super::crandom::{self, Chance};

/// netem's `reorder`.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The probability that a packet skips its delay.
    pub chance: crandom::Params,
    /// At most one of so many packets does; 1: every packet may.
    pub gap: u32,
}

/// Decides which packets skip their delay.
#[derive(Clone, Debug)]
pub struct Reorder {
    chance: Chance,
    gap: u32,
    delayed: u32,
    overtaking: u64,
}

impl Reorder {
    /// A gap of 0 means 1, as in the kernel.
    pub fn new(params: &Params, seed: u64) -> Self {
        Self {
            chance: Chance::new(&params.chance, seed),
            gap: params.gap.max(1),
            delayed: 0,
            overtaking: 0,
        }
    }

    /// Whether the next packet skips its delay.
    pub fn skips_delay(&mut self) -> bool {
        let skips = self.delayed >= self.gap - 1 && self.chance.happens();
        if skips {
            self.delayed = 0;
            self.overtaking += 1;
        } else {
            self.delayed = self.delayed.saturating_add(1);
        }
        skips
    }

    /// How many packets have so far.
    pub fn overtaking(&self) -> u64 {
        self.overtaking
    }
}
