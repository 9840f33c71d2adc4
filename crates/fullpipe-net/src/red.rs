//! Random early detection: sch_red.c and include/net/red.h, after Floyd and Jacobson (1993).
//!
//! The average is kept with `WLOG` bits of fraction; the probability is the classic
//! max_p (avg - min) / (max - min), spread out by the count since the last mark.

use crate::fifo::Fifo;
use crate::rng::Rng;
use crate::Packet;

/// What RED says of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Pass,
    Early,
    Hard,
}

/// A FIFO behind random early detection.
#[derive(Debug)]
pub(crate) struct Red<P> {
    pub(crate) queue: Fifo<P>,
    pub(crate) ecn: bool,
    min: u64,
    max: u64,
    max_probability: f64,
    wlog: u32,
    /// Average backlog, scaled by 2^wlog.
    average: u64,
    /// Packets since the last early decision; -1: below the minimum.
    count: i64,
    draw: f64,
    idle_since_ns: Option<u64>,
    /// Time of an average packet on the link.
    packet_ns: u64,
    rng: Rng,
}

impl<P: Packet> Red<P> {
    #[allow(clippy::too_many_arguments)] // tc-red(8) has as many
    pub(crate) fn new(
        limit_bytes: Option<u64>,
        min: u64,
        max: u64,
        max_probability_ppm: u32,
        avpkt: u32,
        burst: u32,
        ecn: bool,
        rate_bps: u64,
        seed: u64,
    ) -> Self {
        Self {
            queue: Fifo::new(limit_bytes, None),
            ecn,
            min,
            max,
            max_probability: f64::from(max_probability_ppm) / 1e6,
            wlog: ewma(min, burst, avpkt),
            average: 0,
            count: -1,
            draw: 0.0,
            idle_since_ns: Some(0),
            packet_ns: u64::from(avpkt) * 8_000_000_000 / rate_bps.max(1),
            rng: Rng::new(seed),
        }
    }

    /// Decides on a packet that arrives now (red_enqueue(), red_action()).
    pub(crate) fn decide(&mut self, now_ns: u64) -> Decision {
        self.update_average(now_ns);
        let average = self.average >> self.wlog;
        if average < self.min {
            self.count = -1;
            return Decision::Pass;
        }
        if average >= self.max {
            self.count = -1;
            return Decision::Hard;
        }
        self.count += 1;
        if self.count == 0 {
            self.draw = self.uniform();
            return Decision::Pass;
        }
        let share = (average - self.min) as f64 / (self.max - self.min) as f64;
        if self.count as f64 * share * self.max_probability >= self.draw {
            self.count = 0;
            self.draw = self.uniform();
            return Decision::Early;
        }
        Decision::Pass
    }

    pub(crate) fn dequeue(&mut self, now_ns: u64) -> Option<P> {
        let packet = self.queue.dequeue();
        if self.queue.len() == 0 && self.idle_since_ns.is_none() {
            self.idle_since_ns = Some(now_ns);
        }
        packet
    }

    fn update_average(&mut self, now_ns: u64) {
        if let Some(since_ns) = self.idle_since_ns.take() {
            // While idle the average decays as if so many small packets had passed.
            let packets = (now_ns - since_ns) / self.packet_ns.max(1);
            let keep = 1.0 - 1.0 / f64::from(1u32 << self.wlog);
            let exponent = i32::try_from(packets).unwrap_or(i32::MAX);
            self.average = (self.average as f64 * keep.powi(exponent)) as u64;
            return;
        }
        self.average = self.average + self.queue.bytes() - (self.average >> self.wlog);
    }

    fn uniform(&mut self) -> f64 {
        f64::from(self.rng.next_u32()) / 4_294_967_296.0
    }
}

/// The averaging weight as iproute2 derives it (tc_red_eval_ewma()): the least W with
/// burst + 1 - min/avpkt < (1 - (1 - 2^-W)^burst) * 2^W.
fn ewma(min: u64, burst: u32, avpkt: u32) -> u32 {
    let a = f64::from(burst) + 1.0 - min as f64 / f64::from(avpkt);
    let mut weight: f64 = 0.5;
    for wlog in 1..32 {
        let exponent = i32::try_from(burst).unwrap_or(i32::MAX);
        if a <= (1.0 - (1.0 - weight).powi(exponent)) / weight {
            return wlog;
        }
        weight /= 2.0;
    }
    9
}
