//! ECN: RFC 3168, tcp_enter_cwr() and tcp_ecn_rcv_ecn_echo(); accurate ECN's counts (RFC 9768).

use fullpipe_tcp::{Data, EcnFeedback};

use super::reader::{data, Reader, Terms};
use super::script::{ack, sack, Cwr, Open, Recovery, Script, Setup, MS};

fn flow(feedback: EcnFeedback) -> Script {
    Script::started(Setup {
        ecn: Some(feedback),
        ..Setup::default()
    })
}

#[test]
fn cwr_is_set_on_the_first_new_packet_after_the_reduction_only() {
    // RFC 3168 section 6.1.2.
    let mut script = flow(EcnFeedback::Latched);
    script.at(40 * MS).takes(ack(1).marks(1));
    let packets = script.packets();
    assert_eq!(
        (packets[0].number, packets[0].cwr, packets[0].ect),
        (10, true, true)
    );
    script.takes(ack(3).marks(1));
    assert!(script.packets().iter().all(|packet| !packet.cwr));
    assert_eq!((script.state(), script.ssthresh()), (Cwr, Some(5)));
    assert_eq!(script.events(), ["cwr"]);
}

#[test]
fn a_retransmission_carries_neither_cwr_nor_ect() {
    // RFC 3168 section 6.1.5.
    let mut script = Script::started(Setup {
        cwnd: 20,
        ecn: Some(EcnFeedback::Latched),
        ..Setup::default()
    });
    script.at(40 * MS).takes(sack(0, [(1, 4)]));
    let packets = script.packets();
    assert_eq!(
        packets
            .iter()
            .map(|packet| (packet.number, packet.cwr, packet.ect))
            .collect::<Vec<_>>(),
        [(0, false, false), (20, true, true)]
    );
    assert_eq!(script.state(), Recovery);
}

#[test]
fn accurate_ecn_sets_no_cwr() {
    let mut script = flow(EcnFeedback::Accurate);
    script.at(40 * MS).takes(ack(1).marks(1));
    assert_eq!(script.state(), Cwr);
    assert!(script.packets().iter().all(|packet| !packet.cwr));
}

#[test]
fn marked_packets_are_those_that_an_ack_with_ece_delivers() {
    let mut script = flow(EcnFeedback::Latched);
    script.at(40 * MS).takes(ack(2).marks(1));
    assert_eq!(script.delivered(), (3, 2));
    script.takes(ack(5));
    assert_eq!(script.delivered(), (6, 2));
    script.takes(sack(5, [(6, 8)]).marks(1));
    assert_eq!(script.delivered(), (8, 4));
}

#[test]
fn accurate_counts_are_differences_modulo_256() {
    let mut script = flow(EcnFeedback::Accurate);
    script.at(40 * MS).takes(ack(2).marks(2));
    assert_eq!(script.delivered().1, 2);
    script.takes(ack(4).marks(2));
    assert_eq!(script.delivered().1, 2);
    script.takes(ack(5).marks(250));
    script.takes(ack(6).marks(1));
    assert_eq!(script.delivered().1, 250 + 7);
    // An ACK that was overtaken says nothing: 1 is the newest count.
    script.takes(sack(6, [(7, 8)]).marks(0).sent(15 * MS));
    assert_eq!(script.delivered().1, 257);
    script.takes(ack(8).marks(3));
    assert_eq!(script.delivered().1, 259);
}

#[test]
fn a_mark_ends_an_undo() {
    // tcp_fastretrans_alert(): FLAG_ECE sets prior_ssthresh to 0.
    let mut script = Script::started(Setup {
        cwnd: 20,
        ecn: Some(EcnFeedback::Latched),
        ..Setup::default()
    });
    script.at(40 * MS).gets(sack(0, [(1, 4)]));
    script.at(41 * MS).gets(sack(0, [(1, 5)]).marks(1));
    script.at(42 * MS).gets(ack(20).echo(0));
    assert_eq!(script.ssthresh(), Some(10));
    assert_eq!(script.state(), Open);
}

/// A packet that is ECN-capable, and one that is marked.
fn capable(number: u32) -> Data {
    Data {
        ect: true,
        ..data(number)
    }
}

fn marked(number: u32) -> Data {
    Data {
        ce: true,
        ..capable(number)
    }
}

/// A receiver that has 20 ECN-capable packets: its quick ACKs are over, and nothing is unacknowledged.
fn settled(feedback: EcnFeedback) -> Reader {
    let mut reader = Reader::new(Terms {
        feedback,
        ..Terms::default()
    });
    for number in 0..20 {
        reader.at(u64::from(number) * MS).gets(capable(number));
    }
    reader.at(20 * MS);
    reader
}

#[test]
fn a_receiver_echoes_a_mark_until_cwr_comes() {
    let cwr = |number| Data {
        cwr: true,
        ..capable(number)
    };
    let mut reader = Reader::new(Terms::default());
    let mut echo = |packet| {
        reader.gets(packet);
        reader.last().marks
    };
    assert_eq!(
        [echo(capable(0)), echo(marked(1)), echo(capable(2))],
        [0, 1, 1]
    );
    assert_eq!([echo(cwr(3)), echo(capable(4))], [0, 0]);
    let both = Data {
        cwr: true,
        ..marked(5)
    };
    assert_eq!([echo(both), echo(capable(6))], [1, 1]);
}

#[test]
fn an_accurate_receiver_counts_every_mark_and_reports_every_second_at_once() {
    // RFC 9768 section 3.2.2.5.1.
    let mut reader = settled(EcnFeedback::Accurate);
    // The first mark at once; the second one waits, and goes with the packet after it.
    assert_eq!(reader.gets(marked(20)), "21");
    assert_eq!(reader.last().marks, 1);
    assert_eq!(reader.gets(marked(21)), "");
    assert_eq!(reader.gets(capable(22)), "23");
    assert_eq!(reader.last().marks, 2);
    assert_eq!(reader.gets(capable(23)), "");
    assert_eq!(reader.gets(marked(24)), "25");
    assert_eq!(reader.last().marks, 3);
}

#[test]
fn a_dctcp_receiver_separates_marked_from_unmarked_packets() {
    // RFC 8257 section 3.2, figure 1: the ACK of what came before has the old ECE.
    let mut reader = settled(EcnFeedback::EachPacket);
    assert_eq!(reader.gets(capable(20)), "");
    assert_eq!(reader.gets(marked(21)), "21, 22");
    assert_eq!(reader.last().marks, 1);
    assert_eq!(reader.gets(marked(22)), "");
    assert_eq!(reader.gets(marked(23)), "24");
    // Nothing waits: the change is reported with the packet itself.
    assert_eq!(reader.gets(capable(24)), "25");
    assert_eq!(reader.last().marks, 0);
}

#[test]
fn the_first_mark_is_acknowledged_at_once_and_so_is_the_packet_after_it() {
    // tcp_data_ecn_check(): tcp_enter_quickack_mode() for two ACKs unless a mark is echoed already.
    let mut reader = settled(EcnFeedback::Latched);
    assert_eq!(reader.gets(marked(20)), "21");
    assert_eq!(reader.gets(capable(21)), "22");
    assert_eq!(reader.gets(capable(22)), "");
    assert_eq!(reader.gets(marked(23)), "24");
    assert_eq!(reader.gets(marked(24)), "", "ECE is set already");
}

#[test]
fn the_packet_that_carries_cwr_is_acknowledged_at_once() {
    // tcp_ecn_accept_cwr(): ICSK_ACK_NOW, also if no mark was echoed.
    let cwr = |number| Data {
        cwr: true,
        ..capable(number)
    };
    let mut reader = settled(EcnFeedback::Latched);
    assert_eq!(reader.gets(cwr(20)), "21");
    assert_eq!(reader.gets(capable(21)), "");
    assert_eq!(reader.gets(cwr(22)), "23");
    assert_eq!(reader.gets(capable(23)), "", "that ACK only");
}

#[test]
fn a_packet_that_is_not_ecn_capable_is_taken_for_a_retransmission_and_gets_two_quick_acks() {
    // tcp_data_ecn_check(), "funny extension": once an ECN-capable packet came, whatever the feedback.
    for feedback in [
        EcnFeedback::Latched,
        EcnFeedback::EachPacket,
        EcnFeedback::Accurate,
    ] {
        let mut reader = settled(feedback);
        assert_eq!(reader.gets(data(20)), "21", "{feedback:?}");
        assert_eq!(reader.gets(capable(21)), "22");
        assert_eq!(reader.gets(capable(22)), "");
    }
    // Without ECN there is nothing to tell apart.
    let mut reader = Reader::settled(Terms::default(), 20);
    assert_eq!(reader.at(20 * MS).gets(data(20)), "");
}

#[test]
fn a_mark_beyond_a_hole_gets_quick_acks_too() {
    // tcp_data_queue_ofo() begins with tcp_data_ecn_check(). Five duplicate ACKs before would be compressed.
    let mut reader = settled(EcnFeedback::Latched);
    for number in 21..24 {
        assert_ne!(reader.gets(capable(number)), "");
    }
    assert_eq!(reader.gets(capable(24)), "", "compressed");
    assert_eq!(reader.gets(marked(25)), "20 [21-26]");
    assert_eq!(reader.gets(capable(26)), "20 [21-27]");
    assert_eq!(reader.gets(capable(27)), "");
}

#[test]
fn a_mark_on_an_ack_of_nothing_reduces_no_window() {
    // tcp_ack(), no_queue: tcp_fastretrans_alert() runs for a DSACK only.
    let mut script = Script::new(Setup {
        ecn: Some(EcnFeedback::Latched),
        is_written: true,
        ..Setup::default()
    });
    script.writes(4);
    script.at(40 * MS).gets(ack(4));
    script.at(41 * MS).gets(ack(4).marks(1));
    assert_eq!((script.state(), script.ssthresh()), (Open, None));
}

#[test]
fn accurate_ecn_is_used_if_it_was_agreed_on() {
    for (ecn, is_accurate) in [
        (None, false),
        (Some(EcnFeedback::Latched), false),
        (Some(EcnFeedback::Accurate), true),
    ] {
        let setup = Setup {
            ecn,
            ..Setup::default()
        };
        let script = Script::new(setup);
        assert_eq!(script.sender().has_accurate_ecn(), is_accurate);
    }
}

#[test]
fn new_data_after_a_timeout_carry_cwr() {
    // RFC 3168 section 6.1.2: the window was reduced; tcp_enter_loss() calls tcp_ecn_queue_cwr().
    for (feedback, cwr) in [(EcnFeedback::Latched, true), (EcnFeedback::Accurate, false)] {
        let mut script = flow(feedback);
        let (at_ns, _) = script.times_out();
        script.at(at_ns + 40 * MS).takes(ack(1).without_echo());
        let packets = script.packets();
        assert_eq!((packets[0].number, packets[0].cwr), (11, cwr));
    }
}

#[test]
fn an_undone_reduction_announces_no_cwr() {
    // tcp_undo_cwnd_reduction() withdraws TCP_ECN_QUEUE_CWR if it raises ssthresh. The host sends only then.
    let mut script = Script::started(Setup {
        cwnd: 20,
        ecn: Some(EcnFeedback::Latched),
        ..Setup::default()
    });
    script.at(40 * MS).takes(sack(0, [(1, 4)]));
    assert_eq!(script.state(), Recovery);
    script.at(41 * MS).takes(ack(20).echo(0));
    assert_eq!((script.state(), script.ssthresh()), (Open, None));
    assert!(script.packets().iter().all(|packet| !packet.cwr));
}
