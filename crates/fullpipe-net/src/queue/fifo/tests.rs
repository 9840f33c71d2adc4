//! bfifo and pfifo: which packets a full queue refuses (sch_fifo.c).

use proptest::prelude::*;

use super::Params;
use crate::queue::Aqm;
use crate::queue::Queue;
use crate::testing::{queue, Hand, TestPacket};

/// Parameters of all kinds.
pub(crate) fn any_params() -> impl Strategy<Value = Params> {
    Just(Params {})
}

/// The most bytes and packets that may wait, for limits of so many.
pub(crate) fn most_waiting(_: &Params, bytes: u64, packets: u64) -> (u64, u64) {
    (bytes, packets)
}

/// Ids of what is dropped when packets of these sizes arrive back to back.
fn dropped_ids(queue: &mut Queue<TestPacket>, sizes: &[u32]) -> Vec<u64> {
    let mut dropped = Vec::new();
    for (id, &bytes) in sizes.iter().enumerate() {
        queue.enqueue(0, TestPacket::new(id as u64, 0, bytes), &mut dropped);
    }
    dropped.iter().map(|packet| packet.id).collect()
}

#[test]
fn a_byte_limit_refuses_what_would_exceed_it_and_lets_smaller_packets_in() {
    let mut bfifo = queue(Aqm::Fifo(Params {}), Some(4000), None);
    let dropped = dropped_ids(&mut bfifo, &[1514, 1514, 1514, 972, 1, 60]);
    assert_eq!(dropped, [2, 4, 5]);
    assert_eq!((bfifo.bytes(), bfifo.packets()), (4000, 3));
}

#[test]
fn a_packet_limit_counts_packets_whatever_their_size() {
    let mut pfifo = queue(Aqm::Fifo(Params {}), None, Some(3));
    let dropped = dropped_ids(&mut pfifo, &[60, 1514, 60, 60, 1514]);
    assert_eq!(dropped, [3, 4]);
}

#[test]
fn with_both_limits_the_first_one_reached_counts() {
    let mut fifo = queue(Aqm::Fifo(Params {}), Some(3000), Some(3));
    assert_eq!(dropped_ids(&mut fifo, &[1000, 1000, 1000, 0]), [3]);
    let mut fifo = queue(Aqm::Fifo(Params {}), Some(3000), Some(3));
    assert_eq!(dropped_ids(&mut fifo, &[1500, 1501, 1500]), [1]);
}

#[test]
fn packets_leave_in_the_order_of_their_arrival_and_make_room() {
    let mut fifo = queue(Aqm::Fifo(Params {}), None, Some(2));
    let mut dropped = Vec::new();
    let mut order = Vec::new();
    for id in 0..100 {
        fifo.enqueue(id, TestPacket::new(id, 0, 100), &mut dropped);
        if id % 2 == 1 {
            order.extend(fifo.dequeue(id, &mut dropped).map(|packet| packet.id));
        }
    }
    // The first two fit; afterwards every second arrival finds the place that a departure made.
    let mut expected = vec![0, 1];
    expected.extend((2..99).filter(|id| id % 2 == 0));
    expected.truncate(50);
    assert_eq!(order, expected);
    assert_eq!(dropped.len(), 100 - 50 - fifo.packets());
}

#[test]
fn a_packet_that_came_alone_keeps_the_flags_of_a_last_one() {
    let mut hand = Hand::new(Aqm::Fifo(Params {}));
    for (id, is_last) in [(0, true), (1, false), (2, true)] {
        let packet = TestPacket::new(id, 0, 100);
        hand.offer(0, TestPacket { is_last, ..packet }, 1);
    }
    let taken: Vec<_> = std::iter::from_fn(|| hand.take(0)).collect();
    let flags: Vec<_> = taken.iter().map(|packet| packet.is_last).collect();
    assert_eq!(flags, [true, false, true]);
}
