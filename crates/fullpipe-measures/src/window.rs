//! The part of a run that counts, from the warm-up to the last sample (`fullpipe.metrics.View`).

use crate::Facts;

/// Slack for times that came out of a division.
const ABOUT_S: f64 = 1e-9;

pub(crate) struct Window {
    pub(crate) start_s: f64,
    pub(crate) end_s: f64,
}

impl Window {
    /// `sampled_us`: when flows were sampled.
    pub(crate) fn new(facts: &Facts, sampled_us: &[f64]) -> Self {
        let planned_s = facts.duration_ns as f64 / 1e9;
        let last = sampled_us.iter().copied().fold(f64::NAN, f64::max);
        let end_s = if last.is_nan() {
            planned_s
        } else {
            planned_s.min(last / 1e6)
        };
        Self {
            start_s: facts.warmup_ns as f64 / 1e9,
            end_s,
        }
    }

    /// A sample ends an interval: that at the window's start belongs to what was before.
    pub(crate) fn has(&self, t_us: f64) -> bool {
        let seconds = t_us / 1e6;
        seconds > self.start_s + ABOUT_S && seconds <= self.end_s + ABOUT_S
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
        let t_us = t_us / 1e6 * 1e6; // as a time in seconds is told
        if t_us <= window.start_s * 1e6 + 1.0 {
            self.at_start = counters;
        }
        if t_us <= window.end_s * 1e6 + 1.0 {
            self.at_end = counters;
        }
    }

    pub(crate) fn grown(&self) -> [f64; N] {
        std::array::from_fn(|index| self.at_end[index] - self.at_start[index])
    }
}
