//! netem's correlated random numbers (sch_netem.c, get_crandom()).

use crate::rng::Rng;

/// Numbers that are uniform where nothing is correlated, and drawn towards the last one otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Correlated {
    rho: u32,
    last: u32,
    rng: Rng,
}

impl Correlated {
    pub(crate) fn new(correlation_ppm: u32, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        Self {
            rho: fraction(correlation_ppm),
            last: rng.next_u32(),
            rng,
        }
    }

    /// Exponential smoothing of draws: answer = value * (1 - rho) + last * rho.
    pub(crate) fn draw(&mut self) -> u32 {
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

/// An event of a probability, drawn as netem draws it: it happens where `threshold >= draw`.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    threshold: u32,
    draws: Correlated,
}

impl Event {
    pub(crate) fn new(probability_ppm: u32, correlation_ppm: u32, seed: u64) -> Self {
        Self {
            threshold: fraction(probability_ppm),
            draws: Correlated::new(correlation_ppm, seed),
        }
    }

    pub(crate) fn happens(&mut self) -> bool {
        self.threshold > 0 && self.draws.draw() <= self.threshold
    }
}

/// Of 2^32 - 1, rounded to the nearest (iproute2 q_netem.c, set_percent()).
pub(crate) fn fraction(ppm: u32) -> u32 {
    ((u64::from(ppm) * u64::from(u32::MAX) + 500_000) / 1_000_000) as u32
}
