//! BBRv3's answers to hand-made sequences of ACKs, each against the rule of Google's v3 `tcp_bbr.c`
//! (google/bbr at 001a430) or of Linux that it names.

mod hand;

use fullpipe_cc::{Phase, INFINITE};
use hand::Hand;

/// A round trip of the steady path: 10 packets in 10 ms.
fn until(hand: &mut Hand, phase: Phase) {
    for _ in 0..2000 {
        if hand.phase() == phase {
            return;
        }
        hand.round();
    }
    panic!("never in {phase:?}");
}

#[test]
fn a_packet_sent_in_probe_rtt_and_delivered_after_a_loss_is_still_application_limited() {
    // bbr_update_min_rtt() sets tp->app_limited, tcp_rate_skb_sent() stamps each packet with it, and
    // bbr_handle_inflight_too_high() leaves inflight_hi alone where the sample carries the stamp.
    let after_probe_rtt = |late: bool| {
        let mut hand = Hand::new("bbr3-linux");
        until(&mut hand, Phase::ProbeRtt);
        hand.round();
        assert_eq!(hand.phase(), Phase::ProbeRtt);
        let in_probe_rtt = hand.conn.delivered;
        until(&mut hand, Phase::Cruise);
        until(&mut hand, Phase::Up);
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
