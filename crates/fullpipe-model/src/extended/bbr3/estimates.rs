//! Has the bandwidth stopped growing, and what is the least RTT? ProbeRTT included.

use super::{
    AckPhase, Bbr3, Feedback, Flight, Phase, FULL_BANDWIDTH_GROWTH, FULL_BANDWIDTH_ROUNDS,
    MIN_RTT_WINDOW_MS, PROBE_RTT_DURATION_MS, PROBE_RTT_INTERVAL_MS, PROBE_RTT_WINDOW_GAIN,
    WINDOW_MIN,
};

impl Bbr3 {
    pub(super) fn reset_full_bandwidth(&mut self, bandwidth: f64) {
        self.full_bandwidth = bandwidth;
        self.full_rounds = 0;
        self.full_now = false;
    }

    pub(super) fn check_full_bandwidth(&mut self, fb: &Feedback, limited: bool) {
        if self.full_now
            || limited
            || (self.full_reached && self.version.up_inflight_gain.is_some())
        {
            return;
        }
        if fb.bandwidth >= FULL_BANDWIDTH_GROWTH * self.full_bandwidth {
            self.reset_full_bandwidth(fb.bandwidth);
            return;
        }
        if !self.round_start {
            return;
        }
        self.full_rounds += 1;
        if self.full_rounds >= FULL_BANDWIDTH_ROUNDS {
            self.full_now = true;
            self.full_reached = true;
        }
    }

    pub(super) fn update_min_rtt(&mut self, now_ms: f64, fb: &Feedback, flight: &Flight) {
        let expired = now_ms > self.probe_min_stamp_ms + PROBE_RTT_INTERVAL_MS;
        if fb.rtt_ms < self.probe_min_rtt_ms || expired {
            self.probe_min_rtt_ms = fb.rtt_ms;
            self.probe_min_stamp_ms = now_ms;
        }
        if self.probe_min_rtt_ms <= self.min_rtt_ms
            || now_ms > self.min_rtt_stamp_ms + MIN_RTT_WINDOW_MS
        {
            self.min_rtt_ms = self.probe_min_rtt_ms;
            self.min_rtt_stamp_ms = self.probe_min_stamp_ms;
        }
        if expired && self.phase != Phase::ProbeRtt {
            self.phase = Phase::ProbeRtt;
            self.window_before = self.window;
            self.probe_done_ms = None;
            self.ack_phase = AckPhase::Stopping;
            self.round_end = flight.delivered;
        }
        if self.phase != Phase::ProbeRtt {
            return;
        }
        if flight.delivered > self.limited[1] || self.limited[0].is_infinite() {
            self.limited[0] = flight.delivered;
        }
        self.limited[1] = flight.delivered + flight.inflight;
        match self.probe_done_ms {
            None => {
                if flight.inflight <= self.probe_rtt_window() {
                    self.probe_done_ms = Some(now_ms + PROBE_RTT_DURATION_MS);
                    self.probe_round_done = false;
                    self.round_end = flight.delivered;
                }
            }
            Some(done_ms) => {
                self.probe_round_done |= self.round_start;
                if self.probe_round_done && now_ms > done_ms {
                    self.leave_probe_rtt(now_ms, flight);
                }
            }
        }
    }

    pub(super) fn leave_probe_rtt(&mut self, now_ms: f64, flight: &Flight) {
        self.probe_min_stamp_ms = now_ms;
        self.window = self.window.max(self.window_before);
        self.reset_shortterm();
        if self.full_reached {
            self.start_down(now_ms, flight);
            self.phase = Phase::Cruise;
        } else {
            self.phase = Phase::Startup;
        }
    }

    pub(super) fn probe_rtt_window(&self) -> f64 {
        (self.bandwidth() * self.min_rtt_ms * PROBE_RTT_WINDOW_GAIN).max(WINDOW_MIN)
    }
}
