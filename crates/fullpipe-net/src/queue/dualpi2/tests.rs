//! DualPI2's arithmetic against RFC 9332.

use proptest::prelude::{any, Strategy};

use super::*;

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
