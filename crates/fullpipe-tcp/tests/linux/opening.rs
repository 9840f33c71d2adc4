//! Handshakes and ends: Linux's timers (sysctls tcp_syn_linear_timeouts, tcp_syn_retries,
//! tcp_synack_retries), RFC 6298, RFC 3168's fallback, and the window after repetitions.

use super::peer::{ack, config, expires, numbers, sends, MS, MSS, RTT, START};
use super::ticks::fires_ns;
use fullpipe_cc::{algorithm, set, Controller};
use fullpipe_plan::AckPolicy;
use fullpipe_tcp::{
    Client, Data, Feedback, Opened, Opening, Receiver, ReceiverConfig, Rules, Sender, SenderConfig,
    Server,
};

const S: u64 = 1000 * MS;

/// Each repetition's wait in seconds, until it gives up.
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
fn a_syn_is_repeated_each_second_five_times_and_then_ever_more_slowly() {
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

/// The client's side where its SYNs reach a server 20 ms away from number `arrives` on.
fn opened_after(lost: u32) -> Opened {
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
fn the_rtt_is_that_of_the_syn_which_arrived() {
    for lost in 0..3 {
        assert_eq!(opened_after(lost).rtt_ns, RTT);
    }
}

#[test]
fn a_syn_without_answer_costs_ecn_and_two_cost_the_initial_window() {
    // RFC 3168 section 6.1.1.1; tcp_init_transfer(): more than one repetition.
    let told = [0, 1, 2].map(|lost| {
        let opened = opened_after(lost);
        (opened.ecn, opened.begins_with_one, opened.retransmissions)
    });
    assert_eq!(
        told,
        [(true, false, 0), (false, false, 1), (false, true, 2)]
    );
}

#[test]
fn an_echo_of_the_first_syn_keeps_the_initial_window() {
    // tcp_try_undo_spurious_syn(): the path is only slow. RTT 2.5 s, two needless repetitions.
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
    assert_eq!((opened.retransmissions, opened.begins_with_one), (2, false));
    assert_eq!(opened.rtt_ns, 2500 * MS);
}

#[test]
fn a_lost_syn_ack_is_sent_again_to_the_repeated_syn_and_echoes_the_first() {
    // tcp_check_req(): a repeated SYN gets the same answer, whose timestamp is the first SYN's; the
    // timer starts anew. The client's first sample is therefore the whole second.
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
    // The request remembers that ECN was asked for.
    assert!(opened.ecn && !opened.begins_with_one);
}

#[test]
fn an_open_client_answers_another_syn_ack_and_an_open_server_no_syn() {
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
        Some(Opening::SynAck {
            window_bytes: 65_535,
            ..
        })
    ));
}

#[test]
fn data_stop_the_server_from_repeating_its_syn_ack() {
    let mut server = Server::default();
    let syn = Client::new(false).connect(0);
    server.on_syn(0, &syn, 1 << 20);
    server.on_data();
    assert_eq!(server.timer_ns(), None);
}

fn sender_of(packets: u64, opened: &Opened) -> Sender {
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

fn at_once() -> Opened {
    Opened {
        rtt_ns: RTT,
        window_bytes: 1 << 30,
        ..Opened::default()
    }
}

#[test]
fn a_flow_that_fits_the_first_window_closes_with_a_packet_of_its_own() {
    // The application closes behind its write, all of which has left (tcp_send_fin()).
    let mut sender = sender_of(9, &at_once());
    let out = sends(&mut sender, START);
    let told: Vec<_> = out
        .iter()
        .map(|data| (data.payload_bytes, data.fin))
        .collect();
    assert_eq!(told[7..], [(MSS, false), (1000, false), (0, true)]);
    assert_eq!(sender.totals().packets_sent, 9);
    sender.on_ack(START + RTT, &ack(9, START));
    assert!(sender.is_finished() && !sender.is_over());
    assert_eq!(sender.acked_bytes(), 9 * u64::from(MSS) - 448);
    assert_eq!(sender.sequence_bytes(10), sender.acked_bytes() + 1);
}

#[test]
fn a_fin_behind_a_full_window_waits_for_room_in_it() {
    // tcp_cwnd_test() since Linux 6.10.
    let mut sender = sender_of(10, &at_once());
    let out = sends(&mut sender, START);
    assert!(out.len() == 10 && out.iter().all(|data| !data.fin));
    sender.on_ack(START + RTT, &ack(2, START));
    let out = sends(&mut sender, START + RTT);
    assert_eq!((numbers(&out), out[0].fin), (vec![10], true));
}

#[test]
fn what_the_socket_has_taken_still_goes_when_its_application_stops() {
    // shutdown(): the FIN goes with the last of it. Whether too much waits unsent is asked where a buffer of
    // 45 packets begins.
    let unsent = |unsent_most_bytes: Option<u64>| {
        let settings = SenderConfig {
            gso_max_segments: 45,
            initial_cwnd: 200,
            unsent_most_bytes,
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
fn a_last_write_closes_with_its_data_or_behind_them() {
    // What the window takes has left when the application closes; of more, the last packet has the FIN.
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
fn a_longer_flow_closes_with_its_last_data() {
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
fn a_repeated_handshake_leaves_a_window_of_one_packet() {
    let opened = Opened {
        retransmissions: 2,
        begins_with_one: true,
        ..at_once()
    };
    let mut sender = sender_of(100, &opened);
    assert_eq!(sender.cwnd(), 1);
    assert_eq!(sends(&mut sender, START).len(), 1);
    // tcpi_total_retrans counts SYNs.
    assert_eq!(sender.totals().packets_retransmitted, 2);
}

#[test]
fn only_what_a_timer_repeated_is_a_timeout() {
    // tcpi_total_rto: a client's SYNs (tcp_retransmit_timer()); of a server's SYN-ACKs those that no
    // repeated SYN had asked for (req->num_timeout, tcp_create_openreq_child()).
    assert_eq!(opened_after(2).timeouts, 2);
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

fn syn_at(sent_ns: u64) -> Opening {
    Opening::Syn {
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
        low_water_bytes: 1,
        work_ns: 0,
        absences: None,
        aggregation_ns: 0,
        feedback: Feedback::Latched,
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
fn the_receiver_closes_once_all_has_arrived_and_repeats_its_fin_until_that_is_known() {
    let mut receiver = receiver();
    // The FIN overtakes the last packet: nothing is closed yet.
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
