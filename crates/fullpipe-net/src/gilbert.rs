//! Loss in bursts: a chain of two states with a chance of loss in each (Gilbert 1960, Elliott 1963),
//! step by step as netem's `gemodel` (sch_netem.c, loss_gilb_ell()).
//!
//! In the long run a share p / (p + r) of packets finds it bad, and the mean loss is
//! ((1-h) p + (1-k) r) / (p + r). Where all are lost while bad and none while good, bursts last 1 / r
//! packets in the mean.

use fullpipe_plan::GilbertElliott as Plan;

use crate::chance::fraction;
use crate::rng::Rng;

/// The chain, and how much it has lost.
#[derive(Clone, Debug)]
pub struct GilbertElliott {
    to_bad: u32,
    to_good: u32,
    loss_bad: u32,
    loss_good: u32,
    is_bad: bool,
    rng: Rng,
}

impl GilbertElliott {
    /// It begins good.
    pub fn new(plan: &Plan, seed: u64) -> Self {
        Self {
            to_bad: fraction(plan.to_bad_ppm),
            to_good: fraction(plan.to_good_ppm),
            loss_bad: fraction(plan.loss_bad_ppm),
            loss_good: fraction(plan.loss_good_ppm),
            is_bad: false,
            rng: Rng::new(seed),
        }
    }

    /// Whether the next packet is lost: by the state that it finds, not by the one that it leaves.
    pub fn loses(&mut self) -> bool {
        let (leave, loss) = match self.is_bad {
            true => (self.to_good, self.loss_bad),
            false => (self.to_bad, self.loss_good),
        };
        let (changes, draw) = (self.rng.next_u32() < leave, self.rng.next_u32());
        self.is_bad ^= changes;
        // A certain loss is certain: no number lies above the largest.
        draw < loss || loss == u32::MAX
    }
}
