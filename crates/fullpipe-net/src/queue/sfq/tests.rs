//! SFQ: deficit round robin over hashed flows (sch_sfq.c, McKenney 1990).

use proptest::prelude::*;

use super::Params;
use crate::queue::Aqm;
use crate::queue::Queue;
use crate::testing::{queue, Hand, TestPacket, FRAME_BYTES};

/// Parameters of all kinds.
pub(crate) fn any_params() -> impl Strategy<Value = Params> {
    (1..4000u32, 1..8u32, 1..16u32, any::<bool>()).prop_map(
        |(quantum_bytes, flows, depth_packets, head_drop)| Params {
            quantum_bytes,
            flows,
            buckets: 8,
            depth_packets,
            head_drop,
        },
    )
}

/// The most bytes and packets that may wait, for limits of so many.
pub(crate) fn most_waiting(params: &Params, _: u64, packets: u64) -> (u64, u64) {
    let most = u64::from(params.flows) * u64::from(params.depth_packets);
    (u64::MAX, packets.min(most))
}

fn sfq(depth_packets: u32, limit_packets: u32, head_drop: bool) -> Queue<TestPacket> {
    let aqm = Aqm::Sfq(Params {
        quantum_bytes: FRAME_BYTES,
        flows: 127,
        buckets: 1024,
        depth_packets,
        head_drop,
    });
    queue(aqm, None, Some(limit_packets))
}

fn offer(queue: &mut Queue<TestPacket>, flow: u32, ids: std::ops::Range<u64>) -> Vec<u64> {
    let mut dropped = Vec::new();
    for id in ids {
        queue.enqueue(0, TestPacket::new(id, flow, FRAME_BYTES), &mut dropped);
    }
    dropped.iter().map(|packet| packet.id).collect()
}

#[test]
fn backlogged_flows_share_the_bytes_whatever_their_packets_sizes() {
    let mut queue = sfq(100_000, 1_000_000, false);
    let mut dropped = Vec::new();
    for id in 0..20_000 {
        for (flow, bytes) in [1514, 700, 90].into_iter().enumerate() {
            queue.enqueue(0, TestPacket::new(id, flow as u32, bytes), &mut dropped);
        }
    }
    let mut sent = [0i64; 3];
    for _ in 0..20_000 {
        let packet = queue.dequeue(0, &mut dropped).expect("backlogged");
        sent[packet.flow as usize] += i64::from(packet.bytes);
        let most = sent.iter().max().expect("three");
        let least = sent.iter().min().expect("three");
        assert!(most - least <= 2 * i64::from(FRAME_BYTES), "{sent:?}");
    }
}

#[test]
fn a_full_flow_loses_its_newest_or_its_oldest_packet() {
    assert_eq!(offer(&mut sfq(5, 100, false), 1, 0..7), [5, 6]);
    assert_eq!(offer(&mut sfq(5, 100, true), 1, 0..7), [0, 1]);
}

#[test]
fn beyond_the_limit_the_longest_flow_loses_a_packet() {
    let mut queue = sfq(127, 10, false);
    assert!(offer(&mut queue, 1, 0..8).is_empty());
    assert!(offer(&mut queue, 2, 100..102).is_empty());
    assert_eq!(offer(&mut queue, 3, 200..202), [7, 6]);
    assert_eq!(queue.packets(), 10);
}

#[test]
fn where_all_flows_have_one_packet_the_first_in_turn_loses_its_own() {
    let mut queue = sfq(127, 4, false);
    for flow in 0..4 {
        assert!(offer(&mut queue, flow, u64::from(flow)..u64::from(flow) + 1).is_empty());
    }
    assert_eq!(offer(&mut queue, 4, 4..5).len(), 1);
    assert_eq!(queue.packets(), 4);
}

/// SFQ that drops nothing but for its flows.
fn of_quantum(quantum_bytes: u32, flows: u32) -> Hand {
    Hand::new(Aqm::Sfq(Params {
        quantum_bytes,
        flows,
        buckets: 1024,
        depth_packets: 127,
        head_drop: false,
    }))
}

#[test]
fn a_flow_goes_on_while_it_has_credit_and_pays_for_its_overdraft() {
    // sfq_dequeue(): while (slot->allot <= 0) the next. Packets of 600 at a quantum of 1000: 400 are left,
    // then -200; with the next quantum 800, 200, -400; 600, 0; 1000, 400, -200.
    let mut hand = of_quantum(1000, 127);
    hand.offer(0, TestPacket::new(0, 1, 600), 20);
    hand.offer(0, TestPacket::new(100, 2, 1000), 20);
    let order = [1, 1, 2, 1, 1, 2, 1, 2, 1, 1, 2];
    assert_eq!(hand.flows(0, order.len()), order);
}

#[test]
fn a_flow_that_appears_is_last_in_the_round_and_begins_with_a_quantum() {
    let mut hand = of_quantum(1000, 127);
    hand.offer(0, TestPacket::new(0, 1, 1000), 5);
    hand.offer(0, TestPacket::new(10, 2, 1000), 5);
    assert_eq!(hand.flows(0, 1), [1]);
    hand.offer(0, TestPacket::new(20, 3, 500), 2);
    assert_eq!(hand.flows(0, 4), [2, 3, 3, 1]);
    // Emptied with 500 spent beyond its last packet, flow 3 left, and has a quantum when it is back.
    hand.offer(0, TestPacket::new(30, 3, 500), 3);
    assert_eq!(hand.flows(0, 6), [2, 3, 3, 1, 2, 3]);
}

#[test]
fn flows_beyond_the_number_of_slots_are_refused_until_one_is_free() {
    let mut hand = of_quantum(1000, 2);
    for flow in 1..=3 {
        hand.offer(0, TestPacket::new(u64::from(flow), flow, 1000), 1);
    }
    assert_eq!(hand.dropped(), [3]);
    assert_eq!(hand.flows(0, 1), [1]);
    hand.offer(0, TestPacket::new(4, 3, 1000), 1);
    hand.offer(0, TestPacket::new(5, 4, 1000), 1);
    assert_eq!(hand.dropped(), [5]);
    assert_eq!(hand.flows(0, 3), [2, 3]);
    assert_eq!(hand.take(0), None);
}

#[test]
fn of_equally_long_flows_the_one_that_changed_last_loses_a_packet() {
    // sfq_link() puts a slot at the head of those of its length, and sfq_drop() takes the head.
    let dropped = |order: &[u32], head_drop| {
        let aqm = Aqm::Sfq(Params {
            quantum_bytes: 1000,
            flows: 127,
            buckets: 1024,
            depth_packets: 127,
            head_drop,
        });
        let mut hand = Hand::limited(aqm, None, Some(order.len() as u32 - 1));
        for (id, &flow) in (0..).zip(order) {
            hand.offer(0, TestPacket::new(id, flow, 1000), 1);
        }
        hand.dropped()
    };
    assert_eq!(dropped(&[1, 1, 2, 2, 3], false), [3]);
    assert_eq!(dropped(&[1, 2, 2, 1, 3], false), [3]);
    assert_eq!(dropped(&[1, 2, 2, 1, 3], true), [0]);
    assert_eq!(dropped(&[1, 2, 2, 1, 1, 3], true), [0]);
}

#[test]
fn the_limit_is_that_of_all_flows_at_their_depth_at_most() {
    // sfq_change(): limit = min(limit, maxdepth * maxflows).
    let aqm = Aqm::Sfq(Params {
        quantum_bytes: 1000,
        flows: 2,
        buckets: 1024,
        depth_packets: 3,
        head_drop: false,
    });
    let mut hand = Hand::limited(aqm, None, Some(100));
    hand.offer(0, TestPacket::new(0, 1, 100), 4);
    hand.offer(0, TestPacket::new(10, 2, 100), 4);
    assert_eq!(hand.dropped(), [3, 13]);
    // No more flows than packets: with a limit of one a second flow finds no slot.
    let aqm = Aqm::Sfq(Params {
        quantum_bytes: 1000,
        flows: 2,
        buckets: 1024,
        depth_packets: 3,
        head_drop: false,
    });
    let mut hand = Hand::limited(aqm, None, Some(1));
    hand.offer(0, TestPacket::new(0, 1, 100), 1);
    hand.offer(0, TestPacket::new(10, 2, 100), 1);
    assert_eq!(hand.dropped(), [10]);
}
