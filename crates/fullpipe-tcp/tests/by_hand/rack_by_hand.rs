//! RACK: RFC 8985 section 6.2, tcp_recovery.c. A packet is lost once one that was sent after it is
//! delivered, and its age is at least that one's RTT and the reordering window. The timer waits for
//! TCP_TIMEOUT_MIN_US, 2 ms, more (tcp_rack_mark_lost()).

use fullpipe_cc::EventKind;

use super::script::{
    ack, dsack, sack, Disorder, Open, Recovery, Script, Setup, MS, OWNER, US, WITNESS,
};

/// Packets that were sent at these times.
fn sent_at(times_us: &[u64]) -> Script {
    let mut script = Script::new(Setup {
        is_written: true,
        cwnd: 100,
        ..Setup::default()
    });
    for at_us in times_us {
        script.at(at_us * US).writes(1);
    }
    script
}

#[test]
fn a_hole_waits_for_the_rtt_of_the_delivered_packet_and_a_quarter_of_the_least_one() {
    // 40 + 40 / 4 ms after packet 0 was sent, and 2 ms.
    for gap_us in [0, 6_000, 9_998] {
        let mut script = sent_at(&[0, gap_us]);
        script.at((gap_us + 40_000) * US).gets(sack(0, [(1, 2)]));
        assert_eq!(script.exact_timer(), 52 * MS, "{gap_us}");
        assert_eq!((script.state(), script.lost()), (Disorder, 0));
    }
    // The delivered packet's RTT is 45 ms, the least one still 40 ms: 45 + 10 + 2 ms.
    let mut script = sent_at(&[0, 6_000]);
    script.at(51 * MS).gets(sack(0, [(1, 2)]));
    assert_eq!(script.exact_timer(), 57 * MS);
}

#[test]
fn a_hole_of_just_that_age_is_lost_at_once() {
    let mut script = sent_at(&[0, 10_000]);
    script.at(50 * MS);
    assert_eq!(script.gets(sack(0, [(1, 2)])), "0r");
    assert_eq!((script.state(), script.lost()), (Recovery, 1));
}

#[test]
fn the_timer_waits_for_the_youngest_packet_that_may_be_lost() {
    // Packet 2 is delivered. Packet 1 was sent at 4 ms: 4 + 50 + 2 ms.
    let mut script = sent_at(&[0, 4_000, 8_000]);
    script.at(48 * MS).gets(sack(0, [(2, 3)]));
    assert_eq!(script.exact_timer(), 56 * MS);
    // The timer's reduction lets one packet through (tcp_cwnd_reduction() for one delivered packet).
    assert_eq!((script.fires().as_str(), script.lost()), ("0r", 2));
}

#[test]
fn what_was_sent_after_the_delivered_packet_is_not_examined() {
    let mut script = sent_at(&[0, 10_000, 10_000]);
    script.at(50 * MS).gets(sack(0, [(1, 2)]));
    assert_eq!((script.lost(), script.flight()), (1, 2));
}

#[test]
fn the_timer_of_a_hole_gives_way_to_the_retransmission_timer() {
    // tcp_rack_reo_timeout() ends with tcp_rearm_rto(), which counts from the first packet's transmission:
    // packet 0 again at 52 ms, rounded up to a tick.
    let mut script = sent_at(&[0, 6_000]);
    script.at(46 * MS).gets(sack(0, [(1, 2)]));
    assert_eq!(script.fires(), "0r");
    let again_ns = script.now();
    assert_eq!(script.state(), Recovery);
    assert_eq!(script.exact_timer(), again_ns + 240 * MS);
}

#[test]
fn three_packets_above_a_hole_leave_no_window() {
    // Section 6.2 step 4 while no reordering was seen, in this ACK or in a recovery.
    let mut script = sent_at(&[0; 6]);
    script.at(40 * MS).gets(sack(0, [(2, 4)]));
    assert_eq!(script.lost(), 0);
    script.gets(sack(0, [(2, 5)]));
    assert_eq!(script.lost(), 2);
}

/// An algorithm that owns a window of `cwnd` is told of reordering: packets up to `end` are SACKed but for
/// the first, which arrives 1 ms later.
fn reordered(cwnd: u32, end: u32) -> Script {
    let mut script = Script::started(Setup {
        cwnd,
        cc: OWNER,
        ..Setup::default()
    });
    script.at(40 * MS).takes(sack(0, [(end - 1, end)]));
    script.at(41 * MS).takes(ack(1).echo(0));
    script
}

#[test]
fn the_distance_of_reordering_becomes_the_threshold() {
    // tcp_check_sack_reordering(): from the late packet to the end of the highest SACKed one, and at most
    // sysctl tcp_max_reordering = 300.
    for (cwnd, end, threshold) in [
        (20, 3, 3),
        (20, 4, 4),
        (20, 7, 7),
        (310, 300, 300),
        (310, 302, 300),
    ] {
        let script = reordered(cwnd, end);
        assert_eq!(script.told().0.reordering, threshold, "{end}");
    }
}

#[test]
fn the_next_packet_below_the_highest_sacked_one_is_late_by_two() {
    // Packet 0 arrives after packet 1: the metric of 2 does not raise the threshold of 3, but reordering was
    // seen, so three packets above a hole no longer prove its loss.
    let mut script = sent_at(&[0; 10]);
    script.at(40 * MS).gets(sack(0, [(1, 2)]));
    script.gets(ack(2));
    script.gets(sack(2, [(3, 8)]));
    assert_eq!((script.state(), script.lost()), (Disorder, 0));
    assert_eq!(script.exact_timer(), 52 * MS);
}

#[test]
fn a_packet_that_was_sent_again_shows_no_reordering() {
    let mut script = sent_at(&[0; 10]);
    script.at(40 * MS);
    assert_eq!(script.gets(sack(0, [(1, 4)])), "0r");
    script.at(80 * MS).gets(ack(10).echo(40 * MS));
    script.writes(6);
    script.at(120 * MS).gets(sack(10, [(11, 14)]));
    assert_eq!((script.state(), script.lost()), (Recovery, 2));
}

/// A flow that has seen reordering (packet 0 came after packet 1). Returns the script when everything is
/// acknowledged up to 10, at 50 ms.
fn tolerant() -> Script {
    let mut script = sent_at(&[0; 10]);
    script.at(40 * MS).gets(sack(0, [(1, 2)]));
    script.gets(ack(2));
    script.at(50 * MS).gets(ack(10).echo(0));
    assert_eq!(script.state(), Open);
    script
}

/// Sends `count` packets from `first` on; the first of them is lost, the others arrive after an RTT. Returns
/// how long the reordering window is then.
fn hole(script: &mut Script, first: u32, count: u32) -> u64 {
    let sent_ns = script.now();
    script.sets_window(100, 100);
    script.writes(count);
    script
        .at(sent_ns + 40 * MS)
        .gets(sack(first, [(first + 1, first + count)]).echo(sent_ns));
    script.exact_timer() - script.now() - 2 * MS
}

/// The hole's timer expires, and the retransmission is acknowledged; the receiver reports that it had the
/// packet if `came_twice`.
fn repair(script: &mut Script, first: u32, count: u32, came_twice: bool) {
    assert_eq!(script.fires(), format!("{first}r"));
    let again_ns = script.now();
    let reply = match came_twice {
        true => dsack(first + count, [(first, first + 1)]),
        false => ack(first + count),
    };
    script
        .at(again_ns + 40 * MS)
        .gets(reply.echo(again_ns).sent(again_ns + 20 * MS));
    assert!(script.state() < Recovery);
}

#[test]
fn each_round_trip_with_a_dsack_widens_the_window_by_a_quarter_up_to_the_smoothed_rtt() {
    // Section 6.2 step 4: 1, 2, 3, 4, and 5 quarters of 40 ms, but no more than SRTT. SRTT is 40 ms, and
    // 50 / 8 more after the ACK at 50 ms.
    let mut script = tolerant();
    let srtt_us = script.srtt_us();
    assert!((41_000..42_000).contains(&srtt_us), "{srtt_us}");
    let mut first = 10;
    for window_ms in [10, 20, 30, 40] {
        assert_eq!(hole(&mut script, first, 8), window_ms * MS);
        repair(&mut script, first, 8, true);
        first += 8;
    }
    let widest_ns = hole(&mut script, first, 8);
    assert_eq!(widest_ns, u64::from(script.srtt_us()) * US);
}

#[test]
fn a_widened_window_lasts_for_sixteen_recoveries() {
    // TCP_RACK_RECOVERY_THRESH, reo_wnd_persist of tcp_try_undo_recovery().
    let mut script = tolerant();
    hole(&mut script, 10, 8);
    // The recovery ends, and the DSACK widens the window, with the same ACK.
    repair(&mut script, 10, 8, true);
    let mut first = 18;
    let mut widths = Vec::new();
    for _ in 0..18 {
        widths.push(hole(&mut script, first, 8) / MS);
        repair(&mut script, first, 8, false);
        first += 8;
    }
    assert_eq!(widths[..16], [20; 16]);
    assert_eq!(widths[16..], [10; 2]);
}

#[test]
fn without_reordering_a_dsack_widens_nothing() {
    // tcp_dsack_seen(): only with reord_seen.
    let mut script = sent_at(&[0; 10]);
    script.at(40 * MS);
    assert_eq!(script.gets(sack(0, [(1, 4)])), "0r");
    script.at(80 * MS).gets(dsack(10, [(0, 1)]).echo(40 * MS));
    script.writes(3);
    script.at(120 * MS).gets(sack(10, [(11, 12)]));
    assert_eq!(script.exact_timer(), 132 * MS);
}

#[test]
fn an_ack_faster_than_the_least_rtt_is_not_of_the_retransmission() {
    // Section 6.2 step 2: 39.999 ms after the retransmission of packet 0 the original was delivered, after
    // 40 ms the retransmission. Only then was packet 9, which was sent before it, overtaken.
    for (after_us, lost) in [(39_999, 1), (40_000, 2)] {
        let mut script = sent_at(&[0, 0, 0, 0, 20_000]);
        script.at(40 * MS);
        assert_eq!(script.gets(sack(0, [(1, 4)])), "0r");
        script
            .at(40 * MS + after_us * US)
            .takes(ack(4).without_echo());
        assert_eq!(script.lost(), lost, "{after_us}");
    }
}

#[test]
fn an_ack_that_delivers_nothing_examines_nothing() {
    // tcp_rack_mark_lost(): only if rack.advanced. Packet 0 is overdue from 50 ms on, its timer expires later.
    let mut script = sent_at(&[0, 6_000]);
    script.at(46 * MS).gets(sack(0, [(1, 2)]));
    script.at(51 * MS).gets(sack(0, [(1, 2)]));
    assert_eq!((script.state(), script.lost()), (Disorder, 0));
}

#[test]
fn a_partial_ack_of_an_original_examines_nothing_while_retransmissions_are_in_flight() {
    // tcp_try_undo_partial(). Packet 11 has an RTT of 45 ms: 8 and 9 would be lost with an age of 75 ms.
    let mut script = sent_at(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 30_000, 30_000]);
    script.at(40 * MS);
    assert_eq!(script.gets(sack(0, [(2, 8)])), "0r 1r");
    script
        .at(75 * MS)
        .takes(sack(1, [(2, 8), (11, 12)]).echo(0));
    assert_eq!((script.state(), script.lost()), (Recovery, 2));
    // The same ACK of the retransmission does.
    let mut script = sent_at(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 30_000, 30_000]);
    script.at(40 * MS).gets(sack(0, [(2, 8)]));
    let reply = sack(1, [(2, 8), (11, 12)]).echo(40 * MS);
    script.at(75 * MS).takes(reply);
    assert!(script.lost() > 2);
}

/// Two flights of five packets, at 0 and at 60 ms. Packet 6 and packet 1 are SACKed together.
fn two_flights(blocks: [(u32, u32); 2]) -> (Script, String) {
    let mut script = Script::new(Setup {
        is_written: true,
        ..Setup::default()
    });
    script.writes(5);
    script.at(60 * MS).writes(5);
    let sent = script.at(101 * MS).gets(sack(0, blocks).without_echo());
    (script, sent)
}

#[test]
fn the_rtt_of_sacked_packets_is_the_highest_ones_whatever_the_order_of_the_blocks() {
    // tcp_sacktag_write_queue() sorts the blocks: packet 6 took 41 ms, so packets 0 and 2 to 4 are lost at 101 ms.
    for blocks in [[(6, 7), (1, 2)], [(1, 2), (6, 7)]] {
        let (script, sent) = two_flights(blocks);
        assert_eq!((script.lost(), sent.as_str()), (4, "0r"), "{blocks:?}");
        // tcp_ack_update_rtt() samples the first packet SACKed, 101 ms old: (7 * 40 + 101) / 8 ms.
        assert_eq!(script.srtt_us(), 47_625, "{blocks:?}");
        assert_eq!(script.min_rtt_us(), Some(40_000));
    }
}

#[test]
fn the_largest_distance_of_reordering_is_kept() {
    // tcp_check_sack_reordering() raises tp->reordering only. Packet 1 comes after 5, then packet 4.
    let mut script = Script::started(Setup {
        cwnd: 20,
        cc: WITNESS,
        ..Setup::default()
    });
    script.at(40 * MS);
    let seen = [
        sack(0, [(5, 6)]),
        sack(0, [(1, 2), (5, 6)]),
        sack(0, [(4, 6), (1, 2)]),
    ]
    .map(|reply| {
        script.gets(reply);
        let told = script.told_events(EventKind::Ack);
        told.last().expect("the ACK was reported").0.reordering
    });
    assert_eq!(seen, [3, 5, 5]);
}

#[test]
fn the_distance_of_reordering_is_one_of_bytes() {
    // tcp_check_sack_reordering() divides bytes by the MSS: two full packets and five of 10 bytes are as long as
    // three (script 9073-181 of the differential test).
    let mut script = Script::new(Setup {
        cwnd: 20,
        cc: OWNER,
        is_written: true,
        nodelay: true,
        ..Setup::default()
    });
    script.writes(1);
    for _ in 0..5 {
        script.writes_bytes(10);
        script.sends();
    }
    script.writes(4);
    script.at(40 * MS).takes(sack(0, [(6, 7)]));
    script.at(41 * MS).takes(ack(1).echo(0));
    assert_eq!(script.told().0.reordering, 3);
    // Up to packet 9 it is four and a bit.
    script.takes(sack(2, [(9, 10)]));
    script.takes(sack(6, [(9, 10)]).echo(0));
    assert_eq!(script.told().0.reordering, 5);
}
