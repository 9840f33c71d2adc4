//! Whatever the discipline and the load: every packet offered is handed out, dropped or waiting,
//! exactly once, and limits hold at every moment.

use std::collections::HashSet;

use fullpipe_net::{Ecn, PureAck, Queue};
use fullpipe_plan::{Aqm, CakeAckFilter, CakeFraming, CakeIsolation, CakeTins, Qdisc};
use proptest::prelude::*;

use crate::packet::{TestPacket, FRAME_BYTES};

#[derive(Clone, Debug)]
enum Step {
    Offer {
        flow: u32,
        bytes: u32,
        ecn: bool,
        pace_ns: u64,
        dscp: u8,
        ack: Option<u32>,
    },
    Take,
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let offer = (
        0..6u32,
        60..=FRAME_BYTES,
        any::<bool>(),
        0..3_000_000u64,
        0..64u8,
        prop::option::of(0..20u32),
    )
        .prop_map(|(flow, bytes, ecn, pace_ns, dscp, ack)| Step::Offer {
            flow,
            bytes,
            ecn,
            pace_ns,
            dscp,
            ack,
        });
    let wait = (0..20_000_000u64).prop_map(Step::Wait);
    let step = prop_oneof![6 => offer, 4 => Just(Step::Take), 2 => wait];
    prop::collection::vec(step, 1..600)
}

fn cake() -> impl Strategy<Value = Aqm> {
    let tins = prop::sample::select(vec![
        CakeTins::Besteffort,
        CakeTins::Diffserv3,
        CakeTins::Diffserv4,
        CakeTins::Diffserv8,
        CakeTins::Precedence,
    ]);
    let isolation = prop::sample::select(vec![
        CakeIsolation::Flowblind,
        CakeIsolation::Hosts,
        CakeIsolation::Flows,
        CakeIsolation::DualSrchost,
        CakeIsolation::TripleIsolate,
    ]);
    let ack_filter = prop::sample::select(vec![
        CakeAckFilter::No,
        CakeAckFilter::Filter,
        CakeAckFilter::Aggressive,
    ]);
    let framing = prop::sample::select(vec![CakeFraming::None, CakeFraming::Atm, CakeFraming::Ptm]);
    let flags = any::<[bool; 4]>();
    let overhead = prop::option::of(-64..256i32);
    (
        1..100_000_000u64,
        tins,
        isolation,
        ack_filter,
        framing,
        flags,
        overhead,
    )
        .prop_map(
            |(rtt_ns, tins, isolation, ack_filter, framing, flags, overhead_bytes)| Aqm::Cake {
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

fn pie() -> impl Strategy<Value = Aqm> {
    let gains = (0..33u32, 0..33u32);
    (1..30_000_000u64, gains, any::<[bool; 4]>(), 1..9u32).prop_map(
        |(target_ns, (alpha, beta), flags, flows)| {
            let [byte_mode, rate_estimator, ecn, single] = flags;
            let update_ns = 15_000_000;
            if single {
                Aqm::Pie {
                    target_ns,
                    update_ns,
                    alpha,
                    beta,
                    byte_mode,
                    rate_estimator,
                    ecn,
                }
            } else {
                Aqm::FqPie {
                    target_ns,
                    update_ns,
                    alpha,
                    beta,
                    byte_mode,
                    rate_estimator,
                    ecn,
                    ecn_percent: 10,
                    quantum_bytes: 1514,
                    flows,
                }
            }
        },
    )
}

fn others() -> impl Strategy<Value = Aqm> {
    prop_oneof![
        (1..4000u32, 1..8u32, 1..16u32, any::<bool>()).prop_map(
            |(quantum_bytes, flows, depth_packets, head_drop)| Aqm::Sfq {
                quantum_bytes,
                flows,
                buckets: 8,
                depth_packets,
                head_drop,
            }
        ),
        (100..6000u32).prop_map(|burst_bytes| Aqm::Tbf { burst_bytes }),
        (1..5u8, 0..5u8).prop_map(|(bands, default_band)| Aqm::Prio {
            bands,
            default_band,
            filters: vec![(46, 0), (8, 4)],
        }),
        (1..30_000_000u64, any::<bool>()).prop_map(|(target_ns, drop_overload)| Aqm::Dualpi2 {
            target_ns,
            update_ns: 16_000_000,
            alpha: 41,
            beta: 819,
            step_ns: 1_000_000,
            coupling: 2,
            classic_percent: 10,
            drop_overload,
        }),
    ]
}

pub(crate) fn qdiscs() -> impl Strategy<Value = Qdisc> {
    let limits = (
        prop::option::of(FRAME_BYTES as u64..60_000),
        prop::option::of(1..60u32),
    );
    let aqm = prop_oneof![
        4 => cake(),
        2 => pie(),
        4 => others(),
        5 => older(),
    ];
    (limits, aqm).prop_map(|((limit_bytes, limit_packets), aqm)| Qdisc {
        limit_bytes,
        limit_packets,
        aqm,
    })
}

fn older() -> impl Strategy<Value = Aqm> {
    prop_oneof![
        Just(Aqm::Fifo),
        (1..6000u32, 1..20u32).prop_map(|(quantum_bytes, flow_limit_packets)| Aqm::Fq {
            quantum_bytes,
            flow_limit_packets
        }),
        (1..10_000_000u64, any::<bool>()).prop_map(|(target_ns, ecn)| Aqm::Codel {
            target_ns,
            interval_ns: 20 * target_ns,
            ecn
        }),
        (
            1..10_000_000u64,
            1..9u32,
            1..6000u32,
            2000..90_000u64,
            any::<bool>()
        )
            .prop_map(
                |(target_ns, flows, quantum_bytes, memory_limit_bytes, ecn)| {
                    Aqm::FqCodel {
                        target_ns,
                        interval_ns: 20 * target_ns,
                        quantum_bytes,
                        flows,
                        memory_limit_bytes,
                        ecn,
                    }
                }
            ),
        (
            1000..20_000u64,
            1..60_000u64,
            0..=1_000_000u32,
            1..60u32,
            any::<bool>()
        )
            .prop_map(
                |(min_bytes, above, max_probability_ppm, burst_packets, ecn)| Aqm::Red {
                    min_bytes,
                    max_bytes: min_bytes + above,
                    max_probability_ppm,
                    avpkt_bytes: 1000,
                    burst_packets,
                    ecn,
                }
            ),
    ]
}

/// The most that may wait, in bytes and packets, where the discipline promises it.
fn limits(qdisc: &Qdisc) -> (u64, u64) {
    let packets = qdisc.limit_packets.map_or(u64::MAX, u64::from);
    let bytes = qdisc.limit_bytes.unwrap_or(u64::MAX);
    match &qdisc.aqm {
        Aqm::Fifo => (bytes, packets),
        Aqm::Red { .. } => (bytes, u64::MAX),
        Aqm::Cake { .. } => (bytes, u64::MAX),
        Aqm::Tbf { .. } => (bytes, packets),
        Aqm::Prio { bands, .. } => {
            let bands = u64::from(*bands);
            (bytes.saturating_mul(bands), packets.saturating_mul(bands))
        }
        Aqm::Sfq {
            flows,
            depth_packets,
            ..
        } => {
            let most = u64::from(*flows) * u64::from(*depth_packets);
            (u64::MAX, packets.min(most))
        }
        // Its fast path holds up to 8 beside (sch_fq.c, fq_fastpath_check()).
        Aqm::Fq { .. } => (u64::MAX, packets.saturating_add(8)),
        // One call drops half of the fattest queue, once (fq_codel_drop()). That makes room for
        // the newcomer as soon as the fattest queue holds two full packets.
        Aqm::FqCodel {
            memory_limit_bytes,
            flows,
            ..
        } => {
            let two_each = 2 * u64::from(*flows) * u64::from(FRAME_BYTES);
            let bytes = memory_limit_bytes.max(&two_each) + u64::from(FRAME_BYTES);
            (bytes, packets)
        }
        _ => (u64::MAX, packets),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_packet_is_handed_out_or_dropped_or_waits_exactly_once(
        qdisc in qdiscs(), steps in steps()
    ) {
        let mut queue = Queue::<TestPacket>::new(&qdisc, 10_000_000, 7);
        let (limit_bytes, limit_packets) = limits(&qdisc);
        let mut waiting = HashSet::new();
        let (mut now_ns, mut id, mut waiting_bytes) = (1u64, 0u64, 0u64);
        let (mut sent, mut lost, mut marked) = (0u64, 0u64, 0u64);
        let mut dropped = Vec::new();
        for step in steps {
            match step {
                Step::Offer { flow, bytes, ecn, pace_ns, dscp, ack } => {
                    let mut packet = TestPacket::new(id, flow, bytes).send_at(now_ns + pace_ns);
                    packet.ecn = ecn;
                    packet.dscp = dscp;
                    packet.hosts = (flow % 2, flow % 3);
                    packet.codepoint = if dscp % 2 == 0 { Ecn::Ect0 } else { Ecn::Ect1 };
                    packet.ack = ack.map(|next| PureAck { next, ..PureAck::default() });
                    id += 1;
                    waiting.insert(packet.id);
                    waiting_bytes += u64::from(bytes);
                    queue.enqueue(now_ns, packet, &mut dropped);
                }
                Step::Take => {
                    if let Some(packet) = queue.dequeue(now_ns, &mut dropped) {
                        prop_assert!(waiting.remove(&packet.id), "{} left twice", packet.id);
                        waiting_bytes -= u64::from(packet.bytes);
                        marked += u64::from(packet.marked);
                        prop_assert!(packet.ecn || !packet.marked);
                        sent += 1;
                    } else if let Some(ready_ns) = queue.next_ready_ns(now_ns) {
                        prop_assert!(ready_ns > now_ns);
                    }
                }
                Step::Wait(ns) => now_ns += ns,
            }
            for packet in dropped.drain(..) {
                prop_assert!(waiting.remove(&packet.id), "{} was dropped twice", packet.id);
                waiting_bytes -= u64::from(packet.bytes);
                marked += u64::from(packet.marked);
                lost += 1;
            }
            prop_assert_eq!(queue.packets(), waiting.len());
            prop_assert_eq!(queue.bytes(), waiting_bytes);
            prop_assert!(queue.bytes() <= limit_bytes && queue.packets() as u64 <= limit_packets);
        }
        // Drain: nothing may be stuck.
        while let Some(ready_ns) = queue.next_ready_ns(now_ns) {
            now_ns = ready_ns;
            if let Some(packet) = queue.dequeue(now_ns, &mut dropped) {
                prop_assert!(waiting.remove(&packet.id));
                marked += u64::from(packet.marked);
                sent += 1;
            }
            for packet in dropped.drain(..) {
                prop_assert!(waiting.remove(&packet.id));
                marked += u64::from(packet.marked);
                lost += 1;
            }
        }
        prop_assert!(waiting.is_empty(), "stuck: {waiting:?}");
        let counters = queue.counters();
        prop_assert_eq!(counters.offered_packets, id);
        prop_assert_eq!(counters.sent_packets, sent);
        prop_assert_eq!(counters.dropped_packets, lost);
        prop_assert_eq!(counters.marked_packets, marked);
    }
}
