//! Queues allocate nothing for a packet once they have held as many before.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use proptest::prelude::*;

use crate::queue::{Aqm, Qdisc, Queue};
use crate::testing::{TestPacket, FRAME_BYTES, MS, MTU_BYTES};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all calls go to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Fills the queue up to 300 packets and empties it to 100, again and again.
fn churn(queue: &mut Queue<TestPacket>, dropped: &mut Vec<TestPacket>, from_ms: u64) {
    for ms in from_ms..from_ms + 20 {
        for id in 0..200 {
            let packet = TestPacket::new(id, (id % 16) as u32, FRAME_BYTES);
            if queue.packets() < 300 {
                queue.enqueue(ms * MS, packet, dropped);
            }
        }
        for _ in 0..200 {
            queue.dequeue(ms * MS, dropped);
        }
        dropped.clear();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_discipline_allocates_for_a_packet(aqm in Aqm::any()) {
        let qdisc = Qdisc {
            limit_bytes: None,
            limit_packets: Some(1000),
            aqm,
        };
        let mut queue = Queue::<TestPacket>::new(&qdisc, 1_000_000_000, MTU_BYTES, 1);
        let mut dropped = Vec::with_capacity(4000);
        churn(&mut queue, &mut dropped, 1);
        let before = ALLOCATIONS.with(Cell::get);
        churn(&mut queue, &mut dropped, 100);
        let after = ALLOCATIONS.with(Cell::get);
        prop_assert_eq!(after - before, 0);
    }
}
