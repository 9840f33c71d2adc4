//! FQ-CoDel: RFC 8290's promises, and what sch_fq_codel.c does at its limits.

use proptest::prelude::*;

use super::Params;
use crate::kernel::Kernel;
use crate::queue::Aqm;
use crate::queue::Queue;
use crate::testing::{queue, some_kernel, Hand, TestPacket, FRAME_BYTES, MS};

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
            kernel: some_kernel(target_ns as usize),
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
        kernel: None,
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
        kernel: None,
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

/// FQ-CoDel that drops nothing, with this quantum.
fn with_quantum(quantum_bytes: u32) -> Hand {
    Hand::new(Aqm::FqCodel(params_with_quantum(quantum_bytes)))
}

fn params_with_quantum(quantum_bytes: u32) -> Params {
    Params {
        target_ns: 5 * MS,
        interval_ns: 100 * MS,
        quantum_bytes,
        flows: 1024,
        memory_limit_bytes: u64::MAX,
        ecn: false,
        ce_threshold_ns: None,
        kernel: None,
    }
}

#[test]
fn a_new_flow_that_is_found_empty_waits_behind_the_old_ones() {
    // RFC 8290 section 4.2: an empty new flow goes to the end of the old ones, and only an empty old one
    // leaves. So what comes for it in the meantime takes its turn with the credit that it has left.
    let mut hand = with_quantum(1000);
    hand.offer(0, TestPacket::new(0, 1, 500), 20);
    assert_eq!(hand.flows(0, 2), [1, 1]);
    hand.offer(0, TestPacket::new(100, 2, 100), 1);
    // Flow 1 has used its quantum and becomes an old one; flow 2 is sent from and found empty.
    assert_eq!(hand.flows(0, 2), [2, 1]);
    hand.offer(0, TestPacket::new(101, 2, 100), 1);
    assert_eq!(hand.flows(0, 5), [1, 2, 1, 1, 1]);
    // Found empty as an old one, it left: it is new again, with a quantum of 1000.
    hand.offer(0, TestPacket::new(102, 2, 500), 3);
    assert_eq!(hand.flows(0, 5), [2, 2, 1, 2, 1]);
}

#[test]
fn a_flow_goes_on_while_it_has_credit_and_pays_for_its_overdraft() {
    // fq_codel_dequeue(): while (flow->deficit <= 0) the next. Packets of 600 at a quantum of 1000: 400
    // are left, then -200; with the next quantum 800, 200, -400; 600, 0; 1000, 400, -200.
    let mut hand = with_quantum(1000);
    hand.offer(0, TestPacket::new(0, 1, 600), 20);
    hand.offer(0, TestPacket::new(100, 2, 1000), 20);
    let order = [1, 1, 2, 1, 1, 2, 1, 2, 1, 1, 2];
    assert_eq!(hand.flows(0, order.len()), order);
}

#[test]
fn a_quantum_is_256_bytes_at_least() {
    // fq_codel_change(): max(256U, quantum).
    let mut hand = with_quantum(1);
    hand.offer(0, TestPacket::new(0, 1, 128), 8);
    hand.offer(0, TestPacket::new(100, 2, 128), 8);
    assert_eq!(hand.flows(0, 6), [1, 1, 2, 2, 1, 1]);
}

#[test]
fn an_overload_drops_from_the_first_of_the_fattest_flows_until_half_of_it_is_gone() {
    // fq_codel_drop(): the first with the most bytes; while (++i < max_packets && len < threshold) with
    // the threshold at half of its backlog. In order of their hashes.
    let drops = |sizes: &[(u32, u32)], limit: u32| {
        let aqm = Aqm::FqCodel(Params {
            target_ns: 5 * MS,
            interval_ns: 100 * MS,
            quantum_bytes: FRAME_BYTES,
            flows: 1024,
            memory_limit_bytes: u64::MAX,
            ecn: false,
            ce_threshold_ns: None,
            kernel: None,
        });
        let mut hand = Hand::limited(aqm, None, Some(limit));
        for (id, &(flow, bytes)) in (0..).zip(sizes) {
            hand.offer(0, TestPacket::new(id, flow, bytes), 1);
        }
        hand.dropped()
    };
    // 1000 bytes wait: 499 are not half, 500 are.
    assert_eq!(drops(&[(1, 499), (1, 1), (1, 500)], 2), [0, 1]);
    assert_eq!(drops(&[(1, 500), (1, 1), (1, 499)], 2), [0]);
    // Bytes count, not packets.
    assert_eq!(drops(&[(1, 100), (1, 100), (2, 300), (1, 50)], 3), [2]);
    // The limit itself is allowed.
    assert_eq!(drops(&[(1, 100), (1, 100), (2, 300)], 3), []);
}

#[test]
fn memory_is_that_of_the_packets_that_wait() {
    // q->memory_usage > q->memory_limit, and what left makes room.
    let aqm = Aqm::FqCodel(Params {
        target_ns: 5 * MS,
        interval_ns: 100 * MS,
        quantum_bytes: FRAME_BYTES,
        flows: 1024,
        memory_limit_bytes: 1000,
        ecn: false,
        ce_threshold_ns: None,
        kernel: None,
    });
    let mut hand = Hand::new(aqm);
    hand.offer(0, TestPacket::new(0, 1, 400), 2);
    hand.offer(0, TestPacket::new(2, 1, 200), 1);
    assert_eq!(hand.dropped(), []);
    hand.take(0);
    hand.offer(0, TestPacket::new(3, 1, 400), 1);
    assert_eq!(hand.dropped(), []);
    hand.offer(0, TestPacket::new(4, 1, 1), 1);
    assert_eq!(hand.dropped(), [1, 2]);
}

#[test]
fn a_late_flow_whose_only_packet_is_dropped_hands_the_turn_on() {
    // codel_dequeue() with the backlog of the whole qdisc: the queue may be empty behind a drop.
    let mut hand = with_quantum(FRAME_BYTES);
    hand.offer(0, TestPacket::new(0, 1, FRAME_BYTES), 2);
    hand.offer(0, TestPacket::new(100, 2, FRAME_BYTES), 50);
    assert_eq!(hand.ids(10 * MS, 2), [0, 100]);
    // Flow 1's interval ends at 110 ms; its second packet goes then, and flow 2's head with it.
    assert_eq!(hand.ids(111 * MS, 1), [102]);
    assert_eq!(hand.dropped(), [1, 101]);
    // Not dropping any more, and its interval begins with its next packet.
    hand.offer(112 * MS, TestPacket::new(2, 1, FRAME_BYTES), 3);
    while hand.queue.packets() > 0 {
        hand.take(118 * MS);
    }
    assert!(hand.dropped().iter().all(|&id| id >= 100));
}

/// Of ten packets of a sparse flow, one every 150 ms, how many leave. Each waits for 10 ms behind the
/// packets of another flow.
fn sparse_packets_that_leave(kernel: Kernel) -> usize {
    let mut hand = Hand::new(Aqm::FqCodel(Params {
        kernel: Some(kernel),
        ..params_with_quantum(FRAME_BYTES)
    }));
    hand.offer(0, TestPacket::new(1000, 1, FRAME_BYTES), 200);
    let leaves = |turn: &u64| {
        hand.offer(turn * 150 * MS, TestPacket::new(*turn, 2, 100), 1);
        hand.ids((turn * 150 + 10) * MS, 4).contains(turn)
    };
    (0..10).filter(leaves).count()
}

#[test]
fn a_flow_is_not_dropped_for_a_delay_that_it_saw_before_a_pause() {
    // Commit 815980fe6dbb: an empty queue ends the time above the target, so that each packet begins an
    // interval of 100 ms anew.
    for kernel in [Kernel::Linux6_1, Kernel::Linux6_12_117, Kernel::NEWEST] {
        assert_eq!(sparse_packets_that_leave(kernel), 10, "{kernel:?}");
    }
}

#[test]
fn before_march_2026_every_second_packet_of_a_sparse_flow_was_dropped() {
    // codel_should_drop() before that commit: the first packet sets the time 110 ms on, the second one comes
    // after it and is dropped; the queue is empty behind it, which sets it back.
    for kernel in [Kernel::Linux5_13, Kernel::Linux6_12, Kernel::Linux6_18] {
        assert_eq!(sparse_packets_that_leave(kernel), 5, "{kernel:?}");
    }
}
