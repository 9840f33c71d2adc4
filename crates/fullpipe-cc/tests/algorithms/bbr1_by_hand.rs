//! BBRv1's answers to hand-made calls, each against the function of Linux's `tcp_bbr.c` (mainline) that
//! it names. Gains are in 1/1024 here and in 1/256 there. A round trip of the steady path delivers
//! 100 packets in 10 ms.

use crate::hand::{self, Hand, Seen, MSS, RTT_US};
use fullpipe_cc::{Ack, CaState, EventKind, Phase, INFINITE, ONE};

fn bandwidth(packets: u64, interval_us: u64) -> u64 {
    (packets << 24) / interval_us
}

/// bbr_rate_bytes_per_sec().
fn rate(bw: u64, gain: u32, margin_percent: u64) -> u64 {
    let paced = (bw * u64::from(MSS) * u64::from(gain)) >> 10;
    (paced * 10_000 * (100 - margin_percent)) >> 24
}

/// A bandwidth as the recording has it.
fn shown(bw: u64) -> u64 {
    rate(bw, ONE, 0)
}

/// bbr_bdp(): rounded up.
fn bdp(bw: u64, rtt_us: u64, gain: u32) -> u32 {
    ((bw * rtt_us * u64::from(gain)) >> 10).div_ceil(1 << 24) as u32
}

/// bbr_tso_segs_goal(): a millisecond at the pacing rate.
fn burst(rate: u64) -> u32 {
    let least = if rate < 150_000 { 1 } else { 2 };
    ((rate >> 10).min(65_215) / u64::from(MSS)).clamp(least, 127) as u32
}

/// bbr_quantization_budget(): three bursts, an even number, two more where a probe must show.
fn with_budget(packets: u32, rate: u64, is_probing: bool) -> u32 {
    ((packets + 3 * burst(rate) + 1) & !1) + 2 * u32::from(is_probing)
}

fn wide(changes: &[(&str, u32)]) -> Hand {
    let mut hand = Hand::with("bbr1", changes, |conn| conn.inflight = 100);
    hand.packets = 100;
    hand.ctl.cwnd = 400;
    hand
}

fn with_ack(hand: &mut Hand, change: impl FnOnce(&mut Ack)) {
    let mut ack = hand.next_ack();
    change(&mut ack);
    hand.deliver(ack);
}

/// A round of so many packets.
fn round_of(hand: &mut Hand, packets: i32) {
    with_ack(hand, |ack| ack.delivered = packets);
}

fn max_bw(hand: &Hand) -> u64 {
    hand.cc.info().max_bw_bytes_per_s
}

/// In ProbeBW with this gain, seen at a round's first ACK.
fn cycling(gain: u32, changes: &[(&str, u32)]) -> Hand {
    let mut hand = wide(changes);
    for _ in 0..100 {
        // Much in flight, so that UP ends after a round and DOWN not before it.
        with_ack(&mut hand, |ack| {
            (ack.delivered, ack.rtt_us, ack.prior_inflight) = (100, 9_999, 500);
        });
        let phase = hand.phase();
        if !matches!(phase, Phase::Startup | Phase::Drain) && hand.cc.info().pacing_gain == gain {
            return hand;
        }
    }
    panic!("never at {gain}");
}

#[test]
fn the_constants_are_linuxs() {
    for (name, stored) in [
        ("high_gain", 4 * (256 * 2885 / 1000 + 1)),
        ("drain_gain", 4 * (256 * 1000 / 2885)),
        ("cwnd_gain", 4 * 512),
        ("probe_up_gain", 4 * (256 * 5 / 4)),
        ("probe_down_gain", 4 * (256 * 3 / 4)),
        ("bw_window_rounds", 8 + 2),
        ("min_rtt_window_ms", 10_000),
        ("probe_rtt_ms", 200),
        ("min_cwnd", 4),
        ("full_bw_growth", 4 * (256 * 5 / 4)),
        ("full_bw_rounds", 3),
        ("pacing_margin_percent", 1),
        ("extra_acked_gain", 4 * 256),
        ("extra_acked_rounds", 5),
        ("extra_acked_max_us", 100_000),
        ("offload_budget", 3),
        ("lt_intvl_min_rounds", 4),
        ("lt_loss_thresh", 4 * 50),
        ("lt_bw_ratio", 4 * 256 / 8),
        ("lt_bw_diff", 4_000 / 8),
        ("lt_bw_max_rounds", 48),
    ] {
        assert_eq!(hand::stored("bbr1", name), stored, "{name}");
    }
}

#[test]
fn the_first_rate_is_2_89_initial_windows_in_a_round_trip_or_a_millisecond() {
    // bbr_init_pacing_rate_from_rtt(), once more at the first RTT; in Startup the rate only rises.
    let first = |rtt_us: u64| rate((10 << 24) / rtt_us, 4 * 739, 1);
    assert_eq!(Hand::new("bbr1").ctl.pacing_rate_bytes_per_s, first(10_000));
    let mut hand = Hand::with("bbr1", &[], |conn| conn.srtt_us = 0);
    assert_eq!(hand.ctl.pacing_rate_bytes_per_s, first(1_000));
    hand.conn.srtt_us = 20_000;
    round_of(&mut hand, 1);
    assert_eq!(hand.ctl.pacing_rate_bytes_per_s, first(20_000));
    hand.conn.srtt_us = 40_000;
    round_of(&mut hand, 1);
    assert_eq!(hand.ctl.pacing_rate_bytes_per_s, first(20_000));
    round_of(&mut hand, 20);
    assert_eq!(
        hand.ctl.pacing_rate_bytes_per_s,
        rate(bandwidth(20, 10_000), 4 * 739, 1)
    );
    assert_eq!((hand.ctl.sndbuf_factor, hand.ctl.ssthresh), (3, INFINITE));
    hand.conn.pacing_rate_cap_bytes_per_s = 10_000;
    round_of(&mut hand, 40);
    assert_eq!(hand.ctl.pacing_rate_bytes_per_s, 10_000);
}

#[test]
fn bandwidth_is_rounded_down_and_needs_a_valid_sample() {
    // bbr_update_bw(): `rs->delivered < 0 || rs->interval_us <= 0` returns.
    let sample = |delivered, interval_us| {
        let mut hand = Hand::new("bbr1");
        with_ack(&mut hand, |ack| {
            (ack.delivered, ack.interval_us) = (delivered, interval_us)
        });
        (max_bw(&hand), hand.cc.info().round_count)
    };
    assert_eq!(sample(2, 3), (shown(11_184_810), 1));
    assert_eq!(
        (sample(-1, 10), sample(1, 0), sample(1, -1)),
        ((0, 0), (0, 0), (0, 0))
    );
    assert_eq!(sample(1 << 20, 1).0, shown(0xffff_ffff));
}

#[test]
fn on_a_connection_that_has_run_the_first_round_is_of_what_was_sent_since() {
    // bbr_init(): next_rtt_delivered = tp->delivered.
    for (before, rounds) in [(1, 0), (0, 1)] {
        let mut hand = Hand::with("bbr1", &[], |conn| conn.delivered = 5000);
        with_ack(&mut hand, |ack| ack.prior_delivered -= before);
        assert_eq!(hand.cc.info().round_count, rounds);
    }
}

#[test]
fn a_round_ends_where_what_was_sent_at_its_beginning_is_delivered() {
    let mut hand = Hand::new("bbr1");
    for (before, rounds) in [(0, 1), (1, 1), (0, 2)] {
        let mut ack = hand.next_ack();
        let start = ack.prior_delivered;
        ack.prior_delivered -= before;
        hand.deliver(ack);
        assert_eq!(hand.cc.info().round_count, rounds);
        if before > 0 {
            hand.conn.delivered = start;
        }
    }
}

#[test]
fn max_bw_is_the_largest_of_ten_rounds() {
    // minmax_running_max() with bbr_bw_rtts: a sample counts while now - its round <= 10. Where the
    // filter's three samples lie in the quarters that it keeps, it is exact.
    for peaks in [
        &[(1, 100), (4, 80), (7, 60)][..],
        &[(1, 100), (6, 90), (8, 85)][..],
        &[(1, 100), (4, 80), (7, 60), (9, 70)][..],
        &[(1, 100), (4, 60), (5, 60), (9, 100)][..],
        &[(1, 50), (3, 60), (6, 80)][..],
    ] {
        let at = |round: i32| {
            let peak = peaks.iter().find(|(at, _)| *at == round);
            peak.map_or(20, |(_, packets)| *packets)
        };
        let mut hand = Hand::new("bbr1");
        for round in 1..26 {
            round_of(&mut hand, at(round));
            let largest = (1.max(round - 10)..=round).map(at).max().unwrap();
            assert_eq!(
                max_bw(&hand),
                shown(bandwidth(largest as u64, 10_000)),
                "{peaks:?} {round}"
            );
        }
    }
    let mut short = Hand::with("bbr1", &[("bw_window_rounds", 2)], |_| {});
    for (packets, largest) in [(90, 90), (20, 90), (20, 90), (20, 20)] {
        round_of(&mut short, packets);
        assert_eq!(max_bw(&short), shown(bandwidth(largest, 10_000)));
    }
}

#[test]
fn an_application_limited_sample_counts_where_it_is_not_below_max_bw() {
    for (rounds, left) in [(9, 100), (10, 50)] {
        let mut hand = Hand::new("bbr1");
        round_of(&mut hand, 100);
        for _ in 0..rounds {
            with_ack(&mut hand, |ack| {
                (ack.delivered, ack.is_app_limited) = (70, 1)
            });
            assert_eq!(max_bw(&hand), shown(bandwidth(100, 10_000)));
        }
        // The eleventh round behind the largest: what was application-limited is in no window.
        round_of(&mut hand, 50);
        assert_eq!(max_bw(&hand), shown(bandwidth(left, 10_000)), "{rounds}");
        with_ack(&mut hand, |ack| {
            (ack.delivered, ack.is_app_limited) = (120, 1)
        });
        assert_eq!(max_bw(&hand), shown(bandwidth(120, 10_000)));
    }
}

#[test]
fn three_rounds_that_grow_by_less_than_a_quarter_fill_the_pipe() {
    // bbr_check_full_bw_reached(): of the largest bandwidth, at round starts, not application-limited.
    for (delivered, rounds) in [
        (&[80, 100, 125, 156, 156, 156][..], Some(6)),
        (&[80, 80, 80, 80][..], Some(4)),
        (&[80, 80, 80, 101, 80, 80, 80][..], Some(7)),
        (&[80, 99, 80, 80][..], Some(4)),
        (&[80, 80, 80][..], None),
    ] {
        let mut hand = wide(&[]);
        let ended = delivered.iter().position(|&packets| {
            round_of(&mut hand, packets);
            hand.phase() != Phase::Startup
        });
        assert_eq!(ended.map(|index| index + 1), rounds, "{delivered:?}");
    }
    let mut hand = wide(&[]);
    for (prior_delivered, is_app_limited, ends) in [
        (1, 0, false),
        (1, 0, false),
        (1, 1, false),
        (0, 0, false),
        (1, 0, false),
        (1, 0, true),
    ] {
        with_ack(&mut hand, |ack| {
            ack.prior_delivered *= prior_delivered;
            (ack.delivered, ack.is_app_limited) = (80, is_app_limited);
        });
        assert_eq!(hand.phase() != Phase::Startup, ends);
    }
    let mut undone = wide(&[]);
    for round in 0..7 {
        assert_eq!(undone.phase(), Phase::Startup, "{round}");
        if round == 3 {
            // bbr_undo_cwnd(): full_bw and its count.
            undone.event(EventKind::Undo, 0);
        }
        round_of(&mut undone, 80);
    }
    assert_ne!(undone.phase(), Phase::Startup);
}

/// In Drain with so many packets in flight, at an ACK whose next departure is `wait_us` away.
fn drains_with(inflight: u32, wait_us: u64) -> bool {
    let mut hand = wide(&[]);
    hand.packets = 390;
    while hand.phase() == Phase::Startup {
        round_of(&mut hand, 100);
    }
    assert_eq!(
        (hand.phase(), hand.cc.info().pacing_gain),
        (Phase::Drain, 352)
    );
    let mut ack = hand.next_ack();
    ack.delivered = 100;
    hand.conn.inflight = inflight;
    hand.conn.edt_ns = hand.conn.now_ns + wait_us * 1_000;
    hand.deliver(ack);
    hand.phase() == Phase::Drain
}

#[test]
fn drain_lasts_until_a_bdp_and_three_bursts_are_in_flight_at_the_next_departure() {
    // bbr_check_drain(), bbr_packets_in_net_at_edt().
    let bw = bandwidth(100, 10_000);
    let target = with_budget(bdp(bw, 10_000, ONE), rate(bw, 352, 1), false);
    for (inflight, wait_us, lasts) in [
        (target, 0, false),
        (target + 1, 0, true),
        // 9.99999 packets and 10.01.
        (target + 9, 1_000, false),
        (target + 10, 1_000, true),
        (target + 10, 1_001, false),
        (target + 11, 1_001, true),
        (5, 20_000, false),
    ] {
        assert_eq!(
            drains_with(inflight, wait_us),
            lasts,
            "{inflight} {wait_us}"
        );
    }
    let mut hand = wide(&[]);
    hand.packets = 390;
    while hand.phase() == Phase::Startup {
        round_of(&mut hand, 100);
    }
    // Exported at Startup's end, by the rate of then.
    assert_eq!(
        hand.ctl.ssthresh,
        with_budget(bdp(bw, 10_000, ONE), rate(bw, 4 * 739, 1), false)
    );
}

#[test]
fn the_cycle_begins_in_any_phase_but_the_draining_one() {
    // bbr_reset_probe_bw_mode(): CYCLE_LEN - 1 - get_random_u32_below(bbr_cycle_rand), then a step.
    let mut rounds = [0; 8];
    for draw in 1u32..300 {
        let seed = draw.wrapping_mul(0x9e37_79b9);
        let mut hand = Hand::with("bbr1", &[], |conn| (conn.seed, conn.inflight) = (seed, 100));
        (hand.packets, hand.ctl.cwnd) = (100, 400);
        while matches!(hand.phase(), Phase::Startup | Phase::Drain) {
            with_ack(&mut hand, |ack| (ack.delivered, ack.rtt_us) = (100, 9_999));
        }
        assert_ne!(hand.phase(), Phase::Down, "{seed}");
        let until_up = (0..).find(|_| {
            let is_up = hand.phase() == Phase::Up;
            with_ack(&mut hand, |ack| {
                (ack.delivered, ack.rtt_us, ack.prior_inflight) = (100, 9_999, 500);
            });
            is_up
        });
        rounds[until_up.unwrap()] += 1;
    }
    assert!(
        rounds[..7].iter().all(|&seen| seen > 10) && rounds[7] == 0,
        "{rounds:?}"
    );
}

#[test]
fn a_cycle_is_up_down_and_six_steady_phases() {
    let mut hand = cycling(1280, &[]);
    let mut gains = Vec::new();
    for _ in 0..9 {
        gains.push(hand.cc.info().pacing_gain);
        with_ack(&mut hand, |ack| {
            (ack.delivered, ack.rtt_us, ack.prior_inflight) = (100, 9_999, 500);
        });
    }
    assert_eq!(gains, [1280, 768, 1024, 1024, 1024, 1024, 1024, 1024, 1280]);
}

/// Whether a phase of this gain is over `us` after it began, with so many in flight and lost.
fn is_over(gain: u32, us: u64, inflight: u32, losses: u32) -> bool {
    let mut hand = cycling(gain, &[]);
    let mut ack = hand.next_ack();
    hand.conn.now_us = hand.conn.now_us - RTT_US + us;
    hand.conn.delivered_us = hand.conn.now_us;
    (ack.delivered, ack.prior_inflight, ack.losses) = (100, inflight, losses);
    hand.deliver(ack);
    hand.cc.info().pacing_gain != gain
}

#[test]
fn a_probe_lasts_an_rtt_and_until_it_shows_a_drain_until_it_is_empty() {
    // bbr_is_next_cycle_phase(): `> min_rtt_us`; UP: losses or inflight >= 1.25 BDP with its budget;
    // DOWN: inflight <= BDP with its budget. min_rtt is 9,999 us; above a gain of 1 a burst is added.
    let bw = bandwidth(100, 10_000);
    let up_rate = rate(bw, 1280, 1);
    let up = with_budget(bdp(bw, 9_999, 1280), up_rate, true) - burst(up_rate);
    let down = with_budget(bdp(bw, 9_999, ONE), rate(bw, 768, 1), false);
    for (gain, us, inflight, losses, expected) in [
        (1280, 10_000, up, 0, true),
        (1280, 10_000, up - 1, 0, false),
        (1280, 10_000, up - 1, 1, true),
        (1280, 9_999, up, 1, false),
        (768, 10_000, 1_000, 0, true),
        (768, 9_999, down + 1, 0, false),
        (768, 9_999, down, 0, true),
    ] {
        assert_eq!(
            is_over(gain, us, inflight, losses),
            expected,
            "{gain} {us} {inflight} {losses}"
        );
    }
    // Steady: UP is some phases away, so the time in the phase is what is seen of it.
    for (us, is_next) in [(9_999, false), (10_000, true)] {
        let mut hand = cycling(768, &[]);
        with_ack(&mut hand, |ack| (ack.delivered, ack.rtt_us) = (100, 9_999));
        for _ in 0..6 {
            assert_eq!(hand.cc.info().pacing_gain, ONE);
            let ack = hand.next_ack();
            hand.conn.now_us = hand.conn.now_us - RTT_US + us;
            hand.conn.delivered_us = hand.conn.now_us;
            hand.deliver(ack);
        }
        assert_eq!(hand.cc.info().pacing_gain == 1280, is_next);
    }
}

#[test]
fn behind_startup_the_window_is_two_bdp_and_the_budget() {
    // bbr_set_cwnd(): min(cwnd + acked, target), four packets at least.
    let bw = bandwidth(100, 10_000);
    let target = with_budget(bdp(bw, 9_999, 2 * ONE), rate(bw, ONE, 1), false);
    for (cwnd, acked, expected) in [
        (500, 1, target),
        (target - 10, 9, target - 1),
        (target - 10, 10, target),
        (target - 10, 11, target),
        (1, 1, 4),
        (3, 2, 5),
        (77, 0, 77),
    ] {
        let mut hand = cycling(ONE, &[("extra_acked_gain", 0)]);
        hand.ctl.cwnd = cwnd;
        with_ack(&mut hand, |ack| {
            (ack.delivered, ack.acked_sacked) = (100, acked)
        });
        if hand.cc.info().pacing_gain == ONE {
            assert_eq!(hand.ctl.cwnd, expected, "{cwnd} {acked}");
        }
    }
    let mut clamped = cycling(ONE, &[]);
    clamped.conn.cwnd_clamp = 55;
    clamped.round();
    assert_eq!(clamped.ctl.cwnd, 55);
    // UP: two packets more, in the window too.
    let hand = cycling(1280, &[("extra_acked_gain", 0)]);
    let expected = with_budget(bdp(bw, 9_999, 2 * ONE), rate(bw, 1280, 1), true);
    assert_eq!(hand.ctl.cwnd, expected);
    let bare = cycling(ONE, &[("extra_acked_gain", 0), ("offload_budget", 0)]);
    assert_eq!(bare.ctl.cwnd, bdp(bw, 9_999, 2 * ONE));
    let wider = cycling(
        ONE,
        &[
            ("extra_acked_gain", 0),
            ("offload_budget", 0),
            ("cwnd_gain", 3 * ONE),
        ],
    );
    assert_eq!(wider.ctl.cwnd, bdp(bw, 9_999, 3 * ONE));
}

#[test]
fn in_startup_the_window_grows_below_its_target_or_before_ten_packets_were_delivered() {
    // `cwnd < target_cwnd || tp->delivered < TCP_INIT_CWND`.
    let bw = bandwidth(10, 10_000);
    let target = with_budget(bdp(bw, 10_000, 4 * 739), rate(bw, 4 * 739, 1), false);
    for (cwnd, grows) in [(target - 1, true), (target, false), (target + 9, false)] {
        let mut hand = Hand::new("bbr1");
        hand.ctl.cwnd = cwnd;
        hand.round();
        assert_eq!(hand.ctl.cwnd, cwnd + 10 * u32::from(grows), "{cwnd}");
    }
    for (delivered, grows) in [(9, true), (10, false)] {
        let mut hand = Hand::new("bbr1");
        hand.ctl.cwnd = 200;
        let ack = hand.next_ack();
        hand.conn.delivered = delivered;
        hand.deliver(ack);
        assert_eq!(hand.ctl.cwnd, 200 + 10 * u32::from(grows));
    }
    let mut without_rtt = Hand::with("bbr1", &[], |conn| conn.srtt_us = 0);
    without_rtt.ctl.cwnd = 30;
    with_ack(&mut without_rtt, |ack| ack.rtt_us = -1);
    // TCP_INIT_CWND and three bursts, which is less: no growth.
    assert_eq!(
        without_rtt.ctl.cwnd,
        if 30 < with_budget(10, without_rtt.ctl.pacing_rate_bytes_per_s, false) {
            40
        } else {
            30
        }
    );
    assert_eq!(without_rtt.cc.info().min_rtt_us, 0);
}

#[test]
fn recovery_begins_with_a_packet_for_each_delivered_and_ends_with_the_window_of_before() {
    // bbr_set_cwnd_to_recover_or_restore().
    let mut hand = cycling(ONE, &[("extra_acked_gain", 0)]);
    let before = hand.ctl.cwnd;
    hand.event(EventKind::Ssthresh, 0);
    hand.conn.ca_state = CaState::Recovery as u8;
    hand.packets = 60;
    with_ack(&mut hand, |ack| {
        (ack.delivered, ack.acked_sacked, ack.losses) = (100, 7, 3)
    });
    assert_eq!(hand.ctl.cwnd, 60 + 7, "packet conservation");
    // Inside the round: less what was lost, but what is in flight and delivered.
    with_ack(&mut hand, |ack| {
        (
            ack.delivered,
            ack.acked_sacked,
            ack.losses,
            ack.prior_delivered,
        ) = (100, 2, 1, 0);
    });
    assert_eq!(hand.ctl.cwnd, 66);
    with_ack(&mut hand, |ack| {
        (ack.delivered, ack.acked_sacked, ack.prior_delivered) = (100, 9, 0);
    });
    assert_eq!(hand.ctl.cwnd, 69);
    // The next round grows again, by what is acknowledged less what is lost.
    with_ack(&mut hand, |ack| {
        (ack.delivered, ack.acked_sacked, ack.losses) = (100, 10, 4)
    });
    assert_eq!(hand.ctl.cwnd, 69 - 4 + 10);
    hand.ctl.cwnd = 30;
    hand.conn.ca_state = CaState::Open as u8;
    with_ack(&mut hand, |ack| {
        (ack.delivered, ack.acked_sacked) = (100, 1)
    });
    assert!(hand.ctl.cwnd >= before, "{} {before}", hand.ctl.cwnd);
    hand.ctl.cwnd = 30;
    with_ack(&mut hand, |ack| {
        (ack.delivered, ack.acked_sacked) = (100, 1)
    });
    assert_eq!(hand.ctl.cwnd, 31, "restored once");
    hand.ctl.cwnd = 9;
    with_ack(&mut hand, |ack| {
        (ack.delivered, ack.acked_sacked, ack.losses) = (100, 5, 50)
    });
    assert_eq!(hand.ctl.cwnd, 6, "one packet is left");
}

#[test]
fn the_round_of_conservation_begins_with_recovery() {
    // `bbr->next_rtt_delivered = tp->delivered`.
    let mut hand = cycling(ONE, &[]);
    hand.conn.ca_state = CaState::Recovery as u8;
    hand.packets = 50;
    with_ack(&mut hand, |ack| {
        (ack.delivered, ack.prior_delivered) = (100, 0)
    });
    let delivered = hand.conn.delivered;
    for (prior_delivered, conserves) in [(delivered - 1, true), (delivered, false)] {
        hand.ctl.cwnd = 20;
        with_ack(&mut hand, |ack| {
            (ack.delivered, ack.prior_delivered, ack.acked_sacked) = (100, prior_delivered, 1);
        });
        // Packets in flight: what the window allowed.
        let expected = if conserves {
            hand.conn.inflight + 1
        } else {
            21
        };
        assert_eq!(hand.ctl.cwnd, expected.max(21), "{prior_delivered}");
    }
}

#[test]
fn the_window_of_before_is_not_one_that_recovery_or_probe_rtt_has_cut() {
    // bbr_save_cwnd().
    for (state, saved) in [
        (CaState::Cwr, 40),
        (CaState::Recovery, 90),
        (CaState::Loss, 90),
    ] {
        let mut hand = cycling(ONE, &[]);
        hand.ctl.cwnd = 90;
        hand.event(EventKind::Ssthresh, 0);
        hand.conn.ca_state = state as u8;
        hand.round();
        hand.ctl.cwnd = 40;
        hand.event(EventKind::Ssthresh, 0);
        // Restored when a loss state ends.
        hand.conn.ca_state = CaState::Recovery as u8;
        hand.round();
        hand.ctl.cwnd = 1;
        hand.conn.ca_state = CaState::Open as u8;
        with_ack(&mut hand, |ack| {
            (ack.delivered, ack.acked_sacked) = (100, 1)
        });
        assert_eq!(hand.ctl.cwnd, saved + 1, "{state:?}");
    }
}

#[test]
fn probe_rtt_begins_ten_seconds_after_the_last_lower_rtt() {
    // bbr_update_min_rtt(): `after(jiffies, stamp + 10 s)`, in ms here; a delayed ACK renews nothing.
    for (wait_us, again_us, is_delayed, begins, min_rtt_us) in [
        (10_000_000, 30_000, 0, false, 9_000),
        (10_001_000, 30_000, 0, true, 30_000),
        (10_001_000, 30_000, 1, true, 9_000),
        (10_001_000, -1, 0, true, 9_000),
        (5_000_000, 8_999, 1, false, 8_999),
        (5_000_000, 0, 0, false, 0),
    ] {
        let mut hand = Hand::new("bbr1");
        with_ack(&mut hand, |ack| ack.rtt_us = 9_000);
        let mut ack = hand.next_ack();
        hand.conn.now_us += wait_us - RTT_US;
        (ack.rtt_us, ack.is_ack_delayed) = (again_us, is_delayed);
        hand.deliver(ack);
        assert_eq!(
            hand.phase() == Phase::ProbeRtt,
            begins,
            "{wait_us} {again_us}"
        );
        assert_eq!(hand.cc.info().min_rtt_us, min_rtt_us);
    }
    let mut renewed = Hand::new("bbr1");
    for _ in 0..4 {
        // An equal RTT renews nothing, a lower one does.
        let mut ack = renewed.next_ack();
        renewed.conn.now_us += 4_000_000;
        ack.rtt_us = 10_000;
        renewed.deliver(ack);
    }
    assert_eq!(renewed.phase(), Phase::ProbeRtt);
    let mut never = Hand::with("bbr1", &[("probe_rtt_ms", 0)], |_| {});
    never.conn.now_us += 11_000_000;
    never.round();
    assert_eq!(never.phase(), Phase::Startup);
}

#[test]
fn probe_rtt_holds_four_packets_for_a_round_and_200_ms() {
    for (inflight, is_low) in [(4, true), (5, false)] {
        let mut hand = cycling(ONE, &[("extra_acked_gain", 0)]);
        let before = hand.ctl.cwnd;
        hand.packets = inflight;
        hand.conn.now_us += 10_100_000;
        round_of(&mut hand, 100);
        assert_eq!((hand.phase(), hand.ctl.cwnd), (Phase::ProbeRtt, 4));
        assert_eq!(
            (hand.cc.info().pacing_gain, hand.cc.info().cwnd_gain),
            (ONE, ONE)
        );
        let start_us = hand.conn.now_us;
        let mut lasted = None;
        for _ in 0..60 {
            let mut ack = hand.next_ack();
            hand.conn.inflight = inflight;
            (ack.delivered, ack.rtt_us) = (100, 20_000);
            hand.deliver(ack);
            if hand.phase() != Phase::ProbeRtt {
                lasted = Some(hand.conn.now_us - start_us);
                break;
            }
        }
        assert_eq!(lasted.is_some(), is_low, "{inflight}");
        if let Some(us) = lasted {
            assert_eq!(us, 210_000, "the first ACK behind 200 ms");
            let gain = hand.cc.info().pacing_gain;
            let bw = bandwidth(100, 10_000);
            let rtt_us = u64::from(hand.cc.info().min_rtt_us);
            let target = with_budget(bdp(bw, rtt_us, 2 * ONE), rate(bw, gain, 1), gain > ONE);
            assert_eq!(
                hand.ctl.cwnd,
                (before + 4).min(target).max(before.min(target))
            );
            // Ten seconds begin at its end.
            hand.conn.now_us += 9_900_000;
            with_ack(&mut hand, |ack| (ack.delivered, ack.rtt_us) = (100, 20_000));
            assert_ne!(hand.phase(), Phase::ProbeRtt);
        }
    }
    let mut without_a_round = cycling(ONE, &[]);
    without_a_round.packets = 4;
    without_a_round.conn.now_us += 10_100_000;
    without_a_round.round();
    for _ in 0..40 {
        with_ack(&mut without_a_round, |ack| ack.prior_delivered = 0);
    }
    assert_eq!(without_a_round.phase(), Phase::ProbeRtt);
    // In Startup it returns to Startup.
    let mut early = wide(&[("full_bw_rounds", 100)]);
    early.packets = 4;
    early.conn.now_us += 10_100_000;
    early.round();
    assert_eq!(early.phase(), Phase::ProbeRtt);
    while early.phase() == Phase::ProbeRtt {
        early.round();
    }
    assert_eq!(early.phase(), Phase::Startup);
    assert!(early.ctl.cwnd >= 400);
}

#[test]
fn a_restart_from_idle_holds_probe_rtt_back_until_data_is_delivered() {
    for app_limited in [0, 1] {
        let mut hand = cycling(ONE, &[]);
        hand.conn.now_us += 11_000_000;
        hand.conn.app_limited = app_limited;
        hand.event(EventKind::TxStart, 0);
        for (delivered, is_held) in [(0, true), (10, true), (10, false)] {
            with_ack(&mut hand, |ack| {
                (ack.delivered, ack.rtt_us) = (delivered, -1)
            });
            let expected = app_limited == 0 || !is_held;
            assert_eq!(
                hand.phase() == Phase::ProbeRtt,
                expected,
                "{app_limited} {delivered}"
            );
        }
    }
}

#[test]
fn a_restart_from_idle_paces_at_the_bandwidth_or_ends_a_probe_rtt_that_is_over() {
    // bbr_cwnd_event().
    let mut hand = cycling(1280, &[]);
    let bw = bandwidth(100, 10_000);
    assert_eq!(hand.ctl.pacing_rate_bytes_per_s, rate(bw, 1280, 1));
    hand.event(EventKind::TxStart, 0);
    assert_eq!(hand.ctl.pacing_rate_bytes_per_s, rate(bw, 1280, 1));
    hand.conn.app_limited = 1;
    hand.event(EventKind::TxStart, 0);
    assert_eq!(hand.ctl.pacing_rate_bytes_per_s, rate(bw, ONE, 1));
    for (wait_us, ends) in [(150_000, false), (300_000, true)] {
        let mut hand = cycling(ONE, &[]);
        hand.packets = 4;
        hand.conn.now_us += 10_100_000;
        hand.round();
        hand.round();
        assert_eq!(hand.phase(), Phase::ProbeRtt);
        hand.conn.now_us += wait_us;
        hand.conn.app_limited = 1;
        hand.event(EventKind::TxStart, 0);
        assert_eq!(hand.phase() != Phase::ProbeRtt, ends);
        assert_eq!(hand.ctl.cwnd > 100, ends);
    }
}

#[test]
fn what_probe_rtt_sent_is_application_limited() {
    // `tp->app_limited = delivered + in flight`: no sample of it, however slow, enters max_bw.
    let mut hand = cycling(ONE, &[]);
    let largest = max_bw(&hand);
    hand.packets = 4;
    hand.conn.now_us += 10_100_000;
    hand.round();
    let from = hand.conn.delivered;
    while hand.phase() == Phase::ProbeRtt {
        round_of(&mut hand, 4);
        assert_eq!(max_bw(&hand), largest);
    }
    // Twenty rounds of 4 packets were in no window. What is sent now is the first that is.
    with_ack(&mut hand, |ack| {
        (ack.delivered, ack.prior_delivered) = (50, from)
    });
    assert_eq!(max_bw(&hand), largest);
    hand.conn.delivered += 100;
    round_of(&mut hand, 50);
    assert_eq!(max_bw(&hand), shown(bandwidth(50, 10_000)));
}

/// So many packets acknowledged `us` after the last ACK.
fn burst_ack(hand: &mut Hand, us: u64, packets: u32, starts_round: bool) -> u32 {
    let mut ack = hand.next_ack();
    hand.conn.now_us = hand.conn.now_us - RTT_US + us;
    hand.conn.delivered_us = hand.conn.now_us;
    (ack.acked_sacked, ack.delivered) = (packets, 10);
    if !starts_round {
        ack.prior_delivered = 0;
    }
    hand.deliver(ack);
    hand.cc.info().extra_acked
}

#[test]
fn extra_acked_is_what_a_burst_of_acks_brings_beyond_the_bandwidth() {
    // bbr_update_ack_aggregation(): a packet a ms is expected, rounded down; five rounds a slot.
    let mut hand = Hand::new("bbr1");
    hand.ctl.cwnd = 1000;
    assert_eq!(burst_ack(&mut hand, 10_000, 10, true), 10);
    assert_eq!(burst_ack(&mut hand, 5_000, 10, false), 16, "20 less 4.99");
    assert_eq!(burst_ack(&mut hand, 5_001, 4, false), 16, "24 less 10.0");
    assert_eq!(
        burst_ack(&mut hand, 14_003, 10, false),
        16,
        "24 <= 24: a new epoch of 10"
    );
    assert_eq!(
        burst_ack(&mut hand, 1_001, 10, false),
        19,
        "20 less 1: the epoch began there"
    );
    hand.ctl.cwnd = 25;
    assert_eq!(
        burst_ack(&mut hand, 40_000, 60, false),
        25,
        "not more than the window"
    );
    for kept in [25, 25, 25, 25, 25, 25, 25, 25] {
        assert_eq!(burst_ack(&mut hand, 40_000, 3, true), kept);
    }
    assert_eq!(burst_ack(&mut hand, 40_000, 3, true), 3, "the tenth round");
    for (second, extra) in [((1 << 19) - 1, (1 << 20) - 1), (1 << 19, 1 << 19)] {
        let mut hand = Hand::new("bbr1");
        hand.ctl.cwnd = 1 << 22;
        burst_ack(&mut hand, 10_000, 1 << 19, true);
        assert_eq!(burst_ack(&mut hand, 0, second, false), extra);
    }
    for change in [
        |ack: &mut Ack| ack.acked_sacked = 0,
        |ack: &mut Ack| ack.interval_us = 0,
        |ack: &mut Ack| ack.delivered = -1,
    ] {
        let mut hand = Hand::new("bbr1");
        with_ack(&mut hand, change);
        assert_eq!(hand.cc.info().extra_acked, 0);
    }
    for (restarts, extra) in [(false, 16), (true, 10)] {
        let mut hand = Hand::new("bbr1");
        hand.ctl.cwnd = 1000;
        burst_ack(&mut hand, 10_000, 10, true);
        if restarts {
            hand.conn.app_limited = 1;
            hand.event(EventKind::TxStart, 0);
        }
        assert_eq!(burst_ack(&mut hand, 5_000, 10, false), extra);
    }
}

#[test]
fn the_allowance_for_aggregation_is_of_a_full_pipe_and_of_100_ms_at_most() {
    // bbr_ack_aggregation_cwnd().
    let window = |changes: &[(&str, u32)]| {
        let mut all = vec![("offload_budget", 0)];
        all.extend_from_slice(changes);
        let mut hand = cycling(ONE, &all);
        hand.ctl.cwnd = 2000;
        let mut ack = hand.next_ack();
        (ack.acked_sacked, ack.delivered, ack.prior_delivered) = (400, 100, 0);
        hand.conn.delivered_us -= 9_000;
        hand.deliver(ack);
        hand.ctl.cwnd - 200
    };
    let none = window(&[("extra_acked_gain", 0)]);
    let all = window(&[]) - none;
    assert!((390..=800).contains(&all), "{all}");
    assert_eq!(window(&[("extra_acked_gain", 512)]) - none, all / 2);
    assert_eq!(
        window(&[("extra_acked_max_us", 20_000)]) - none,
        199,
        "of 9.99 a ms"
    );
    assert_eq!(window(&[("extra_acked_max_us", 0)]), none);
}

#[test]
fn a_send_holds_two_packets_and_one_below_1_2_mbit_a_second() {
    // bbr_min_tso_segs(): sk_pacing_rate < bbr_min_tso_rate >> 3.
    for (rate, packets) in [(149_999, 1), (150_000, 2)] {
        let mut hand = Hand::new("bbr1");
        hand.ctl.pacing_rate_bytes_per_s = rate;
        hand.event(EventKind::Send, 0);
        assert_eq!(hand.ctl.tso_segs, packets);
    }
}

/// Rounds of `packets`, of which the last reports what was lost in all of them. Their samples say 100,
/// so that max_bw stays.
fn lossy_interval(hand: &mut Hand, rounds: u32, packets: u32, lost: u32) {
    hand.packets = packets;
    for round in 1..=rounds {
        hand.conn.inflight = packets;
        let mut ack = hand.next_ack();
        ack.delivered = 100;
        if round == rounds {
            hand.lose(&mut ack, lost);
        }
        hand.deliver(ack);
    }
}

/// In ProbeBW with 100 packets a round; the first loss has begun an interval of long-term sampling.
fn sampling(changes: &[(&str, u32)]) -> Hand {
    let mut hand = cycling(ONE, changes);
    lossy_interval(&mut hand, 1, 100, 1);
    hand
}

fn long_term(hand: &Hand) -> Option<u64> {
    let info = hand.cc.info();
    (info.bw_bytes_per_s != info.max_bw_bytes_per_s).then_some(info.bw_bytes_per_s)
}

#[test]
fn two_lossy_intervals_of_four_rounds_whose_rates_agree_are_a_policer() {
    // bbr_lt_bw_sampling(), bbr_lt_bw_interval_done(): an eighth of the first rate, and their mean.
    let of = |packets: u64, rounds: u64| bandwidth(packets * rounds, 10_000 * rounds);
    for (second, agrees) in [(80, true), (90, true), (91, false), (70, true), (69, false)] {
        let mut hand = sampling(&[]);
        lossy_interval(&mut hand, 3, 80, 80);
        assert_eq!(long_term(&hand), None);
        lossy_interval(&mut hand, 4, second, 100);
        let mean = (of(80, 3) + of(u64::from(second), 4)) / 2;
        assert_eq!(long_term(&hand), agrees.then(|| shown(mean)), "{second}");
        if agrees {
            assert_eq!(hand.cc.info().pacing_gain, ONE);
            assert_eq!(hand.ctl.pacing_rate_bytes_per_s, rate(mean, ONE, 1));
        }
    }
}

#[test]
fn a_difference_of_500_bytes_a_second_agrees_whatever_its_ratio() {
    // bbr_rate_bytes_per_sec(diff, BBR_UNIT) <= bbr_lt_bw_diff, with the margin of 1 %.
    let diff = bandwidth(4 * 81, 40_000) - bandwidth(3 * 80, 30_000);
    let bytes_per_s = rate(diff, ONE, 1) as u32;
    for (lt_bw_diff, agrees) in [(bytes_per_s, true), (bytes_per_s - 1, false)] {
        let mut hand = sampling(&[("lt_bw_ratio", 0), ("lt_bw_diff", lt_bw_diff)]);
        lossy_interval(&mut hand, 3, 80, 80);
        lossy_interval(&mut hand, 4, 81, 100);
        assert_eq!(long_term(&hand).is_some(), agrees);
    }
}

#[test]
fn an_interval_has_four_to_sixteen_rounds_and_loses_a_fifth() {
    // bbr_lt_intvl_min_rtts; `(lost << 8) / delivered >= 50`, of 240 packets 46.9.
    for (first_rounds, lost, agrees) in [
        (2, 80, false),
        (3, 80, true),
        (3, 47, true),
        (3, 46, false),
        (15, 400, true),
        (16, 400, false),
    ] {
        let mut hand = sampling(&[]);
        lossy_interval(&mut hand, first_rounds, 80, lost);
        lossy_interval(&mut hand, 4, 80, if lost == 46 { 100 } else { 80 });
        assert_eq!(long_term(&hand).is_some(), agrees, "{first_rounds} {lost}");
    }
    // Without a loss at its end it goes on, and an application-limited ACK ends all.
    let mut quiet = sampling(&[]);
    lossy_interval(&mut quiet, 3, 80, 0);
    lossy_interval(&mut quiet, 4, 80, 200);
    assert_eq!(long_term(&quiet), None);
    let mut limited = sampling(&[]);
    lossy_interval(&mut limited, 3, 80, 80);
    with_ack(&mut limited, |ack| {
        (ack.delivered, ack.is_app_limited) = (80, 1)
    });
    lossy_interval(&mut limited, 4, 80, 100);
    assert_eq!(long_term(&limited), None);
    let mut off = sampling(&[("lt_bw_max_rounds", 0)]);
    lossy_interval(&mut off, 3, 80, 80);
    lossy_interval(&mut off, 4, 80, 100);
    assert_eq!(long_term(&off), None);
    let mut undone = sampling(&[]);
    lossy_interval(&mut undone, 3, 80, 80);
    undone.event(EventKind::Undo, 0);
    lossy_interval(&mut undone, 4, 80, 100);
    assert_eq!(
        long_term(&undone),
        None,
        "bbr_undo_cwnd(): bbr_reset_lt_bw_sampling()"
    );
}

#[test]
fn a_policers_rate_is_used_for_48_rounds() {
    let mut hand = sampling(&[]);
    lossy_interval(&mut hand, 3, 80, 80);
    lossy_interval(&mut hand, 4, 80, 100);
    assert!(long_term(&hand).is_some());
    let lasted = (1..).find(|_| {
        assert_eq!(hand.cc.info().pacing_gain, ONE);
        with_ack(&mut hand, |ack| (ack.delivered, ack.rtt_us) = (100, 9_999));
        long_term(&hand).is_none()
    });
    assert_eq!(lasted, Some(48));
}

#[test]
fn a_timeout_ends_a_round_of_the_long_term_sampling_with_a_loss() {
    // bbr_set_state(): `bbr->round_start = 1; bbr_lt_bw_sampling()` with losses = 1; full_bw = 0.
    let mut hand = sampling(&[]);
    lossy_interval(&mut hand, 2, 80, 0);
    hand.conn.lost += 80;
    hand.event(EventKind::State, CaState::Recovery as u32);
    lossy_interval(&mut hand, 1, 80, 0);
    hand.event(EventKind::State, CaState::Loss as u32);
    lossy_interval(&mut hand, 4, 80, 100);
    assert!(long_term(&hand).is_some());
    let mut startup = wide(&[]);
    for _ in 0..3 {
        startup.round();
    }
    startup.event(EventKind::State, CaState::Loss as u32);
    startup.round();
    assert_eq!(
        startup.phase(),
        Phase::Startup,
        "full_bw is not known any more"
    );
}

#[test]
fn a_gap_in_the_samples_moves_the_filter_by_two() {
    // minmax_subwin_update(): the second best may be too old as well.
    let mut hand = Hand::new("bbr1");
    for packets in [100, 20, 20, 80, 20, 20, 60] {
        round_of(&mut hand, packets);
    }
    // Eight rounds that enter no window: in the sixteenth those of the first and the fourth are over.
    for _ in 8..16 {
        with_ack(&mut hand, |ack| {
            (ack.delivered, ack.is_app_limited) = (10, 1)
        });
    }
    round_of(&mut hand, 20);
    assert_eq!(max_bw(&hand), shown(bandwidth(60, 10_000)));
}
