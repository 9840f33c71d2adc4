//! Congestion echo end to end: RFC 3168 section 6.1.

use super::peer::{ack, config, events, sack, sender, sends, with_cwnd, MS, MSS, RTT, START};
use fullpipe_cc::CaState;
use fullpipe_scenario::AckPolicy;
use fullpipe_tcp::{Ack, Data, Receiver, ReceiverConfig, Sender, SenderConfig, SenderEvent};

fn capable() -> Sender {
    sender(
        "reno",
        SenderConfig {
            ecn: true,
            initial_cwnd: 20,
            ..config()
        },
    )
}

fn echo(next: u32, echo_ns: u64) -> Ack {
    Ack {
        ece: true,
        ..ack(next, echo_ns)
    }
}

fn receiver() -> Receiver {
    Receiver::new(ReceiverConfig {
        mss_bytes: MSS,
        ack_policy: AckPolicy::EveryPacket,
        window_bytes: Some(1 << 20),
        low_water_bytes: 8192,
        rmem_max_bytes: 1 << 21,
        aggregation_ns: 0,
    })
}

fn data(number: u32) -> Data {
    Data {
        number,
        payload_bytes: MSS,
        departs_ns: START,
        ect: true,
        ..Data::default()
    }
}

#[test]
fn every_ack_echoes_a_mark_until_the_sender_says_that_it_reduced() {
    let mut receiver = receiver();
    let mut ece = |packet: Data| receiver.on_data(START, &packet).expect("an ACK").ece;
    assert!(!ece(data(0)));
    assert!(ece(Data {
        ce: true,
        ..data(1)
    }));
    assert!(ece(data(2)) && ece(data(3)));
    assert!(!ece(Data {
        cwr: true,
        ..data(4)
    }));
    assert!(!ece(data(5)));
}

#[test]
fn a_mark_on_the_packet_that_carries_cwr_is_echoed() {
    let mut receiver = receiver();
    receiver.on_data(
        START,
        &Data {
            ce: true,
            ..data(0)
        },
    );
    let both = Data {
        ce: true,
        cwr: true,
        ..data(1)
    };
    assert!(receiver.on_data(START, &both).expect("an ACK").ece);
}

#[test]
fn an_echo_halves_the_window_once_and_is_answered_on_new_data() {
    let mut sender = capable();
    sends(&mut sender, START);
    let mut sent = Vec::new();
    for next in 1..=20 {
        let now_ns = START + RTT + u64::from(next) * MS;
        sender.on_ack(now_ns, &echo(next, START));
        sent.extend(sends(&mut sender, now_ns));
    }
    assert_eq!(sender.ssthresh(), Some(10));
    assert_eq!(events(&mut sender), [SenderEvent::Cwr]);
    assert_eq!(sender.totals().packets_lost, 0);
    let cwr: Vec<usize> = (0..sent.len()).filter(|&index| sent[index].cwr).collect();
    assert_eq!(cwr, [0]);
    // The episode ends with the first ACK of data sent in it; the window is then ssthresh.
    let next = sent.iter().map(|packet| packet.number).max().unwrap() + 1;
    sender.on_ack(START + 3 * RTT, &ack(next, START + 2 * RTT));
    assert_eq!(sender.ca_state(), CaState::Open);
    assert!((10..=11).contains(&sender.cwnd()), "{}", sender.cwnd());
}

#[test]
fn marks_in_the_next_window_reduce_again() {
    let mut sender = capable();
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &echo(20, START));
    let first = sender.ssthresh().unwrap();
    let next = sends(&mut sender, START + RTT)
        .iter()
        .map(|p| p.number)
        .max()
        .unwrap()
        + 1;
    sender.on_ack(START + 2 * RTT, &ack(next, START + RTT));
    let next = sends(&mut sender, START + 2 * RTT)
        .iter()
        .map(|p| p.number)
        .max()
        .unwrap()
        + 1;
    sender.on_ack(START + 3 * RTT, &echo(next, START + 2 * RTT));
    assert!(sender.ssthresh().unwrap() < first);
}

#[test]
fn delivered_packets_of_an_echo_count_as_marked() {
    let mut sender = capable();
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &ack(4, START));
    sender.on_ack(START + RTT, &echo(9, START));
    assert_eq!(sender.delivered().1, 5);
}

#[test]
fn retransmissions_are_not_ecn_capable() {
    // RFC 3168 section 6.1.5.
    let mut sender = capable();
    assert!(sends(&mut sender, START).iter().all(|packet| packet.ect));
    sender.on_ack(START + RTT, &sack(0, START, &[(1, 6)]));
    let out = sends(&mut sender, START + RTT);
    let again = out
        .iter()
        .find(|packet| packet.is_retransmission)
        .expect("packet 0");
    assert!(!again.ect && !again.cwr);
}

#[test]
fn without_negotiation_echoes_are_ignored_and_nothing_is_capable() {
    let mut sender = with_cwnd(20);
    assert!(sends(&mut sender, START).iter().all(|packet| !packet.ect));
    sender.on_ack(START + RTT, &echo(5, START));
    assert_eq!(sender.ssthresh(), None);
    assert_eq!(sender.delivered().1, 0);
}
