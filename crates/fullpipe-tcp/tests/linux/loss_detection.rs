//! The scoreboard (RFC 2018, RFC 6675's counting) and RACK-TLP (RFC 8985).

use super::peer::{
    ack, config, dsack, events, expires, numbers, reno, sack, sender, sender_over, sends,
    with_cwnd, MS, MSS, RTT, START,
};
use super::ticks::{fires_ns, TICK};
use fullpipe_cc::CaState;
use fullpipe_tcp::{Sender, SenderConfig, SenderEvent};

const US: u64 = 1000;

#[test]
fn a_sacked_packet_is_delivered_once_and_leaves_the_flight() {
    let mut sender = reno();
    sends(&mut sender, START);
    let before = sender.delivered().0;
    sender.on_ack(START + RTT, &sack(0, START, &[(5, 7)]));
    assert_eq!((sender.delivered().0 - before, sender.inflight()), (2, 8));
    // The same blocks again, and one that overlaps them.
    sender.on_ack(START + RTT, &sack(0, START, &[(5, 7)]));
    sender.on_ack(START + RTT, &sack(0, START, &[(4, 8)]));
    assert_eq!(sender.delivered().0 - before, 4);
    sender.on_ack(START + RTT, &ack(10, START));
    assert_eq!((sender.delivered().0 - before, sender.inflight()), (10, 0));
}

#[test]
fn an_ack_of_unsent_or_long_acknowledged_packets_changes_nothing() {
    let mut sender = reno();
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &ack(4, START));
    let before = (
        sender.cwnd(),
        sender.inflight(),
        sender.delivered(),
        sender.snd_una(),
    );
    sender.on_ack(START + RTT, &ack(11, START));
    sender.on_ack(START + RTT, &ack(3, START));
    sender.on_ack(START + RTT, &sack(4, START, &[(50, 60), (900, u32::MAX)]));
    assert_eq!(
        before,
        (
            sender.cwnd(),
            sender.inflight(),
            sender.delivered(),
            sender.snd_una()
        )
    );
}

#[test]
fn with_fewer_than_three_sacked_packets_a_hole_waits_a_quarter_of_the_minimum_rtt() {
    // RFC 8985 section 6.2 step 4: the reordering window starts at min_RTT / 4. The next test is about the
    // 2 ms that are added.
    let mut sender = reno();
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &sack(0, START, &[(1, 3)]));
    assert_eq!(sender.ca_state(), CaState::Disorder);
    sends(&mut sender, START + RTT);
    let (at_ns, again) = expires(&mut sender);
    assert_eq!(at_ns, fires_ns(START + RTT, RTT / 4 + 2 * MS));
    assert_eq!(sender.ca_state(), CaState::Recovery);
    assert_eq!(numbers(&again)[0], 0);
}

#[test]
fn the_reordering_timer_waits_two_milliseconds_longer_than_the_window() {
    // tcp_rack_mark_lost() adds TCP_TIMEOUT_MIN_US. 40 ms / 4 + 2 ms are three ticks, a microsecond more is
    // four. From tick 260 on they fire at 264 and 265.
    for (rtt_ns, tick) in [(RTT, 264), (RTT + 4 * US, 265)] {
        let mut sender = sender_over(rtt_ns, "reno", config());
        sends(&mut sender, START);
        sender.on_ack(START + rtt_ns, &sack(0, START, &[(1, 3)]));
        assert_eq!(sender.timer_ns(), Some(tick * TICK));
    }
}

#[test]
fn a_hole_that_fills_within_the_reordering_window_is_no_loss() {
    let mut sender = reno();
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &sack(0, START, &[(1, 3)]));
    sender.on_ack(START + RTT + RTT / 8, &ack(3, START));
    assert_eq!(sender.ca_state(), CaState::Open);
    assert_eq!(
        (sender.totals().packets_lost, sender.totals().recoveries),
        (0, 0)
    );
}

#[test]
fn three_sacked_packets_mark_the_hole_below_them_at_once() {
    // RFC 8985 section 6.2 step 4 with RFC 6675's DupThresh while no reordering was seen.
    let mut sender = reno();
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &sack(0, START, &[(2, 4)]));
    assert_eq!(sender.totals().packets_lost, 0);
    sender.on_ack(START + RTT, &sack(0, START, &[(2, 5)]));
    assert_eq!(sender.ca_state(), CaState::Recovery);
    assert_eq!(sender.totals().packets_lost, 2);
    assert_eq!(events(&mut sender), [SenderEvent::Recovery]);
}

#[test]
fn only_what_was_sent_before_the_newest_delivery_is_lost() {
    let mut sender = reno();
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &sack(0, START, &[(3, 6)]));
    assert_eq!(sender.totals().packets_lost, 3);
    assert_eq!(sender.inflight(), 4);
}

#[test]
fn a_retransmission_is_lost_when_something_sent_after_it_arrives() {
    // RFC 8985 section 3.1: duplicate ACKs alone cannot detect it.
    let mut sender = with_cwnd(40);
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &sack(0, START, &[(1, 30)]));
    let again = sends(&mut sender, START + RTT);
    assert_eq!(numbers(&again)[0], 0);
    sender.on_ack(START + RTT + MS, &sack(0, START, &[(1, 40)]));
    let newer = sends(&mut sender, START + RTT + MS);
    assert!(newer[0].number >= 40);
    sender.on_ack(
        START + 2 * RTT + MS,
        &sack(0, START, &[(1, newer[0].number + 1)]),
    );
    let third = sends(&mut sender, START + 2 * RTT + MS);
    assert_eq!(third[0].number, 0);
    assert_eq!(sender.totals().packets_lost, 2);
}

#[test]
fn an_ack_faster_than_the_minimum_rtt_is_of_the_original() {
    // RFC 8985 section 6.2 step 2: RACK must not take it for an RTT.
    let mut sender = with_cwnd(40);
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &sack(0, START, &[(2, 8)]));
    let again = sends(&mut sender, START + RTT);
    assert_eq!(numbers(&again)[..2], [0, 1]);
    sender.on_ack(START + RTT + MS, &sack(1, START, &[(2, 9)]));
    assert!(sends(&mut sender, START + RTT + MS)
        .iter()
        .all(|packet| packet.number > 1));
    assert_eq!(sender.totals().packets_lost, 2);
}

#[test]
fn after_two_smoothed_rtts_a_loss_probe_sends_new_data() {
    // RFC 8985 section 7.2: PTO = 2 SRTT; section 7.3: new data if there are any. Linux adds 2 ms
    // (TCP_TIMEOUT_MIN_US).
    let mut sender = reno();
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &ack(10, START));
    sends(&mut sender, START + RTT);
    let (at_ns, probe) = expires(&mut sender);
    assert_eq!(at_ns, fires_ns(START + RTT, 2 * RTT + 2 * MS));
    assert_eq!(numbers(&probe), [30]);
    assert!(!probe[0].is_retransmission);
    assert_eq!(sender.totals().timeouts, 0);
}

/// A flow of `packets`.
fn sender_of(packets: u64) -> Sender {
    let amount_bytes = Some(packets * u64::from(MSS));
    sender(
        "reno",
        SenderConfig {
            amount_bytes,
            ..config()
        },
    )
}

/// Four packets were sent and the first three acknowledged; a loss probe repeats the last.
fn tail() -> (Sender, u64) {
    let mut sender = sender(
        "reno",
        SenderConfig {
            written_by_application: true,
            ..config()
        },
    );
    sender.write(4);
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &ack(3, START));
    sends(&mut sender, START + RTT);
    let (at_ns, probe) = expires(&mut sender);
    // With one packet in flight the peer may delay its ACK (section 7.2, 200 ms in Linux). The timeout of
    // SRTT + 200 ms would be sooner, so the probe is sent then.
    assert_eq!(at_ns, fires_ns(START + RTT, RTT + 200 * MS));
    assert_eq!(sender.totals().timeouts, 0);
    assert_eq!(numbers(&probe), [3]);
    assert!(probe[0].is_retransmission);
    (sender, at_ns)
}

#[test]
fn a_probe_that_repaired_a_tail_loss_reduces_the_window_when_later_data_are_acknowledged() {
    // RFC 8985 section 7.4.2, tcp_process_tlp_ack(): the ACK of the probe may be the delayed ACK of the
    // original, whose DSACK follows.
    for came_twice in [false, true] {
        let (mut sender, at_ns) = tail();
        let before = sender.cwnd();
        sender.on_ack(at_ns + RTT, &ack(4, at_ns));
        assert_eq!(sender.cwnd(), before, "nobody knows yet");
        if came_twice {
            sender.on_ack(at_ns + RTT + MS, &dsack(4, at_ns, (3, 4)));
        }
        sender.write(1);
        sends(&mut sender, at_ns + RTT + MS);
        sender.on_ack(at_ns + 2 * RTT + MS, &ack(5, at_ns + RTT + MS));
        let reduced = events(&mut sender).contains(&SenderEvent::Cwr);
        assert_eq!(reduced, !came_twice);
        assert_eq!(sender.cwnd() <= before / 2 + 1, !came_twice);
    }
}

#[test]
fn a_probe_whose_original_arrived_reduces_nothing() {
    let (mut sender, at_ns) = tail();
    let before = sender.cwnd();
    sender.on_ack(at_ns + RTT, &dsack(4, at_ns, (3, 4)));
    assert!(sender.cwnd() >= before);
    assert_eq!(sender.ca_state(), CaState::Open);
}

#[test]
fn a_probe_turns_a_tail_loss_into_recovery_without_a_timeout() {
    let mut sender = sender_of(10);
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &ack(4, START));
    sends(&mut sender, START + RTT);
    let (at_ns, probe) = expires(&mut sender);
    // The FIN after the ten packets is the last packet.
    assert_eq!((numbers(&probe), probe[0].fin), (vec![10], true));
    sender.on_ack(at_ns + RTT, &sack(4, START, &[(10, 11)]));
    let again = sends(&mut sender, at_ns + RTT);
    assert_eq!(sender.ca_state(), CaState::Recovery);
    assert_eq!(numbers(&again)[0], 4);
    assert_eq!(
        (sender.totals().packets_lost, sender.totals().timeouts),
        (6, 0)
    );
}

#[test]
fn new_data_sent_at_the_time_of_a_retransmission_do_not_mark_it_lost() {
    // ACKs arrive at the same simulated time: the first two release new data, the third detects the loss.
    // The retransmission follows the new data, which are delivered first.
    let mut sender = with_cwnd(10);
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &ack(1, START));
    sends(&mut sender, START + RTT);
    let at_ns = START + RTT + MS;
    sender.on_ack(at_ns, &sack(1, START, &[(2, 3)]));
    sender.on_ack(at_ns, &sack(1, START, &[(2, 4)]));
    let before = sends(&mut sender, at_ns);
    assert!(before.iter().all(|packet| !packet.is_retransmission) && !before.is_empty());
    sender.on_ack(at_ns, &sack(1, START, &[(2, 5)]));
    assert_eq!(numbers(&sends(&mut sender, at_ns)[..1]), [1]);
    let newest = before[before.len() - 1].number + 1;
    sender.on_ack(at_ns + RTT, &sack(1, at_ns, &[(2, newest)]));
    assert_eq!(sender.totals().packets_lost, 1);
    assert!(sends(&mut sender, at_ns + RTT)
        .iter()
        .all(|packet| !packet.is_retransmission));
}
