//! Proportional rate reduction: RFC 9937 section 6.2, tcp_cwnd_reduction() of tcp_input.c.
//!
//! With more in flight than `ssthresh`: ceil(prr_delivered * ssthresh / prior_cwnd) - prr_out. Below it:
//! max(prr_delivered - prr_out, delivered), one more if the ACK advances and marks nothing lost, and at
//! most what `ssthresh` leaves room for.

use super::script::{ack, sack, Cwr, Open, Recovery, Script, Setup, MS};
use fullpipe_tcp::EcnFeedback;

/// A flight of `cwnd` packets that has been sent at time 0.
fn flight(cwnd: u32) -> Script {
    Script::started(Setup {
        cwnd,
        ..Setup::default()
    })
}

#[test]
fn one_loss_sends_a_packet_for_every_second_one_delivered() {
    // 20 packets, the first is lost. Two ACKs of limited transmit come before (RFC 3042).
    let mut script = flight(20);
    script.at(40 * MS);
    assert_eq!(script.gets(sack(0, [(1, 2)])), "20");
    assert_eq!(script.gets(sack(0, [(1, 3)])), "21");
    // ssthresh 10, prior_cwnd 20. Of 22 packets 3 are SACKed and 1 is lost: 18 are in flight.
    // Each line: packets SACKed so far, window, what is sent.
    for (end, cwnd, sent) in [
        (4, 19, "0r"), // ceil(1 / 2) = 1
        (5, 18, ""),   // ceil(2 / 2) - 1 = 0
        (6, 18, "22"), // ceil(3 / 2) - 1 = 1
        (7, 17, ""),   // ceil(4 / 2) - 2 = 0
        (8, 17, "23"), // ceil(5 / 2) - 2 = 1
    ] {
        assert_eq!(script.gets(sack(0, [(1, end)])), sent, "{end}");
        assert_eq!((script.state(), script.cwnd()), (Recovery, cwnd), "{end}");
    }
    assert_eq!(script.ssthresh(), Some(10));
}

#[test]
fn the_share_is_of_the_window_before_the_reduction() {
    // With a window of 9, ssthresh is 4: after n packets, ceil(4 n / 9) were sent.
    let mut script = flight(9);
    script.at(40 * MS);
    // One ACK of three packets: ceil(12 / 9) = 2. 9 - 3 - 1 = 5 are in flight.
    assert_eq!(script.gets(sack(0, [(1, 4)])), "0r 9");
    assert_eq!(script.cwnd(), 7);
    // ceil(16 / 9) - 2 = 0 and ceil(20 / 9) - 2 = 1.
    assert_eq!(script.gets(sack(0, [(1, 5)])), "");
    assert_eq!(script.cwnd(), 6);
    assert_eq!(script.gets(sack(0, [(1, 6)])), "10");
    assert_eq!(script.cwnd(), 6);
}

#[test]
fn below_ssthresh_an_ack_that_advances_sends_one_more_than_it_delivers() {
    // 30 of 40 packets are lost. 7 are in flight, and ssthresh is 20.
    let mut script = flight(40);
    script.at(40 * MS);
    assert_eq!(script.gets(sack(0, [(30, 33)])), "0r 1r 2r");
    assert_eq!(script.cwnd(), 10);
    // Seven SACKs more do not advance: prr_delivered - prr_out = 10 - 3 are sent.
    assert_eq!(script.gets(sack(0, [(30, 40)])), "3r 4r 5r 6r 7r 8r 9r");
    assert_eq!(script.cwnd(), 10);
    // The retransmission of packet 0 is acknowledged: two are sent.
    script.at(80 * MS);
    assert_eq!(script.gets(sack(1, [(30, 40)])), "10r 11r");
    assert_eq!(script.cwnd(), 11);
    // Two others: three are sent.
    assert_eq!(script.gets(sack(3, [(30, 40)])), "12r 13r 14r");
    assert_eq!(script.cwnd(), 12);
}

#[test]
fn below_ssthresh_an_ack_that_marks_losses_has_no_bonus() {
    let mut script = flight(40);
    script.at(40 * MS).gets(sack(0, [(30, 33)]));
    script.at(50 * MS);
    assert_eq!(script.gets(sack(0, [(30, 40)])), "3r 4r 5r 6r 7r 8r 9r");
    // The retransmissions of packets 0 and 3 arrive. Those of 1 and 2 were sent before that of 3, and are
    // lost: two packets are delivered, and two are sent. Six retransmissions are in flight.
    script.at(90 * MS);
    let reply = sack(1, [(3, 4), (30, 40)]).echo(40 * MS);
    assert_eq!(script.gets(reply), "1r 2r");
    assert_eq!((script.lost(), script.cwnd()), (32, 8));
}

#[test]
fn below_ssthresh_what_was_delivered_and_not_sent_is_caught_up() {
    // While the window exceeds ssthresh fewer packets are sent than delivered. Once more losses bring it
    // below, prr_delivered - prr_out is sent at once.
    let mut script = flight(20);
    script.at(40 * MS).gets(sack(0, [(1, 4)]));
    // 16 of 20 are in flight, ceil(3 / 2) = 2 sent: packet 0 and 20. Then 4 more: ceil(7 / 2) - 2 = 2.
    assert_eq!(script.cwnd(), 18);
    assert_eq!(script.gets(sack(0, [(1, 8)])), "21 22");
    // Packets 8 to 15 are lost, 16 to 19 arrive. In flight are 0, 20, 21, 22; ssthresh leaves room for 6.
    // prr_delivered - prr_out = 11 - 4 = 7 is more than that.
    assert_eq!(
        script.gets(sack(0, [(16, 20), (1, 8)])),
        "8r 9r 10r 11r 12r 13r"
    );
    assert_eq!(script.cwnd(), 10);
}

#[test]
fn the_first_retransmission_is_always_sent() {
    // 8 - 3 - 1 = 4 packets are in flight, as many as ssthresh allows.
    let mut script = flight(8);
    script.at(40 * MS);
    assert_eq!(script.gets(sack(0, [(1, 4)])), "0r");
    assert_eq!((script.cwnd(), script.ssthresh()), (5, Some(4)));
    // It is sent once only: the next ACK leaves 4 in flight, and sends none.
    assert_eq!(script.gets(sack(0, [(1, 5)])), "");
    assert_eq!(script.cwnd(), 4);
    assert_eq!(script.gets(sack(0, [(1, 6)])), "8");
}

#[test]
fn an_ack_that_delivers_nothing_changes_no_window() {
    let mut script = flight(20);
    script.at(40 * MS).gets(sack(0, [(1, 4)]));
    assert_eq!(script.cwnd(), 18);
    assert_eq!(script.gets(sack(0, [(1, 4)])), "");
    assert_eq!(script.cwnd(), 18);
}

#[test]
fn a_recovery_ends_with_a_window_of_ssthresh() {
    // tcp_end_cwnd_reduction() sets it to 10. The same ACK delivers 17 packets, of which ten make congestion
    // avoidance add one.
    let mut script = flight(20);
    script.at(40 * MS).gets(sack(0, [(1, 4)]));
    assert_eq!(script.cwnd(), 18);
    script.at(80 * MS).gets(ack(20).echo(40 * MS));
    assert_eq!((script.state(), script.ssthresh()), (Open, Some(10)));
    assert_eq!(script.cwnd(), 11);
    assert_eq!(script.events(), ["recovery", "recovery_end"]);
}

#[test]
fn an_ecn_reduction_follows_the_same_rule_and_ends_beyond_its_flight() {
    // tcp_enter_cwr(): a window of 10, ssthresh 5. After n packets ceil(n / 2) were sent.
    let mut script = Script::started(Setup {
        ecn: Some(EcnFeedback::Latched),
        ..Setup::default()
    });
    script.at(40 * MS);
    for (next, cwnd, sent) in [
        (1, 10, "10"),
        (2, 9, ""),
        (3, 9, "11"),
        (4, 8, ""),
        (5, 8, "12"),
    ] {
        assert_eq!(script.gets(ack(next).marks(1)), sent, "{next}");
        assert_eq!((script.state(), script.cwnd()), (Cwr, cwnd), "{next}");
    }
    // It ends when an ACK passes the flight that it began with, not at its last packet.
    script.at(60 * MS).gets(ack(10));
    assert_eq!(script.state(), Cwr);
    script.at(80 * MS).gets(ack(11));
    assert_eq!((script.state(), script.cwnd()), (Open, 5));
}

#[test]
fn a_buffer_is_sent_again_only_as_far_as_the_window_allows() {
    // tcp_xmit_retransmit_queue(): 1 of 8 packets is in flight, and ssthresh is 4. The second buffer of two
    // packets has room for one.
    let mut script = Script::started(Setup {
        cwnd: 8,
        burst_packets: 2,
        ..Setup::default()
    });
    script.at(40 * MS);
    assert_eq!(script.gets(sack(0, [(4, 7)])), "0r 1r 2r");
    // The first packet was among them: its timeout begins.
    assert_eq!(script.exact_timer(), 280 * MS);
}

#[test]
fn a_window_of_one_is_reduced_like_any_other() {
    // Nothing is in flight; Reno's least ssthresh is 2.
    let mut script = flight(4);
    script.sets_window(1, 1 << 30);
    script.at(40 * MS);
    assert_eq!(script.gets(sack(0, [(1, 4)])), "0r 4");
    assert_eq!((script.cwnd(), script.ssthresh()), (2, Some(2)));
}

#[test]
fn a_recovery_goes_on_with_an_ack_of_all_but_the_last_packet() {
    let mut script = flight(20);
    script.at(40 * MS).gets(sack(0, [(1, 4)]));
    script.at(80 * MS).gets(ack(19).echo(40 * MS));
    assert_eq!(script.state(), Recovery);
    script.gets(ack(20).echo(40 * MS));
    assert_eq!(script.state(), Open);
}

#[test]
fn a_loss_during_an_ecn_reduction_reduces_no_more_and_is_not_undone() {
    // tcp_enter_recovery(): only if not tcp_in_cwnd_reduction(); prior_ssthresh stays 0.
    let mut script = Script::started(Setup {
        cwnd: 20,
        ecn: Some(EcnFeedback::Latched),
        ..Setup::default()
    });
    script.at(40 * MS).gets(ack(1).marks(1));
    assert_eq!((script.state(), script.ssthresh()), (Cwr, Some(10)));
    script.gets(sack(1, [(2, 5)]));
    assert_eq!((script.state(), script.ssthresh()), (Recovery, Some(10)));
    // The original comes: the recovery was spurious, the reduction was not.
    let cwnd = script.cwnd();
    script.at(42 * MS).takes(ack(21).echo(0));
    assert_eq!((script.undos(), script.ssthresh()), (1, Some(10)));
    assert!(script.cwnd() <= cwnd + 1, "{}", script.cwnd());
}

#[test]
fn new_data_that_a_loss_probe_sends_count_as_sent() {
    // tcp_write_xmit() adds them to prr_out whoever calls it. ssthresh is 5, prior_cwnd 10.
    let mut script = Script::started(Setup {
        ecn: Some(EcnFeedback::Latched),
        ..Setup::default()
    });
    assert_eq!(script.at(40 * MS).gets(ack(1).marks(1)), "10"); // ceil(1 / 2) = 1
    assert_eq!((script.fires().as_str(), script.state()), ("11", Cwr));
    let probe_ns = script.now();
    script.at(probe_ns + 40 * MS);
    for (next, cwnd, sent) in [
        (2, 10, ""),  // ceil(2 / 2) - 2 < 0, and 10 are in flight
        (3, 9, ""),   // ceil(3 / 2) - 2 = 0
        (5, 8, "12"), // ceil(5 / 2) - 2 = 1
    ] {
        assert_eq!(script.gets(ack(next)), sent, "{next}");
        assert_eq!(script.cwnd(), cwnd, "{next}");
    }
}
