//! CAKE's times of packets: the shaper's arithmetic (sch_cake.c, cake_set_rate()).

/// Slower than this the clock does not go (bytes a second).
const LEAST_BYTES_PER_S: u64 = 64;

/// Time per byte, in fixed point: `bytes * ns >> shift`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pace {
    ns: u64,
    shift: u32,
}

impl Pace {
    pub(super) fn new(bytes_per_s: u64) -> Self {
        let mut shift = 34;
        let mut ns = (1_000_000_000u64 << shift) / bytes_per_s.max(LEAST_BYTES_PER_S);
        while ns >> 34 != 0 {
            ns >>= 1;
            shift -= 1;
        }
        Self { ns, shift }
    }

    pub(super) fn duration_ns(self, bytes: u32) -> u64 {
        (u64::from(bytes) * self.ns) >> self.shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_keeps_any_rate_to_one_in_a_million_and_a_ns() {
        for rate in [64u64, 1000, 125_000, 6_250_000, 125_000_000, 1_250_000_000] {
            let pace = Pace::new(rate);
            let wanted = 60_000.0 * 1e9 / rate as f64;
            let error = pace.duration_ns(60_000) as f64 - wanted;
            assert!(error.abs() < 1.0 + 1e-6 * wanted, "{rate}: {error}");
        }
    }
}
