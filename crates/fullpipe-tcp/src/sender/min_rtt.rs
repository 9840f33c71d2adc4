//! The least RTT of a time window (minmax_running_min() of win_minmax.c, sysctl tcp_min_rtt_wlen). Must never
//! know what an RTT is used for.

/// sysctl tcp_min_rtt_wlen.
const WINDOW_US: u64 = 300_000_000;

/// A sample and when it was taken.
#[derive(Clone, Copy, Debug)]
struct Sample {
    rtt_us: u32,
    at_us: u64,
}

/// The least sample of the window, the least one after that, and the least one after that one.
#[derive(Clone, Debug)]
pub(super) struct MinRtt {
    best: [Sample; 3],
}

impl Default for MinRtt {
    fn default() -> Self {
        Self::of(Sample {
            rtt_us: u32::MAX,
            at_us: 0,
        })
    }
}

impl MinRtt {
    fn of(sample: Sample) -> Self {
        Self { best: [sample; 3] }
    }

    /// The minimum; `u32::MAX` before the first sample.
    #[inline(always)] // for every ACK
    pub(super) fn us(&self) -> u32 {
        self.best[0].rtt_us
    }

    /// Adds a sample.
    #[inline]
    pub(super) fn add(&mut self, rtt_us: u32, now_us: u64) {
        let sample = Sample {
            rtt_us: rtt_us.max(1),
            at_us: now_us,
        };
        let [first, second, third] = self.best;
        if sample.rtt_us <= first.rtt_us || now_us - third.at_us > WINDOW_US {
            *self = Self::of(sample);
            return;
        }
        if sample.rtt_us <= second.rtt_us {
            self.best = [first, sample, sample];
        } else if sample.rtt_us <= third.rtt_us {
            self.best[2] = sample;
        }
        self.age(sample);
    }

    /// Drops what has left the window, and makes a sample that is not less the second best of a window's second
    /// quarter, or the third best of its second half.
    #[inline]
    fn age(&mut self, sample: Sample) {
        let age_us = |of: Sample| sample.at_us - of.at_us;
        let [first, second, third] = self.best;
        if age_us(first) > WINDOW_US {
            self.best = [second, third, sample];
            if age_us(second) > WINDOW_US {
                self.best = [third, sample, sample];
            }
        } else if second.at_us == first.at_us && age_us(first) > WINDOW_US / 4 {
            self.best = [first, sample, sample];
        } else if third.at_us == second.at_us && age_us(first) > WINDOW_US / 2 {
            self.best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000;

    fn after(samples: &[(u64, u32)]) -> u32 {
        let mut min = MinRtt::default();
        for &(at_s, rtt_us) in samples {
            min.add(rtt_us, at_s * S);
        }
        min.us()
    }

    #[test]
    fn a_smaller_or_equal_sample_is_the_minimum_at_once() {
        assert_eq!(MinRtt::default().us(), u32::MAX);
        assert_eq!(after(&[(0, 50), (1, 40), (2, 60)]), 40);
        // An equal one keeps the minimum for another window.
        assert_eq!(after(&[(0, 40), (200, 40), (400, 60)]), 40);
        assert_eq!(after(&[(0, 0)]), 1);
    }

    #[test]
    fn after_the_window_the_second_best_is_the_minimum() {
        // 45 came at 100 s, so the window of 300 s from 350 s on has it.
        let samples = [(0, 40), (100, 45), (200, 70), (300, 60)];
        assert_eq!(after(&samples), 40);
        for (at_s, min_us) in [(300, 40), (301, 45), (400, 45), (401, 60)] {
            let later = [&samples[..], &[(at_s, 60)]].concat();
            assert_eq!(after(&later), min_us, "{at_s}");
        }
    }

    #[test]
    fn a_window_without_another_sample_leaves_nothing() {
        assert_eq!(after(&[(0, 40), (301, 90)]), 90);
        assert_eq!(after(&[(0, 40), (300, 90)]), 40);
    }

    #[test]
    fn the_minimum_is_never_below_the_least_sample_of_the_window_and_never_above_by_a_quarter_window(
    ) {
        // Against the definition: every sample each 10 s, of which the least of the last 300 s is known.
        let (mut min, mut random) = (MinRtt::default(), 7_u64);
        let mut samples: Vec<(u64, u32)> = Vec::new();
        for step in 0..2_000_u64 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let sample = (step * 10 * S, 1_000 + (random >> 52) as u32);
            samples.push(sample);
            min.add(sample.1, sample.0);
            let least_since = |window_us: u64| {
                let recent = samples
                    .iter()
                    .filter(|known| known.0 + window_us >= sample.0);
                recent.map(|known| known.1).min().unwrap()
            };
            assert!(min.us() >= least_since(WINDOW_US), "{step}");
            assert!(min.us() <= least_since(WINDOW_US / 2), "{step}");
        }
    }
}
