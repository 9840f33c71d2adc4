//! CoDel against RFC 8289 and against its control law computed in double precision.

use proptest::prelude::*;

use super::Params;
use crate::queue::Aqm;
use crate::queue::Queue;
use crate::testing::{queue, TestPacket, FRAME_BYTES, MS};

/// Parameters of all kinds.
pub(crate) fn any_params() -> impl Strategy<Value = Params> {
    (1..10_000_000u64, any::<bool>()).prop_map(|(target_ns, ecn)| Params {
        target_ns,
        interval_ns: 20 * target_ns,
        ecn,
        ce_threshold_ns: ecn.then_some(target_ns / 2),
    })
}

/// The most bytes and packets that may wait, for limits of so many.
pub(crate) fn most_waiting(_: &Params, _: u64, packets: u64) -> (u64, u64) {
    (u64::MAX, packets)
}

const TARGET_NS: u64 = 5 * MS;
const INTERVAL_NS: u64 = 100 * MS;
/// CoDel's clock ticks every 1024 ns.
const TICK_NS: u64 = 1024;

struct Bed {
    queue: Queue<TestPacket>,
    ecn: bool,
    next_id: u64,
    dropped: Vec<TestPacket>,
}

impl Bed {
    fn new(ecn: bool) -> Self {
        let aqm = Aqm::Codel(Params {
            target_ns: TARGET_NS,
            interval_ns: INTERVAL_NS,
            ecn,
            ce_threshold_ns: None,
        });
        Self {
            queue: queue(aqm, None, Some(1_000_000)),
            ecn,
            next_id: 0,
            dropped: Vec::new(),
        }
    }

    fn arrive(&mut self, now_ns: u64, packets: u32) {
        for _ in 0..packets {
            let mut packet = TestPacket::new(self.next_id, 0, FRAME_BYTES);
            packet.ecn = self.ecn;
            self.next_id += 1;
            self.queue.enqueue(now_ns, packet, &mut self.dropped);
        }
    }

    fn leave(&mut self, now_ns: u64) -> Option<TestPacket> {
        self.queue.dequeue(now_ns, &mut self.dropped)
    }

    /// A link that takes a packet every `step_ns`; `arrivals` come in the same time. Returns the
    /// times at which packets were dropped or marked.
    fn run(&mut self, from_ns: u64, to_ns: u64, step_ns: u64, arrivals: u32) -> Vec<u64> {
        let mut signals = Vec::new();
        let mut now_ns = from_ns;
        while now_ns < to_ns {
            self.arrive(now_ns, arrivals);
            let before = self.queue.counters();
            self.leave(now_ns);
            let after = self.queue.counters();
            let count = after.dropped_packets + after.marked_packets
                - before.dropped_packets
                - before.marked_packets;
            signals.extend((0..count).map(|_| now_ns));
            now_ns += step_ns;
        }
        signals
    }
}

#[test]
fn a_queue_that_is_shorter_than_the_target_is_never_touched() {
    // RFC 8289 section 4.3: below the target there is no dropping, however long it lasts.
    let mut bed = Bed::new(false);
    bed.arrive(0, 40);
    let signals = bed.run(MS / 10, 3000 * MS, MS / 10, 1); // 4 ms of packets wait
    assert!(signals.is_empty());
}

#[test]
fn a_burst_that_drains_within_an_interval_is_not_touched() {
    let mut bed = Bed::new(false);
    bed.arrive(0, 980);
    let signals = bed.run(MS / 10, 200 * MS, MS / 10, 0); // 98 ms to drain
    assert!(signals.is_empty());
}

#[test]
fn the_first_drop_comes_one_interval_after_the_delay_went_above_the_target() {
    let mut bed = Bed::new(false);
    let step_ns = MS / 10;
    let signals = bed.run(0, 400 * MS, step_ns, 2);
    // Two arrive while one leaves: the one that leaves in step 99 came in step 49, 5 ms before.
    let expected_ns = 99 * step_ns + INTERVAL_NS;
    let first_ns = signals[0];
    assert!(
        first_ns >= expected_ns - 2 * TICK_NS && first_ns <= expected_ns + step_ns,
        "{first_ns}"
    );
}

#[test]
fn one_full_packet_is_spared_however_long_it_waited() {
    // RFC 8289 section 5.2: no drop from a queue of no more than one MTU.
    let mut bed = Bed::new(false);
    let mut now_ns = 0;
    for _ in 0..500 {
        bed.arrive(now_ns, 1);
        now_ns += 50 * MS;
        assert!(bed.leave(now_ns).is_some());
    }
    assert_eq!(bed.queue.counters().dropped_packets, 0);
}

#[test]
fn drops_follow_interval_over_the_square_root_of_their_count() {
    let mut bed = Bed::new(false);
    let signals = bed.run(0, 20_000 * MS, MS / 10, 2);
    assert!(signals.len() > 8000, "{}", signals.len());
    // codel_impl.h takes one Newton step per drop on 16 bits, so the first few intervals are rough
    // (the second is interval/2); from the 16th on it is within a hundredth of the law.
    let mut first = 16;
    while 2 * first < signals.len() {
        let law_ns: f64 = (first..2 * first)
            .map(|count| INTERVAL_NS as f64 / (count as f64).sqrt())
            .sum();
        let took_ns = (signals[2 * first - 1] - signals[first - 1]) as f64;
        let error = took_ns / law_ns - 1.0;
        assert!(error.abs() < 0.01, "drops {first}..{}: {error}", 2 * first);
        first *= 2;
    }
    let start_ns: Vec<_> = signals[..4].iter().map(|&ns| ns - signals[0]).collect();
    let rough_ns = [0.0, 1.0, 1.5, 2.0625].map(|intervals| intervals * INTERVAL_NS as f64);
    for (observed, expected) in start_ns.iter().zip(rough_ns) {
        assert!(
            (*observed as f64 - expected).abs() < 0.2 * MS as f64,
            "{start_ns:?}"
        );
    }
}

#[test]
fn dropping_ends_as_soon_as_the_delay_is_below_the_target() {
    let mut bed = Bed::new(false);
    bed.run(0, 1000 * MS, MS / 10, 2);
    assert!(bed.queue.counters().dropped_packets > 0);
    // The senders stop until 3 ms of packets are left, then send as fast as the link.
    let mut now_ns = 1000 * MS;
    while bed.queue.packets() > 30 {
        now_ns += MS / 10;
        bed.leave(now_ns);
    }
    let quiet = bed.run(now_ns, now_ns + 1000 * MS, MS / 10, 1);
    assert!(quiet.is_empty());
}

/// Drops before, and the times of those after, a relapse `quiet_ns` after the queue was short.
fn relapse(quiet_ns: u64) -> (u64, Vec<u64>) {
    let mut bed = Bed::new(false);
    bed.run(0, 4000 * MS, MS / 10, 2);
    let mut now_ns = 4000 * MS;
    while bed.queue.packets() > 20 {
        now_ns += MS / 10;
        bed.leave(now_ns);
    }
    let before = bed.queue.counters().dropped_packets;
    bed.run(now_ns, now_ns + quiet_ns, MS / 10, 1);
    now_ns += quiet_ns;
    (before, bed.run(now_ns, now_ns + 1000 * MS, MS / 10, 2))
}

#[test]
fn a_relapse_within_sixteen_intervals_resumes_near_the_last_rate() {
    // RFC 8289 section 5.4: count restarts at the drops since the last dropping state began.
    let (before, signals) = relapse(200 * MS);
    let counts = before - 1..before + 39;
    let law_ns: f64 = counts
        .map(|count| INTERVAL_NS as f64 / (count as f64).sqrt())
        .sum();
    let took_ns = (signals[40] - signals[0]) as f64;
    assert!(
        (took_ns / law_ns - 1.0).abs() < 0.02,
        "{took_ns}, not {law_ns}"
    );
}

#[test]
fn a_relapse_after_sixteen_intervals_starts_anew() {
    let (_, signals) = relapse(17 * INTERVAL_NS);
    assert!((signals[1] - signals[0]).abs_diff(INTERVAL_NS) < MS / 5);
}

#[test]
fn with_ecn_marks_come_when_drops_would_and_nothing_is_lost() {
    let (mut dropping, mut marking) = (Bed::new(false), Bed::new(true));
    let drops = dropping.run(0, 3000 * MS, MS / 10, 2);
    let marks = marking.run(0, 3000 * MS, MS / 10, 2);
    assert_eq!(marking.queue.counters().dropped_packets, 0);
    assert_eq!(marks.len(), drops.len());
    for (mark_ns, drop_ns) in marks.iter().zip(&drops) {
        assert!(mark_ns.abs_diff(*drop_ns) <= MS / 10);
    }
}

#[test]
fn a_full_queue_refuses_the_newcomer() {
    let aqm = Aqm::Codel(Params {
        target_ns: TARGET_NS,
        interval_ns: INTERVAL_NS,
        ecn: true,
        ce_threshold_ns: None,
    });
    let mut codel = queue(aqm, None, Some(3));
    let mut dropped = Vec::new();
    for id in 0..5 {
        codel.enqueue(0, TestPacket::new(id, 0, 100).with_ecn(), &mut dropped);
    }
    let ids: Vec<_> = dropped.iter().map(|packet| packet.id).collect();
    assert_eq!(ids, [3, 4]);
}

#[test]
fn packets_that_waited_longer_than_the_ce_threshold_are_marked_at_once_and_none_is_dropped() {
    // codel_impl.h: a mark needs neither an interval above the target nor `ecn`.
    let aqm = Aqm::Codel(Params {
        target_ns: TARGET_NS,
        interval_ns: INTERVAL_NS,
        ecn: false,
        ce_threshold_ns: Some(MS),
    });
    let mut queue = queue(aqm, None, Some(1000));
    let mut dropped = Vec::new();
    let mut waits = |waited_ns: u64, is_ect: bool| {
        for id in 0..2 {
            let mut packet = TestPacket::new(id, 0, FRAME_BYTES);
            packet.ecn = is_ect;
            queue.enqueue(10 * MS, packet, &mut dropped);
        }
        let taken = queue.dequeue(10 * MS + waited_ns, &mut dropped);
        queue.dequeue(10 * MS + waited_ns, &mut dropped);
        taken.expect("none is dropped").marked
    };
    assert!(!waits(MS - TICK_NS, true));
    assert!(waits(MS + 2 * TICK_NS, true));
    assert!(!waits(MS + 2 * TICK_NS, false));
    assert!(dropped.is_empty());
}

#[test]
fn a_packet_that_codel_marks_too_counts_once() {
    let aqm = Aqm::Codel(Params {
        target_ns: TARGET_NS,
        interval_ns: INTERVAL_NS,
        ecn: true,
        ce_threshold_ns: Some(0),
    });
    let mut queue = queue(aqm, None, Some(100_000));
    let mut dropped = Vec::new();
    for step in 1..4000u64 {
        for id in 0..2 {
            let packet = TestPacket::new(id, 0, FRAME_BYTES).with_ecn();
            queue.enqueue(step * MS / 10, packet, &mut dropped);
        }
        queue.dequeue(step * MS / 10 + 2 * TICK_NS, &mut dropped);
        assert!(queue.counters().marked_packets <= step);
    }
    assert!(queue.counters().marked_packets > 3900);
}
