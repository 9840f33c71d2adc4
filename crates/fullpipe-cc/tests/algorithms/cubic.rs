//! CUBIC against the formulas of RFC 9438, and its HyStart against tcp_cubic.c.

use crate::calls::{Caller, MSS};
use fullpipe_cc::{CaState, EventKind, INFINITE};
use proptest::prelude::*;

const C: f64 = 0.4;
const BETA: f64 = 0.7;

/// One that lost a packet at a window of `cwnd` and has recovered.
fn reduced(cwnd: u32, changes: &[(&str, u32)]) -> Caller {
    let mut cubic = Caller::with("cubic", cwnd, changes);
    reduce(&mut cubic);
    cubic
}

fn reduce(cubic: &mut Caller) {
    cubic.event(EventKind::Ssthresh, 0, 0);
    cubic.ctl.cwnd = cubic.ctl.ssthresh;
}

/// RFC 9438 section 4.2, equations 1 and 2.
fn cubic_window(start: f64, maximum: f64, t_s: f64) -> f64 {
    let k_s = ((maximum - start) / C).cbrt();
    C * (t_s - k_s).powi(3) + maximum
}

#[test]
fn the_window_follows_the_cubic_function_before_and_beyond_its_last_maximum() {
    let mut cubic = reduced(1000, &[]);
    let begin_us = cubic.conn.now_us;
    assert_eq!(cubic.ctl.cwnd, 700);
    for _ in 0..140 {
        cubic.round(100_000);
        let t_s = (cubic.conn.now_us - begin_us) as f64 / 1e6;
        let expected = cubic_window(700.0, 1000.0, t_s);
        let window = f64::from(cubic.ctl.cwnd);
        // The window aims an RTT ahead (section 4.2) and reaches it an RTT later.
        assert!(
            (window / expected - 1.0).abs() < 0.02,
            "{t_s} s: {window}, {expected}"
        );
    }
    assert!(cubic.ctl.cwnd > 1040);
}

#[test]
fn a_flow_that_shrinks_twice_aims_lower() {
    // RFC 9438 section 4.7: W_max = cwnd (1 + beta) / 2.
    for (fast_convergence, maximum) in [(1, 700.0 * (1.0 + BETA) / 2.0), (0, 700.0)] {
        let mut cubic = reduced(1000, &[("fast_convergence", fast_convergence)]);
        reduce(&mut cubic);
        assert_eq!(cubic.ctl.cwnd, 490);
        let begin_us = cubic.conn.now_us;
        for _ in 0..60 {
            cubic.round(100_000);
        }
        let t_s = (cubic.conn.now_us - begin_us) as f64 / 1e6;
        let expected = cubic_window(490.0, maximum, t_s);
        let window = f64::from(cubic.ctl.cwnd);
        assert!(
            (window / expected - 1.0).abs() < 0.02,
            "{window}, {expected}"
        );
    }
}

#[test]
fn on_a_short_path_the_window_grows_as_renos_would() {
    // RFC 9438 section 4.3: alpha = 3 (1 - beta) / (1 + beta) packets an RTT.
    let mut cubic = reduced(143, &[]);
    let begin = f64::from(cubic.ctl.cwnd);
    for _ in 0..200 {
        cubic.round(10_000);
    }
    let reno = begin + 200.0 * 3.0 * (1.0 - BETA) / (1.0 + BETA);
    let window = f64::from(cubic.ctl.cwnd);
    assert!((window / reno - 1.0).abs() < 0.05, "{window}, {reno}");
    let mut alone = reduced(143, &[("reno_friendly", 0)]);
    for _ in 0..200 {
        alone.round(10_000);
    }
    assert!(f64::from(alone.ctl.cwnd) < 0.8 * window);
}

#[test]
fn the_window_at_most_grows_by_half_in_an_rtt() {
    // RFC 9438 section 4.2: target is at most 1.5 cwnd (tcp_cubic.c: cnt is at least 2).
    let mut cubic = reduced(100, &[]);
    cubic.wait_us(60_000_000);
    for _ in 0..4 {
        let before = cubic.ctl.cwnd;
        cubic.round(100_000);
        assert!(cubic.ctl.cwnd <= before + before / 2 + 1);
    }
}

#[test]
fn a_timeout_forgets_the_maximum() {
    let mut cubic = reduced(1000, &[]);
    cubic.event(EventKind::State, CaState::Loss as u32, 0);
    // Without a maximum: at least 5 % an RTT (tcp_cubic.c: cnt is at most 20).
    let before = f64::from(cubic.ctl.cwnd);
    for _ in 0..10 {
        cubic.round(100_000);
    }
    assert!(f64::from(cubic.ctl.cwnd) > before * 1.05f64.powi(9));
}

/// Nine samples of one RTT, 10 ms apart, so that they are no train.
fn samples(cubic: &mut Caller, rtt_us: u32) {
    cubic.conn.snd_una = cubic.conn.snd_nxt.wrapping_add(1);
    cubic.conn.snd_nxt = cubic.conn.snd_una.wrapping_add(100 * MSS);
    for _ in 0..9 {
        cubic.wait_us(10_000);
        cubic.event(EventKind::Rtt, rtt_us, 1);
    }
}

#[test]
fn hystart_ends_slow_start_where_the_rtt_of_a_round_rose_by_an_eighth() {
    let mut cubic = Caller::new("cubic", 100);
    samples(&mut cubic, 40_000);
    samples(&mut cubic, 44_900);
    assert_eq!(cubic.ctl.ssthresh, INFINITE);
    samples(&mut cubic, 45_100);
    assert_eq!(cubic.ctl.ssthresh, 100);
    // Below 16 packets it does not look, and it can be turned off.
    for (cwnd, changes) in [(15, &[][..]), (100, &[("hystart", 0)][..])] {
        let mut cubic = Caller::with("cubic", cwnd, changes);
        samples(&mut cubic, 40_000);
        samples(&mut cubic, 80_000);
        assert_eq!(cubic.ctl.ssthresh, INFINITE);
    }
}

#[test]
fn hystart_ends_slow_start_where_a_train_of_acks_lasts_half_the_least_rtt() {
    for (is_paced, train_us) in [(0, 20_000), (1, 40_000)] {
        let mut cubic = Caller::new("cubic", 100);
        cubic.conn.is_paced = is_paced;
        samples(&mut cubic, 40_000);
        cubic.conn.snd_una = cubic.conn.snd_nxt.wrapping_add(1);
        cubic.conn.snd_nxt = cubic.conn.snd_una.wrapping_add(100 * MSS);
        let mut ended_us = 0;
        for step in 0..60 {
            if step > 0 {
                cubic.wait_us(1_000);
            }
            cubic.event(EventKind::Rtt, 40_000, 1);
            if cubic.ctl.ssthresh < INFINITE {
                ended_us = step * 1_000;
                break;
            }
        }
        assert_eq!(ended_us, train_us + 1_000, "paced {is_paced}");
    }
}

proptest! {
    #[test]
    fn a_reduction_leaves_seven_tenths_and_two_packets_at_least(cwnd in 1u32..2_000_000) {
        // RFC 9438 section 4.6; 717/1024 as tcp_cubic.c.
        let cubic = reduced(cwnd, &[]);
        let expected = (u64::from(cwnd) * 717 / 1024).max(2) as u32;
        prop_assert_eq!(cubic.ctl.ssthresh, expected);
    }

    #[test]
    fn whatever_the_times_the_window_only_grows_between_losses(
        cwnd in 2u32..20_000,
        acks in proptest::collection::vec((1u32..64, 0u64..3_000_000, 1u32..2_000_000), 1..200),
    ) {
        let mut cubic = reduced(cwnd, &[]);
        for (packets, us, rtt_us) in acks {
            let before = cubic.ctl.cwnd;
            cubic.wait_us(us);
            cubic.event(EventKind::Rtt, rtt_us, packets);
            cubic.ack(packets);
            prop_assert!(cubic.ctl.cwnd >= before);
            prop_assert!(cubic.ctl.cwnd <= before + packets.div_ceil(2) + 1);
        }
    }
}
