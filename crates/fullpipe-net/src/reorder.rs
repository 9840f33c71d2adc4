//! Reordering as netem does it (sch_netem.c, netem_enqueue()): after `gap - 1` packets that were
//! delayed, the next one leaves at once with a probability, and so overtakes those on their way.

use fullpipe_plan::Reorder as Plan;

use crate::chance::Event;

/// Who leaves without delay.
#[derive(Clone, Debug)]
pub struct Reorder {
    chance: Event,
    gap: u32,
    delayed: u32,
    overtaking: u64,
}

impl Reorder {
    /// A gap of 0 is one of 1, as the kernel takes it.
    pub fn new(plan: &Plan, seed: u64) -> Self {
        Self {
            chance: Event::new(
                plan.chance.probability_ppm,
                plan.chance.correlation_ppm,
                seed,
            ),
            gap: plan.gap.max(1),
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

    /// How many have so far.
    pub fn overtaking(&self) -> u64 {
        self.overtaking
    }
}
