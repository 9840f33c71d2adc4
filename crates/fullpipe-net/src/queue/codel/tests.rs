//! CoDel against RFC 8289 and against its control law computed in double precision.

use proptest::prelude::*;

use super::Params;
use crate::queue::Aqm;
use crate::queue::Queue;
use crate::testing::{queue, some_kernel, Hand, TestPacket, FRAME_BYTES, MS};

/// Parameters of all kinds.
pub(crate) fn any_params() -> impl Strategy<Value = Params> {
    (1..10_000_000u64, any::<bool>()).prop_map(|(target_ns, ecn)| Params {
        target_ns,
        interval_ns: 20 * target_ns,
        ecn,
        ce_threshold_ns: ecn.then_some(target_ns / 2),
        kernel: some_kernel(target_ns as usize),
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
            kernel: None,
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
        kernel: None,
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
        kernel: None,
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
        kernel: None,
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

/// A clock tick of CoDel, as the times of the tables below count.
fn at(ticks: u64) -> u64 {
    ticks * TICK_NS
}

/// A target of 100 ticks and an interval of 2^16.
fn in_ticks(ecn: bool, ce_threshold: Option<u64>) -> Hand {
    Hand::new(Aqm::Codel(Params {
        target_ns: at(100),
        interval_ns: at(65_536),
        ecn,
        ce_threshold_ns: ce_threshold.map(at),
        kernel: None,
    }))
}

fn full(id: u64) -> TestPacket {
    TestPacket::new(id, 0, FRAME_BYTES)
}

/// Takes a packet at each of these ticks: which were dropped for it, and which left.
fn check(hand: &mut Hand, table: &[(u64, &[u64], u64)]) {
    for &(tick, dropped, left) in table {
        let packet = hand.take(at(tick)).expect("backlogged");
        assert_eq!(
            (hand.dropped().as_slice(), packet.id),
            (dropped, left),
            "tick {tick}"
        );
    }
}

#[test]
fn drops_come_at_the_ticks_of_codel_impl_h() {
    // codel_should_drop(): a wait of the target counts as above; what is dropped comes after, not at, the
    // end of the interval. codel_control_law() adds interval * rec_inv_sqrt >> 16, and codel_Newton_step()
    // makes of 65535 at count 2: 32769, then 36864, 31968, 28935.
    let mut hand = in_ticks(false, None);
    hand.offer(0, full(0), 1000);
    check(
        &mut hand,
        &[
            (99, &[], 0),
            (100, &[], 1), // the interval ends at 65636
            (65_636, &[], 2),
            (65_637, &[3], 4), // next: + 65535
            (131_171, &[], 5),
            (131_172, &[6], 7), // + 32769
            (163_940, &[], 8),
            (163_941, &[9], 10), // + 36864
            (200_804, &[], 11),
            (200_805, &[12], 13), // + 31968
            (232_772, &[], 14),
            // Late by two drops, + 28935 and + 26481: both are made up for, the third comes at 288189.
            (288_188, &[15, 16], 17),
            (288_189, &[18], 19),
        ],
    );
}

#[test]
fn marks_come_at_the_same_ticks_one_at_a_time() {
    // codel_dequeue(): a mark sets the next time and ends the loop, however late it is.
    let mut hand = in_ticks(true, None);
    hand.offer(0, full(0).with_ecn(), 1000);
    let mut marks = Vec::new();
    for tick in [
        100, 65_636, 65_637, 131_171, 131_172, 200_804, 200_804, 200_804, 200_805,
    ] {
        let packet = hand.take(at(tick)).expect("backlogged");
        marks.push((tick, packet.marked));
    }
    let expected = [
        (100, false),
        (65_636, false),
        (65_637, true),
        (131_171, false),
        (131_172, true),
        (200_804, true), // of 163941
        (200_804, false),
        (200_804, false),
        (200_805, true),
    ];
    assert_eq!(marks, expected);
    assert!(hand.dropped().is_empty());
}

/// A dropping state of `drops`, one packet that waited less than the target, and a new one that is entered
/// at `again`. Returns the tick of its second drop.
fn second_drop(drops: usize, again: u64) -> u64 {
    let ticks = &[65_637, 131_172, 163_941, 200_805][..drops];
    let mut hand = in_ticks(false, None);
    hand.offer(0, full(0), 1 + 2 * drops as u64);
    hand.take(at(100));
    let last = ticks[drops - 1];
    for &tick in ticks {
        if tick == last {
            hand.offer(at(last), full(100), 3);
        }
        hand.take(at(tick));
    }
    assert_eq!(hand.dropped().len(), drops);
    hand.ids(at(last + 1), 3);
    let begin = again - 65_537;
    hand.offer(at(begin - 100), full(300), 100_000);
    for tick in [begin, again - 1] {
        hand.take(at(tick));
    }
    assert_eq!(hand.dropped().len(), 0, "the new interval has not ended");
    hand.take(at(again));
    assert_eq!(hand.dropped().len(), 1);
    (again + 1..)
        .find(|&tick| {
            hand.take(at(tick));
            !hand.dropped().is_empty()
        })
        .expect("it stays late")
}

#[test]
fn a_new_dropping_state_takes_up_the_last_ones_count_if_that_grew_by_more_than_one() {
    // codel_dequeue(): delta = count - lastcount; if delta > 1 and it is recent, count = delta and one
    // Newton step, else count = 1 and 65535. One drop: delta is 0, two: 1, three: 2.
    let again = 300_000;
    assert_eq!(second_drop(1, again) - again, 65_535);
    assert_eq!(second_drop(2, again) - again, 65_535);
    // From 36864 a step at count 2 gives 43632.
    assert_eq!(second_drop(3, again) - again, 43_632);
}

#[test]
fn a_dropping_state_is_recent_for_less_than_sixteen_intervals_after_its_next_drop_was_due() {
    let due = 200_805;
    assert_eq!(
        second_drop(3, due + 16 * 65_536 - 1) - (due + 16 * 65_536 - 1),
        43_632
    );
    assert_eq!(
        second_drop(3, due + 16 * 65_536) - (due + 16 * 65_536),
        65_535
    );
}

#[test]
fn a_backlog_of_one_mtu_is_spared_and_ends_the_interval() {
    // codel_should_drop(): *backlog <= params->mtu, of what is behind the packet.
    let dropped = |behind: u32| {
        let mut hand = in_ticks(false, None);
        hand.offer(0, full(0), 3);
        hand.offer(0, TestPacket::new(3, 0, behind), 1);
        hand.take(at(200));
        hand.take(at(70_000));
        hand.dropped();
        // The last but one, with so many bytes behind it.
        let mut hand = in_ticks(false, None);
        hand.offer(0, full(0), 2);
        hand.offer(0, TestPacket::new(3, 0, behind), 1);
        hand.take(at(200));
        hand.take(at(70_000));
        hand.dropped().len()
    };
    assert_eq!(dropped(FRAME_BYTES), 0);
    assert_eq!(dropped(FRAME_BYTES + 1), 1);
}

#[test]
fn the_interval_begins_anew_after_a_wait_below_the_target_or_a_short_backlog() {
    let mut hand = in_ticks(false, None);
    hand.offer(0, full(0), 2);
    hand.take(at(200)); // one behind it: spared
    hand.take(at(200));
    hand.offer(at(300), full(10), 10);
    hand.take(at(399)); // waited 99
    hand.take(at(400)); // the interval ends at 65936
    hand.take(at(65_936));
    assert_eq!(hand.dropped().len(), 0);
    hand.take(at(65_937));
    assert_eq!(hand.dropped().len(), 1);
}

#[test]
fn a_wait_of_the_ce_threshold_is_not_above_it() {
    // codel_dequeue(): codel_time_after(vars->ldelay, params->ce_threshold).
    for (waited, marked) in [(49, false), (50, false), (51, true)] {
        let mut hand = in_ticks(false, Some(50));
        hand.offer(at(7), full(0).with_ecn(), 5);
        let packet = hand.take(at(7 + waited)).expect("backlogged");
        assert_eq!(packet.marked, marked, "{waited}");
    }
}
