//! Windows, rates and times of every magnitude that the contract allows, by hand: no product is cut
//! to 32 or 64 bits, none is divided too early, and no value that means "unset" comes of arithmetic.
//! The expected numbers are of 128-bit integers.

use crate::hand::{Hand, MSS};
use fullpipe_cc::{CaState, Conn, EventKind, Phase, INFINITE};

/// The contract's largest window (CC_CWND_MAX).
const MOST_CWND: u32 = 1 << 24;

/// The decisions of init on a connection with this window and round trip.
fn begun(name: &str, cwnd: u32, srtt_us: u32, mss_bytes: u32) -> Hand {
    let mut hand = Hand::new(name);
    let conn = Conn {
        srtt_us,
        mss_bytes,
        ..hand.conn
    };
    hand.conn = conn;
    hand.ctl.cwnd = cwnd;
    hand.cc = Hand::new(name).cc;
    hand.cc.init(&conn, &mut hand.ctl);
    hand
}

fn assert_close(rate: u64, expected: u128, of: &str) {
    let error = u128::from(rate).abs_diff(expected);
    assert!(error <= expected / 500 + 1, "{of}: {rate}, {expected}");
}

#[test]
fn the_first_rate_of_bbr_is_its_gain_times_the_window_in_a_round_trip() {
    for name in ["bbr1", "bbr3", "bbr3-linux"] {
        let gain = if name == "bbr1" { 2.886 } else { 2.77 } * 0.99;
        for (cwnd, srtt_us, mss_bytes) in [
            (10, 20_000, MSS),
            (10, 30, MSS),
            (10, 30, 65_483),
            (250, 1, MSS),
            (64_000, 250, 65_483),
            (MOST_CWND, 70_000, 65_483),
            (100, 1_000_000, 536),
        ] {
            let hand = begun(name, cwnd, srtt_us, mss_bytes);
            let bytes = u128::from(cwnd) * u128::from(mss_bytes) * 1_000_000;
            let expected = (bytes as f64 * gain / f64::from(srtt_us)) as u128;
            let rate = hand.ctl.pacing_rate_bytes_per_s;
            assert_close(rate, expected, &format!("{name} {cwnd} {srtt_us}"));
        }
        // Above 256 packets/us the bandwidth is at its largest: it does not wrap.
        let full = begun(name, 256_000, 1_000, MSS).ctl.pacing_rate_bytes_per_s;
        assert!(full > 256_000 * u64::from(MSS) * 1_000, "{full}");
        assert_eq!(
            full,
            begun(name, MOST_CWND, 1, MSS).ctl.pacing_rate_bytes_per_s
        );
    }
}

#[test]
fn tarn_paces_at_its_window_in_a_round_trip_whatever_their_magnitude() {
    for (cwnd, srtt_us, mss_bytes) in [
        (10, 20_000, MSS),
        (2, 1_483_000, MSS),
        (2, 60_000_000, 536),
        (10, 1, 65_483),
        (1 << 21, 1_000, 65_483),
    ] {
        let hand = begun("tarn", cwnd, srtt_us, mss_bytes);
        let bytes = u128::from(cwnd) * u128::from(mss_bytes) * 1_000_000;
        // In Startup twice the window.
        assert_close(
            hand.ctl.pacing_rate_bytes_per_s,
            bytes * 2 / u128::from(srtt_us),
            &format!("{cwnd} {srtt_us}"),
        );
        assert_eq!(hand.ctl.cwnd, cwnd);
    }
    // Its own unit holds two million packets; more is as many, not a window that wrapped.
    for cwnd in [1 << 22, (1 << 22) + 1, MOST_CWND] {
        assert_eq!(begun("tarn", cwnd, 1_000, MSS).ctl.cwnd, 1 << 21, "{cwnd}");
    }
}

#[test]
fn tarns_rate_below_a_packet_a_round_trip_is_a_rate() {
    // A timeout leaves a packet: at an RTT of 1.483 s some 976 bytes/s, and never 0, at which the
    // host would choose. The gain below two packets is 1.
    for (srtt_us, expected) in [(1_483_000, 976), (2_000_000_000, 1)] {
        let mut hand = begun("tarn", 10, srtt_us, MSS);
        hand.conn.ca_state = CaState::Loss as u8;
        hand.event(EventKind::Rto, 0);
        assert_eq!(hand.ctl.pacing_rate_bytes_per_s, expected, "{srtt_us}");
    }
}

#[test]
fn without_a_sample_bbr_has_no_bandwidth_to_show() {
    for name in ["bbr1", "bbr3", "bbr2"] {
        let hand = Hand::new(name);
        let variables = &hand.cc.algorithm().variables;
        for column in ["bw_bps", "max_bw_bps"] {
            let index = variables.iter().position(|known| known.column == column);
            assert_eq!(hand.cc.variables()[index.unwrap()], None, "{name} {column}");
        }
    }
}

#[test]
fn a_bbr_whose_bandwidth_and_rtt_are_the_largest_keeps_the_largest_window() {
    // 256 packets/us and an RTT of minutes: the volume has more than 32 bits.
    for name in ["bbr1", "bbr3", "bbr3-linux"] {
        let mut hand = begun(name, 1 << 23, 100_000_000, MSS);
        hand.packets = 1 << 23;
        for _ in 0..40 {
            let mut ack = hand.next_ack();
            ack.delivered = 1 << 23;
            ack.interval_us = 10_000;
            ack.rtt_us = 100_000_000;
            hand.conn.inflight = 1 << 23;
            hand.deliver(ack);
        }
        assert!(hand.ctl.cwnd >= 1 << 23, "{name}: {}", hand.ctl.cwnd);
        assert!(hand.ctl.pacing_rate_bytes_per_s > 1 << 38, "{name}");
    }
}

#[test]
fn bbr1_begins_its_cycle_elsewhere_with_a_neighbouring_seed() {
    // The first gain after Drain is any but the draining one's: seeds 0 to 63 find all seven.
    let mut first = std::collections::BTreeMap::new();
    for seed in 0..64 {
        let mut hand = Hand::with("bbr1", &[], |conn| conn.seed = seed);
        while matches!(hand.phase(), Phase::Startup | Phase::Drain) {
            hand.round();
        }
        let rounds = (0..9)
            .take_while(|_| {
                let up = hand.phase() == Phase::Up;
                hand.round();
                !up
            })
            .count();
        *first.entry(rounds).or_insert(0) += 1;
    }
    assert!(first.len() >= 6, "{first:?}");
    assert!(first.values().all(|&seeds| seeds < 32), "{first:?}");
}

#[test]
fn the_windows_and_thresholds_of_the_largest_flows_are_whole() {
    for (name, beta) in [("reno", 0.5), ("cubic", 0.7)] {
        let mut hand = begun(name, MOST_CWND, 1_000, MSS);
        hand.event(EventKind::Ssthresh, 0);
        let kept = f64::from(hand.ctl.ssthresh) / f64::from(MOST_CWND);
        assert!((kept - beta).abs() < 0.001, "{name}: {kept}");
        assert!(hand.ctl.ssthresh < INFINITE);
    }
}
