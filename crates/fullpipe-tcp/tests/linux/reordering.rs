//! Paths that change the order of packets: tcp_check_sack_reordering(), tcp_rack_reo_wnd(),
//! tcp_rack_update_reo_wnd(), RFC 8985 section 6.2.

use super::peer::{ack, dsack, expires, numbers, sack, sends, with_cwnd, MS, RTT, START};
use fullpipe_cc::CaState;
use fullpipe_tcp::{Ack, Sender};

/// Ten packets are in flight; packets 1 to 3 arrive before packet 0, which is marked lost and retransmitted.
fn reordered_flow() -> Sender {
    let mut sender = with_cwnd(10);
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &sack(0, START, &[(1, 4)]));
    assert_eq!(
        sender.totals().packets_lost,
        1,
        "three above a hole are proof"
    );
    sender
}

/// Losses that the sender marks if `packets` above a hole are SACKed at `at_ns`.
fn losses_below(sender: &mut Sender, packets: u32, at_ns: u64) -> u32 {
    let before = sender.totals().packets_lost;
    let hole = sender.snd_una();
    sender.on_ack(
        at_ns,
        &sack(hole, at_ns - RTT, &[(hole + 1, hole + 1 + packets)]),
    );
    (sender.totals().packets_lost - before) as u32
}

#[test]
fn once_reordering_was_seen_three_packets_above_a_hole_do_not_mark_it_lost() {
    // The original of packet 0 arrives after 1 to 3.
    let mut sender = with_cwnd(10);
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &sack(0, START, &[(1, 3)]));
    sender.on_ack(START + RTT + MS, &ack(3, START));
    assert_eq!(sender.totals().packets_lost, 0);
    sends(&mut sender, START + RTT + MS);
    sender.on_ack(START + RTT + 2 * MS, &ack(10, START));
    sends(&mut sender, START + RTT + 2 * MS);
    let at_ns = START + 2 * RTT + 3 * MS;
    assert_eq!(losses_below(&mut sender, 4, at_ns), 0);
    // The reordering timer decides: a quarter of the minimum RTT.
    assert!(sender.timer_ns().unwrap() <= at_ns + RTT / 4 + 10 * MS);
}

#[test]
fn without_reordering_three_packets_above_a_hole_mark_it_lost() {
    let mut sender = with_cwnd(10);
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &ack(10, START));
    sends(&mut sender, START + RTT);
    assert_eq!(losses_below(&mut sender, 4, START + 2 * RTT), 1);
}

#[test]
fn a_lost_ack_is_not_taken_for_reordering() {
    // The first ACK that arrives acknowledges 0 to 4 and SACKs 6 to 8: no packet was late.
    let mut sender = with_cwnd(20);
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &sack(5, START, &[(6, 8)]));
    sender.on_ack(START + RTT, &sack(5, START, &[(6, 10)]));
    assert_eq!(sender.totals().packets_lost, 1);
}

#[test]
fn a_spurious_retransmission_widens_the_window_by_a_quarter_of_the_minimum_rtt() {
    // RFC 8985 section 6.2 step 4: a DSACK after reordering was seen.
    let mut sender = reordered_flow();
    let again = sends(&mut sender, START + RTT);
    assert_eq!(numbers(&again)[0], 0);
    // The original arrives late, then the retransmission as a duplicate.
    sender.on_ack(START + RTT + MS, &ack(4, START));
    sends(&mut sender, START + RTT + MS);
    sender.on_ack(START + 2 * RTT, &dsack(4, START + RTT, (0, 1)));
    let undone = sender.totals().undos;
    assert_eq!(
        undone, 1,
        "every retransmission was a duplicate, or its echo told so"
    );
    sender.on_ack(START + 2 * RTT, &ack(10, START));
    sends(&mut sender, START + 2 * RTT);
    let out = sender.inflight();
    assert!(out > 6, "{out}");
    assert_eq!(losses_below(&mut sender, 4, START + 3 * RTT), 0);
}

#[test]
fn a_dsack_of_a_packet_that_was_sacked_already_shows_reordering() {
    // tcp_sacktag_one(): packet 1 was sent again, its original was SACKed late, then the retransmission came
    // as a duplicate.
    let mut sender = with_cwnd(20);
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &sack(0, START, &[(2, 8)]));
    let again = numbers(&sends(&mut sender, START + RTT));
    assert_eq!(again[..2], [0, 1]);
    let next = 1 + again.iter().max().unwrap().max(&19);
    sender.on_ack(START + RTT + MS, &sack(0, START, &[(1, 8)]));
    let report = Ack {
        dsack: true,
        ..sack(0, START, &[(1, 2), (1, 8)])
    };
    sender.on_ack(START + 2 * RTT, &report);
    sender.on_ack(START + 2 * RTT, &ack(next, START + RTT));
    sends(&mut sender, START + 2 * RTT);
    assert_eq!(losses_below(&mut sender, 4, START + 3 * RTT), 0);
}

#[test]
fn a_dsack_of_a_packet_that_the_same_ack_acknowledges_shows_reordering() {
    // tcp_sacktag_write_queue() skips blocks below the snd_una of before the ACK only. Packet 1 was sent again
    // and its original SACKed late; then one ACK fills the hole below and reports the duplicate.
    let mut sender = with_cwnd(20);
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &sack(0, START, &[(2, 8)]));
    let again = numbers(&sends(&mut sender, START + RTT));
    assert_eq!(again[..2], [0, 1]);
    let next = 1 + again.iter().max().unwrap().max(&19);
    sender.on_ack(START + RTT + MS, &sack(0, START, &[(1, 8)]));
    sender.on_ack(START + 2 * RTT, &dsack(8, START + RTT, (1, 2)));
    sender.on_ack(START + 2 * RTT, &ack(next, START + RTT));
    sends(&mut sender, START + 2 * RTT);
    assert_eq!(losses_below(&mut sender, 4, START + 3 * RTT), 0);
}

#[test]
fn an_ack_that_others_overtook_by_two_milliseconds_is_dropped() {
    // PAWS: tcp_paws_discard(), tcp_disordered_ack(). An ACK's timestamp counts milliseconds.
    let inflight = |late_ns: u64| {
        let mut sender = with_cwnd(20);
        sends(&mut sender, START);
        sender.on_ack(START + RTT, &ack(4, START));
        let old = Ack {
            sent_ns: ack(4, START).sent_ns - late_ns,
            ..sack(3, START, &[(5, 7)])
        };
        sender.on_ack(START + RTT, &old);
        sender.inflight()
    };
    assert_eq!((inflight(2 * MS), inflight(MS)), (16, 14));
}

#[test]
fn an_ack_that_was_overtaken_does_not_lower_the_window() {
    // tcp_may_update_window(): of two ACKs with the same number the larger window counts.
    let mut sender = with_cwnd(10);
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &ack(5, START));
    let narrow = Ack {
        window_bytes: 20_000,
        ..ack(5, START)
    };
    sender.on_ack(START + RTT, &narrow);
    assert_eq!(sends(&mut sender, START + RTT).len(), 10);
}

#[test]
fn the_reordering_timer_begins_a_recovery_after_a_timeout_too() {
    // tcp_rack_reo_timeout() asks only whether the state is Recovery already.
    let mut sender = with_cwnd(10);
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &sack(0, START, &[(1, 3)]));
    sender.on_ack(START + RTT + MS, &ack(3, START));
    let (timeout_ns, _) = expires(&mut sender);
    let (timeout_ns, _) = match sender.ca_state() {
        CaState::Loss => (timeout_ns, Vec::new()),
        _ => expires(&mut sender),
    };
    assert_eq!(sender.ca_state(), CaState::Loss);
    // The retransmission of packet 3 arrives; two packets leave, of which the second arrives first.
    sender.on_ack(timeout_ns + RTT, &ack(4, timeout_ns));
    let sent = numbers(&sends(&mut sender, timeout_ns + RTT));
    assert_eq!(sent.len(), 2, "{sent:?}");
    let last = sent[1];
    sender.on_ack(
        timeout_ns + 2 * RTT,
        &sack(4, timeout_ns + RTT, &[(last, last + 1)]),
    );
    assert_eq!(
        (sender.ca_state(), sender.totals().recoveries),
        (CaState::Loss, 0)
    );
    expires(&mut sender);
    assert_eq!(
        (sender.ca_state(), sender.totals().recoveries),
        (CaState::Recovery, 1)
    );
}
