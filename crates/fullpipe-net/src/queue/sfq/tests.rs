//! SFQ: deficit round robin over hashed flows (sch_sfq.c, McKenney 1990).

use proptest::prelude::*;

use super::Params;
use crate::queue::Aqm;
use crate::queue::Queue;
use crate::testing::{queue, TestPacket, FRAME_BYTES};

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
