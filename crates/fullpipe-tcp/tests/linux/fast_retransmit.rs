//! Proportional rate reduction (RFC 6937) and the undoing of reductions (RFC 3522, RFC 3708).

use super::peer::{
    ack, config, dsack, events, expires, numbers, sack, sender, sends, with_cwnd, Answers, MS, RTT,
    START,
};
use fullpipe_cc::CaState;
use fullpipe_tcp::{Data, Sender, SenderConfig, SenderEvent};

/// Sends twenty packets, some of which are lost; each other one is acknowledged. Returns the sender, and
/// what it sent after each ACK.
fn recover(lost: impl Fn(u32) -> bool) -> (Sender, Vec<Vec<Data>>) {
    let mut sender = with_cwnd(20);
    let mut answers = Answers::default();
    let first = sends(&mut sender, START);
    let mut sent = Vec::new();
    for packet in first.iter().filter(|packet| !lost(packet.number)) {
        let now_ns = START + RTT + u64::from(packet.number) * MS;
        sender.on_ack(now_ns, &answers.to(packet));
        sent.push(sends(&mut sender, now_ns));
    }
    (sender, sent)
}

/// RFC 6937 section 3 with PRR-SSRB, in packets: how many are sent after each ACK of a recovery if each
/// delivers one packet and nothing else is lost.
fn rfc_6937(flight: u32, ssthresh: u32, mut pipe: u32, acks: usize) -> Vec<usize> {
    let (mut delivered, mut out) = (0, 0);
    let mut sent = Vec::new();
    for ack in 0..acks {
        // The pipe excludes the packet of the ACK that began recovery.
        pipe -= u32::from(ack > 0);
        delivered += 1;
        let count = if pipe > ssthresh {
            (delivered * ssthresh).div_ceil(flight) - out
        } else {
            (delivered - out).max(1).min(ssthresh - pipe)
        };
        out += count;
        pipe += count;
        sent.push(count as usize);
    }
    sent
}

#[test]
fn one_loss_of_twenty_sends_as_rfc_6937() {
    // Section 4's first example: two packets of limited transmit, the retransmission, then one packet for
    // every two delivered.
    let (sender, sent) = recover(|number| number == 0);
    let counts: Vec<usize> = sent.iter().map(Vec::len).collect();
    assert_eq!(counts[..2], [1, 1]);
    assert_eq!(sent[2][0].number, 0);
    assert_eq!(sender.ssthresh(), Some(10));
    // 22 were sent; three of them are SACKed and one is lost.
    assert_eq!(counts[2..], rfc_6937(20, 10, 18, 17));
    assert_eq!(sender.inflight(), 10);
}

#[test]
fn fifteen_losses_of_twenty_refill_the_pipe_as_rfc_6937_figure_2_shows() {
    // Section 4's second example loses 1 to 15 of 20: PRR-SSRB sends up to two packets an ACK
    // while the pipe is below ssthresh, instead of one burst or of one packet an ACK.
    let (sender, sent) = recover(|number| (1..16).contains(&number));
    let counts: Vec<usize> = sent.iter().map(Vec::len).collect();
    assert_eq!(sender.ssthresh(), Some(10));
    assert!(counts.iter().all(|&count| count <= 3), "{counts:?}");
    assert!(sender.inflight() <= 10);
    assert!(sent.concat().iter().any(|packet| packet.is_retransmission));
}

#[test]
fn recovery_ends_at_ssthresh_when_its_flight_is_acknowledged() {
    let (mut sender, sent) = recover(|number| number == 0);
    let now_ns = START + 3 * RTT;
    let last = sent
        .concat()
        .iter()
        .map(|packet| packet.number)
        .max()
        .unwrap();
    assert_eq!(sender.ca_state(), CaState::Recovery);
    sender.on_ack(now_ns, &ack(last + 1, START + RTT + 3 * MS));
    assert_eq!(sender.ca_state(), CaState::Open);
    // The same ACK begins congestion avoidance (tcp_cong_control()).
    assert!((10..=11).contains(&sender.cwnd()), "{}", sender.cwnd());
    assert_eq!(
        events(&mut sender),
        [SenderEvent::Recovery, SenderEvent::RecoveryEnd]
    );
}

#[test]
fn losses_of_one_window_reduce_it_once() {
    let (sender, _) = recover(|number| number % 4 == 0);
    assert_eq!(sender.totals().recoveries, 1);
    assert_eq!(sender.ssthresh(), Some(10));
    assert_eq!(sender.totals().packets_lost, 5);
}

/// Of a window of twenty, the first packet was reordered by more than RACK allows, and retransmitted.
fn spurious_recovery() -> Sender {
    let mut sender = with_cwnd(20);
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &sack(0, START, &[(1, 4)]));
    let again = sends(&mut sender, START + RTT + MS);
    assert_eq!(numbers(&again)[0], 0);
    assert_eq!(sender.ssthresh(), Some(10));
    events(&mut sender);
    sender
}

#[test]
fn a_timestamp_echo_of_the_original_undoes_the_reduction() {
    // Eifel detection, RFC 3522: the ACK's timestamp is older than the retransmission.
    let mut sender = spurious_recovery();
    sender.on_ack(START + RTT + 2 * MS, &ack(20, START));
    assert!(events(&mut sender).contains(&SenderEvent::Undo));
    assert_eq!(sender.ca_state(), CaState::Open);
    assert!(sender.cwnd() >= 20, "{}", sender.cwnd());
    assert_eq!(sender.totals().undos, 1);
}

#[test]
fn a_timestamp_echo_of_the_retransmission_does_not() {
    let mut sender = spurious_recovery();
    let next = 20;
    sender.on_ack(START + 2 * RTT + MS, &ack(next, START + RTT + MS));
    sender.on_ack(START + 2 * RTT + 2 * MS, &ack(next, START + RTT + MS));
    assert_eq!(sender.totals().undos, 0);
    assert!(sender.cwnd() <= 11, "{}", sender.cwnd());
}

#[test]
fn dsacks_of_all_retransmissions_undo_the_reduction() {
    // RFC 3708, tcp_may_undo(): all originals had arrived. The timestamp echo does not show it here.
    let mut sender = spurious_recovery();
    let now_ns = START + 2 * RTT;
    sender.on_ack(now_ns, &sack(4, START + RTT + MS, &[(5, 20)]));
    assert_eq!(sender.ca_state(), CaState::Recovery);
    sender.on_ack(now_ns + MS, &dsack(20, START + RTT + MS, (0, 1)));
    let next = 21;
    sends(&mut sender, now_ns + MS);
    sender.on_ack(now_ns + 2 * MS, &ack(next, START + RTT + MS));
    assert_eq!(sender.totals().undos, 1);
    assert!(sender.cwnd() >= 20, "{}", sender.cwnd());
}

#[test]
fn a_dsack_after_the_recovery_undoes_the_reduction_too() {
    // tcp_try_undo_dsack() in Open: the ACK of the retransmission ended the recovery, its DSACK follows.
    let mut sender = spurious_recovery();
    let now_ns = START + 2 * RTT;
    sender.on_ack(now_ns, &ack(20, START + RTT + MS));
    assert_eq!(sender.ca_state(), CaState::Open);
    assert!(sender.cwnd() <= 11, "{}", sender.cwnd());
    sender.on_ack(now_ns + MS, &dsack(20, START + RTT + MS, (0, 1)));
    assert_eq!((sender.totals().undos, sender.ssthresh()), (1, None));
    assert!(sender.cwnd() >= 20, "{}", sender.cwnd());
}

#[test]
fn a_dsack_in_a_reordered_ack_counts() {
    // tcp_ack(), old_ack.
    let mut sender = spurious_recovery();
    let now_ns = START + 2 * RTT;
    sender.on_ack(now_ns, &ack(20, START + RTT + MS));
    assert_eq!(
        (sender.ca_state(), sender.totals().undos),
        (CaState::Open, 0)
    );
    sender.on_ack(now_ns + MS, &dsack(4, START + RTT + MS, (0, 1)));
    assert_eq!(sender.totals().undos, 1);
}

#[test]
fn packets_duplicated_by_the_network_do_not_undo_a_reduction() {
    // tcp_dsack_seen(): more duplicates than retransmissions. Two DSACKs are of packets that the network
    // duplicated before the loss, the third is of the retransmission.
    let mut sender = with_cwnd(20);
    sends(&mut sender, START);
    for packet in 0..2 {
        let delivered = sender.delivered().0;
        sender.on_ack(START + RTT, &dsack(2, START, (packet, packet + 1)));
        let news = if packet == 0 { 2 } else { 0 };
        assert_eq!(sender.delivered().0, delivered + news);
    }
    sends(&mut sender, START + RTT);
    sender.on_ack(START + RTT, &sack(2, START, &[(3, 6)]));
    assert_eq!(numbers(&sends(&mut sender, START + RTT + MS))[0], 2);
    let now_ns = START + 2 * RTT + MS;
    sender.on_ack(now_ns, &ack(20, START + RTT + MS));
    sender.on_ack(now_ns, &dsack(20, START + RTT + MS, (2, 3)));
    assert_eq!((sender.snd_una(), sender.totals().undos), (20, 0));
}

#[test]
fn a_partial_ack_of_an_original_stops_loss_marking_while_retransmissions_are_in_flight() {
    // tcp_try_undo_partial(): packets 0 and 5 were retransmitted, and the original of 0 arrives.
    let mut sender = with_cwnd(20);
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &sack(0, START, &[(1, 5), (6, 9)]));
    let again = sends(&mut sender, START + RTT + MS);
    assert_eq!(numbers(&again)[0], 0);
    sender.on_ack(START + RTT + 2 * MS, &sack(0, START, &[(1, 5), (6, 12)]));
    sends(&mut sender, START + RTT + 2 * MS);
    let before = sender.totals().packets_lost;
    sender.on_ack(START + RTT + 3 * MS, &sack(5, START, &[(13, 19)]));
    assert_eq!(sender.totals().packets_lost, before);
    assert_eq!(sender.ca_state(), CaState::Recovery);
    // All other originals arrive: the reduction is undone.
    sender.on_ack(START + RTT + 4 * MS, &ack(22, START));
    assert_eq!(sender.totals().undos, 1);
}

#[test]
fn a_retransmitting_loss_probe_does_not_count_as_in_flight() {
    // __tcp_retransmit_skb() alone: no SACKED_RETRANS, no retrans_out, no stamp for undo.
    let amount_bytes = Some(4 * 1448);
    let config = SenderConfig {
        amount_bytes,
        ..config()
    };
    let mut sender = sender("reno", config);
    sends(&mut sender, START);
    let before = sender.inflight();
    let (_, probe) = expires(&mut sender);
    assert!(probe[0].is_retransmission);
    assert_eq!(sender.inflight(), before);
}

#[test]
fn lost_packets_are_retransmitted_buffer_by_buffer() {
    // tcp_xmit_retransmit_queue() checks the window for each skb of the retransmission queue. Bursts are of
    // two packets; 1, 2, 4 and 5 are lost.
    let config = SenderConfig {
        gso_max_segments: 2,
        initial_cwnd: 20,
        ..config()
    };
    let mut sender = sender("reno", config);
    assert_eq!(sends(&mut sender, START).len(), 20);
    sender.on_ack(START + RTT, &ack(1, START));
    let now_ns = START + RTT + MS;
    sender.on_ack(now_ns, &sack(1, START, &[(6, 20), (3, 4)]));
    let again = sends(&mut sender, now_ns);
    let bursts: Vec<(u32, bool)> = again
        .iter()
        .filter(|packet| packet.is_retransmission)
        .map(|packet| (packet.number, packet.leads_burst))
        .collect();
    assert_eq!(bursts, [(1, true), (2, true), (4, true), (5, false)]);
}
