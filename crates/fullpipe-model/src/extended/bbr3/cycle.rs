//! The probing cycle: DOWN, CRUISE, REFILL, UP, and what each learns about the long-term bound.

use super::{
    is_too_high, AckPhase, Bbr3, Feedback, Flight, Phase, ACK_SEGMENTS, PROBE_WAIT_MS,
    PROBE_WAIT_ROUNDS, PROBE_WAIT_SPREAD_MS,
};

impl Bbr3 {
    pub(super) fn start_down(&mut self, now_ms: f64, flight: &Flight) {
        self.loss_in_round = false;
        self.bandwidth_latest = 0.0;
        self.inflight_latest = 0.0;
        self.up_acked_per_segment = f64::INFINITY;
        self.rounds_since_probe = if self.random.uniform() < 0.5 {
            0.0
        } else {
            1.0
        };
        self.probe_wait_ms = PROBE_WAIT_MS + self.random.uniform() * PROBE_WAIT_SPREAD_MS;
        self.cycle_start_ms = now_ms;
        self.ack_phase = AckPhase::Stopping;
        self.round_end = flight.delivered;
        self.phase = Phase::Down;
    }

    pub(super) fn start_refill(&mut self, flight: &Flight) {
        self.reset_shortterm();
        self.up_rounds = 0;
        self.up_acked = 0.0;
        self.probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.round_end = flight.delivered;
        self.phase = Phase::Refill;
    }

    pub(super) fn start_up(&mut self, now_ms: f64, fb: &Feedback, flight: &Flight) {
        self.ack_phase = AckPhase::Starting;
        self.round_end = flight.delivered;
        self.cycle_start_ms = now_ms;
        self.reset_full_bandwidth(fb.bandwidth);
        self.phase = Phase::Up;
        self.raise_slope();
    }

    pub(super) fn raise_slope(&mut self) {
        let growth = f64::from(1_u32 << self.up_rounds.min(30));
        self.up_rounds = (self.up_rounds + 1).min(30);
        self.up_acked_per_segment = (self.window / growth).floor().max(1.0);
    }

    pub(super) fn check_drain(&mut self, now_ms: f64, flight: &Flight) {
        if self.phase == Phase::Startup && self.full_reached {
            self.phase = Phase::Drain;
            self.loss_in_round = false;
            self.bandwidth_latest = 0.0;
            self.inflight_latest = 0.0;
        }
        if self.phase == Phase::Drain && flight.inflight <= self.volume(self.max_bandwidth(), 1.0) {
            self.start_down(now_ms, flight);
        }
    }

    /// Moves the long-term bound by what ACKs say of the last probe; true: it chose a phase.
    pub(super) fn adapt_longterm(
        &mut self,
        now_ms: f64,
        fb: &Feedback,
        flight: &Flight,
        limited: bool,
    ) -> bool {
        if self.round_start && self.ack_phase == AckPhase::Starting {
            self.ack_phase = AckPhase::Feedback;
        }
        if self.round_start && self.ack_phase == AckPhase::Stopping {
            self.samples_of_probe = false;
            self.ack_phase = AckPhase::Init;
            if self.is_probe_bw() && !limited && self.bandwidth_max[1] > 0.0 {
                self.bandwidth_max = [self.bandwidth_max[1], 0.0];
            }
            if self.is_probe_bw() && self.probe_precautionary && !self.probe_too_high {
                self.start_refill(flight);
                return true;
            }
        }
        if is_too_high(fb) {
            if self.samples_of_probe {
                self.handle_too_high(now_ms, fb.tx_inflight, limited, flight);
            }
            return false;
        }
        if self.longterm.is_infinite() {
            return false;
        }
        self.longterm = self.longterm.max(fb.tx_inflight);
        if self.phase == Phase::Up {
            self.raise_longterm(fb, flight);
        }
        false
    }

    pub(super) fn raise_longterm(&mut self, fb: &Feedback, flight: &Flight) {
        if !self.is_window_limited(flight) || self.window + ACK_SEGMENTS < self.longterm {
            return;
        }
        self.up_acked += fb.acked;
        if self.up_acked >= self.up_acked_per_segment {
            let segments = (self.up_acked / self.up_acked_per_segment).floor();
            self.up_acked -= segments * self.up_acked_per_segment;
            self.longterm += segments;
        }
        if self.round_start {
            self.raise_slope();
        }
    }

    pub(super) fn update_cycle(
        &mut self,
        now_ms: f64,
        fb: &Feedback,
        flight: &Flight,
        limited: bool,
    ) {
        if !self.full_reached
            || self.adapt_longterm(now_ms, fb, flight, limited)
            || !self.is_probe_bw()
        {
            return;
        }
        match self.phase {
            Phase::Refill => {
                if self.round_start {
                    self.samples_of_probe = true;
                    self.start_up(now_ms, fb, flight);
                }
            }
            Phase::Up => {
                let inflight = flight.inflight + fb.acked + self.burst();
                if self.is_up_done(now_ms, inflight, fb, flight) {
                    self.probe_too_high = false;
                    self.start_down(now_ms, flight);
                }
            }
            _ => {
                if self.is_time_to_probe(now_ms) {
                    self.start_refill(flight);
                } else if self.phase == Phase::Down {
                    let inflight = flight.inflight + fb.acked;
                    if inflight <= self.with_headroom()
                        && inflight <= self.volume(self.max_bandwidth(), 1.0)
                    {
                        if self.shortterm.is_finite() {
                            self.shortterm = self.shortterm.min(self.longterm);
                        }
                        self.phase = Phase::Cruise;
                    }
                }
            }
        }
    }

    pub(super) fn is_time_to_probe(&self, now_ms: f64) -> bool {
        now_ms > self.cycle_start_ms + self.probe_wait_ms
            || self.rounds_since_probe >= PROBE_WAIT_ROUNDS.min(self.target().floor())
    }

    pub(super) fn is_up_done(
        &mut self,
        now_ms: f64,
        inflight: f64,
        fb: &Feedback,
        flight: &Flight,
    ) -> bool {
        if self.probe_too_high && inflight >= self.longterm {
            self.probe_precautionary = true;
            return true;
        }
        if let Some(gain) = self.version.up_inflight_gain {
            return now_ms > self.cycle_start_ms + self.min_rtt_ms
                && inflight >= self.volume(self.max_bandwidth(), gain);
        }
        if self.is_window_limited(flight) && self.window + ACK_SEGMENTS >= self.longterm {
            self.reset_full_bandwidth(fb.bandwidth);
            return false;
        }
        self.full_now
    }
}
