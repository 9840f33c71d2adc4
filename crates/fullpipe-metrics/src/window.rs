//! The part of a run that counts, from the warm-up to the last sample (`fullpipe.metrics.View`).

use crate::Facts;

/// Slack for times that came out of a division.
const ABOUT_S: f64 = 1e-9;
/// A kernel's samples are taken a little after the time that they are of (`MOST_LATE_S` there).
const MOST_LATE_S: f64 = 1e-3;
const MOST_LATE: f64 = 0.1;
const LEAST_LATE_S: f64 = 1e-6;

pub(crate) struct Window {
    pub(crate) start_s: f64,
    pub(crate) end_s: f64,
    late_s: f64,
}

impl Window {
    /// `sampled_us`: when flows were sampled.
    pub(crate) fn new(facts: &Facts, sampled_us: &[f64]) -> Self {
        let planned_s = facts.duration_ns as f64 / 1e9;
        let interval_s = facts.sample_interval_ns as f64 / 1e9;
        let last = sampled_us.iter().copied().fold(f64::NAN, f64::max);
        let end_s = if last.is_nan() {
            planned_s
        } else {
            planned_s.min(last / 1e6)
        };
        Self {
            start_s: facts.warmup_ns as f64 / 1e9,
            end_s,
            late_s: (interval_s / 2.0)
                .clamp(LEAST_LATE_S, MOST_LATE_S)
                .max(MOST_LATE * interval_s),
        }
    }

    /// A ping is of its own time.
    pub(crate) fn has(&self, t_us: f64) -> bool {
        self.has_with(t_us, ABOUT_S)
    }

    /// A sample ends an interval: that at the window's start belongs to what was before.
    pub(crate) fn has_sample(&self, t_us: f64) -> bool {
        self.has_with(t_us, self.late_s)
    }

    fn has_with(&self, t_us: f64, slack_s: f64) -> bool {
        let seconds = t_us / 1e6;
        seconds > self.start_s + slack_s && seconds <= self.end_s + slack_s
    }
}

/// How much a counter grew within the window; it begins with 0. Gets its samples in the order of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth<const N: usize> {
    at_start: [f64; N],
    at_end: [f64; N],
}

impl<const N: usize> Default for Growth<N> {
    fn default() -> Self {
        Self {
            at_start: [0.0; N],
            at_end: [0.0; N],
        }
    }
}

impl<const N: usize> Growth<N> {
    pub(crate) fn add(&mut self, window: &Window, t_us: f64, counters: [f64; N]) {
        let seconds = t_us / 1e6;
        if seconds <= window.start_s + window.late_s {
            self.at_start = counters;
        }
        if seconds <= window.end_s + window.late_s {
            self.at_end = counters;
        }
    }

    pub(crate) fn grown(&self) -> [f64; N] {
        std::array::from_fn(|index| self.at_end[index] - self.at_start[index])
    }
}
