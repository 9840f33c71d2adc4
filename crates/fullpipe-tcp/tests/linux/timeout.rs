//! The retransmission timer (RFC 6298 with Linux's 200 ms), its backoff, and F-RTO (RFC 5682).

use super::peer::{
    ack, config, events, expires, numbers, reno, sack, sender, sends, Answers, MS, MSS, RTT, START,
};
use super::ticks::fires_ns;
use fullpipe_cc::CaState;
use fullpipe_tcp::{Data, Sender, SenderConfig, SenderEvent};

/// When the timer expires `timeouts` times without an ACK, the loss probe first.
fn silence(sender: &mut Sender, timeouts: u64) -> Vec<u64> {
    let mut at = Vec::new();
    while sender.totals().timeouts < timeouts {
        let before = sender.totals().timeouts;
        let (at_ns, _) = expires(sender);
        if sender.totals().timeouts > before {
            at.push(at_ns);
        }
    }
    at
}

#[test]
fn the_timeout_is_the_smoothed_rtt_and_at_least_200_ms_of_deviation() {
    // tcp_rtt_estimator(): RTTVAR is at least tcp_rto_min, so a steady RTT gives SRTT + 200 ms, counted
    // from the loss probe.
    let mut sender = reno();
    sends(&mut sender, START);
    let (probe_ns, probe) = expires(&mut sender);
    assert_eq!((probe.len(), sender.totals().timeouts), (1, 0));
    let (at_ns, _) = expires(&mut sender);
    assert_eq!(at_ns, fires_ns(probe_ns, RTT + 200 * MS));
    assert_eq!(sender.totals().timeouts, 1);
}

#[test]
fn every_expiry_doubles_the_timeout_and_a_new_ack_restores_it() {
    let mut sender = reno();
    sends(&mut sender, START);
    let at = silence(&mut sender, 6);
    for (doublings, pair) in (1..).zip(at.windows(2)) {
        let timeout_ns = (RTT + 200 * MS) << doublings;
        assert_eq!(pair[1], fires_ns(pair[0], timeout_ns));
    }
    let now_ns = at[5] + RTT;
    sender.on_ack(now_ns, &ack(1, at[5]));
    sends(&mut sender, now_ns);
    assert!(sender.timer_ns().unwrap() - now_ns <= 2 * (RTT + 200 * MS));
}

#[test]
fn the_timeout_never_exceeds_120_s() {
    let mut sender = reno();
    sends(&mut sender, START);
    let at = silence(&mut sender, 14);
    assert_eq!(at[13], fires_ns(at[12], 120_000 * MS));
}

#[test]
fn a_timeout_leaves_a_window_of_one_and_half_the_flight_as_ssthresh() {
    // RFC 5681 section 3.1, equation 4, and section 3.1's loss window.
    let mut sender = reno();
    sends(&mut sender, START);
    silence(&mut sender, 1);
    assert_eq!((sender.cwnd(), sender.ssthresh()), (1, Some(5)));
    assert_eq!(sender.ca_state(), CaState::Loss);
    // The flight includes the loss probe.
    assert_eq!(sender.totals().packets_lost, 11);
    assert_eq!(sender.inflight(), 1);
}

#[test]
fn after_a_timeout_the_window_grows_from_one_by_slow_start() {
    let mut sender = reno();
    sends(&mut sender, START);
    let at_ns = silence(&mut sender, 1)[0];
    sender.on_ack(at_ns + RTT, &ack(1, at_ns));
    assert_eq!(sender.cwnd(), 2);
    let again = sends(&mut sender, at_ns + RTT);
    assert_eq!(again.len(), 2);
}

/// A spurious timeout: all ten packets had arrived, but their ACKs were late.
fn late() -> (Sender, u64) {
    let mut sender = reno();
    sends(&mut sender, START);
    let at_ns = silence(&mut sender, 1)[0];
    events(&mut sender);
    (sender, at_ns)
}

#[test]
fn a_late_ack_of_an_original_undoes_a_timeout_by_its_timestamp() {
    // RFC 3522 with RFC 4015's response: the window is restored.
    let (mut sender, at_ns) = late();
    sender.on_ack(at_ns + 5 * MS, &ack(2, START));
    assert!(events(&mut sender).contains(&SenderEvent::Undo));
    assert_eq!(sender.ca_state(), CaState::Open);
    assert!(sender.cwnd() >= 10, "{}", sender.cwnd());
    // No further retransmission follows.
    assert!(sends(&mut sender, at_ns + 5 * MS)
        .iter()
        .all(|packet| !packet.is_retransmission));
}

#[test]
fn packets_in_flight_during_an_outage_are_not_lost_again_by_the_first_ack() {
    // tcp_skb_spurious_retrans(): the timestamp echo shows that the original arrived, so RACK does not use
    // the retransmission's send time.
    let (mut sender, at_ns) = late();
    let now_ns = at_ns + 3 * RTT;
    sender.on_ack(now_ns, &ack(1, START));
    assert_eq!(sender.totals().undos, 1);
    assert_eq!(sender.ca_state(), CaState::Open);
    assert!(sends(&mut sender, now_ns)
        .iter()
        .all(|packet| !packet.is_retransmission));
}

#[test]
fn without_timestamps_f_rto_undoes_a_timeout_when_an_original_is_delivered() {
    // RFC 5682 section 3.1 (SACK-enhanced): packets that were not retransmitted are acknowledged.
    let (mut sender, at_ns) = late();
    sender.on_ack(at_ns + 5 * MS, &ack(3, 0));
    assert_eq!(sender.totals().undos, 1);
    assert_eq!(sender.ca_state(), CaState::Open);
}

#[test]
fn a_timeout_is_not_undone_if_only_its_retransmission_is_acknowledged() {
    let (mut sender, at_ns) = late();
    sender.on_ack(at_ns + RTT, &ack(1, at_ns));
    assert_eq!(sender.totals().undos, 0);
    assert_eq!(sender.ca_state(), CaState::Loss);
    let again = sends(&mut sender, at_ns + RTT);
    assert!(!again.is_empty());
}

/// Acknowledges packets that were sent from `at_ns` on until the episode ends; returns the retransmissions in
/// order.
fn answer_the_rest(sender: &mut Sender, at_ns: u64) -> Vec<u32> {
    let mut answers = Answers::default();
    let mut out = vec![Data {
        departs_ns: at_ns,
        ..Data::default()
    }];
    let (mut now_ns, mut again) = (at_ns, Vec::new());
    while sender.ca_state() >= CaState::Recovery {
        assert!(now_ns < at_ns + 40 * RTT, "the episode does not end");
        now_ns += RTT;
        for packet in std::mem::take(&mut out) {
            sender.on_ack(now_ns, &answers.to(&packet));
            out.extend(sends(sender, now_ns));
        }
        again.extend(
            numbers(&out)
                .into_iter()
                .zip(&out)
                .filter_map(|(number, packet)| packet.is_retransmission.then_some(number)),
        );
    }
    again
}

#[test]
fn a_loss_episode_ends_when_its_flight_is_acknowledged() {
    let (mut sender, at_ns) = late();
    let again = answer_the_rest(&mut sender, at_ns);
    assert_eq!(again, (1..11).collect::<Vec<_>>());
    assert_eq!((sender.totals().undos, sender.totals().timeouts), (0, 1));
}

#[test]
fn the_first_ack_after_a_timeout_releases_new_data_whose_sacks_prove_the_loss() {
    // RFC 5682 section 3.1 with SACK, steps 2.b and 3.a: ten packets and the loss probe were in flight.
    let (mut sender, at_ns) = late();
    sender.on_ack(at_ns + RTT, &ack(1, at_ns));
    assert_eq!(numbers(&sends(&mut sender, at_ns + RTT)), [11, 12]);
    let now_ns = at_ns + 2 * RTT;
    sender.on_ack(now_ns, &sack(1, at_ns, &[(11, 12)]));
    let again = sends(&mut sender, now_ns);
    assert_eq!((again[0].number, again[0].is_retransmission), (1, true));
    assert_eq!(sender.totals().undos, 0);
}

#[test]
fn a_sender_without_new_data_goes_on_with_retransmissions() {
    // The same step without unsent data.
    let amount_bytes = Some(11 * u64::from(MSS));
    let mut sender = sender(
        "reno",
        SenderConfig {
            amount_bytes,
            ..config()
        },
    );
    sends(&mut sender, START);
    let at_ns = silence(&mut sender, 1)[0];
    sender.on_ack(at_ns + RTT, &ack(1, at_ns));
    assert_eq!(numbers(&sends(&mut sender, at_ns + RTT)), [1, 2]);
}

/// A sender with an RTT sample and one packet in flight.
fn one_out() -> Sender {
    let written_by_application = true;
    let mut sender = sender(
        "reno",
        SenderConfig {
            written_by_application,
            ..config()
        },
    );
    sender.write(1);
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &ack(1, START));
    sender.write(1);
    sends(&mut sender, START + RTT);
    sender
}

/// Lets timers expire until a timeout; returns their number and when the last one expired.
fn until_timeout(sender: &mut Sender) -> (u32, u64) {
    for expired in 1.. {
        let at_ns = sender.timer_ns().expect("it runs");
        expires(sender);
        if sender.totals().timeouts == 1 {
            return (expired, at_ns);
        }
    }
    unreachable!()
}

#[test]
fn a_timeout_spares_packets_sent_within_the_last_rtt() {
    // tcp_timeout_mark_lost(): the application writes one packet, and another some ms before the timeout,
    // which then waits for a loss probe.
    let (needed, _) = until_timeout(&mut one_out());
    let lost: Vec<u64> = (1..60)
        .map(|early_ms| {
            let mut sender = one_out();
            for _ in 1..needed {
                expires(&mut sender);
            }
            let sent_ns = sender.timer_ns().expect("it runs") - early_ms * MS;
            sender.write(1);
            assert_eq!(sends(&mut sender, sent_ns).len(), 1);
            let (_, expired_ns) = until_timeout(&mut sender);
            let is_recent = expired_ns < sent_ns + RTT;
            assert_eq!(sender.totals().packets_lost, 2 - u64::from(is_recent));
            sender.totals().packets_lost
        })
        .collect();
    assert!(lost.contains(&1) && lost.contains(&2));
}

#[test]
fn a_lost_retransmission_after_a_timeout_begins_a_recovery() {
    // tcp_fastretrans_alert(), TCP_CA_Loss with FLAG_LOST_RETRANS: the window is reduced again.
    let (mut sender, at_ns) = late();
    sender.on_ack(at_ns + RTT, &ack(1, at_ns));
    sends(&mut sender, at_ns + RTT);
    let mut now_ns = at_ns + 2 * RTT;
    sender.on_ack(now_ns, &sack(1, at_ns, &[(11, 13)]));
    assert_eq!(numbers(&sends(&mut sender, now_ns))[..2], [1, 2]);
    assert_eq!(sender.ca_state(), CaState::Loss);
    // Packet 2 is acknowledged, packet 1 before it is not.
    now_ns += RTT;
    sender.on_ack(now_ns, &sack(1, at_ns, &[(2, 3), (11, 13)]));
    assert_eq!(sender.ca_state(), CaState::Recovery);
    assert_eq!(numbers(&sends(&mut sender, now_ns))[0], 1);
}

#[test]
fn packets_sacked_before_a_timeout_are_not_retransmitted() {
    let mut sender = reno();
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &sack(0, START, &[(4, 6)]));
    sends(&mut sender, START + RTT);
    let mut now_ns = silence(&mut sender, 1)[0];
    let mut again = Vec::new();
    for next in [1, 2, 3, 6, 7, 8, 9] {
        now_ns += RTT;
        sender.on_ack(now_ns, &ack(next, now_ns - RTT));
        again.extend(
            sends(&mut sender, now_ns)
                .into_iter()
                .filter(|p| p.is_retransmission),
        );
    }
    assert!(numbers(&again)
        .iter()
        .all(|number| !(4..6).contains(number)));
}

#[test]
fn the_rtt_of_a_retransmission_is_in_whole_milliseconds() {
    // tcp_rtt_tsopt_us(): by the timestamp echo in milliseconds, at least 1 ms.
    for (after_us, seen_ms) in [(300, 1), (1_300, 1), (1_900, 2), (7_600, 8), (7_300, 7)] {
        let mut sender = one_out();
        let (_, at_ns) = until_timeout(&mut sender);
        let sent_ns = at_ns + MS * 6 / 10; // within a tick of the clock
        let echo = ack(2, sent_ns);
        sender.on_ack(sent_ns + after_us * 1000, &echo);
        assert_eq!(sender.min_rtt_us(), Some(seen_ms * 1000), "{after_us} us");
    }
}
