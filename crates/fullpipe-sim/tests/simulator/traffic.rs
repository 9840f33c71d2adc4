//! Flows that come and go: nothing is lost without being counted, each has one row, runs repeat, and
//! memory follows the flows that live at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use fullpipe_cc::sets;
use fullpipe_plan::{
    CcChoice, Column, Configuration, FlowDirection, Hosts, Intervals, Route, Sizes, Table, Traffic,
    TrafficRow, TrafficSender, TrafficSource,
};
use fullpipe_sim::{read_plan, run, Inputs, Outcome, Plan};
use fullpipe_workload::{Chunk, Trace, TraceFlow};
use serde_json::json;

const SECOND_NS: u64 = 1_000_000_000;

fn choice(name: &str) -> CcChoice {
    let set = sets()
        .iter()
        .find(|set| set.name == name)
        .expect("it ships");
    CcChoice {
        name: set.name.to_owned(),
        algorithm: Some(set.algorithm.to_owned()),
        params: set.values.clone(),
    }
}

/// 50 Mbit/s, two senders of 10 and 30 ms, for `seconds`; arrivals end a second earlier.
fn plan(seconds: u64, aqm: serde_json::Value, source: TrafficSource) -> Plan {
    let wire = |rate: Option<u64>| {
        json!({
            "rate_bps": rate, "delay_ns": 0, "loss": null,
            "qdisc": {"limit_bytes": 30_000, "limit_packets": null, "aqm": aqm},
        })
    };
    let document = json!({
        "name": "traffic", "seed": 3, "duration_ns": seconds * SECOND_NS,
        "sample_interval_ns": 100_000_000,
        "links": [{"name": "path", "medium": {
            "kind": "wire", "forward": wire(Some(50_000_000)), "reverse": wire(None),
        }}],
        "access": {
            "mtu_bytes": 1500, "forward_delay_ns": 0, "reverse_delay_ns": 10_000_000,
            "jitter": null, "loss": null, "reverse_loss": null,
        },
        "flows": [],
        "probes": [{
            "name": "ping", "kind": "ping", "interval_ns": 50_000_000, "start_ns": 0, "dscp": 0,
            "route": Route::default(), "hosts": Hosts::default(),
        }],
        "host": {
            "pacing": "internal", "pacing_shift": 10, "gso_max_segments": 44,
            "receive_aggregation_ns": 0, "ack_policy": "linux", "receive_low_water_bytes": 1,
            "rmem_max_bytes": 67_108_864, "wmem_max_bytes": 67_108_864,
            "initial_cwnd_packets": 10, "access_rate_bps": 0, "arp": false,
        },
    });
    let mut plan = read_plan(&document.to_string()).expect("a plan");
    let sender = |reverse_delay_ns| TrafficSender {
        hosts: Hosts::default(),
        forward_delay_ns: None,
        reverse_delay_ns,
    };
    plan.traffic = vec![Traffic {
        name: "web".to_owned(),
        cc: choice("cubic"),
        direction: FlowDirection::Up,
        route: Route::default(),
        dscp: 0,
        ecn: false,
        start_ns: 0,
        stop_ns: Some((seconds - 1) * SECOND_NS),
        senders: vec![sender(None), sender(Some(30_000_000))],
        source,
        samples: Vec::new(),
    }];
    plan
}

/// So many flows a second of 5 to 100 kB.
fn drawn(flows_per_s: u64) -> TrafficSource {
    TrafficSource::Drawn {
        arrivals: Intervals::Poisson,
        mean_interval_ps: 1_000_000_000_000 / flows_per_s,
        sizes: Sizes::Pareto {
            shape_milli: 1200,
            min_bytes: 5_000,
            max_bytes: 100_000,
        },
    }
}

fn outcome<'a>(plan: &'a Plan, inputs: Inputs<'a>) -> Outcome {
    run(plan, inputs, &mut |_| true).expect("the plan is sound")
}

fn rows(outcome: &Outcome) -> &[TrafficRow] {
    outcome.tables.traffic.as_deref().expect("there is traffic")
}

#[test]
fn every_flow_that_came_has_one_row_and_every_packet_of_it_is_accounted_for() {
    let mut lost = 0;
    for aqm in [
        json!({"kind": "fifo"}),
        json!({"kind": "codel", "target_ns": 5_000_000, "interval_ns": 100_000_000, "ecn": false}),
        json!({
            "kind": "cake", "rtt_ns": 100_000_000, "target_ns": 5_000_000, "shapes": true,
            "tins": "diffserv3", "isolation": "triple-isolate", "ack_filter": "aggressive",
            "overhead_bytes": null, "mpu_bytes": 0, "framing": "none", "ingress": false,
            "autorate_ingress": false, "wash": false, "split_gso": true,
        }),
    ] {
        let plan = plan(6, aqm, drawn(350));
        let done = outcome(&plan, Inputs::default());
        let mut numbers: Vec<u64> = rows(&done).iter().map(|row| row.number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..done.traffic_flows).collect::<Vec<_>>());
        assert!(done.traffic_flows > 1500);
        let sent: u64 = rows(&done).iter().map(|row| row.packets_sent).sum();
        let counted = done.packets_delivered + done.packets_lost + done.packets_in_flight;
        assert_eq!(sent, counted);
        lost += done.packets_lost;
        for row in rows(&done).iter().filter(|row| row.completion_us.is_some()) {
            assert_eq!(row.bytes_acked, row.size_bytes);
            assert_eq!(row.base_rtt_us, 10_000 + 20_000 * row.sender);
            assert!(row.completion_us.unwrap() - row.start_us >= 2 * row.base_rtt_us);
        }
        assert_eq!(done.tables, outcome(&plan, Inputs::default()).tables);
    }
    assert!(lost > 0);
}

/// Rows of `traffic` in a table that was handed over.
fn traffic_rows(table: &Table) -> usize {
    match &table.columns[0].1 {
        Column::U64(values) if table.name == "traffic" => values.len(),
        _ => 0,
    }
}

#[test]
fn connections_are_used_again_and_rows_are_handed_over_while_they_come() {
    let flows_at_once = |seconds| {
        let plan = plan(seconds, json!({"kind": "fifo"}), drawn(150));
        let done = outcome(&plan, Inputs::default());
        (done.traffic_flows, done.traffic_connections)
    };
    let (few, at_once) = flows_at_once(11);
    let (many, still_at_once) = flows_at_once(101);
    assert!(
        many > 9 * few && still_at_once < 2 * at_once,
        "{at_once} {still_at_once}"
    );
    let mut taken = Vec::new();
    let mut take = |table: Table| taken.push(table);
    let plan = plan(141, json!({"kind": "fifo"}), drawn(150));
    let inputs = Inputs {
        rows: Some(&mut take),
        ..Inputs::default()
    };
    let done = outcome(&plan, inputs);
    let handed: usize = taken.iter().map(traffic_rows).sum();
    assert!(handed > 0);
    assert_eq!((handed + rows(&done).len()) as u64, done.traffic_flows);
}

#[test]
fn a_replayed_flow_pauses_between_its_chunks_and_sends_all_of_them() {
    let chunk = |pause_ms: u64, bytes| Chunk {
        pause_ns: pause_ms * 1_000_000,
        bytes,
    };
    let chunks = vec![
        chunk(0, 3_000),
        chunk(400, 50),
        chunk(200, 7),
        chunk(300, 100_000),
        chunk(0, 9),
    ];
    let bytes: u64 = chunks[..4].iter().map(|chunk| chunk.bytes).sum();
    let flow = |start_ns, first_chunk| TraceFlow {
        start_ns,
        first_chunk,
    };
    let trace = Trace::new(vec![flow(0, 0), flow(SECOND_NS, 4)], chunks).expect("a trace");
    let source = |configuration| TrafficSource::File {
        file: "flows.csv".to_owned(),
        sha256: "abc".to_owned(),
        configuration,
    };
    let run_as = |configuration| {
        let plan = plan(5, json!({"kind": "fifo"}), source(configuration));
        let traces = [("abc".to_owned(), Arc::new(trace.clone()))].into();
        let done = outcome(
            &plan,
            Inputs {
                traces,
                ..Inputs::default()
            },
        );
        let mut rows = rows(&done).to_vec();
        rows.sort_by_key(|row| row.number);
        rows
    };
    let [replayed, collapsed] = [Configuration::Replay, Configuration::Collapsed].map(run_as);
    for rows in [&replayed, &collapsed] {
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].bytes_acked, rows[1].bytes_acked), (bytes, 9));
    }
    let took = |row: &TrafficRow| row.completion_us.expect("it ends") - row.start_us;
    assert_eq!((replayed[0].chunks, replayed[0].pause_us), (4, 900_000));
    assert!(took(&replayed[0]) > 900_000 + 3 * 10_000);
    assert!(took(&collapsed[0]) < 100_000);
}

#[test]
fn what_cannot_run_is_refused_with_its_group() {
    let mut bad = plan(3, json!({"kind": "fifo"}), drawn(10));
    bad.traffic[0].senders.clear();
    let error = run(&bad, Inputs::default(), &mut |_| true).unwrap_err();
    assert_eq!(error.0, "traffic.0: senders: there must be at least one");
}

#[test]
fn flows_that_are_asked_for_are_sampled_until_and_at_their_end() {
    let mut plan = plan(6, json!({"kind": "fifo"}), drawn(20));
    plan.traffic[0].samples = vec![3, 40, 1_000_000];
    let done = outcome(&plan, Inputs::default());
    let samples = done.tables.traffic_samples.as_deref().expect("asked for");
    let numbers: BTreeSet<u64> = samples.iter().map(|sample| sample.number).collect();
    assert_eq!(numbers, [3, 40].into());
    assert!(samples.windows(2).all(|two| two[0].t_us <= two[1].t_us));
    for row in rows(&done)
        .iter()
        .filter(|row| numbers.contains(&row.number))
    {
        let own = samples.iter().filter(|sample| sample.number == row.number);
        let last = own.clone().next_back().expect("there is one");
        assert_eq!(Some(last.t_us), row.completion_us);
        assert_eq!(
            (last.bytes_acked, last.packets_sent),
            (row.size_bytes, row.packets_sent)
        );
        let (begin, every_us) = (row.start_us, plan.sample_interval_ns / 1000);
        let due = last.t_us / every_us - begin / every_us;
        assert_eq!(own.count() as u64, due + 1);
    }
    // Who samples changes nothing.
    plan.traffic[0].samples.clear();
    let same = outcome(&plan, Inputs::default());
    assert_eq!(
        (rows(&same), same.tables.traffic_samples.is_none()),
        (rows(&done), true)
    );
}
