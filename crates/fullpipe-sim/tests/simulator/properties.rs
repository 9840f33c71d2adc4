//! What must hold in every run: nothing is lost or copied without being counted, queues keep their limits,
//! links their rates, windows at least one packet, and runs repeat.

use crate::parts::{self, flow, host, wire, WIRE_BYTES};
use fullpipe_net::impair::{
    self, crandom, gilbert, hold, jitter, loss, netem_jitter, policer, reorder,
};
use fullpipe_net::{Medium, WireDirection};
use fullpipe_plan::{Access, HostOptions, Hosts, Pacing, Plan, Probe, ProbeKind, Route};
use fullpipe_sim::{run, Inputs, Outcome};
use proptest::prelude::*;

fn forward(plan: &Plan) -> &WireDirection {
    let [forward, _] = plan.links[0].medium.wire().expect("these plans have wires");
    forward
}

prop_compose! {
    fn impairments()(
        elements in prop::collection::vec(any::<bool>(), 6),
        often_ppm in 1u32..200_000,
        packets in 2u32..20,
    ) -> impair::Params {
        let chance = || crandom::Params { probability_ppm: often_ppm, correlation_ppm: 0 };
        impair::Params {
            gemodel: elements[0].then_some(gilbert::Params {
                to_bad_ppm: often_ppm / 4,
                to_good_ppm: 300_000,
                loss_bad_ppm: 1_000_000,
                loss_good_ppm: 0,
                mean_ns: None,
            }),
            duplicate: elements[1].then(chance),
            policer: elements[2].then_some(policer::Params { rate_bps: 5_000_000, burst_bytes: 20_000 }),
            hold: elements[3].then_some(hold::Params { time_ns: 20_000_000, packets: Some(packets) }),
            wifi_jitter_ns: None,
            reorder: elements[4].then(|| reorder::Params { chance: chance(), gap: packets }),
            delay_limit_packets: elements[0].then_some(packets),
            netem_jitter: elements[5].then(|| netem_jitter::Params {
                jitter_ns: 4_000_000,
                table: if packets % 2 == 0 { vec![] } else { vec![-8192, 0, 16384] },
            }),
        }
    }
}

prop_compose! {
    fn plans()(
        seed in any::<u64>(),
        rate_mbit in 1u64..200,
        rtt_ms in 1u64..200,
        buffer_packets in 1u64..500,
        loss_ppm in prop_oneof![Just(0u32), 1u32..50_000],
        jitter_ms in prop_oneof![Just(0u64), 1u64..30],
        slotted in any::<bool>(),
        fq_pacing in any::<bool>(),
        aggregation_us in prop_oneof![Just(0u64), 10u64..2000],
        rcvlowat_bytes in prop_oneof![Just(1u32), Just(8192)],
        flows in prop::collection::vec(
            (0usize..32, 0u64..2000, prop_oneof![Just(None), (16u64..200).prop_map(|k| Some(k * 1024))]),
            1..5,
        ),
    ) -> Plan {
        let shape = if slotted { jitter::Shape::Slotted } else { jitter::Shape::PerPacket };
        let flows = flows
            .iter()
            .enumerate()
            .map(|(index, &(set, start_ms, window))| flow(index, set, start_ms, window))
            .collect();
        Plan {
            seed,
            duration_ns: 4_000_000_000,
            sample_interval_ns: 50_000_000,
            access: Access {
                mtu_bytes: 1500,
                forward_delay_ns: 0,
                reverse_delay_ns: rtt_ms * 1_000_000,
                jitter: (jitter_ms > 0).then_some(jitter::Params { shape, max_ns: jitter_ms * 1_000_000 }),
                loss: (loss_ppm > 0).then_some(loss::Params {
                    probability_ppm: loss_ppm,
                    correlation_ppm: 0,
                    ecn: false,
                    per_burst: slotted,
                }),
                reverse_loss: None,
            },
            probes: vec![Probe {
                name: "ping".to_owned(),
                kind: ProbeKind::Ping,
                interval_ns: 100_000_000,
                start_ns: 0,
                route: Route::default(),
                hosts: Hosts::default(),
                dscp: 0,
            }],
            host: HostOptions {
                pacing: if fq_pacing { Pacing::Fq } else { Pacing::Internal },
                receive_aggregation_ns: aggregation_us * 1000,
                receive_low_water_bytes: rcvlowat_bytes,
                ..host()
            },
            ..parts::plan(wire(Some(rate_mbit * 1_000_000), buffer_packets), wire(None, buffer_packets), flows)
        }
    }
}

fn outcome(plan: &Plan) -> Outcome {
    run(plan, Inputs::default(), &mut |_| true).expect("the plan is sound")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn packets_are_conserved_and_limits_kept(plan in plans()) {
        let done = outcome(&plan);
        let tables = &done.tables;
        let sent: u64 = tables.flows.iter().map(|flow| flow.packets_sent).sum();
        prop_assert_eq!(sent, done.packets_delivered + done.packets_lost + done.packets_in_flight);
        let limit = forward(&plan).qdisc.limit_bytes.expect("a FIFO has one");
        for row in &tables.queue_samples {
            prop_assert!(row.queue_bytes <= limit);
            // The shaper's credit lets one burst of 1600 bytes and a packet pass early.
            let capacity = forward(&plan).rate_bps.expect("it has one") / 8 * row.t_us / 1_000_000;
            prop_assert!(row.sent_bytes <= capacity + 1600 + WIRE_BYTES);
        }
        for row in &tables.flow_samples {
            prop_assert!(row.cwnd_packets >= 1);
            prop_assert!(row.bytes_acked <= row.bytes_delivered + 1448);
        }
        for flow in &tables.flows {
            // A SYN that is sent again counts as tcpi_total_retrans has it, and is no packet with data.
            prop_assert!(flow.packets_retransmitted <= flow.packets_sent + flow.timeouts);
            prop_assert!(flow.bytes_acked <= flow.bytes_delivered);
        }
    }

    #[test]
    fn packets_are_conserved_in_a_direction_that_copies_drops_holds_and_reorders(
        plan in plans(),
        impairments in impairments(),
        steps in any::<bool>(),
    ) {
        let mut plan = plan;
        let copies = impairments.duplicate.is_some();
        if let Medium::Wire { forward, .. } = &mut plan.links[0].medium {
            forward.delay_ns = 20_000_000;
            forward.impairments = Some(impairments);
            if steps {
                forward.rate_steps = vec![(1_000_000_000, 0), (1_500_000_000, 3_000_000)];
                forward.delay_steps = vec![(1_200_000_000, 1_000_000), (2_000_000_000, 90_000_000)];
            }
        }
        let done = outcome(&plan);
        let sent: u64 = done.tables.flows.iter().map(|flow| flow.packets_sent).sum();
        let found = done.packets_delivered + done.packets_lost + done.packets_in_flight;
        prop_assert!(found == sent || copies && found > sent, "{found} of {sent}");
        // No more packets are in flight than were sent: a difference below zero would be 2^64.
        prop_assert!(done.packets_in_flight <= sent);
    }

    #[test]
    fn the_same_plan_gives_the_same_tables(plan in plans()) {
        prop_assert_eq!(outcome(&plan).tables, outcome(&plan).tables);
    }
}
