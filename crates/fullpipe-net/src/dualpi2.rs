//! The coupled dual queue: DualPI2 of RFC 9332 in the integers of sch_dualpi2.c (Linux 6.17). L4S
//! packets (ECT(1) and CE) have a queue of their own with a shallow threshold; one PI controller
//! gives the classic queue the square of a probability and the L queue `coupling` times it.
//!
//! A packet that both the controller and the threshold mark counts once here, twice in Linux.

use std::collections::VecDeque;

use crate::discipline::{Discipline, Outcome};
use crate::packet::Ecn;
use crate::rng::Rng;
use crate::Packet;

/// A probability of 1.
const ONE: u64 = u32::MAX as u64;
/// Gains are per 64 ns of delay (ALPHA_BETA_GRANULARITY).
const GAIN_SHIFT: u32 = 6;

/// What DualPI2 is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Params {
    pub(crate) target_ns: u64,
    pub(crate) update_ns: u64,
    /// In 256ths of Hz.
    pub(crate) alpha: u32,
    pub(crate) beta: u32,
    /// L packets that waited longer are marked.
    pub(crate) step_ns: u64,
    pub(crate) coupling: u32,
    /// The classic queue's part where both have packets, in percent.
    pub(crate) classic_percent: u32,
    /// Drops L packets too while the L probability would exceed 1.
    pub(crate) drop_overload: bool,
    pub(crate) limit_packets: Option<u32>,
    pub(crate) frame_bytes: u32,
}

#[derive(Debug)]
struct TimedFifo<P> {
    packets: VecDeque<(u64, P)>,
}

impl<P> TimedFifo<P> {
    fn waits_ns(&self, now_ns: u64) -> u64 {
        self.packets.front().map_or(0, |(at_ns, _)| now_ns - at_ns)
    }
}

/// Both queues.
#[derive(Debug)]
pub(crate) struct DualPi2<P> {
    classic: TimedFifo<P>,
    low: TimedFifo<P>,
    params: Params,
    alpha: i64,
    beta: i64,
    probability: u64,
    last_delay_ns: u64,
    update_at_ns: u64,
    /// Above 0 the classic queue has the turn.
    credit: i64,
    limit_packets: usize,
    memory_limit: u64,
    memory: u64,
    bytes: u64,
    rng: Rng,
}

/// What the controller has for a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Pass,
    Mark,
    Drop,
}

impl<P: Packet> DualPi2<P> {
    pub(crate) fn new(params: Params, seed: u64) -> Self {
        // dualpi2_scale_alpha_beta()
        let gain = |gain: u32| (((u64::from(gain) * ONE) >> 2) / 1_000_000_000) as i64;
        let limit = params.limit_packets.map_or(u64::from(u32::MAX), u64::from);
        let mut queue = Self {
            classic: TimedFifo {
                packets: VecDeque::new(),
            },
            low: TimedFifo {
                packets: VecDeque::new(),
            },
            params,
            alpha: gain(params.alpha),
            beta: gain(params.beta),
            probability: 0,
            last_delay_ns: 0,
            update_at_ns: params.update_ns,
            credit: 0,
            limit_packets: usize::try_from(limit).unwrap_or(usize::MAX),
            memory_limit: limit * 2 * u64::from(params.frame_bytes),
            memory: 0,
            bytes: 0,
            rng: Rng::new(seed),
        };
        queue.reset_credit();
        queue
    }

    /// The queue with the larger weight begins (dualpi2_calculate_c_protection()).
    fn reset_credit(&mut self) {
        let classic = i64::from(self.params.classic_percent);
        self.credit = i64::from(self.params.frame_bytes) * (2 * classic - 100);
    }

    /// Updates that the kernel's timer would have made by now (calculate_probability()).
    fn catch_up(&mut self, now_ns: u64) {
        while self.update_at_ns <= now_ns {
            let at_ns = self.update_at_ns;
            let is_idle = self.packets() == 0 && self.probability == 0 && self.last_delay_ns == 0;
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

    /// must_drop(); what stays behind is below two packets: nothing happens.
    fn judge(&mut self, packet: &P, is_low: bool) -> Verdict {
        if self.bytes < 2 * u64::from(self.params.frame_bytes) {
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

    /// The next packet, whether it is of the L queue, when it came, and what it does to the credit
    /// (dequeue_packet()).
    fn next(&mut self) -> Option<(P, bool, u64, i64)> {
        let has_classic = !self.classic.packets.is_empty();
        let has_low = !self.low.packets.is_empty();
        let is_low = has_low && (!has_classic || self.credit <= 0);
        let queue = if is_low {
            &mut self.low
        } else {
            &mut self.classic
        };
        let Some((arrived_ns, packet)) = queue.packets.pop_front() else {
            self.reset_credit();
            return None;
        };
        let classic = i64::from(self.params.classic_percent);
        let weight = match (is_low, has_classic && has_low) {
            (_, false) => 0,
            (true, true) => classic,
            (false, true) => classic - 100,
        };
        self.bytes -= u64::from(packet.wire_bytes());
        self.memory -= u64::from(packet.memory_bytes());
        let change = weight * i64::from(packet.wire_bytes());
        Some((packet, is_low, arrived_ns, change))
    }
}

impl<P: Packet> Discipline<P> for DualPi2<P> {
    /// dualpi2_enqueue_skb()
    fn enqueue(&mut self, now_ns: u64, packet: P, outcome: &mut Outcome<P>) {
        self.catch_up(now_ns);
        let memory = self.memory + u64::from(packet.memory_bytes());
        if self.packets() >= self.limit_packets || memory > self.memory_limit {
            outcome.drop(packet);
            return;
        }
        self.memory = memory;
        self.bytes += u64::from(packet.wire_bytes());
        let queue = match packet.ecn() {
            Ecn::Ect1 | Ecn::Ce => &mut self.low,
            Ecn::NotEct | Ecn::Ect0 => &mut self.classic,
        };
        queue.packets.push_back((now_ns, packet));
    }

    /// __dualpi2_qdisc_dequeue()
    fn dequeue(&mut self, now_ns: u64, outcome: &mut Outcome<P>) -> Option<P> {
        self.catch_up(now_ns);
        loop {
            let (mut packet, is_low, arrived_ns, change) = self.next()?;
            let verdict = self.judge(&packet, is_low);
            if verdict == Verdict::Drop {
                outcome.drop(packet);
                continue;
            }
            let is_late = is_low && now_ns - arrived_ns > self.params.step_ns;
            if verdict == Verdict::Mark || is_late {
                outcome.mark(&mut packet);
            }
            self.credit += change;
            return Some(packet);
        }
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn packets(&self) -> usize {
        self.classic.packets.len() + self.low.packets.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[derive(Clone, Copy, Debug)]
    struct Plain(Ecn, bool);

    impl Packet for Plain {
        fn wire_bytes(&self) -> u32 {
            1514
        }
        fn flow_key(&self) -> u32 {
            0
        }
        fn ecn(&self) -> Ecn {
            self.0
        }
        fn mark_ce(&mut self) {
            self.1 = true;
        }
    }

    fn queue() -> DualPi2<Plain> {
        let params = Params {
            target_ns: 15 * MS,
            update_ns: 16 * MS,
            alpha: 41,
            beta: 819,
            step_ns: MS,
            coupling: 2,
            classic_percent: 10,
            drop_overload: true,
            limit_packets: Some(10_000),
            frame_bytes: 1514,
        };
        DualPi2::new(params, 1)
    }

    #[test]
    fn the_base_probability_follows_rfc_9332s_pi_controller() {
        // p' += alpha (delay - target) + beta (delay - last delay); alpha 0.16 Hz, beta 3.2 Hz.
        let mut queue = queue();
        let (mut expected, mut last_s) = (0.0f64, 0.0);
        for step in 0..400u64 {
            let delay_ns = match step {
                0..100 => 40 * MS,
                100..200 => 20 * MS,
                _ => 10 * MS,
            };
            queue.update(delay_ns);
            let delay_s = delay_ns as f64 / 1e9;
            expected += 41.0 / 256.0 * (delay_s - 0.015) + 819.0 / 256.0 * (delay_s - last_s);
            expected = expected.clamp(0.0, 1.0);
            last_s = delay_s;
            let got = queue.probability as f64 / ONE as f64;
            assert!(
                (got - expected).abs() < 0.002 + 0.02 * expected,
                "{step}: {got} {expected}"
            );
        }
    }

    /// Parts of 20,000 packets that are marked and dropped at a base probability.
    fn parts(probability: f64, ecn: Ecn) -> (f64, f64) {
        let mut queue = queue();
        queue.probability = (probability * ONE as f64) as u64;
        queue.bytes = 100_000;
        let is_low = matches!(ecn, Ecn::Ect1);
        let mut counts = [0.0f64; 2];
        for _ in 0..20_000 {
            match queue.judge(&Plain(ecn, false), is_low) {
                Verdict::Mark => counts[0] += 1.0,
                Verdict::Drop => counts[1] += 1.0,
                Verdict::Pass => {}
            }
        }
        (counts[0] / 20_000.0, counts[1] / 20_000.0)
    }

    #[test]
    fn the_classic_probability_is_the_square_and_l4s_twice_the_base() {
        for base in [0.1, 0.2, 0.4] {
            let (marked, dropped) = parts(base, Ecn::Ect0);
            assert!((marked - base * base).abs() < 0.01 && dropped == 0.0);
            let (marked, dropped) = parts(base, Ecn::NotEct);
            assert!((dropped - base * base).abs() < 0.01 && marked == 0.0);
            let (marked, dropped) = parts(base, Ecn::Ect1);
            assert!((marked - 2.0 * base).abs() < 0.01 && dropped == 0.0);
        }
    }

    #[test]
    fn in_overload_both_queues_are_dropped_from_alike_and_all_other_l4s_packets_are_marked() {
        let (marked, dropped) = parts(0.7, Ecn::Ect1);
        assert!((dropped - 0.49).abs() < 0.015 && (marked + dropped - 1.0).abs() < 1e-9);
        let (marked, dropped) = parts(0.7, Ecn::Ect0);
        assert!((dropped - 0.49).abs() < 0.015 && marked == 0.0);
    }

    #[test]
    fn l4s_packets_that_waited_a_ms_are_marked_and_go_first_nine_times_of_ten() {
        let mut queue = queue();
        let mut dropped = Vec::new();
        let mut outcome = Outcome::new(&mut dropped);
        for _ in 0..1000 {
            queue.enqueue(0, Plain(Ecn::Ect1, false), &mut outcome);
            queue.enqueue(0, Plain(Ecn::Ect0, false), &mut outcome);
        }
        let low = (0..1000)
            .filter(|_| {
                let packet = queue.dequeue(MS, &mut outcome).expect("backlogged");
                assert!(!packet.1);
                packet.0 == Ecn::Ect1
            })
            .count();
        assert!((899..=902).contains(&low), "{low}");
        let mut late = || queue.dequeue(MS + 1, &mut outcome).expect("backlogged");
        let packets: Vec<_> = (0..100).map(|_| late()).collect();
        assert!(packets
            .iter()
            .all(|packet| packet.1 == (packet.0 == Ecn::Ect1)));
    }
}
