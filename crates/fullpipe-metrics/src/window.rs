//! The part of a run that counts: from the warm-up to the last sample.

use crate::facts::Facts;

/// Slack for times that come out of a division.
const ROUNDING_S: f64 = 1e-9;
/// A kernel's samples are taken a little late: 6 us, or 0.2 ms where it reads many flows one by one; 1 to
/// 2 ms now and then where its processor is two thirds busy. The agent reports those that are later
/// than a tenth of the interval (its health.rs).
const LATE_MAX_S: f64 = 1e-3;
const LATE_MAX: f64 = 0.1;
const LATE_MIN_S: f64 = 1e-6;

/// Begins and ends at sampling times, where counters are known.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The first sampling time from which on runs count.
    pub start_s: f64,
    /// The last one.
    pub end_s: f64,
    /// How much later than its time a sample may be.
    pub late_s: f64,
}

impl Window {
    /// `sampled_us`: when flows were sampled.
    pub fn new(facts: &Facts, sampled_us: &[f64]) -> Self {
        let interval_s = facts.sample_interval_s;
        let last_us = sampled_us.iter().copied().fold(f64::NAN, f64::max);
        let sampled = |time_s: f64, round: fn(f64) -> f64, slack: f64| {
            if interval_s > 0.0 && time_s.is_finite() {
                round(time_s / interval_s + slack) * interval_s
            } else {
                time_s
            }
        };
        let end_s = sampled(facts.end_s, f64::floor, 1e-6);
        // `min` ignores NaN: no sample.
        let end_s = end_s.min(last_us / 1e6);
        let start_s = sampled(facts.start_s, f64::ceil, -1e-6);
        let late_s = (LATE_MAX * interval_s).max(LATE_MAX_S.min(interval_s / 2.0));
        Self {
            start_s,
            end_s: if end_s.is_finite() { end_s } else { start_s },
            late_s: late_s.max(LATE_MIN_S),
        }
    }

    pub(crate) fn length_s(&self) -> f64 {
        self.end_s - self.start_s
    }

    /// Whether the window has a probe's request, which has a time of its own.
    pub(crate) fn has(&self, t_us: f64) -> bool {
        self.has_with(t_us, ROUNDING_S)
    }

    /// Whether the window has a sample. It ends an interval: one at the window's start is about what
    /// was before.
    pub(crate) fn has_sample(&self, t_us: f64) -> bool {
        self.has_with(t_us, self.late_s)
    }

    fn has_with(&self, t_us: f64, slack_s: f64) -> bool {
        let seconds = t_us / 1e6;
        seconds > self.start_s + slack_s && seconds <= self.end_s + slack_s
    }
}

/// How much counters grew within the window. They begin with 0, and come in the order of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth<const N: usize> {
    at_start: [f64; N],
    at_end: [f64; N],
}

impl<const N: usize> Growth<N> {
    pub(crate) const NONE: Self = Self {
        at_start: [0.0; N],
        at_end: [0.0; N],
    };

    pub(crate) fn add(&mut self, window: &Window, t_us: f64, counters: [f64; N]) {
        let seconds = t_us / 1e6;
        if seconds <= window.start_s + window.late_s {
            self.at_start = counters;
        }
        if seconds <= window.end_s + window.late_s {
            self.at_end = counters;
        }
    }

    /// The counters at the end of the window.
    pub(crate) fn at_end(&self) -> [f64; N] {
        self.at_end
    }

    pub(crate) fn grown(&self) -> [f64; N] {
        std::array::from_fn(|index| self.at_end[index] - self.at_start[index])
    }
}
