//! TBF: a bucket that is paid before a packet leaves (tc-tbf(8)).

use proptest::prelude::*;

use super::Params;
use crate::queue::{Aqm, Qdisc, Queue};
use crate::testing::{Hand, TestPacket, FRAME_BYTES, MTU_BYTES};

/// Parameters of all kinds.
pub(crate) fn any_params() -> impl Strategy<Value = Params> {
    (100..6000u32).prop_map(|burst_bytes| Params { burst_bytes })
}

/// The most bytes and packets that may wait, for limits of so many.
pub(crate) fn most_waiting(_: &Params, bytes: u64, packets: u64) -> (u64, u64) {
    (bytes, packets)
}

/// 10 Mbit/s: 800 ns a byte.
const NS_PER_BYTE: u64 = 800;

fn tbf(burst_bytes: u32, limit_bytes: u64) -> Queue<TestPacket> {
    let qdisc = Qdisc {
        limit_bytes: Some(limit_bytes),
        limit_packets: None,
        aqm: Aqm::Tbf(Params { burst_bytes }),
    };
    Queue::new(&qdisc, 10_000_000, MTU_BYTES, 1)
}

#[test]
fn a_full_bucket_leaves_at_once_and_then_each_packet_when_it_is_paid_for() {
    let mut queue = tbf(3 * FRAME_BYTES, 1_000_000);
    let mut dropped = Vec::new();
    for id in 0..6 {
        queue.enqueue(0, TestPacket::new(id, 1, FRAME_BYTES), &mut dropped);
    }
    let mut left_at = Vec::new();
    let mut now_ns = 0;
    while let Some(ready_ns) = queue.next_ready_ns(now_ns) {
        now_ns = ready_ns;
        if queue.dequeue(now_ns, &mut dropped).is_some() {
            left_at.push(now_ns);
        }
    }
    let packet_ns = u64::from(FRAME_BYTES) * NS_PER_BYTE;
    assert_eq!(left_at, [0, 0, 0, packet_ns, 2 * packet_ns, 3 * packet_ns]);
}

#[test]
fn what_is_larger_than_the_bucket_is_dropped_and_the_limit_is_in_bytes() {
    let mut queue = tbf(1000, 2000);
    let mut dropped = Vec::new();
    for (id, bytes) in [(0, 1001), (1, 1000), (2, 1000), (3, 60)] {
        queue.enqueue(0, TestPacket::new(id, 1, bytes), &mut dropped);
    }
    let ids: Vec<_> = dropped.iter().map(|packet| packet.id).collect();
    assert_eq!(ids, [0, 3]);
}

#[test]
fn tokens_come_at_the_rate_and_gather_up_to_the_bucket() {
    // tbf_dequeue(): toks = min(now - t_c, buffer) + tokens, at most the buffer, less the packet's time.
    let mut hand = Hand::over(tbf(2 * FRAME_BYTES, 1_000_000));
    hand.offer(0, TestPacket::new(0, 1, FRAME_BYTES), 20);
    assert_eq!(hand.ids(0, 9), [0, 1]);
    let frame_ns = u64::from(FRAME_BYTES) * NS_PER_BYTE;
    assert_eq!(hand.take(frame_ns - 1), None);
    assert_eq!(hand.queue.next_ready_ns(frame_ns - 1), Some(frame_ns));
    assert_eq!(hand.ids(frame_ns, 9), [2]);
    // Half of a packet's time more than two packets: two leave, and a half is left.
    assert_eq!(hand.queue.next_ready_ns(2 * frame_ns), Some(2 * frame_ns));
    assert_eq!(hand.ids(3 * frame_ns - 1, 9), [3]);
    assert_eq!(
        hand.queue.next_ready_ns(3 * frame_ns - 1),
        Some(3 * frame_ns)
    );
    assert_eq!(hand.ids(1000 * frame_ns, 9), [4, 5]);
    assert_eq!(
        hand.queue.next_ready_ns(1000 * frame_ns),
        Some(1001 * frame_ns)
    );
}

#[test]
fn a_bucket_that_is_not_full_is_not_refilled_by_waiting_for_nothing() {
    let mut hand = Hand::over(tbf(3 * FRAME_BYTES, 1_000_000));
    let frame_ns = u64::from(FRAME_BYTES) * NS_PER_BYTE;
    hand.offer(0, TestPacket::new(0, 1, FRAME_BYTES), 3);
    assert_eq!(hand.ids(0, 9), [0, 1, 2]);
    hand.offer(2 * frame_ns, TestPacket::new(3, 1, FRAME_BYTES), 5);
    assert_eq!(hand.ids(2 * frame_ns, 9), [3, 4]);
}
