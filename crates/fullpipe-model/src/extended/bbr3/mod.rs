//! BBRv3 (and BBRv2 by other parameters) as a fluid: its estimates, its bounds and its phases.
//!
//! Source of rules and constants: Google's tcp_bbr.c, version 3; names of the current draft
//! (draft-ietf-ccwg-bbr). What is left out is listed in docs/background/models.md.

mod cycle;
mod estimates;
mod loss;

use super::random::Random;
use super::sender::{Feedback, Flight};

const STARTUP_PACING_GAIN: f64 = 2.77;
const DRAIN_PACING_GAIN: f64 = 0.347;
const UP_PACING_GAIN: f64 = 1.25;
const WINDOW_GAIN: f64 = 2.0;
const PACING_MARGIN: f64 = 0.99;
const LOSS_THRESHOLD: f64 = 0.02;
const BETA: f64 = 0.7;
const HEADROOM: f64 = 0.15;
const FULL_BANDWIDTH_GROWTH: f64 = 1.25;
const FULL_BANDWIDTH_ROUNDS: u32 = 3;
const STARTUP_LOSS_STEPS: u32 = 6;
const PROBE_WAIT_MS: f64 = 2_000.0;
const PROBE_WAIT_SPREAD_MS: f64 = 1_000.0;
const PROBE_WAIT_ROUNDS: f64 = 63.0;
const PROBE_RTT_INTERVAL_MS: f64 = 5_000.0;
const PROBE_RTT_DURATION_MS: f64 = 200.0;
const PROBE_RTT_WINDOW_GAIN: f64 = 0.5;
const MIN_RTT_WINDOW_MS: f64 = 10_000.0;
const WINDOW_MIN: f64 = 4.0;
/// Bursts that the window must hold at least (Linux's quantization budget).
const OFFLOAD_BURSTS: f64 = 3.0;
/// Segments that one ACK acknowledges (RFC 5681, delayed ACKs).
const ACK_SEGMENTS: f64 = 2.0;
const AGGREGATION_ROUNDS: u32 = 5;
const AGGREGATION_MAX_MS: f64 = 100.0;
/// Window room in UP beyond the gain, so that even a tiny volume grows.
const UP_EXTRA: f64 = 2.0;

/// What differs between versions.
#[derive(Clone, Copy, Default)]
pub(super) struct Version {
    pub(super) up_window_gain: f64,
    pub(super) down_pacing_gain: f64,
    /// UP ends when this multiple of the BDP is in flight; `None`: when the rate stops growing.
    pub(super) up_inflight_gain: Option<f64>,
}

pub(super) const V3: Version = Version {
    up_window_gain: 2.25,
    down_pacing_gain: 0.91,
    up_inflight_gain: None,
};
pub(super) const V2: Version = Version {
    up_window_gain: 2.0,
    down_pacing_gain: 0.75,
    up_inflight_gain: Some(1.25),
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum AckPhase {
    #[default]
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// How much more than the estimated bandwidth is acknowledged at times.
#[derive(Default)]
struct Aggregation {
    start_ms: f64,
    acked: f64,
    extra: [f64; 2],
    slot: usize,
    rounds: u32,
}

impl Aggregation {
    fn update(&mut self, now_ms: f64, acked: f64, bandwidth: f64, window: f64) {
        let mut expected = bandwidth * (now_ms - self.start_ms);
        if self.acked <= expected {
            self.acked = 0.0;
            self.start_ms = now_ms;
            expected = 0.0;
        }
        self.acked += acked;
        let extra = (self.acked - expected + ACK_SEGMENTS).min(window);
        self.extra[self.slot] = self.extra[self.slot].max(extra);
    }

    fn start_round(&mut self) {
        self.rounds += 1;
        if self.rounds >= AGGREGATION_ROUNDS {
            self.rounds = 0;
            self.slot = 1 - self.slot;
            self.extra[self.slot] = 0.0;
        }
    }

    fn allowance(&self, bandwidth: f64) -> f64 {
        self.extra[0]
            .max(self.extra[1])
            .min(bandwidth * AGGREGATION_MAX_MS)
    }
}

/// One BBR flow.
#[derive(Default)]
pub(super) struct Bbr3 {
    version: Version,
    random: Random,
    pub(super) phase: Phase,
    ack_phase: AckPhase,
    pub(super) window: f64,
    window_before: f64,
    pub(super) bandwidth_max: [f64; 2],
    bandwidth_shortterm: f64,
    bandwidth_latest: f64,
    pub(super) longterm: f64,
    shortterm: f64,
    inflight_latest: f64,
    pub(super) min_rtt_ms: f64,
    min_rtt_stamp_ms: f64,
    probe_min_rtt_ms: f64,
    probe_min_stamp_ms: f64,
    probe_done_ms: Option<f64>,
    probe_round_done: bool,
    limited: [f64; 2],
    cycle_start_ms: f64,
    probe_wait_ms: f64,
    rounds_since_probe: f64,
    round_end: f64,
    round_start: bool,
    loss_round_end: f64,
    loss_in_round: bool,
    loss_steps: u32,
    full_bandwidth: f64,
    full_rounds: u32,
    full_now: bool,
    full_reached: bool,
    samples_of_probe: bool,
    probe_too_high: bool,
    probe_precautionary: bool,
    up_rounds: i32,
    up_acked: f64,
    up_acked_per_segment: f64,
    window_limited_until: f64,
    pacing_rate: f64,
    aggregation: Aggregation,
    two_burst_rate: f64,
}

impl Bbr3 {
    /// A flow that starts at `start_ms`. `two_burst_rate` is the pacing rate from which it sends two
    /// segments at once.
    pub(super) fn new(
        version: Version,
        window: f64,
        start_ms: f64,
        base_rtt_ms: f64,
        two_burst_rate: f64,
        random: Random,
    ) -> Self {
        Self {
            version,
            random,
            window,
            window_before: window,
            bandwidth_shortterm: f64::INFINITY,
            longterm: f64::INFINITY,
            shortterm: f64::INFINITY,
            min_rtt_ms: base_rtt_ms,
            min_rtt_stamp_ms: start_ms,
            probe_min_rtt_ms: base_rtt_ms,
            probe_min_stamp_ms: start_ms,
            limited: [f64::INFINITY; 2],
            cycle_start_ms: start_ms,
            up_acked_per_segment: f64::INFINITY,
            pacing_rate: STARTUP_PACING_GAIN * window / base_rtt_ms,
            aggregation: Aggregation {
                start_ms,
                ..Aggregation::default()
            },
            two_burst_rate,
            ..Self::default()
        }
    }

    /// Takes one step's feedback; returns how much may be sent in this step.
    pub(super) fn on_feedback(
        &mut self,
        now_ms: f64,
        step_ms: f64,
        fb: &Feedback,
        flight: &Flight,
    ) -> f64 {
        if fb.lost > 0.0 {
            self.note_loss(now_ms, fb, flight);
        }
        if fb.acked > 0.0 {
            self.on_ack(now_ms, fb, flight);
        }
        let room = (self.window - flight.inflight).max(0.0);
        let paced = self.pacing_rate * step_ms;
        if room < paced.max(1.0) {
            self.window_limited_until = flight.delivered + flight.inflight;
        }
        paced.min(room)
    }

    fn on_ack(&mut self, now_ms: f64, fb: &Feedback, flight: &Flight) {
        self.round_start = fb.prior_delivered >= self.round_end;
        if self.round_start {
            self.round_end = flight.delivered;
            self.rounds_since_probe += 1.0;
        }
        let limited = self.is_limited(fb);
        self.bandwidth_latest = self.bandwidth_latest.max(fb.bandwidth);
        let volume = flight.delivered - fb.prior_delivered;
        self.inflight_latest = self.inflight_latest.max(volume);
        let loss_round_start = fb.prior_delivered >= self.loss_round_end;
        if loss_round_start {
            self.loss_round_end = flight.delivered;
        }

        if !limited || fb.bandwidth >= self.max_bandwidth() {
            self.bandwidth_max[1] = self.bandwidth_max[1].max(fb.bandwidth);
        }
        if loss_round_start {
            self.adapt_shortterm();
        }
        if self.round_start {
            self.aggregation.start_round();
        }
        self.aggregation
            .update(now_ms, fb.acked, self.bandwidth(), self.window);
        self.check_startup_loss(loss_round_start, fb);
        if loss_round_start {
            self.loss_in_round = false;
        }
        self.check_full_bandwidth(fb, limited);
        self.check_drain(now_ms, flight);
        self.update_cycle(now_ms, fb, flight, limited);
        self.update_min_rtt(now_ms, fb, flight);
        self.set_pacing_rate();
        self.set_window(fb);

        if loss_round_start {
            self.bandwidth_latest = fb.bandwidth;
            self.inflight_latest = volume;
        }
    }

    pub(super) fn max_bandwidth(&self) -> f64 {
        self.bandwidth_max[0].max(self.bandwidth_max[1])
    }

    fn bandwidth(&self) -> f64 {
        self.max_bandwidth().min(self.bandwidth_shortterm)
    }

    fn burst(&self) -> f64 {
        if self.pacing_rate < self.two_burst_rate {
            1.0
        } else {
            self.pacing_rate.floor().max(2.0)
        }
    }

    /// Volume in flight at this gain, with room for the hosts' bursts.
    fn volume(&self, bandwidth: f64, gain: f64) -> f64 {
        self.volume_with(bandwidth, gain, 0.0)
    }

    fn volume_with(&self, bandwidth: f64, gain: f64, allowance: f64) -> f64 {
        let volume = (bandwidth * self.min_rtt_ms * gain + allowance)
            .max(OFFLOAD_BURSTS * self.burst())
            .max(WINDOW_MIN);
        if self.phase == Phase::Up {
            volume + UP_EXTRA
        } else {
            volume
        }
    }

    fn target(&self) -> f64 {
        self.volume(self.bandwidth(), 1.0).min(self.window)
    }

    fn with_headroom(&self) -> f64 {
        if self.longterm.is_infinite() {
            return f64::INFINITY;
        }
        let room = (HEADROOM * self.longterm).floor().max(1.0);
        (self.longterm - room).max(WINDOW_MIN)
    }

    fn is_probe_bw(&self) -> bool {
        matches!(
            self.phase,
            Phase::Down | Phase::Cruise | Phase::Refill | Phase::Up
        )
    }

    fn is_probing(&self) -> bool {
        matches!(self.phase, Phase::Startup | Phase::Refill | Phase::Up)
    }

    fn is_limited(&self, fb: &Feedback) -> bool {
        fb.prior_delivered >= self.limited[0] && fb.prior_delivered <= self.limited[1]
    }

    fn is_window_limited(&self, flight: &Flight) -> bool {
        flight.delivered <= self.window_limited_until
    }

    fn set_pacing_rate(&mut self) {
        let gain = match self.phase {
            Phase::Startup => STARTUP_PACING_GAIN,
            Phase::Drain => DRAIN_PACING_GAIN,
            Phase::Up => UP_PACING_GAIN,
            Phase::Down => self.version.down_pacing_gain,
            Phase::Cruise | Phase::Refill | Phase::ProbeRtt => 1.0,
        };
        let rate = gain * self.bandwidth() * PACING_MARGIN;
        if self.full_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn set_window(&mut self, fb: &Feedback) {
        let gain = match self.phase {
            Phase::Up => self.version.up_window_gain,
            Phase::ProbeRtt => 1.0,
            _ => WINDOW_GAIN,
        };
        let allowance = self.aggregation.allowance(self.bandwidth());
        let target = self.volume_with(self.bandwidth(), gain, allowance);
        if self.full_reached {
            self.window = (self.window + fb.acked).min(target);
        } else if self.window < target {
            self.window += fb.acked;
        }
        self.window = self.window.max(WINDOW_MIN);
        if self.phase == Phase::ProbeRtt {
            self.window = self.window.min(self.probe_rtt_window());
        }
        let bound = match self.phase {
            Phase::Cruise | Phase::ProbeRtt => self.with_headroom(),
            Phase::Up | Phase::Down | Phase::Refill => self.longterm,
            Phase::Startup | Phase::Drain => f64::INFINITY,
        };
        self.window = self.window.min(bound.min(self.shortterm).max(WINDOW_MIN));
    }
}

fn is_too_high(fb: &Feedback) -> bool {
    fb.lost_since > 0.0 && fb.lost_since > LOSS_THRESHOLD * fb.tx_inflight
}
