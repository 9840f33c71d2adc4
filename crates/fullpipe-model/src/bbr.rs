//! BBRv1 and BBRv2 of the published model. The equations are in the order in which the published
//! program evaluates them. The order decides which equation sees a variable's old or new value.

use crate::history::{Changes, Ring};
use crate::link::Link;
use crate::math::{indicator, ramp, step_sharp, step_smooth, whole_steps};
use crate::sender::Sender;

/// Time between ProbeRTTs, and how much of it the timer is short of in ProbeRTT (which leaves 200).
const PROBE_RTT_INTERVAL_MS: f64 = 10_000.0;
const PROBE_RTT_SHORTENED_MS: f64 = 9_800.0;
/// BBRv2's first ProbeRTT.
const PROBE_RTT_FIRST_V2_MS: f64 = 5_000.0;
/// Window of the minimum of the RTT.
const MIN_RTT_WINDOW_MS: f64 = 10_000.0;
/// The maximum of the rate is cleared in the first and used in the last of these ms of a period.
const FILTER_EDGE_MS: f64 = 10.0;
const WINDOW_GAIN: f64 = 2.0;
const PROBE_RTT_WINDOW_V1: f64 = 4.0;
const PERIOD_V1_RTTS: f64 = 8.0;
const PERIOD_V2_RTTS: f64 = 63.0;
const PERIOD_V2_MIN_MS: f64 = 2_000.0;
const PERIOD_V2_SPREAD_MS: f64 = 1_000.0;
const LOSS_THRESHOLD: f64 = 0.02;
const HEADROOM: f64 = 0.15;
const UP_TARGET: f64 = 499.0 / 400.0;
const DOWN_LIMIT_RTTS: f64 = 10.0;
const LONGTERM_CUT: f64 = 0.3;
const LONGTERM_FLOOR: f64 = 1.15;

/// What a BBR flow starts from.
pub(crate) struct Start {
    /// Rate estimate, segments per ms.
    pub(crate) rate: f64,
    /// Window, segments.
    pub(crate) window: f64,
    /// Upper bound of the in-flight volume (BBRv2), segments.
    pub(crate) longterm: f64,
    /// Start of the first probing period, ms.
    pub(crate) period_start_ms: f64,
}

/// What only BBRv2 has.
struct V2 {
    period_cap_ms: f64,
    shortterm: f64,
    longterm: f64,
    down: f64,
    cruise: f64,
    rate_max: Ring,
    shortterm_decay: f64,
}

/// State of one BBR flow.
pub(crate) struct Bbr {
    pub(crate) window: f64,
    phase: f64,
    period_start_ms: f64,
    rate_max: f64,
    bandwidth: f64,
    inflight: f64,
    min_rtt_ms: Ring,
    min_rtt_window: Changes,
    min_rtt_window_steps: usize,
    probe_timer_ms: Ring,
    probe_mode: Ring,
    v2: Option<V2>,
}

impl Bbr {
    /// BBRv1; `index` of the flow decides in which sixth of the cycle it probes.
    pub(crate) fn v1(index: usize, sender: &Sender, start: &Start) -> Self {
        Self::new(index, PROBE_RTT_INTERVAL_MS, sender, start)
    }

    /// BBRv2; `index` of `flows` decides how long its probing period is.
    pub(crate) fn v2(index: usize, flows: usize, sender: &Sender, start: &Start) -> Self {
        let period_cap_ms = PERIOD_V2_MIN_MS + index as f64 / flows as f64 * PERIOD_V2_SPREAD_MS;
        let mut flow = Self::new(index, PROBE_RTT_FIRST_V2_MS, sender, start);
        flow.v2 = Some(V2 {
            period_cap_ms,
            shortterm: start.window,
            longterm: start.longterm,
            down: 0.0,
            cruise: 1.0,
            rate_max: Ring::new(whole_steps(period_cap_ms, sender.step_ms) + 4, start.rate),
            shortterm_decay: -(0.9_f64).ln() / sender.base_rtt_ms,
        });
        flow
    }

    fn new(index: usize, first_probe_ms: f64, sender: &Sender, start: &Start) -> Self {
        let reach = sender.base_rtt_steps + 2;
        Self {
            window: start.window,
            phase: (index % 6) as f64,
            period_start_ms: start.period_start_ms,
            rate_max: start.rate,
            bandwidth: start.rate,
            inflight: start.window,
            min_rtt_ms: Ring::new(reach, sender.base_rtt_ms),
            min_rtt_window: Changes::new(sender.base_rtt_ms),
            min_rtt_window_steps: whole_steps(MIN_RTT_WINDOW_MS, sender.step_ms),
            probe_timer_ms: Ring::new(reach, first_probe_ms),
            probe_mode: Ring::new(reach, 0.0),
            v2: None,
        }
    }

    /// Moves the flow to step `n`; returns its new rate.
    #[inline]
    pub(crate) fn update(&mut self, n: usize, sender: &Sender, link: &Link) -> f64 {
        let step = sender.step_ms;
        let t = n as f64 * step;
        let rtt_back = sender.base_rtt_steps;
        let seen = sender.lookback(n, link);
        let in_period = t - self.period_start_ms;
        let min_rtt = self.min_rtt_ms.before(n, rtt_back);
        let period = match &self.v2 {
            None => PERIOD_V1_RTTS * min_rtt,
            Some(v2) => v2.period_cap_ms.min(PERIOD_V2_RTTS * min_rtt),
        };

        let delivered = delivery_rate(n, sender, link, seen.round_trip, seen.feedback);
        let probe_rtt = self.probe_rtt(n, rtt_back, step);
        let elsewhere = 1.0 - probe_rtt;

        let bdp = self.bandwidth * min_rtt;
        let (window, probe_window) = match &self.v2 {
            None => (WINDOW_GAIN * bdp.ceil(), PROBE_RTT_WINDOW_V1),
            Some(v2) => {
                let cruise = v2.cruise.max(0.0);
                let bound = v2.shortterm.min((1.0 - cruise * HEADROOM) * v2.longterm);
                ((WINDOW_GAIN * bdp.ceil()).min(bound), bdp / 2.0)
            }
        };
        self.window = elsewhere * window + probe_rtt * probe_window;

        self.rate_max += step
            * elsewhere
            * (5.0 * ramp(delivered - self.rate_max)
                - step_sharp(FILTER_EDGE_MS - in_period) * self.rate_max);

        let rate = match &mut self.v2 {
            None => {
                self.bandwidth += step
                    * elsewhere
                    * (step_sharp(in_period - period + FILTER_EDGE_MS)
                        * (self.rate_max - self.bandwidth));
                let change = elsewhere * (sender.rate.get(n - 1) - delivered)
                    + probe_rtt * (self.window - self.inflight);
                self.inflight = (self.inflight + step * change).max(0.0);
                let up = pulse(in_period, self.phase, min_rtt);
                let down = pulse(in_period, self.phase + 1.0, min_rtt);
                self.bandwidth * (1.0 + up - down)
            }
            Some(v2) => {
                v2.rate_max.set(n, self.rate_max);
                // The published program recovers the step's number from the time, cut off.
                let now = whole_steps(t, step);
                if v2.down >= 0.1 {
                    let old = v2.rate_max.before(now, whole_steps(period, step));
                    let best = old.max(self.rate_max);
                    self.bandwidth += elsewhere * (best - self.bandwidth);
                }
                let cruise = v2.cruise.max(0.0);
                let target = bdp.min((1.0 - HEADROOM) * v2.longterm);
                let change = (1.0 - cruise) * (sender.rate.get(n - 1) - delivered)
                    + cruise * (target - self.inflight);
                let change = elsewhere * change + probe_rtt * (self.window - self.inflight);
                self.inflight = (self.inflight + step * change).max(0.0);
                let loss = link.loss_smooth.before(n, seen.feedback);
                let at = At {
                    in_period,
                    period,
                    min_rtt,
                    bdp,
                    target,
                    loss,
                };
                let down_change = v2.cycle(&at, self.inflight);
                let gain = v2.gain(&at);
                v2.bound(
                    &at,
                    self.bandwidth * min_rtt,
                    self.inflight,
                    down_change,
                    sender,
                );
                self.bandwidth * gain
            }
        };
        let capped = (self.window / sender.rtt_ms_before(n, rtt_back, link)).min(rate);
        let rate = elsewhere * capped + probe_rtt * (self.inflight / sender.rtt_ms(n, link));

        let newest = self.min_rtt_window.newest();
        let least = newest + step * -ramp(newest - sender.rtt_ms_before(n, rtt_back, link));
        self.min_rtt_ms.set(n, least);
        self.min_rtt_window.set(n, least);
        if in_period >= period {
            self.period_start_ms += in_period;
        }
        rate
    }

    /// Moves the ProbeRTT timer; returns 1 in ProbeRTT, 0 elsewhere.
    #[inline]
    fn probe_rtt(&mut self, n: usize, rtt_back: usize, step: f64) -> f64 {
        let mode = self.probe_mode.get(n - 1);
        let timer = self.probe_timer_ms.get(n - 1);
        let expired = self.probe_timer_ms.before(n, rtt_back) <= 0.0;
        let (mode, timer) = if expired {
            let oldest = self
                .min_rtt_window
                .advance_to(n.saturating_sub(self.min_rtt_window_steps));
            let stale = indicator(self.min_rtt_window.newest() - oldest);
            let enter = stale * (1.0 - self.probe_mode.before(n, rtt_back));
            let left = PROBE_RTT_INTERVAL_MS - PROBE_RTT_SHORTENED_MS * enter;
            (
                mode + step * (enter - mode),
                timer + step * (left - timer - 1.0),
            )
        } else {
            if n % 1024 == 0 {
                self.min_rtt_window
                    .advance_to(n.saturating_sub(self.min_rtt_window_steps));
            }
            (mode, timer - step)
        };
        self.probe_mode.set(n, mode);
        self.probe_timer_ms.set(n, timer);
        mode.round_ties_even()
    }
}

/// What the probing cycle of BBRv2 is decided on.
struct At {
    in_period: f64,
    period: f64,
    min_rtt: f64,
    bdp: f64,
    target: f64,
    loss: f64,
}

impl V2 {
    /// Moves the DOWN flag; returns its change.
    #[inline]
    fn cycle(&mut self, at: &At, inflight: f64) -> f64 {
        let probing = 1.0 - self.cruise.max(0.0);
        let refilled = at.in_period - at.min_rtt;
        let enough = (indicator(inflight - UP_TARGET * at.bdp)
            + indicator(at.loss - LOSS_THRESHOLD))
        .min(1.0);
        let drained = (indicator(at.target - inflight)
            + indicator(at.in_period - DOWN_LIMIT_RTTS * at.min_rtt))
        .min(1.0);
        let entered = probing * indicator(refilled) * enough * (1.0 - self.down);
        let change = entered - self.down * drained;
        self.down += change;
        change
    }

    /// Pacing gain of the phase: 1 in REFILL and CRUISE, 5/4 in UP, 3/4 in DOWN.
    #[inline]
    fn gain(&self, at: &At) -> f64 {
        let probing = 1.0 - self.cruise.max(0.0);
        let up = probing * step_sharp(at.in_period - at.min_rtt) * (1.0 - self.down) * 0.25;
        1.0 + up - self.down * 0.25
    }

    /// Moves both bounds of the in-flight volume, then the cruise flag.
    #[inline]
    fn bound(&mut self, at: &At, bdp: f64, inflight: f64, down_change: f64, sender: &Sender) {
        let cruise = self.cruise.max(0.0);
        let probing = 1.0 - cruise;
        let lossy = indicator(at.loss - LOSS_THRESHOLD);
        let mut change = 0.0;
        if probing > 0.0 {
            let over = step_smooth(inflight - self.longterm);
            if over > 0.0 && at.in_period >= at.min_rtt {
                change += probing * over * (at.in_period / at.min_rtt).exp2();
            }
            change -= probing * lossy * (LONGTERM_CUT / sender.base_rtt_ms) * self.longterm;
        }
        self.longterm = (self.longterm + sender.step_ms * change).max(LONGTERM_FLOOR * bdp);
        let reset = (1.0 - self.cruise) * (self.longterm - self.shortterm) / sender.step_ms;
        let cut = cruise * lossy * self.shortterm_decay * self.shortterm;
        self.shortterm += sender.step_ms * (reset - cut);
        let left = indicator(at.in_period - at.period) * cruise;
        self.cruise += indicator(-down_change - 0.1) * (1.0 - cruise) - left;
    }
}

/// BBRv1's probing pulse: a quarter for one round trip.
#[inline]
fn pulse(in_period: f64, phase: f64, min_rtt: f64) -> f64 {
    let begun = step_smooth(in_period - phase * min_rtt);
    if begun == 0.0 {
        return 0.0;
    }
    0.25 * begun * step_smooth((phase + 1.0) * min_rtt - in_period)
}

/// Rate at which the flow's segments arrive at the receiver whose ACKs arrive now.
#[inline]
fn delivery_rate(
    n: usize,
    sender: &Sender,
    link: &Link,
    round_trip: usize,
    feedback: usize,
) -> f64 {
    let sent = sender.rate.before(n, round_trip);
    let arrivals = link.arrivals.before(n, feedback);
    if arrivals >= link.capacity || link.queue.before(n, sender.rest_steps) > 0.0 {
        sent / arrivals * link.capacity
    } else {
        sent
    }
}
