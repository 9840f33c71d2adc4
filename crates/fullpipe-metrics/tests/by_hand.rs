//! Every metric of small runs whose samples are written out, against figures worked out by hand from its
//! meaning in docs/reference/metrics.md.

use fullpipe_metrics::{
    jain, tables, Capacity, Facts, FlowSamples, Flows, Measured, Measures, PacketCost, PingSamples,
    QueueFacts, QueueSamples, Samples, Window,
};
use fullpipe_plan::{Column, FlowRow, FlowSampleRow, PingRow, QueueRow, Table, Tables};

/// A flow's name is not read; only its direction is.
struct Flow {
    direction: &'static str,
    start_s: f64,
    completion_s: f64,
}

const UP: Flow = Flow {
    direction: "up",
    start_s: 0.0,
    completion_s: f64::NAN,
};

fn flows(flows: &[Flow]) -> Flows {
    Flows {
        flow: flows.iter().map(|_| "flow".into()).collect(),
        cc: flows.iter().map(|_| "cubic".into()).collect(),
        direction: flows.iter().map(|flow| flow.direction.into()).collect(),
        start_us: flows.iter().map(|flow| flow.start_s * 1e6).collect(),
        completion_us: flows.iter().map(|flow| flow.completion_s * 1e6).collect(),
    }
}

/// Second, flow, smoothed and least RTT in us, window, and bytes delivered, packets sent and sent again.
type FlowSample = (f64, usize, f64, f64, f64, [f64; 3]);

fn flow_samples(rows: &[FlowSample]) -> FlowSamples {
    let mut samples = FlowSamples::default();
    for &(second, flow, srtt_us, min_rtt_us, cwnd, counters) in rows {
        samples.t_us.push(second * 1e6);
        samples.flow_id.push(flow);
        samples.srtt_us.push(srtt_us);
        samples.min_rtt_us.push(min_rtt_us);
        samples.cwnd_packets.push(cwnd);
        samples.counters.push(counters);
    }
    samples
}

/// Samples each second, a window from 1 s to 4 s, a base RTT of 20 ms, 1 MB/s.
fn facts() -> Facts {
    Facts {
        start_s: 1.0,
        end_s: f64::INFINITY,
        sample_interval_s: 1.0,
        rtt_s: 0.02,
        equal_demand: vec![0, 1],
        queues: vec![QueueFacts {
            name: "forward".to_owned(),
            capacity: Capacity::Rates(vec![(0.0, 8e6)]),
            packet_cost: None,
            policed_bps: f64::INFINITY,
        }],
    }
}

/// Values by name of the table with this index: run, flow, group, queue.
fn check(table: usize, values: &[f64], expected: &[(&str, f64)]) {
    let (_, about) = &tables()[table];
    assert_eq!(about.len(), values.len());
    for (name, wanted) in expected {
        let place = about.iter().position(|about| about.name == *name);
        let value = values[place.unwrap_or_else(|| panic!("{name}"))];
        let is_close = (value - wanted).abs() <= 1e-9 * wanted.abs().max(1.0);
        assert!(
            is_close || value.is_nan() && wanted.is_nan(),
            "{name}: {value}, not {wanted}"
        );
    }
    let left: Vec<_> = (about.iter().map(|about| about.name))
        .filter(|name| expected.iter().all(|(known, _)| known != name))
        .collect();
    assert!(left.is_empty(), "not checked: {left:?}");
}

const NONE: f64 = f64::NAN;

/// Two flows up and one down, sampled at 1, 2, 3 and 4 s.
fn three_flows() -> Samples {
    Samples {
        flows: flows(&[
            UP,
            Flow {
                direction: "up",
                start_s: 0.5,
                completion_s: 2.5,
            },
            Flow {
                direction: "down",
                start_s: 3.0,
                completion_s: NONE,
            },
        ]),
        flow_samples: flow_samples(&[
            (1.0, 0, 90_000.0, 5_000.0, 99.0, [100_000.0, 100.0, 5.0]),
            (1.0, 1, 90_000.0, 5_000.0, 99.0, [200_000.0, 200.0, 7.0]),
            (2.0, 0, 30_000.0, 21_000.0, 10.0, [400_000.0, 400.0, 15.0]),
            (2.0, 1, 50_000.0, 22_000.0, 40.0, [900_000.0, 800.0, 17.0]),
            (3.0, 0, 40_000.0, 20_500.0, 20.0, [800_000.0, 700.0, 15.0]),
            (3.0, 1, NONE, NONE, 50.0, [950_000.0, 900.0, 17.0]),
            (3.0, 2, 70_000.0, 70_000.0, 10.0, [0.0, 10.0, 0.0]),
            (
                4.0,
                0,
                80_000.0,
                20_500.0,
                60.0,
                [1_300_000.0, 1100.0, 25.0],
            ),
            (4.0, 2, 71_000.0, 70_000.0, 11.0, [250_000.0, 210.0, 2.0]),
            // Of no flow of the plan.
            (4.0, 7, 1.0, 1.0, 1.0, [1e9, 1e9, 1e9]),
        ]),
        ping_samples: PingSamples {
            t_us: vec![0.9e6, 1e6, 1.1e6, 2e6, 3e6, 3.5e6, 4e6, 4.000_001e6],
            rtt_us: vec![9e6, 9e6, 20_000.0, 30_000.0, NONE, 50_000.0, 60_000.0, 9e6],
        },
        ..Samples::default()
    }
}

#[test]
fn a_run_is_measured_from_the_end_of_its_warm_up_to_its_last_sample() {
    // Delivered in 3 s: 1,200,000 + 750,000 + 250,000. Sent again: 20 + 10 + 2, of 1000 + 700 + 210.
    // Goodputs of equal demand: 9.6 Mbit in 3 s; 6 Mbit in the second and a half before its end.
    let measured = Measured::new(&three_flows(), &facts());
    let (one, other) = (3.2e6, 4e6);
    check(
        0,
        &measured.run(),
        &[
            ("goodput_bps", 2_200_000.0 * 8.0 / 3.0),
            (
                "jain",
                (one + other) * (one + other) / (2.0 * (one * one + other * other)),
            ),
            ("jain_flows", 2.0),
            ("retransmit_ratio", 32.0 / 1910.0),
            // 20, 30, 50 and 60 ms: one at the start is before, one at the end within.
            ("ping_mean_ms", 40.0),
            ("ping_p50_ms", 40.0),
            ("ping_p95_ms", 58.5),
            ("ping_p99_ms", 59.7),
            ("ping_max_ms", 60.0),
        ],
    );
}

#[test]
fn a_flow_is_measured_while_it_is_active_within_the_window() {
    let measured = Measured::new(&three_flows(), &facts());
    let flows: Vec<_> = measured.flows().collect();
    check(
        1,
        &flows[0],
        &[
            ("start_s", 0.0),
            ("completion_s", NONE),
            ("goodput_bps", 3.2e6),
            ("delivered_bytes", 1.2e6),
            ("share", 1.2 / 1.95),
            ("retransmitted_packets", 20.0),
            ("retransmit_ratio", 0.02),
            ("rtt_min_us", 20_500.0),
            ("rtt_p50_us", 40_000.0),
            ("rtt_p95_us", 76_000.0),
            ("rtt_p99_us", 79_200.0),
            ("rtt_mean_us", 50_000.0),
            ("cwnd_mean_packets", 30.0),
            ("cwnd_p50_packets", 20.0),
        ],
    );
    check(
        1,
        &flows[1],
        &[
            ("start_s", 0.5),
            ("completion_s", 2.0),
            ("goodput_bps", 4e6),
            ("delivered_bytes", 750_000.0),
            ("share", 0.75 / 1.95),
            ("retransmitted_packets", 10.0),
            ("retransmit_ratio", 10.0 / 700.0),
            ("rtt_min_us", 22_000.0),
            ("rtt_p50_us", 50_000.0),
            ("rtt_p95_us", 50_000.0),
            ("rtt_p99_us", 50_000.0),
            ("rtt_mean_us", 50_000.0),
            // Not the 50 packets of the sample after its end.
            ("cwnd_mean_packets", 40.0),
            ("cwnd_p50_packets", 40.0),
        ],
    );
    check(
        1,
        &flows[2],
        &[
            ("start_s", 3.0),
            ("completion_s", NONE),
            ("goodput_bps", 2e6),
            ("delivered_bytes", 250_000.0),
            ("share", 1.0),
            ("retransmitted_packets", 2.0),
            ("retransmit_ratio", 2.0 / 210.0),
            ("rtt_min_us", 70_000.0),
            ("rtt_p50_us", 70_500.0),
            ("rtt_p95_us", 70_950.0),
            ("rtt_p99_us", 70_990.0),
            ("rtt_mean_us", 70_500.0),
            ("cwnd_mean_packets", 10.5),
            ("cwnd_p50_packets", 10.5),
        ],
    );
}

#[test]
fn what_follows_a_flow_changes_none_of_its_metrics() {
    // A flow up and one down, which ends at 2.5 s: every longer run has the same of the second.
    let rows: Vec<FlowSample> = (1..40)
        .flat_map(|second| {
            let at_s = f64::from(second);
            let left = at_s.min(3.0);
            let own = [left * 1e5, left * 100.0, left * 3.0];
            [
                (at_s, 0, 3e4, 2e4, at_s, [at_s * 1e5, at_s * 80.0, at_s]),
                // Rows go on with a last sample that was taken as the flow ended, or after it.
                (at_s, 1, 5e4 + 1e4 * left, 2e4, 10.0 * left, own),
            ]
        })
        .collect();
    let of_a_run = |seconds: f64| {
        let ended = Flow {
            direction: "down",
            start_s: 0.5,
            completion_s: 2.5,
        };
        let kept: Vec<_> = rows
            .iter()
            .copied()
            .filter(|row| row.0 <= seconds)
            .collect();
        let samples = Samples {
            flows: flows(&[UP, ended]),
            flow_samples: flow_samples(&kept),
            ..Samples::default()
        };
        let measured = Measured::new(&samples, &facts());
        let flow: Vec<u64> = measured
            .flows()
            .nth(1)
            .expect("two")
            .iter()
            .map(|one| one.to_bits())
            .collect();
        flow
    };
    let first = of_a_run(3.0);
    for seconds in 4..40 {
        assert_eq!(of_a_run(f64::from(seconds)), first, "{seconds} s");
    }
}

#[test]
fn a_flow_is_silent_where_it_had_the_time_to_deliver_and_did_not() {
    let silent = |delivered: f64, start_s: f64, rtt_s: f64| {
        let samples = Samples {
            flows: flows(&[Flow { start_s, ..UP }]),
            flow_samples: flow_samples(&[(4.0, 0, NONE, NONE, 10.0, [delivered, 9.0, 3.0])]),
            ..Samples::default()
        };
        let facts = Facts { rtt_s, ..facts() };
        Measured::new(&samples, &facts).silent_flows().count() == 1
    };
    assert!(silent(0.0, 0.0, 0.02));
    assert!(!silent(1.0, 0.0, 0.02), "a byte arrived");
    assert!(!silent(0.0, 3.5, 0.02), "half a second is no time");
    assert!(!silent(0.0, 0.0, 0.5), "four seconds are eight round trips");
    assert!(silent(0.0, 0.0, NONE), "the RTT may not be known");
}

#[test]
fn flows_together_have_sums_of_counts_and_spreads_of_rates() {
    let measured = Measured::new(&three_flows(), &facts());
    let (one, other) = (3.2e6, 4e6);
    check(
        2,
        &measured.group(&[0, 1, 9]),
        &[
            ("flows", 2.0),
            ("finished", 1.0),
            ("goodput_all_bps", 1_950_000.0 * 8.0 / 3.0),
            ("goodput_mean_bps", 3.6e6),
            ("goodput_p5_bps", 3.24e6),
            ("goodput_p50_bps", 3.6e6),
            ("goodput_p95_bps", 3.96e6),
            ("completion_mean_s", 2.0),
            ("completion_p50_s", 2.0),
            ("completion_p95_s", 2.0),
            ("completion_p99_s", 2.0),
            ("completion_max_s", 2.0),
            (
                "jain",
                (one + other) * (one + other) / (2.0 * (one * one + other * other)),
            ),
            ("delivered_bytes", 1_950_000.0),
            ("share", 1.0),
            ("retransmitted_packets", 30.0),
            ("retransmit_ratio", 30.0 / 1700.0),
            ("rtt_min_us", 20_500.0),
            // 30, 40, 50 and 80 ms.
            ("rtt_p50_us", 45_000.0),
            ("rtt_p95_us", 75_500.0),
            ("rtt_p99_us", 79_100.0),
            ("rtt_mean_us", 50_000.0),
            // 10, 20, 40 and 60.
            ("cwnd_mean_packets", 32.5),
            ("cwnd_p50_packets", 30.0),
        ],
    );
    let jain_at = tables()[2].1.iter().position(|about| about.name == "jain");
    let jain_at = jain_at.expect("a metric");
    assert!(
        measured.group(&[0])[jain_at].is_nan(),
        "of one flow there is none"
    );
    assert!(measured.group(&[])[jain_at].is_nan());
}

/// Sampled at 1, 2, 3 and 4 s.
fn a_queue() -> Samples {
    let t_us = [1.0, 2.0, 3.0, 4.0].map(|second| second * 1e6);
    Samples {
        flow_samples: flow_samples(&[(4.0, 0, 1.0, 1.0, 1.0, [0.0; 3])]),
        queues: vec![QueueSamples {
            t_us: t_us.to_vec(),
            queue_bytes: vec![99_999.0, 10_000.0, 40_000.0, 0.0],
            queue_packets: vec![99.0, 10.0, 40.0, 0.0],
            counters: vec![
                [500_000.0, 400.0, 10.0, 5.0, 3.0, 1.0, 2.0],
                [1_000_000.0, 800.0, 20.0, 5.0, 3.0, 1.0, 2.0],
                [1_500_000.0, 1200.0, 30.0, 15.0, 3.0, 1.0, 40.0],
                [2_000_000.0, 1900.0, 40.0, 25.0, 13.0, 6.0, 62.0],
            ],
        }],
        ..Samples::default()
    }
}

#[test]
fn a_queue_is_measured_by_what_passed_was_dropped_and_waited() {
    // 1.5 MB of 3 MB; 10, 40 and 0 KB at 1 MB/s are 10, 40 and 0 ms.
    let measured = Measured::new(&a_queue(), &facts());
    check(
        3,
        &measured.queues().next().expect("one"),
        &[
            ("throughput_bps", 4e6),
            ("utilisation", 0.5),
            ("queue_delay_mean_rttmin", 50.0 / 3.0 / 20.0),
            ("queue_delay_p50_rttmin", 0.5),
            ("queue_delay_p95_rttmin", 1.85),
            ("queue_delay_p99_rttmin", 1.97),
            ("queue_delay_max_rttmin", 2.0),
            ("queue_delay_p50_ms", 10.0),
            ("queue_delay_p95_ms", 37.0),
            ("queue_delay_max_ms", 40.0),
            ("queue_bytes_mean", 50_000.0 / 3.0),
            ("queue_bytes_p50", 10_000.0),
            ("queue_bytes_p95", 37_000.0),
            ("queue_bytes_max", 40_000.0),
            ("loss_ratio", 40.0 / 1600.0),
            ("mark_ratio", 25.0 / 1500.0),
            ("drops", 30.0),
            ("marks", 25.0),
            ("filtered_acks", 60.0),
            ("random_losses", 10.0),
        ],
    );
}

#[test]
fn short_packets_take_what_their_layer_adds_to_them() {
    // Of 1000 B a full packet; a byte that a packet lacks costs a tenth. In the window 1500 packets
    // have 1.5 MB, so they lack nothing; the 40 packets that wait have 10,000 B less than full ones.
    let mut samples = a_queue();
    samples.queues[0].queue_bytes = vec![99_999.0, 10_000.0, 30_000.0, 0.0];
    let mut facts = facts();
    facts.queues[0].packet_cost = Some(PacketCost {
        full_bytes: 1000.0,
        per_missing_byte: 0.1,
    });
    let of = |samples: &Samples| {
        let measured = Measured::new(samples, &facts);
        let values = measured.queues().next().expect("one");
        ["queue_bytes_max", "queue_delay_max_ms", "utilisation"].map(|name| {
            let place = tables()[3].1.iter().position(|about| about.name == name);
            values[place.expect("a metric")]
        })
    };
    assert_eq!(of(&samples), [30_000.0, 31.0, 0.5]);
    // 100 packets more with the same bytes lack 100 kB.
    samples.queues[0].counters[3][1] += 100.0;
    assert_eq!(of(&samples)[2], (1.5e6 + 0.1 * 100_000.0) / 3e6);
}

#[test]
fn a_queue_without_samples_in_the_window_has_no_metrics_and_unknown_random_loss_is_none() {
    let mut samples = a_queue();
    let counters = &mut samples.queues[0].counters;
    for row in counters.iter_mut() {
        row[4] = NONE;
        row[5] = NONE;
        row[6] = NONE;
    }
    let values = |samples: &Samples| -> Vec<f64> {
        Measured::new(samples, &facts())
            .queues()
            .next()
            .expect("one")
    };
    let at = |name| {
        let about = &tables()[3].1;
        about
            .iter()
            .position(|about| about.name == name)
            .expect("a metric")
    };
    let known = values(&samples);
    let of = ["drops", "marks", "random_losses", "loss_ratio"].map(|name| known[at(name)]);
    assert_eq!(of, [30.0, 20.0, 0.0, 30.0 / 1530.0]);
    samples.queues[0] = QueueSamples {
        t_us: vec![1e6],
        queue_bytes: vec![5.0],
        queue_packets: vec![1.0],
        counters: vec![[1.0; 7]],
    };
    assert!(values(&samples).iter().all(|value| value.is_nan()));
}

#[test]
fn without_flows_there_is_no_goodput_and_without_requests_no_ping() {
    let measured = Measured::new(&a_queue(), &facts());
    let values = measured.run();
    assert!(values
        .iter()
        .enumerate()
        .all(|(place, value)| value.is_nan() || place == 2));
    assert_eq!(values[2], 2.0);
}

#[test]
fn the_window_begins_and_ends_at_samples() {
    // Start and end of the plan, interval, last sample: start and end of the window, and how late a sample
    // may be: a tenth of the interval, or 1 ms, at most half an interval.
    for (start_s, end_s, interval_s, last_s, expected) in [
        (0.25, 9.97, 0.1, 20.0, (0.3, 9.9, 0.01)),
        (0.3, 0.7, 0.1, 20.0, (0.3, 0.7, 0.01)),
        (0.25, f64::INFINITY, 0.1, 5.0, (0.3, 5.0, 0.01)),
        (0.25, 9.97, 0.1, 5.0, (0.3, 5.0, 0.01)),
        (1.0, 2.0, 0.005, 20.0, (1.0, 2.0, 0.001)),
        (1.0, 2.0, 0.001, 20.0, (1.0, 2.0, 0.0005)),
        (0.25, 9.97, 0.0, 20.0, (0.25, 9.97, 1e-6)),
        (
            0.25,
            f64::INFINITY,
            0.1,
            f64::NAN,
            (0.3, f64::INFINITY, 0.01),
        ),
        (0.25, 2.0, 0.1, f64::NAN, (0.3, 2.0, 0.01)),
    ] {
        let facts = Facts {
            start_s,
            end_s,
            sample_interval_s: interval_s,
            ..facts()
        };
        let sampled = if last_s.is_nan() {
            vec![]
        } else {
            vec![last_s * 1e6, 1e6]
        };
        let window = Window::new(&facts, &sampled);
        let (start_s, end_s, late_s) = expected;
        // Without a sample and without an end the window is empty.
        let end_s = if end_s == f64::INFINITY {
            start_s
        } else {
            end_s
        };
        assert!((window.start_s - start_s).abs() < 1e-9, "{window:?}");
        assert!((window.end_s - end_s).abs() < 1e-9, "{window:?}");
        assert!((window.late_s - late_s).abs() < 1e-12, "{window:?}");
    }
}

#[test]
fn a_sample_that_is_a_little_late_is_still_its_intervals() {
    // Taken up to 0.1 s late at an interval of a second, the one at 1 s is the start, the one at 4 s the end.
    let delivered = |late_s: f64| {
        let rows = [1.0, 2.0, 3.0, 4.0].map(|second| {
            let bytes = second * 1e6;
            (
                second + late_s,
                0,
                20_000.0,
                20_000.0,
                10.0 * second,
                [bytes, 0.0, 0.0],
            )
        });
        let samples = Samples {
            flows: flows(&[UP]),
            flow_samples: flow_samples(&rows),
            ..Samples::default()
        };
        let facts = Facts {
            end_s: 4.0,
            ..facts()
        };
        let group = Measured::new(&samples, &facts).group(&[0]);
        let at = |name| {
            tables()[2]
                .1
                .iter()
                .position(|about| about.name == name)
                .expect("a metric")
        };
        (group[at("delivered_bytes")], group[at("cwnd_mean_packets")])
    };
    assert_eq!(delivered(0.0), (3e6, 30.0));
    assert_eq!(delivered(0.099), (3e6, 30.0));
    assert_eq!(delivered(0.1), (3e6, 30.0));
    // Later than that, they are of the next intervals: the counters at 1 s are not known, 3 s is the last.
    assert_eq!(delivered(0.2), (3e6, 20.0));
}

#[test]
fn a_flow_that_was_not_active_in_the_window_has_no_goodput_and_a_direction_without_bytes_no_share()
{
    let samples = Samples {
        flows: flows(&[
            Flow {
                direction: "up",
                start_s: 0.0,
                completion_s: 1.0,
            },
            Flow {
                direction: "down",
                start_s: 4.0,
                completion_s: NONE,
            },
            Flow {
                direction: "up",
                start_s: 2.0,
                completion_s: NONE,
            },
        ]),
        flow_samples: flow_samples(&[
            (1.0, 0, 1.0, 1.0, 1.0, [500.0, 1.0, 0.0]),
            (3.0, 2, 1.0, 1.0, 1.0, [1000.0, 1.0, 0.0]),
            (4.0, 2, 1.0, 1.0, 1.0, [1000.0, 1.0, 0.0]),
        ]),
        ..Samples::default()
    };
    let measured = Measured::new(&samples, &facts());
    let at = |name| {
        tables()[1]
            .1
            .iter()
            .position(|about| about.name == name)
            .expect("a metric")
    };
    let goodput: Vec<f64> = measured
        .flows()
        .map(|flow| flow[at("goodput_bps")])
        .collect();
    assert!(goodput[0].is_nan() && goodput[1].is_nan());
    assert_eq!(goodput[2], 8.0 * 1000.0 / 2.0);
    let share: Vec<f64> = measured.flows().map(|flow| flow[at("share")]).collect();
    assert!(share[1].is_nan());
    assert_eq!((share[0], share[2]), (0.0, 1.0));
    // A flow without packets in the window has no ratio of them.
    assert!(measured.flows().next().expect("one")[at("retransmit_ratio")].is_nan());
}

#[test]
fn jains_index_is_the_square_of_the_sum_over_n_times_the_sum_of_squares() {
    assert_eq!(jain([1.0, 2.0, 3.0]), 36.0 / (3.0 * 14.0));
    assert_eq!(jain([1.0, f64::NAN, 3.0]), 16.0 / (2.0 * 10.0));
    assert!(jain([]).is_nan());
}

#[test]
fn a_capacity_counts_from_its_first_rate_on_and_drains_over_its_steps() {
    let capacity = Capacity::Rates(vec![(1.0, 8e6), (2.0, 16e6), (4.0, 0.0), (5.0, 8e6)]);
    for (start_s, end_s, bits) in [
        (0.0, 1.0, 0.0),
        (0.0, 1.5, 4e6),
        (1.5, 2.5, 12e6),
        (3.0, 6.0, 24e6),
        (4.0, 5.0, 0.0),
        (2.0, 2.0, 0.0),
    ] {
        assert_eq!(capacity.bits(start_s, end_s), bits, "{start_s} {end_s}");
    }
    for (at_s, bytes, drain_s) in [
        (1.0, 1e6, 1.0),
        (1.5, 1.5e6, 1.0),
        (0.0, 1e6, 2.0),
        (2.0, 4e6, 2.0),
        (2.0, 5e6, 4.0),
        (3.0, 0.0, 0.0),
        (3.0, -1.0, 0.0),
        (9.0, 1e6, 1.0),
    ] {
        assert_eq!(capacity.drain_s(at_s, bytes), drain_s, "{at_s} {bytes}");
    }
}

#[test]
fn a_backlog_is_divided_by_the_rates_that_follow_its_sample() {
    // 1 MB/s to 3 s, then 4 MB/s: 10 KB at 2 s are 10 ms, 40 KB at 3 s are 10 ms, and nothing is left at 4 s.
    let mut facts = facts();
    facts.queues[0].capacity = Capacity::Rates(vec![(0.0, 8e6), (3.0, 32e6)]);
    let values = Measured::new(&a_queue(), &facts)
        .queues()
        .next()
        .expect("one");
    let at = |name| {
        let about = &tables()[3].1;
        about
            .iter()
            .position(|about| about.name == name)
            .expect("a metric")
    };
    assert!((values[at("queue_delay_max_ms")] - 10.0).abs() < 1e-9);
    assert!((values[at("queue_delay_p50_ms")] - 10.0).abs() < 1e-9);
    assert!((values[at("utilisation")] - 1.5 / 6.0).abs() < 1e-12);
}

/// A run in memory with one flow and one ping; `n` makes its numbers others'.
fn recorded(n: u64) -> Tables {
    Tables {
        flows: vec![FlowRow {
            flow: format!("flow{n}").into(),
            cc: "cubic".into(),
            direction: "up".into(),
            start_us: n,
            completion_us: Some(10 * n),
            ..FlowRow::default()
        }],
        flow_samples: vec![FlowSampleRow {
            t_us: 1000 * n,
            flow_id: 0,
            srtt_us: Some(20 * n),
            min_rtt_us: None,
            cwnd_packets: 30 * n,
            bytes_delivered: 40 * n,
            packets_sent: 50 * n,
            packets_retransmitted: 60 * n,
            ..FlowSampleRow::default()
        }],
        queue_samples: [("other", 9 * n), ("forward", n)]
            .map(|(queue, n)| QueueRow {
                t_us: 2000 * n,
                queue: queue.into(),
                queue_bytes: n,
                queue_packets: 9 * n,
                sent_bytes: 2 * n,
                sent_packets: 3 * n,
                dropped_packets: 4 * n,
                marked_packets: 5 * n,
                random_lost_packets: 6 * n,
                random_marked_packets: 7 * n,
                filtered_packets: 8 * n,
            })
            .to_vec(),
        ping_samples: vec![PingRow {
            t_us: 3000 * n,
            rtt_us: Some(70 * n),
            ..PingRow::default()
        }],
        ..Tables::default()
    }
}

#[test]
fn samples_are_the_columns_of_the_last_run_they_were_made_of() {
    let queues = &facts().queues;
    let mut samples = Samples::default();
    for n in [1, 2] {
        samples.become_of(recorded(n), queues);
        let x = n as f64;
        let flows = &samples.flows;
        assert_eq!(
            (flows.flow.len(), flows.cc.len(), flows.direction.len()),
            (1, 1, 1)
        );
        assert_eq!(
            (flows.flow[0].as_ref(), flows.cc[0].as_ref()),
            (&*format!("flow{n}"), "cubic")
        );
        assert_eq!(flows.direction[0], "up");
        assert_eq!(
            (&flows.start_us, &flows.completion_us),
            (&vec![x], &vec![10.0 * x])
        );
        let of_flows = &samples.flow_samples;
        assert_eq!(
            (&of_flows.t_us, &of_flows.flow_id),
            (&vec![1000.0 * x], &vec![0])
        );
        assert_eq!(
            (&of_flows.srtt_us, &of_flows.cwnd_packets),
            (&vec![20.0 * x], &vec![30.0 * x])
        );
        assert!(of_flows.min_rtt_us.len() == 1 && of_flows.min_rtt_us[0].is_nan());
        assert_eq!(
            of_flows.counters,
            [[40.0, 50.0, 60.0].map(|value| value * x)]
        );
        assert_eq!(samples.queues.len(), 1);
        let queue = &samples.queues[0];
        assert_eq!(
            (&queue.t_us, &queue.queue_bytes, &queue.queue_packets),
            (&vec![2000.0 * x], &vec![x], &vec![9.0 * x])
        );
        assert_eq!(
            queue.counters,
            [[2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0].map(|value| value * x)]
        );
        let pings = &samples.ping_samples;
        assert_eq!(
            (&pings.t_us, &pings.rtt_us),
            (&vec![3000.0 * x], &vec![70.0 * x])
        );
    }
}

#[test]
fn a_store_has_a_row_for_each_run_flow_and_bottleneck() {
    let mut measures = Measures::default();
    let mut with_a_queue = three_flows();
    with_a_queue.queues = a_queue().queues;
    measures.add(&mut with_a_queue, &facts());
    assert!(with_a_queue.flows.flow.is_empty(), "names are taken");
    measures.add(&mut a_queue(), &facts());
    let mut again = three_flows();
    again.flows = flows(&[UP]);
    again.queues = a_queue().queues;
    measures.add(&mut again, &facts());
    let [runs, flows, path] = measures.into_tables();
    let column = |table: &Table, name: &str| {
        let found = table.columns.iter().find(|(column, _)| *column == name);
        found.map_or_else(|| panic!("{name}"), |(_, column)| column.clone())
    };
    assert_eq!(column(&flows, "run"), Column::U64(vec![0, 0, 0, 2]));
    assert_eq!(column(&flows, "flow_id"), Column::U64(vec![0, 1, 2, 0]));
    let texts =
        |values: &[&'static str]| Column::Text(values.iter().map(|&text| text.into()).collect());
    assert_eq!(
        column(&flows, "direction"),
        texts(&["up", "up", "down", "up"])
    );
    assert_eq!(column(&flows, "cc"), texts(&["cubic"; 4]));
    assert_eq!(column(&flows, "flow"), texts(&["flow"; 4]));
    let delivered = Column::F64(vec![1.2e6, 0.75e6, 0.25e6, 1.2e6]);
    assert_eq!(column(&flows, "delivered_bytes"), delivered);
    assert_eq!(column(&runs, "jain_flows"), Column::F64(vec![2.0; 3]));
    assert_eq!(column(&runs, "silent"), texts(&["", "", ""]));
    assert_eq!(column(&runs, "unsettled"), texts(&["too short"; 3]));
    assert_eq!(column(&path, "drops"), Column::F64(vec![30.0; 3]));
    assert_eq!(
        [runs.name, flows.name, path.name],
        ["runs", "flows", "path"]
    );
}
