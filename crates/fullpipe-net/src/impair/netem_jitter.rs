//! netem's random delay (sch_netem.c, tabledist()): the delay's mean plus jitter times a number from a
//! table, or uniform over mean ± jitter. Packets overtake one another. netem's correlation of delays is
//! left out: the kernel takes remainders of the correlated draws, which no longer are.

use serde::{Deserialize, Serialize};

use crate::rng::Rng;

/// The table has numbers of standard deviations, times this (NETEM_DIST_SCALE).
const SCALE: i64 = 8192;
/// Jitter is an int of the kernel.
const MOST_JITTER_NS: u64 = i32::MAX as u64;
/// The kernel takes at most so many numbers (NETEM_DIST_MAX), and at least one.
const MOST_NUMBERS: usize = 16384;

/// netem's `delay TIME JITTER distribution NAME`, without the mean.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// What a number of the table is multiplied with, or half the width of the uniform delay.
    pub jitter_ns: u64,
    /// The inverse of a distribution function at even steps. Empty: uniform.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub table: Vec<i16>,
}

impl Params {
    pub(super) fn check(&self) -> Result<(), String> {
        if !(1..=MOST_JITTER_NS).contains(&self.jitter_ns) {
            return Err(format!(
                "delay_jitter: must be from 1 to {MOST_JITTER_NS} ns"
            ));
        }
        if self.table.len() > MOST_NUMBERS {
            return Err(format!(
                "delay_distribution: has more than {MOST_NUMBERS} numbers"
            ));
        }
        Ok(())
    }
}

/// Draws how much later or earlier than the mean a packet leaves.
#[derive(Clone, Debug)]
pub struct NetemJitter {
    jitter_ns: i64,
    table: Vec<i16>,
    rng: Rng,
}

impl NetemJitter {
    /// The jitter of one direction.
    pub fn new(params: &Params, seed: u64) -> Self {
        Self {
            jitter_ns: params.jitter_ns as i64,
            table: params.table.clone(),
            rng: Rng::new(seed),
        }
    }

    /// The next packet's difference from the mean.
    pub fn next_ns(&mut self) -> i64 {
        let draw = self.rng.next_u32();
        if self.table.is_empty() {
            return i64::from(draw) % (2 * self.jitter_ns) - self.jitter_ns;
        }
        let number = i64::from(self.table[draw as usize % self.table.len()]);
        let part = (self.jitter_ns % SCALE) * number;
        let rounded = (part + if part >= 0 { SCALE / 2 } else { -SCALE / 2 }) / SCALE;
        self.jitter_ns / SCALE * number + rounded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 400_000;

    /// Mean, standard deviation and lag-1 correlation of many draws.
    fn moments(params: &Params) -> (f64, f64, f64) {
        let mut jitter = NetemJitter::new(params, 7);
        let draws: Vec<f64> = (0..DRAWS).map(|_| jitter.next_ns() as f64).collect();
        let mean = draws.iter().sum::<f64>() / DRAWS as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / DRAWS as f64;
        let lagged: f64 = draws
            .windows(2)
            .map(|x| (x[0] - mean) * (x[1] - mean))
            .sum();
        (mean, variance.sqrt(), lagged / DRAWS as f64 / variance)
    }

    fn params(jitter_ns: u64, table: Vec<i16>) -> Params {
        Params { jitter_ns, table }
    }

    #[test]
    fn without_a_table_the_delay_is_uniform_over_the_jitter_on_both_sides() {
        let (mean, deviation, lag) = moments(&params(3_000_000, vec![]));
        assert!(mean.abs() < 5.0 * 3e6 / 3f64.sqrt() / (DRAWS as f64).sqrt());
        assert!((deviation / (3e6 / 3f64.sqrt()) - 1.0).abs() < 0.01);
        assert!(lag.abs() < 5.0 / (DRAWS as f64).sqrt());
    }

    #[test]
    fn a_table_of_two_numbers_gives_both_and_rounds_as_the_kernel() {
        // 12345 ns * 4097 / 8192 = 6174.01, and negative numbers are rounded away from 0 likewise.
        let mut jitter = NetemJitter::new(&params(12_345, vec![-4097, 4097]), 1);
        let draws: std::collections::BTreeSet<i64> = (0..100).map(|_| jitter.next_ns()).collect();
        assert_eq!(draws.into_iter().collect::<Vec<_>>(), [-6174, 6174]);
    }
}
