//! The coupled dual queue: DualPI2 of RFC 9332 in the integers of sch_dualpi2.c (Linux 6.17). L4S
//! packets (ECT(1) and CE) have a queue of their own with a shallow threshold; one PI controller
//! gives the classic queue the square of a probability and the L queue `coupling` times it.
//!
//! A packet that both the controller and the threshold mark counts once here, but twice in Linux.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::discipline::{Discipline, Environment, Outcome, Parameters};
use crate::packet::{Ecn, Packet};
use crate::rng::Rng;

/// A probability of 1.
const ONE: u64 = u32::MAX as u64;
/// Gains are per 64 ns of delay (ALPHA_BETA_GRANULARITY).
const GAIN_SHIFT: u32 = 6;

/// Parameters of sch_dualpi2.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Acceptable delay of classic traffic (tc: 15 ms).
    pub target_ns: u64,
    /// Between updates of the probability (tc: 16 ms).
    pub update_ns: u64,
    /// Weight of the delay, in 256ths of a Hz (tc: 41).
    pub alpha: u32,
    /// Weight of its change, in 256ths of a Hz (tc: 819).
    pub beta: u32,
    /// L4S packets that waited longer are marked (tc: 1 ms).
    pub step_ns: u64,
    /// The L4S marking probability over the base probability (tc: 2).
    pub coupling: u32,
    /// Classic share of the rate while both queues hold packets, in percent (tc: 10).
    pub classic_percent: u32,
    /// Drops L4S packets too while the L4S probability would exceed 1 (tc: yes).
    pub drop_overload: bool,
    /// `step_ns` applies to packets that find at least so many in the L queue (tc: 0).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub min_qlen_step_packets: u32,
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

impl Parameters for Params {}

#[derive(Debug)]
struct Waiting<P> {
    arrived_ns: u64,
    /// It is marked if it waits too long (dualpi2_skb_cb, apply_step).
    applies_step: bool,
    packet: P,
}

#[derive(Debug)]
struct TimedFifo<P> {
    packets: VecDeque<Waiting<P>>,
}

impl<P> TimedFifo<P> {
    fn waits_ns(&self, now_ns: u64) -> u64 {
        let head = self.packets.front();
        head.map_or(0, |waiting| now_ns - waiting.arrived_ns)
    }
}

/// Both queues.
#[derive(Debug)]
pub(crate) struct Dualpi2<P> {
    classic: TimedFifo<P>,
    low: TimedFifo<P>,
    params: Params,
    frame_bytes: u32,
    alpha: i64,
    beta: i64,
    probability: u64,
    last_delay_ns: u64,
    update_at_ns: u64,
    /// Above 0 the classic queue is served next.
    credit: i64,
    limit_packets: usize,
    memory_limit: u64,
    memory: u64,
    bytes: u64,
    rng: Rng,
}

/// The controller's decision on a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Pass,
    Mark,
    Drop,
}

impl<P: Packet> Dualpi2<P> {
    /// The queue with the larger weight begins (dualpi2_calculate_c_protection()).
    fn reset_credit(&mut self) {
        let classic = i64::from(self.params.classic_percent);
        self.credit = i64::from(self.frame_bytes) * (2 * classic - 100);
    }

    /// Makes the updates that the kernel's timer would have made by now (calculate_probability()).
    fn catch_up(&mut self, now_ns: u64) {
        while self.update_at_ns <= now_ns {
            let at_ns = self.update_at_ns;
            let is_idle = self.bytes == 0 && self.probability == 0 && self.last_delay_ns == 0;
            self.update_at_ns += self.params.update_ns;
            if is_idle {
                let missed = (now_ns - at_ns) / self.params.update_ns;
                self.update_at_ns += missed * self.params.update_ns;
                continue;
            }
            let delay_ns = self.classic.waits_ns(at_ns).max(self.low.waits_ns(at_ns));
            self.update(delay_ns);
        }
    }

    fn update(&mut self, delay_ns: u64) {
        let difference = |a: u64, b: u64| a as i64 - b as i64;
        let delta = difference(delay_ns, self.params.target_ns)
            .saturating_mul(self.alpha)
            .saturating_add(difference(delay_ns, self.last_delay_ns).saturating_mul(self.beta));
        self.last_delay_ns = delay_ns;
        let step = delta.unsigned_abs() >> GAIN_SHIFT;
        self.probability = if delta > 0 {
            (self.probability + step.min(ONE)).min(ONE)
        } else {
            self.probability.saturating_sub(step)
        };
        if !self.params.drop_overload {
            let most = ONE / u64::from(self.params.coupling.max(1));
            self.probability = self.probability.min(most);
        }
    }

    fn roll(&mut self, probability: u64) -> bool {
        u64::from(self.rng.next_u32()) <= probability
    }

    /// must_drop(): with less than two packets behind it, a packet passes.
    fn judge(&mut self, packet: &P, is_low: bool) -> Verdict {
        if self.bytes < 2 * u64::from(self.frame_bytes) {
            return Verdict::Pass;
        }
        let probability = self.probability;
        let coupled = probability * u64::from(self.params.coupling);
        let is_overloaded = coupled > ONE;
        if !is_low {
            if !(self.roll(probability) && self.roll(probability)) {
                return Verdict::Pass;
            }
            return if is_overloaded || packet.ecn() == Ecn::NotEct {
                Verdict::Drop
            } else {
                Verdict::Mark
            };
        }
        if is_overloaded {
            let drops =
                self.params.drop_overload && self.roll(probability) && self.roll(probability);
            return if drops { Verdict::Drop } else { Verdict::Mark };
        }
        if self.roll(coupled) {
            Verdict::Mark
        } else {
            Verdict::Pass
        }
    }

    /// The next packet, whether it is of the L queue, and by how much it changes the credit
    /// (dequeue_packet()).
    fn next(&mut self) -> Option<(Waiting<P>, bool, i64)> {
        let has_classic = !self.classic.packets.is_empty();
        let has_low = !self.low.packets.is_empty();
        let is_low = has_low && (!has_classic || self.credit <= 0);
        let queue = if is_low {
            &mut self.low
        } else {
            &mut self.classic
        };
        let Some(next) = queue.packets.pop_front() else {
            self.reset_credit();
            return None;
        };
        let classic = i64::from(self.params.classic_percent);
        let weight = match (is_low, has_classic && has_low) {
            (_, false) => 0,
            (true, true) => classic,
            (false, true) => classic - 100,
        };
        self.bytes -= u64::from(next.packet.wire_bytes());
        self.memory -= u64::from(next.packet.memory_bytes());
        let change = weight * i64::from(next.packet.wire_bytes());
        Some((next, is_low, change))
    }
}

impl<P: Packet> Discipline<P> for Dualpi2<P> {
    type Params = Params;

    fn new(params: &Params, environment: &Environment) -> Self {
        // dualpi2_scale_alpha_beta()
        let gain = |gain: u32| (((u64::from(gain) * ONE) >> 2) / 1_000_000_000) as i64;
        let limit = environment
            .limit_packets
            .map_or(u64::from(u32::MAX), u64::from);
        let frame_bytes = environment.frame_bytes;
        let mut queue = Self {
            classic: TimedFifo {
                packets: VecDeque::new(),
            },
            low: TimedFifo {
                packets: VecDeque::new(),
            },
            params: params.clone(),
            frame_bytes,
            alpha: gain(params.alpha),
            beta: gain(params.beta),
            probability: 0,
            last_delay_ns: 0,
            update_at_ns: params.update_ns,
            credit: 0,
            limit_packets: usize::try_from(limit).unwrap_or(usize::MAX),
            memory_limit: limit * 2 * u64::from(frame_bytes),
            memory: 0,
            bytes: 0,
            rng: Rng::new(environment.seed),
        };
        queue.reset_credit();
        queue
    }

    /// dualpi2_enqueue_skb()
    fn enqueue(&mut self, now_ns: u64, packet: P, outcome: &mut Outcome<P>) {
        self.catch_up(now_ns);
        let memory = self.memory + u64::from(packet.memory_bytes());
        let packets = self.classic.packets.len() + self.low.packets.len();
        if packets >= self.limit_packets || memory > self.memory_limit {
            outcome.drop(packet);
            return;
        }
        self.memory = memory;
        self.bytes += u64::from(packet.wire_bytes());
        let queue = match packet.ecn() {
            Ecn::Ect1 | Ecn::Ce => &mut self.low,
            Ecn::NotEct | Ecn::Ect0 => &mut self.classic,
        };
        let least = self.params.min_qlen_step_packets as usize;
        queue.packets.push_back(Waiting {
            arrived_ns: now_ns,
            applies_step: queue.packets.len() >= least,
            packet,
        });
    }

    /// __dualpi2_qdisc_dequeue()
    fn dequeue(&mut self, now_ns: u64, outcome: &mut Outcome<P>) -> Option<P> {
        self.catch_up(now_ns);
        loop {
            let (mut next, is_low, change) = self.next()?;
            let verdict = self.judge(&next.packet, is_low);
            if verdict == Verdict::Drop {
                outcome.drop(next.packet);
                continue;
            }
            let is_late = now_ns - next.arrived_ns > self.params.step_ns;
            if verdict == Verdict::Mark || (is_low && next.applies_step && is_late) {
                outcome.mark(&mut next.packet);
            }
            self.credit += change;
            return Some(next.packet);
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
