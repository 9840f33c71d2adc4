//! fq: fairness, pacing and limits as sch_fq.c keeps them.

use proptest::prelude::*;

use super::Params;
use crate::kernel::Kernel;
use crate::queue::Aqm;
use crate::queue::Queue;
use crate::testing::{queue, some_kernel, Hand, TestPacket, FRAME_BYTES, MS};

/// Parameters of all kinds.
pub(crate) fn any_params() -> impl Strategy<Value = Params> {
    (1..6000u32, 1..20u32).prop_map(|(quantum_bytes, flow_limit_packets)| Params {
        quantum_bytes,
        flow_limit_packets,
        ce_threshold_ns: (quantum_bytes % 2 == 0).then_some(1_000_000),
        kernel: some_kernel(quantum_bytes as usize),
    })
}

/// The most bytes and packets that may wait, for limits of so many: the limit is of each of three bands, and
/// the fast path holds up to 8 beside (sch_fq.c, fq_enqueue(), fq_fastpath_check()).
pub(crate) fn most_waiting(_: &Params, _: u64, packets: u64) -> (u64, u64) {
    (u64::MAX, packets.saturating_mul(3).saturating_add(8))
}

const S: u64 = 1000 * MS;

/// fq of this release, without limits.
fn of(kernel: Kernel) -> Hand {
    Hand::new(Aqm::Fq(Params {
        quantum_bytes: 2 * FRAME_BYTES,
        flow_limit_packets: 10_000,
        ce_threshold_ns: None,
        kernel: Some(kernel),
    }))
}

fn full(id: u64, flow: u32) -> TestPacket {
    TestPacket::new(id, flow, FRAME_BYTES)
}

fn fq(limit_packets: u32, flow_limit_packets: u32) -> Queue<TestPacket> {
    let aqm = Aqm::Fq(Params {
        quantum_bytes: 2 * FRAME_BYTES,
        flow_limit_packets,
        ce_threshold_ns: None,
        kernel: None,
    });
    queue(aqm, None, Some(limit_packets))
}

#[test]
fn backlogged_flows_share_the_bytes_whatever_their_packets_sizes() {
    let mut queue = fq(1_000_000, 1_000_000);
    let mut dropped = Vec::new();
    let sizes = [1514, 700, 90];
    for id in 0..60_000 {
        for (flow, &bytes) in sizes.iter().enumerate() {
            queue.enqueue(0, TestPacket::new(id, flow as u32, bytes), &mut dropped);
        }
    }
    let mut sent = [0i64; 3];
    for index in 0..30_000 {
        let packet = queue.dequeue(MS, &mut dropped).expect("backlogged");
        sent[packet.flow as usize] += i64::from(packet.bytes);
        // The initial credit is 10 full packets for each; afterwards a quantum and a packet.
        if index > 400 {
            let most = sent.iter().max().expect("three");
            let least = sent.iter().min().expect("three");
            assert!(
                most - least <= 3 * i64::from(FRAME_BYTES) + 8 * 1514,
                "{sent:?}"
            );
        }
    }
    let share = sent[2] as f64 / sent.iter().sum::<i64>() as f64;
    assert!((share - 1.0 / 3.0).abs() < 0.002, "{share}");
}

#[test]
fn before_bands_a_new_flow_sends_ten_full_packets_before_the_old_ones_get_their_turn() {
    // fq_dequeue() up to 6.6. initial_quantum = 10 full packets, then what flow 1 had left, then a quantum
    // of two each.
    for kernel in [Kernel::Linux5_13, Kernel::Linux6_1, Kernel::Linux6_4] {
        let mut hand = of(kernel);
        hand.offer(0, full(0, 1), 200);
        hand.ids(0, 51);
        hand.offer(0, full(0, 2), 30);
        let order = [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 2, 2, 1, 1, 2];
        assert_eq!(hand.flows(0, order.len()), order, "{kernel:?}");
    }
}

#[test]
fn since_bands_a_new_flow_waits_until_the_band_of_the_old_ones_has_used_its_credit() {
    // fq_enqueue() calls fq_flow_add_tail() before it sets f->band: a flow that appears joins band 0. All
    // flows here are of band 1, which is served first: 196,608 bytes are 130 full packets.
    for kernel in [Kernel::Linux6_12, Kernel::Linux6_12_117, Kernel::Linux7_3] {
        let mut hand = of(kernel);
        hand.offer(0, full(0, 1), 400);
        // Eight of the fast path, ten of band 0, and the first of band 1.
        assert_eq!(hand.flows(0, 8 + 10 + 1), [1; 19]);
        hand.offer(0, full(1000, 2), 30);
        assert_eq!(hand.flows(0, 129), [1; 129], "{kernel:?}");
        assert_eq!(hand.flows(0, 10), [2; 10], "{kernel:?}");
        // Both are old flows of band 1 now.
        assert_eq!(hand.flows(0, 6), [2, 2, 1, 1, 2, 2], "{kernel:?}");
    }
}

#[test]
fn a_flow_that_has_had_a_packet_comes_back_in_its_own_band() {
    let mut hand = of(Kernel::Linux7_3);
    hand.offer(0, full(0, 1), 400);
    hand.ids(0, 19);
    hand.offer(0, TestPacket::new(1000, 2, 100), 1);
    hand.ids(0, 129 + 1);
    // It is found empty as a new flow of band 0, then as an old one of band 1.
    hand.ids(0, 10);
    hand.offer(0, TestPacket::new(1001, 2, 100), 1);
    assert_eq!(hand.ids(0, 1), [1001]);
}

#[test]
fn flows_wait_in_bands_that_the_tos_bits_of_their_codepoint_choose() {
    // ip_forward() and rt_tos2priority(): AF12 is interactive, band 0, with 9 of 13 bytes; best effort, CS5
    // and EF are of band 1, with 3; AF11 is bulk, band 2 (sch_default_prio2band, fq_init()).
    let mut hand = of(Kernel::Linux7_3);
    for (flow, dscp) in [(1, 12), (2, 0), (3, 40), (4, 46), (5, 10)] {
        let packet = TestPacket {
            dscp,
            ..full(0, flow)
        };
        hand.offer(0, packet, 9000);
    }
    hand.ids(0, 200); // the beginnings of the flows, in band 0
    let mut sent = [0.0; 6];
    for flow in hand.flows(0, 11_000) {
        sent[flow as usize] += 1.0 / 11_000.0;
    }
    let near = |share: f64, thirteenths: f64| (share * 13.0 - thirteenths).abs() < 0.25;
    assert!(near(sent[1], 9.0) && near(sent[5], 1.0), "{sent:?}");
    assert!(sent[2..5].iter().all(|&share| near(share, 1.0)), "{sent:?}");
}

#[test]
fn the_limit_is_of_each_band() {
    // fq_enqueue(): q->band_pkt_count[band] >= sch->limit.
    let mut queue = fq(20, 100);
    let mut dropped = Vec::new();
    for id in 0..90 {
        let mut packet = full(id, id as u32).send_at(S);
        packet.dscp = [0, 10, 12][id as usize % 3];
        queue.enqueue(MS, packet, &mut dropped);
    }
    assert_eq!((dropped.len(), queue.packets()), (30, 60));
}

#[test]
fn a_flow_that_paused_for_40_ms_gets_a_full_quantum_again() {
    let packets_in_a_row_after = |pause_ns: u64| {
        let mut queue = fq(10_000, 1000);
        let mut dropped = Vec::new();
        for id in 0..500 {
            queue.enqueue(0, TestPacket::new(id, 1, FRAME_BYTES), &mut dropped);
        }
        // Flow 2 uses all but 100 bytes of its initial credit, and is found empty.
        for id in 0..9 {
            queue.enqueue(0, TestPacket::new(id, 2, FRAME_BYTES), &mut dropped);
        }
        let last = TestPacket::new(9, 2, FRAME_BYTES - 100);
        queue.enqueue(0, last, &mut dropped);
        for _ in 0..101 {
            queue.dequeue(0, &mut dropped);
        }
        for id in 0..10 {
            let packet = TestPacket::new(id, 2, FRAME_BYTES);
            queue.enqueue(pause_ns, packet, &mut dropped);
        }
        (0..10)
            .map_while(|_| queue.dequeue(pause_ns, &mut dropped))
            .take_while(|packet| packet.flow == 2)
            .count()
    };
    assert_eq!(packets_in_a_row_after(39 * MS), 1);
    assert_eq!(packets_in_a_row_after(41 * MS), 2);
}

#[test]
fn eight_packets_of_an_idle_queue_bypass_the_flows() {
    // fq_fastpath_check() since Linux 6.7.
    let mut queue = fq(10_000, 1000);
    let mut dropped = Vec::new();
    for id in 0..40 {
        queue.enqueue(0, TestPacket::new(id, 1, FRAME_BYTES), &mut dropped);
    }
    queue.enqueue(0, TestPacket::new(0, 2, FRAME_BYTES), &mut dropped);
    let before = (0..40)
        .map_while(|_| queue.dequeue(0, &mut dropped))
        .take_while(|packet| packet.flow == 1)
        .count();
    assert_eq!(before, 8 + 10);
}

#[test]
fn a_flow_beyond_its_limit_loses_only_its_own_packets() {
    let mut queue = fq(10_000, 100);
    let mut dropped = Vec::new();
    for id in 0..150 {
        let packet = TestPacket::new(id, 1, FRAME_BYTES).send_at(S);
        queue.enqueue(MS, packet, &mut dropped);
    }
    queue.enqueue(
        MS,
        TestPacket::new(0, 2, FRAME_BYTES).send_at(S),
        &mut dropped,
    );
    let ids: Vec<_> = dropped
        .iter()
        .map(|packet| (packet.flow, packet.id))
        .collect();
    assert_eq!(ids, (100..150).map(|id| (1, id)).collect::<Vec<_>>());
}

#[test]
fn the_limit_of_all_refuses_the_newcomer() {
    let mut queue = fq(20, 100);
    let mut dropped = Vec::new();
    for id in 0..30 {
        let packet = TestPacket::new(id, id as u32, FRAME_BYTES).send_at(S);
        queue.enqueue(MS, packet, &mut dropped);
    }
    assert_eq!(dropped.len(), 10);
    assert_eq!(queue.packets(), 20);
}

#[test]
fn a_packet_stamped_beyond_the_horizon_is_dropped() {
    let mut queue = fq(100, 100);
    let mut dropped = Vec::new();
    queue.enqueue(
        MS,
        TestPacket::new(0, 1, 100).send_at(MS + 10 * S),
        &mut dropped,
    );
    queue.enqueue(
        MS,
        TestPacket::new(1, 1, 100).send_at(MS + 10 * S + 1),
        &mut dropped,
    );
    assert_eq!(
        dropped.iter().map(|packet| packet.id).collect::<Vec<_>>(),
        [1]
    );
}

#[test]
fn a_paced_flow_does_not_hold_up_the_others() {
    let mut queue = fq(100, 100);
    let mut dropped = Vec::new();
    for id in 0..10 {
        queue.enqueue(
            MS,
            TestPacket::new(id, 1, 1514).send_at(S + id * MS),
            &mut dropped,
        );
        queue.enqueue(MS, TestPacket::new(id, 2, 1514), &mut dropped);
    }
    for _ in 0..10 {
        let packet = queue.dequeue(2 * MS, &mut dropped).expect("flow 2 may go");
        assert_eq!(packet.flow, 2);
    }
    assert_eq!(queue.dequeue(2 * MS, &mut dropped), None);
    assert_eq!(queue.next_ready_ns(2 * MS), Some(S));
}

proptest! {
    #[test]
    fn no_packet_leaves_before_its_time_and_the_next_time_is_told_exactly(
        stamps in prop::collection::vec((0..5u32, 0..2 * MS), 1..200),
        gap_ns in 1..MS
    ) {
        let mut queue = fq(10_000, 10_000);
        let mut dropped = Vec::new();
        let mut latest = [1u64; 5];
        let mut waiting = Vec::new();
        let (mut now_ns, mut sent) = (1, 0);
        for (id, (flow, ahead_ns)) in stamps.iter().enumerate() {
            let latest = &mut latest[*flow as usize];
            *latest = now_ns.max(*latest) + ahead_ns;
            let packet = TestPacket::new(id as u64, *flow, 500).send_at(*latest);
            waiting.push(packet);
            queue.enqueue(now_ns, packet, &mut dropped);
            now_ns += gap_ns;
            while let Some(packet) = queue.dequeue(now_ns, &mut dropped) {
                prop_assert!(packet.send_at_ns <= now_ns, "early");
                let ahead = waiting.iter().position(|other| other.flow == packet.flow);
                let oldest = ahead.map(|index| waiting.remove(index));
                prop_assert_eq!(oldest, Some(packet), "out of order");
                sent += 1;
            }
            let earliest_ns = waiting.iter().map(|packet| packet.send_at_ns).min();
            prop_assert_eq!(queue.next_ready_ns(now_ns), earliest_ns);
        }
        prop_assert_eq!(sent + waiting.len(), stamps.len());
        prop_assert!(dropped.is_empty());
    }
}

#[test]
fn within_a_flow_the_earlier_stamp_leaves_first() {
    let mut queue = fq(100, 100);
    let mut dropped = Vec::new();
    for (id, at_ms) in [(0, 30), (1, 50), (2, 10), (3, 40), (4, 30)] {
        let packet = TestPacket::new(id, 1, 100).send_at(at_ms * MS);
        queue.enqueue(MS, packet, &mut dropped);
    }
    let order: Vec<_> = (0..5)
        .filter_map(|_| queue.dequeue(S, &mut dropped))
        .map(|packet| packet.id)
        .collect();
    assert_eq!(order, [2, 0, 4, 3, 1]);
}

#[test]
fn packets_that_leave_later_than_the_ce_threshold_after_their_time_are_marked() {
    // fq_dequeue(): now - time_next_packet > ce_threshold; a packet of the fast path never is.
    let aqm = Aqm::Fq(Params {
        quantum_bytes: 2 * FRAME_BYTES,
        flow_limit_packets: 100,
        ce_threshold_ns: Some(MS),
        kernel: None,
    });
    let mut queue = queue(aqm, None, Some(1000));
    let mut dropped = Vec::new();
    let later = |at_ns| TestPacket::new(0, 1, FRAME_BYTES).with_ecn().send_at(at_ns);
    for at_ns in [5 * MS, 6 * MS, 7 * MS] {
        queue.enqueue(0, later(at_ns), &mut dropped);
    }
    let mut is_marked = |now_ns| {
        queue
            .dequeue(now_ns, &mut dropped)
            .map(|packet| packet.marked)
    };
    assert_eq!(is_marked(6 * MS), Some(false));
    assert_eq!(is_marked(7 * MS + 1), Some(true));
    assert_eq!(is_marked(8 * MS), Some(false));
}

#[test]
fn a_new_flow_that_is_found_empty_waits_behind_the_old_ones() {
    // fq_dequeue(): "force a pass through old_flows to prevent starvation". Eight packets take the fast path;
    // flow 1 then has credit for ten, becomes an old one and gets two more (a quantum of two full packets).
    let mut hand = Hand::new(Aqm::Fq(Params {
        quantum_bytes: 2 * FRAME_BYTES,
        flow_limit_packets: 100,
        ce_threshold_ns: None,
        kernel: None,
    }));
    hand.offer(0, TestPacket::new(0, 1, FRAME_BYTES), 60);
    assert_eq!(hand.flows(0, 18), [1; 18]);
    hand.offer(0, TestPacket::new(100, 2, 100), 1);
    assert_eq!(hand.flows(0, 2), [2, 1]);
    hand.offer(0, TestPacket::new(101, 2, 100), 1);
    assert_eq!(hand.flows(0, 5), [1, 2, 1, 1, 1]);
    // As an old one found empty it left: it is new again.
    hand.offer(0, TestPacket::new(102, 2, 100), 1);
    assert_eq!(hand.flows(0, 2), [2, 1]);
}

#[test]
fn before_bands_a_new_flow_that_is_found_empty_is_new_again_while_there_are_no_old_ones() {
    // fq_dequeue(): "(head == &q->new_flows) && q->old_flows.first". Flow 1 is found empty before flow 2 is
    // served, so that it comes before flow 3.
    let mut hand = of(Kernel::Linux6_1);
    hand.offer(0, full(0, 1), 1);
    assert_eq!(hand.flows(0, 1), [1]);
    hand.offer(0, full(10, 2), 2);
    assert_eq!(hand.flows(0, 1), [2]);
    hand.offer(0, full(20, 1), 1);
    hand.offer(0, full(30, 3), 1);
    assert_eq!(hand.flows(0, 3), [2, 1, 3]);
}

#[test]
fn a_flow_goes_on_while_it_has_credit() {
    // fq_dequeue(): while (f->credit <= 0) the next. Of 15,140 two packets of 7000 leave 1140, a third -5860.
    // At a quantum of 7000 it then has 1140 and -5860 in turn, the other one 0 after each packet.
    let mut hand = Hand::new(Aqm::Fq(Params {
        quantum_bytes: 7000,
        flow_limit_packets: 100,
        ce_threshold_ns: None,
        kernel: None,
    }));
    hand.offer(0, TestPacket::new(0, 9, 10), 8); // the fast path
    hand.offer(0, TestPacket::new(10, 1, 7000), 20);
    hand.offer(0, TestPacket::new(100, 2, 15_140), 1);
    hand.offer(0, TestPacket::new(101, 2, 7000), 20);
    hand.ids(0, 8);
    let order = [1, 1, 1, 2, 1, 2, 1, 2, 1, 2];
    assert_eq!(hand.flows(0, order.len()), order);
}

#[test]
fn the_fast_path_is_for_packets_that_may_go_now_while_no_flow_is_ready() {
    // fq_fastpath_check(). The fast path leaves first.
    let mut hand = Hand::new(Aqm::Fq(Params {
        quantum_bytes: 2 * FRAME_BYTES,
        flow_limit_packets: 100,
        ce_threshold_ns: None,
        kernel: None,
    }));
    // One stamped in a ns is of a flow, which is throttled at the next question.
    hand.offer(MS, TestPacket::new(0, 1, 100).send_at(MS + 1), 1);
    assert_eq!(hand.take(MS), None);
    hand.offer(MS, TestPacket::new(1, 1, 100).send_at(MS), 1);
    assert_eq!(hand.ids(MS, 2), [1]);
    // At its time the flow is about to be ready, so that what comes then queues behind it.
    hand.offer(MS + 1, TestPacket::new(2, 2, 100), 1);
    assert_eq!(hand.ids(MS + 1, 3), [2, 0]);
    assert_eq!(hand.queue.next_ready_ns(MS + 1), None);
}

#[test]
fn packets_of_the_fast_path_are_not_of_the_limit() {
    // fq_enqueue(): q->band_pkt_count counts those of flows.
    let mut hand = Hand::limited(
        Aqm::Fq(Params {
            quantum_bytes: 2 * FRAME_BYTES,
            flow_limit_packets: 100,
            ce_threshold_ns: None,
            kernel: None,
        }),
        None,
        Some(2),
    );
    hand.offer(0, TestPacket::new(0, 1, 100), 11);
    assert_eq!(hand.dropped(), [10]);
}

#[test]
fn credit_is_refilled_after_more_than_40_ms_and_never_taken() {
    // fq_enqueue(): time_after(jiffies, f->age + q->flow_refill_delay), max_t(u32, f->credit, q->quantum).
    let in_a_row = |used: u32, pause_ns: u64| {
        let mut hand = Hand::new(Aqm::Fq(Params {
            quantum_bytes: 1000,
            flow_limit_packets: 1000,
            ce_threshold_ns: None,
            kernel: None,
        }));
        hand.offer(0, TestPacket::new(0, 1, 100), 8); // the fast path
        hand.offer(0, TestPacket::new(8, 1, 1000), 500);
        hand.offer(0, TestPacket::new(600, 2, used), 1);
        // Up to the moment at which flow 2 is found empty as an old flow.
        hand.ids(0, 8 + 16 + 1 + 2);
        hand.offer(pause_ns, TestPacket::new(700, 2, 500), 40);
        let flows = hand.flows(pause_ns, 40);
        flows.iter().take_while(|&&flow| flow == 2).count()
    };
    // Flow 1 then owes 860, so that flow 2 has a quantum of 1000 more before it.
    assert_eq!(in_a_row(15_140 - 400, 40 * MS), 1 + 2);
    assert_eq!(in_a_row(15_140 - 400, 40 * MS + 1), 2 + 2);
    assert_eq!(in_a_row(15_140 - 1400, 41 * MS), 3 + 2);
}
