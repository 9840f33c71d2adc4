//! BBRv3's model of the path by hand: rounds, bandwidth, ACK aggregation, min_rtt, and the window, the
//! pacing rate and the bursts that follow. The formulas are those of the functions of Google's v3
//! `tcp_bbr.c` (google/bbr at 001a430) that are named; gains are in 1/1024 here and in 1/256 there.

use crate::hand::{self, Hand, Seen, MSS, RTT_US};
use fullpipe_cc::{Ack, Conn, EventKind, Phase, INFINITE, ONE};

/// bbr_calculate_bw_sample(): packets per us times 2^24, rounded up.
fn bandwidth(packets: u64, interval_us: u64) -> u64 {
    (packets << 24).div_ceil(interval_us)
}

/// bbr_rate_bytes_per_sec().
fn rate(bw: u64, gain: u32, margin_percent: u64) -> u64 {
    let paced = (bw * u64::from(MSS) * u64::from(gain)) >> 10;
    (paced * 10_000 * (100 - margin_percent)) >> 24
}

/// bbr_bdp(): rounded up.
fn bdp(bw: u64, rtt_us: u64, gain: u32) -> u32 {
    let volume = (bw * rtt_us * u64::from(gain)) >> 10;
    volume.div_ceil(1 << 24) as u32
}

/// What a bandwidth of 0 is shown as: none.
const NO_RATE: u64 = 0;

fn max_bw(hand: &Hand) -> u64 {
    hand.cc.info().max_bw_bytes_per_s
}

/// 100 packets in each round trip of 10 ms.
fn wide(name: &str, changes: &[(&str, u32)]) -> Hand {
    let mut hand = Hand::with(name, changes, |conn| conn.inflight = 100);
    hand.packets = 100;
    hand.ctl.cwnd = 400;
    hand
}

#[test]
fn bandwidth_is_rounded_up_and_needs_a_whole_sample() {
    let sample = |change: fn(&mut Ack)| {
        let mut hand = Hand::new("bbr3-linux");
        let mut ack = hand.next_ack();
        (ack.delivered, ack.interval_us, ack.acked_sacked) = (1, 3, 1);
        change(&mut ack);
        hand.deliver(ack);
        max_bw(&hand)
    };
    assert_eq!(sample(|_| {}), rate(5_592_406, ONE, 0));
    // Not valid: without a time, an interval, a delivery, or anything newly acknowledged.
    assert_eq!(sample(|ack| ack.prior_us = 0), NO_RATE);
    assert_eq!(sample(|ack| ack.interval_us = 0), NO_RATE);
    assert_eq!(sample(|ack| ack.interval_us = -1), NO_RATE);
    assert_eq!(sample(|ack| ack.delivered = -1), NO_RATE);
    assert_eq!(sample(|ack| ack.acked_sacked = 0), NO_RATE);
    assert_eq!(
        sample(|ack| (ack.delivered, ack.interval_us) = (1 << 20, 1)),
        rate(0xffff_fffe, ONE, 0)
    );
}

#[test]
fn a_round_ends_where_what_was_sent_at_its_beginning_is_delivered() {
    // bbr_update_round_start(): !before(prior_delivered, next_rtt_delivered), interval_us > 0.
    let mut hand = Hand::new("bbr3-linux");
    assert_eq!(hand.cc.info().round_count, 0);
    for (before, interval_us, rounds) in [(0, 10, 1), (1, 10, 1), (0, 0, 1), (0, -1, 1), (0, 1, 2)]
    {
        let mut ack = hand.next_ack();
        let start = ack.prior_delivered;
        ack.prior_delivered -= before;
        ack.interval_us = interval_us;
        hand.deliver(ack);
        assert_eq!(hand.cc.info().round_count, rounds);
        // An ACK that begins no round leaves the round's end where it was.
        if before > 0 || interval_us <= 0 {
            hand.conn.delivered = start;
        }
    }
}

#[test]
fn an_application_limited_sample_counts_where_it_is_not_below_max_bw() {
    let mut hand = Hand::new("bbr3-linux");
    for (delivered, is_app_limited, expected) in
        [(8, 1, 8), (10, 0, 10), (9, 1, 10), (12, 1, 12), (11, 0, 12)]
    {
        let mut ack = hand.next_ack();
        (ack.delivered, ack.is_app_limited) = (delivered, is_app_limited);
        hand.deliver(ack);
        assert_eq!(max_bw(&hand), rate(bandwidth(expected, 10_000), ONE, 0));
    }
}

/// To the second cycle of probing: what the first one saw is max_bw[0].
fn second_cycle(changes: &[(&str, u32)]) -> Hand {
    let mut hand = wide("bbr3-linux", changes);
    hand.until(Phase::Cruise);
    hand
}

/// A round of so many packets; the flight after it is the usual one.
fn round_of(hand: &mut Hand, packets: i32, is_app_limited: u8) {
    let mut ack = hand.next_ack();
    (ack.delivered, ack.is_app_limited) = (packets, is_app_limited);
    hand.deliver(ack);
}

#[test]
fn max_bw_is_of_this_cycle_and_the_one_before_and_application_limited_samples_are_of_none() {
    // bbr_advance_max_bw_filter() at the end of a probe's feedback; bbr_update_congestion_signals().
    for is_app_limited in [0, 1] {
        let mut hand = second_cycle(&[]);
        let first = rate(bandwidth(100, 10_000), ONE, 0);
        while hand.phase() == Phase::Cruise {
            round_of(&mut hand, 90, is_app_limited);
        }
        while hand.phase() != Phase::Down {
            assert_eq!(max_bw(&hand), first);
            round_of(&mut hand, 50, 0);
        }
        for _ in 0..3 {
            round_of(&mut hand, 40, 0);
        }
        let left = if is_app_limited > 0 { 50 } else { 90 };
        assert_eq!(
            max_bw(&hand),
            rate(bandwidth(left, 10_000), ONE, 0),
            "{is_app_limited}"
        );
    }
}

#[test]
fn a_probe_whose_feedback_ends_application_limited_forgets_nothing() {
    // bbr_adapt_upper_bounds(): `mode == BBR_PROBE_BW && !rs->is_app_limited`.
    let mut hand = second_cycle(&[]);
    while hand.phase() != Phase::Down {
        round_of(&mut hand, 50, 0);
    }
    round_of(&mut hand, 50, 1);
    assert_eq!(max_bw(&hand), rate(bandwidth(100, 10_000), ONE, 0));
}

#[test]
fn each_phase_paces_and_opens_the_window_by_its_gains() {
    // bbr_update_gains(), bbr_set_pacing_rate(), bbr_set_cwnd().
    for (name, phase, pacing_gain, cwnd_gain) in [
        ("bbr3-linux", Phase::Startup, 4 * 710, 2 * ONE),
        ("bbr3-linux", Phase::Drain, 4 * 88, 2 * ONE),
        ("bbr3-linux", Phase::Down, 4 * 232, 2 * ONE),
        ("bbr3-linux", Phase::Cruise, ONE, 2 * ONE),
        ("bbr3-linux", Phase::Refill, ONE, 2 * ONE),
        ("bbr3-linux", Phase::Up, 4 * 320, 4 * 576),
        ("bbr3-linux", Phase::ProbeRtt, ONE, ONE),
        ("bbr3", Phase::Startup, 2836, 2 * ONE),
        ("bbr3", Phase::Drain, 512, 2 * ONE),
        ("bbr3", Phase::Down, 922, 2 * ONE),
        ("bbr3", Phase::Up, 1280, 2304),
        ("bbr2", Phase::Drain, 4 * 88, 4 * 739),
        ("bbr2", Phase::Down, 4 * 192, 2 * ONE),
        ("bbr2", Phase::Up, 4 * 320, 2 * ONE),
        ("bbrnplus-asrun", Phase::Startup, 4 * 738, 2 * ONE),
        ("bbrnplus-asrun", Phase::Down, 4 * 230, 2 * ONE),
        ("bbrnplus-asrun", Phase::Up, 1536, 2560),
        ("bbrnplus", Phase::Startup, 2954, 2 * ONE),
        ("bbrnplus", Phase::Drain, 355, 2 * ONE),
    ] {
        let mut hand = wide(name, &[("smart_exit", 0)]);
        hand.round();
        while hand.phase() != phase {
            // Drain lasts while 400 packets are in flight, Down while 120 were; 10 packets in flight
            // fill ProbeRTT's window; v2's UP waits for 1.25 BDP.
            hand.packets = match hand.phase() {
                Phase::Startup => 400,
                Phase::Drain | Phase::Up => 125,
                _ => 100,
            };
            let mut ack = hand.next_ack();
            (ack.delivered, ack.rtt_us) = (100, 10_001);
            if phase == Phase::Down {
                ack.prior_inflight = 500;
            }
            hand.deliver(ack);
        }
        let info = hand.cc.info();
        assert_eq!(
            (info.pacing_gain, info.cwnd_gain),
            (pacing_gain, cwnd_gain),
            "{name} {phase:?}"
        );
        let bw = bandwidth(100, 10_000);
        assert_eq!(
            hand.ctl.pacing_rate_bytes_per_s,
            rate(bw, pacing_gain, 1),
            "{name} {phase:?}"
        );
        if phase == Phase::ProbeRtt {
            continue;
        }
        let most_us = u64::from(hand::stored(name, "extra_acked_max_us"));
        let most = if most_us > 0 {
            (bw * most_us) >> 24
        } else {
            u64::MAX
        };
        let extra = u64::from(info.extra_acked).min(most) as u32;
        let target = bdp(bw, 10_000, cwnd_gain) + extra + 2 * u32::from(phase == Phase::Up);
        if phase == Phase::Startup {
            assert!(hand.ctl.cwnd > target, "Startup's window does not shrink");
        } else {
            assert_eq!(hand.ctl.cwnd, target, "{name} {phase:?}");
        }
    }
}

#[test]
fn the_first_rate_is_of_the_initial_window_and_a_millisecond_without_a_round_trip() {
    // bbr_init_pacing_rate_from_rtt(), and again at the first RTT (has_seen_rtt).
    let first = |rtt_us: u64| rate((10 << 24) / rtt_us, 4 * 710, 1);
    let mut hand = Hand::with("bbr3-linux", &[], |conn| conn.srtt_us = 0);
    assert_eq!(hand.ctl.pacing_rate_bytes_per_s, first(1000));
    assert_eq!(
        Hand::new("bbr3-linux").ctl.pacing_rate_bytes_per_s,
        first(10_000)
    );
    hand.conn.srtt_us = 20_000;
    let mut ack = hand.next_ack();
    ack.delivered = 1;
    hand.deliver(ack);
    assert_eq!(hand.ctl.pacing_rate_bytes_per_s, first(20_000));
    // Once only, and in Startup the rate does not fall.
    hand.conn.srtt_us = 40_000;
    let mut ack = hand.next_ack();
    ack.delivered = 1;
    hand.deliver(ack);
    assert_eq!(hand.ctl.pacing_rate_bytes_per_s, first(20_000));
}

#[test]
fn the_hosts_cap_and_a_byte_a_second_bound_the_rate() {
    let mut hand = Hand::with("bbr3-linux", &[], |conn| {
        conn.pacing_rate_cap_bytes_per_s = 123_456
    });
    assert_eq!(hand.ctl.pacing_rate_bytes_per_s, 123_456);
    hand.conn.pacing_rate_cap_bytes_per_s = 200_000;
    hand.round();
    assert_eq!(hand.ctl.pacing_rate_bytes_per_s, 200_000);
}

/// Packets in a burst after a round of so many packets in `rtt_us`, and before it is asked.
fn burst(name: &str, packets: i32, rtt_us: u32, changes: &[(&str, u32)], gso_max_segs: u32) -> u32 {
    let mut hand = Hand::with(name, changes, |conn: &mut Conn| {
        (conn.srtt_us, conn.gso_max_segs) = (rtt_us, gso_max_segs);
        conn.inflight = packets as u32;
    });
    let mut ack = hand.next_ack();
    (ack.delivered, ack.interval_us, ack.rtt_us) = (packets, rtt_us as i32, rtt_us as i32);
    hand.deliver(ack);
    hand.event(EventKind::Send, 0);
    hand.ctl.tso_segs
}

#[test]
fn a_burst_is_a_millisecond_at_the_rate_and_more_on_a_short_path() {
    // bbr_tso_segs_generic(): rate >> 10, + 65536 >> (min_rtt >> 9), at most 65215 bytes, / mss.
    let bytes = |packets, rtt_us, gain| rate(bandwidth(packets, rtt_us), gain, 1) >> 10;
    for (packets, rtt_us) in [
        (10, 10_000),
        (200, 10_000),
        (40, 1_023),
        (40, 1_024),
        (20, 511),
        (20, 512),
        (30, 2_600),
        (1000, 20_000),
    ] {
        let allowed = 65_536u64 >> (rtt_us >> 9);
        let all = (bytes(packets, rtt_us, 2840) + allowed).min(65_215);
        let expected = (all / u64::from(MSS)).max(2) as u32;
        assert_eq!(
            burst("bbr3-linux", packets as i32, rtt_us as u32, &[], 1000),
            expected,
            "{packets} {rtt_us}"
        );
        // The draft's burst depends on the rate only.
        let all = bytes(packets, rtt_us, 2836).min(65_215);
        let expected = (all / u64::from(MSS)).max(2) as u32;
        assert_eq!(
            burst("bbr3", packets as i32, rtt_us as u32, &[], 1000),
            expected
        );
    }
    assert_eq!(burst("bbr3-linux", 1000, 10_000, &[], 45), 45);
    assert_eq!(
        burst("bbr3-linux", 1000, 10_000, &[], 7),
        7,
        "the host's largest"
    );
    assert_eq!(burst("bbr3-linux", 10, 100_000, &[], 0), 1);
    assert_eq!(burst("bbrnplus", 10, 10_000, &[], 45), 4);
    // v2's bbr_min_tso_rate: paced below 1.2 Mbit/s, a packet. 10 packets in 300 ms begin at 138 kB/s.
    assert_eq!(burst("bbr2", 10, 300_000, &[], 45), 1);
    assert_eq!(burst("bbr2", 10, 250_000, &[], 45), 2);
    assert_eq!(burst("bbr3-linux", 10, 300_000, &[], 45), 2);
}

#[test]
fn the_window_holds_three_bursts_and_four_packets() {
    // bbr_quantization_budget(): max(cwnd, 3 * tso_segs_goal, cwnd_min_target), + 2 in UP.
    let settled = |packets: i32, changes: &[(&str, u32)]| {
        let mut hand = Hand::with("bbr3", changes, |_| {});
        hand.until(Phase::Cruise);
        for _ in 0..30 {
            let mut ack = hand.next_ack();
            ack.delivered = packets;
            hand.deliver(ack);
            if hand.phase() == Phase::Refill {
                break;
            }
        }
        hand
    };
    // Bursts of 30 packets at a BDP of 11: 90, where the draft's have the rate's size.
    let hand = settled(10, &[("min_tso_segs", 30), ("extra_acked_gain", 0)]);
    assert_eq!(hand.ctl.cwnd, 90);
    assert_eq!(
        settled(
            10,
            &[
                ("min_tso_segs", 30),
                ("offload_quanta", 0),
                ("extra_acked_gain", 0)
            ]
        )
        .ctl
        .cwnd,
        21
    );
    assert_eq!(
        settled(10, &[("min_pipe_cwnd", 40), ("extra_acked_gain", 0)])
            .ctl
            .cwnd,
        40
    );
}

#[test]
fn without_a_round_trip_the_window_is_the_initial_one_of_at_most_127() {
    for (initial, target) in [(10, 10), (127, 127), (200, 127)] {
        let mut hand = Hand::with(
            "bbr3-linux",
            &[
                ("extra_acked_gain", 0),
                ("offload_quanta", 0),
                ("full_bw_every_ack", 0),
            ],
            |conn| {
                conn.srtt_us = 0;
            },
        );
        hand.ctl.cwnd = initial;
        hand.cc.init(&hand.conn.clone(), &mut hand.ctl);
        for _ in 0..8 {
            let mut ack = hand.next_ack();
            ack.rtt_us = -1;
            hand.deliver(ack);
        }
        assert_ne!(hand.phase(), Phase::Startup);
        assert_eq!(hand.ctl.cwnd, target, "{initial}");
    }
}

#[test]
fn startups_window_grows_to_its_target_or_twice_the_initial_window() {
    // bbr_set_cwnd(): `cwnd < target_cwnd || cwnd < 2 * init_cwnd`.
    for (cwnd, acked, expected) in [
        (19, 5, 24),
        (20, 5, 25),
        (31, 5, 36),
        (32, 5, 32),
        (50, 5, 50),
    ] {
        let mut hand = Hand::new("bbr3-linux");
        hand.round();
        hand.ctl.cwnd = cwnd;
        let mut ack = hand.next_ack();
        ack.acked_sacked = acked;
        hand.deliver(ack);
        // The target is 2 * 10 + 1 and what one ACK brought beyond the rate.
        let target = 21 + hand.cc.info().extra_acked;
        let grows = cwnd < target || cwnd < 20;
        assert_eq!(
            hand.ctl.cwnd,
            cwnd + if grows { acked } else { 0 },
            "{cwnd} {expected}"
        );
    }
    // The initial window decides where the target is below it.
    for (cwnd, grows) in [(19, true), (20, false)] {
        let mut hand = Hand::with("bbr3-linux", &[("extra_acked_gain", 0)], |conn| {
            conn.srtt_us = 1000
        });
        let mut ack = hand.next_ack();
        (ack.rtt_us, ack.delivered) = (1000, 1);
        hand.ctl.cwnd = cwnd;
        hand.conn.gso_max_segs = 1;
        hand.deliver(ack);
        assert_eq!(hand.ctl.cwnd > cwnd, grows || cwnd < 3 * 22, "{cwnd}");
    }
}

#[test]
fn behind_startup_the_window_is_cut_to_its_target_and_grows_to_it_by_what_is_acknowledged() {
    let mut hand = wide("bbr3-linux", &[("extra_acked_gain", 0)]);
    hand.until(Phase::Cruise);
    let target = bdp(bandwidth(100, 10_000), 10_000, 2 * ONE);
    for (cwnd, acked, expected) in [
        (500, 1, target),
        (target - 10, 3, target - 7),
        (target - 10, 10, target),
        (target - 10, 11, target),
        (2, 1, 4),
    ] {
        hand.ctl.cwnd = cwnd;
        let mut ack = hand.next_ack();
        ack.acked_sacked = acked;
        hand.deliver(ack);
        assert_eq!(hand.ctl.cwnd, expected, "{cwnd} {acked}");
    }
    // Nothing newly acknowledged changes nothing but the bounds.
    hand.ctl.cwnd = 150;
    let mut ack = hand.next_ack();
    ack.acked_sacked = 0;
    hand.deliver(ack);
    assert_eq!(hand.ctl.cwnd, 150);
    hand.conn.cwnd_clamp = 77;
    hand.round();
    assert_eq!(hand.ctl.cwnd, 77);
}

/// So many packets acknowledged `us` after the last ACK, over an interval of 10 ms; `starts_round`.
fn burst_ack(hand: &mut Hand, us: u64, packets: u32, starts_round: bool) -> u32 {
    let mut ack = hand.next_ack();
    hand.conn.now_us = hand.conn.now_us - RTT_US + us;
    hand.conn.delivered_us = hand.conn.now_us;
    ack.acked_sacked = packets;
    ack.delivered = 10;
    if !starts_round {
        ack.prior_delivered = 0;
    }
    hand.deliver(ack);
    hand.cc.info().extra_acked
}

#[test]
fn extra_acked_is_what_a_burst_of_acks_brings_beyond_the_bandwidth() {
    // bbr_update_ack_aggregation(). A packet a ms is expected; an epoch ends where ACKs fall behind.
    let mut hand = Hand::new("bbr3-linux");
    hand.ctl.cwnd = 1000;
    assert_eq!(
        burst_ack(&mut hand, 10_000, 10, true),
        10,
        "the first epoch begins"
    );
    assert_eq!(burst_ack(&mut hand, 5_000, 10, false), 15, "20 less 5");
    assert_eq!(burst_ack(&mut hand, 5_000, 4, false), 15, "24 less 10");
    assert_eq!(burst_ack(&mut hand, 2_000, 6, false), 18, "30 less 12");
    assert_eq!(
        burst_ack(&mut hand, 18_000, 10, false),
        18,
        "30 <= 30: a new epoch of 10"
    );
    assert_eq!(
        burst_ack(&mut hand, 1_000, 10, false),
        19,
        "20 less 1: the epoch began there"
    );
    // One slot a round in Startup: what was seen is gone after two.
    assert_eq!(burst_ack(&mut hand, 40_000, 3, true), 19);
    assert_eq!(burst_ack(&mut hand, 40_000, 3, true), 3);
    // Not more than the window.
    hand.ctl.cwnd = 25;
    assert_eq!(burst_ack(&mut hand, 40_000, 60, false), 25);
}

#[test]
fn extra_acked_is_forgotten_after_five_to_ten_rounds_behind_startup() {
    let mut hand = Hand::with("bbr3-linux", &[("probe_wait_base_us", 60_000_000)], |_| {});
    hand.until(Phase::Cruise);
    hand.ctl.cwnd = 1000;
    burst_ack(&mut hand, 10_000, 60, false);
    let large = hand.cc.info().extra_acked;
    assert!(large >= 30);
    let kept = (1..)
        .find(|_| burst_ack(&mut hand, 40_000, 3, true) < large)
        .unwrap();
    assert!((6..=10).contains(&kept), "{kept}");
    // From a fresh slot it is ten rounds exactly.
    burst_ack(&mut hand, 10_000, 60, false);
    let again = (1..)
        .find(|_| burst_ack(&mut hand, 40_000, 3, true) < 20)
        .unwrap();
    assert_eq!(again, 10);
}

#[test]
fn an_epoch_of_a_million_packets_begins_anew() {
    // bbr_ack_epoch_acked_reset_thresh = 1 << 20.
    for (second, extra) in [((1 << 19) - 1, (1 << 20) - 1), (1 << 19, 1 << 19)] {
        let mut hand = Hand::new("bbr3-linux");
        hand.ctl.cwnd = 1 << 22;
        burst_ack(&mut hand, 10_000, 1 << 19, true);
        assert_eq!(burst_ack(&mut hand, 0, second, false), extra);
    }
}

#[test]
fn the_allowance_for_aggregation_is_extra_acked_by_its_gain_up_to_100_ms_at_the_bandwidth() {
    // bbr_ack_aggregation_cwnd().
    let window = |changes: &[(&str, u32)]| {
        let mut hand = Hand::with("bbr3-linux", changes, |_| {});
        hand.until(Phase::Cruise);
        hand.ctl.cwnd = 1000;
        burst_ack(&mut hand, 10_000, 60, false);
        hand.ctl.cwnd - bdp(bandwidth(10, 10_000), 10_000, 2 * ONE)
    };
    assert_eq!(window(&[]), 60);
    assert_eq!(window(&[("extra_acked_gain", 512)]), 30);
    assert_eq!(window(&[("extra_acked_gain", 0)]), 0);
    assert_eq!(window(&[("extra_acked_max_us", 40_000)]), 40);
    assert_eq!(window(&[("extra_acked_max_us", 0)]), 60);
    assert_eq!(hand::stored("bbr3-linux", "extra_acked_max_us"), 100_000);
}

#[test]
fn min_rtt_expires_after_ten_seconds_and_the_timer_of_probe_rtt_after_five() {
    // bbr_update_min_rtt(): `after(now, stamp + window)`; lower RTTs count at once.
    let no_probe_rtt = [("probe_rtt_duration_us", 0)];
    let mut hand = Hand::with("bbr3-linux", &no_probe_rtt, |_| {});
    let mut at = |us: u64, rtt_us: i32| {
        let mut ack = hand.next_ack();
        hand.conn.now_us = 1_000_000 + us;
        ack.rtt_us = rtt_us;
        hand.deliver(ack);
        hand.cc.info().min_rtt_us
    };
    assert_eq!(at(1_000_000, 9_000), 9_000);
    // The shorter window renews at 6 s + 1 us, not at 6 s; the model keeps the lower one.
    assert_eq!(at(6_000_000, 30_000), 9_000);
    assert_eq!(at(6_000_001, 20_000), 9_000);
    assert_eq!(at(7_000_000, 15_000), 9_000);
    assert_eq!(at(11_000_000, -1), 9_000);
    assert_eq!(
        at(11_000_001, -1),
        15_000,
        "ten seconds: what the shorter window has"
    );
    assert_eq!(at(11_500_000, 15_000), 15_000);
    assert_eq!(at(12_000_000, 14_000), 14_000);
    assert_eq!(at(12_000_001, 0), 0, "an RTT of 0 is one");
}

#[test]
fn probe_rtt_begins_five_seconds_after_the_last_lower_rtt() {
    for (name, equal_renews) in [("bbr3-linux", false), ("bbr2", true)] {
        for (lower_us, again_us, wait_us, begins) in [
            (9_000, 9_001, 5_000_000, false),
            (9_000, 9_001, 5_000_001, true),
            (9_000, 9_000, 5_000_001, !equal_renews),
        ] {
            let mut hand = Hand::new(name);
            let mut ack = hand.next_ack();
            ack.rtt_us = lower_us;
            hand.deliver(ack);
            let start_us = hand.conn.now_us;
            let mut ack = hand.next_ack();
            ack.rtt_us = again_us;
            hand.deliver(ack);
            let mut ack = hand.next_ack();
            (hand.conn.now_us, ack.rtt_us) = (start_us + wait_us, 50_000);
            // v2's interval is five seconds here too, its window ten.
            hand.deliver(ack);
            assert_eq!(hand.phase() == Phase::ProbeRtt, begins, "{name} {wait_us}");
        }
    }
}

#[test]
fn a_restart_from_idle_holds_probe_rtt_back_until_data_is_delivered() {
    // bbr_cwnd_event(), CA_EVENT_TX_START, and `if (rs->delivered > 0) idle_restart = 0`.
    for app_limited in [0, 1] {
        let mut hand = wide("bbr3-linux", &[]);
        hand.until(Phase::Cruise);
        hand.conn.now_us += 6_000_000;
        hand.conn.app_limited = app_limited;
        hand.event(EventKind::TxStart, 0);
        for (delivered, is_held) in [(0, true), (10, true), (10, false)] {
            let mut ack = hand.next_ack();
            (ack.delivered, ack.rtt_us) = (delivered, -1);
            hand.deliver(ack);
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
fn a_restart_from_idle_paces_at_the_bandwidth_in_probe_bw_and_begins_an_epoch_of_acks() {
    let mut hand = wide("bbr3-linux", &[]);
    hand.until(Phase::Up);
    let bw = bandwidth(100, 10_000);
    assert_eq!(hand.ctl.pacing_rate_bytes_per_s, rate(bw, 1280, 1));
    hand.event(EventKind::TxStart, 0);
    assert_eq!(
        hand.ctl.pacing_rate_bytes_per_s,
        rate(bw, 1280, 1),
        "not application-limited"
    );
    hand.conn.app_limited = 1;
    hand.event(EventKind::TxStart, 0);
    assert_eq!(hand.ctl.pacing_rate_bytes_per_s, rate(bw, ONE, 1));
    // In Startup nothing is slowed.
    let mut fresh = wide("bbr3-linux", &[]);
    fresh.round();
    let before = fresh.ctl.pacing_rate_bytes_per_s;
    fresh.conn.app_limited = 1;
    fresh.event(EventKind::TxStart, 0);
    assert_eq!(fresh.ctl.pacing_rate_bytes_per_s, before);
    // The epoch: 10 packets 5 ms after an ACK of 10 would be 15 beyond the rate.
    for (restarts, extra) in [(false, 15), (true, 10)] {
        let mut hand = Hand::new("bbr3-linux");
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
fn in_startup_the_rate_only_rises_and_behind_it_the_rate_follows() {
    let mut hand = Hand::new("bbr3-linux");
    hand.round();
    let before = hand.ctl.pacing_rate_bytes_per_s;
    round_of(&mut hand, 5, 0);
    assert_eq!(hand.ctl.pacing_rate_bytes_per_s, before);
    round_of(&mut hand, 20, 0);
    assert_eq!(
        hand.ctl.pacing_rate_bytes_per_s,
        rate(bandwidth(20, 10_000), 2840, 1)
    );
}

#[test]
fn it_asks_for_a_send_buffer_of_three_windows_and_no_threshold() {
    // bbr_sndbuf_expand(), bbr_init().
    let hand = Hand::new("bbr3-linux");
    assert_eq!((hand.ctl.sndbuf_factor, hand.ctl.ssthresh), (3, INFINITE));
}

#[test]
fn a_bandwidth_without_a_rest_is_not_rounded_up() {
    // DIV_ROUND_UP: ten packets in 2^13 us are 20480 of 2^-24 packets a us, and no more.
    let mut hand = Hand::new("bbr3");
    let mut ack = hand.next_ack();
    ack.interval_us = 1 << 13;
    hand.deliver(ack);
    let bytes_per_s = (10 * u64::from(MSS) * 1_000_000) >> 13;
    assert_eq!(hand.cc.info().max_bw_bytes_per_s, bytes_per_s);
}
