//! CUBIC (RFC 9438, with Linux's order of things) and Reno (RFC 5681) as fluid windows.

use super::sender::{Feedback, Flight};

const CUBIC_KEPT: f64 = 0.7;
const CUBIC_SCALE: f64 = 0.4;
const RENO_KEPT: f64 = 0.5;
/// RFC 9438 section 4.3: growth per round trip that gives Reno's rate with CUBIC's decrease.
const RENO_FRIENDLY: f64 = 3.0 * (1.0 - CUBIC_KEPT) / (1.0 + CUBIC_KEPT);
const WINDOW_MIN: f64 = 2.0;
/// HyStart leaves slow start when the RTT has grown by an eighth, within these bounds.
const HYSTART_MS: (f64, f64) = (4.0, 16.0);

/// CUBIC's curve since the last loss.
struct Curve {
    window_max: f64,
    epoch: Option<Epoch>,
}

struct Epoch {
    start_ms: f64,
    origin: f64,
    inflection_s: f64,
    friendly: f64,
}

/// One loss-based flow.
pub(super) struct LossBased {
    pub(super) window: f64,
    threshold: f64,
    kept: f64,
    curve: Option<Curve>,
    /// Send time at which the current recovery began.
    recovery: Option<f64>,
    /// Share of the delivered data that recovery retransmits.
    reduction: f64,
    min_rtt_ms: f64,
}

impl LossBased {
    pub(super) fn cubic(window: f64) -> Self {
        Self {
            kept: CUBIC_KEPT,
            curve: Some(Curve {
                window_max: 0.0,
                epoch: None,
            }),
            ..Self::reno(window)
        }
    }

    pub(super) fn reno(window: f64) -> Self {
        Self {
            window,
            threshold: f64::INFINITY,
            kept: RENO_KEPT,
            curve: None,
            recovery: None,
            reduction: 1.0,
            min_rtt_ms: f64::INFINITY,
        }
    }

    /// Takes one step's feedback; returns how much may be sent now.
    pub(super) fn on_feedback(&mut self, now_ms: f64, fb: &Feedback, flight: &Flight) -> f64 {
        if fb.acked > 0.0 {
            self.min_rtt_ms = self.min_rtt_ms.min(fb.rtt_ms);
        }
        if let Some(begun) = self.recovery {
            if fb.sent_at >= begun {
                self.recovery = None;
                self.window = self.threshold;
            }
        }
        if self.recovery.is_none() && fb.lost > 0.0 {
            self.reduce(fb.now);
        } else if self.recovery.is_none() && fb.acked > 0.0 {
            self.grow(now_ms, fb);
        }
        let room = self.window - flight.inflight;
        if self.recovery.is_some() {
            // Proportional rate reduction, RFC 6937.
            if flight.inflight > self.threshold {
                return self.reduction * fb.acked;
            }
            return (self.threshold - flight.inflight)
                .min(2.0 * fb.acked)
                .max(0.0);
        }
        room.max(0.0)
    }

    fn reduce(&mut self, now: f64) {
        if let Some(curve) = &mut self.curve {
            // RFC 9438 section 4.7, fast convergence.
            curve.window_max = if self.window < curve.window_max {
                self.window * (1.0 + CUBIC_KEPT) / 2.0
            } else {
                self.window
            };
            curve.epoch = None;
        }
        self.threshold = (self.window * self.kept).max(WINDOW_MIN);
        self.reduction = self.threshold / self.window;
        self.recovery = Some(now);
    }

    fn grow(&mut self, now_ms: f64, fb: &Feedback) {
        if self.window < self.threshold {
            self.window += fb.acked;
            let (low, high) = HYSTART_MS;
            let grown = fb.rtt_ms - self.min_rtt_ms;
            if self.curve.is_some() && grown > (self.min_rtt_ms / 8.0).clamp(low, high) {
                self.threshold = self.window;
            }
            return;
        }
        let Some(curve) = &mut self.curve else {
            self.window += fb.acked / self.window;
            return;
        };
        let window = self.window;
        let epoch = curve.epoch.get_or_insert_with(|| {
            let below = curve.window_max - window;
            Epoch {
                start_ms: now_ms,
                origin: window.max(curve.window_max),
                inflection_s: (below.max(0.0) / CUBIC_SCALE).cbrt(),
                friendly: window,
            }
        });
        let t_s = (now_ms - epoch.start_ms + self.min_rtt_ms) / 1000.0 - epoch.inflection_s;
        let target = epoch.origin + CUBIC_SCALE * t_s * t_s * t_s;
        epoch.friendly += RENO_FRIENDLY * fb.acked / window;
        let target = target.max(epoch.friendly);
        if target > window {
            // Linux: at most half a segment per segment acknowledged.
            self.window += fb.acked * ((target - window) / window).min(0.5);
        } else {
            self.window += fb.acked / (100.0 * window);
        }
    }
}
