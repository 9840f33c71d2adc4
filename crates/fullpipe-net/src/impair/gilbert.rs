//! Loss in bursts: a Markov chain of two states with a loss probability in each (Gilbert 1960, Elliott
//! 1963), step by step as netem's `gemodel` (sch_netem.c, loss_gilb_ell()).
//!
//! A share p / (p + r) of packets finds the chain in the bad state, and the mean loss is
//! ((1-h) p + (1-k) r) / (p + r). If all packets are lost in the bad state and none in the good one,
//! bursts of losses have 1 / r packets in the mean.

use serde::{Deserialize, Serialize};

use super::crandom::fraction;
use crate::rng::Rng;

/// Transitions and losses of netem's `loss gemodel`.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// From good to bad with each packet, parts per million: netem's p.
    pub to_bad_ppm: u32,
    /// From bad to good: r.
    pub to_good_ppm: u32,
    /// Loss while bad: 1-h.
    pub loss_bad_ppm: u32,
    /// Loss while good: 1-k.
    pub loss_good_ppm: u32,
}

impl Params {
    pub(super) fn check(&self) -> Result<(), String> {
        let all = [
            self.to_bad_ppm,
            self.to_good_ppm,
            self.loss_bad_ppm,
            self.loss_good_ppm,
        ];
        match all.iter().all(|&ppm| ppm <= 1_000_000) {
            true => Ok(()),
            false => Err("gemodel: probabilities are at most 1000000 ppm".into()),
        }
    }
}

/// The chain.
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
    /// The chain in its good state.
    pub fn new(params: &Params, seed: u64) -> Self {
        Self {
            to_bad: fraction(params.to_bad_ppm),
            to_good: fraction(params.to_good_ppm),
            loss_bad: fraction(params.loss_bad_ppm),
            loss_good: fraction(params.loss_good_ppm),
            is_bad: false,
            rng: Rng::new(seed),
        }
    }

    /// Whether the next packet is lost. The state before the transition decides.
    pub fn loses(&mut self) -> bool {
        let (leave, loss) = match self.is_bad {
            true => (self.to_good, self.loss_bad),
            false => (self.to_bad, self.loss_good),
        };
        let (changes, draw) = (self.rng.next_u32() < leave, self.rng.next_u32());
        self.is_bad ^= changes;
        // No draw is above u32::MAX, so a probability of 1 needs its own test.
        draw < loss || loss == u32::MAX
    }
}
