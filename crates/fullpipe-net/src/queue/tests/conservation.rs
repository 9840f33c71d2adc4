//! Whatever the discipline and the load: every packet offered is handed out, dropped or waiting,
//! exactly once, and limits hold at every moment.

use std::collections::HashSet;

use proptest::prelude::*;

use crate::packet::{Ecn, PureAck};
use crate::queue::Queue;
use crate::testing::{any_qdisc, TestPacket, FRAME_BYTES, MTU_BYTES};

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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn every_packet_is_handed_out_or_dropped_or_waits_exactly_once(
        qdisc in any_qdisc(), steps in steps()
    ) {
        let mut queue = Queue::<TestPacket>::new(&qdisc, 10_000_000, MTU_BYTES, 7);
        let (limit_bytes, limit_packets) = qdisc.aqm.most_waiting(
            qdisc.limit_bytes.unwrap_or(u64::MAX),
            qdisc.limit_packets.map_or(u64::MAX, u64::from),
        );
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
        prop_assert_eq!(counters.dropped_packets + counters.filtered_packets, lost);
        prop_assert_eq!(counters.marked_packets, marked);
    }
}
