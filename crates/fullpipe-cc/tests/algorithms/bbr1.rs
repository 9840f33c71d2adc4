//! BBRv1 against what tcp_bbr.c and its paper say in numbers.

use crate::bottleneck::{peak_queue_rtt, phases, utilisation, visit, Flow, Path, Row};
use fullpipe_cc::{Phase, ONE};

fn deep() -> Path {
    Path::new(100, 50, 8.0)
}

fn settled(rows: &[Row]) -> &[Row] {
    let from = rows.partition_point(|row| row.t_us < 3_000_000);
    &rows[from..]
}

#[test]
fn it_begins_at_2_89_initial_windows_an_rtt_less_a_percent() {
    let flow = Flow::new("bbr1", deep(), &[], 1);
    let expected = 10.0 * 1500.0 / 0.05 * (2.885 * 0.99);
    let rate = flow.ctl.pacing_rate_bytes_per_s as f64;
    assert!((rate / expected - 1.0).abs() < 0.002, "{rate} {expected}");
}

#[test]
fn startup_doubles_every_round_and_ends_three_rounds_after_it_could_not() {
    let mut flow = Flow::new("bbr1", deep(), &[], 1);
    let rows = flow.run(3.0);
    let startup = visit(rows, Phase::Startup, 0);
    let end = startup.last().unwrap();
    let full = startup
        .iter()
        .find(|row| 5 * row.info.max_bw_bytes_per_s > 4 * end.info.max_bw_bytes_per_s)
        .unwrap();
    // 10 packets to 417 a round are 5.4 doublings.
    assert!((5..=8).contains(&full.info.round_count), "{full:?}");
    let more = end.info.round_count + 1 - full.info.round_count;
    assert!((3..=4).contains(&more), "{more} rounds");
}

#[test]
fn drain_leaves_a_bdp_in_flight() {
    let path = deep();
    let mut flow = Flow::new("bbr1", path, &[], 1);
    let rows = flow.run(3.0);
    assert_eq!(visit(rows, Phase::Drain, 0)[0].info.pacing_gain, 88 * 4);
    let left = f64::from(visit(rows, Phase::Drain, 0).last().unwrap().inflight) / path.bdp();
    // Three bursts more than a BDP are its target (bbr_quantization_budget()).
    assert!((0.95..1.12).contains(&left), "{left} BDP");
}

#[test]
fn the_gain_cycle_is_one_probe_one_drain_and_six_steady_phases_of_an_rtt() {
    let mut flow = Flow::new("bbr1", deep(), &[], 1);
    let seen = phases(settled(flow.run(9.0)));
    let ups: Vec<f64> = seen
        .iter()
        .filter(|(phase, _)| *phase == Phase::Up)
        .map(|(_, at_s)| *at_s)
        .collect();
    assert!(ups.len() > 8);
    for pair in ups.windows(2) {
        let rtts = (pair[1] - pair[0]) / 0.05;
        // Each phase lasts an RTT; one that drains may end sooner, and the ACK that ends one is late.
        assert!((7.0..9.5).contains(&rtts), "{rtts} RTTs");
    }
    let order: Vec<Phase> = seen.iter().map(|(phase, _)| *phase).collect();
    for three in order.windows(3) {
        if three[0] == Phase::Up {
            assert_eq!(three[1..], [Phase::Down, Phase::Cruise]);
        }
    }
    let gains = |phase| visit(settled(&flow.rows), phase, 1)[0].info.pacing_gain;
    assert_eq!(
        [gains(Phase::Up), gains(Phase::Down), gains(Phase::Cruise)],
        [ONE * 5 / 4, ONE * 3 / 4, ONE]
    );
}

#[test]
fn a_probe_queues_a_quarter_of_a_bdp_and_the_link_stays_full() {
    // bless2025, section IV.A: 0.25 RTTmin measured on Linux.
    let path = deep();
    let mut flow = Flow::new("bbr1", path, &[], 1);
    let rows = flow.run(10.0);
    let peak = peak_queue_rtt(settled(rows), &path);
    assert!((0.2..0.35).contains(&peak), "{peak}");
    assert!(utilisation(settled(rows), &path) > 0.97);
}

#[test]
fn probe_rtt_comes_every_ten_seconds_for_200_ms_at_four_packets() {
    let mut flow = Flow::new("bbr1", deep(), &[], 1);
    let seen = phases(flow.run(35.0));
    let begins: Vec<f64> = seen
        .iter()
        .filter(|(phase, _)| *phase == Phase::ProbeRtt)
        .map(|(_, at_s)| *at_s)
        .collect();
    assert!(begins.len() >= 2, "{begins:?}");
    for pair in begins.windows(2) {
        assert!((10.0..10.8).contains(&(pair[1] - pair[0])), "{begins:?}");
    }
    let visit = visit(&flow.rows, Phase::ProbeRtt, 0);
    let lasts_us = visit[visit.len() - 1].t_us - visit[0].t_us;
    assert!((200_000..500_000).contains(&lasts_us), "{lasts_us} us");
    assert_eq!(visit[visit.len() - 1].cwnd, 4);
}

#[test]
fn a_policer_is_noticed_and_its_rate_used_for_48_rounds() {
    // A token bucket of 10 Mbit/s before a link of 100: the bandwidth filter remembers the burst
    // that the full bucket let through.
    let mut path = Path::new(100, 50, 1.0);
    path.police_bps = 10_000_000;
    path.bucket_packets = 1000;
    let mut flow = Flow::new("bbr1", path, &[], 1);
    let rows = flow.run(20.0);
    let (at, policed) = rows
        .iter()
        .enumerate()
        .find(|(_, row)| row.info.bw_bytes_per_s < row.info.max_bw_bytes_per_s / 2)
        .expect("the long-term rate takes over");
    let rate_bps = policed.info.bw_bytes_per_s * 8;
    assert!((8_750_000..12_000_000).contains(&rate_bps), "{rate_bps}");
    let used: Vec<&Row> = rows[at..]
        .iter()
        .take_while(|row| row.info.bw_bytes_per_s == policed.info.bw_bytes_per_s)
        .collect();
    assert!(used.iter().all(|row| row.info.pacing_gain == ONE));
    let rounds = used[used.len() - 1].info.round_count - policed.info.round_count;
    assert!((46..=49).contains(&rounds), "{rounds} rounds");

    let lossy = |rows: &[Row]| {
        let (first, last) = (rows[0], rows[rows.len() - 1]);
        let lost = f64::from(last.lost - first.lost);
        lost / (lost + f64::from(last.delivered - first.delivered))
    };
    let with = lossy(rows);
    let mut without = Flow::new("bbr1", path, &[("lt_bw_max_rounds", 0)], 1);
    assert!(with < lossy(without.run(20.0)));
}
