//! CUBIC as the published program computes it, offset of the curve included.

use crate::history::Ring;
use crate::link::Link;
use crate::math::{indicator, whole_steps};
use crate::sender::Sender;

const SCALE: f64 = 0.4;
const KEPT: f64 = 0.7;
/// Shift of the cubic curve in s: a constant of the published program that textbook CUBIC has not.
const OFFSET_S: f64 = 2.0;
/// Loss below this counts as none.
const LOSS_FLOOR: f64 = 1e-6;

/// State of one CUBIC flow.
pub(crate) struct Cubic {
    window: Ring,
    window_max: f64,
    since_loss_ms: f64,
    root: f64,
    two_rtts: usize,
}

impl Cubic {
    /// A flow with this initial window.
    pub(crate) fn new(window: f64, base_rtt_ms: f64, step_ms: f64) -> Self {
        let two_rtts = whole_steps(2.0 * base_rtt_ms, step_ms);
        let window_max = 1.1 * window;
        Self {
            window: Ring::new(two_rtts + 2, window),
            window_max,
            since_loss_ms: 0.0,
            root: inflection(window_max),
            two_rtts,
        }
    }

    pub(crate) fn window(&self, n: usize) -> f64 {
        self.window.get(n)
    }

    /// Moves the flow to step `n`; returns its new rate.
    #[inline]
    pub(crate) fn update(&mut self, n: usize, sender: &Sender, link: &Link) -> f64 {
        let seen = sender.lookback(n, link);
        let lossy = indicator(link.loss.before(n, seen.feedback) - LOSS_FLOOR);
        if lossy > 0.0 {
            let old = self.window.before(n, self.two_rtts);
            self.window_max += sender.step_ms * lossy * (old - self.window_max);
            self.root = inflection(self.window_max);
        }
        self.since_loss_ms += sender.step_ms * (1.0 - lossy * self.since_loss_ms);
        let x = self.since_loss_ms / 1000.0 + OFFSET_S - self.root;
        let window = (SCALE * (x * x * x) + self.window_max).max(1.0);
        self.window.set(n, window);
        window / sender.rtt_ms(n, link)
    }
}

fn inflection(window_max: f64) -> f64 {
    (window_max * KEPT / SCALE).powf(1.0 / 3.0)
}
