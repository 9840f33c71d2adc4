//! RED against the closed formulas of Floyd and Jacobson (1993) and the kernel's tables.

use proptest::prelude::*;

use super::{Adaptation, Params, ONE_PERCENT};
use crate::queue::discipline::{Discipline, Environment, Outcome};
use crate::queue::{Aqm, Qdisc, Queue};
use crate::testing::{Hand, TestPacket, MS, MTU_BYTES};

/// Parameters of all kinds.
pub(crate) fn any_params() -> impl Strategy<Value = Params> {
    let thresholds = (1000..20_000u64, 1..60_000u64);
    (thresholds, 0..=1_000_000u32, 1..60u32, any::<bool>()).prop_map(
        |((min_bytes, above), max_probability_ppm, burst_packets, ecn)| Params {
            min_bytes,
            max_bytes: min_bytes + above,
            max_probability_ppm,
            avpkt_bytes: AVPKT_BYTES,
            burst_packets,
            ecn,
            adaptive: ecn,
        },
    )
}

/// The most bytes and packets that may wait, for limits of so many.
pub(crate) fn most_waiting(_: &Params, bytes: u64, _: u64) -> (u64, u64) {
    (bytes, u64::MAX)
}

const RATE_BPS: u64 = 100_000_000;
const AVPKT_BYTES: u32 = 1000;

struct Red {
    min_bytes: u64,
    max_bytes: u64,
    max_probability_ppm: u32,
    burst_packets: u32,
    adaptive: bool,
}

impl Red {
    fn queue(&self, ecn: bool, seed: u64) -> Queue<TestPacket> {
        let qdisc = Qdisc {
            limit_bytes: None,
            limit_packets: None,
            aqm: Aqm::Red(Params {
                min_bytes: self.min_bytes,
                max_bytes: self.max_bytes,
                max_probability_ppm: self.max_probability_ppm,
                avpkt_bytes: AVPKT_BYTES,
                burst_packets: self.burst_packets,
                ecn,
                adaptive: self.adaptive,
            }),
        };
        Queue::new(&qdisc, RATE_BPS, MTU_BYTES, seed)
    }
}

fn packet(id: u64) -> TestPacket {
    TestPacket::new(id, 0, AVPKT_BYTES).with_ecn()
}

/// Weight and the burst that it is too light for, from the table in include/net/red.h for
/// th_min/S = 32 (whose bounds are rounded up).
const BURST_OF_WEIGHT: [(u32, u32); 9] = [
    (1, 33),
    (2, 35),
    (3, 39),
    (4, 46),
    (5, 57),
    (6, 75),
    (7, 101),
    (8, 135),
    (9, 190),
];

#[test]
fn the_average_follows_the_ewma_with_the_weight_of_the_kernels_burst_table() {
    for (wlog, bound) in BURST_OF_WEIGHT {
        let red = Red {
            min_bytes: 32_000,
            max_bytes: 96_000,
            max_probability_ppm: 0,
            burst_packets: bound - 1,
            adaptive: false,
        };
        let mut queue = red.queue(true, 1);
        let mut dropped = Vec::new();
        let first_marked = (0u64..).find(|&id| {
            queue.enqueue(MS, packet(id), &mut dropped);
            queue.counters().marked_packets > 0
        });
        // avg += W (backlog - avg), in double precision; the first packet finds an idle queue.
        let (mut average, weight) = (0.0, 1.0 / f64::from(1u32 << wlog));
        let expected = (0u64..).find(|&id| {
            if id > 0 {
                average += weight * (id as f64 * 1000.0 - average);
            }
            average >= 96_000.0
        });
        let (first_marked, expected) = (first_marked.expect("ends"), expected.expect("ends"));
        assert!(
            first_marked.abs_diff(expected) <= 1,
            "2^-{wlog}: {first_marked}, not {expected}"
        );
    }
}

/// Numbers of packets from one early mark to the next while the queue, and so the average, stays
/// at `backlog_packets`.
fn spacings(red: &Red, backlog_packets: u64, marks: usize) -> Vec<u64> {
    let mut queue = red.queue(true, 11);
    let mut dropped = Vec::new();
    for id in 0..backlog_packets {
        queue.enqueue(MS, packet(id), &mut dropped);
    }
    let mut spacings = Vec::new();
    let (mut id, mut last) = (backlog_packets, None);
    while spacings.len() < marks {
        let before = queue.counters().marked_packets;
        queue.enqueue(MS, packet(id), &mut dropped);
        queue.dequeue(MS, &mut dropped);
        id += 1;
        // The average needs some time to settle.
        if queue.counters().marked_packets > before && id > 100_000 {
            if let Some(last) = last {
                spacings.push(id - last);
            }
            last = Some(id);
        }
    }
    spacings
}

#[test]
fn marks_are_spread_uniformly_over_one_to_the_inverse_of_the_probability() {
    // Floyd and Jacobson, section 7, method 2: with pb = maxp (avg - min) / (max - min) the number
    // of packets between marks is uniform over 1..1/pb, so its mean is (1/pb + 1) / 2.
    let red = Red {
        min_bytes: 30_000,
        max_bytes: 90_000,
        max_probability_ppm: 20_000,
        burst_packets: 50,
        adaptive: false,
    };
    for backlog_packets in [45, 60, 80] {
        let probability = 0.02 * (backlog_packets as f64 * 1000.0 - 30_000.0) / 60_000.0;
        let spacings = spacings(&red, backlog_packets, 20_000);
        let mean = spacings.iter().sum::<u64>() as f64 / spacings.len() as f64;
        let expected = (1.0 / probability + 1.0) / 2.0;
        // Standard error of a uniform's mean: 0.58 / sqrt(n) of it.
        let tolerance = 4.0 * 0.58 / (spacings.len() as f64).sqrt();
        assert!(
            (mean / expected - 1.0).abs() < tolerance,
            "{mean}, not {expected}"
        );
        let longest = *spacings.iter().max().expect("some") as f64;
        assert!(longest <= 1.0 / probability + 2.0 && longest > 0.99 / probability);
    }
}

#[test]
fn below_the_minimum_nothing_is_marked_and_above_the_maximum_everything_is() {
    let red = Red {
        min_bytes: 30_000,
        max_bytes: 90_000,
        max_probability_ppm: 1_000_000,
        burst_packets: 50,
        adaptive: false,
    };
    for (backlog_packets, all) in [(29, false), (91, true)] {
        let mut queue = red.queue(true, 2);
        let mut dropped = Vec::new();
        for id in 0..backlog_packets {
            queue.enqueue(MS, packet(id), &mut dropped);
        }
        let step = |queue: &mut Queue<TestPacket>, dropped: &mut Vec<_>| {
            queue.enqueue(MS, packet(0), dropped);
            queue.dequeue(MS, dropped)
        };
        for _ in 0..1000 {
            step(&mut queue, &mut dropped);
        }
        let before = queue.counters().marked_packets;
        for _ in 0..1000 {
            step(&mut queue, &mut dropped);
        }
        let marked = queue.counters().marked_packets - before;
        assert_eq!(marked, if all { 1000 } else { 0 });
    }
}

#[test]
fn what_cannot_be_marked_is_dropped() {
    let red = Red {
        min_bytes: 10_000,
        max_bytes: 20_000,
        max_probability_ppm: 100_000,
        burst_packets: 12,
        adaptive: false,
    };
    for (ecn, capable) in [(true, false), (false, true), (false, false)] {
        let mut queue = red.queue(ecn, 3);
        let mut dropped = Vec::new();
        for id in 0..500 {
            let mut packet = packet(id);
            packet.ecn = capable;
            queue.enqueue(MS, packet, &mut dropped);
        }
        assert_eq!(queue.counters().marked_packets, 0);
        // Not every arrival: the average must not stay above the maximum while all is dropped.
        assert!(dropped.len() > 400, "{}", dropped.len());
    }
}

#[test]
fn an_idle_queues_average_decays_as_tcs_table_says() {
    // tc_red_eval_idle_damping(): after t the average is halved floor(t * -ln(1 - W) / T) times,
    // T being an average packet's time in ticks of 64 ns, and t in us (see src/red.rs).
    let red = Red {
        min_bytes: 32_000,
        max_bytes: 64_000,
        max_probability_ppm: 0,
        burst_packets: 75, // W = 2^-6
        adaptive: false,
    };
    let packet_ticks = (1000.0 * 8.0 / 100e6 * 1e6 * 15.625_f64).ceil();
    let per_us = -(1.0 - 1.0 / 64.0_f64).ln() / packet_ticks;
    let still_above_maximum = |idle_us: f64| {
        let mut queue = red.queue(true, 4);
        let mut dropped = Vec::new();
        // The average settles at 250 000 bytes, so it takes two halvings to get below 64 000.
        for id in 0..250 {
            queue.enqueue(MS, packet(id), &mut dropped);
        }
        for id in 0..5000 {
            queue.enqueue(MS, packet(id), &mut dropped);
            queue.dequeue(MS, &mut dropped);
        }
        while queue.dequeue(MS, &mut dropped).is_some() {}
        let before = queue.counters().marked_packets;
        let now_ns = MS + (idle_us * 1000.0) as u64;
        queue.enqueue(now_ns, packet(0), &mut dropped);
        queue.counters().marked_packets > before
    };
    // A cell of the table is up to 31/256 of a halving.
    let two_halvings_us = 2.0 / per_us;
    assert!(still_above_maximum(0.9 * two_halvings_us));
    assert!(!still_above_maximum(1.1 * two_halvings_us));
}

/// Adaptations are made each 512 ms: half a second is 125 ticks of 4 ms, and timers of 63 ticks or more fire
/// at multiples of 8 (kernel/time/timer.c).
const ADAPTATION_MS: u64 = 512;

/// Marked parts of the packets between adaptations while the queue stays at `backlog_packets`.
fn marked_parts(red: &Red, backlog_packets: u64, halves: u64) -> Vec<f64> {
    let mut queue = red.queue(true, 12);
    let mut dropped = Vec::new();
    let (mut parts, mut id) = (Vec::new(), 0);
    while id < backlog_packets {
        queue.enqueue(0, packet(id), &mut dropped);
        id += 1;
    }
    for half in 0..halves {
        let before = queue.counters().marked_packets;
        for step in 0..ADAPTATION_MS * 100 {
            let now_ns = half * ADAPTATION_MS * MS + step * MS / 100;
            queue.enqueue(now_ns, packet(id), &mut dropped);
            queue.dequeue(now_ns, &mut dropped);
            id += 1;
        }
        parts
            .push((queue.counters().marked_packets - before) as f64 / (ADAPTATION_MS * 100) as f64);
    }
    parts
}

/// A queue with thresholds of 30 and 90 KB, 2 % at the upper one.
fn adaptive() -> Red {
    Red {
        min_bytes: 30_000,
        max_bytes: 90_000,
        max_probability_ppm: 20_000,
        burst_packets: 50,
        adaptive: true,
    }
}

#[test]
fn adaptive_red_marks_more_each_half_second_while_the_average_is_above_its_target() {
    // Floyd, Gummadi and Shenker (2001): above min + 0.6 (max - min), 66 KB, every half second
    // maxp += min(0.01, maxp / 4). At an average of b one packet in (1/pb + 1) / 2 is marked.
    let parts = marked_parts(&adaptive(), 75, 8);
    let mut max_probability = 0.02_f64;
    for (half, part) in parts.into_iter().enumerate() {
        let probability = max_probability * 45.0 / 60.0;
        let expected = 2.0 / (1.0 / probability + 1.0);
        assert!(
            (part / expected - 1.0).abs() < 0.1,
            "{half}: {part} {expected}"
        );
        max_probability += 0.01_f64.min(max_probability / 4.0);
    }
}

#[test]
fn adaptive_red_marks_less_below_its_target_and_as_much_within_it() {
    // Below min + 0.4 (max - min), 54 KB, maxp *= 0.9; between 54 and 66 KB it stays.
    let parts = marked_parts(&adaptive(), 45, 6);
    assert!(
        (parts[5] / parts[0] - 0.9_f64.powi(5)).abs() < 0.12,
        "{parts:?}"
    );
    let parts = marked_parts(&adaptive(), 60, 6);
    assert!((parts[5] / parts[0] - 1.0).abs() < 0.1, "{parts:?}");
}

#[test]
fn adaptive_red_keeps_its_probability_between_one_and_fifty_percent() {
    let mut adaptation = Adaptation {
        probability: ONE_PERCENT * 2,
        delta: 60_000,
        target_min: 54_000,
        target_max: 66_000,
        next_ns: 0,
    };
    for _ in 0..200 {
        adaptation.adapt(80_000);
    }
    assert!((50 * ONE_PERCENT..52 * ONE_PERCENT).contains(&adaptation.probability));
    for _ in 0..200 {
        adaptation.adapt(40_000);
    }
    assert!((ONE_PERCENT / 10 * 8..ONE_PERCENT).contains(&adaptation.probability));
}

/// Thresholds of 10 and 20 KB, and a weight of 1/2: burst + 1 - min/avpkt
/// is below (1 - 2^-1) * 2. With the average A scaled by 2, an arrival at a backlog of b makes it
/// A + b - A / 2 (red_calc_qavg_no_idle_time()); the thresholds are 20,000 and 40,000.
fn halving(max_probability_ppm: u32) -> Hand {
    let red = Red {
        min_bytes: 10_000,
        max_bytes: 20_000,
        max_probability_ppm,
        burst_packets: 1,
        adaptive: false,
    };
    Hand::over(red.queue(false, 1))
}

/// Whether packets of these sizes pass that arrive one behind the other.
fn passes(hand: &mut Hand, now_ns: u64, sizes: &[u32]) -> Vec<bool> {
    let offer = |&bytes: &u32| {
        hand.offer(now_ns, TestPacket::new(0, 0, bytes), 1);
        hand.dropped().is_empty()
    };
    sizes.iter().map(offer).collect()
}

#[test]
fn an_average_at_the_minimum_is_between_the_thresholds_and_one_at_the_maximum_above_both() {
    // red_cmp_thresh(): below if qavg < min, above if qavg >= max. The second packet finds an average of the
    // first one's size (scaled): between the thresholds it passes, as no random number is drawn yet, and the
    // third, at a probability near 1, is dropped.
    for (first, second, expected) in [
        (19_999, 9_990, [true, true, true]),
        (20_000, 9_990, [true, true, false]),
        (39_999, 1, [true, true, false]),
        (40_000, 1, [true, false, false]),
    ] {
        assert_eq!(
            passes(&mut halving(1_000_000), 0, &[first, second, 1]),
            expected,
            "{first}"
        );
    }
}

#[test]
fn after_a_hard_drop_the_first_packet_between_the_thresholds_passes() {
    // red_action(): RED_ABOVE_MAX_TRESH and RED_BELOW_MIN_THRESH set qcount to -1, so that the next packet in
    // between draws a number and passes; an early drop sets it to 0, so that the next one may be dropped.
    let mut hand = halving(1_000_000);
    assert_eq!(
        passes(&mut hand, 0, &[20_010, 19_990, 1]),
        [true, true, false]
    );
    hand.take(0);
    // A backlog of 19,990: 44993, 42487, 41234, 40607, 40294, 40137, 40059, 40020, 40000, 39990.
    assert_eq!(passes(&mut hand, 0, &[1; 9]), [false; 9]);
    assert_eq!(
        passes(&mut hand, 0, &[1, 1, 1, 1]),
        [true, false, false, false]
    );
    // An empty queue brings the average below the minimum, where the count begins anew: 19991, 9995,
    // 4997 + 34900, and above the maximum.
    hand.ids(0, 2);
    assert_eq!(
        passes(&mut hand, 0, &[0, 34_900, 1, 1]),
        [true, true, true, false]
    );
}

/// Whether an average of so much, scaled by 2, is still at the maximum of 40,000 after an idle time.
fn is_still_high(average: u32, idle_ns: u64) -> bool {
    let mut hand = halving(0);
    passes(&mut hand, MS, &[average, 1]);
    assert_eq!(hand.ids(MS, 2).len(), if average < 40_000 { 2 } else { 1 });
    assert!(hand.take(MS).is_none());
    // Only the first question to an empty queue counts.
    assert!(hand.take(MS + idle_ns / 2).is_none());
    !passes(&mut hand, MS + idle_ns, &[1])[0]
}

#[test]
fn the_average_of_an_idle_queue_decays_by_cells_of_128_us() {
    // tc_red_eval_idle_damping(): 1000 bytes at 100 Mbit/s are 1250 ticks; ln 2 / 1250 a us; the least log at
    // which 31 / that is below 512 cells is 7; cell c halves floor(c * 128 * ln 2 / 1250) times: once from 15
    // on, twice from 29 on. red_calc_qavg_from_idle_time(): in cells that halve not at all it loses
    // A * us >> 7, at most a half.
    for (idle_ns, least) in [
        (0, 40_000),
        (999, 40_000),
        (1000, 40_314),       // 40314 - 314
        (32_000, 53_333),     // 53333 - 13333
        (48_000, 63_999),     // 63999 - 23999
        (64_000, 79_999),     // a half, rounded up: 79999 - 39999
        (1_919_999, 79_999),  // cell 14
        (1_920_000, 80_000),  // cell 15: one shift
        (3_711_999, 80_000),  // cell 28
        (3_712_000, 160_000), // cell 29: two
    ] {
        assert!(is_still_high(least, idle_ns), "{idle_ns}: {least}");
        assert!(!is_still_high(least - 1, idle_ns), "{idle_ns}: {least} - 1");
    }
    // The last cell, 255, forgets everything: from 32,640 us on.
    assert!(is_still_high(u32::MAX, 6 * MS));
    assert!(!is_still_high(u32::MAX, 32_640_000));
    assert!(!is_still_high(u32::MAX, 100 * MS));
}

#[test]
fn adaptive_red_changes_its_probability_as_red_adaptative_algo_does() {
    // Up by min(1 %, a quarter) above the target while at most 50 %; times 9/10 below it while at least 1 %.
    let one = ONE_PERCENT;
    for (probability, average, expected) in [
        (2 * one, 66_000, 2 * one),
        (2 * one, 66_001, 2 * one + one / 2),
        (4 * one, 66_001, 5 * one),
        (8 * one, 66_001, 9 * one),
        (50 * one, 66_001, 51 * one),
        (50 * one + 1, 66_001, 50 * one + 1),
        (2 * one, 54_000, 2 * one),
        (10 * one, 53_999, 9 * one),
        (one, 53_999, one / 10 * 9),
        (one - 1, 53_999, one - 1),
    ] {
        let mut adaptation = Adaptation {
            probability,
            delta: 60_000,
            target_min: 54_000,
            target_max: 66_000,
            next_ns: 0,
        };
        adaptation.adapt(average);
        assert_eq!(adaptation.probability, expected, "{probability} {average}");
    }
}

#[test]
fn adaptive_reds_probability_per_byte_is_rounded_and_never_zero() {
    // red_adaptative_algo(): max_P_reciprocal from reciprocal_value of (max_P + delta / 2) / delta.
    for (probability, delta, expected) in [(10, 4, 3), (9, 4, 2), (1, 100, 1), (1000, 10, 100)] {
        let adaptation = Adaptation {
            probability,
            delta,
            target_min: 0,
            target_max: 0,
            next_ns: 0,
        };
        assert_eq!(adaptation.probability_per_byte(), expected);
    }
}

#[test]
fn the_probability_is_adapted_at_512_ms_and_not_before() {
    let params = Params {
        min_bytes: 30_000,
        max_bytes: 90_000,
        max_probability_ppm: 100_000,
        avpkt_bytes: AVPKT_BYTES,
        burst_packets: 50,
        ecn: true,
        adaptive: true,
    };
    let environment = Environment {
        limit_bytes: None,
        limit_packets: None,
        rate_bps: RATE_BPS,
        frame_bytes: MTU_BYTES + 14,
        seed: 1,
    };
    let mut red = super::Red::<TestPacket>::new(&params, &environment);
    let tenth = (u64::from(u32::MAX) + 1) / 10;
    let mut dropped = Vec::new();
    // Below the target it falls by a tenth each time.
    for (now_ns, rounds) in [
        (512 * MS - 1, 0),
        (512 * MS, 1),
        (1024 * MS - 1, 1),
        (2048 * MS, 4),
    ] {
        red.enqueue(now_ns, packet(0), &mut Outcome::new(&mut dropped));
        let probability = red.adaptation.as_ref().map_or(0, |it| it.probability);
        let expected = tenth as f64 * 0.9_f64.powi(rounds);
        assert!(
            (f64::from(probability) / expected - 1.0).abs() < 1e-6,
            "{now_ns}"
        );
    }
}
