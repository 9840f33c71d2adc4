//! FQ-CoDel: RFC 8290's promises, and what sch_fq_codel.c does at its limits.

use proptest::prelude::*;

use super::Params;
use crate::queue::Aqm;
use crate::queue::Queue;
use crate::testing::{queue, TestPacket, FRAME_BYTES, MS};

/// Parameters of all kinds.
pub(crate) fn any_params() -> impl Strategy<Value = Params> {
    let times = 1..10_000_000u64;
    (times, 1..9u32, 1..6000u32, 2000..90_000u64, any::<bool>()).prop_map(
        |(target_ns, flows, quantum_bytes, memory_limit_bytes, ecn)| Params {
            target_ns,
            interval_ns: 20 * target_ns,
            quantum_bytes,
            flows,
            memory_limit_bytes,
            ecn,
            ce_threshold_ns: ecn.then_some(target_ns / 2),
        },
    )
}

/// The most bytes and packets that may wait, for limits of so many. One call drops half of the largest
/// queue, once (fq_codel_drop()): that makes room for a packet as soon as that queue holds two full ones.
pub(crate) fn most_waiting(params: &Params, _: u64, packets: u64) -> (u64, u64) {
    let two_each = 2 * u64::from(params.flows) * u64::from(FRAME_BYTES);
    let bytes = params.memory_limit_bytes.max(two_each) + u64::from(FRAME_BYTES);
    (bytes, packets)
}

fn fq_codel(limit_packets: u32, memory_limit_bytes: u64) -> Queue<TestPacket> {
    let aqm = Aqm::FqCodel(Params {
        target_ns: 5 * MS,
        interval_ns: 100 * MS,
        quantum_bytes: FRAME_BYTES,
        flows: 1024,
        memory_limit_bytes,
        ecn: false,
        ce_threshold_ns: None,
    });
    queue(aqm, None, Some(limit_packets))
}

fn unlimited() -> Queue<TestPacket> {
    fq_codel(1_000_000, u64::MAX)
}

fn offer(queue: &mut Queue<TestPacket>, flow: u32, ids: std::ops::Range<u64>) -> Vec<TestPacket> {
    let mut dropped = Vec::new();
    for id in ids {
        queue.enqueue(0, TestPacket::new(id, flow, FRAME_BYTES), &mut dropped);
    }
    dropped
}

#[test]
fn backlogged_flows_share_the_bytes_whatever_their_packets_sizes() {
    let mut queue = unlimited();
    let mut dropped = Vec::new();
    let sizes = [1514, 700, 90];
    for id in 0..30_000 {
        for (flow, &bytes) in sizes.iter().enumerate() {
            queue.enqueue(0, TestPacket::new(id, flow as u32, bytes), &mut dropped);
        }
    }
    let mut sent = [0i64; 3];
    for _ in 0..30_000 {
        let packet = queue.dequeue(MS, &mut dropped).expect("backlogged");
        sent[packet.flow as usize] += i64::from(packet.bytes);
        let most = sent.iter().max().expect("three");
        let least = sent.iter().min().expect("three");
        // Deficit round robin: at most one quantum and one packet apart.
        assert!(most - least <= 2 * i64::from(FRAME_BYTES), "{sent:?}");
    }
}

#[test]
fn a_packet_of_a_sparse_flow_overtakes_the_backlog() {
    let mut queue = unlimited();
    let mut dropped = Vec::new();
    for flow in 0..8 {
        offer(&mut queue, flow, 0..100);
    }
    for _ in 0..50 {
        queue.dequeue(0, &mut dropped);
    }
    offer(&mut queue, 100, 0..1);
    let next = queue.dequeue(0, &mut dropped).expect("backlogged");
    assert_eq!(next.flow, 100);
}

#[test]
fn a_flow_that_empties_again_and_again_cannot_starve_the_others() {
    let mut queue = unlimited();
    let mut dropped = Vec::new();
    offer(&mut queue, 1, 0..10_000);
    let mut sent = [0u32; 2];
    for id in 0..4000 {
        // As soon as its last packet left, flow 0 has a new one.
        if sent[0] as u64 == id {
            offer(&mut queue, 0, id..id + 1);
        }
        let packet = queue.dequeue(0, &mut dropped).expect("backlogged");
        sent[packet.flow as usize] += 1;
    }
    assert!(sent[1] >= 1900, "{sent:?}");
}

#[test]
fn beyond_the_packet_limit_half_of_the_fattest_queue_goes_from_its_head() {
    let mut queue = fq_codel(41, u64::MAX);
    offer(&mut queue, 1, 0..40);
    offer(&mut queue, 2, 100..101);
    let dropped = offer(&mut queue, 2, 101..102);
    let ids: Vec<_> = dropped.iter().map(|packet| packet.id).collect();
    assert_eq!(ids, (0..20).collect::<Vec<_>>());
    assert!(dropped.iter().all(|packet| packet.flow == 1));
    assert_eq!(queue.packets(), 22);
}

#[test]
fn no_more_than_64_packets_go_at_once() {
    let mut queue = fq_codel(1000, u64::MAX);
    let dropped = offer(&mut queue, 1, 0..1001);
    assert_eq!(dropped.len(), 64);
    assert_eq!(dropped[0].id, 0);
}

#[test]
fn the_memory_limit_counts_bytes() {
    let mut queue = fq_codel(10_000, 20 * u64::from(FRAME_BYTES));
    assert_eq!(offer(&mut queue, 1, 0..20).len(), 0);
    assert_eq!(offer(&mut queue, 2, 0..1).len(), 10);
}

#[test]
fn drops_of_an_overload_make_codel_start_at_their_count() {
    // fq_codel_drop(): "Tell codel to increase its signal strength also".
    let gap_ns = |overload: bool| {
        let limit = if overload { 2000 } else { 1_000_000 };
        let mut queue = fq_codel(limit, u64::MAX);
        let mut drops = Vec::new();
        let (mut now_ns, mut dropped) = (MS, Vec::new());
        for id in 0..2001 {
            queue.enqueue(now_ns, TestPacket::new(id, 1, FRAME_BYTES), &mut dropped);
        }
        assert_eq!(dropped.len(), if overload { 64 } else { 0 });
        while drops.len() < 2 && queue.packets() > 0 {
            now_ns += MS / 2;
            dropped.clear();
            queue.dequeue(now_ns, &mut dropped);
            drops.extend(dropped.iter().map(|_| now_ns));
        }
        drops[1] - drops[0]
    };
    assert!(gap_ns(false).abs_diff(100 * MS) <= MS);
    assert!(gap_ns(true) < 60 * MS, "{}", gap_ns(true));
}

#[test]
fn a_lone_packet_of_a_late_flow_is_spared_only_if_the_whole_qdisc_is_empty() {
    // codel_dequeue() is given the qdisc's backlog, not the queue's.
    let dropped_of_flow_1 = |others: u64| {
        let mut queue = unlimited();
        let mut dropped = Vec::new();
        offer(&mut queue, 1, 0..3);
        offer(&mut queue, 2, 0..others);
        for now_ns in [10 * MS, 120 * MS] {
            while queue.dequeue(now_ns, &mut dropped)?.flow != 1 {}
        }
        Some(dropped.iter().filter(|packet| packet.flow == 1).count())
    };
    assert_eq!(dropped_of_flow_1(0), Some(0));
    assert_eq!(dropped_of_flow_1(50), Some(1));
}

#[test]
fn a_flow_that_waits_longer_than_the_ce_threshold_is_marked_and_another_is_not() {
    let aqm = Aqm::FqCodel(Params {
        target_ns: 5 * MS,
        interval_ns: 100 * MS,
        quantum_bytes: FRAME_BYTES,
        flows: 1024,
        memory_limit_bytes: u64::MAX,
        ecn: false,
        ce_threshold_ns: Some(MS),
    });
    let mut queue = queue(aqm, None, Some(1000));
    let mut dropped = Vec::new();
    for id in 0..2 {
        queue.enqueue(
            0,
            TestPacket::new(id, 1, FRAME_BYTES).with_ecn(),
            &mut dropped,
        );
    }
    queue.enqueue(
        2 * MS,
        TestPacket::new(2, 2, FRAME_BYTES).with_ecn(),
        &mut dropped,
    );
    let mut marked = [0; 3];
    while let Some(packet) = queue.dequeue(2 * MS, &mut dropped) {
        marked[packet.flow as usize] += u32::from(packet.marked);
    }
    assert_eq!((marked, dropped.len()), ([0, 2, 0], 0));
}
