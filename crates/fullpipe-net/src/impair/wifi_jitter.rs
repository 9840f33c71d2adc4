//! The extra delay of a packet on a busy Wi-Fi hop, as picoquic's simulator draws it (private-octopus/
//! picoquic, sim_link.c). The short part is a Poisson number of ms, mean 1, less a uniform part of one ms.
//! Some packets also have a long part: a Poisson number, mean 12, of 7.5 ms. Their share follows from the
//! wanted mean: its part above 1 ms, over 84 ms.

use crate::rng::Rng;

const SHORT_NS: u64 = 1_000_000;
const LONG_NS: u64 = 7_500_000;
/// The part of the mean above 1 ms at which every packet has the long part.
const ALWAYS_LONG_NS: u64 = 84_000_000;

/// A source of delays.
#[derive(Clone, Debug)]
pub struct WifiJitter {
    /// Probability of the long part, of 2^32.
    long_threshold: u64,
    rng: Rng,
}

impl WifiJitter {
    /// Delays with about this mean.
    pub fn new(mean_ns: u64, seed: u64) -> Self {
        let above_ns = mean_ns.saturating_sub(SHORT_NS).min(ALWAYS_LONG_NS);
        Self {
            long_threshold: (above_ns << 32) / ALWAYS_LONG_NS,
            rng: Rng::new(seed),
        }
    }

    /// The extra delay of the next packet.
    pub fn next_ns(&mut self) -> u64 {
        let mut delay_ns = self.part_ns(1.0, SHORT_NS);
        if u64::from(self.rng.next_u32()) < self.long_threshold {
            delay_ns += self.part_ns(12.0, LONG_NS);
        }
        delay_ns
    }

    fn part_ns(&mut self, mean: f64, unit_ns: u64) -> u64 {
        match self.poisson(mean) {
            0 => 0,
            count => count * unit_ns - self.rng.up_to(unit_ns - 1),
        }
    }

    /// The number of uniform factors whose product falls below exp(-mean) (Knuth).
    fn poisson(&mut self, mean: f64) -> u64 {
        let least = (-mean).exp();
        let mut product = 1.0;
        let mut count = 0;
        loop {
            product *= (f64::from(self.rng.next_u32()) + 0.5) / 4_294_967_296.0;
            if product < least {
                return count;
            }
            count += 1;
        }
    }
}
