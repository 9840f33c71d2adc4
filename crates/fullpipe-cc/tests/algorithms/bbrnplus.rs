//! What ends Startup, and when, in the three sets of BBR-n+, on the two paths that its Smart Exit
//! is meant to tell apart: a bottleneck, and a receiver whose window is below the BDP.

use crate::bottleneck::{peak_queue_rtt, phases, visit, Flow, Path, Row};
use fullpipe_cc::Phase;

fn plain() -> Path {
    Path::new(100, 50, 8.0)
}

/// A third of the BDP: no queue ever.
fn window_limited() -> Path {
    Path {
        receive_window: 139,
        ..plain()
    }
}

/// Rounds of Startup, or `None` if it had not ended within the time.
fn startup_rounds(rows: &[Row]) -> Option<u32> {
    let row = rows.iter().find(|row| row.phase == Phase::Drain)?;
    Some(row.info.round_count)
}

fn run(name: &str, path: Path, changes: &[(&str, u32)]) -> Vec<Row> {
    let mut flow = Flow::new(name, path, changes, 1);
    flow.run(4.5).to_vec()
}

#[test]
fn on_a_plain_bottleneck_the_published_exit_is_at_most_a_round_after_bbr3s() {
    let v3 = startup_rounds(&run("bbr3-linux", plain(), &[])).unwrap();
    for name in ["bbrnplus", "bbrnplus-asrun"] {
        let rounds = startup_rounds(&run(name, plain(), &[])).unwrap();
        assert!(rounds.abs_diff(v3) <= 1, "{name}: {rounds}, BBRv3: {v3}");
    }
}

#[test]
fn on_a_plain_bottleneck_algorithm_1_word_for_word_never_ends_startup() {
    // Bandwidth stays at full_bw and never falls below 0.85 of it, so no round counts: the flow
    // holds its window of two BDP, a standing queue of one RTT, for good.
    let rows = run("bbrnplus-literal", plain(), &[]);
    assert_eq!(startup_rounds(&rows), None);
    let settled: Vec<Row> = rows
        .into_iter()
        .filter(|row| row.t_us > 2_000_000)
        .collect();
    let least = settled
        .iter()
        .map(|row| row.queue_us)
        .fold(f64::MAX, f64::min);
    assert!(least > 0.9 * plain().rtt_us as f64, "{least} us");
}

#[test]
fn algorithm_1_word_for_word_still_leaves_startup_by_loss() {
    let path = Path::new(100, 50, 0.3);
    let rows = run("bbrnplus-literal", path, &[]);
    let rounds = startup_rounds(&rows).expect("loss ends Startup");
    assert!(rounds < 20, "{rounds}");
}

#[test]
fn algorithm_1_word_for_word_ends_startup_when_bandwidth_falls_under_an_inflated_rtt() {
    let mut flow = Flow::new("bbrnplus-literal", plain(), &[], 1);
    flow.run(2.0);
    assert_eq!(flow.phase(), Phase::Startup);
    flow.path.rate_bps /= 2;
    flow.run(2.0);
    assert_ne!(flow.phase(), Phase::Startup);
}

#[test]
fn the_authors_pseudocode_ends_startup_on_a_plain_bottleneck_where_algorithm_1_does_not() {
    let v3 = startup_rounds(&run("bbr3-linux", plain(), &[])).unwrap();
    // A growth below a quarter counts; the patch asks for one below a half, a round earlier at most.
    for name in ["bbrnplus-pseudocode", "bbrnplus-patch"] {
        let rounds = startup_rounds(&run(name, plain(), &[])).unwrap();
        assert!(rounds.abs_diff(v3) <= 2, "{name}: {rounds}, BBRv3: {v3}");
    }
}

#[test]
fn a_receivers_window_ends_bbr3s_startup_but_none_of_bbr_nplus() {
    let rounds = startup_rounds(&run("bbr3-linux", window_limited(), &[]));
    assert!(rounds.is_some_and(|rounds| rounds < 12), "{rounds:?}");
    for name in [
        "bbrnplus",
        "bbrnplus-literal",
        "bbrnplus-asrun",
        "bbrnplus-pseudocode",
        "bbrnplus-patch",
    ] {
        let rows = run(name, window_limited(), &[]);
        assert_eq!(startup_rounds(&rows), None, "{name}: {:?}", phases(&rows));
    }
}

#[test]
fn when_the_receivers_window_opens_late_only_smart_exit_still_doubles() {
    // BBRv3 has left Startup; until its next probe it cannot use what has become free.
    let used = |name| {
        let mut flow = Flow::new(name, window_limited(), &[], 1);
        flow.run(1.0);
        flow.path.receive_window = u32::MAX;
        let rows = flow.run(0.7);
        rows.last().unwrap().info.max_bw_bytes_per_s * 8
    };
    assert!(used("bbrnplus") > 95_000_000);
    assert!(used("bbr3-linux") < 60_000_000, "{}", used("bbr3-linux"));
}

#[test]
fn inflation_below_delta_does_not_count() {
    // The queue of a plain bottleneck adds 50 ms; a delta of 60 ms ignores it.
    let rows = run("bbrnplus", plain(), &[("smart_exit_delta_us", 60_000)]);
    assert_eq!(startup_rounds(&rows), None);
    let rows = run("bbrnplus", plain(), &[("smart_exit_delta_us", 1000)]);
    assert!(startup_rounds(&rows).is_some());
}

#[test]
fn more_rounds_are_waited_for_where_the_count_is_larger() {
    let three = startup_rounds(&run("bbrnplus", plain(), &[])).unwrap();
    let seven = startup_rounds(&run("bbrnplus", plain(), &[("smart_exit_count", 7)])).unwrap();
    assert_eq!(seven - three, 4);
}

#[test]
fn smart_exit_can_be_turned_off() {
    let rounds = startup_rounds(&run("bbrnplus", window_limited(), &[("smart_exit", 0)]));
    assert!(rounds.is_some_and(|rounds| rounds < 12), "{rounds:?}");
}

#[test]
fn the_gains_of_the_files_queue_more_in_up_than_the_published_ones() {
    // Startup's exit is not at issue here: UP paces at 1.5 instead of 1.25, up to 2.5 BDP.
    let peak = |name| {
        let mut flow = Flow::new(name, plain(), &[], 1);
        peak_queue_rtt(visit(flow.run(8.0), Phase::Up, 0), &plain())
    };
    let (published, as_run) = (peak("bbrnplus"), peak("bbrnplus-asrun"));
    assert!((0.85..1.0).contains(&published), "{published}");
    assert!((1.4..1.6).contains(&as_run), "{as_run}");
}

#[test]
fn the_window_never_falls_below_ten_packets() {
    // ProbeRTT on a path of 5 packets.
    let rows = {
        let mut flow = Flow::new("bbrnplus", Path::new(3, 20, 8.0), &[], 1);
        flow.run(6.0).to_vec()
    };
    assert!(rows.iter().any(|row| row.phase == Phase::ProbeRtt));
    assert!(rows.iter().all(|row| row.cwnd >= 10));
}
