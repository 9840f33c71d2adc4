//! The growth that loss-based algorithms share, and Reno's and DCTCP's reductions, by hand: each
//! against the lines of Linux's `tcp_cong.c` or `tcp_dctcp.c` that it names.

use crate::calls::{self, Caller, MSS};
use fullpipe_cc::{CaState, EventKind, INFINITE};

#[test]
fn credits_of_a_larger_window_are_spent_before_an_ack_counts() {
    // tcp_cong_avoid_ai(): `if (snd_cwnd_cnt >= w) { snd_cwnd_cnt = 0; snd_cwnd++; }`, then
    // snd_cwnd_cnt += acked, and one packet for each w.
    for (credits, acked, cwnd, left) in [
        (9, 1, 11, 0),
        (10, 1, 11, 1),
        (9, 0, 10, 9),
        (14, 25, 13, 5),
        (0, 9, 10, 9),
        (0, 30, 13, 0),
    ] {
        let mut reno = Caller::new("reno", 10);
        reno.ctl.ssthresh = 10;
        reno.ctl.cwnd_cnt = credits;
        reno.ack(acked);
        assert_eq!(
            (reno.ctl.cwnd, reno.ctl.cwnd_cnt),
            (cwnd, left),
            "{credits} {acked}"
        );
    }
}

#[test]
fn slow_start_is_below_ssthresh_and_its_rest_is_of_avoidance() {
    // tcp_slow_start(): cwnd = min(cwnd + acked, ssthresh), and what is left is returned.
    for (name, ssthresh, acked, cwnd, left) in [
        ("reno", 14, 4, 14, 0),
        ("reno", 14, 5, 14, 1),
        ("reno", 14, 18, 15, 0),
        ("reno", 10, 4, 10, 4),
        ("dctcp", 14, 5, 14, 1),
        ("dctcp", 10, 4, 10, 4),
        ("dctcp", 5, 4, 10, 4),
        ("reno", 5, 4, 10, 4),
        ("dctcp", 11, 12, 12, 0),
    ] {
        let mut flow = Caller::new(name, 10);
        flow.ctl.ssthresh = ssthresh;
        flow.ack(acked);
        assert_eq!(
            (flow.ctl.cwnd, flow.ctl.cwnd_cnt),
            (cwnd, left),
            "{name} {ssthresh} {acked}"
        );
    }
}

#[test]
fn the_clamp_holds_in_slow_start_and_in_avoidance() {
    for (name, ssthresh, acked) in [
        ("reno", 100, 9),
        ("reno", 2, 40),
        ("dctcp", 100, 9),
        ("cubic", 100, 9),
        ("cubic", 2, 100),
    ] {
        let mut flow = Caller::new(name, 10);
        (flow.conn.cwnd_clamp, flow.ctl.ssthresh) = (12, ssthresh);
        flow.ack(acked);
        assert_eq!(flow.ctl.cwnd, 12, "{name} {ssthresh}");
    }
}

#[test]
fn a_window_that_does_not_limit_stays() {
    for (name, ssthresh) in [("reno", 100), ("reno", 2), ("dctcp", 100), ("dctcp", 2)] {
        let mut flow = Caller::new(name, 10);
        (flow.conn.is_cwnd_limited, flow.ctl.ssthresh) = (0, ssthresh);
        flow.ack(10);
        assert_eq!((flow.ctl.cwnd, flow.ctl.cwnd_cnt), (10, 0), "{name}");
    }
}

#[test]
fn a_reduction_leaves_beta_of_the_window_and_an_undo_the_larger_window() {
    for (changes, cwnd, ssthresh) in [
        (&[][..], 41, 20),
        (&[][..], 3, 2),
        (&[("beta", 768)][..], 41, 30),
        (&[("min_ssthresh", 7)][..], 12, 7),
    ] {
        let mut reno = Caller::with("reno", cwnd, changes);
        reno.event(EventKind::Ssthresh, 0, 0);
        assert_eq!(reno.ctl.ssthresh, ssthresh);
        assert_eq!(reno.variable("prior_cwnd_packets"), Some(f64::from(cwnd)));
        for (now, restored) in [(ssthresh, cwnd), (cwnd + 1, cwnd + 1)] {
            reno.ctl.cwnd = now;
            reno.event(EventKind::Undo, 0, 0);
            assert_eq!(reno.ctl.cwnd, restored);
        }
    }
    let mut fresh = Caller::new("reno", 10);
    fresh.ctl.cwnd = 3;
    fresh.event(EventKind::Undo, 0, 0);
    assert_eq!(fresh.ctl.cwnd, 10);
}

/// A connection that negotiated ECN, or did not.
fn dctcp(cwnd: u32, ecn_ok: u8, changes: &[(&str, u32)]) -> Caller {
    Caller::prepared("dctcp", cwnd, changes, |conn| {
        (conn.ecn_ok, conn.snd_nxt, conn.delivered, conn.delivered_ce) = (ecn_ok, 10 * MSS, 5, 3);
    })
}

/// An ACK up to `una` behind so many packets delivered and marked; `alpha` of 1024 after it.
fn alpha_after(flow: &mut Caller, una: u32, delivered: u32, marked: u32) -> f64 {
    flow.conn.snd_una = una;
    flow.conn.delivered += delivered;
    flow.conn.delivered_ce += marked;
    flow.event(EventKind::Ack, 0, 0);
    flow.variable("alpha").unwrap() * 1024.0
}

#[test]
fn alpha_is_updated_where_a_windows_end_is_reached_from_the_counters_at_its_beginning() {
    // dctcp_update_alpha(): !before(snd_una, next_seq); alpha -= min_not_zero(alpha, alpha >> 4);
    // delivered_ce <<= 10 - 4, / max(1, delivered); at most 1024.
    let mut flow = dctcp(100, 1, &[]);
    assert_eq!(alpha_after(&mut flow, 10 * MSS - 1, 9, 2), 1024.0);
    flow.conn.snd_nxt = 30 * MSS;
    assert_eq!(
        alpha_after(&mut flow, 10 * MSS, 1, 3),
        f64::from(1024 - 64 + (5 << 6) / 10)
    );
    assert_eq!(alpha_after(&mut flow, 30 * MSS - 1, 10, 0), 992.0);
    flow.conn.snd_nxt = 50 * MSS;
    assert_eq!(alpha_after(&mut flow, 30 * MSS, 10, 0), 992.0 - 62.0);
    // All of what a window delivered was marked: 930 - 58 + 64; an empty one divides by 1.
    flow.conn.snd_nxt = 70 * MSS;
    assert_eq!(alpha_after(&mut flow, 50 * MSS, 20, 20), 936.0);
    flow.conn.snd_nxt = 90 * MSS;
    assert_eq!(alpha_after(&mut flow, 70 * MSS, 0, 20), 1024.0);
}

#[test]
fn alphas_weight_is_a_parameter_and_what_rounds_to_nothing_is_taken_whole() {
    for (gain_shift, init, marked, expected) in [
        (0, 1024, 5, (5 << 10) / 10),
        (2, 1024, 5, 1024 - 256 + (5 << 8) / 10),
        (10, 1024, 5, 1024 - 1),
        (4, 15, 0, 0),
        (4, 16, 0, 15),
        (4, 0, 1, 6),
    ] {
        let mut flow = dctcp(100, 1, &[("gain_shift", gain_shift), ("alpha_init", init)]);
        let alpha = alpha_after(&mut flow, 10 * MSS, 10, marked);
        assert_eq!(alpha, f64::from(expected), "{gain_shift} {init}");
    }
}

#[test]
fn a_mark_takes_half_of_alpha_and_leaves_two_packets() {
    // dctcp_ssthresh(): cwnd - ((cwnd * alpha) >> 11), at least 2.
    for (alpha, cwnd, ssthresh) in [
        (1024, 101, 51),
        (512, 101, 76),
        (1, 101, 101),
        (1, 4096, 4094),
        (1024, 2, 2),
        (1024, 3, 2),
    ] {
        let mut flow = dctcp(cwnd, 1, &[("alpha_init", alpha)]);
        flow.event(EventKind::Ssthresh, 0, 0);
        assert_eq!(flow.ctl.ssthresh, ssthresh, "{alpha} {cwnd}");
        flow.ctl.cwnd = 1;
        flow.event(EventKind::Undo, 0, 0);
        assert_eq!(flow.ctl.cwnd, cwnd);
        flow.ctl.cwnd = cwnd + 9;
        flow.event(EventKind::Undo, 0, 0);
        assert_eq!(flow.ctl.cwnd, cwnd + 9);
    }
}

#[test]
fn only_the_change_into_recovery_and_a_timeout_halve() {
    // dctcp_state(): TCP_CA_Recovery, and not from it; CA_EVENT_LOSS: dctcp_react_to_loss().
    for (ecn_ok, was, kind, value, ssthresh) in [
        (1, CaState::Open, EventKind::State, CaState::Recovery, 50),
        (1, CaState::Cwr, EventKind::State, CaState::Recovery, 50),
        (
            1,
            CaState::Recovery,
            EventKind::State,
            CaState::Recovery,
            INFINITE,
        ),
        (1, CaState::Open, EventKind::State, CaState::Cwr, INFINITE),
        (1, CaState::Open, EventKind::State, CaState::Loss, INFINITE),
        (1, CaState::Open, EventKind::Rto, CaState::Open, 50),
        // dctcp_reno: where ECN was refused.
        (
            0,
            CaState::Open,
            EventKind::State,
            CaState::Recovery,
            INFINITE,
        ),
        (0, CaState::Open, EventKind::Rto, CaState::Open, INFINITE),
        (0, CaState::Open, EventKind::Ssthresh, CaState::Open, 50),
    ] {
        let mut flow = dctcp(101, ecn_ok, &[("alpha_init", 0)]);
        flow.conn.ca_state = was as u8;
        flow.event(kind, value as u32, 0);
        assert_eq!(
            flow.ctl.ssthresh, ssthresh,
            "{ecn_ok} {was:?} {kind:?} {value:?}"
        );
    }
    let mut small = dctcp(3, 1, &[]);
    small.event(EventKind::Rto, 0, 0);
    assert_eq!(
        (small.ctl.ssthresh, small.variable("prior_cwnd_packets")),
        (2, Some(3.0))
    );
    assert_eq!(dctcp(3, 0, &[]).variable("alpha"), None);
}

#[test]
fn the_constants_are_the_sources() {
    // RFC 5681 equation 4; dctcp_shift_g and DCTCP_MAX_ALPHA.
    for (set, name, stored) in [
        ("reno", "beta", 512),
        ("reno", "min_ssthresh", 2),
        ("dctcp", "gain_shift", 4),
        ("dctcp", "alpha_init", 1024),
    ] {
        assert_eq!(calls::stored(set, name), stored, "{name}");
    }
}
