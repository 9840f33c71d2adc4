//! DCTCP against RFC 8257 section 3.3, with the integers of Linux's tcp_dctcp.c.

use crate::calls::{Caller, MSS};
use fullpipe_cc::{CaState, EventKind};
use proptest::prelude::*;

/// A connection that negotiated ECN.
fn dctcp(cwnd: u32, changes: &[(&str, u32)]) -> Caller {
    Caller::prepared("dctcp", cwnd, changes, |conn| conn.ecn_ok = 1)
}

/// A window of packets was delivered, of which so many marked; returns what a mark would leave.
fn window(flow: &mut Caller, delivered: u32, marked: u32) -> u32 {
    flow.conn.snd_una = flow.conn.snd_nxt;
    flow.conn.snd_nxt = flow.conn.snd_una.wrapping_add(delivered * MSS);
    flow.conn.delivered = flow.conn.delivered.wrapping_add(delivered);
    flow.conn.delivered_ce = flow.conn.delivered_ce.wrapping_add(marked);
    flow.event(EventKind::Ack, 0, 0);
    flow.event(EventKind::Ssthresh, 0, 0);
    flow.ctl.ssthresh
}

#[test]
fn until_a_window_was_seen_a_mark_halves() {
    let mut flow = dctcp(100, &[]);
    flow.event(EventKind::Ssthresh, 0, 0);
    assert_eq!(flow.ctl.ssthresh, 50);
}

#[test]
fn alpha_moves_a_sixteenth_of_the_way_with_each_window_by_hand() {
    // alpha of 1024: 1024 - 64 = 960; 960 - 60 + (10 << 6) / 20 = 932; 932 - 58 + (20 << 6) / 20.
    let mut flow = dctcp(1024, &[]);
    assert_eq!(window(&mut flow, 20, 0), 1024 - 960 / 2);
    assert_eq!(window(&mut flow, 20, 10), 1024 - 932 / 2);
    assert_eq!(window(&mut flow, 20, 20), 1024 - 938 / 2);
}

#[test]
fn a_window_counts_once_and_only_when_all_of_it_is_acknowledged() {
    let mut flow = dctcp(1024, &[]);
    assert_eq!(window(&mut flow, 20, 0), 1024 - 480);
    // ACKs inside the next window change nothing.
    for packets in 1..20 {
        flow.conn.snd_una = flow.conn.snd_nxt.wrapping_sub((20 - packets) * MSS);
        flow.conn.delivered += 1;
        flow.conn.delivered_ce += 1;
        flow.event(EventKind::Ack, 0, 0);
    }
    flow.event(EventKind::Ssthresh, 0, 0);
    assert_eq!(flow.ctl.ssthresh, 1024 - 480);
}

#[test]
fn without_marks_alpha_falls_to_nothing() {
    // What a sixteenth rounds down to 0 is taken whole (min_not_zero() in dctcp_update_alpha()).
    let mut flow = dctcp(4096, &[]);
    let left: Vec<u32> = (0..120).map(|_| window(&mut flow, 10, 0)).collect();
    assert!(left.windows(2).all(|pair| pair[1] >= pair[0]));
    assert_eq!(left.last(), Some(&4096));
}

#[test]
fn a_loss_halves_also_inside_an_episode_of_marks() {
    // RFC 8257 section 3.5; dctcp_state().
    let mut flow = dctcp(1000, &[("alpha_init", 0)]);
    flow.event(EventKind::Ssthresh, 0, 0);
    assert_eq!(flow.ctl.ssthresh, 1000);
    flow.conn.ca_state = CaState::Cwr as u8;
    flow.event(EventKind::State, CaState::Recovery as u32, 0);
    assert_eq!(flow.ctl.ssthresh, 500);
    flow.ctl.cwnd = 500;
    flow.event(EventKind::Undo, 0, 0);
    assert_eq!(flow.ctl.cwnd, 1000);
    flow.event(EventKind::Rto, 0, 0);
    assert_eq!(flow.ctl.ssthresh, 500);
}

#[test]
fn where_ecn_was_refused_it_is_reno() {
    let mut flow = Caller::new("dctcp", 101);
    for _ in 0..50 {
        window(&mut flow, 10, 0);
    }
    assert_eq!(flow.ctl.ssthresh, 50);
    flow.ctl.ssthresh = 2;
    let mut reno = Caller::new("reno", 101);
    reno.ctl.ssthresh = 2;
    for _ in 0..300 {
        flow.ack(2);
        reno.ack(2);
        assert_eq!(flow.ctl.cwnd, reno.ctl.cwnd);
    }
}

proptest! {
    #[test]
    fn alpha_is_the_moving_average_of_the_marked_part(
        windows in proptest::collection::vec((1u32..3000, 0.0f64..1.0), 60..200),
    ) {
        // RFC 8257 section 3.3, step 6, to what the integers round away: below 1/1024 a window from
        // either of two divisions, which a gain of 1/16 keeps for sixteen windows.
        let mut flow = dctcp(1 << 20, &[]);
        let mut alpha = 1.0f64;
        for (delivered, part) in windows {
            let marked = (f64::from(delivered) * part) as u32;
            let kept = window(&mut flow, delivered, marked);
            alpha = alpha * 15.0 / 16.0 + f64::from(marked) / f64::from(delivered) / 16.0;
            let ours = 2.0 * (1.0 - f64::from(kept) / f64::from(1u32 << 20));
            prop_assert!((ours - alpha).abs() < 2.0 * 16.0 / 1024.0, "{ours} {alpha}");
        }
    }
}
