//! Reno against RFC 5681, with Linux's counting of packets instead of ACKs.

use crate::calls::Caller;
use fullpipe_cc::{EventKind, INFINITE};
use proptest::prelude::*;

#[test]
fn slow_start_grows_by_what_was_acknowledged_and_ends_at_ssthresh() {
    // RFC 5681 section 3.1, with tcp_slow_start()'s remainder for congestion avoidance.
    let mut reno = Caller::new("reno", 10);
    reno.ctl.ssthresh = 16;
    reno.ack(4);
    assert_eq!(reno.ctl.cwnd, 14);
    reno.ack(4);
    assert_eq!((reno.ctl.cwnd, reno.ctl.cwnd_cnt), (16, 2));
}

#[test]
fn a_window_that_does_not_limit_the_sender_does_not_grow() {
    // RFC 7661 section 4.4.1 and tcp_reno_cong_avoid(): is_cwnd_limited.
    let mut reno = Caller::new("reno", 10);
    reno.conn.is_cwnd_limited = 0;
    reno.ack(10);
    reno.ctl.ssthresh = 5;
    reno.ack(10);
    assert_eq!(reno.ctl.cwnd, 10);
}

#[test]
fn a_spurious_reduction_is_taken_back() {
    let mut reno = Caller::new("reno", 40);
    reno.event(EventKind::Ssthresh, 0, 0);
    reno.ctl.cwnd = reno.ctl.ssthresh;
    assert_eq!(reno.ctl.cwnd, 20);
    reno.event(EventKind::Undo, 0, 0);
    assert_eq!(reno.ctl.cwnd, 40);
}

proptest! {
    #[test]
    fn a_window_acknowledged_in_avoidance_is_a_packet_more_however_it_was_acknowledged(
        cwnd in 2u32..5000,
        pieces in proptest::collection::vec(1u32..64, 1..400),
    ) {
        // RFC 5681 section 3.1, equation 3 with appropriate byte counting's exactness.
        let mut reno = Caller::new("reno", cwnd);
        reno.ctl.ssthresh = 2;
        let (mut acked, mut expected, mut left) = (0u64, cwnd, 0u32);
        for piece in pieces {
            reno.ack(piece);
            acked += u64::from(piece);
            left += piece;
            // One packet for each window, by the window of the moment.
            if left >= expected {
                let grow = left / expected;
                left -= grow * expected;
                expected += grow;
            }
            prop_assert!(reno.ctl.cwnd.abs_diff(expected) <= 1, "{} {expected}", reno.ctl.cwnd);
        }
        let bound = f64::from(cwnd) + acked as f64 / f64::from(cwnd);
        prop_assert!(f64::from(reno.ctl.cwnd) <= bound + 1.0);
    }

    #[test]
    fn a_reduction_halves_the_window_and_leaves_two_packets(cwnd in 1u32..1_000_000) {
        // RFC 5681 section 3.1, equation 4.
        let mut reno = Caller::new("reno", cwnd);
        reno.event(EventKind::Ssthresh, 0, 0);
        prop_assert_eq!(reno.ctl.ssthresh, (cwnd / 2).max(2));
    }

    #[test]
    fn the_window_never_passes_its_clamp(clamp in 2u32..1000, acks in 1u32..300) {
        let mut reno = Caller::new("reno", 2);
        reno.ctl.ssthresh = INFINITE;
        reno.conn.cwnd_clamp = clamp;
        for _ in 0..acks {
            reno.ack(7);
            prop_assert!(reno.ctl.cwnd <= clamp);
        }
    }
}
