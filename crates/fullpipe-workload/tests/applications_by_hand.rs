//! Applications whose times and sizes follow from their settings alone.

use std::sync::Arc;

use fullpipe_plan::{
    Configuration, Datagrams, FlowDirection, Hosts, OnOff, Pattern, Route, Sizes, TrafficSource,
};
use fullpipe_workload::{
    backbone, Chunk, Datagram, DatagramSource, Flows, Trace, TraceFlow, Writer, Writing,
};

const MS: u64 = 1_000_000;

fn on_off(on_ms: u64, off_ms: u64, is_random: bool) -> OnOff {
    OnOff {
        on_ns: on_ms * MS,
        off_ns: off_ms * MS,
        is_random,
    }
}

#[test]
fn an_on_off_writer_alternates_from_its_start() {
    let mut writer = Writer::new(Pattern::OnOff(on_off(30, 10, false)), 5 * MS, 1);
    let steps: Vec<(Writing, u64)> = (0..4).map(|_| writer.step()).collect();
    let expected = [
        (Writing::Unlimited, 35 * MS),
        (Writing::Nothing, 45 * MS),
        (Writing::Unlimited, 75 * MS),
        (Writing::Nothing, 85 * MS),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn random_periods_have_the_means_that_were_set() {
    // Exponential: the mean of 20,000 has a standard error of 0.7 %.
    let mut writer = Writer::new(Pattern::OnOff(on_off(30, 10, true)), 0, 7);
    let (mut before_ns, mut sums) = (0, [0, 0]);
    for step in 0..40_000 {
        let (_, until_ns) = writer.step();
        sums[step % 2] += until_ns - before_ns;
        before_ns = until_ns;
    }
    for (sum, mean_ms) in sums.into_iter().zip([30.0, 10.0]) {
        let mean = sum as f64 / 20_000.0 / MS as f64;
        assert!((mean / mean_ms - 1.0).abs() < 0.03, "{mean}");
    }
}

#[test]
fn a_paced_writer_writes_at_its_interval() {
    let pattern = Pattern::Paced {
        write_bytes: 700,
        interval_ns: 20 * MS,
    };
    let mut writer = Writer::new(pattern, 3 * MS, 1);
    assert_eq!(writer.step(), (Writing::Bytes(700), 23 * MS));
    assert_eq!(writer.step(), (Writing::Bytes(700), 43 * MS));
}

fn stream(frame_bytes: Option<u32>, stop_ms: Option<u64>, on_off: Option<OnOff>) -> Datagrams {
    Datagrams {
        name: "stream".to_owned(),
        direction: FlowDirection::Up,
        route: Route::default(),
        hosts: Hosts::default(),
        dscp: 0,
        start_ns: 2 * MS,
        stop_ns: stop_ms.map(|ms| ms * MS),
        payload_bytes: 1_000,
        interval_ns: 10 * MS,
        frame_bytes,
        deadline_ns: None,
        on_off,
    }
}

/// When datagrams leave, in ms, with their frames and sizes.
fn sent(stream: &Datagrams, count: usize) -> Vec<(u64, u64, u32)> {
    let mut source = DatagramSource::new(stream, 1);
    let mut all = Vec::new();
    while let Some(at_ns) = source.due_ns().filter(|_| all.len() < count) {
        assert_eq!(source.take(at_ns - 1), None, "too early");
        let Datagram { seq, frame, bytes } = source.take(at_ns).expect("it is due");
        assert_eq!(seq, all.len() as u64);
        all.push((at_ns / MS, frame, bytes));
    }
    all
}

#[test]
fn datagrams_leave_at_their_interval_until_the_stream_stops() {
    let expected = [(2, 0, 1_000), (12, 1, 1_000), (22, 2, 1_000)];
    assert_eq!(sent(&stream(None, Some(32), None), 9), expected);
    assert_eq!(sent(&stream(None, Some(33), None), 9).len(), 4);
}

#[test]
fn a_frame_is_cut_into_full_datagrams_and_a_rest() {
    let expected = [
        (2, 0, 1_000),
        (2, 0, 1_000),
        (2, 0, 500),
        (12, 1, 1_000),
        (12, 1, 1_000),
    ];
    assert_eq!(sent(&stream(Some(2_500), None, None), 5), expected);
    let whole = sent(&stream(Some(2_000), None, None), 3);
    assert_eq!(whole, [(2, 0, 1_000), (2, 0, 1_000), (12, 1, 1_000)]);
}

#[test]
fn a_datagram_that_is_due_in_an_off_period_leaves_at_its_end() {
    // On from 2 to 27 ms, off to 47 ms, on to 72 ms, off to 92 ms.
    let times: Vec<u64> = sent(&stream(None, None, Some(on_off(25, 20, false))), 8)
        .iter()
        .map(|one| one.0)
        .collect();
    assert_eq!(times, [2, 12, 22, 47, 57, 67, 92, 102]);
}

#[test]
fn a_datagram_that_is_due_as_an_off_period_begins_waits_for_its_end() {
    // On from 2 to 22 ms, off to 42 ms, on to 62 ms, off to 82 ms: periods hold their begin, not their end.
    let times: Vec<u64> = sent(&stream(None, None, Some(on_off(20, 20, false))), 6)
        .iter()
        .map(|one| one.0)
        .collect();
    assert_eq!(times, [2, 12, 42, 52, 82, 92]);
}

fn flow(start_ns: u64, first_chunk: u32) -> TraceFlow {
    TraceFlow {
        start_ns,
        first_chunk,
    }
}

fn chunk(bytes: u64) -> Chunk {
    Chunk { pause_ns: 0, bytes }
}

#[test]
fn a_trace_needs_ordered_flows_that_have_bytes() {
    let two = || vec![chunk(3), chunk(4)];
    assert!(Trace::new(vec![flow(5, 0), flow(5, 1)], two()).is_ok());
    for (flows, chunks) in [
        (vec![], two()),
        (vec![flow(5, 1)], two()),
        (vec![flow(5, 0), flow(4, 1)], two()),
        (vec![flow(5, 0), flow(6, 0)], two()),
        (vec![flow(5, 0), flow(6, 2)], two()),
        (vec![flow(5, 0)], vec![chunk(3), chunk(0)]),
    ] {
        assert!(Trace::new(flows.clone(), chunks).is_err(), "{flows:?}");
    }
    let trace = Trace::new(
        vec![flow(5, 0), flow(7, 1)],
        vec![chunk(3), chunk(4), chunk(9)],
    );
    let trace = trace.unwrap();
    assert_eq!((trace.len(), trace.is_empty()), (2, false));
    assert_eq!((trace.bytes(0), trace.bytes(1)), (3, 13));
    assert_eq!((trace.chunks(0), trace.chunks(1)), (0..1, 1..3));
}

#[test]
fn a_list_with_pauses_becomes_a_trace_if_its_chunks_add_up() {
    let listed = |chunks: Vec<Vec<(u64, u64)>>| {
        let flows = vec![(1, 10), (2, 20)];
        Trace::of_list(&TrafficSource::Listed { flows, chunks })
    };
    assert_eq!(listed(vec![]), Ok(None));
    assert!(listed(vec![vec![(0, 10)], vec![(0, 15), (9, 6)]]).is_err());
    assert!(listed(vec![vec![(0, 10)]]).is_err());
    let trace = listed(vec![vec![(0, 10)], vec![(0, 15), (9, 5)]])
        .unwrap()
        .unwrap();
    assert_eq!((trace.chunk(2).pause_ns, trace.start_ns(1)), (9, 2));
}

#[test]
fn a_synthetic_trace_has_the_mean_interval_and_size_of_its_trace() {
    // Three flows at 6, 10 and 30 ns: intervals of 6, 4 and 20, with a mean of 10; sizes 3, 4 and 9.
    let trace = Arc::new(
        Trace::new(
            vec![flow(6, 0), flow(10, 1), flow(30, 2)],
            vec![chunk(3), chunk(4), chunk(9)],
        )
        .unwrap(),
    );
    let source = TrafficSource::Backbone {
        seed: 1,
        duration_ns: 1,
        rate_bps: 1,
        configuration: Configuration::Synthetic,
    };
    let (mut ends, mut bytes, mut flows) = (0, 0, 0);
    for seed in 0..2_000 {
        for drawn in Flows::new(&source, Some(Arc::clone(&trace)), seed).unwrap() {
            ends = ends.max(drawn.at_ns);
            bytes += drawn.bytes;
            flows += 1;
            assert!([3, 4, 9].contains(&drawn.bytes));
        }
    }
    assert_eq!(flows, 6_000);
    assert_eq!(ends, 60, "three times the longest interval");
    assert!((bytes as f64 / 6_000.0 - 16.0 / 3.0).abs() < 0.15);
}

#[test]
fn listed_sizes_are_drawn_alike_and_bad_ones_are_refused() {
    let flows = |sizes: Sizes, mean_interval_ps: u64| {
        let source = TrafficSource::Drawn {
            arrivals: fullpipe_plan::Intervals::Poisson,
            mean_interval_ps,
            sizes,
        };
        Flows::new(&source, None, 1)
    };
    let bytes = vec![5, 6, 7];
    let drawn: Vec<u64> = flows(Sizes::List { bytes }, 1_000)
        .unwrap()
        .take(6_000)
        .map(|one| one.bytes)
        .collect();
    for size in [5, 6, 7] {
        let count = drawn.iter().filter(|&&bytes| bytes == size).count();
        assert!((1_800..2_200).contains(&count), "{size}: {count}");
    }
    let cdf = |points| Sizes::Cdf { points };
    let pareto = |shape_milli, min_bytes, max_bytes| Sizes::Pareto {
        shape_milli,
        min_bytes,
        max_bytes,
    };
    for sizes in [
        Sizes::Fixed { bytes: 0 },
        Sizes::List { bytes: vec![] },
        cdf(vec![(1, 0), (2, 999_999_999)]),
        cdf(vec![(2, 0), (1, 1_000_000_000)]),
        cdf(vec![(1, 5), (2, 4), (3, 1_000_000_000)]),
        pareto(0, 1, 2),
        pareto(1_000, 0, 2),
        pareto(1_000, 2, 2),
    ] {
        assert!(flows(sizes.clone(), 1_000).is_err(), "{sizes:?}");
    }
    assert!(flows(pareto(1_000, 1, 2), 1_000).is_ok());
    assert!(flows(Sizes::Fixed { bytes: 1 }, 0).is_err());
}

#[test]
fn a_backbone_needs_a_flow_and_fewer_than_sixteen_million() {
    // 301,411 bytes a flow on average: 2.41 Mbit/s over a second are one flow, half of it rounds up.
    assert_eq!(backbone(1, 1_000_000_000, 2_411_290).unwrap().len(), 1);
    assert_eq!(backbone(1, 1_000_000_000, 1_205_700).unwrap().len(), 1);
    assert!(backbone(1, 1_000_000_000, 1_205_600).is_err());
    assert!(backbone(1, 1_000_000_000_000_000, 1_000_000_000_000).is_err());
}
