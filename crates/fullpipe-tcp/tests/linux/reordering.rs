//! Paths that change the order of packets: tcp_check_sack_reordering(), tcp_rack_reo_wnd(),
//! tcp_rack_update_reo_wnd(), RFC 8985 section 6.2.

use super::peer::{ack, dsack, numbers, sack, sends, with_cwnd, MS, RTT, START};
use fullpipe_tcp::Sender;

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
