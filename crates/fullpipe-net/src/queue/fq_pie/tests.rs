//! FQ-PIE: fair shares, and a drop probability for each flow (sch_fq_pie.c).

use proptest::prelude::*;

use super::Params;
use crate::queue::Aqm;

/// Parameters of all kinds.
pub(crate) fn any_params() -> impl Strategy<Value = Params> {
    let times = 1..30_000_000u64;
    (times, 0..33u32, 0..33u32, any::<[bool; 3]>(), 1..9u32).prop_map(
        |(target_ns, alpha, beta, flags, flows)| {
            let [byte_mode, rate_estimator, ecn] = flags;
            Params {
                target_ns,
                update_ns: 15 * MS,
                alpha,
                beta,
                byte_mode,
                rate_estimator,
                ecn,
                ecn_percent: 10,
                quantum_bytes: FRAME_BYTES,
                flows,
            }
        },
    )
}

/// The most bytes and packets that may wait, for limits of so many.
pub(crate) fn most_waiting(_: &Params, _: u64, packets: u64) -> (u64, u64) {
    (u64::MAX, packets)
}

use crate::testing::{queue, Hand, TestPacket, FRAME_BYTES, MS};

#[test]
fn only_the_flow_that_overloads_its_queue_is_dropped_from_and_the_others_get_their_share() {
    let aqm = Aqm::FqPie(Params {
        target_ns: 15 * MS,
        update_ns: 15 * MS,
        alpha: 2,
        beta: 20,
        byte_mode: false,
        rate_estimator: false,
        ecn: false,
        ecn_percent: 10,
        quantum_bytes: FRAME_BYTES,
        flows: 1024,
    });
    let mut queue = queue(aqm, None, Some(10_240));
    let (mut dropped, mut sent) = (Vec::new(), [0u32; 2]);
    // One packet leaves a ms. Flow 0 sends one in three ms, flow 1 three in two.
    let mut id = 0;
    for ms in 0..60_000u64 {
        let offers = [u64::from(ms % 3 == 0), 1 + ms % 2];
        for (flow, count) in offers.into_iter().enumerate() {
            for _ in 0..count {
                let packet = TestPacket::new(id, flow as u32, FRAME_BYTES);
                queue.enqueue(ms * MS, packet, &mut dropped);
                id += 1;
            }
        }
        if let Some(packet) = queue.dequeue(ms * MS, &mut dropped) {
            sent[packet.flow as usize] += 1;
        }
    }
    assert!(dropped.iter().all(|packet| packet.flow == 1));
    assert!(sent[0].abs_diff(20_000) <= 2, "{sent:?}");
    // Of 90,000 it gets the 40,000 that are left: 5/9 must go, and little may wait.
    assert!(dropped.len().abs_diff(50_000) < 1000, "{}", dropped.len());
    assert!(queue.packets() < 300, "{}", queue.packets());
}

fn params() -> Params {
    Params {
        target_ns: 15 * MS,
        update_ns: 15 * MS,
        alpha: 2,
        beta: 20,
        byte_mode: false,
        rate_estimator: false,
        ecn: false,
        ecn_percent: 10,
        quantum_bytes: 1000,
        flows: 1024,
    }
}

#[test]
fn a_flow_goes_on_while_it_has_credit_and_an_empty_new_one_waits_behind_the_old_ones() {
    // fq_pie_qdisc_dequeue(). Packets of 600 at a quantum of 1000: 400 are left, then -200; with the next
    // quantum 800, 200, -400; 600, 0; 1000, 400, -200.
    let mut hand = Hand::new(Aqm::FqPie(params()));
    hand.offer(0, TestPacket::new(0, 1, 600), 20);
    hand.offer(0, TestPacket::new(100, 2, 1000), 20);
    let order = [1, 1, 2, 1, 1, 2, 1, 2, 1, 1, 2];
    assert_eq!(hand.flows(0, order.len()), order);
    let mut hand = Hand::new(Aqm::FqPie(params()));
    hand.offer(0, TestPacket::new(0, 1, 500), 20);
    assert_eq!(hand.flows(0, 2), [1, 1]);
    hand.offer(0, TestPacket::new(100, 2, 100), 1);
    assert_eq!(hand.flows(0, 2), [2, 1]);
    hand.offer(0, TestPacket::new(101, 2, 100), 1);
    assert_eq!(hand.flows(0, 5), [1, 2, 1, 1, 1]);
}

#[test]
fn a_full_fq_pie_refuses_the_newcomer_and_what_leaves_makes_room() {
    let mut hand = Hand::limited(Aqm::FqPie(params()), None, Some(3));
    hand.offer(0, TestPacket::new(0, 1, 100), 2);
    hand.offer(0, TestPacket::new(2, 2, 100), 2);
    assert_eq!(hand.dropped(), [3]);
    assert_eq!(hand.ids(0, 1), [0]);
    hand.offer(0, TestPacket::new(4, 2, 100), 2);
    assert_eq!(hand.dropped(), [5]);
}

/// Packets that FQ-PIE marks and drops in 900 ms, in which twice as many come as leave: the probability ends above 10 % and
/// below 1.
fn under_load(change: impl Fn(&mut Params)) -> (u64, u64) {
    let mut params = Params {
        alpha: 8,
        ..params()
    };
    change(&mut params);
    let mut hand = Hand::new(Aqm::FqPie(params));
    for ms in 0..900u64 {
        let packet = TestPacket::new(ms, 1, 1514).with_ecn();
        hand.offer(ms * MS, packet, 2);
        hand.take(ms * MS);
    }
    let counters = hand.queue.counters();
    (counters.marked_packets, counters.dropped_packets)
}

#[test]
fn up_to_ecn_percent_fq_pie_marks_and_above_it_drops() {
    // fq_pie_qdisc_enqueue(): prob <= (MAX_PROB / 100) * ecn_prob.
    let (all, none) = under_load(|params| (params.ecn, params.ecn_percent) = (true, 100));
    assert!(all > 100 && none == 0, "{all} {none}");
    let (marked, dropped) = under_load(|params| params.ecn = true);
    assert!(marked < all && dropped > 0, "{marked} {dropped}");
    let (marked, dropped) = under_load(|params| params.ecn = false);
    assert!(marked == 0 && dropped > 0, "{marked} {dropped}");
}
