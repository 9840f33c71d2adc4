//! Random early detection: sch_red.c and include/net/red.h, after Floyd and Jacobson (1993), in
//! their integer arithmetic, with the parameters that iproute2 (tc_red.c, q_red.c) derives.
//!
//! An idle period begins, as in red_dequeue(), when a packet is asked for and none is there. tc
//! tabulates the decay of the average in its own ticks of 64 ns while the kernel looks it up in
//! us, so that an idle queue's average decays 15.6 times slower than intended; that is how RED
//! runs on Linux, so it is kept.

use crate::discipline::{Discipline, Outcome};
use crate::fifo::Fifo;
use crate::rng::Rng;
use crate::Packet;

/// Ticks of tc in a us (/proc/net/psched: 1000 / 64).
const TICKS_PER_US: f64 = 15.625;
const IDLE_CELLS: usize = 256;
/// Keeps scaled thresholds within 64 bits; sch_red refuses less.
const MAX_THRESHOLD_BYTES: u64 = u32::MAX as u64;

/// What RED is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Params {
    pub(crate) limit_bytes: Option<u64>,
    pub(crate) min_bytes: u64,
    pub(crate) max_bytes: u64,
    pub(crate) max_probability_ppm: u32,
    pub(crate) avpkt_bytes: u32,
    pub(crate) burst_packets: u32,
    pub(crate) ecn: bool,
    pub(crate) rate_bps: u64,
}

/// A FIFO behind random early detection.
#[derive(Debug)]
pub(crate) struct Red<P> {
    queue: Fifo<P>,
    ecn: bool,
    /// Thresholds, scaled by 2^wlog as the average is.
    min: u64,
    max: u64,
    wlog: u32,
    /// Probability per byte above the minimum, scaled by 2^32 (max_P / qth_delta).
    probability_per_byte: u32,
    idle: IdleDecay,
    average: u64,
    /// Packets since the last early decision; -1: no random number is drawn yet.
    count: i64,
    draw: u32,
    idle_since_ns: Option<u64>,
    rng: Rng,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    Pass,
    Early,
    Hard,
}

impl<P: Packet> Red<P> {
    pub(crate) fn new(params: &Params, seed: u64) -> Self {
        let wlog = averaging_weight(params);
        // red_set_parms()
        let delta = params.max_bytes.saturating_sub(params.min_bytes).max(1);
        let max_probability = (u64::from(params.max_probability_ppm) << 32) / 1_000_000;
        let max_probability = max_probability.min(u64::from(u32::MAX));
        Self {
            queue: Fifo::new(params.limit_bytes, None),
            ecn: params.ecn,
            min: params.min_bytes.min(MAX_THRESHOLD_BYTES) << wlog,
            max: params.max_bytes.min(MAX_THRESHOLD_BYTES) << wlog,
            wlog,
            probability_per_byte: (max_probability / delta).max(1) as u32,
            idle: IdleDecay::new(params, wlog),
            average: 0,
            count: -1,
            draw: 0,
            idle_since_ns: Some(0),
            rng: Rng::new(seed),
        }
    }

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
        let above = (self.average - self.min) >> self.wlog;
        if above * (self.count as u64) < u64::from(self.draw) {
            return Decision::Pass;
        }
        self.count = 0;
        self.draw = self.next_draw();
        Decision::Early
    }

    /// red_random()
    fn next_draw(&mut self) -> u32 {
        self.rng.next_u32() / self.probability_per_byte
    }

    /// red_calc_qavg()
    fn update_average(&mut self, now_ns: u64) {
        self.average = match self.idle_since_ns.take() {
            Some(since_ns) => self.idle.decayed(self.average, (now_ns - since_ns) / 1000),
            None => self.average + self.queue.bytes() - (self.average >> self.wlog),
        };
    }
}

impl<P: Packet> Discipline<P> for Red<P> {
    /// red_enqueue()
    fn enqueue(&mut self, now_ns: u64, mut packet: P, outcome: &mut Outcome<P>) {
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

    fn bytes(&self) -> u64 {
        self.queue.bytes()
    }

    fn packets(&self) -> usize {
        self.queue.packets()
    }
}

/// How the average decays while the queue is idle (red_calc_qavg_from_idle_time()).
#[derive(Debug)]
struct IdleDecay {
    /// Halvings after so many cells of time.
    halvings: [u8; IDLE_CELLS],
    /// A cell has 2^cell_log us.
    cell_log: u32,
}

impl IdleDecay {
    /// tc_red_eval_idle_damping()
    fn new(params: &Params, wlog: u32) -> Self {
        let bytes_per_s = (params.rate_bps.max(8) / 8) as f64;
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
        Self { halvings, cell_log }
    }

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

/// The averaging weight W as tc derives it (tc_red_eval_ewma()): the first with
/// burst + 1 - min/avpkt <= (1 - (1 - 2^-W)^burst) * 2^W. Where tc refuses because the minimum is
/// below one average packet, the largest of which tc does not warn.
fn averaging_weight(params: &Params) -> u32 {
    let burst = f64::from(params.burst_packets);
    let min_packets = params.min_bytes as f64 / f64::from(params.avpkt_bytes.max(1));
    let wanted = burst + 1.0 - min_packets;
    let fits = |wlog: &u32| {
        let weight = 1.0 / f64::from(1u32 << wlog);
        wanted <= (1.0 - (1.0 - weight).powf(burst)) / weight
    };
    (1..32).find(fits).unwrap_or(9)
}
