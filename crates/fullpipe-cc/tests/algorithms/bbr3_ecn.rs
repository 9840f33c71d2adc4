//! BBRv3's response to early marks against Google's tcp_bbr.c v3, by hand: bbr_update_ecn_alpha(),
//! bbr_ecn_lower_bounds(), bbr_check_ecn_too_high_in_startup(), bbr_is_inflight_too_high().

use crate::hand::{Hand, Seen, PACKETS};
use fullpipe_cc::{CaState, Phase, INFINITE};

/// A connection whose ECN is negotiated and whose path marks early; its round trips are 10 ms.
fn marked_path(longest_rtt_us: u32) -> Hand {
    let changes = [("ecn_max_rtt_us", longest_rtt_us)];
    Hand::with("bbr3-ecn", &changes, |conn| conn.ecn_ok = 1)
}

/// A round of which so many packets came marked.
fn round(hand: &mut Hand, marked: u32) {
    // The host is in CWR while marks come.
    hand.conn.ca_state = if marked > 0 {
        CaState::Cwr
    } else {
        CaState::Open
    } as u8;
    let mut ack = hand.next_ack();
    ack.delivered_ce = marked as i32;
    hand.conn.delivered_ce += marked;
    hand.deliver(ack);
}

/// ecn_alpha of 256 after a round: BBR_UNIT - 16 of the old and 16 of the round's part.
fn next_alpha(alpha: u32, marked: u32) -> u32 {
    ((alpha * (256 - 16)) >> 8) + (((marked * 256 / PACKETS) * 16) >> 8)
}

#[test]
fn two_rounds_in_a_row_that_are_half_marked_end_startup() {
    // full_ecn_cnt 2, ecn_thresh 128 of 256.
    let phase_after = |rounds: &[u32]| {
        let mut hand = marked_path(0);
        for (tenths, number) in [0].iter().chain(rounds).zip(0..) {
            // The bandwidth doubles, so that no plateau ends it.
            hand.conn.inflight = PACKETS << number;
            round(&mut hand, tenths << number);
        }
        hand.phase()
    };
    assert_eq!(phase_after(&[5]), Phase::Startup);
    assert_ne!(phase_after(&[5, 5]), Phase::Startup);
    assert_eq!(phase_after(&[5, 4]), Phase::Startup);
    assert_eq!(phase_after(&[9, 4, 9]), Phase::Startup);
}

#[test]
fn a_round_with_any_mark_outside_probing_cuts_the_short_term_flight_by_a_third_of_alpha() {
    let mut hand = marked_path(0);
    let mut alpha = 256;
    for rounds in 0.. {
        assert!(rounds < 2000, "no cruise");
        round(&mut hand, 0);
        alpha = next_alpha(alpha, 0);
        if hand.phase() == Phase::Cruise {
            break;
        }
    }
    assert_eq!(hand.cc.info().inflight_shortterm, INFINITE);
    let mut bound = hand.ctl.cwnd;
    for marked in [1, 3, 10] {
        round(&mut hand, marked);
        alpha = next_alpha(alpha, marked);
        bound = (bound * (256 - ((alpha * 85) >> 8))) >> 8;
        assert_eq!(hand.cc.info().inflight_shortterm, bound, "{marked}");
    }
    assert!(hand.ctl.cwnd <= bound.max(4));
    // `rs->is_ece` is of this ACK: a round without a mark cuts nothing, and in state Open it begins a
    // probe at once (bbr_check_time_to_probe_bw(), ecn_reprobe_gain).
    hand.round();
    assert_eq!(hand.cc.info().inflight_shortterm, bound);
    round(&mut hand, 0);
    assert_eq!(hand.phase(), Phase::Refill);
}

#[test]
fn a_probe_ends_where_more_than_half_of_a_sample_is_marked() {
    for (marked, goes_on) in [(5, true), (6, false)] {
        let mut hand = marked_path(0);
        for rounds in 0.. {
            assert!(rounds < 2000, "no probe");
            round(&mut hand, 0);
            if hand.phase() == Phase::Up {
                break;
            }
        }
        round(&mut hand, marked);
        assert_eq!(hand.phase() == Phase::Up, goes_on, "{marked}");
    }
}

#[test]
fn on_a_longer_path_marks_mean_nothing_and_packets_are_not_ect1() {
    // ecn_max_rtt_us, 5 ms in the kernel.
    let mut near = marked_path(0);
    let mut far = marked_path(5000);
    assert_eq!((near.ctl.is_scalable, far.ctl.is_scalable), (1, 0));
    for _ in 0..3 {
        round(&mut near, PACKETS);
        round(&mut far, PACKETS);
    }
    assert_ne!(near.phase(), Phase::Startup);
    let mut unmarked = Hand::new("bbr3-linux");
    for _ in 0..3 {
        unmarked.round();
    }
    assert_eq!(far.ctl.cwnd, unmarked.ctl.cwnd);
    assert_eq!(far.phase(), unmarked.phase());
}
