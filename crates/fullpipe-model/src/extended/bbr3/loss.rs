//! How BBR answers loss: the long-term bound while it probes, the short-term bounds otherwise.

use super::{is_too_high, Bbr3, Feedback, Flight, Phase, BETA, LOSS_THRESHOLD, STARTUP_LOSS_STEPS};

impl Bbr3 {
    pub(super) fn note_loss(&mut self, now_ms: f64, fb: &Feedback, flight: &Flight) {
        if !self.loss_in_round {
            self.loss_round_end = flight.delivered;
        }
        self.loss_in_round = true;
        self.loss_steps += 1;
        if self.samples_of_probe && is_too_high(fb) {
            // The volume at which the losses of this flight reached the threshold.
            let before = fb.tx_inflight - fb.lost;
            let lost_before = fb.lost_since - fb.lost;
            let prefix = ((LOSS_THRESHOLD * before - lost_before) / (1.0 - LOSS_THRESHOLD))
                .clamp(0.0, fb.lost);
            self.handle_too_high(now_ms, before + prefix, self.is_limited(fb), flight);
        }
    }

    pub(super) fn handle_too_high(
        &mut self,
        now_ms: f64,
        tx_inflight: f64,
        limited: bool,
        flight: &Flight,
    ) {
        self.probe_too_high = true;
        self.samples_of_probe = false;
        if !limited {
            self.longterm = tx_inflight.max(self.target() * BETA);
        }
        if self.phase == Phase::Up {
            self.start_down(now_ms, flight);
        }
    }

    pub(super) fn adapt_shortterm(&mut self) {
        if self.is_probing() || !self.loss_in_round {
            return;
        }
        if self.bandwidth_shortterm.is_infinite() {
            self.bandwidth_shortterm = self.max_bandwidth();
        }
        if self.shortterm.is_infinite() {
            self.shortterm = self.window;
        }
        self.bandwidth_shortterm = self.bandwidth_latest.max(BETA * self.bandwidth_shortterm);
        self.shortterm = self.inflight_latest.max(BETA * self.shortterm);
    }

    pub(super) fn reset_shortterm(&mut self) {
        self.bandwidth_shortterm = f64::INFINITY;
        self.shortterm = f64::INFINITY;
    }

    pub(super) fn check_startup_loss(&mut self, loss_round_start: bool, fb: &Feedback) {
        if self.full_reached || !loss_round_start {
            return;
        }
        if self.loss_steps >= STARTUP_LOSS_STEPS && is_too_high(fb) {
            self.full_reached = true;
            self.longterm = self
                .volume(self.max_bandwidth(), 1.0)
                .max(self.inflight_latest);
        }
        self.loss_steps = 0;
    }
}
