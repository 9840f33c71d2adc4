//! An on/off source: when it is on, and when that changes.

use fullpipe_net::Rng;
use fullpipe_plan::OnOff;

use crate::draw::exponential;

/// The state of an on/off source.
#[derive(Clone, Debug)]
pub(crate) struct OnOffClock {
    durations: OnOff,
    rng: Rng,
    pub(crate) is_on: bool,
    /// When this period ends.
    pub(crate) until_ns: u64,
}

impl OnOffClock {
    /// A source whose first on period begins at `start_ns`.
    pub(crate) fn new(durations: OnOff, start_ns: u64, seed: u64) -> Self {
        let mut clock = Self {
            durations,
            rng: Rng::new(seed),
            is_on: false,
            until_ns: start_ns,
        };
        clock.switch();
        clock
    }

    /// Goes on to the next period.
    pub(crate) fn switch(&mut self) {
        self.is_on = !self.is_on;
        let mean_ns = if self.is_on {
            self.durations.on_ns
        } else {
            self.durations.off_ns
        };
        let duration_ns = match self.durations.is_random {
            true => (mean_ns as f64 * exponential(&mut self.rng)) as u64,
            false => mean_ns,
        };
        self.until_ns = self.until_ns.saturating_add(duration_ns.max(1));
    }
}
