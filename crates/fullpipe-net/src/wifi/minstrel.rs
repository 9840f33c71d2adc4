//! Rate control by delivery probability: the outline of Linux's minstrel_ht
//! (net/mac80211/rc80211_minstrel_ht.c), for one number of streams. The throughput of a rate is its success
//! probability times its bits; probabilities are smoothed over intervals; some PPDUs try another rate.

use super::phy::{Mode, Phy};

/// MINSTREL_UPDATE_INTERVAL and EWMA_LEVEL.
const UPDATE_NS: u64 = 50_000_000;
const OLD_PERCENT: u64 = 75;
/// One PPDU in so many tries another rate.
const SAMPLE_EVERY: u32 = 16;
const ONE: u64 = 1 << 16;

#[derive(Clone, Copy, Debug)]
struct Rate {
    mode: Mode,
    attempts: u64,
    successes: u64,
    /// Smoothed, in 2^-16; `None`: never tried.
    probability: Option<u64>,
}

impl Rate {
    /// MINSTREL_TRUNC: a probability below 10 % counts as 0, one above 90 % as 1.
    fn throughput(&self) -> u64 {
        let probability = self.probability.unwrap_or(0);
        if probability < ONE / 10 {
            return 0;
        }
        probability.min(ONE * 9 / 10) * self.mode.bits_per_symbol
    }
}

/// How one station's rate is chosen in one direction.
#[derive(Clone, Debug)]
pub(crate) enum RateControl {
    Fixed(Mode),
    Minstrel(Box<Minstrel>),
}

#[derive(Clone, Debug)]
pub(crate) struct Minstrel {
    rates: Vec<Rate>,
    best: usize,
    update_ns: u64,
    sent: u32,
    /// The rate that is tried next.
    sample: usize,
}

impl RateControl {
    pub(crate) fn minstrel(phy: &Phy) -> Self {
        let rates: Vec<Rate> = (0..10)
            .filter_map(|mcs| phy.mode(mcs))
            .map(|mode| Rate {
                mode,
                attempts: 0,
                successes: 0,
                probability: None,
            })
            .collect();
        Self::Minstrel(Box::new(Minstrel {
            rates,
            best: 0,
            update_ns: UPDATE_NS,
            sent: 0,
            sample: 0,
        }))
    }

    /// The rate of the next PPDU.
    pub(crate) fn choose(&mut self, now_ns: u64) -> Mode {
        match self {
            Self::Fixed(mode) => *mode,
            Self::Minstrel(minstrel) => minstrel.choose(now_ns),
        }
    }

    /// The rate that is best so far.
    pub(crate) fn current(&self) -> Mode {
        match self {
            Self::Fixed(mode) => *mode,
            Self::Minstrel(minstrel) => minstrel.rates[minstrel.best].mode,
        }
    }

    /// Counts the MPDUs of a PPDU that were sent and received.
    pub(crate) fn report(&mut self, mode: Mode, attempts: u32, successes: u32) {
        if let Self::Minstrel(minstrel) = self {
            let used = minstrel.rates.iter_mut().find(|rate| rate.mode == mode);
            if let Some(rate) = used {
                rate.attempts += u64::from(attempts);
                rate.successes += u64::from(successes);
            }
        }
    }
}

impl Minstrel {
    fn choose(&mut self, now_ns: u64) -> Mode {
        if now_ns >= self.update_ns {
            self.update(now_ns);
        }
        self.sent += 1;
        if self.sent % SAMPLE_EVERY != 0 {
            return self.rates[self.best].mode;
        }
        // Cyclically from the slowest up, without rates that cannot be better than the best.
        for _ in 0..self.rates.len() {
            self.sample = (self.sample + 1) % self.rates.len();
            let rate = &self.rates[self.sample];
            let could_give = rate.mode.bits_per_symbol * ONE;
            if self.sample != self.best && could_give > self.rates[self.best].throughput() {
                return rate.mode;
            }
        }
        self.rates[self.best].mode
    }

    fn update(&mut self, now_ns: u64) {
        self.update_ns = now_ns + UPDATE_NS;
        for rate in &mut self.rates {
            if let Some(current) = (rate.successes * ONE).checked_div(rate.attempts) {
                rate.probability = Some(rate.probability.map_or(current, |old| {
                    (old * OLD_PERCENT + current * (100 - OLD_PERCENT)) / 100
                }));
            }
            (rate.attempts, rate.successes) = (0, 0);
        }
        // The slowest of equal rates, for a channel on which nothing is received.
        let indices = (0..self.rates.len()).rev();
        self.best = indices
            .max_by_key(|&index| self.rates[index].throughput())
            .unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::channel;
    use super::*;

    #[test]
    fn it_settles_on_the_rate_that_gives_most_and_follows_the_channel_down() {
        let phy = Phy::new(&channel(1)).unwrap();
        let mut control = RateControl::minstrel(&phy);
        let mut run = |from_ms: u64, to_ms: u64, good: u32| {
            let mut counts = [0; 10];
            for ms in from_ms..to_ms {
                let mode = control.choose(ms * 1_000_000);
                control.report(mode, 32, if mode.mcs <= good { 32 } else { 0 });
                counts[mode.mcs as usize] += 1;
            }
            counts
        };
        run(0, 3000, 5);
        assert!(run(3000, 4000, 5)[5] > 900);
        run(4000, 6000, 2);
        assert!(run(6000, 7000, 2)[2] > 900);
    }

    #[test]
    fn the_best_rate_has_the_most_bits_times_its_smoothed_probability() {
        // Bits a symbol 26, 52, 78, 104, 156, 208, 234, 260. MINSTREL_FRAC(90, 100) caps and 10 % cuts off.
        let phy = Phy::new(&channel(1)).unwrap();
        let mode = |mcs| phy.mode(mcs).unwrap();
        let mut control = RateControl::minstrel(&phy);
        assert_eq!(control.choose(0).mcs, 0);
        for (ms, reports, best) in [
            // Half of 208 is more than 0.9 of 104; one in twenty of 260 is nothing.
            (50, [(3, 20, 20), (5, 20, 10), (7, 20, 1)], 5),
            // 0.75 * 0.5 of 208 are 78; 0.9 of 104 are 93.6; 0.25 of 260, with 0.05 before, are 74.75.
            (100, [(3, 20, 20), (5, 20, 0), (7, 20, 20)], 3),
            // 0.75 * 0.2875 + 0.25 of 260 are 121.
            (150, [(3, 20, 20), (5, 20, 0), (7, 20, 20)], 7),
        ] {
            for (mcs, attempts, successes) in reports {
                control.report(mode(mcs), attempts, successes);
            }
            let before = control.current().mcs;
            control.choose(ms * 1_000_000 - 1);
            assert_eq!(control.current().mcs, before, "not before {ms} ms");
            control.choose(ms * 1_000_000);
            assert_eq!(control.current().mcs, best, "{ms} ms");
        }
    }

    #[test]
    fn each_sixteenth_ppdu_tries_the_next_rate_that_could_be_better() {
        let phy = Phy::new(&channel(1)).unwrap();
        let mut control = RateControl::minstrel(&phy);
        control.report(phy.mode(5).unwrap(), 20, 12);
        // 0.6 of 208 are 124.8: 156 and more could be better.
        let chosen: Vec<u32> = (0..80).map(|_| control.choose(50_000_000).mcs).collect();
        for (place, &mcs) in chosen.iter().enumerate() {
            let expected = match place {
                15 | 63 => 4,
                31 | 79 => 6,
                47 => 7,
                _ => 5,
            };
            assert_eq!(mcs, expected, "{place}");
        }
    }
}
