//! CUBIC's answers to hand-made calls, each against the lines of Linux's `tcp_cubic.c` that it names
//! (bictcp_update(), hystart_update(), bictcp_acked()) or against RFC 9438.

use crate::calls::{self, Caller, MSS};
use fullpipe_cc::{CaState, EventKind, INFINITE};

/// A jiffy of HZ = 250, the default of `clock_us`.
const TICK_US: u64 = 4_000;
/// The cubic function alone: without Reno's region.
const PURE: (&str, u32) = ("reno_friendly", 0);

/// Behind a reduction at a window of `maximum`, with a window of `cwnd` in congestion avoidance.
fn reduced(maximum: u32, cwnd: u32, changes: &[(&str, u32)]) -> Caller {
    let mut cubic = Caller::with("cubic", maximum, changes);
    cubic.event(EventKind::Ssthresh, 0, 0);
    cubic.ctl.cwnd = cwnd;
    cubic.ctl.ssthresh = 2;
    cubic
}

/// `ca->cnt`: packets that buy one packet of growth. An ACK that is large enough shows it by what it
/// adds to the window and to the fraction in `cwnd_cnt`.
fn packets_per_growth(cubic: &mut Caller) -> u32 {
    let before = cubic.ctl;
    for acked in [64, 1 << 12, 1 << 20, 1 << 31] {
        cubic.ack(acked);
        let (grown, fraction) = (cubic.ctl.cwnd - before.cwnd, cubic.ctl.cwnd_cnt);
        cubic.ctl = before;
        if let Some(per) = (acked + before.cwnd_cnt - fraction).checked_div(grown) {
            return per;
        }
    }
    panic!("the window does not grow");
}

/// floor(cbrt(2^40 / 410 * (maximum - cwnd))): K in 2^-10 s (bictcp_update(), cube_factor).
fn k(maximum: u32, cwnd: u32) -> u64 {
    let cube = u128::from((1u64 << 40) / 410 * u64::from(maximum - cwnd));
    (0..).find(|&k| u128::from(k + 1).pow(3) > cube).unwrap()
}

/// W(t) in the kernel's integers; `t` in 2^-10 s.
fn target(origin: u32, k: u64, t: u64) -> u32 {
    let distance = u128::from(k.abs_diff(t));
    let delta = ((410 * distance.pow(3)) >> 40) as u32;
    if t < k {
        origin - delta
    } else {
        origin + delta
    }
}

/// bictcp_update() without `tcp_friendliness`.
fn expected_per(cwnd: u32, target: u32) -> u32 {
    let per = if target > cwnd {
        cwnd / (target - cwnd)
    } else {
        100 * cwnd
    };
    per.max(2)
}

#[test]
fn a_reduction_remembers_the_window_or_less_of_a_flow_that_shrank_twice() {
    // bictcp_recalc_ssthresh(): only `snd_cwnd < last_max_cwnd` shrinks it, to
    // cwnd (1024 + 717) / 2048; 717 / 1024 of the window are left, two packets at least.
    for (fast_convergence, second, maximum, ssthresh) in [
        (1, 999, 999 * 1741 / 2048, 999 * 717 / 1024),
        (1, 1000, 1000, 700),
        (1, 1001, 1001, 700),
        (1, 3, 2, 2),
        (0, 999, 999, 699),
    ] {
        let mut cubic = reduced(1000, second, &[("fast_convergence", fast_convergence)]);
        cubic.event(EventKind::Ssthresh, 0, 0);
        assert_eq!(cubic.ctl.ssthresh, ssthresh);
        cubic.ctl.cwnd = 2;
        cubic.ctl.ssthresh = 2;
        cubic.ack(1);
        assert_eq!(
            cubic.variable("w_max_packets"),
            Some(f64::from(maximum)),
            "{second}"
        );
    }
}

#[test]
fn a_reduction_ends_the_epoch() {
    // bictcp_recalc_ssthresh(): `ca->epoch_start = 0`.
    let mut cubic = reduced(1000, 700, &[]);
    cubic.ack(1);
    assert_eq!(cubic.variable("w_max_packets"), Some(1000.0));
    cubic.event(EventKind::Ssthresh, 0, 0);
    assert_eq!(cubic.variable("w_max_packets"), None);
}

#[test]
fn the_floor_of_the_threshold_is_a_parameter() {
    let mut cubic = Caller::with("cubic", 20, &[("min_ssthresh", 15)]);
    cubic.event(EventKind::Ssthresh, 0, 0);
    assert_eq!(cubic.ctl.ssthresh, 15);
}

#[test]
fn an_undo_returns_the_larger_of_the_windows() {
    // tcp_reno_undo_cwnd(): max(snd_cwnd, prior_cwnd).
    for (now, expected) in [(50, 100), (120, 120)] {
        let mut cubic = reduced(100, now, &[]);
        cubic.event(EventKind::Undo, 0, 0);
        assert_eq!(cubic.ctl.cwnd, expected);
    }
    let mut fresh = Caller::new("cubic", 10);
    fresh.ctl.cwnd = 4;
    fresh.event(EventKind::Undo, 0, 0);
    assert_eq!(fresh.ctl.cwnd, 10, "the window that it began with");
}

#[test]
fn the_plateau_is_k_away_and_the_window_where_no_larger_one_is_known() {
    for (maximum, cwnd) in [
        (1000, 700),
        (1000, 999),
        (50, 35),
        (1000, 1000),
        (700, 1000),
    ] {
        let mut cubic = reduced(maximum, cwnd, &[]);
        cubic.ack(1);
        let origin = maximum.max(cwnd);
        assert_eq!(cubic.variable("w_max_packets"), Some(f64::from(origin)));
        let expected = if maximum > cwnd {
            k(maximum, cwnd) as f64 / 1024.0
        } else {
            0.0
        };
        assert_eq!(cubic.variable("k_s"), Some(expected), "{maximum} {cwnd}");
    }
}

#[test]
fn the_window_aims_at_the_cubic_function_an_rtt_ahead() {
    // Seconds since the epoch's start, least RTT in ticks: before, at and beyond K = 9.08 s.
    for (maximum, cwnd) in [(1000, 700), (5000, 3500), (10_000_000, 10_000_000)] {
        for (ticks, rtt_ticks) in [
            (250, 0),
            (1000, 25),
            (2000, 1),
            (2400, 250),
            (4000, 0),
            (50_000, 0),
        ] {
            let mut cubic = Caller::with("cubic", maximum, &[PURE, ("hystart", 0)]);
            if rtt_ticks > 0 {
                cubic.event(EventKind::Rtt, rtt_ticks * TICK_US as u32, 1);
            }
            cubic.event(EventKind::Ssthresh, 0, 0);
            (cubic.ctl.cwnd, cubic.ctl.ssthresh) = (cwnd, 2);
            cubic.ack(1);
            cubic.wait_us(ticks * TICK_US);
            let t = ((ticks + u64::from(rtt_ticks)) << 10) / 250;
            let origin = maximum.max(cwnd);
            let aim = target(origin, if maximum > cwnd { k(maximum, cwnd) } else { 0 }, t);
            assert_eq!(
                packets_per_growth(&mut cubic),
                expected_per(cwnd, aim),
                "{maximum} {cwnd}, {ticks} ticks, {rtt_ticks}"
            );
        }
    }
}

#[test]
fn at_its_target_the_window_waits_for_a_hundred_windows() {
    // `cnt = 100 * cwnd` where target <= cwnd; one packet above it is a whole window's ACKs.
    let mut cubic = reduced(1000, 1000, &[PURE]);
    assert_eq!(packets_per_growth(&mut cubic), 100_000);
    // K = 0: the function reaches 1001 packets at cbrt(1 / 0.4004) s = 1.357 s, after 340 ticks.
    for (ticks, per) in [(339, 100_000), (340, 1000)] {
        let mut cubic = reduced(1000, 1000, &[PURE]);
        cubic.ack(1);
        cubic.wait_us(ticks * TICK_US);
        assert_eq!(packets_per_growth(&mut cubic), per, "{ticks}");
    }
}

#[test]
fn without_a_known_maximum_the_window_grows_by_a_packet_for_twenty() {
    // bictcp_update(): `if (last_max_cwnd == 0 && cnt > 20) cnt = 20`.
    let mut cubic = Caller::with("cubic", 1000, &[PURE]);
    cubic.ctl.ssthresh = 2;
    assert_eq!(packets_per_growth(&mut cubic), 20);
    // 2 s on, 0.4004 * 8 = 3.2 packets above 10: 10 / 3. 3 s on, 10.8: 300 / 10, but at most 20.
    for (cwnd, wait_us, per) in [
        (10, 2_000_000, 3),
        (300, 3_000_000, 20),
        (200, 3_000_000, 20),
        (190, 3_000_000, 19),
    ] {
        let mut flow = Caller::with("cubic", cwnd, &[PURE]);
        flow.ctl.ssthresh = 2;
        flow.ack(1);
        flow.wait_us(wait_us);
        assert_eq!(packets_per_growth(&mut flow), per, "{cwnd}");
    }
}

#[test]
fn the_function_is_computed_again_after_an_hz_of_32_or_with_another_window() {
    // `last_cwnd == cwnd && jiffies - last_time <= HZ / 32`: 7 ticks of 4 ms; 31,250 ticks of 1 us.
    for (clock_us, wait_us, is_new) in [
        (4_000, 28_000, false),
        (4_000, 32_000, true),
        (1, 31_250, false),
        (1, 31_251, true),
    ] {
        let mut cubic = reduced(1 << 21, 1 << 21, &[PURE, ("clock_us", clock_us)]);
        cubic.ack(1);
        cubic.wait_us(10_000_000);
        let before = packets_per_growth(&mut cubic);
        cubic.wait_us(wait_us);
        assert_eq!(
            packets_per_growth(&mut cubic) != before,
            is_new,
            "{clock_us}, {wait_us}"
        );
    }
    let mut cubic = reduced(1 << 21, 1 << 21, &[PURE]);
    cubic.ack(1);
    cubic.wait_us(10_000_000);
    let before = packets_per_growth(&mut cubic);
    cubic.ctl.cwnd += 1;
    assert_eq!(
        packets_per_growth(&mut cubic),
        before,
        "at most once a tick"
    );
    cubic.wait_us(TICK_US);
    cubic.ctl.cwnd += 1;
    assert_ne!(packets_per_growth(&mut cubic), before);
}

#[test]
fn renos_window_grows_by_a_packet_for_15_eighths_of_the_window() {
    // beta_scale = 8 (1024 + 717) / 3 / (1024 - 717) = 15; `while (ack_cnt > delta)`.
    for (acked, reno) in [(150, 80), (151, 81), (300, 81), (301, 82), (1501, 90)] {
        let mut cubic = reduced(115, 80, &[]);
        cubic.ack(acked);
        assert_eq!(
            cubic.variable("w_est_packets"),
            Some(f64::from(reno)),
            "{acked}"
        );
    }
    // What is acknowledged while the function rests counts at its next turn; what was used does not
    // count again: 100 + 100 + 102 - 150 - 150 are 2 packets, and 149 more make 151.
    let mut cubic = reduced(115, 80, &[]);
    for (wait_us, packets, reno) in [
        (0, 100, 80),
        (20_000, 100, 80),
        (12_000, 102, 82),
        (32_000, 148, 82),
        (32_000, 1, 83),
    ] {
        cubic.ctl.cwnd = 80;
        cubic.wait_us(wait_us);
        cubic.ack(packets);
        assert_eq!(
            cubic.variable("w_est_packets"),
            Some(f64::from(reno)),
            "{packets}"
        );
    }
    // A window of one: 15 / 8 is 1.
    let mut tiny = reduced(2, 1, &[("min_ssthresh", 1)]);
    tiny.ctl.ssthresh = 1;
    tiny.ack(4);
    assert_eq!(tiny.variable("w_est_packets"), Some(4.0));
}

#[test]
fn where_renos_window_is_larger_it_decides_the_growth() {
    // max_cnt = cwnd / (tcp_cwnd - cwnd), at least 2: 1501 packets make Reno's window 90, and 80 / 10.
    for (acked, per) in [(301, 40), (1501, 8), (150 * 80 + 1, 2)] {
        let mut cubic = reduced(115, 80, &[]);
        cubic.ack(acked);
        assert_eq!(cubic.ctl.cwnd, 80 + acked / per, "{acked}");
        assert_eq!(cubic.ctl.cwnd_cnt, acked % per);
    }
    let mut pure = reduced(115, 80, &[PURE]);
    pure.ack(301);
    // CUBIC itself aims at 115 - 0.4 K^3 = 81 packets.
    assert_eq!(pure.ctl.cwnd, 80 + 301 / 80);
}

#[test]
fn idle_time_is_no_time_of_the_epoch() {
    // cubictcp_cwnd_event(): epoch_start += now - lsndtime, not beyond now.
    let growth_after = |kind: EventKind, ran_us: u64, last_send_us: i64, idle_us: u64| {
        let mut cubic = reduced(1000, 700, &[PURE]);
        cubic.ack(1);
        let begin_us = cubic.conn.now_us;
        cubic.wait_us(ran_us + idle_us);
        cubic.conn.last_send_us = begin_us.checked_add_signed(last_send_us).unwrap();
        cubic.event(kind, 0, 0);
        packets_per_growth(&mut cubic)
    };
    let growth = |ran_us, last_send_us, idle_us| {
        growth_after(EventKind::TxStart, ran_us, last_send_us, idle_us)
    };
    let at = |us: u64| expected_per(700, target(1000, k(1000, 700), (us << 10) / 1_000_000));
    // Idle for 5 s after 3 s; not idle at all; sent "later" than now; idle since before the epoch.
    assert_eq!(growth(3_000_000, 3_000_000, 5_000_000), at(3_000_000));
    assert_eq!(growth(8_000_000, 8_000_000, 0), at(8_000_000));
    assert_eq!(growth(8_000_000, 8_100_000, 0), at(8_000_000));
    assert_eq!(growth(8_000_000, -900_000, 0), at(0));
    for kind in [
        EventKind::CompleteCwr,
        EventKind::CwndRestart,
        EventKind::EcnCe,
    ] {
        assert_eq!(
            growth_after(kind, 3_000_000, 3_000_000, 5_000_000),
            at(8_000_000)
        );
    }
}

#[test]
fn idle_time_before_an_epoch_begins_none() {
    let mut cubic = reduced(1000, 700, &[]);
    cubic.conn.last_send_us = cubic.conn.now_us;
    cubic.wait_us(1_000_000);
    cubic.event(EventKind::TxStart, 0, 0);
    assert_eq!(cubic.variable("w_max_packets"), None);
}

#[test]
fn only_a_window_that_limits_grows_and_slow_start_leaves_its_rest_to_avoidance() {
    // cubictcp_cong_avoid().
    let mut cubic = Caller::new("cubic", 10);
    cubic.conn.is_cwnd_limited = 0;
    cubic.ack(5);
    assert_eq!((cubic.ctl.cwnd, cubic.ctl.cwnd_cnt), (10, 0));
    cubic.conn.is_cwnd_limited = 1;
    cubic.ctl.ssthresh = 15;
    cubic.ack(5);
    assert_eq!(
        (cubic.ctl.cwnd, cubic.variable("w_max_packets")),
        (15, None)
    );
    assert_eq!(cubic.variable("phase"), Some(8.0), "slow start");
    cubic.ack(3);
    assert_eq!((cubic.ctl.cwnd, cubic.ctl.cwnd_cnt), (15, 3));
    assert_eq!(cubic.variable("phase"), Some(9.0), "avoidance");
    assert_eq!(cubic.variable("w_max_packets"), Some(15.0));
    cubic.ctl.ssthresh = 17;
    cubic.ack(5);
    assert_eq!((cubic.ctl.cwnd, cubic.ctl.cwnd_cnt), (17, 6));
}

#[test]
fn a_timeout_forgets_everything_and_no_other_state_does() {
    // cubictcp_state(): bictcp_reset() in TCP_CA_Loss only.
    let mut cubic = reduced(1000, 700, &[]);
    cubic.event(EventKind::Rtt, 40_000, 1);
    cubic.ack(1);
    for (state, kept) in [(CaState::Recovery, true), (CaState::Loss, false)] {
        cubic.event(EventKind::State, state as u32, 0);
        assert_eq!(cubic.variable("w_max_packets").is_some(), kept);
        assert_eq!(cubic.variable("min_rtt_us").is_some(), kept);
    }
    cubic.ack(1);
    assert_eq!(cubic.variable("w_max_packets"), Some(700.0));
    assert_eq!(cubic.variable("w_est_packets"), Some(700.0));
}

#[test]
fn a_delay_is_not_taken_in_the_second_after_an_epochs_start() {
    // bictcp_acked(): `jiffies - epoch_start < HZ`; a delay of 0 counts as 1 us.
    let mut cubic = reduced(1000, 700, &[]);
    cubic.event(EventKind::Rtt, 50_000, 1);
    cubic.event(EventKind::Rtt, 60_000, 1);
    assert_eq!(cubic.variable("min_rtt_us"), Some(50_000.0));
    cubic.ack(1);
    for (wait_us, min_rtt_us) in [(996_000, 50_000.0), (4_000, 1.0)] {
        cubic.wait_us(wait_us);
        cubic.event(EventKind::Rtt, 0, 1);
        assert_eq!(cubic.variable("min_rtt_us"), Some(min_rtt_us));
    }
}

/// The ACKs of a new round begin.
fn begin_round(cubic: &mut Caller) {
    cubic.conn.snd_una = cubic.conn.snd_nxt.wrapping_add(1);
    cubic.conn.snd_nxt = cubic.conn.snd_una.wrapping_add(100 * MSS);
}

/// Samples too far apart to be a train.
fn samples(cubic: &mut Caller, count: u32, rtt_us: u32) {
    for _ in 0..count {
        cubic.wait_us(10_000);
        cubic.event(EventKind::Rtt, rtt_us, 1);
    }
}

#[test]
fn hystarts_delay_must_rise_by_more_than_an_eighth_between_4_and_16_ms() {
    // HYSTART_DELAY_THRESH(delay_min >> 3), `curr_rtt > delay_min + thresh`.
    for (rtt_us, rise_us) in [
        (20_000, 4_000),
        (40_000, 5_000),
        (80_000, 10_000),
        (200_000, 16_000),
    ] {
        for (more_us, ssthresh) in [(0, INFINITE), (1, 100)] {
            let mut cubic = Caller::new("cubic", 100);
            begin_round(&mut cubic);
            samples(&mut cubic, 9, rtt_us);
            begin_round(&mut cubic);
            samples(&mut cubic, 9, rtt_us + rise_us + more_us);
            assert_eq!(cubic.ctl.ssthresh, ssthresh, "{rtt_us}");
            assert_eq!(cubic.variable("hystart_found"), Some(f64::from(more_us)));
        }
    }
}

#[test]
fn hystart_counts_eight_samples_of_a_round_and_the_least_of_them_decides() {
    // HYSTART_MIN_SAMPLES: the ninth sample of a round is the first that may decide.
    let ends = |low_at: Option<u32>, count: u32| {
        let mut cubic = Caller::new("cubic", 100);
        begin_round(&mut cubic);
        samples(&mut cubic, 1, 40_000);
        begin_round(&mut cubic);
        for index in 0..count {
            let rtt_us = if Some(index) == low_at {
                44_000
            } else {
                60_000
            };
            samples(&mut cubic, 1, rtt_us);
        }
        cubic.ctl.ssthresh < INFINITE
    };
    assert!(!ends(None, 8));
    assert!(ends(None, 9));
    for low_at in [0, 4, 8] {
        assert!(!ends(Some(low_at), 20), "{low_at}");
    }
}

#[test]
fn hystarts_round_ends_behind_its_end() {
    // `after(tp->snd_una, ca->end_seq)`: the least RTT of the old round still counts at its end.
    for (behind, ssthresh) in [(0, INFINITE), (1, 100)] {
        let mut cubic = Caller::new("cubic", 100);
        begin_round(&mut cubic);
        samples(&mut cubic, 2, 40_000);
        cubic.conn.snd_una = cubic.conn.snd_nxt.wrapping_add(behind);
        cubic.conn.snd_nxt = cubic.conn.snd_una.wrapping_add(100 * MSS);
        samples(&mut cubic, 9, 60_000);
        assert_eq!(cubic.ctl.ssthresh, ssthresh, "{behind}");
    }
}

#[test]
fn hystart_looks_from_16_packets_on_once_and_in_slow_start_only() {
    for (cwnd, ssthresh, ends) in [
        (15, INFINITE, false),
        (16, INFINITE, true),
        (100, 100, false),
    ] {
        let mut cubic = Caller::new("cubic", cwnd);
        cubic.ctl.ssthresh = ssthresh;
        begin_round(&mut cubic);
        samples(&mut cubic, 9, 40_000);
        begin_round(&mut cubic);
        samples(&mut cubic, 9, 60_000);
        assert_eq!(
            cubic.variable("hystart_found"),
            Some(f64::from(u8::from(ends))),
            "{cwnd}"
        );
    }
    let mut cubic = Caller::new("cubic", 100);
    begin_round(&mut cubic);
    samples(&mut cubic, 9, 40_000);
    begin_round(&mut cubic);
    samples(&mut cubic, 9, 60_000);
    assert_eq!(cubic.variable("start_exit_cwnd_packets"), Some(100.0));
    cubic.ctl.ssthresh = INFINITE;
    samples(&mut cubic, 9, 60_000);
    assert_eq!(
        cubic.ctl.ssthresh, INFINITE,
        "`found` stays until bictcp_reset()"
    );
    cubic.event(EventKind::State, CaState::Loss as u32, 0);
    assert_eq!(cubic.variable("hystart_found"), Some(0.0));
    begin_round(&mut cubic);
    samples(&mut cubic, 9, 40_000);
    begin_round(&mut cubic);
    samples(&mut cubic, 9, 60_000);
    assert_eq!(cubic.ctl.ssthresh, 100);
}

/// How long after the round's first ACK a train, one ACK every `gap_us`, ends slow start.
fn train_us(
    gap_us: u64,
    changes: &[(&str, u32)],
    rate_bytes_per_s: u64,
    is_paced: u8,
) -> Option<u64> {
    let mut cubic = Caller::with("cubic", 100, changes);
    cubic.conn.is_paced = is_paced;
    cubic.ctl.pacing_rate_bytes_per_s = rate_bytes_per_s;
    begin_round(&mut cubic);
    samples(&mut cubic, 1, 40_000);
    begin_round(&mut cubic);
    // RTTs below the delay test's bound.
    cubic.event(EventKind::Rtt, 40_000, 1);
    let begin_us = cubic.conn.now_us;
    while cubic.conn.now_us - begin_us < 60_000 {
        cubic.wait_us(gap_us);
        cubic.event(EventKind::Rtt, 40_000, 1);
        if cubic.ctl.ssthresh < INFINITE {
            assert_eq!(cubic.variable("hystart_found"), Some(1.0));
            return Some(cubic.conn.now_us - begin_us);
        }
    }
    None
}

#[test]
fn hystarts_first_round_begins_with_the_connection() {
    // bictcp_init(): bictcp_hystart_reset(), which reads snd_nxt and the clock.
    let mut cubic = Caller::prepared("cubic", 100, &[], |conn| conn.snd_nxt = 100 * MSS);
    for _ in 0..10 {
        cubic.wait_us(1_000);
        cubic.event(EventKind::Rtt, 20_000, 1);
    }
    assert_eq!(cubic.ctl.ssthresh, INFINITE);
    cubic.wait_us(1_000);
    cubic.event(EventKind::Rtt, 20_000, 1);
    assert_eq!(cubic.ctl.ssthresh, 100, "11 ms are more than half of 20");
}

#[test]
fn hystarts_train_has_gaps_of_at_most_two_milliseconds() {
    // hystart_ack_delta_us: `(s32)(now - ca->last_ack) <= 2000`.
    assert_eq!(train_us(2_000, &[], 0, 0), Some(22_000));
    assert_eq!(train_us(2_001, &[], 0, 0), None);
    assert_eq!(train_us(500, &[("hystart_ack_delta_us", 499)], 0, 0), None);
    assert_eq!(train_us(500, &[("hystart", 0)], 0, 0), None);
}

#[test]
fn hystarts_train_lasts_longer_than_half_the_least_rtt_and_the_time_of_four_bursts() {
    // threshold = (delay_min + hystart_ack_delay()) >> 1 without pacing; `> threshold`. Four bursts of
    // 45 packets of 1448 bytes are 260,640 bytes, at most a millisecond.
    const BURSTS: u64 = 4 * 45 * 1448;
    for (rate, is_paced, last_us) in [
        (0, 0, 20_000),
        (0, 1, 40_000),
        (BURSTS * 2_000, 0, 20_250),
        (BURSTS * 2_000, 1, 40_500),
        (BURSTS * 500, 0, 20_500),
    ] {
        assert_eq!(
            train_us(250, &[], rate, is_paced),
            Some(last_us + 250),
            "{rate} {is_paced}"
        );
    }
}

#[test]
fn the_constants_are_linuxs() {
    for (name, stored) in [
        ("beta", 717),
        ("scale", 41),
        ("fast_convergence", 1),
        ("reno_friendly", 1),
        ("hystart", 1),
        ("hystart_low_window", 16),
        ("hystart_ack_delta_us", 2_000),
        ("hystart_samples", 8),
        ("hystart_delay_min_us", 4_000),
        ("hystart_delay_max_us", 16_000),
        ("min_ssthresh", 2),
        ("clock_us", 4_000),
        ("start", 0),
        ("css_rounds", 5),
        ("css_growth_divisor", 4),
        ("search_threshold", 266),
        ("saved_cwnd", 0),
        ("saved_rtt_us", 0),
        ("max_jump", 0),
    ] {
        assert_eq!(calls::stored("cubic", name), stored, "{name}");
    }
}

#[test]
fn the_steepest_function_is_exact_for_minutes() {
    // scale = 1024 is C = 10: from 256 s on scale * 10 * t^3 has more than 64 bits.
    for seconds in [60, 255, 257, 300, 1_000] {
        let steepest = [PURE, ("hystart", 0), ("scale", 1024)];
        let mut cubic = Caller::with("cubic", 1000, &steepest);
        cubic.event(EventKind::Ssthresh, 0, 0);
        (cubic.ctl.cwnd, cubic.ctl.ssthresh) = (1 << 23, 2);
        cubic.ack(1);
        cubic.wait_us(seconds * 1_000_000);
        let cube = (u128::from((seconds - 1) << 10).pow(3) * 10_240) >> 40;
        let aim = ((1 << 23) + cube).min(u128::from(INFINITE)) as u32;
        let most = expected_per(1 << 23, aim);
        assert!(packets_per_growth(&mut cubic) <= most, "{seconds} s");
    }
}
