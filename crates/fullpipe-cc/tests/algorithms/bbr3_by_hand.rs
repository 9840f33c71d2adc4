//! BBRv3's and BBRv2's answers to hand-made sequences of ACKs, each against the rule of Google's v3
//! `tcp_bbr.c` (google/bbr at 001a430), v2 `tcp_bbr2.c` (at 0487ade) or of Linux that it names.

use crate::hand::{Hand, Seen};
use fullpipe_cc::{CaState, EventKind, Phase, INFINITE};

/// What inflight_shortterm is after a packet was lost from a window of 30.
fn bound_after_a_loss(hand: &mut Hand) -> u32 {
    hand.ctl.cwnd = 30;
    hand.mark_lost(200, 1, false);
    let mut ack = hand.next_ack();
    ack.delivered = 1;
    hand.deliver(ack);
    hand.cc.info().inflight_shortterm
}

#[test]
fn a_packet_sent_in_probe_rtt_and_delivered_after_a_loss_is_still_application_limited() {
    // bbr_update_min_rtt() sets tp->app_limited, tcp_rate_skb_sent() stamps each packet with it, and
    // bbr_handle_inflight_too_high() leaves inflight_hi alone where the sample carries the stamp.
    let after_probe_rtt = |late: bool| {
        let mut hand = Hand::new("bbr3-linux");
        hand.until(Phase::ProbeRtt);
        hand.round();
        assert_eq!(hand.phase(), Phase::ProbeRtt);
        let in_probe_rtt = hand.conn.delivered;
        hand.until(Phase::Cruise);
        hand.until(Phase::Up);
        let mut ack = hand.next_ack();
        if late {
            ack.prior_delivered = in_probe_rtt;
        }
        hand.lose(&mut ack, 5);
        hand.deliver(ack);
        assert_eq!(hand.phase(), Phase::Down, "the probe went too high");
        hand.cc.info().inflight_longterm
    };
    assert_eq!(after_probe_rtt(true), INFINITE);
    assert_ne!(after_probe_rtt(false), INFINITE);
}

/// Probing for bandwidth, with ACKs that tell of the probe.
fn probing(name: &str) -> Hand {
    let mut hand = Hand::new(name);
    hand.until(Phase::Up);
    hand.round();
    assert_eq!(hand.phase(), Phase::Up);
    hand
}

#[test]
fn a_lost_packet_is_judged_by_its_own_flight_the_moment_it_is_marked() {
    // bbr_skb_marked_lost(), bbr_inflight_hi_from_lost_skb(): of 200 in flight four may be lost
    // (loss_thresh is 5/256: 3.9); at the fifth the rate is too high, and the volume is the one at
    // which the budget was used up: 199 before it, of which 5/256 rounded up are 4, which were lost.
    let mut hand = probing("bbr3-linux");
    for lost in 1..=3 {
        hand.mark_lost(200 - 4 + lost, lost, false);
        assert_eq!(hand.phase(), Phase::Up, "{lost} lost");
    }
    hand.mark_lost(200, 4, false);
    assert_eq!(hand.phase(), Phase::Down);
    // 199 * 5 / 256, rounded up, is 4; 3 were lost before: 1 more * 256 / 251, rounded down, is 1.
    assert_eq!(hand.cc.info().inflight_longterm, 199 + 1);
}

#[test]
fn a_lost_packet_that_was_application_limited_ends_the_probe_and_bounds_nothing() {
    let mut hand = probing("bbr3-linux");
    hand.mark_lost(50, 10, true);
    assert_eq!(hand.phase(), Phase::Down);
    assert_eq!(hand.cc.info().inflight_longterm, INFINITE);
}

#[test]
fn what_was_told_as_lost_is_not_judged_again_on_the_ack() {
    let mut hand = probing("bbr3-linux");
    hand.mark_lost(200, 1, false);
    let mut ack = hand.next_ack();
    ack.losses = 1;
    hand.deliver(ack);
    assert_eq!(hand.phase(), Phase::Up);
}

#[test]
fn a_tail_loss_probe_that_repaired_a_loss_counts_as_one_packet_lost() {
    // bbr_run_loss_probe_recovery(): one packet of inflight_latest + 1. Of 11 one is too many.
    let mut hand = probing("bbr3-linux");
    hand.packet_event(EventKind::TlpRecovery, 0, 0, false);
    assert_eq!(hand.phase(), Phase::Down);
    assert_eq!(hand.cc.info().inflight_longterm, 10 + 1);
}

#[test]
fn an_answer_to_a_probe_leaves_what_was_delivered_before() {
    // bbr_advance_latest_delivery_signals(), is_acking_tlp_retrans_seq: a round delivered 40 packets,
    // the next one; a loss then cuts the bound to 180/256 of the window, 30, but not below what was
    // delivered: 40 if that is remembered.
    let bound = |is_answer: bool| {
        let mut hand = Hand::new("bbr3-linux");
        hand.until(Phase::Cruise);
        for (delivered, is_probe_answer) in [(40, 0), (1, u8::from(is_answer))] {
            let mut ack = hand.next_ack();
            ack.delivered = delivered;
            ack.is_probe_answer = is_probe_answer;
            hand.deliver(ack);
        }
        bound_after_a_loss(&mut hand)
    };
    assert_eq!((bound(true), bound(false)), (40, 21));
}

#[test]
fn an_undo_returns_linuxs_saved_window_and_the_drafts_larger_one() {
    // bbr_undo_cwnd() returns prior_cwnd; draft-ietf-ccwg-bbr BBRRestoreCwnd() takes the maximum.
    for (name, expected) in [("bbr3-linux", 20), ("bbr3", 25)] {
        let mut hand = Hand::new(name);
        hand.ctl.cwnd = 20;
        hand.event(EventKind::Ssthresh, 0);
        hand.event(EventKind::State, CaState::Recovery as u32);
        hand.ctl.cwnd = 25;
        hand.event(EventKind::Undo, 0);
        assert_eq!(hand.ctl.cwnd, expected, "{name}");
    }
}

#[test]
fn an_undo_gives_back_linuxs_bounds_after_the_first_cut_and_the_drafts_from_before() {
    // Linux marks packets, which cuts, then asks for ssthresh, which saves; the draft saves upon loss
    // (section 5.5.11.2).
    for (name, restored) in [("bbr3-linux", false), ("bbr3", true)] {
        let mut hand = probing(name);
        hand.mark_lost(50, 10, false);
        hand.event(EventKind::Ssthresh, 0);
        hand.event(EventKind::State, CaState::Recovery as u32);
        hand.conn.ca_state = CaState::Recovery as u8;
        let cut = hand.cc.info().inflight_longterm;
        assert!(cut < 50, "{name}: {cut}");
        hand.event(EventKind::Undo, 0);
        let after = hand.cc.info().inflight_longterm;
        assert_eq!(after == INFINITE, restored, "{name}: {after}");
    }
}

#[test]
fn a_probe_grows_its_bound_only_where_the_window_itself_was_full() {
    // bbr_probe_inflight_hi_upward() reads the bit tp->is_cwnd_limited, not tcp_is_cwnd_limited(),
    // which is also true in slow start with half a window out.
    let grows = |is_cwnd_full: bool| {
        let mut hand = probing("bbr3-linux");
        hand.mark_lost(50, 10, false);
        hand.until(Phase::Up);
        hand.round();
        let bound = hand.cc.info().inflight_longterm;
        hand.conn.is_cwnd_limited = 1;
        hand.conn.is_cwnd_full = u8::from(is_cwnd_full);
        for _ in 0..3 {
            hand.ctl.cwnd = bound;
            hand.round();
        }
        hand.cc.info().inflight_longterm > bound
    };
    assert!(grows(true));
    assert!(!grows(false));
}

#[test]
fn what_an_application_limited_sample_delivered_bounds_a_cut_in_v3_and_not_in_v2() {
    // bbr2_fast_path() skips bbr2_update_congestion_signals(), which keeps what was delivered lately;
    // v3 has moved that before its fast path (bbr_update_latest_delivery_signals()). After 40 packets
    // were delivered slower than max_bw, a loss cuts the window of 30 to 180/256, 21, but not below
    // what was delivered, where that is known.
    for (name, expected) in [("bbr3-linux", 40), ("bbr2", 21)] {
        let mut hand = Hand::new(name);
        hand.until(Phase::Cruise);
        hand.round();
        let mut ack = hand.next_ack();
        ack.delivered = 40;
        ack.interval_us = 60_000;
        ack.is_app_limited = 1;
        hand.deliver(ack);
        assert_eq!(bound_after_a_loss(&mut hand), expected, "{name}");
    }
}

#[test]
fn the_rtt_of_a_delayed_ack_renews_no_window_that_has_expired() {
    // bbr_update_min_rtt(), rs->is_ack_delayed: 11 s without a sample, then one of 50 ms.
    for (is_delayed, expected_us) in [(0, 50_000), (1, 10_000)] {
        let mut hand = Hand::new("bbr3-linux");
        hand.round();
        assert_eq!(hand.cc.info().min_rtt_us, 10_000, "the handshake's");
        hand.conn.now_us += 11_000_000;
        let mut ack = hand.next_ack();
        ack.rtt_us = 50_000;
        ack.is_ack_delayed = is_delayed;
        hand.deliver(ack);
        assert_eq!(hand.cc.info().min_rtt_us, expected_us);
    }
}
