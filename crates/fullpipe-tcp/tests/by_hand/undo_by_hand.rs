//! Undoing a reduction: Eifel (RFC 3522) by timestamps, DSACKs (RFC 3708); tcp_may_undo(),
//! tcp_try_undo_partial(), tcp_undo_cwnd_reduction().

use super::script::{ack, dsack, sack, Loss, Open, Recovery, Script, Setup, MS};

/// Twenty packets; three above the first are SACKed, which begins a recovery at 40 ms.
fn recovering(ssthresh: u32) -> Script {
    let mut script = Script::started(Setup {
        cwnd: 20,
        ..Setup::default()
    });
    script.sets_window(20, ssthresh);
    script.at(40 * MS);
    assert_eq!(script.gets(sack(0, [(1, 4)])), "0r 20");
    script.events();
    script
}

#[test]
fn an_undo_restores_three_quarters_of_the_window_as_ssthresh_if_that_is_more() {
    // tcp_current_ssthresh(): max(ssthresh, cwnd / 2 + cwnd / 4).
    for (before, after) in [(12, 15), (15, 15), (17, 17)] {
        let mut script = recovering(before);
        assert_eq!(script.ssthresh(), Some(10));
        script.at(42 * MS).gets(ack(20).echo(0));
        assert_eq!(script.events(), ["undo", "recovery_end"]);
        assert_eq!(script.ssthresh(), Some(after), "{before}");
        assert!(script.cwnd() >= 20);
    }
}

#[test]
fn a_timestamp_echo_counts_if_it_is_a_millisecond_older_than_the_retransmission() {
    // tcp_tsopt_ecr_before(), in ticks of 1 ms; the retransmission left at 40 ms.
    for (echo_us, undos) in [(39_999, 1), (40_000, 0), (40_999, 0)] {
        let mut script = recovering(1 << 30);
        script
            .at(80 * MS)
            .gets(ack(20).echo(echo_us * super::script::US));
        assert_eq!(script.undos(), undos, "{echo_us}");
        assert_eq!(script.state(), Open);
    }
}

#[test]
fn without_a_timestamp_echo_nothing_is_undone() {
    let mut script = recovering(1 << 30);
    script.at(42 * MS).gets(ack(20).without_echo());
    assert_eq!((script.state(), script.undos()), (Open, 0));
    assert_eq!(script.ssthresh(), Some(10));
}

#[test]
fn dsacks_undo_once_they_report_every_retransmission() {
    // undo_retrans counts packets sent again: 0 to 2.
    let begin = || {
        let mut script = Script::started(Setup {
            cwnd: 20,
            ..Setup::default()
        });
        script.at(40 * MS);
        // 20 - 6 - 3 packets are in flight; ceil(6 / 2) = 3 may be sent.
        assert_eq!(script.gets(sack(0, [(3, 9)])), "0r 1r 2r");
        script
    };
    let mut script = begin();
    script.at(80 * MS).gets(ack(20).echo(40 * MS));
    script.gets(dsack(20, [(0, 1)]).echo(40 * MS));
    script.gets(dsack(20, [(1, 2)]).echo(40 * MS));
    assert_eq!(script.undos(), 0);
    script.gets(dsack(20, [(2, 3)]).echo(40 * MS));
    assert_eq!(script.undos(), 1);
    // A DSACK of several packets counts all of them.
    let mut script = begin();
    script.at(80 * MS).gets(ack(20).echo(40 * MS));
    script.gets(dsack(20, [(0, 3)]).echo(40 * MS));
    assert_eq!(script.undos(), 1);
}

#[test]
fn a_dsack_of_a_packet_that_was_never_sent_again_does_not_count() {
    // tcp_check_dsack(): below the undo marker, or not retransmitted.
    let mut script = recovering(1 << 30);
    script.at(41 * MS).gets(dsack(0, [(2, 3), (1, 4)]).echo(0));
    script.at(80 * MS).gets(ack(20).echo(40 * MS));
    assert_eq!((script.state(), script.undos()), (Open, 0));
}

#[test]
fn a_partial_ack_of_an_original_ends_the_recovery_if_nothing_else_was_sent_again() {
    // tcp_try_undo_partial(): packets 0 and 5 are missing, 0 was sent again. Its original arrives.
    let mut script = Script::started(Setup {
        cwnd: 8,
        ..Setup::default()
    });
    script.at(40 * MS);
    // 8 - 3 - 1 = 4 are in flight, as many as ssthresh: the first retransmission only.
    assert_eq!(script.gets(sack(0, [(1, 4)])), "0r");
    script.at(42 * MS).gets(ack(4).echo(0));
    assert_eq!((script.undos(), script.state()), (1, Open));
    assert_eq!(script.ssthresh(), None);
    assert_eq!(script.events(), ["recovery", "undo"]);
}

#[test]
fn a_partial_ack_of_a_retransmission_goes_on_with_the_recovery() {
    let mut script = Script::started(Setup {
        cwnd: 8,
        ..Setup::default()
    });
    script.at(40 * MS);
    assert_eq!(script.gets(sack(0, [(1, 4)])), "0r");
    script.at(80 * MS).gets(ack(4).echo(40 * MS));
    assert_eq!((script.undos(), script.state()), (0, Recovery));
}

#[test]
fn a_timeout_is_undone_by_a_timestamp_and_leaves_what_was_not_lost_in_flight() {
    // tcp_try_undo_loss(): all marks are cleared.
    let mut script = Script::started(Setup::default());
    let (at_ns, _) = script.times_out();
    assert_eq!(
        (script.state(), script.flight(), script.lost()),
        (Loss, 1, 11)
    );
    script.at(at_ns + 5 * MS).takes(ack(2).echo(0));
    assert_eq!((script.state(), script.flight()), (Open, 9));
    assert_eq!(script.ssthresh(), None);
}

#[test]
fn a_loss_reported_with_an_ecn_mark_is_not_undone() {
    // tcp_fastretrans_alert(), FLAG_ECE: prior_ssthresh = 0.
    let mut script = Script::started(Setup {
        cwnd: 20,
        ecn: Some(fullpipe_tcp::EcnFeedback::Latched),
        ..Setup::default()
    });
    script.at(40 * MS).gets(sack(0, [(1, 4)]).marks(1));
    assert_eq!((script.state(), script.ssthresh()), (Recovery, Some(10)));
    script.at(42 * MS).gets(ack(20).echo(0));
    assert_eq!(script.ssthresh(), Some(10));
    assert!(script.cwnd() < 20, "{}", script.cwnd());
}

#[test]
fn a_dsack_of_more_packets_than_this_recovery_sent_again_counts_all_of_those() {
    // tcp_check_dsack(): undo_retrans falls to 0 and not below. A recovery before sent one packet again, so that
    // four duplicates are no more than all retransmissions (tcp_dsack_seen()).
    let mut script = recovering(1 << 30);
    script.at(80 * MS).gets(ack(21).echo(40 * MS));
    script.sets_window(20, 20);
    script.sends();
    script.at(120 * MS);
    let sent = script.gets(sack(21, [(24, 30)]));
    assert!(sent.starts_with("21r 22r 23r"), "{sent}");
    script.at(160 * MS).gets(ack(41).echo(120 * MS));
    assert_eq!((script.state(), script.undos()), (Open, 0));
    script.gets(dsack(41, [(21, 25)]).echo(120 * MS));
    assert_eq!(script.undos(), 1);
}

#[test]
fn a_recovery_that_sent_nothing_again_is_undone() {
    // tcp_packet_delayed(): retrans_stamp is 0. The host was busy and did not send.
    let mut script = Script::started(Setup {
        cwnd: 20,
        ..Setup::default()
    });
    script.at(40 * MS).takes(sack(0, [(1, 4)]));
    assert_eq!(script.state(), Recovery);
    script.at(41 * MS).takes(ack(20).echo(41 * MS));
    assert_eq!((script.state(), script.undos()), (Open, 1));
}

#[test]
fn an_undo_by_dsacks_begins_another_recovery_if_packets_are_still_lost() {
    // tcp_fastretrans_alert(), TCP_CA_Recovery: packets 0 and 1 are lost, of which 0 was sent again.
    let mut script = Script::started(Setup {
        cwnd: 8,
        ..Setup::default()
    });
    script.at(40 * MS);
    assert_eq!(script.gets(sack(0, [(2, 5)])), "0r");
    script.at(41 * MS);
    script.gets(dsack(1, [(0, 1), (2, 5)]).echo(40 * MS));
    assert_eq!(script.events(), ["recovery", "undo", "recovery"]);
    // The mark of packet 1 has stayed.
    assert_eq!((script.state(), script.lost()), (Recovery, 2));
}

#[test]
fn a_partial_undo_clears_the_loss_marks() {
    // tcp_try_undo_partial(), tcp_undo_cwnd_reduction(true): packet 1, which was marked lost with 0, is in flight
    // again beside 5 to 7 and what is sent then.
    let mut script = Script::started(Setup {
        cwnd: 8,
        ..Setup::default()
    });
    script.at(40 * MS);
    assert_eq!(script.gets(sack(0, [(2, 5)])), "0r");
    assert_eq!((script.lost(), script.flight()), (2, 4));
    script.at(42 * MS).takes(sack(1, [(2, 5)]).echo(0));
    assert_eq!((script.undos(), script.lost(), script.flight()), (1, 2, 4));
}

/// Eleven packets, a probe, a timeout, and an original's SACK that shows that it was spurious while the
/// retransmission of packet 0 is in flight. Returns when that was.
fn undone_timeout() -> (Script, u64) {
    let mut script = Script::new(Setup {
        is_written: true,
        cwnd: 20,
        ..Setup::default()
    });
    script.writes(11);
    assert_eq!(script.fires(), "10r");
    let (timeout_ns, sent) = script.times_out();
    assert_eq!((sent.as_str(), script.state()), ("0r", Loss));
    let at_ns = timeout_ns + 20 * MS;
    assert_eq!(script.at(at_ns).gets(sack(0, [(3, 4)])), "");
    assert_eq!((script.undos(), script.lost()), (1, 11));
    (script, at_ns)
}

#[test]
fn a_retransmission_that_is_lost_after_an_undone_timeout_waits_for_another_timeout() {
    // tcp_mark_skb_lost() sets only LOST of a packet that an undo has unmarked, and
    // tcp_xmit_retransmit_queue() skips what has SACKED_RETRANS.
    let (mut script, at_ns) = undone_timeout();
    script.writes(5);
    // Packets that were sent after it arrive, before the reordering timer expires.
    script.at(at_ns + 5 * MS);
    let sent = script.gets(sack(0, [(3, 4), (11, 14)]));
    assert!(sent.starts_with("1r 2r"), "{sent}");
    let (_, sent) = script.times_out();
    assert_eq!(sent, "0r");
}

#[test]
fn a_second_timeout_counts_a_retransmission_that_is_still_in_flight_twice_until_all_is_acknowledged(
) {
    // tcp_retransmit_timer() sends the first packet again even so, and retrans_out leaks:
    // cwnd = in flight + 1 (tcp_enter_loss()) with one retransmission, then two are in flight.
    let (mut script, _) = undone_timeout();
    let (timeout_ns, sent) = script.times_out();
    assert_eq!(
        (sent.as_str(), script.cwnd(), script.flight()),
        ("0r", 2, 2)
    );
    script
        .at(timeout_ns + 40 * MS)
        .gets(ack(11).echo(timeout_ns));
    assert_eq!(script.flight(), 0);
}

#[test]
fn a_dsack_inside_a_block_up_to_the_last_packet_counts_twice() {
    // tcp_sacktag_walk() meets its packets with the block before, and then starts over at the DSACK
    // (tcp_sacktag_skip()). Script 9061-73 of the differential test: one DSACK of a loss probe undid a recovery of
    // two retransmissions.
    for (end, undos) in [(14, 1), (13, 0)] {
        let mut script = Script::new(Setup {
            is_written: true,
            ..Setup::default()
        });
        script.writes(10);
        script.at(40 * MS).gets(sack(0, [(1, 3), (4, 9)]));
        script.at(80 * MS).gets(sack(3, [(4, 10)]).echo(40 * MS));
        script.at(81 * MS).gets(ack(10).echo(40 * MS));
        assert_eq!(script.sender().info().total_retrans, 2);
        script.at(90 * MS).writes(4);
        assert_eq!(script.fires(), "13r");
        let now_ns = script.now();
        script
            .at(now_ns + 40 * MS)
            .gets(dsack(11, [(end - 1, end), (12, end)]).echo(90 * MS));
        assert_eq!(script.undos(), undos, "{end}");
    }
}
