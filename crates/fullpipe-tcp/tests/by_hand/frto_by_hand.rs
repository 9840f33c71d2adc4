//! F-RTO with SACK: RFC 5682 section 3.1 as tcp_enter_loss() and tcp_process_loss() of tcp_input.c have it.
//! ACKs carry no timestamp echo, so that only F-RTO can tell.

use super::script::{ack, dsack, sack, Loss, Open, Recovery, Script, Setup, MS};

/// Ten packets and a loss probe were sent, then the timer expired and packet 0 was sent again. `high_seq`
/// is 11.
fn timed_out() -> (Script, u64) {
    let mut script = Script::started(Setup::default());
    let (at_ns, sent) = script.times_out();
    assert_eq!((sent.as_str(), script.state()), ("0r", Loss));
    assert_eq!((script.cwnd(), script.ssthresh()), (1, Some(5)));
    script.events();
    (script, at_ns)
}

/// Step 2.b: the ACK of the retransmission releases new data, 11 and 12.
fn new_data() -> (Script, u64) {
    let (mut script, at_ns) = timed_out();
    script.at(at_ns + 40 * MS);
    assert_eq!(script.gets(ack(1).without_echo()), "11 12");
    (script, at_ns + 80 * MS)
}

#[test]
fn an_ack_or_a_sack_of_the_last_original_shows_that_the_timeout_was_spurious() {
    // Step 3.b: packet 10 was sent once, and before the timeout.
    let (mut script, at_ns) = new_data();
    script.at(at_ns).gets(ack(2).without_echo());
    assert_eq!((script.state(), script.undos()), (Open, 1));
    assert_eq!((script.ssthresh(), script.events()), (None, vec!["undo"]));
    // RACK examines all packets again. The probe was sent after the others, which are lost then. An
    // RTT of 412 ms leaves the probe, which was sent at 88 ms, a quarter of the least RTT, and 2 ms.
    let (mut script, at_ns) = new_data();
    script.at(at_ns).gets(sack(1, [(10, 11)]).without_echo());
    assert_eq!(script.events(), ["undo", "recovery"]);
    let (mut script, at_ns) = new_data();
    script.at(at_ns).gets(sack(1, [(9, 10)]).without_echo());
    assert_eq!(script.events(), ["undo"]);
    assert_eq!(at_ns, 412 * MS);
    assert_eq!(script.exact_timer(), (88 + 412 + 12) * MS);
}

#[test]
fn a_sack_of_new_data_shows_that_the_timeout_was_not() {
    // Step 3.a: packet 11 lies at `high_seq`, and was sent after the timeout. The window is 2: beside packet
    // 12 one may be in flight.
    let (mut script, at_ns) = new_data();
    script.at(at_ns);
    assert_eq!(script.gets(sack(1, [(11, 12)]).without_echo()), "1r");
    assert_eq!((script.state(), script.undos()), (Loss, 0));
    // Retransmissions go on. Two packets were delivered: slow start from 2 to 4.
    script.at(at_ns + 40 * MS);
    assert_eq!(
        script.gets(sack(2, [(11, 13)]).without_echo()),
        "2r 3r 4r 5r"
    );
    assert_eq!((script.state(), script.undos()), (Loss, 0));
    // F-RTO is over: the SACK of an original proves nothing any more.
    script.at(at_ns + 41 * MS);
    script.gets(sack(2, [(10, 13)]).without_echo());
    assert_eq!((script.state(), script.undos()), (Loss, 0));
}

#[test]
fn a_duplicate_ack_ends_the_test_and_one_with_a_dsack_does_not() {
    // num_dupack of tcp_ack(): neither FLAG_SND_UNA_ADVANCED nor FLAG_DSACKING_ACK.
    let (mut script, at_ns) = new_data();
    script.at(at_ns).gets(ack(1).without_echo());
    script.at(at_ns + MS).gets(ack(2).without_echo());
    assert_eq!((script.state(), script.undos()), (Loss, 0));

    let (mut script, at_ns) = new_data();
    script.at(at_ns).gets(dsack(1, [(0, 1)]).without_echo());
    // The DSACK reports the only retransmission: the timeout was spurious (tcp_try_undo_loss() at the next
    // ACK that advances).
    script.at(at_ns + MS).gets(ack(2).without_echo());
    assert_eq!((script.state(), script.undos()), (Open, 1));
}

#[test]
fn without_new_data_the_first_ack_goes_on_with_retransmissions() {
    // Step 2.b without unsent data, or without room in the receive window.
    let full = u64::from(super::script::MSS) * 11;
    let mut script = Script::started(Setup::default());
    let (at_ns, _) = script.times_out();
    script.at(at_ns + 40 * MS);
    assert_eq!(
        script.gets(ack(1).without_echo().window(full - 1448)),
        "1r 2r"
    );
    assert_eq!(script.state(), Loss);
    // With room for one more packet it is sent: ten are unacknowledged, eleven fit.
    let (mut script, at_ns) = timed_out();
    script.at(at_ns + 40 * MS);
    assert_eq!(script.gets(ack(1).without_echo().window(full)), "11");
}

#[test]
fn an_ack_of_the_whole_flight_at_once_ends_the_loss_state() {
    let (mut script, at_ns) = timed_out();
    script.at(at_ns + 40 * MS).gets(ack(11).without_echo());
    assert_eq!((script.state(), script.undos()), (Open, 1));
}

#[test]
fn a_repeated_timeout_of_the_same_packet_tests_again() {
    // Step 1 with section 3.2: icsk_retransmits counts timeouts without progress.
    let (mut script, _) = timed_out();
    let (at_ns, sent) = script.times_out();
    assert_eq!(sent, "0r");
    assert_eq!(script.ssthresh(), Some(5), "reduced once");
    script.at(at_ns + 40 * MS);
    assert_eq!(script.gets(ack(1).without_echo()), "11 12");
}

#[test]
fn a_timeout_after_progress_in_the_loss_state_does_not() {
    // The episode of before is not over: no F-RTO, and another reduction (ssthresh is at least 2).
    let (mut script, _) = new_data();
    let (at_ns, sent) = script.times_out();
    assert_eq!((sent.as_str(), script.ssthresh()), ("1r", Some(2)));
    script.at(at_ns + 40 * MS);
    assert_eq!(script.gets(ack(2).without_echo()), "2r 3r");
    assert_eq!(script.state(), Loss);
}

#[test]
fn a_timeout_during_recovery_does_not_test() {
    // RFC 5682 section 3.1, step 1: no F-RTO if a loss recovery is underway.
    let mut script = Script::started(Setup::default());
    script.at(40 * MS);
    assert_eq!(script.gets(sack(0, [(1, 4)])), "0r 10");
    assert_eq!(script.state(), Recovery);
    let (at_ns, sent) = script.times_out();
    assert_eq!((sent.as_str(), script.ssthresh()), ("0r", Some(5)));
    script.at(at_ns + 40 * MS);
    // No new data; after slow start from 1 to 2 two packets.
    let sent = script.gets(sack(4, []).without_echo());
    assert!(sent.starts_with("4r"), "{sent}");
    assert_eq!((script.state(), script.undos()), (Loss, 0));
}

#[test]
fn a_timeout_leaves_a_window_of_what_is_in_flight_and_one_packet() {
    // tcp_enter_loss(): tcp_packets_in_flight() + 1. Packets sent within the last RTT are spared
    // (tcp_timeout_mark_lost()): packet 1 left 20 ms before.
    let mut script = Script::new(Setup {
        is_written: true,
        ..Setup::default()
    });
    script.writes(1);
    script.at(40 * MS).gets(ack(1));
    script.writes(1);
    script.fires();
    let due_ns = script.timer().unwrap();
    script.at(due_ns - 20 * MS).writes(1);
    let (at_ns, sent) = script.times_out();
    assert!(at_ns < due_ns + 20 * MS);
    assert_eq!(sent, "1r");
    assert_eq!((script.lost(), script.cwnd(), script.flight()), (1, 2, 2));
}

#[test]
fn an_ack_that_only_enlarges_the_peers_window_leaves_the_test_open() {
    // It is no duplicate (FLAG_WIN_UPDATE).
    let (mut script, at_ns) = new_data();
    script.at(at_ns);
    script.takes(ack(1).without_echo().window(1 << 31));
    script.takes(ack(2).without_echo().window(1 << 31));
    assert_eq!((script.state(), script.undos()), (Open, 1));
}

#[test]
fn the_ack_of_a_flight_of_one_packet_ends_the_loss_state_though_data_wait() {
    // Step 2.a: the flight is acknowledged, and nothing tells which copy came.
    let mut script = Script::new(Setup {
        is_written: true,
        ..Setup::default()
    });
    script.writes(1);
    let (at_ns, _) = script.times_out();
    assert_eq!(script.writes(1), "", "the window of one is full");
    script.at(at_ns + 40 * MS).takes(ack(1).without_echo());
    assert_eq!((script.state(), script.undos()), (Open, 0));
}
