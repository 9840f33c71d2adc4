//! CAKE: what its authors promise (LANMAN 2018, tc-cake(8)) and what sch_cake.c does.

use proptest::prelude::*;

use super::Cake;
use super::{AckFilter, Framing, Isolation, Params, Tins};
use crate::packet::PureAck;
use crate::queue::discipline::{Discipline, Environment};
use crate::queue::{Aqm, Qdisc, Queue};
use crate::testing::{Hand, TestPacket, FRAME_BYTES, MS, MTU_BYTES};

/// Parameters of all kinds.
pub(crate) fn any_params() -> impl Strategy<Value = Params> {
    let tins = prop::sample::select(vec![
        Tins::Besteffort,
        Tins::Diffserv3,
        Tins::Diffserv4,
        Tins::Diffserv8,
        Tins::Precedence,
    ]);
    let isolation = prop::sample::select(vec![
        Isolation::Flowblind,
        Isolation::Hosts,
        Isolation::Flows,
        Isolation::DualSrchost,
        Isolation::TripleIsolate,
    ]);
    let ack_filter = prop::sample::select(vec![
        AckFilter::No,
        AckFilter::Filter,
        AckFilter::Aggressive,
    ]);
    let framing = prop::sample::select(vec![Framing::None, Framing::Atm, Framing::Ptm]);
    let overhead = prop::option::of(-64..256i32);
    let modes = (tins, isolation, ack_filter, framing);
    (1..100_000_000u64, modes, any::<[bool; 4]>(), overhead).prop_map(
        |(rtt_ns, (tins, isolation, ack_filter, framing), flags, overhead_bytes)| Params {
            rtt_ns,
            target_ns: rtt_ns / 20,
            shapes: flags[0],
            tins,
            isolation,
            ack_filter,
            overhead_bytes,
            mpu_bytes: 0,
            framing,
            ingress: flags[1],
            autorate_ingress: flags[0] && flags[2],
            wash: flags[3],
            split_gso: false,
        },
    )
}

/// The most bytes and packets that may wait, for limits of so many.
pub(crate) fn most_waiting(_: &Params, bytes: u64, _: u64) -> (u64, u64) {
    (bytes, u64::MAX)
}

const RATE_BPS: u64 = 20_000_000;
const CS1: u8 = 8;
const AF41: u8 = 34;
const EF: u8 = 46;

#[derive(Clone, Copy)]
struct Options {
    tins: Tins,
    isolation: Isolation,
    ack_filter: AckFilter,
    memory_limit: Option<u64>,
    shapes: bool,
    wash: bool,
}

const PLAIN: Options = Options {
    tins: Tins::Besteffort,
    isolation: Isolation::Flows,
    ack_filter: AckFilter::No,
    memory_limit: None,
    shapes: true,
    wash: false,
};

fn cake(options: Options) -> Queue<TestPacket> {
    let qdisc = Qdisc {
        limit_bytes: options.memory_limit,
        limit_packets: None,
        aqm: Aqm::Cake(Params {
            rtt_ns: 100 * MS,
            target_ns: 5 * MS,
            shapes: options.shapes,
            tins: options.tins,
            isolation: options.isolation,
            ack_filter: options.ack_filter,
            overhead_bytes: None,
            mpu_bytes: 0,
            framing: Framing::None,
            ingress: false,
            autorate_ingress: false,
            wash: options.wash,
            split_gso: true,
        }),
    };
    Queue::new(&qdisc, RATE_BPS, MTU_BYTES, 1)
}

/// Keeps every source at `depth` packets while the queue is drained; bytes that each got within
/// `duration_ns`. What COBALT drops is replaced at once.
fn drain(
    queue: &mut Queue<TestPacket>,
    sources: &[TestPacket],
    depth: usize,
    duration_ns: u64,
) -> Vec<u64> {
    let mut sent = vec![0u64; sources.len()];
    let mut waiting = vec![0usize; sources.len()];
    let mut dropped = Vec::new();
    let (mut now_ns, mut id) = (MS, 0);
    while now_ns < duration_ns {
        for packet in dropped.drain(..) {
            waiting[source_of(sources, &packet)] -= 1;
        }
        for (source, waiting) in sources.iter().zip(&mut waiting) {
            while *waiting < depth {
                id += 1;
                queue.enqueue(now_ns, TestPacket { id, ..*source }, &mut dropped);
                *waiting += 1;
            }
        }
        now_ns = queue.next_ready_ns(now_ns).expect("backlogged");
        if let Some(packet) = queue.dequeue(now_ns, &mut dropped) {
            let source = source_of(sources, &packet);
            sent[source] += u64::from(packet.bytes);
            waiting[source] -= 1;
        }
    }
    sent
}

fn source_of(sources: &[TestPacket], packet: &TestPacket) -> usize {
    sources
        .iter()
        .position(|source| source.flow == packet.flow)
        .expect("one of the sources")
}

fn source(flow: u32, hosts: (u32, u32), dscp: u8) -> TestPacket {
    let mut packet = TestPacket::new(0, flow, FRAME_BYTES);
    packet.hosts = hosts;
    packet.dscp = dscp;
    packet
}

fn share(sent: &[u64], of: std::ops::Range<usize>) -> f64 {
    sent[of].iter().sum::<u64>() as f64 / sent.iter().sum::<u64>() as f64
}

#[test]
fn the_shaper_keeps_its_rate_without_bursts() {
    let mut queue = cake(PLAIN);
    let sent = drain(&mut queue, &[source(1, (0, 0), 0)], 20, 5000 * MS);
    let wanted = RATE_BPS as f64 / 8.0 * 4.999;
    assert!((sent[0] as f64 / wanted - 1.0).abs() < 0.001, "{sent:?}");
    // Idle for a second: one packet goes at once, the next one in its time.
    let mut queue = cake(PLAIN);
    let mut dropped = Vec::new();
    for id in 0..2 {
        queue.enqueue(1000 * MS, TestPacket::new(id, 1, FRAME_BYTES), &mut dropped);
    }
    assert!(queue.dequeue(1000 * MS, &mut dropped).is_some());
    let packet_ns = u64::from(FRAME_BYTES) * 8_000_000_000 / RATE_BPS;
    let gap_ns = queue.next_ready_ns(1000 * MS).expect("one waits") - 1000 * MS;
    assert!(gap_ns.abs_diff(packet_ns) <= 1, "{gap_ns}");
}

#[test]
fn flows_share_the_bytes_whatever_their_packets_sizes() {
    let mut queue = cake(PLAIN);
    let mut sources = [1, 2, 3].map(|flow| source(flow, (0, 0), 0));
    for (source, bytes) in sources.iter_mut().zip([1514, 700, 120]) {
        source.bytes = bytes;
    }
    let sent = drain(&mut queue, &sources, 200, 10_000 * MS);
    for flow in 0..3 {
        assert!(
            (share(&sent, flow..flow + 1) - 1.0 / 3.0).abs() < 0.005,
            "{sent:?}"
        );
    }
}

#[test]
fn a_host_with_one_flow_gets_as_much_as_one_with_eight() {
    // One flow of host 1, eight of host 2; which side the hosts are on depends on the mode.
    let flows = |by_source: bool| -> Vec<TestPacket> {
        (0..9)
            .map(|flow| {
                let host = if flow == 0 { 1 } else { 2 };
                let hosts = if by_source { (host, 9) } else { (9, host) };
                source(flow, hosts, 0)
            })
            .collect()
    };
    for (isolation, by_source) in [
        (Isolation::DualSrchost, true),
        (Isolation::DualDsthost, false),
        (Isolation::Srchost, true),
        (Isolation::Dsthost, false),
        (Isolation::Hosts, true),
        (Isolation::Hosts, false),
    ] {
        let mut queue = cake(Options { isolation, ..PLAIN });
        let sent = drain(&mut queue, &flows(by_source), 40, 20_000 * MS);
        let alone = share(&sent, 0..1);
        assert!((alone - 0.5).abs() < 0.01, "{isolation:?}: {alone}");
        // Within the busy host the eight are alike where flows are told apart.
        if matches!(isolation, Isolation::DualSrchost | Isolation::DualDsthost) {
            let eighth = share(&sent, 1..2);
            assert!(
                (eighth - 1.0 / 16.0).abs() < 0.005,
                "{isolation:?}: {eighth}"
            );
        }
    }
    for isolation in [Isolation::Flows, Isolation::DualDsthost] {
        let mut queue = cake(Options { isolation, ..PLAIN });
        let sent = drain(&mut queue, &flows(true), 40, 20_000 * MS);
        assert!(
            (share(&sent, 0..1) - 1.0 / 9.0).abs() < 0.005,
            "{isolation:?}"
        );
    }
}

#[test]
fn triple_isolation_divides_by_the_busier_of_both_hosts() {
    // Host 1 sends one flow to host 9; host 2 sends eight to eight others: by sources.
    let sources: Vec<_> = (0..9)
        .map(|flow| source(flow, if flow == 0 { (1, 9) } else { (2, 10 + flow) }, 0))
        .collect();
    let triple = Options {
        isolation: Isolation::TripleIsolate,
        ..PLAIN
    };
    let sent = drain(&mut cake(triple), &sources, 40, 20_000 * MS);
    assert!((share(&sent, 0..1) - 0.5).abs() < 0.01);
    // All nine to one destination: its load is nine for everyone.
    let sources: Vec<_> = (0..9)
        .map(|flow| source(flow, (if flow == 0 { 1 } else { 2 }, 9), 0))
        .collect();
    let sent = drain(&mut cake(triple), &sources, 40, 20_000 * MS);
    assert!((share(&sent, 0..1) - 1.0 / 9.0).abs() < 0.01);
}

#[test]
fn no_host_modes_put_all_flows_of_a_host_into_one_queue_and_flowblind_all_into_one() {
    let options = Options {
        isolation: Isolation::Flowblind,
        ..PLAIN
    };
    let mut queue = cake(options);
    let mut dropped = Vec::new();
    for id in 0..20 {
        queue.enqueue(MS, TestPacket::new(id, id as u32, 100), &mut dropped);
    }
    let mut now_ns = MS;
    let mut order = Vec::new();
    while let Some(ready_ns) = queue.next_ready_ns(now_ns) {
        now_ns = ready_ns;
        order.extend(queue.dequeue(now_ns, &mut dropped).map(|packet| packet.id));
    }
    assert_eq!(order, (0..20).collect::<Vec<_>>());
}

#[test]
fn under_load_each_tin_of_diffserv4_keeps_its_threshold_and_best_effort_takes_the_rest() {
    let options = Options {
        tins: Tins::Diffserv4,
        ..PLAIN
    };
    let sources = [0, CS1, AF41, EF].map(|dscp| source(u32::from(dscp), (0, 0), dscp));
    let sent = drain(&mut cake(options), &sources, 40, 30_000 * MS);
    let shares: Vec<f64> = (0..4).map(|tin| share(&sent, tin..tin + 1)).collect();
    // Voice up to a quarter, video up to a half, bulk at least a sixteenth (tc-cake(8)).
    for (got, wanted) in shares.iter().zip([0.1875, 0.0625, 0.5, 0.25]) {
        assert!((got - wanted).abs() < 0.02, "{shares:?}");
    }
    // Whoever is alone has everything, and so have two of them.
    let sent = drain(&mut cake(options), &sources[1..2], 40, 5000 * MS);
    assert!(
        sent[0] as f64 > 0.99 * 5.0 * RATE_BPS as f64 / 8.0,
        "{sent:?}"
    );
}

#[test]
fn without_a_shaper_tins_share_by_their_weights() {
    let options = Options {
        tins: Tins::Diffserv4,
        shapes: false,
        ..PLAIN
    };
    let mut queue = cake(options);
    let mut dropped = Vec::new();
    for id in 0..3000 {
        for dscp in [0, CS1, AF41, EF] {
            let packet = source(u32::from(dscp), (0, 0), dscp);
            queue.enqueue(MS, TestPacket { id, ..packet }, &mut dropped);
        }
    }
    let mut sent = [0.0f64; 64];
    for _ in 0..4000 {
        let packet = queue.dequeue(MS, &mut dropped).expect("backlogged");
        sent[usize::from(packet.dscp)] += 1.0 / 4000.0;
    }
    let total = 1024.0 + 64.0 + 512.0 + 256.0;
    for (dscp, weight) in [(0, 1024.0), (CS1, 64.0), (AF41, 512.0), (EF, 256.0)] {
        let got = sent[usize::from(dscp)];
        assert!((got - weight / total).abs() < 0.01, "{dscp}: {got}");
    }
}

#[test]
fn wash_clears_the_codepoint_after_the_tin_was_chosen() {
    let options = Options {
        tins: Tins::Diffserv4,
        wash: true,
        ..PLAIN
    };
    let mut queue = cake(options);
    let mut dropped = Vec::new();
    for (id, dscp) in [(0, 0), (1, 0), (2, EF)] {
        let packet = source(id as u32, (0, 0), dscp);
        queue.enqueue(MS, TestPacket { id, ..packet }, &mut dropped);
    }
    let first = queue.dequeue(MS, &mut dropped).expect("three wait");
    assert_eq!((first.id, first.dscp), (2, 0));
}

#[test]
fn beyond_the_memory_limit_the_longest_queue_loses_its_oldest_packet() {
    let options = Options {
        memory_limit: Some(20 * u64::from(FRAME_BYTES)),
        ..PLAIN
    };
    let mut queue = cake(options);
    let mut dropped = Vec::new();
    for id in 0..15 {
        queue.enqueue(MS, TestPacket::new(id, 1, FRAME_BYTES), &mut dropped);
    }
    for id in 100..107 {
        queue.enqueue(MS, TestPacket::new(id, 2, FRAME_BYTES), &mut dropped);
    }
    let ids: Vec<_> = dropped.iter().map(|packet| packet.id).collect();
    assert_eq!(ids, [0, 1]);
}

#[test]
fn nine_flows_of_one_set_have_eight_queues() {
    // Keys that the hash sends to the same place of 1024; a set has eight.
    let mut queue = cake(PLAIN);
    let mut dropped = Vec::new();
    for turn in 0..10u64 {
        for flow in 0..9u32 {
            let packet = TestPacket::new(turn * 9 + u64::from(flow), flow * 1024, 1500);
            queue.enqueue(MS, packet, &mut dropped);
        }
    }
    let mut counts = [0; 9];
    let mut now_ns = MS;
    for _ in 0..45 {
        now_ns = queue.next_ready_ns(now_ns).expect("backlogged");
        let packet = queue.dequeue(now_ns, &mut dropped).expect("ready");
        counts[(packet.flow / 1024) as usize] += 1;
    }
    // Two share a queue and its part of the round.
    let halves = counts.iter().filter(|count| **count <= 4).count();
    assert_eq!(halves, 2, "{counts:?}");
}

/// Next packet expected, SACK blocks, ECE and CWR.
type Ack<'a> = (u32, &'a [(u32, u32)], u8);

/// ACKs offered one after the other to a queue that holds them; the ids of those that go, all of which
/// count as filtered and none as dropped.
fn filtered(filter: AckFilter, acks: &[Ack]) -> Vec<u64> {
    let mut queue = cake(Options {
        ack_filter: filter,
        ..PLAIN
    });
    let mut dropped = Vec::new();
    for (id, (next, sacks, ecn_flags)) in acks.iter().enumerate() {
        let mut ack = PureAck {
            next: *next,
            count: sacks.len() as u8,
            ecn_flags: *ecn_flags,
            ..PureAck::default()
        };
        ack.blocks[..sacks.len()].copy_from_slice(sacks);
        let mut packet = TestPacket::new(id as u64, 1, 66);
        packet.ack = Some(ack);
        queue.enqueue(MS, packet, &mut dropped);
    }
    let counters = queue.counters();
    assert_eq!(counters.dropped_packets, 0);
    assert_eq!(counters.filtered_packets, dropped.len() as u64);
    assert_eq!(queue.packets(), acks.len() - dropped.len());
    dropped.iter().map(|packet| packet.id).collect()
}

#[test]
fn the_ack_filter_keeps_two_acks_and_the_aggressive_one_keeps_the_newest() {
    let acks: Vec<Ack> = (0..6).map(|next| (next, &[][..], 0)).collect();
    assert_eq!(filtered(AckFilter::No, &acks), []);
    assert_eq!(filtered(AckFilter::Filter, &acks), [0, 1, 2, 3]);
    assert_eq!(filtered(AckFilter::Aggressive, &acks), [0, 1, 2, 3, 4]);
}

#[test]
fn the_ack_filter_keeps_duplicates_sacks_dsacks_and_changes_of_the_marks_echo() {
    let aggressive = |acks: &[Ack]| filtered(AckFilter::Aggressive, acks);
    // Duplicates count for loss detection.
    assert_eq!(aggressive(&[(5, &[], 0), (5, &[], 0), (5, &[], 0)]), []);
    // A block that the newer one does not hold.
    assert_eq!(aggressive(&[(5, &[(7, 9)], 0), (6, &[(8, 10)], 0)]), []);
    // More of the same block says it all.
    assert_eq!(aggressive(&[(5, &[(7, 9)], 0), (5, &[(7, 10)], 0)]), [0]);
    assert_eq!(aggressive(&[(5, &[], 0), (5, &[(7, 8)], 0)]), [0]);
    assert_eq!(aggressive(&[(5, &[(7, 8)], 0), (9, &[], 0)]), []);
    // A DSACK: a block below the number.
    assert_eq!(aggressive(&[(5, &[(3, 4)], 0), (6, &[(3, 4)], 0)]), []);
    // The last ACK before the echo changes has to stay.
    assert_eq!(aggressive(&[(5, &[], 0), (6, &[], 1)]), []);
    assert_eq!(aggressive(&[(5, &[], 1), (6, &[], 1)]), [0]);
}

fn hand(rate_bps: u64, limit_bytes: Option<u64>, change: impl Fn(&mut Params)) -> Hand {
    let mut params = plain();
    change(&mut params);
    let qdisc = Qdisc {
        limit_bytes,
        limit_packets: None,
        aqm: Aqm::Cake(params),
    };
    Hand::over(Queue::new(&qdisc, rate_bps, MTU_BYTES, 1))
}

#[test]
fn target_interval_quantum_and_memory_follow_from_the_rate() {
    // cake_set_rate(): target = max(1.5 packets, target), interval = max(rtt + target - target before, 2
    // targets), quantum = rate >> 12 from 300 to 1514. cake_reconfigure(): four RTTs of bytes, at least 4
    // MiB, at most 10240 packets.
    let most = 10_240 * 1514;
    for (rate_bps, rtt_us, target_us, expected) in [
        // Packets of 12.112 ms.
        (1_000_000, 100_000, 5000, (18_168, 113_168, 300, 4 << 20)),
        (100_000_000, 100_000, 5000, (5000, 100_000, 1514, 5_000_000)),
        (20_000_000, 100_000, 5000, (5000, 100_000, 610, 4 << 20)),
        (1_000_000_000, 100_000, 5000, (5000, 100_000, 1514, most)),
        // Packets of 1.2112 ms.
        (10_000_000, 10_000, 500, (1816, 11_316, 305, 4 << 20)),
        (10_000_000, 1000, 50, (1816, 3633, 305, 4 << 20)),
        // Not shaped.
        (0, 100_000, 5000, (5000, 100_000, 1514, most)),
    ] {
        let environment = Environment {
            limit_bytes: None,
            limit_packets: None,
            rate_bps,
            frame_bytes: FRAME_BYTES,
            seed: 1,
        };
        let params = Params {
            rtt_ns: rtt_us * 1000,
            target_ns: target_us * 1000,
            shapes: rate_bps > 0,
            ..plain()
        };
        let cake = Cake::<TestPacket>::new(&params, &environment);
        let tin = &cake.tins[0];
        let law = (tin.law.target_ns / 1000, tin.law.interval_ns / 1000);
        let made = (law.0, law.1, tin.flow_quantum, cake.memory_limit);
        assert_eq!(made, expected, "{rate_bps} {rtt_us}");
    }
}

fn plain() -> Params {
    Params {
        rtt_ns: 100 * MS,
        target_ns: 5 * MS,
        shapes: true,
        tins: Tins::Besteffort,
        isolation: Isolation::Flows,
        ack_filter: AckFilter::No,
        overhead_bytes: None,
        mpu_bytes: 0,
        framing: Framing::None,
        ingress: false,
        autorate_ingress: false,
        wash: false,
        split_gso: true,
    }
}

#[test]
fn the_shapers_clock_advances_by_each_packet_with_its_overhead() {
    // 20 Mbit/s: 400 ns a byte. Overhead is in place of Ethernet's 14 bytes.
    type Change = fn(&mut Params);
    let cases: [(Change, u64); 4] = [
        (|_| {}, 1000),
        (|params| params.overhead_bytes = Some(38), 1024),
        (|params| params.mpu_bytes = 1200, 1200),
        (|params| params.framing = Framing::Atm, 21 * 53),
    ];
    for (change, link_bytes) in cases {
        let mut hand = hand(RATE_BPS, None, change);
        hand.offer(10 * MS, TestPacket::new(0, 1, 1000), 4);
        let mut now_ns = 10 * MS;
        assert_eq!(hand.queue.next_ready_ns(now_ns), Some(now_ns));
        for id in 0..3 {
            assert_eq!(hand.ids(now_ns, 9), [id]);
            let next_ns = hand.queue.next_ready_ns(now_ns).expect("one waits");
            assert!((now_ns + link_bytes * 400 - next_ns) <= 1, "{link_bytes}");
            assert_eq!(hand.take(next_ns - 1), None);
            now_ns = next_ns;
        }
    }
}

#[test]
fn in_ingress_mode_drops_are_charged_but_hold_the_link_no_longer_than_half_a_packet() {
    // cake_advance_shaper(): a drop advances time_next_packet, not failsafe_next_packet, which a packet that
    // leaves advances by one and a half. 400 us a packet.
    for (ingress, next_us) in [(false, 400), (true, 600)] {
        let mut hand = hand(RATE_BPS, Some(3000), |params| params.ingress = ingress);
        hand.offer(0, TestPacket::new(0, 1, 1000), 4);
        assert_eq!(
            hand.dropped(),
            [0],
            "the oldest, beyond the limit of memory"
        );
        assert_eq!(hand.ids(0, 9), [1]);
        let next_ns = hand.queue.next_ready_ns(0).expect("two wait");
        assert!(next_ns.abs_diff(next_us * 1000) <= 2, "{next_ns}");
    }
}

#[test]
fn memory_up_to_the_limit_is_allowed_and_the_longest_queue_pays() {
    let mut hand = hand(RATE_BPS, Some(5000), |_| {});
    hand.offer(0, TestPacket::new(0, 1, 1000), 2);
    hand.offer(0, TestPacket::new(10, 2, 1000), 3);
    assert_eq!(hand.dropped(), []);
    hand.offer(0, TestPacket::new(20, 1, 1), 1);
    assert_eq!(hand.dropped(), [10]);
    // A packet that is larger than all of it goes at once.
    hand.offer(0, TestPacket::new(30, 3, 5001), 1);
    assert_eq!(hand.dropped(), [30]);
    // What leaves makes room.
    while hand.queue.packets() > 0 {
        hand.ids(1000 * MS, 1);
    }
    hand.dropped();
    hand.offer(2000 * MS, TestPacket::new(40, 1, 1000), 5);
    assert_eq!(hand.dropped(), []);
}

#[test]
fn an_idle_link_owes_nothing_and_is_owed_nothing() {
    let mut hand = hand(RATE_BPS, None, |_| {});
    for start_ms in [10, 1000, 1001] {
        let now_ns = start_ms * MS;
        hand.offer(now_ns, TestPacket::new(start_ms, 1, 1000), 2);
        assert_eq!(hand.ids(now_ns, 9), [start_ms], "one at once");
        let next_ns = hand.queue.next_ready_ns(now_ns).expect("one waits");
        assert!(next_ns.abs_diff(now_ns + 400_000) <= 1);
        hand.ids(next_ns, 9);
    }
}

#[test]
fn a_sparse_flow_goes_first_and_one_that_stays_becomes_bulk() {
    // cake_dequeue(): new flows before old ones; a flow whose quantum is used up becomes bulk. 20 Mbit/s: 610
    // bytes.
    let mut hand = hand(RATE_BPS, None, |_| {});
    hand.offer(0, TestPacket::new(0, 1, 1000), 20);
    let mut now_ns = 0;
    let mut take = |hand: &mut Hand| {
        now_ns = hand.queue.next_ready_ns(now_ns).expect("backlogged");
        hand.take(now_ns).map(|packet| packet.flow)
    };
    assert_eq!(take(&mut hand), Some(1));
    assert_eq!(take(&mut hand), Some(1));
    hand.offer(MS / 2, TestPacket::new(100, 2, 100), 1);
    assert_eq!(take(&mut hand), Some(2), "a new one overtakes");
    assert_eq!(take(&mut hand), Some(1));
    // Found empty it left: it is new again, with a quantum for six packets and an overdraft.
    hand.offer(MS, TestPacket::new(101, 2, 100), 9);
    // Flow 1 has then overdrawn by 560 of its quantum, so that flow 2 sends the rest of its nine before it.
    let next: Vec<_> = (0..10)
        .map(|_| take(&mut hand).expect("backlogged"))
        .collect();
    assert_eq!(next, [2, 2, 2, 2, 2, 2, 2, 2, 2, 1]);
}
