//! Reno: one segment per round trip, half the window per lost segment.

use crate::link::Link;
use crate::sender::Sender;

/// State of one Reno flow.
pub(crate) struct Reno {
    pub(crate) window: f64,
}

impl Reno {
    /// Moves the flow to step `n`; returns its new rate.
    #[inline]
    pub(crate) fn update(&mut self, n: usize, sender: &Sender, link: &Link) -> f64 {
        let seen = sender.lookback(n, link);
        let rate = sender.rate.before(n, seen.round_trip);
        let loss = link.loss.before(n, seen.feedback);
        let acked = rate * (1.0 - loss);
        let lost = rate * loss;
        let change = acked / self.window - lost * self.window / 2.0;
        self.window = (self.window + sender.step_ms * change).max(1.0);
        self.window / sender.rtt_ms(n, link)
    }
}
