//! Congestion echo end to end: RFC 3168 section 6.1.

use super::peer::{ack, config, events, sack, sender, sends, with_cwnd, MS, MSS, RTT, START};
use fullpipe_cc::CaState;
use fullpipe_plan::AckPolicy;
use fullpipe_tcp::{
    Ack, Data, EcnFeedback, Receiver, ReceiverConfig, Rules, Sender, SenderConfig, SenderEvent,
};

fn ecn_sender() -> Sender {
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
        marks: 1,
        ..ack(next, echo_ns)
    }
}

fn receiver() -> Receiver {
    Receiver::new(ReceiverConfig {
        mss_bytes: MSS,
        ack_policy: AckPolicy::EveryPacket,
        rules: Rules::default(),
        window_bytes: Some(1 << 20),
        rcvlowat_bytes: 8192,
        work_ns: 0,
        reader_stalls: None,
        rmem_max_bytes: 1 << 21,
        aggregation_ns: 0,
        feedback: EcnFeedback::Latched,
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
fn every_ack_echoes_a_mark_until_cwr_arrives() {
    let mut receiver = receiver();
    let mut ece = |packet: Data| receiver.on_data(START, &packet).expect("an ACK").marks > 0;
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
    assert!(receiver.on_data(START, &both).expect("an ACK").marks > 0);
}

#[test]
fn ece_halves_the_window_once_and_is_answered_with_cwr_on_new_data() {
    let mut sender = ecn_sender();
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
    let mut sender = ecn_sender();
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
fn packets_that_an_ack_with_ece_covers_count_as_marked() {
    let mut sender = ecn_sender();
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &ack(4, START));
    sender.on_ack(START + RTT, &echo(9, START));
    assert_eq!(sender.delivered().1, 5);
}

#[test]
fn retransmissions_are_not_ecn_capable() {
    // RFC 3168 section 6.1.5.
    let mut sender = ecn_sender();
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
fn without_negotiation_ece_is_ignored_and_no_packet_is_ecn_capable() {
    let mut sender = with_cwnd(20);
    assert!(sends(&mut sender, START).iter().all(|packet| !packet.ect));
    sender.on_ack(START + RTT, &echo(5, START));
    assert_eq!(sender.ssthresh(), None);
    assert_eq!(sender.delivered().1, 0);
}

/// (next, marks) of each ACK that a receiver sends for `packets`, of which those in `marked` are marked.
fn answers(
    receiver: &mut Receiver,
    packets: std::ops::Range<u32>,
    marked: &[u32],
) -> Vec<(u32, bool)> {
    let mut said = Vec::new();
    for number in packets {
        let packet = Data {
            ce: marked.contains(&number),
            ..data(number)
        };
        let answer = receiver.on_data(START + u64::from(number) * MS / 10, &packet);
        let acks = receiver.take_preceding_ack().into_iter().chain(answer);
        said.extend(acks.map(|ack| (ack.next, ack.marks > 0)));
    }
    said
}

fn delaying(feedback: EcnFeedback) -> Receiver {
    let mut receiver = Receiver::new(ReceiverConfig {
        mss_bytes: MSS,
        ack_policy: AckPolicy::EverySecond,
        rules: Rules::default(),
        window_bytes: Some(1 << 20),
        rcvlowat_bytes: 1 << 30,
        work_ns: 0,
        reader_stalls: None,
        rmem_max_bytes: 1 << 21,
        aggregation_ns: 0,
        feedback,
    });
    // After the quick ACKs of the start.
    answers(&mut receiver, 0..40, &[]);
    receiver
}

#[test]
fn with_dctcp_every_ack_covers_only_marked_or_only_unmarked_packets() {
    // RFC 8257 section 3.2, figure 1: when CE changes, delayed packets are acknowledged with the old state
    // and the packet itself at once with the new one.
    let mut receiver = delaying(EcnFeedback::EachPacket);
    let said = answers(&mut receiver, 40..52, &[43, 44, 45, 48]);
    // How many packets each ACK covers, and whether they were marked.
    let mut from = 40;
    for (next, echoes) in &said {
        for number in from..*next {
            assert_eq!(
                *echoes,
                [43, 44, 45, 48].contains(&number),
                "{number} {said:?}"
            );
        }
        from = *next;
    }
    assert!(from >= 51, "{said:?}");
    assert!(said.len() < 12, "{said:?}");
}

#[test]
fn a_delayed_ack_is_sent_before_the_ack_of_a_packet_whose_mark_differs() {
    let mut receiver = delaying(EcnFeedback::EachPacket);
    // The ACK of packet 40 is delayed; the next packet is marked.
    assert_eq!(
        answers(&mut receiver, 40..42, &[41]),
        [(41, false), (42, true)]
    );
    // No ACK is delayed: only the packet itself is acknowledged.
    assert_eq!(answers(&mut receiver, 42..43, &[]), [(43, false)]);
}

#[test]
fn retransmissions_of_dctcp_are_ecn_capable() {
    // tcp_ecn_send(): a congestion control that needs ECN keeps ECT on retransmissions.
    let mut sender = sender(
        "dctcp",
        SenderConfig {
            ecn: true,
            initial_cwnd: 20,
            ..config()
        },
    );
    assert!(sends(&mut sender, START).iter().all(|packet| packet.ect));
    sender.on_ack(START + RTT, &sack(0, START, &[(1, 6)]));
    let out = sends(&mut sender, START + RTT);
    assert!(out
        .iter()
        .any(|packet| packet.is_retransmission && packet.ect));
}

#[test]
fn a_fin_without_data_is_not_ecn_capable_but_for_algorithms_that_need_ecn() {
    // RFC 3168 sections 6.1.1 and 6.1.4; tcp_ecn_send() sets ECT on packets with new data only.
    for (cc, keeps_ect) in [("reno", false), ("dctcp", true)] {
        let mut sender = sender(
            cc,
            SenderConfig {
                ecn: true,
                amount_bytes: Some(4 * u64::from(MSS)),
                ..config()
            },
        );
        let (fins, data): (Vec<_>, Vec<_>) = sends(&mut sender, START)
            .into_iter()
            .partition(|packet| packet.payload_bytes == 0);
        assert!(data.len() == 4 && data.iter().all(|packet| packet.ect));
        assert!(fins.len() == 1 && fins[0].ect == keeps_ect, "{cc}");
    }
}

#[test]
fn dctcp_reduces_by_half_of_the_marked_fraction() {
    // RFC 8257 section 3.3: cwnd (1 - alpha / 2), alpha being 1 - g of itself after each clean window.
    let mut sender = sender(
        "dctcp",
        SenderConfig {
            ecn: true,
            initial_cwnd: 100,
            ..config()
        },
    );
    let mut end = sends(&mut sender, START).len() as u32;
    let (mut at_ns, mut alpha) = (START, 1024u32);
    for _ in 0..3 {
        at_ns += RTT;
        sender.on_ack(at_ns, &ack(end, at_ns - RTT));
        alpha -= alpha >> 4;
        end = 1 + sends(&mut sender, at_ns)
            .iter()
            .map(|p| p.number)
            .max()
            .unwrap();
    }
    let cwnd = sender.cwnd();
    at_ns += RTT;
    // Everything that this ACK delivers was marked, a whole observed window.
    sender.on_ack(at_ns, &echo(end - 50, at_ns - RTT));
    alpha += 1024 / 16 - (alpha >> 4);
    assert_eq!(sender.ssthresh(), Some(cwnd - ((cwnd * alpha) >> 11)));
}

/// An ACK of accurate ECN.
fn count(next: u32, marks: u8, sent_ns: u64) -> Ack {
    Ack {
        marks,
        sent_ns,
        ..ack(next, START)
    }
}

fn accurate(cc: &str) -> Sender {
    let config = SenderConfig {
        ecn: true,
        feedback: EcnFeedback::Accurate,
        l4s: true,
        initial_cwnd: 40,
        ..config()
    };
    sender(cc, config)
}

#[test]
fn accurate_ecn_counts_marked_packets() {
    // RFC 9768 section 3.2.2: the counter wraps; its growth is the number of marked packets.
    let mut sender = accurate("reno");
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &count(10, 254, START + RTT / 2));
    let seen = sender.delivered().1;
    sender.on_ack(START + RTT + MS, &count(20, 3, START + RTT / 2 + MS));
    assert_eq!(sender.delivered().1 - seen, 5);
    // A reordered ACK is ignored.
    sender.on_ack(START + RTT + 2 * MS, &count(20, 1, START + RTT / 2));
    assert_eq!(sender.delivered().1 - seen, 5);
    // No CWR is sent: marks are not repeated.
    let after = sends(&mut sender, START + RTT + 3 * MS);
    assert!(after.iter().all(|packet| !packet.cwr));
}

#[test]
fn an_accurate_ecn_receiver_reports_a_first_mark_and_every_second_one_at_once() {
    // RFC 9768 section 3.2.2.5.1, change-triggered and increment-triggered ACKs.
    let mut receiver = delaying(EcnFeedback::Accurate);
    let mut told = Vec::new();
    for number in 40..52 {
        let packet = Data {
            ce: [42, 43, 44, 48].contains(&number),
            ..data(number)
        };
        let answer = receiver.on_data(START + u64::from(number) * MS / 10, &packet);
        assert_eq!(receiver.take_preceding_ack(), None);
        told.extend(answer.map(|ack| (ack.next, ack.marks)));
    }
    assert_eq!(told[..2], [(42, 0), (43, 1)], "{told:?}");
    assert!(
        told.contains(&(45, 3)) && told.contains(&(49, 4)),
        "{told:?}"
    );
    assert!(told.windows(2).all(|pair| pair[0].1 <= pair[1].1));
}

#[test]
fn only_scalable_algorithms_send_ect1() {
    // RFC 9331 section 4.1 and 4.3.
    for (cc, is_l4s) in [("prague", true), ("cubic", false), ("reno", false)] {
        let sent = sends(&mut accurate(cc), START);
        assert!(
            sent.iter().all(|packet| packet.ect && packet.l4s == is_l4s),
            "{cc}"
        );
    }
}
