//! Loss in bursts: a Markov chain of two states with a loss probability in each (Gilbert 1960, Elliott
//! 1963). It changes with packets, step by step as netem's `gemodel` (sch_netem.c, loss_gilb_ell()), or
//! with time, whatever is sent.
//!
//! A share p / (p + r) of packets finds the chain in the bad state, and the mean loss is
//! ((1-h) p + (1-k) r) / (p + r). If all packets are lost in the bad state and none in the good one,
//! bursts of losses have 1 / r packets in the mean.
//!
//! By time the states last exponential times with means g and b: a share b / (g + b) of the time is bad.

use serde::{Deserialize, Serialize};

use super::crandom::fraction;
use crate::rng::{derive_seed, purpose, Rng};

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
    /// The mean durations of the good and of the bad state, of a chain that changes with time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<[u64; 2]>,
}

impl Params {
    pub(super) fn check(&self) -> Result<(), String> {
        let all = [
            self.to_bad_ppm,
            self.to_good_ppm,
            self.loss_bad_ppm,
            self.loss_good_ppm,
        ];
        if all.iter().any(|&ppm| ppm > 1_000_000) {
            return Err("gemodel: probabilities are at most 1000000 ppm".into());
        }
        match self.mean_ns {
            Some(means) if means.contains(&0) => Err("gemodel: times must be above 0".into()),
            Some(_) if self.to_bad_ppm > 0 || self.to_good_ppm > 0 => {
                Err("gemodel: changes with packets or with time, not with both".into())
            }
            _ => Ok(()),
        }
    }
}

/// When a chain changes that does so with time. Its random numbers are its own, so that the bad times of
/// a seed are the same whatever is sent.
#[derive(Clone, Debug)]
struct Times {
    mean_ns: [u64; 2],
    next_ns: u64,
    rng: Rng,
}

impl Times {
    fn new(mean_ns: [u64; 2], seed: u64) -> Self {
        let mut times = Self {
            mean_ns,
            next_ns: 0,
            rng: Rng::new(derive_seed(seed, purpose::BAD_TIMES, 0)),
        };
        times.stay(false);
        times
    }

    /// Draws how long the state lasts that began at `next_ns`.
    fn stay(&mut self, is_bad: bool) {
        // Uniform over (0, 1); libm's logarithm is the same on every machine.
        const MANTISSA: u64 = 1 << 53;
        let uniform = (self.rng.up_to(MANTISSA - 1) as f64 + 0.5) / MANTISSA as f64;
        let mean_ns = self.mean_ns[usize::from(is_bad)] as f64;
        let length_ns = (-libm::log(uniform) * mean_ns) as u64;
        self.next_ns = self.next_ns.saturating_add(length_ns.max(1));
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
    times: Option<Times>,
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
            times: params.mean_ns.map(|means| Times::new(means, seed)),
        }
    }

    /// It is now this time, at which a chain by time may be in another state. Times never decrease.
    pub fn advance(&mut self, now_ns: u64) {
        while let Some(times) = self.times.as_mut().filter(|times| times.next_ns <= now_ns) {
            self.is_bad = !self.is_bad;
            times.stay(self.is_bad);
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
