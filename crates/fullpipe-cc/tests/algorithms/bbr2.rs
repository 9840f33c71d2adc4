//! Where BBRv2 differs from BBRv3: its constants and rules against Google's v2 kernel.

use crate::bottleneck::{peak_queue_rtt, phases, visit, Flow, Path};
use fullpipe_cc::{EventKind, Phase, INFINITE};

fn deep() -> Path {
    Path::new(100, 50, 8.0)
}

#[test]
fn its_constants_are_the_kernels() {
    // tcp_bbr2.c: gains in 1/256.
    let set = fullpipe_cc::set("bbr2").unwrap();
    let algorithm = fullpipe_cc::algorithm(set.algorithm).unwrap();
    for (name, stored) in [
        ("startup_pacing_gain", 4 * (256 * 2885 / 1000 + 1)),
        ("startup_cwnd_gain", 4 * (256 * 2885 / 1000 + 1)),
        ("drain_gain", 4 * (256 * 1000 / 2885)),
        ("probe_up_gain", 4 * (256 * 5 / 4)),
        ("probe_down_gain", 4 * (256 * 3 / 4)),
        ("cwnd_gain", 4 * 512),
        ("probe_up_cwnd_gain", 4 * 512),
        ("probe_up_inflight_gain", 4 * (256 * 5 / 4)),
        ("beta", 4 * (256 - 256 * 30 / 100)),
        ("headroom", 4 * (256 * 15 / 100)),
        ("loss_thresh", 4 * (256 * 2 / 100)),
        ("startup_loss_events", 8),
        ("probe_max_rounds", 63),
        ("probe_wait_base_us", 2_000_000),
        ("probe_wait_rand_us", 1_000_000),
    ] {
        let index = algorithm
            .params
            .iter()
            .position(|p| p.name == name)
            .unwrap();
        assert_eq!(set.values[index], stored, "{name}");
    }
}

#[test]
fn up_lasts_about_a_round_and_queues_a_quarter_of_the_bdp() {
    // It ends at 1.25 BDP in flight; the v2 kernel in virtual time peaked at 0.29 RTTmin.
    let path = deep();
    let mut flow = Flow::new("bbr2", path, &[], 1);
    let rows = flow.run(9.0);
    let up = visit(rows, Phase::Up, 0);
    let peak = peak_queue_rtt(up, &path);
    assert!((0.2..0.32).contains(&peak), "{peak} RTT");
    let lasted_us = (up.last().unwrap().t_us - up[0].t_us) as f64;
    assert!(
        (0.9..1.6).contains(&(lasted_us / path.rtt_us as f64)),
        "{lasted_us} us"
    );
}

#[test]
fn startup_queues_twice_as_much_as_bbr3s() {
    // A window of 2.885 BDP against 2 BDP.
    let path = deep();
    let peak = |name| {
        let mut flow = Flow::new(name, path, &[], 1);
        peak_queue_rtt(visit(flow.run(3.0), Phase::Startup, 0), &path)
    };
    let (v2, v3) = (peak("bbr2"), peak("bbr3-linux"));
    assert!((1.8..2.1).contains(&v2), "{v2}");
    assert!((0.95..1.2).contains(&v3), "{v3}");
}

#[test]
fn an_equal_rtt_renews_the_timer_of_probe_rtt() {
    // A flow that its receiver limits never queues: every RTT is the least. BBRv2 then needs no
    // ProbeRTT, BBRv3 looks for a lower one. The first is due in both: the handshake's RTT, of a
    // packet without length, is never met again.
    let mut path = Path::new(100, 50, 8.0);
    path.receive_window = 200;
    let dips = |name| {
        let mut flow = Flow::new(name, path, &[], 1);
        let seen = phases(flow.run(16.0));
        let dips = seen.iter().filter(|(phase, _)| *phase == Phase::ProbeRtt);
        dips.filter(|(_, start)| *start > 6.0).count()
    };
    assert_eq!(dips("bbr2"), 0);
    assert_eq!(dips("bbr3-linux"), 2);
}

#[test]
fn up_ignores_a_plateau_while_little_is_in_flight() {
    // The receiver's window keeps inflight below 1.25 BDP: only the next ProbeRTT ends UP.
    let mut path = Path::new(100, 50, 8.0);
    path.receive_window = 400;
    let mut flow = Flow::new("bbr2", path, &[("probe_rtt_duration_us", 0)], 1);
    let rows = flow.run(12.0);
    let last = rows.last().unwrap();
    assert_eq!(last.phase, Phase::Up, "{:?}", phases(rows));
    let mut flow = Flow::new("bbr3-linux", path, &[("probe_rtt_duration_us", 0)], 1);
    let ups = phases(flow.run(12.0));
    let ups = ups.iter().filter(|(phase, _)| *phase == Phase::Up).count();
    assert!(ups >= 3, "BBRv3 sees the plateau");
}

#[test]
fn a_timeout_bounds_by_the_window_saved_before_it() {
    let mut flow = Flow::new("bbr2", deep(), &[], 1);
    flow.run(1.5);
    let before = flow.ctl.cwnd;
    flow.time_out();
    assert_eq!(flow.info().inflight_shortterm, before);
    flow.event(EventKind::Undo, 0);
    assert_eq!(flow.info().inflight_shortterm, INFINITE);
    assert_eq!(flow.ctl.cwnd, before);
}
