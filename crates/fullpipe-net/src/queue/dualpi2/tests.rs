//! DualPI2's arithmetic against RFC 9332.

use proptest::prelude::{any, Strategy};

use super::*;
use crate::queue::Aqm;
use crate::testing::{Hand, TestPacket};

const MS: u64 = 1_000_000;

fn params(target_ns: u64, drop_overload: bool) -> Params {
    Params {
        target_ns,
        update_ns: 16 * MS,
        alpha: 41,
        beta: 819,
        step_ns: MS,
        coupling: 2,
        classic_percent: 10,
        drop_overload,
        min_qlen_step_packets: 0,
    }
}

/// Parameters of all kinds.
pub(crate) fn any_params() -> impl Strategy<Value = Params> {
    (1..30 * MS, any::<bool>()).prop_map(|(target_ns, drop)| params(target_ns, drop))
}

/// The most bytes and packets that may wait, for limits of so many.
pub(crate) fn most_waiting(_: &Params, _: u64, packets: u64) -> (u64, u64) {
    (u64::MAX, packets)
}

#[derive(Clone, Copy, Debug)]
struct Marked(Ecn, bool);

impl Packet for Marked {
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

fn queue() -> Dualpi2<Marked> {
    let environment = Environment {
        limit_bytes: None,
        limit_packets: Some(10_000),
        rate_bps: 100_000_000,
        frame_bytes: 1514,
        seed: 1,
    };
    Dualpi2::new(&params(15 * MS, true), &environment)
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
        match queue.judge(&Marked(ecn, false), is_low) {
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
        queue.enqueue(0, Marked(Ecn::Ect1, false), &mut outcome);
        queue.enqueue(0, Marked(Ecn::Ect0, false), &mut outcome);
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

#[test]
fn the_step_spares_packets_that_found_fewer_than_min_qlen_step_in_the_l_queue() {
    // dualpi2_enqueue_skb(): apply_step = qlen of the L queue >= min_qlen_step.
    let mut queue = queue();
    queue.params.min_qlen_step_packets = 3;
    let mut dropped = Vec::new();
    let mut outcome = Outcome::new(&mut dropped);
    for _ in 0..5 {
        queue.enqueue(0, Marked(Ecn::Ect1, false), &mut outcome);
    }
    let marked: Vec<_> = (0..5)
        .filter_map(|_| queue.dequeue(2 * MS, &mut outcome))
        .map(|packet| packet.1)
        .collect();
    assert_eq!(marked, [false, false, false, true, true]);
}

/// Updates at multiples of 16 ms that make the probability 1 where a packet waited more than 1 ms, else 0.
fn abrupt(coupling: u32, drop_overload: bool) -> Params {
    Params {
        target_ns: MS,
        update_ns: 16 * MS,
        alpha: u32::MAX,
        beta: 0,
        step_ns: 1000 * MS,
        coupling,
        classic_percent: 10,
        drop_overload,
        min_qlen_step_packets: 0,
    }
}

fn of(codepoint: Ecn) -> TestPacket {
    TestPacket {
        ecn: codepoint != Ecn::NotEct,
        codepoint,
        ..TestPacket::new(0, 0, 1514)
    }
}

/// What becomes of the first of ten packets that came so long before 16 ms and are asked for then: it is
/// marked, it is dropped.
fn fate(params: Params, codepoint: Ecn, before_ns: u64) -> (bool, bool) {
    let mut hand = Hand::new(Aqm::Dualpi2(params));
    hand.offer(16 * MS - before_ns, of(codepoint), 10);
    let first = hand.take(16 * MS);
    let is_dropped = hand.dropped().contains(&0);
    (
        !is_dropped && first.is_some_and(|packet| packet.marked),
        is_dropped,
    )
}

#[test]
fn each_queue_gets_what_rfc_9332_says_at_a_probability_of_0_and_of_1() {
    let (none, mark, drop) = ((false, false), (true, false), (false, true));
    for codepoint in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1] {
        // At the target the probability stays 0.
        assert_eq!(fate(abrupt(1, true), codepoint, MS), none, "{codepoint:?}");
    }
    // A coupling of 1: no overload. The classic queue marks or drops by the square, the L queue marks.
    assert_eq!(fate(abrupt(1, true), Ecn::NotEct, 2 * MS), drop);
    assert_eq!(fate(abrupt(1, true), Ecn::Ect0, 2 * MS), mark);
    assert_eq!(fate(abrupt(1, true), Ecn::Ect1, 2 * MS), mark);
    // A coupling of 2: overload, in which all are dropped.
    for codepoint in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1] {
        assert_eq!(
            fate(abrupt(2, true), codepoint, 2 * MS),
            drop,
            "{codepoint:?}"
        );
    }
    // Without drop_overload the probability ends at 1/coupling, where all of the L queue is marked.
    assert_eq!(fate(abrupt(2, false), Ecn::Ect1, 2 * MS), mark);
    assert_ne!(fate(abrupt(2, false), Ecn::Ect0, 2 * MS), drop);
}

#[test]
fn ect_1_and_ce_are_of_the_l_queue_and_the_others_of_the_classic_one() {
    // dualpi2_skb_classify(). The L queue goes first.
    let mut hand = Hand::new(Aqm::Dualpi2(params(15 * MS, true)));
    let codepoints = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
    for (id, codepoint) in (0..).zip(codepoints) {
        hand.offer(
            0,
            TestPacket {
                id,
                ..of(codepoint)
            },
            1,
        );
    }
    assert_eq!(hand.ids(0, 4), [2, 3, 0, 1]);
}

#[test]
fn the_probability_is_updated_at_multiples_of_the_interval_by_the_longer_wait_of_both_queues() {
    for codepoint in [Ecn::Ect0, Ecn::Ect1] {
        let mut hand = Hand::new(Aqm::Dualpi2(abrupt(1, true)));
        let marked =
            |hand: &mut Hand, now_ns| hand.take(now_ns).map(|packet| (packet.id, packet.marked));
        hand.offer(14 * MS, of(codepoint), 10);
        assert_eq!(marked(&mut hand, 16 * MS - 1), Some((0, false)));
        assert_eq!(marked(&mut hand, 16 * MS), Some((1, true)));
        assert_eq!(marked(&mut hand, 31 * MS), Some((2, true)));
        // Fresh packets only, from 32 ms on.
        hand.ids(31 * MS, 10);
        hand.offer(
            31 * MS + MS / 2,
            TestPacket {
                id: 20,
                ..of(codepoint)
            },
            10,
        );
        assert_eq!(marked(&mut hand, 32 * MS), Some((20, false)));
        // Idle for long: the next update is at 1008 ms.
        hand.ids(33 * MS, 20);
        hand.offer(
            1000 * MS + MS / 2,
            TestPacket {
                id: 40,
                ..of(codepoint)
            },
            10,
        );
        assert_eq!(marked(&mut hand, 1008 * MS - 1), Some((40, false)));
        assert_eq!(marked(&mut hand, 1008 * MS), Some((41, true)));
        assert_eq!(hand.dropped(), []);
    }
}

#[test]
fn with_less_than_two_full_packets_behind_it_a_packet_passes() {
    // must_drop(): qdisc backlog < 2 * psched_mtu().
    for (behind, marked) in [(3027, false), (3028, true)] {
        let mut hand = Hand::new(Aqm::Dualpi2(abrupt(1, true)));
        hand.offer(0, of(Ecn::Ect0), 1);
        hand.offer(
            0,
            TestPacket {
                id: 1,
                bytes: behind,
                ..of(Ecn::Ect0)
            },
            1,
        );
        assert_eq!(hand.take(16 * MS).map(|packet| packet.marked), Some(marked));
    }
}

#[test]
fn the_base_probability_changes_by_rfc_9332_appendix_a_to_the_last_step() {
    // alpha 41/256 Hz, beta 819/256 Hz, target 15 ms. dualpi2_scale_alpha_beta() rounds both down to whole
    // 2^-38 a ns, by 0.05 %.
    for (before, delay_ms, last_ms, expected) in [
        (0.2_f64, 20, 20, 0.2 + 41.0 / 256.0 * 0.005),
        (0.2, 15, 10, 0.2 + 819.0 / 256.0 * 0.005),
        (0.2, 10, 10, 0.2 - 41.0 / 256.0 * 0.005),
        (
            0.2,
            10,
            20,
            0.2 - 41.0 / 256.0 * 0.005 - 819.0 / 256.0 * 0.010,
        ),
        (0.2, 15, 15, 0.2),
        (0.001, 0, 15, 0.0),
        (0.99, 100, 15, 1.0),
    ] {
        let mut queue = queue();
        queue.probability = (before * ONE as f64) as u64;
        queue.last_delay_ns = last_ms * MS;
        queue.update(delay_ms * MS);
        let after = queue.probability as f64 / ONE as f64;
        let rounding = 6e-4 * (expected - before).abs() + 1e-9;
        assert!(
            (after - expected).abs() < rounding,
            "{delay_ms} {last_ms}: {after}"
        );
        assert_eq!(queue.last_delay_ns, delay_ms * MS);
    }
}

#[test]
fn the_schedule_weighs_bytes_by_credit() {
    // dequeue_packet(): the L queue goes while the credit is at most 0; it begins at 1514 * (10 - 90), an L
    // packet adds 10 of a hundred of its bytes, a classic one takes 90. So nine L packets pass: -80, -70,
    // ... 0, and one classic one.
    let mut hand = Hand::new(Aqm::Dualpi2(params(15 * MS, true)));
    hand.offer(0, of(Ecn::Ect1), 100);
    hand.offer(
        0,
        TestPacket {
            id: 1000,
            ..of(Ecn::Ect0)
        },
        100,
    );
    let order: Vec<bool> = hand.ids(0, 30).iter().map(|&id| id >= 1000).collect();
    let expected: Vec<bool> = (0..30).map(|place| place % 10 == 9).collect();
    assert_eq!(order, expected);
    // A queue that is alone neither pays nor earns, and an empty qdisc begins anew.
    let mut hand = Hand::new(Aqm::Dualpi2(params(15 * MS, true)));
    hand.offer(0, of(Ecn::Ect1), 50);
    hand.ids(0, 49);
    hand.offer(
        0,
        TestPacket {
            id: 1000,
            ..of(Ecn::Ect0)
        },
        20,
    );
    hand.offer(
        0,
        TestPacket {
            id: 100,
            ..of(Ecn::Ect1)
        },
        20,
    );
    assert_eq!(hand.ids(0, 11).iter().position(|&id| id >= 1000), Some(9));
    hand.ids(0, 100);
    hand.offer(
        0,
        TestPacket {
            id: 1000,
            ..of(Ecn::Ect0)
        },
        20,
    );
    hand.offer(
        0,
        TestPacket {
            id: 100,
            ..of(Ecn::Ect1)
        },
        20,
    );
    assert_eq!(hand.ids(0, 11).iter().position(|&id| id >= 1000), Some(9));
}

#[test]
fn with_half_for_the_classic_queue_both_take_turns() {
    let mut half = params(15 * MS, true);
    half.classic_percent = 50;
    let mut hand = Hand::new(Aqm::Dualpi2(half));
    hand.offer(0, of(Ecn::Ect1), 10);
    hand.offer(
        0,
        TestPacket {
            id: 1000,
            ..of(Ecn::Ect0)
        },
        10,
    );
    assert_eq!(hand.ids(0, 6), [0, 1000, 1, 1001, 2, 1002]);
}

#[test]
fn limits_are_so_many_packets_and_twice_as_many_full_ones_in_memory() {
    // dualpi2_change(): memory_limit = limit * 2 * psched_mtu(): 6056 bytes.
    let offer = |sizes: &[u32]| {
        let aqm = Aqm::Dualpi2(params(15 * MS, true));
        let mut hand = Hand::limited(aqm, None, Some(2));
        for (id, &bytes) in (0..).zip(sizes) {
            hand.offer(
                0,
                TestPacket {
                    id,
                    bytes,
                    ..of(Ecn::Ect0)
                },
                1,
            );
            if id == 2 {
                hand.take(0);
            }
        }
        hand.dropped()
    };
    assert_eq!(offer(&[6057, 6056, 1]), [0, 2]);
    assert_eq!(offer(&[3000, 3056, 1, 3000, 1]), [2, 4]);
    assert_eq!(offer(&[3000, 3056, 1, 3001, 3000]), [2, 3]);
}

#[test]
fn the_step_marks_what_waited_longer_in_the_l_queue_only() {
    // do_step_aqm(): sojourn > step_thresh; the packet that finds min_qlen_step packets is the first.
    for (codepoint, waited_ns, marked) in [
        (Ecn::Ect1, MS, false),
        (Ecn::Ect1, MS + 1, true),
        (Ecn::Ect0, 10 * MS, false),
    ] {
        let mut hand = Hand::new(Aqm::Dualpi2(params(15 * MS, true)));
        hand.offer(0, of(codepoint), 3);
        let first = hand.take(waited_ns).map(|packet| packet.marked);
        assert_eq!(first, Some(marked), "{codepoint:?} {waited_ns}");
        assert_eq!(hand.queue.counters().marked_packets, u64::from(marked));
    }
}
