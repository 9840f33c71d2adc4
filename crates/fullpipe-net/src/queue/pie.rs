//! Proportional integral controller enhanced: RFC 8033 in the integers of sch_pie.c, and the queue that it
//! controls. Times of its arithmetic are in ticks of 64 ns (PSCHED_SHIFT).
//!
//! A timer in the kernel's timer wheel updates the probability. Here the updates that are due are made
//! when the queue is next used: nothing that they depend on changes in between.

use std::collections::VecDeque;

use fullpipe_ticks::expires_ns;
use serde::{Deserialize, Serialize};

use super::discipline::{Discipline, Environment, Outcome, Parameters};
use crate::packet::Packet;
use crate::rng::Rng;

const TICK_NS: u64 = 64;
const TICKS_PER_S: u64 = 1_000_000_000 / TICK_NS;
/// A probability of 1 (include/net/pie.h).
const ONE: u64 = u64::MAX >> 8;
/// Nothing is dropped in the first so many ticks of a busy period: 150 ms (RFC 8033 section 4.4).
const BURST_TICKS: u64 = 150_000_000 / TICK_NS;
/// Above this delay the probability takes steps of 2 % more: 250 ms.
const HIGH_DELAY_TICKS: u64 = 250_000_000 / TICK_NS;
/// Bytes that one measurement of the departure rate takes, and its fixed point.
const RATE_CYCLE_BYTES: u64 = 16_384;
const RATE_SHIFT: u32 = 8;
/// The timer is first set to half a second (pie_init()).
const FIRST_UPDATE_NS: u64 = 500_000_000;
/// PIE marks up to this probability (sch_pie.c; FQ-PIE has a parameter for it).
const ECN_PERCENT: u32 = 10;

/// Parameters of sch_pie.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Acceptable delay (tc: 15 ms).
    pub target_ns: u64,
    /// What the timer of the updates is set to (tc: 15 ms, after which it fires every 20 ms).
    pub update_ns: u64,
    /// Weight of the delay, in sixteenths of a Hz (tc: 2).
    pub alpha: u32,
    /// Weight of its change, in sixteenths of a Hz (tc: 20).
    pub beta: u32,
    /// Drops small packets less often.
    pub byte_mode: bool,
    /// Takes the delay from the departure rate (RFC 8033 section 5.2) instead of from timestamps.
    pub rate_estimator: bool,
    /// Marks packets that can carry a mark instead of dropping them, up to a probability of 10 %.
    pub ecn: bool,
}

impl Parameters for Params {}

/// The control law, which FQ-PIE shares.
#[derive(Clone, Debug)]
pub(crate) struct Law {
    pub(crate) params: Params,
    /// Up to this probability packets are marked instead of dropped.
    pub(crate) ecn_percent: u32,
    pub(crate) frame_bytes: u32,
}

/// The fate of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Take,
    Mark,
    Drop,
}

/// State of one queue under PIE (struct pie_vars).
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    delay: u64,
    old_delay: u64,
    burst: u64,
    /// Of the last departure, or of the start of a rate measurement.
    since: Option<u64>,
    /// Probability, and the sum of those since the last drop.
    probability: u64,
    accumulated: u64,
    /// Bytes of a rate measurement under way.
    measured: Option<u64>,
    /// Bytes a tick, fixed point.
    rate: u64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            delay: 0,
            old_delay: 0,
            burst: BURST_TICKS,
            since: None,
            probability: 0,
            accumulated: 0,
            measured: None,
            rate: 0,
        }
    }
}

impl State {
    /// pie_drop_early(), and what its callers do with the result.
    pub(crate) fn judge<P: Packet>(
        &mut self,
        law: &Law,
        backlog_bytes: u64,
        packet: &P,
        rng: &mut Rng,
    ) -> Verdict {
        if !self.signals(law, backlog_bytes, packet.wire_bytes(), rng) {
            return Verdict::Take;
        }
        let is_low = self.probability <= ONE / 100 * u64::from(law.ecn_percent);
        if law.params.ecn && is_low && packet.ecn_capable() {
            Verdict::Mark
        } else {
            self.accumulated = 0;
            Verdict::Drop
        }
    }

    fn signals(&mut self, law: &Law, backlog: u64, bytes: u32, rng: &mut Rng) -> bool {
        let is_calm = self.delay < ticks(law.params.target_ns) / 2 && self.probability < ONE / 5;
        let frame = u64::from(law.frame_bytes);
        if self.burst > 0 || is_calm || backlog < 2 * frame {
            return false;
        }
        let bytes = u64::from(bytes);
        let probability = if law.params.byte_mode && bytes <= frame {
            bytes * (self.probability / frame)
        } else {
            self.probability
        };
        // RFC 8033 section 5.1: no two drops close together, none too long without.
        self.accumulated = if probability == 0 {
            0
        } else {
            self.accumulated.saturating_add(probability)
        };
        if self.accumulated < ONE / 100 * 85 {
            return false;
        }
        if self.accumulated >= ONE / 2 * 17 {
            return true;
        }
        let draw = (u64::from(rng.next_u32()) << 32 | u64::from(rng.next_u32())) >> 8;
        if draw < probability {
            self.accumulated = 0;
            return true;
        }
        false
    }

    /// Limits drop too, and a drop starts the accumulation anew.
    pub(crate) fn on_drop(&mut self) {
        self.accumulated = 0;
    }

    /// A packet leaves (pie_process_dequeue()); `backlog` is without it.
    pub(crate) fn on_departure(
        &mut self,
        law: &Law,
        now_ns: u64,
        arrived_ns: u64,
        bytes: u32,
        backlog: u64,
    ) {
        let now = ticks(now_ns);
        let elapsed = if law.params.rate_estimator {
            self.measure_rate(now, bytes, backlog)
        } else {
            self.delay = if backlog == 0 {
                0
            } else {
                now - ticks(arrived_ns)
            };
            let since = self.since.replace(now);
            since.map_or(0, |since| now - since)
        };
        self.burst = self.burst.saturating_sub(elapsed);
    }

    /// Ticks of a measurement that has just ended, else 0.
    fn measure_rate(&mut self, now: u64, bytes: u32, backlog: u64) -> u64 {
        if backlog >= RATE_CYCLE_BYTES && self.measured.is_none() {
            self.since = Some(now);
            self.measured = Some(0);
        }
        let Some(measured) = &mut self.measured else {
            return 0;
        };
        *measured += u64::from(bytes);
        let elapsed = self.since.map_or(0, |since| now - since);
        if *measured < RATE_CYCLE_BYTES || elapsed == 0 {
            return 0;
        }
        let rate = (*measured << RATE_SHIFT) / elapsed;
        self.rate = if self.rate == 0 {
            rate
        } else {
            self.rate - (self.rate >> 3) + (rate >> 3)
        };
        self.measured = (backlog >= RATE_CYCLE_BYTES).then_some(0);
        self.since = Some(now);
        elapsed
    }

    /// pie_calculate_probability()
    pub(crate) fn update(&mut self, law: &Law, backlog: u64) {
        let target = ticks(law.params.target_ns);
        let (delay, old_delay) = if law.params.rate_estimator {
            let old_delay = self.delay;
            self.old_delay = old_delay;
            (
                (backlog << RATE_SHIFT).checked_div(self.rate).unwrap_or(0),
                old_delay,
            )
        } else {
            (self.delay, self.old_delay)
        };
        let mut decays = delay != 0 || backlog == 0;
        let gain = |sixteenths: u32| (u64::from(sixteenths) * (ONE / TICKS_PER_S)) >> 4;
        let shift = self.gain_shift();
        let (alpha, beta) = (
            gain(law.params.alpha) >> shift,
            gain(law.params.beta) >> shift,
        );
        let difference = |a: u64, b: u64| a.wrapping_sub(b) as i64;
        let mut delta = (alpha as i64)
            .wrapping_mul(difference(delay, target))
            .wrapping_add((beta as i64).wrapping_mul(difference(delay, old_delay)));
        let two_percent = (ONE / 50) as i64;
        if delta > two_percent && self.probability >= ONE / 10 {
            delta = (ONE / 100) as i64 * 2;
        }
        if delay > HIGH_DELAY_TICKS {
            delta = delta.wrapping_add(two_percent);
        }
        let old = self.probability;
        self.probability = old.wrapping_add(delta as u64);
        if delta > 0 {
            if self.probability < old {
                self.probability = ONE;
                decays = false;
            }
        } else if self.probability > old {
            self.probability = 0;
        }
        if delay == 0 && old_delay == 0 && decays {
            self.probability -= self.probability / 64;
        }
        self.delay = delay;
        let is_calm = delay < target / 2 && self.old_delay < target / 2 && self.probability == 0;
        if is_calm && (!law.params.rate_estimator || self.rate > 0) {
            let (delay, old_delay) = (self.delay, self.old_delay);
            *self = Self {
                delay,
                old_delay,
                ..Self::default()
            };
        }
        if !law.params.rate_estimator {
            self.old_delay = delay;
        }
    }

    /// Whether an update without a backlog changes nothing.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.probability == 0 && self.delay == 0 && self.old_delay == 0 && self.burst == BURST_TICKS
    }

    /// RFC 8033 section 4.2: low probabilities move in smaller steps.
    fn gain_shift(&self) -> u32 {
        if self.probability >= ONE / 10 {
            return 0;
        }
        let mut shift = 1;
        let mut part = 100;
        while part <= 1_000_000 && self.probability < ONE / part {
            shift += 2;
            part *= 10;
        }
        shift
    }

    /// As a fraction of 1.
    #[cfg(test)]
    fn probability(&self) -> f64 {
        self.probability as f64 / ONE as f64
    }
}

fn ticks(ns: u64) -> u64 {
    ns / TICK_NS
}

/// The kernel's timer: how many updates have become due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Updates {
    next_ns: u64,
    update_ns: u64,
}

impl Updates {
    pub(crate) fn new(update_ns: u64) -> Self {
        Self {
            next_ns: expires_ns(0, FIRST_UPDATE_NS),
            update_ns,
        }
    }

    /// Those that have become due since the last call.
    pub(crate) fn take(&mut self, now_ns: u64) -> u64 {
        let mut count = 0;
        while self.next_ns <= now_ns {
            self.next_ns = expires_ns(self.next_ns, self.update_ns);
            count += 1;
        }
        count
    }
}

/// One FIFO under PIE (sch_pie.c).
#[derive(Debug)]
pub(crate) struct Pie<P> {
    packets: VecDeque<(u64, P)>,
    bytes: u64,
    limit_packets: usize,
    state: State,
    law: Law,
    updates: Updates,
    rng: Rng,
}

impl<P: Packet> Pie<P> {
    fn catch_up(&mut self, now_ns: u64) {
        for _ in 0..self.updates.take(now_ns) {
            if self.bytes == 0 && self.state.is_at_rest() {
                break;
            }
            self.state.update(&self.law, self.bytes);
        }
    }
}

impl<P: Packet> Discipline<P> for Pie<P> {
    type Params = Params;

    fn new(params: &Params, environment: &Environment) -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
            limit_packets: environment.most_packets(),
            state: State::default(),
            law: Law {
                params: params.clone(),
                ecn_percent: ECN_PERCENT,
                frame_bytes: environment.frame_bytes,
            },
            updates: Updates::new(params.update_ns),
            rng: Rng::new(environment.seed),
        }
    }

    /// pie_qdisc_enqueue()
    fn enqueue(&mut self, now_ns: u64, mut packet: P, outcome: &mut Outcome<P>) {
        self.catch_up(now_ns);
        if self.packets.len() >= self.limit_packets {
            self.state.on_drop();
            outcome.drop(packet);
            return;
        }
        match self
            .state
            .judge(&self.law, self.bytes, &packet, &mut self.rng)
        {
            Verdict::Take => {}
            Verdict::Mark => outcome.mark(&mut packet),
            Verdict::Drop => {
                outcome.drop(packet);
                return;
            }
        }
        self.bytes += u64::from(packet.wire_bytes());
        self.packets.push_back((now_ns, packet));
    }

    fn dequeue(&mut self, now_ns: u64, _outcome: &mut Outcome<P>) -> Option<P> {
        self.catch_up(now_ns);
        let (arrived_ns, packet) = self.packets.pop_front()?;
        let bytes = packet.wire_bytes();
        self.bytes -= u64::from(bytes);
        self.state
            .on_departure(&self.law, now_ns, arrived_ns, bytes, self.bytes);
        Some(packet)
    }
}

#[cfg(test)]
pub(super) mod tests;
