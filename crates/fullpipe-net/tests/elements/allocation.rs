//! Queues allocate nothing for a packet once they have held as many before.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use fullpipe_net::Queue;
use fullpipe_plan::{Aqm, CakeAckFilter, CakeFraming, CakeIsolation, CakeTins, Qdisc};

use crate::packet::{TestPacket, FRAME_BYTES, MS};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is the system allocator's own doing.
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

fn disciplines() -> Vec<Aqm> {
    vec![
        Aqm::Cake {
            rtt_ns: 100 * MS,
            target_ns: 5 * MS,
            shapes: false,
            tins: CakeTins::Diffserv4,
            isolation: CakeIsolation::TripleIsolate,
            ack_filter: CakeAckFilter::Filter,
            overhead_bytes: Some(38),
            mpu_bytes: 84,
            framing: CakeFraming::Atm,
            ingress: false,
            autorate_ingress: false,
            wash: false,
            split_gso: true,
        },
        Aqm::Pie {
            target_ns: 15 * MS,
            update_ns: 15 * MS,
            alpha: 2,
            beta: 20,
            byte_mode: false,
            rate_estimator: false,
            ecn: false,
        },
        Aqm::FqPie {
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
        },
        Aqm::Sfq {
            quantum_bytes: FRAME_BYTES,
            flows: 127,
            buckets: 1024,
            depth_packets: 127,
            head_drop: false,
        },
        Aqm::Tbf {
            burst_bytes: 1_000_000,
        },
        Aqm::Prio {
            bands: 3,
            default_band: 1,
            filters: vec![(46, 0)],
        },
        Aqm::Dualpi2 {
            target_ns: 15 * MS,
            update_ns: 16 * MS,
            alpha: 41,
            beta: 819,
            step_ns: MS,
            coupling: 2,
            classic_percent: 10,
            drop_overload: true,
        },
    ]
}

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

#[test]
fn no_discipline_allocates_for_a_packet() {
    for aqm in disciplines() {
        let qdisc = Qdisc {
            limit_bytes: None,
            limit_packets: Some(1000),
            aqm,
        };
        let mut queue = Queue::<TestPacket>::new(&qdisc, 1_000_000_000, 1);
        let mut dropped = Vec::with_capacity(1000);
        churn(&mut queue, &mut dropped, 1);
        let before = ALLOCATIONS.with(Cell::get);
        churn(&mut queue, &mut dropped, 100);
        let after = ALLOCATIONS.with(Cell::get);
        assert_eq!(after - before, 0, "{:?}", qdisc.aqm);
    }
}
