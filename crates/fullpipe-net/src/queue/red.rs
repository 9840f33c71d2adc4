//! Random early detection: sch_red.c and include/net/red.h, after Floyd and Jacobson (1993), in
//! their integer arithmetic, with the parameters that iproute2 (tc_red.c, q_red.c) derives.
//!
//! An idle period begins when a packet is dequeued from an empty queue (red_dequeue()). tc tabulates the
//! decay of the average in its ticks of 64 ns, but the kernel looks it up in us, so an idle queue's average
//! decays 15.6 times slower than intended. That is how RED runs on Linux.

use fullpipe_ticks::expires_ns;
use serde::{Deserialize, Serialize};

use super::discipline::{Discipline, Environment, Outcome, Parameters};
use super::fifo::Fifo;
use crate::packet::Packet;
use crate::rng::Rng;

/// What the timer of Adaptive RED is set to (red_adaptative_timer(): HZ / 2 jiffies).
const ADAPTATION_INTERVAL_NS: u64 = 500_000_000;
/// RED_ONE_PERCENT
const ONE_PERCENT: u32 = 42_949_673;
/// Ticks of tc in a us (/proc/net/psched: 1000 / 64).
const TICKS_PER_US: f64 = 15.625;
const IDLE_CELLS: usize = 256;
/// Keeps scaled thresholds within 64 bits; sch_red refuses less.
const MAX_THRESHOLD_BYTES: u64 = u32::MAX as u64;

/// Parameters of sch_red.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Below this average nothing is dropped (tc-red(8): a third of `max_bytes`).
    pub min_bytes: u64,
    /// Above this average everything is.
    pub max_bytes: u64,
    /// Probability at `max_bytes`, in parts per million (tc: 20,000).
    pub max_probability_ppm: u32,
    /// Average packet, for the time constant of an idle queue (tc-red(8): 1000).
    pub avpkt_bytes: u32,
    /// Packets that may burst through (tc-red(8): (2 min + max) / (3 avpkt)).
    pub burst_packets: u32,
    /// Marks packets that can carry a mark instead of dropping them.
    pub ecn: bool,
    /// Adapts the probability so that the average stays in the middle fifth between the thresholds
    /// (Adaptive RED; tc: no).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adaptive: bool,
}

impl Parameters for Params {}

/// A FIFO behind random early detection.
#[derive(Debug)]
pub(crate) struct Red<P> {
    queue: Fifo<P>,
    ecn: bool,
    /// Thresholds, scaled by 2^wlog as the average is.
    min: u64,
    max: u64,
    /// Probability per byte above the minimum, scaled by 2^32 (max_P / qth_delta).
    probability_per_byte: u32,
    adaptation: Option<Adaptation>,
    derived: Derived,
    average: u64,
    /// Packets since the last early decision; -1: no random number is drawn yet.
    count: i64,
    draw: u32,
    idle_since_ns: Option<u64>,
    rng: Rng,
}

/// Adaptive RED (Floyd, Gummadi and Shenker 2001) as in red_adaptative_algo().
#[derive(Debug)]
struct Adaptation {
    /// The probability at the upper threshold, in 2^-32 (max_P).
    probability: u32,
    /// Between the thresholds (qth_delta).
    delta: u64,
    /// Average queue in bytes, below and above which the probability changes.
    target_min: u64,
    target_max: u64,
    next_ns: u64,
}

impl Adaptation {
    fn adapt(&mut self, average: u64) {
        if average > self.target_max && self.probability <= 50 * ONE_PERCENT {
            self.probability += ONE_PERCENT.min(self.probability / 4);
        } else if average < self.target_min && self.probability >= ONE_PERCENT {
            self.probability = self.probability / 10 * 9;
        }
    }

    fn probability_per_byte(&self) -> u32 {
        let per_byte = (u64::from(self.probability) + self.delta / 2) / self.delta;
        per_byte.max(1) as u32
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    Pass,
    Early,
    Hard,
}

impl<P: Packet> Red<P> {
    /// red_action()
    fn decide(&mut self) -> Decision {
        if self.average < self.min {
            self.count = -1;
            return Decision::Pass;
        }
        if self.average >= self.max {
            self.count = -1;
            return Decision::Hard;
        }
        self.count += 1;
        if self.count == 0 {
            self.draw = self.next_draw();
            return Decision::Pass;
        }
        // red_mark_probability(): probability * count against a uniform random number.
        let above = (self.average - self.min) >> self.derived.wlog;
        if above * (self.count as u64) < u64::from(self.draw) {
            return Decision::Pass;
        }
        self.count = 0;
        self.draw = self.next_draw();
        Decision::Early
    }

    /// Makes the adaptations that the kernel's timer would have made by now.
    fn catch_up(&mut self, now_ns: u64) {
        let Some(adaptation) = &mut self.adaptation else {
            return;
        };
        while adaptation.next_ns <= now_ns {
            let average = match self.idle_since_ns {
                Some(since_ns) => {
                    let idle_us = adaptation.next_ns.saturating_sub(since_ns) / 1000;
                    self.derived.decayed(self.average, idle_us)
                }
                None => self.average,
            };
            adaptation.adapt(average >> self.derived.wlog);
            adaptation.next_ns = expires_ns(adaptation.next_ns, ADAPTATION_INTERVAL_NS);
            self.probability_per_byte = adaptation.probability_per_byte();
        }
    }

    /// red_random()
    fn next_draw(&mut self) -> u32 {
        self.rng.next_u32() / self.probability_per_byte
    }

    /// red_calc_qavg()
    fn update_average(&mut self, now_ns: u64) {
        self.average = match self.idle_since_ns.take() {
            Some(since_ns) => self
                .derived
                .decayed(self.average, (now_ns - since_ns) / 1000),
            None => self.average + self.queue.waiting_bytes() - (self.average >> self.derived.wlog),
        };
    }
}

impl<P: Packet> Discipline<P> for Red<P> {
    type Params = Params;

    fn new(params: &Params, environment: &Environment) -> Self {
        let derived = Derived::new(params, environment.rate_bps);
        let wlog = derived.wlog;
        // red_set_parms()
        let delta = params.max_bytes.saturating_sub(params.min_bytes).max(1);
        let max_probability = (u64::from(params.max_probability_ppm) << 32) / 1_000_000;
        let max_probability = max_probability.min(u64::from(u32::MAX));
        let adaptation = params.adaptive.then(|| Adaptation {
            probability: max_probability as u32,
            delta,
            target_min: params.min_bytes + 2 * (delta / 5),
            target_max: params.min_bytes + 3 * (delta / 5),
            next_ns: expires_ns(0, ADAPTATION_INTERVAL_NS),
        });
        Self {
            queue: Fifo::limited(environment.limit_bytes, None),
            ecn: params.ecn,
            min: params.min_bytes.min(MAX_THRESHOLD_BYTES) << wlog,
            max: params.max_bytes.min(MAX_THRESHOLD_BYTES) << wlog,
            probability_per_byte: (max_probability / delta).max(1) as u32,
            adaptation,
            derived,
            average: 0,
            count: -1,
            draw: 0,
            idle_since_ns: Some(0),
            rng: Rng::new(environment.seed),
        }
    }

    /// red_enqueue()
    fn enqueue(&mut self, now_ns: u64, mut packet: P, outcome: &mut Outcome<P>) {
        self.catch_up(now_ns);
        self.update_average(now_ns);
        if self.decide() != Decision::Pass {
            if !self.ecn || !packet.ecn_capable() {
                outcome.drop(packet);
                return;
            }
            outcome.mark(&mut packet);
        }
        self.queue.enqueue(now_ns, packet, outcome);
    }

    /// red_dequeue()
    fn dequeue(&mut self, now_ns: u64, outcome: &mut Outcome<P>) -> Option<P> {
        let packet = self.queue.dequeue(now_ns, outcome);
        if packet.is_none() && self.idle_since_ns.is_none() {
            self.idle_since_ns = Some(now_ns);
        }
        packet
    }
}

/// What tc derives from RED's parameters before the kernel sees them (iproute2 tc/tc_red.c).
#[derive(Clone, Debug)]
pub struct Derived {
    /// Weight of the average, as -log2.
    pub wlog: u32,
    /// An idle time is counted in cells of 2^cell_log us.
    pub cell_log: u32,
    /// Halvings of the average after so many cells.
    pub halvings: [u8; IDLE_CELLS],
}

impl Derived {
    /// `None`: tc refuses the parameters.
    pub fn by_tc(params: &Params, rate_bps: u64) -> Option<Self> {
        let is_valid = wanted_packets(params) >= 1.0;
        let wlog = averaging_weight(params).filter(|_| is_valid)?;
        Some(Self::with_weight(wlog, params, rate_bps))
    }

    /// Takes the largest weight without a warning of tc where tc refuses a minimum below one average
    /// packet.
    fn new(params: &Params, rate_bps: u64) -> Self {
        let wlog = averaging_weight(params).unwrap_or(9);
        Self::with_weight(wlog, params, rate_bps)
    }

    /// tc_red_eval_idle_damping()
    fn with_weight(wlog: u32, params: &Params, rate_bps: u64) -> Self {
        let bytes_per_s = (rate_bps.max(8) / 8) as f64;
        let us = 1e6 * f64::from(params.avpkt_bytes) / bytes_per_s;
        let ticks = (us * TICKS_PER_US).ceil().max(1.0);
        let rate = -(1.0 - 1.0 / f64::from(1u32 << wlog)).ln() / ticks;
        let mut cell_log = 0;
        while cell_log < 31 && 31.0 / rate / f64::from(1u32 << cell_log) >= 512.0 {
            cell_log += 1;
        }
        let mut halvings = [31; IDLE_CELLS];
        for (cell, halving) in halvings.iter_mut().enumerate().take(IDLE_CELLS - 1) {
            *halving = (((cell as u64) << cell_log) as f64 * rate).min(31.0) as u8;
        }
        Self {
            wlog,
            cell_log,
            halvings,
        }
    }

    /// The average after an idle time (red_calc_qavg_from_idle_time()).
    fn decayed(&self, average: u64, idle_us: u64) -> u64 {
        let idle_us = idle_us.min(255 << self.cell_log);
        let halvings = self.halvings[(idle_us >> self.cell_log) as usize];
        if halvings > 0 {
            return average >> halvings;
        }
        // Too short for a halving: the first terms of the exponential.
        let lost = (u128::from(average) * u128::from(idle_us)) >> self.cell_log;
        let half = average >> 1;
        average - u64::try_from(lost).unwrap_or(half).min(half)
    }
}

/// The averaging weight W (tc_red_eval_ewma()): the first with
/// burst + 1 - min/avpkt <= (1 - (1 - 2^-W)^burst) * 2^W.
fn averaging_weight(params: &Params) -> Option<u32> {
    let burst = f64::from(params.burst_packets);
    let wanted = wanted_packets(params);
    let fits = |wlog: &u32| {
        let weight = 1.0 / f64::from(1u32 << wlog);
        wanted <= (1.0 - (1.0 - weight).powf(burst)) / weight
    };
    (1..32).find(fits)
}

fn wanted_packets(params: &Params) -> f64 {
    let min_packets = params.min_bytes as f64 / f64::from(params.avpkt_bytes.max(1));
    f64::from(params.burst_packets) + 1.0 - min_packets
}

#[cfg(test)]
pub(super) mod tests;
