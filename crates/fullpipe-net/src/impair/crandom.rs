//! netem's correlated random numbers (sch_netem.c, get_crandom()).

use serde::{Deserialize, Serialize};

use crate::rng::Rng;

/// The probability of an event.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// In parts per million.
    pub probability_ppm: u32,
    /// Correlation of successive draws, in parts per million; 0: independent.
    pub correlation_ppm: u32,
}

/// Random numbers, uniform if uncorrelated, else drawn towards the last one.
#[derive(Clone, Debug)]
struct Crandom {
    rho: u32,
    last: u32,
    rng: Rng,
}

impl Crandom {
    fn new(correlation_ppm: u32, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        Self {
            rho: fraction(correlation_ppm),
            last: rng.next_u32(),
            rng,
        }
    }

    /// Exponential smoothing of draws: answer = value * (1 - rho) + last * rho.
    fn draw(&mut self) -> u32 {
        let value = u64::from(self.rng.next_u32());
        if self.rho == 0 {
            return value as u32;
        }
        let rho = u64::from(self.rho) + 1;
        let answer = (value * ((1 << 32) - rho) + u64::from(self.last) * rho) >> 32;
        self.last = answer as u32;
        self.last
    }
}

/// An event with a probability, drawn as netem draws it: it happens if `threshold >= draw`.
#[derive(Clone, Debug)]
pub(crate) struct Chance {
    threshold: u32,
    draws: Crandom,
}

impl Chance {
    pub(crate) fn new(params: &Params, seed: u64) -> Self {
        Self {
            threshold: fraction(params.probability_ppm),
            draws: Crandom::new(params.correlation_ppm, seed),
        }
    }

    pub(crate) fn happens(&mut self) -> bool {
        self.threshold > 0 && self.draws.draw() <= self.threshold
    }
}

/// A probability as netem's fraction of 2^32 - 1, rounded to the nearest (iproute2 q_netem.c, set_percent()).
pub fn fraction(ppm: u32) -> u32 {
    ((u64::from(ppm) * u64::from(u32::MAX) + 500_000) / 1_000_000) as u32
}
