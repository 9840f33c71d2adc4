//! Handshakes and ends: Linux's timers (sysctls tcp_syn_linear_timeouts, tcp_syn_retries,
//! tcp_synack_retries), RFC 6298, RFC 3168's fallback, and the window after repetitions.

use super::peer::{ack, config, expires, numbers, sends, MS, MSS, RTT, START};
use super::ticks::fires_ns;
use fullpipe_cc::{algorithm, set, Controller};
use fullpipe_plan::AckPolicy;
use fullpipe_tcp::{
    Client, Data, EcnFeedback, Established, HandshakePacket, Receiver, ReceiverConfig, Rules,
    Sender, SenderConfig, Server,
};

const S: u64 = 1000 * MS;

/// Seconds until each retransmission, until it gives up.
fn waits(first: u64, mut expire: impl FnMut(u64) -> Option<u64>) -> Vec<u64> {
    let (mut seconds, mut before_ns, mut due_ns) = (Vec::new(), 0, Some(first));
    while let Some(at_ns) = due_ns {
        let waited = (1..=120).find(|s| fires_ns(before_ns, s * S) == at_ns);
        seconds.push(waited.expect("whole seconds in ticks"));
        before_ns = at_ns;
        due_ns = expire(at_ns);
    }
    seconds
}

#[test]
fn a_syn_is_repeated_each_second_five_times_and_then_backs_off() {
    // Documentation/networking/ip-sysctl, tcp_syn_linear_timeouts = 4: 1, 1, 1, 1, 1, 2, 4, ...,
    // and 131 s in all.
    let mut client = Client::new(false);
    client.connect(0);
    let first = client.timer_ns().expect("it runs");
    let seconds = waits(first, |at_ns| {
        let syn = client.on_timer(at_ns);
        assert_eq!(syn.is_some(), client.timer_ns().is_some());
        client.timer_ns()
    });
    assert_eq!(seconds, [1, 1, 1, 1, 1, 2, 4, 8, 16, 32, 64]);
    assert!(client.has_failed());
}

#[test]
fn a_syn_ack_is_repeated_with_doubled_waits_five_times() {
    let mut server = Server::default();
    let syn = Client::new(false).connect(0);
    server.on_syn(0, &syn, 1 << 20);
    let first = server.timer_ns().expect("it runs");
    let seconds = waits(first, |at_ns| {
        server.on_timer(at_ns);
        server.timer_ns()
    });
    assert_eq!(seconds, [1, 2, 4, 8, 16, 32]);
}

/// The established client if the first `lost` SYNs to a server 20 ms away are lost.
fn established_after(lost: u32) -> Established {
    let mut client = Client::new(true);
    let mut server = Server::default();
    let mut syn = client.connect(START);
    let mut at_ns = START;
    for _ in 0..lost {
        at_ns = client.timer_ns().expect("it runs");
        syn = client.on_timer(at_ns).expect("not the last");
    }
    let syn_ack = server
        .on_syn(at_ns + RTT / 2, &syn, 1 << 20)
        .expect("an answer");
    client.on_syn_ack(at_ns + RTT, &syn_ack).expect("it opens")
}

#[test]
fn the_rtt_is_measured_from_the_syn_that_arrived() {
    for lost in 0..3 {
        assert_eq!(established_after(lost).rtt_ns, RTT);
    }
}

#[test]
fn the_rtt_of_a_packet_that_was_sent_twice_is_that_of_the_timestamps_in_milliseconds() {
    // tcp_synack_rtt_meas() has none of a SYN-ACK that was sent again, so tcp_rtt_tsopt_us() gives it.
    for (answered_ns, rtt_ns) in [
        (1_004_300_000, 4_000_000),
        (1_000_999_999, 1_000_000),
        (1_000_300_000, 1_000_000),
    ] {
        let mut server = Server::default();
        let ack = HandshakePacket::Ack {
            sent_ns: answered_ns,
            echo_ns: 1_000_200_000,
            window_bytes: 1,
        };
        server.on_syn(200_000, &syn_at(0), 1);
        let at_ns = server.timer_ns().expect("a timer");
        server.on_timer(at_ns);
        let opened = server.on_ack(answered_ns, &ack).expect("established");
        assert_eq!(opened.rtt_ns, rtt_ns, "{answered_ns}");
    }
}

#[test]
fn one_unanswered_syn_disables_ecn_and_two_reduce_the_initial_window() {
    // RFC 3168 section 6.1.1.1; tcp_init_transfer(): more than one retransmission.
    let told = [0, 1, 2].map(|lost| {
        let opened = established_after(lost);
        (opened.ecn, opened.has_window_of_one, opened.retransmissions)
    });
    assert_eq!(
        told,
        [(true, false, 0), (false, false, 1), (false, true, 2)]
    );
}

#[test]
fn a_timestamp_echo_of_the_first_syn_keeps_the_initial_window() {
    // tcp_try_undo_spurious_syn(): the RTT is 2.5 s, and two retransmissions are spurious.
    let mut client = Client::new(false);
    let syn = client.connect(START);
    for _ in 0..2 {
        let at_ns = client.timer_ns().expect("it runs");
        client.on_timer(at_ns);
    }
    let mut server = Server::default();
    let syn_ack = server.on_syn(START + S, &syn, 1 << 20).expect("an answer");
    let opened = client
        .on_syn_ack(START + 2500 * MS, &syn_ack)
        .expect("it opens");
    assert_eq!(
        (opened.retransmissions, opened.has_window_of_one),
        (2, false)
    );
    assert_eq!(opened.rtt_ns, 2500 * MS);
}

#[test]
fn a_repeated_syn_is_answered_with_the_first_syns_timestamp() {
    // tcp_check_req(): the SYN-ACK to a repeated SYN echoes the first SYN's timestamp, and the timer
    // restarts. The client's first RTT sample is therefore the whole second.
    let mut client = Client::new(true);
    let mut server = Server::default();
    let syn = client.connect(START);
    server.on_syn(START + RTT / 2, &syn, 1 << 20);
    let at_ns = client.timer_ns().expect("it runs");
    let again = client.on_timer(at_ns).expect("the second SYN");
    let now_ns = at_ns + RTT / 2;
    let answer = server.on_syn(now_ns, &again, 1 << 20).expect("an answer");
    assert_eq!(server.timer_ns(), Some(fires_ns(now_ns, S)));
    let opened = client.on_syn_ack(at_ns + RTT, &answer).expect("it opens");
    assert_eq!(opened.rtt_ns, at_ns + RTT - START);
    // ECN was requested by the first SYN.
    assert!(opened.ecn && !opened.has_window_of_one);
}

#[test]
fn an_established_client_answers_a_syn_ack_and_an_established_server_no_syn() {
    let mut client = Client::new(false);
    let mut server = Server::default();
    let syn = client.connect(START);
    let syn_ack = server
        .on_syn(START + RTT / 2, &syn, 1 << 20)
        .expect("an answer");
    assert!(client.on_syn_ack(START + RTT, &syn_ack).is_some());
    assert!(client.on_syn_ack(START + RTT, &syn_ack).is_none());
    assert_eq!(client.timer_ns(), None);
    let last = Client::answer(START + RTT, &syn_ack, 1 << 20);
    let opened = server.on_ack(START + 3 * RTT / 2, &last).expect("it opens");
    assert_eq!((opened.rtt_ns, opened.window_bytes), (RTT, 1 << 20));
    assert!(server.on_ack(START + 2 * RTT, &last).is_none());
    assert!(server.on_syn(START + 2 * RTT, &syn, 1 << 20).is_none());
    assert_eq!(server.timer_ns(), None);
}

#[test]
fn the_window_of_a_syn_ack_is_never_scaled() {
    // RFC 7323 section 2.2.
    let syn = Client::new(false).connect(0);
    let answer = Server::default().on_syn(0, &syn, 1 << 20);
    assert!(matches!(
        answer,
        Some(HandshakePacket::SynAck {
            window_bytes: 65_535,
            ..
        })
    ));
}

#[test]
fn data_stop_retransmissions_of_the_syn_ack() {
    let mut server = Server::default();
    let syn = Client::new(false).connect(0);
    server.on_syn(0, &syn, 1 << 20);
    server.on_data();
    assert_eq!(server.timer_ns(), None);
}

fn sender_of(packets: u64, opened: &Established) -> Sender {
    let set = set("reno").expect("a registered set");
    let known = algorithm(set.algorithm).expect("its algorithm");
    let cc = Controller::new(known, &set.values).expect("values in range");
    let config = SenderConfig {
        amount_bytes: Some(packets * u64::from(MSS) - 448),
        ..config()
    };
    let mut sender = Sender::new(config, cc);
    sender.establish(START, opened);
    sender
}

fn at_once() -> Established {
    Established {
        rtt_ns: RTT,
        window_bytes: 1 << 30,
        ..Established::default()
    }
}

#[test]
fn a_flow_within_the_initial_window_sends_its_fin_alone() {
    // The application closes after everything was sent (tcp_send_fin()).
    let mut sender = sender_of(9, &at_once());
    let out = sends(&mut sender, START);
    let told: Vec<_> = out
        .iter()
        .map(|data| (data.payload_bytes, data.fin))
        .collect();
    assert_eq!(told[7..], [(MSS, false), (1000, false), (0, true)]);
    assert_eq!(sender.totals().packets_sent, 9);
    sender.on_ack(START + RTT, &ack(9, START));
    assert!(sender.is_finished() && !sender.is_closed());
    assert_eq!(sender.acked_bytes(), 9 * u64::from(MSS) - 448);
    assert_eq!(sender.sequence_bytes(10), sender.acked_bytes() + 1);
}

#[test]
fn a_fin_waits_for_room_in_the_congestion_window() {
    // tcp_cwnd_test() since Linux 6.10.
    let mut sender = sender_of(10, &at_once());
    let out = sends(&mut sender, START);
    assert!(out.len() == 10 && out.iter().all(|data| !data.fin));
    sender.on_ack(START + RTT, &ack(2, START));
    let out = sends(&mut sender, START + RTT);
    assert_eq!((numbers(&out), out[0].fin), (vec![10], true));
}

#[test]
fn written_data_are_sent_after_the_application_stops() {
    // shutdown(): the FIN is on the last packet. TCP_NOTSENT_LOWAT is checked when a buffer of 45 packets is
    // started.
    let unsent = |notsent_lowat_bytes: Option<u64>| {
        let settings = SenderConfig {
            gso_max_segments: 45,
            initial_cwnd: 200,
            notsent_lowat_bytes,
            ..config()
        };
        let reno = Controller::new(algorithm("reno").unwrap(), &set("reno").unwrap().values);
        let mut sender = Sender::new(settings, reno.unwrap());
        sender.establish(START, &at_once());
        let mut sent = sends(&mut sender, START).len() as u32;
        sender.stop();
        let (mut now_ns, mut has_fin) = (START, false);
        while !has_fin {
            now_ns += RTT;
            sender.on_ack(now_ns, &ack(sent, now_ns - RTT));
            let out = sends(&mut sender, now_ns);
            has_fin = out.last().expect("more to send").fin;
            sent += out.len() as u32;
        }
        sent - 200
    };
    assert!(unsent(None) > 200, "room for two windows");
    let most = 131_072_u32.div_ceil(MSS);
    let kept = unsent(Some(131_072));
    assert!((most..most + 45).contains(&kept), "{kept} of {most}");
}

#[test]
fn the_fin_of_a_last_write_is_alone_if_the_window_takes_all_of_it() {
    // If the window takes all, everything is sent before the application closes.
    for (packets, fin_alone) in [(3, true), (14, false)] {
        let mut sender = Sender::new(
            SenderConfig {
                written_by_application: true,
                ..config()
            },
            Controller::new(algorithm("reno").unwrap(), &set("reno").unwrap().values).unwrap(),
        );
        sender.establish(START, &at_once());
        sender.write_bytes(100);
        assert_eq!(sends(&mut sender, START)[0].payload_bytes, 100);
        sender.on_ack(START + RTT, &ack(1, START));
        assert!(sender.is_drained());
        sender.write_last((packets - 1) * u64::from(MSS) + 7);
        let mut out = sends(&mut sender, START + RTT);
        let sent = 1 + out.len() as u32 - u32::from(fin_alone);
        sender.on_ack(START + 2 * RTT, &ack(sent, START + RTT));
        out.append(&mut sends(&mut sender, START + 2 * RTT));
        let last: Vec<_> = out
            .iter()
            .rev()
            .take(2)
            .map(|data| (data.payload_bytes, data.fin))
            .collect();
        match fin_alone {
            true => assert_eq!(last, [(0, true), (7, false)]),
            false => assert_eq!(last, [(7, true), (MSS, false)]),
        }
    }
}

#[test]
fn a_longer_flow_sends_its_fin_with_its_last_data() {
    let mut sender = sender_of(11, &at_once());
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &ack(2, START));
    let out = sends(&mut sender, START + RTT);
    assert_eq!(numbers(&out), [10]);
    assert_eq!((out[0].payload_bytes, out[0].fin), (1000, true));
    assert_eq!(sender.sequence_bytes(11), 11 * u64::from(MSS) - 448 + 1);
}

#[test]
fn a_lost_fin_is_repeated() {
    let mut sender = sender_of(4, &at_once());
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &ack(4, START));
    sends(&mut sender, START + RTT);
    let (_, again) = expires(&mut sender);
    assert_eq!((numbers(&again), again[0].fin), (vec![4], true));
}

#[test]
fn a_handshake_with_retransmissions_leaves_a_window_of_one_packet() {
    let opened = Established {
        retransmissions: 2,
        has_window_of_one: true,
        ..at_once()
    };
    let mut sender = sender_of(100, &opened);
    assert_eq!(sender.cwnd(), 1);
    assert_eq!(sends(&mut sender, START).len(), 1);
    // tcpi_total_retrans counts SYNs.
    assert_eq!(sender.totals().packets_retransmitted, 2);
}

#[test]
fn only_retransmissions_by_a_timer_count_as_timeouts() {
    // tcpi_total_rto counts a client's SYNs (tcp_retransmit_timer()), and a server's SYN-ACKs that do not
    // answer a repeated SYN (req->num_timeout, tcp_create_openreq_child()).
    assert_eq!(established_after(2).timeouts, 2);
    let mut server = Server::default();
    let mut syn_ack = server.on_syn(START, &syn_at(START), 1 << 20);
    let due_ns = server.timer_ns().expect("it runs");
    syn_ack = server.on_timer(due_ns).or(syn_ack);
    syn_ack = server
        .on_syn(due_ns + MS, &syn_at(due_ns), 1 << 20)
        .or(syn_ack);
    let ack = Client::answer(due_ns + RTT, &syn_ack.expect("an answer"), 1 << 20);
    let opened = server.on_ack(due_ns + 2 * RTT, &ack).expect("it opens");
    assert_eq!((opened.retransmissions, opened.timeouts), (2, 1));
    assert_eq!(sender_of(4, &opened).totals().timeouts, 1);
}

fn syn_at(sent_ns: u64) -> HandshakePacket {
    HandshakePacket::Syn {
        sent_ns,
        ecn: false,
    }
}

fn receiver() -> Receiver {
    Receiver::new(ReceiverConfig {
        mss_bytes: MSS,
        ack_policy: AckPolicy::Linux,
        rules: Rules::default(),
        window_bytes: None,
        rmem_max_bytes: 1 << 26,
        rcvlowat_bytes: 1,
        work_ns: 0,
        reader_stalls: None,
        aggregation_ns: 0,
        feedback: EcnFeedback::Latched,
    })
}

fn packet(number: u32, fin: bool) -> Data {
    Data {
        number,
        payload_bytes: if fin { 0 } else { MSS },
        departs_ns: START,
        fin,
        ..Data::default()
    }
}

#[test]
fn the_receiver_sends_a_fin_when_all_data_arrived_and_repeats_it_until_acknowledged() {
    let mut receiver = receiver();
    // The FIN arrives before the last packet: the receiver does not close yet.
    let early = receiver.on_data(START, &packet(1, true)).expect("a hole");
    assert!(!early.fin);
    let last = receiver
        .on_data(START + MS, &packet(0, false))
        .expect("all");
    assert!(last.fin && last.next == 2);
    let due_ns = receiver.timer_ns().expect("its own FIN");
    assert_eq!(due_ns, fires_ns(START + MS, S));
    assert!(receiver.on_timer(due_ns).expect("again").fin);
    assert_eq!(receiver.timer_ns(), Some(fires_ns(due_ns, 2 * S)));
    receiver.on_last_ack();
    assert_eq!(receiver.timer_ns(), None);
    assert_eq!(receiver.delivered_bytes(), u64::from(MSS));
}
