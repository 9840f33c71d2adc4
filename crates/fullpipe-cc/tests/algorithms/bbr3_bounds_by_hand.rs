//! BBRv3's answers to loss and its phases by hand, each against the function of Google's v3
//! `tcp_bbr.c` (google/bbr at 001a430) that is named, or against the section of draft-ietf-ccwg-bbr.

use crate::hand::{Hand, Seen, MSS};
use fullpipe_cc::{Ack, CaState, EventKind, Phase, INFINITE, ONE};

/// 100 packets in each round trip of 10 ms; no random parts.
fn wide(name: &str, changes: &[(&str, u32)]) -> Hand {
    let mut all = vec![("probe_wait_rand_us", 0), ("probe_rand_rounds", 0)];
    all.extend_from_slice(changes);
    let mut hand = Hand::with(name, &all, |conn| conn.inflight = 100);
    hand.packets = 100;
    hand.ctl.cwnd = 400;
    hand
}

/// In this phase, of which one round has gone.
fn within(name: &str, phase: Phase, changes: &[(&str, u32)]) -> Hand {
    let mut hand = wide(name, changes);
    hand.until(phase);
    hand.round();
    assert_eq!(hand.phase(), phase);
    hand
}

/// An ACK of a round trip, changed by the test.
fn with_ack(hand: &mut Hand, change: impl FnOnce(&mut Ack)) {
    let mut ack = hand.next_ack();
    change(&mut ack);
    hand.deliver(ack);
}

fn longterm(hand: &Hand) -> u32 {
    hand.cc.info().inflight_longterm
}

fn shortterm(hand: &Hand) -> (u64, u32) {
    let info = hand.cc.info();
    (info.bw_shortterm_bytes_per_s, info.inflight_shortterm)
}

/// A bandwidth of packets per us times 2^24 in bytes/s.
fn shown(bw: u64) -> u64 {
    (bw * u64::from(MSS) * 1_000_000) >> 24
}

/// 100 packets in 10 ms.
const BW: u64 = (100u64 << 24).div_ceil(10_000);
/// Their BDP, rounded up: a packet more than 100, as the bandwidth is rounded up.
const BDP: u32 = 101;

#[test]
fn of_packets_newly_lost_the_first_one_above_the_threshold_counts() {
    // bbr_is_inflight_too_high() and bbr_inflight_hi_from_lost_skb(), with loss_thresh 5/256, of what
    // an ACK says: the flight, the losses since, and how many of them are new.
    for (flight, lost, newly, bound) in [
        (256, 5, 5, None),
        (256, 6, 6, Some(255)),
        // 255 * 5 / 256 rounded up are 5: with the sixth, 255 and nothing.
        (256, 9, 1, Some(255)),
        // 19.5 of 1000 may be lost. The twentieth: 999 + floor((20 - 19) 256 / 251).
        (1000, 19, 4, None),
        (1000, 25, 10, Some(1000)),
        (1000, 25, 25, Some(1000)),
        (1000, 23, 2, Some(999)),
    ] {
        let mut hand = within("bbr3-linux", Phase::Up, &[]);
        let mut ack = hand.next_ack();
        hand.lose(&mut ack, newly);
        (ack.tx_inflight, ack.lost) = (flight, lost);
        hand.deliver(ack);
        assert_eq!(
            longterm(&hand),
            bound.unwrap_or(INFINITE),
            "{flight} {lost} {newly}"
        );
        assert_eq!(hand.phase() == Phase::Down, bound.is_some());
    }
}

#[test]
fn a_cut_leaves_seven_tenths_of_the_target_at_least() {
    // bbr_handle_inflight_too_high(): max(tx_in_flight, bbr_target_inflight() (1 - beta)). The target
    // is the BDP and two packets in UP, or the window where that is smaller.
    for (name, kept) in [("bbr3-linux", 720), ("bbr3", 717)] {
        for (flight, cwnd, bound) in [
            (10, 400, ((BDP + 2) * kept) >> 10),
            (10, 50, (50 * kept) >> 10),
            (90, 400, 89),
        ] {
            let mut hand = within(name, Phase::Up, &[]);
            hand.ctl.cwnd = cwnd;
            hand.mark_lost(flight, 9, false);
            assert_eq!(longterm(&hand), bound, "{name} {flight} {cwnd}");
        }
    }
}

#[test]
fn only_a_probe_is_judged_and_once() {
    for (phase, is_judged) in [
        (Phase::Startup, false),
        (Phase::Cruise, false),
        (Phase::Refill, false),
        (Phase::Up, true),
        (Phase::ProbeRtt, false),
    ] {
        let mut hand = wide("bbr3-linux", &[]);
        hand.until(phase);
        hand.mark_lost(200, 50, false);
        assert_eq!(longterm(&hand) < INFINITE, is_judged, "{phase:?}");
        if is_judged {
            let bound = longterm(&hand);
            hand.mark_lost(90, 50, false);
            assert_eq!(longterm(&hand), bound, "bw_probe_samples = 0");
        }
    }
}

#[test]
fn a_probes_feedback_is_judged_for_a_round_after_it_ended() {
    // ack_phase PROBE_STOPPING: bw_probe_samples stays 1 until a round starts.
    for (rounds, is_judged) in [(0, true), (1, false)] {
        let mut hand = within("bbr3-linux", Phase::Up, &[]);
        while hand.phase() == Phase::Up {
            hand.round();
        }
        for _ in 0..rounds {
            hand.round();
        }
        let phase = hand.phase();
        hand.mark_lost(150, 50, false);
        assert_eq!(longterm(&hand) < INFINITE, is_judged, "{rounds}");
        assert_eq!(hand.phase(), phase, "only UP ends by it");
    }
}

#[test]
fn linux_judges_a_probe_by_losses_that_no_ack_reports_anew_and_the_draft_does_not() {
    // bbr_adapt_upper_bounds(): the sample's own lost, and its flight as it is.
    for (name, bound) in [("bbr3-linux", 200), ("bbr3", INFINITE)] {
        let mut hand = within(name, Phase::Up, &[]);
        with_ack(&mut hand, |ack| (ack.tx_inflight, ack.lost) = (200, 50));
        assert_eq!(longterm(&hand), bound, "{name}");
    }
    let mut limited = within("bbr3-linux", Phase::Up, &[]);
    with_ack(&mut limited, |ack| {
        (ack.tx_inflight, ack.lost, ack.is_app_limited) = (200, 50, 1)
    });
    assert_eq!(
        (longterm(&limited), limited.phase()),
        (INFINITE, Phase::Down)
    );
}

#[test]
fn a_round_with_loss_cuts_the_short_term_bounds_by_beta_down_to_what_is_delivered() {
    // bbr_loss_lower_bounds(): from max_bw and cwnd, by 1 - beta, not below the latest round.
    for (name, kept) in [("bbr3-linux", 720u64), ("bbr3", 717)] {
        let mut hand = within(name, Phase::Cruise, &[("extra_acked_gain", 0)]);
        with_ack(&mut hand, |ack| ack.delivered = 40);
        assert_eq!(shortterm(&hand), (0, INFINITE), "{name}: no loss");
        let (mut bw, mut inflight) = (BW, u64::from(hand.ctl.cwnd));
        for delivered in [40u64, 40, 60, 60, 60] {
            hand.mark_lost(1000, 1, false);
            with_ack(&mut hand, |ack| ack.delivered = delivered as i32);
            bw = ((bw * kept) >> 10).max((delivered << 24).div_ceil(10_000));
            inflight = ((inflight * kept) >> 10).max(delivered);
            assert_eq!(
                shortterm(&hand),
                (shown(bw), inflight as u32),
                "{name} {delivered}"
            );
            assert_eq!(hand.cc.info().bw_bytes_per_s, shown(bw.min(BW)));
            assert!(hand.ctl.cwnd <= inflight as u32);
        }
        let before = shortterm(&hand);
        hand.round();
        assert_eq!(
            shortterm(&hand),
            before,
            "{name}: a round without loss leaves them"
        );
    }
}

#[test]
fn while_probing_a_loss_leaves_the_short_term_bounds_alone() {
    // bbr_adapt_lower_bounds(), bbr_is_probing_bandwidth().
    for (phase, is_cut) in [
        (Phase::Startup, false),
        (Phase::Drain, true),
        (Phase::Down, true),
        (Phase::Cruise, true),
        (Phase::Refill, false),
        (Phase::Up, false),
        (Phase::ProbeRtt, true),
    ] {
        let mut hand = wide("bbr3-linux", &[("drain_gain", 1000)]);
        while hand.phase() != phase {
            // So that Drain and Down are seen.
            hand.packets = if hand.phase() == Phase::Startup {
                300
            } else {
                100
            };
            with_ack(&mut hand, |ack| {
                ack.delivered = 100;
                ack.prior_inflight = if phase == Phase::Down { 500 } else { 100 };
            });
        }
        hand.packets = 300;
        hand.conn.inflight = 300;
        hand.mark_lost(1000, 1, false);
        with_ack(&mut hand, |ack| {
            (ack.delivered, ack.prior_inflight) = (40, 500)
        });
        assert_eq!(shortterm(&hand).0 > 0, is_cut, "{phase:?}");
    }
}

#[test]
fn a_round_is_judged_whole_from_its_first_loss_on() {
    // bbr_note_loss(): loss_round_delivered = tp->delivered at the first loss of a round only.
    let mut hand = within("bbr3-linux", Phase::Cruise, &[]);
    hand.mark_lost(100, 1, false);
    let until = hand.conn.delivered;
    with_ack(&mut hand, |ack| ack.prior_delivered = until - 1);
    assert_eq!(shortterm(&hand).0, 0);
    hand.mark_lost(100, 2, false);
    with_ack(&mut hand, |ack| ack.prior_delivered = until);
    assert_ne!(shortterm(&hand).0, 0);
}

#[test]
fn cruise_bounds_the_short_term_flight_by_the_long_term_and_a_probe_forgets_it() {
    // bbr_start_bw_probe_cruise(), bbr_start_bw_probe_refill(): bbr_reset_lower_bounds().
    let mut hand = within("bbr3-linux", Phase::Up, &[]);
    hand.mark_lost(90, 50, false);
    assert_eq!((hand.phase(), longterm(&hand)), (Phase::Down, 89));
    hand.mark_lost(1000, 1, false);
    with_ack(&mut hand, |ack| {
        (ack.delivered, ack.prior_inflight, ack.tx_inflight) = (98, 500, 1)
    });
    assert_eq!(hand.phase(), Phase::Down);
    assert!(shortterm(&hand).1 > 89, "{:?}", shortterm(&hand));
    with_ack(&mut hand, |ack| {
        (ack.prior_inflight, ack.tx_inflight) = (10, 10)
    });
    assert_eq!((hand.phase(), shortterm(&hand).1), (Phase::Cruise, 89));
    hand.until(Phase::Refill);
    assert_eq!(shortterm(&hand), (0, INFINITE));
}

/// Startup in which so many ACKs report a loss, the last of them at the end of a round that lost
/// `lost` of 500.
fn startup_after(
    name: &str,
    acks: u32,
    lost: u32,
    state: CaState,
    changes: &[(&str, u32)],
) -> Hand {
    let mut hand = wide(name, changes);
    hand.round();
    hand.conn.ca_state = state as u8;
    for index in 1..=acks {
        let mut ack = hand.next_ack();
        hand.lose(&mut ack, 1);
        (ack.lost, ack.tx_inflight, ack.delivered) = (lost, 500, 100);
        if index < acks {
            ack.prior_delivered = 0;
        } else {
            ack.delivered = 120;
        }
        hand.deliver(ack);
    }
    hand
}

#[test]
fn six_lossy_acks_in_a_round_of_recovery_that_lost_too_much_end_startup() {
    // bbr_check_loss_too_high_in_startup(): full_loss_cnt 6; 5/256 of 500 are 9.
    for (name, acks, lost, state, ends) in [
        ("bbr3-linux", 6, 10, CaState::Recovery, true),
        ("bbr3-linux", 5, 10, CaState::Recovery, false),
        ("bbr3-linux", 6, 9, CaState::Recovery, false),
        ("bbr3-linux", 6, 10, CaState::Cwr, false),
        ("bbr3-linux", 6, 10, CaState::Loss, false),
        ("bbr3", 6, 10, CaState::Recovery, true),
        ("bbr2", 7, 10, CaState::Recovery, false),
        ("bbr2", 8, 10, CaState::Recovery, true),
    ] {
        let hand = startup_after(name, acks, lost, state, &[]);
        assert_eq!(
            hand.phase() != Phase::Startup,
            ends,
            "{name} {acks} {lost} {state:?}"
        );
        // The BDP of 120 packets in 10 ms.
        assert_eq!(longterm(&hand), if ends { 121 } else { INFINITE });
    }
    // Counted a round at a time, up to 15.
    let mut hand = startup_after("bbr3-linux", 5, 10, CaState::Recovery, &[]);
    let mut ack = hand.next_ack();
    hand.lose(&mut ack, 1);
    (ack.lost, ack.tx_inflight, ack.delivered) = (10, 500, 300);
    hand.deliver(ack);
    assert_eq!(hand.phase(), Phase::Startup);
    for acks in [14, 15, 20] {
        let hand = startup_after(
            "bbr3-linux",
            acks,
            10,
            CaState::Recovery,
            &[("startup_loss_events", 15)],
        );
        assert_eq!(hand.phase() != Phase::Startup, acks >= 15, "{acks}");
    }
    let hand = startup_after(
        "bbr3-linux",
        9,
        10,
        CaState::Recovery,
        &[("startup_loss_events", 0)],
    );
    assert_eq!(hand.phase(), Phase::Startup);
}

#[test]
fn startups_bound_is_what_was_delivered_where_that_is_more_than_the_bdp() {
    let bound = |name: &str| {
        let mut hand = wide(name, &[]);
        hand.round();
        hand.conn.ca_state = CaState::Recovery as u8;
        for index in 1..=8 {
            let mut ack = hand.next_ack();
            hand.lose(&mut ack, 1);
            (ack.lost, ack.tx_inflight, ack.delivered, ack.interval_us) = (50, 500, 150, 15_000);
            if index < 8 {
                ack.prior_delivered = 0;
            }
            hand.deliver(ack);
        }
        longterm(&hand)
    };
    assert_eq!(bound("bbr3-linux"), 150, "max(bdp, inflight_latest)");
    assert_eq!(
        bound("bbr2"),
        BDP,
        "bbr2_handle_queue_too_high_in_startup()"
    );
}

/// How many rounds of these deliveries end Startup.
fn rounds_of_startup(
    name: &str,
    changes: &[(&str, u32)],
    delivered: &[(i32, u8)],
) -> Option<usize> {
    let mut hand = wide(name, changes);
    for (index, &(packets, is_app_limited)) in delivered.iter().enumerate() {
        with_ack(&mut hand, |ack| {
            (ack.delivered, ack.is_app_limited) = (packets, is_app_limited)
        });
        if hand.phase() != Phase::Startup {
            return Some(index + 1);
        }
    }
    None
}

#[test]
fn three_rounds_that_grow_by_less_than_a_quarter_fill_the_pipe() {
    // bbr_check_full_bw_reached(): sample >= full_bw * 320 / 256, three times in a row without.
    for name in ["bbr3", "bbr3-linux", "bbr2"] {
        for (delivered, rounds) in [
            (&[80, 100, 125, 156, 156, 156][..], Some(6)),
            (&[80, 80, 80, 80][..], Some(4)),
            (&[80, 80, 80, 100, 80, 80, 80][..], Some(7)),
            (&[80, 99, 80, 80][..], Some(4)),
            (&[80, 90, 101, 126, 126, 126][..], Some(6)),
        ] {
            let all: Vec<(i32, u8)> = delivered.iter().map(|&packets| (packets, 0)).collect();
            assert_eq!(
                rounds_of_startup(name, &[], &all),
                rounds,
                "{name} {delivered:?}"
            );
        }
        // Application-limited rounds count neither way.
        let mixed = [(80, 0), (80, 0), (40, 1), (80, 0), (40, 1), (80, 0)];
        assert_eq!(rounds_of_startup(name, &[], &mixed), Some(6), "{name}");
        let five = [("full_bw_count", 5)];
        assert_eq!(
            rounds_of_startup(name, &five, &[(80, 0); 9]),
            Some(6),
            "{name}"
        );
        let slow = [("full_bw_thresh", 2 * ONE)];
        assert_eq!(
            rounds_of_startup(name, &slow, &[(80, 0), (120, 0), (150, 0), (159, 0)]),
            Some(4)
        );
    }
}

#[test]
fn in_linux_any_acks_sample_may_show_growth_and_in_the_draft_a_rounds_first() {
    for (name, ends) in [("bbr3-linux", false), ("bbr3", true)] {
        let mut hand = wide(name, &[]);
        for (delivered, is_round) in [(80, true), (80, true), (80, true), (110, false), (80, true)]
        {
            with_ack(&mut hand, |ack| {
                ack.delivered = delivered;
                if !is_round {
                    ack.prior_delivered = 0;
                }
            });
        }
        assert_eq!(hand.phase() != Phase::Startup, ends, "{name}");
    }
}

#[test]
fn drain_ends_where_what_is_in_flight_at_the_next_departure_is_the_bdp() {
    // bbr_check_drain(), bbr_packets_in_net_at_edt(): inflight - bw (edt - now); below a gain of 1 no
    // burst is added.
    for (inflight, wait_us, ends) in [
        (BDP, 0, true),
        (BDP + 1, 0, false),
        (BDP + 10, 1_000, true),
        (BDP + 11, 1_000, false),
        (BDP + 10, 999, false),
        (50, 20_000, true),
    ] {
        let mut hand = wide("bbr3-linux", &[]);
        hand.packets = 390;
        while hand.phase() == Phase::Startup {
            with_ack(&mut hand, |ack| ack.delivered = 100);
        }
        assert_eq!(hand.phase(), Phase::Drain);
        assert_eq!(hand.ctl.ssthresh, BDP, "exported at Startup's end");
        let ack = hand.next_ack();
        hand.conn.inflight = inflight;
        hand.conn.edt_ns = hand.conn.now_ns + wait_us * 1_000;
        let mut ack = Ack {
            delivered: 100,
            ..ack
        };
        ack.prior_inflight = 390;
        hand.deliver(ack);
        assert_eq!(hand.phase() != Phase::Drain, ends, "{inflight} {wait_us}");
    }
}

#[test]
fn the_drafts_drain_ends_behind_three_rounds_and_linuxs_does_not() {
    for (name, rounds) in [("bbr3", Some(4)), ("bbr3-linux", None)] {
        let mut hand = wide(name, &[]);
        hand.packets = 390;
        while hand.phase() == Phase::Startup {
            with_ack(&mut hand, |ack| ack.delivered = 100);
        }
        let lasted = (1..30).find(|_| {
            with_ack(&mut hand, |ack| {
                (ack.delivered, ack.prior_inflight) = (100, 390)
            });
            hand.phase() != Phase::Drain
        });
        assert_eq!(lasted, rounds, "{name}");
    }
}

#[test]
fn down_ends_at_the_bdp_and_below_the_headroom() {
    // bbr_check_time_to_cruise(): inflight <= bbr_inflight_with_headroom() and <= bbr_inflight().
    for (bound, inflight, ends) in [
        (None, BDP, true),
        (None, BDP + 1, false),
        // 38/256 of 99 are 14: 85.
        (Some(100), 85, true),
        (Some(100), 86, false),
        (Some(200), BDP, true),
        (Some(200), BDP + 1, false),
    ] {
        let mut hand = within("bbr3-linux", Phase::Up, &[]);
        if let Some(flight) = bound {
            hand.mark_lost(flight, 50, false);
        } else {
            hand.packets = 300;
            while hand.phase() != Phase::Down {
                with_ack(&mut hand, |ack| {
                    (ack.delivered, ack.prior_inflight) = (100, 300)
                });
            }
        }
        assert_eq!(hand.phase(), Phase::Down);
        // UP's gain, with which a burst counts as in flight, holds until an ACK has been handled.
        for prior_inflight in [500, inflight] {
            assert_eq!(hand.phase(), Phase::Down);
            with_ack(&mut hand, |ack| {
                (ack.delivered, ack.prior_inflight, ack.tx_inflight) = (100, prior_inflight, 1);
            });
        }
        assert_eq!(hand.phase() == Phase::Cruise, ends, "{bound:?} {inflight}");
    }
}

#[test]
fn the_bound_leaves_headroom_in_cruise_and_probe_rtt_and_none_elsewhere() {
    // bbr_bound_cwnd_for_inflight_model(), bbr_inflight_with_headroom(): 38/256, one packet at least,
    // and four packets are left.
    for (flight, headroom) in [(100, 99 - 14), (111, 110 - 16)] {
        let mut hand = within(
            "bbr3-linux",
            Phase::Up,
            &[("probe_rtt_cwnd_gain", ONE), ("probe_max_rounds", 30)],
        );
        hand.mark_lost(flight, 50, false);
        let bound = flight - 1;
        assert_eq!(longterm(&hand), bound);
        hand.packets = 60;
        let mut seen = Vec::new();
        while hand.phase() != Phase::ProbeRtt {
            with_ack(&mut hand, |ack| (ack.delivered, ack.tx_inflight) = (100, 1));
            let expected = match hand.phase() {
                Phase::Cruise | Phase::ProbeRtt => headroom,
                _ => bound,
            };
            assert_eq!(hand.ctl.cwnd, expected, "{:?}", hand.phase());
            seen.push(hand.phase());
            if hand.phase() == Phase::Cruise && seen.len() > 50 {
                hand.conn.now_us += 6_000_000;
            }
        }
        for phase in [Phase::Cruise, Phase::Refill, Phase::ProbeRtt] {
            assert!(seen.contains(&phase), "{phase:?}");
        }
    }
    for (headroom, cwnd) in [(0, 98), (922, 10), (900, 12)] {
        let mut hand = within("bbr3-linux", Phase::Up, &[("headroom", headroom)]);
        hand.mark_lost(100, 50, false);
        hand.packets = 5;
        for prior_inflight in [500, 5] {
            with_ack(&mut hand, |ack| {
                (ack.delivered, ack.prior_inflight, ack.tx_inflight) = (100, prior_inflight, 1);
            });
        }
        assert_eq!((hand.phase(), hand.ctl.cwnd), (Phase::Cruise, cwnd));
    }
}

#[test]
fn probes_are_apart_by_the_wait_or_by_renos_rounds() {
    // bbr_check_time_to_probe_bw(): strictly more than the wait; rounds_since_probe >= min(63, target).
    let rounds = |packets: u32, changes: &[(&str, u32)]| {
        let mut hand = wide("bbr3-linux", changes);
        hand.packets = packets;
        hand.conn.inflight = packets;
        hand.ctl.cwnd = 4 * packets;
        hand.until(Phase::Cruise);
        while hand.phase() != Phase::Down {
            hand.round();
        }
        (1..).find(|_| {
            hand.round();
            hand.phase() == Phase::Refill
        })
    };
    assert_eq!(rounds(100, &[]), Some(63));
    assert_eq!(rounds(30, &[]), Some(31), "the BDP of 31");
    assert_eq!(rounds(100, &[("probe_max_rounds", 20)]), Some(20));
    assert_eq!(
        rounds(
            300,
            &[("probe_max_rounds", 255), ("probe_wait_base_us", 500_000)]
        ),
        Some(51)
    );
    assert_eq!(
        rounds(
            300,
            &[("probe_max_rounds", 255), ("probe_wait_base_us", 499_999)]
        ),
        Some(50)
    );
}

#[test]
fn random_parts_lie_below_their_bounds() {
    // bbr_pick_probe_wait(): get_random_u32_below().
    let mut waits = Vec::new();
    let mut by_rounds = Vec::new();
    for seed in 1..60 {
        for (changes, all) in [
            (
                &[
                    ("probe_max_rounds", 255),
                    ("probe_wait_base_us", 100_000),
                    ("probe_wait_rand_us", 100_000),
                ][..],
                &mut waits,
            ),
            (
                &[("probe_max_rounds", 30), ("probe_rand_rounds", 5)][..],
                &mut by_rounds,
            ),
        ] {
            let mut hand = Hand::with("bbr3-linux", changes, |conn| {
                (conn.seed, conn.inflight) = (seed, 300);
            });
            (hand.packets, hand.ctl.cwnd) = (300, 1200);
            hand.until(Phase::Down);
            all.push(
                (1..)
                    .find(|_| {
                        hand.round();
                        hand.phase() == Phase::Refill
                    })
                    .unwrap(),
            );
        }
    }
    waits.sort_unstable();
    by_rounds.sort_unstable();
    // 100 to 200 ms in rounds of 10 ms, seen behind the wait; 30 rounds less 0 to 4.
    assert!(
        (11..=12).contains(&waits[0]) && (19..=20).contains(waits.last().unwrap()),
        "{waits:?}"
    );
    assert_eq!(
        (by_rounds[0], *by_rounds.last().unwrap()),
        (26, 30),
        "{by_rounds:?}"
    );
}

/// Rounds that say nothing of the flight, until this phase.
fn quiet_until(hand: &mut Hand, phase: Phase) {
    while hand.phase() != phase {
        with_ack(hand, |ack| (ack.delivered, ack.tx_inflight) = (100, 1));
    }
}

/// In UP with a long-term bound of 99 packets, which the window has reached.
fn bounded_up(name: &str, changes: &[(&str, u32)]) -> Hand {
    let mut hand = within(name, Phase::Up, changes);
    hand.mark_lost(100, 50, false);
    quiet_until(&mut hand, Phase::Refill);
    hand.packets = 60;
    hand.ctl.cwnd = 99;
    quiet_until(&mut hand, Phase::Up);
    hand.conn.is_cwnd_full = 1;
    assert_eq!(longterm(&hand), 99);
    hand
}

#[test]
fn in_up_the_bound_grows_twice_as_fast_with_each_round() {
    // bbr_raise_inflight_hi_slope(): cwnd / 2^rounds packets buy one; doubled at each round's start.
    let mut hand = bounded_up("bbr3-linux", &[]);
    let (mut bound, mut credit, mut per) = (99, 0, 99);
    for round in 1..8 {
        hand.ctl.cwnd = bound;
        with_ack(&mut hand, |ack| {
            (ack.delivered, ack.acked_sacked, ack.tx_inflight) = (100 * round, 120, 1);
        });
        credit += 120;
        let cwnd = bound;
        bound += credit / per;
        credit %= per;
        per = (cwnd >> round).max(1);
        assert_eq!(
            (hand.phase(), longterm(&hand)),
            (Phase::Up, bound),
            "round {round}"
        );
    }
}

#[test]
fn the_bound_grows_only_under_a_full_window_that_has_reached_it() {
    for (is_full, below, grows) in [(1, 0, true), (0, 0, false), (1, 1, false)] {
        let mut hand = bounded_up("bbr3-linux", &[]);
        let bound = longterm(&hand);
        hand.conn.is_cwnd_full = is_full;
        hand.ctl.cwnd = bound - below;
        with_ack(&mut hand, |ack| {
            (ack.delivered, ack.acked_sacked, ack.tx_inflight) = (100, 2 * bound, 1);
        });
        assert_eq!(
            longterm(&hand),
            bound + 2 * u32::from(grows),
            "{is_full} {below}"
        );
    }
}

#[test]
fn what_was_in_flight_without_much_loss_is_a_safe_bound_in_every_phase() {
    // bbr_adapt_upper_bounds(): `if (rs->tx_in_flight > bbr->inflight_hi)`.
    for phase in [Phase::Cruise, Phase::Refill, Phase::Up, Phase::ProbeRtt] {
        for (flight, expected) in [(98, 99), (150, 150)] {
            let mut hand = within("bbr3-linux", Phase::Up, &[]);
            hand.mark_lost(100, 50, false);
            while hand.phase() != phase {
                if phase == Phase::ProbeRtt {
                    hand.conn.now_us += 6_000_000;
                }
                with_ack(&mut hand, |ack| (ack.delivered, ack.tx_inflight) = (100, 1));
            }
            with_ack(&mut hand, |ack| {
                (ack.delivered, ack.tx_inflight) = (100, flight)
            });
            assert_eq!(longterm(&hand), expected, "{phase:?} {flight}");
        }
    }
    let mut unbounded = within("bbr3-linux", Phase::Cruise, &[]);
    with_ack(&mut unbounded, |ack| ack.tx_inflight = 500);
    assert_eq!(longterm(&unbounded), INFINITE);
}

#[test]
fn up_ends_at_a_plateau_of_three_rounds_unless_the_bound_holds_the_rate() {
    // bbr_update_cycle_phase(), BBR_BW_PROBE_UP: full_bw_now.
    let mut hand = wide("bbr3-linux", &[]);
    hand.until(Phase::Up);
    let lasted = (1..).find(|_| {
        hand.round();
        hand.phase() == Phase::Down
    });
    assert_eq!(lasted, Some(3));
    for (is_full, reaches, lasts) in [(1, true, true), (0, true, false), (1, false, false)] {
        let mut hand = bounded_up("bbr3-linux", &[]);
        hand.conn.is_cwnd_full = is_full;
        hand.packets = 20;
        let ended = (1..20).any(|_| {
            hand.ctl.cwnd = if reaches { longterm(&hand) + 200 } else { 30 };
            with_ack(&mut hand, |ack| {
                (
                    ack.delivered,
                    ack.tx_inflight,
                    ack.acked_sacked,
                    ack.prior_inflight,
                ) = (100, 1, 1, 20);
            });
            hand.phase() != Phase::Up
        });
        assert_eq!(ended, !lasts, "{is_full} {reaches}");
    }
}

#[test]
fn after_a_probe_that_went_too_high_the_next_one_stops_at_the_bound_and_then_goes_on() {
    // prev_probe_too_high, stopped_risky_probe: `inflight >= inflight_hi`, where above a gain of 1 a
    // burst is added to what is in flight.
    for (inflight, stops) in [(79, false), (80, true)] {
        let mut hand = bounded_up("bbr3-linux", &[("min_tso_segs", 19)]);
        with_ack(&mut hand, |ack| {
            (ack.delivered, ack.tx_inflight, ack.prior_inflight) = (100, 1, inflight);
        });
        assert_eq!(hand.phase() == Phase::Down, stops, "{inflight}");
        if !stops {
            continue;
        }
        // Nothing bad came of it: another probe after one round of feedback.
        with_ack(&mut hand, |ack| (ack.delivered, ack.tx_inflight) = (100, 1));
        assert_eq!(hand.phase(), Phase::Refill);
        // That one passes the bound.
        while hand.phase() != Phase::Up {
            with_ack(&mut hand, |ack| (ack.delivered, ack.tx_inflight) = (100, 1));
        }
        with_ack(&mut hand, |ack| {
            (ack.delivered, ack.tx_inflight, ack.prior_inflight) = (100, 1, 300);
        });
        assert_eq!(hand.phase(), Phase::Up);
    }
    let mut stopped = bounded_up("bbr3-linux", &[]);
    with_ack(&mut stopped, |ack| {
        (ack.delivered, ack.tx_inflight, ack.prior_inflight) = (100, 1, 300)
    });
    stopped.mark_lost(100, 50, false);
    with_ack(&mut stopped, |ack| {
        (ack.delivered, ack.tx_inflight) = (100, 1)
    });
    assert_ne!(stopped.phase(), Phase::Refill, "its feedback was bad");
}

#[test]
fn probe_rtt_holds_half_a_bdp_for_a_round_and_200_ms_and_returns_to_cruise() {
    // bbr_update_min_rtt(), bbr_check_probe_rtt_done(): from inflight <= bbr_probe_rtt_cwnd(), which is
    // half of 100.006 packets rounded up, until now is behind the stamp and a round has started.
    for (inflight, is_low) in [(51, true), (52, false)] {
        let mut hand = within("bbr3-linux", Phase::Cruise, &[("extra_acked_gain", 0)]);
        let before = hand.ctl.cwnd;
        hand.packets = inflight;
        hand.conn.now_us += 6_000_000;
        with_ack(&mut hand, |ack| ack.delivered = 100);
        assert_eq!((hand.phase(), hand.ctl.cwnd), (Phase::ProbeRtt, 51));
        let start_us = hand.conn.now_us;
        let mut lasted = None;
        for _ in 0..60 {
            let mut ack = hand.next_ack();
            hand.conn.inflight = inflight;
            (ack.delivered, ack.tx_inflight) = (100, 1);
            hand.deliver(ack);
            if hand.phase() != Phase::ProbeRtt {
                lasted = Some(hand.conn.now_us - start_us);
                break;
            }
        }
        assert_eq!(lasted.is_some(), is_low);
        if let Some(us) = lasted {
            assert_eq!(us, 210_000, "the first ACK behind 200 ms");
            assert_eq!((hand.phase(), hand.ctl.cwnd), (Phase::Cruise, before));
            assert_eq!(shortterm(&hand), (0, INFINITE));
            // The next one is five seconds later.
            hand.conn.now_us += 4_900_000;
            with_ack(&mut hand, |ack| ack.delivered = 100);
            assert_ne!(hand.phase(), Phase::ProbeRtt);
        }
    }
    // Without a round's start it goes on, the second time too.
    let mut hand = within("bbr3-linux", Phase::Cruise, &[]);
    hand.packets = 40;
    for _ in 0..2 {
        hand.conn.now_us += 6_000_000;
        hand.round();
        for _ in 0..40 {
            with_ack(&mut hand, |ack| {
                (ack.prior_delivered, ack.prior_us) = (0, 0)
            });
        }
        assert_eq!(hand.phase(), Phase::ProbeRtt);
        while hand.phase() == Phase::ProbeRtt {
            hand.round();
        }
    }
}

#[test]
fn a_probe_rtt_in_startup_returns_to_startup_with_the_window_of_before() {
    let mut hand = wide("bbr3-linux", &[("full_bw_count", 255)]);
    hand.round();
    hand.ctl.cwnd = 300;
    hand.conn.now_us += 6_000_000;
    hand.packets = 20;
    hand.round();
    assert_eq!(hand.phase(), Phase::ProbeRtt);
    while hand.phase() == Phase::ProbeRtt {
        hand.round();
    }
    assert_eq!(hand.phase(), Phase::Startup);
    assert!(hand.ctl.cwnd >= 300, "{}", hand.ctl.cwnd);
    // The time of that ProbeRTT has passed, which means nothing in Startup.
    hand.conn.now_us += 1_000_000;
    (hand.conn.app_limited, hand.ctl.cwnd) = (1, 50);
    hand.event(EventKind::TxStart, 0);
    assert_eq!(hand.ctl.cwnd, 50);
}

#[test]
fn an_idle_restart_ends_a_probe_rtt_whose_time_has_passed() {
    // CA_EVENT_TX_START in BBR_PROBE_RTT: bbr_check_probe_rtt_done().
    for (wait_us, ends) in [(100_000, false), (300_000, true)] {
        let mut hand = within("bbr3-linux", Phase::Cruise, &[]);
        hand.packets = 10;
        hand.conn.now_us += 6_000_000;
        hand.round();
        hand.round();
        assert_eq!(hand.phase(), Phase::ProbeRtt);
        hand.conn.now_us += wait_us;
        hand.conn.app_limited = 1;
        hand.event(EventKind::TxStart, 0);
        assert_eq!(hand.phase() == Phase::Cruise, ends);
        assert_eq!(hand.ctl.cwnd > 100, ends, "the window of before");
    }
}

#[test]
fn a_timeout_keeps_the_window_of_before_as_the_bound_to_cut_from() {
    // bbr_set_state(): TCP_CA_Loss outside probing; the plateau begins anew.
    for (phase, is_bounded) in [
        (Phase::Cruise, true),
        (Phase::Up, false),
        (Phase::Refill, false),
    ] {
        let mut hand = wide("bbr3-linux", &[]);
        hand.until(phase);
        let cwnd = hand.ctl.cwnd;
        hand.event(EventKind::Ssthresh, 0);
        hand.ctl.cwnd = 1;
        hand.event(EventKind::State, CaState::Loss as u32);
        assert_eq!(
            shortterm(&hand).1,
            if is_bounded { cwnd } else { INFINITE },
            "{phase:?}"
        );
        // When it is over the saved window is back.
        hand.conn.ca_state = CaState::Loss as u8;
        hand.event(EventKind::State, CaState::Open as u32);
        assert_eq!(hand.ctl.cwnd, cwnd);
    }
    let mut recovering = within("bbr3-linux", Phase::Cruise, &[]);
    recovering.event(EventKind::Ssthresh, 0);
    recovering.ctl.cwnd = 7;
    recovering.event(EventKind::State, CaState::Recovery as u32);
    recovering.event(EventKind::State, CaState::Open as u32);
    assert_eq!(recovering.ctl.cwnd, 7, "only from Loss");
    let mut bounded = within("bbr3-linux", Phase::Cruise, &[]);
    bounded.mark_lost(1000, 1, false);
    bounded.round();
    let bound = shortterm(&bounded).1;
    assert!(bound < INFINITE);
    bounded.ctl.cwnd = 5;
    bounded.event(EventKind::State, CaState::Loss as u32);
    assert_eq!(shortterm(&bounded).1, bound, "one that there is stays");
}

#[test]
fn a_timeout_judges_the_whole_flight_of_a_probe() {
    let mut hand = within("bbr3-linux", Phase::Up, &[]);
    hand.conn.packets_out = 150;
    hand.conn.lost += 150;
    hand.event(EventKind::Rto, 0);
    // 149, of which 5/256 rounded up are 3; two may be lost: the third, 149 + floor((3 - 2) 256 / 251).
    assert_eq!((longterm(&hand), hand.phase()), (150, Phase::Down));
    let mut limited = within("bbr3-linux", Phase::Up, &[]);
    limited.conn.packets_out = 150;
    (limited.conn.app_limited, limited.conn.lost) = (1, 150);
    limited.event(EventKind::Rto, 0);
    assert_eq!(
        (longterm(&limited), limited.phase()),
        (INFINITE, Phase::Down)
    );
}

#[test]
fn the_window_of_before_a_reduction_is_not_one_that_recovery_or_probe_rtt_has_cut() {
    // bbr_save_cwnd(): of Recovery and ProbeRTT the larger one.
    for (state, saved) in [
        (CaState::Open, 30),
        (CaState::Cwr, 30),
        (CaState::Recovery, 90),
        (CaState::Loss, 90),
    ] {
        let mut hand = within("bbr3-linux", Phase::Cruise, &[]);
        hand.ctl.cwnd = 90;
        hand.event(EventKind::Ssthresh, 0);
        hand.conn.ca_state = state as u8;
        hand.round();
        hand.ctl.cwnd = 30;
        hand.event(EventKind::Ssthresh, 0);
        hand.ctl.cwnd = 1;
        hand.event(EventKind::Undo, 0);
        assert_eq!(hand.ctl.cwnd, saved, "{state:?}");
    }
    let mut probing = within("bbr3-linux", Phase::Cruise, &[]);
    let before = probing.ctl.cwnd;
    probing.conn.now_us += 6_000_000;
    probing.round();
    assert_eq!(probing.phase(), Phase::ProbeRtt);
    probing.event(EventKind::Ssthresh, 0);
    probing.event(EventKind::Undo, 0);
    assert_eq!(probing.ctl.cwnd, before);
}

#[test]
fn an_undo_returns_the_draft_to_what_the_loss_ended_but_never_out_of_probe_rtt() {
    // Draft section 5.5.11.2, BBRHandleSpuriousLossDetection().
    let cut = |name: &str, in_probe_rtt: bool| {
        let mut hand = within(name, Phase::Up, &[]);
        hand.mark_lost(100, 50, false);
        hand.event(EventKind::Ssthresh, 0);
        assert_eq!(hand.phase(), Phase::Down);
        if in_probe_rtt {
            hand.conn.now_us += 6_000_000;
            with_ack(&mut hand, |ack| ack.delivered = 100);
            assert_eq!(hand.phase(), Phase::ProbeRtt);
        }
        hand.event(EventKind::Undo, 0);
        hand.phase()
    };
    assert_eq!(cut("bbr3", false), Phase::Refill);
    assert_eq!(cut("bbr3-linux", false), Phase::Down);
    assert_eq!(cut("bbr3", true), Phase::ProbeRtt);
    let mut once = within("bbr3", Phase::Up, &[]);
    once.mark_lost(100, 50, false);
    once.event(EventKind::Ssthresh, 0);
    once.event(EventKind::Undo, 0);
    quiet_until(&mut once, Phase::Cruise);
    once.event(EventKind::Undo, 0);
    assert_eq!(
        once.phase(),
        Phase::Cruise,
        "what was undone is not undone again"
    );
    // Startup ended by loss.
    for (name, in_probe_rtt, phase) in [
        ("bbr3", false, Phase::Startup),
        ("bbr3-linux", false, Phase::Drain),
        ("bbr3", true, Phase::ProbeRtt),
    ] {
        let mut hand = wide(name, &[]);
        hand.round();
        hand.packets = 390;
        hand.conn.ca_state = CaState::Recovery as u8;
        hand.event(EventKind::Ssthresh, 0);
        for index in 1..=6 {
            let mut ack = hand.next_ack();
            hand.lose(&mut ack, 1);
            (ack.lost, ack.tx_inflight, ack.delivered) = (50, 500, 100);
            if index < 6 {
                ack.prior_delivered = 0;
            }
            hand.deliver(ack);
        }
        assert_eq!(hand.phase(), Phase::Drain, "{name}");
        assert!(longterm(&hand) < INFINITE);
        if in_probe_rtt {
            hand.conn.now_us += 6_000_000;
            with_ack(&mut hand, |ack| ack.delivered = 100);
        }
        hand.event(EventKind::Undo, 0);
        assert_eq!((hand.phase(), longterm(&hand)), (phase, INFINITE), "{name}");
        if in_probe_rtt {
            hand.packets = 10;
            while hand.phase() == Phase::ProbeRtt {
                with_ack(&mut hand, |ack| ack.delivered = 100);
            }
            assert_eq!(
                hand.phase(),
                Phase::Startup,
                "the pipe is not known to be full"
            );
        }
    }
}

#[test]
fn an_undo_never_lowers_a_bound() {
    // bbr_undo_cwnd(): the larger ones of bw_lo, inflight_lo and inflight_hi.
    let mut hand = within("bbr3-linux", Phase::Cruise, &[]);
    with_ack(&mut hand, |ack| ack.delivered = 40);
    hand.mark_lost(1000, 1, false);
    with_ack(&mut hand, |ack| ack.delivered = 40);
    let cut = shortterm(&hand);
    hand.event(EventKind::Ssthresh, 0);
    hand.mark_lost(1000, 2, false);
    with_ack(&mut hand, |ack| ack.delivered = 40);
    assert!(shortterm(&hand).0 < cut.0 && shortterm(&hand).1 < cut.1);
    hand.event(EventKind::Undo, 0);
    assert_eq!(shortterm(&hand), cut);
    hand.until(Phase::Refill);
    hand.event(EventKind::Undo, 0);
    assert_eq!(shortterm(&hand), (0, INFINITE));
}

#[test]
fn an_undo_begins_the_search_for_a_plateau_anew() {
    // bbr_reset_full_bw(): full_bw, its count, and that it was found.
    let rounds = |undoes: bool| {
        let mut hand = wide("bbr3-linux", &[]);
        for _ in 0..3 {
            hand.round();
        }
        if undoes {
            hand.event(EventKind::Undo, 0);
        }
        (1..).find(|_| {
            hand.round();
            hand.phase() != Phase::Startup
        })
    };
    assert_eq!((rounds(false), rounds(true)), (Some(1), Some(4)));
}

#[test]
fn what_probe_rtt_sent_is_application_limited_until_it_is_delivered() {
    // tp->app_limited = delivered + in flight, at each ACK of ProbeRTT.
    let probe_after_probe_rtt = || {
        let mut hand = within("bbr3-linux", Phase::Cruise, &[]);
        hand.packets = 20;
        hand.conn.now_us += 6_000_000;
        hand.round();
        // This ACK marked what is in flight, which was sent from here on.
        let from = hand.conn.delivered;
        let mut until = 0;
        while hand.phase() == Phase::ProbeRtt {
            until = hand.conn.delivered + hand.conn.inflight;
            hand.round();
        }
        hand.packets = 100;
        hand.until(Phase::Up);
        hand.round();
        (hand, from, until)
    };
    let (_, from, until) = probe_after_probe_rtt();
    // The last ACK of ProbeRTT marked 20 packets more.
    for (sent_at, is_limited) in [
        (from - 1, false),
        (from, true),
        (from + 30, true),
        (until + 20, true),
        (until + 21, false),
    ] {
        let (mut hand, ..) = probe_after_probe_rtt();
        let mut ack = hand.next_ack();
        ack.prior_delivered = sent_at;
        hand.lose(&mut ack, 50);
        ack.tx_inflight = 200;
        hand.deliver(ack);
        assert_eq!(
            longterm(&hand) == INFINITE,
            is_limited,
            "{sent_at}: {from} to {until}"
        );
    }
}

#[test]
fn an_application_limited_ack_at_a_settled_window_changes_nothing() {
    // bbr_run_fast_path(): try_fast_path, which a window at its target sets, in Startup too; not where
    // loss came in this round.
    let extra_after = |cwnd: u32, fills: bool, is_app_limited: u8, delivered: i32, loses: bool| {
        let count = if fills { 3 } else { 255 };
        let mut hand = wide(
            "bbr3-linux",
            &[("full_bw_count", count), ("extra_acked_gain", 1)],
        );
        if fills {
            hand.until(Phase::Cruise);
        }
        hand.round();
        let before = hand.cc.info().extra_acked;
        hand.ctl.cwnd = cwnd;
        with_ack(&mut hand, |ack| {
            (ack.delivered, ack.acked_sacked) = (100, 1)
        });
        if loses {
            hand.mark_lost(1000, 1, false);
        }
        hand.ctl.cwnd = 1000;
        let until = hand.conn.delivered;
        with_ack(&mut hand, |ack| {
            (ack.delivered, ack.is_app_limited, ack.acked_sacked) =
                (delivered, is_app_limited, 900);
            ack.prior_delivered = until - 1;
        });
        hand.cc.info().extra_acked > before
    };
    // Behind Startup the target is 201 packets; a window that grows towards it is not settled.
    for (cwnd, fills, is_app_limited, delivered, loses, learns) in [
        (250, true, 1, 50, false, false),
        (150, true, 1, 50, false, true),
        (250, true, 0, 50, false, true),
        (250, true, 1, 100, false, true),
        (250, true, 1, 50, true, true),
        (450, false, 1, 50, false, false),
        (150, false, 1, 50, false, true),
    ] {
        let seen = extra_after(cwnd, fills, is_app_limited, delivered, loses);
        assert_eq!(
            seen, learns,
            "{cwnd} {fills} {is_app_limited} {delivered} {loses}"
        );
    }
}

#[test]
fn probe_rtt_ends_the_judgement_of_the_probe_that_it_broke_off() {
    // bbr_update_min_rtt(): ack_phase = BBR_ACKS_PROBE_STOPPING, which a round's start ends.
    for (rounds, is_judged) in [(0, true), (2, false)] {
        let mut hand = within("bbr3-linux", Phase::Up, &[]);
        hand.conn.now_us += 6_000_000;
        hand.round();
        for _ in 0..rounds {
            hand.round();
        }
        assert_eq!(hand.phase(), Phase::ProbeRtt);
        hand.mark_lost(200, 50, false);
        assert_eq!(longterm(&hand) < INFINITE, is_judged, "{rounds}");
    }
}

#[test]
fn loss_outside_a_probe_does_not_hold_the_next_probe_back() {
    // bbr_update_cycle_phase() goes on where bbr_adapt_upper_bounds() decided no phase.
    let mut hand = within("bbr3-linux", Phase::Cruise, &[]);
    let waited = (1..100).find(|_| {
        with_ack(&mut hand, |ack| {
            (ack.delivered, ack.tx_inflight, ack.lost) = (100, 200, 50)
        });
        hand.phase() == Phase::Refill
    });
    assert!(waited.is_some());
}

#[test]
fn a_tail_loss_probe_that_repaired_a_loss_marks_the_round() {
    // bbr_run_loss_probe_recovery(): bbr_note_loss(), in every phase.
    let mut hand = within("bbr3-linux", Phase::Cruise, &[]);
    hand.packet_event(EventKind::TlpRecovery, 0, 0, false);
    hand.round();
    assert_ne!(shortterm(&hand).0, 0);
}

#[test]
fn a_host_that_does_not_say_which_packet_was_lost_judges_the_same_round() {
    // bbr_note_loss() as packets are marked, before the ACK's sample: the round begins behind it.
    let mut hand = within("bbr3-linux", Phase::Cruise, &[]);
    let mut ack = hand.next_ack();
    hand.lose(&mut ack, 1);
    ack.tx_inflight = 1000;
    hand.deliver(ack);
    assert_eq!(shortterm(&hand).0, 0);
    hand.round();
    assert_ne!(shortterm(&hand).0, 0);
}
