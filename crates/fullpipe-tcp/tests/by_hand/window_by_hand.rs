//! When a window may grow, and when an unused one shrinks: tcp_is_cwnd_limited(), tcp_cwnd_validate(),
//! tcp_cwnd_application_limited(), tcp_cwnd_restart() (RFC 2861), tcp_update_pacing_rate().

use fullpipe_cc::EventKind;
use fullpipe_tcp::Established;

use super::script::{ack, Open, Script, Setup, MS, MSS, US, WITNESS};

const INFINITE: u32 = 0x7fff_ffff;

fn application(cwnd: u32) -> Script {
    Script::new(Setup {
        cwnd,
        is_written: true,
        ..Setup::default()
    })
}

#[test]
fn in_slow_start_a_window_grows_if_more_than_half_of_it_was_used() {
    // tcp_is_cwnd_limited(): snd_cwnd < 2 * max_packets_out.
    for (packets, grown) in [(5, 10), (6, 16), (10, 20)] {
        let mut script = application(10);
        script.writes(packets);
        script.at(40 * MS).gets(ack(packets));
        assert_eq!(script.cwnd(), grown, "{packets}");
    }
}

#[test]
fn in_congestion_avoidance_a_window_grows_only_if_it_was_full() {
    for (packets, grown) in [(9, 10), (10, 11)] {
        let mut script = application(10);
        script.sets_window(10, 10);
        script.writes(packets);
        script.at(40 * MS).gets(ack(packets));
        assert_eq!(script.cwnd(), grown, "{packets}");
    }
}

#[test]
fn a_window_that_was_full_counts_as_full_until_its_flight_is_acknowledged() {
    // tp->cwnd_usage_seq.
    let mut script = application(10);
    script.sets_window(10, 10);
    script.writes(10);
    script.at(40 * MS).gets(ack(5));
    // Less is sent from now on. The window of ten is acknowledged with packet 9: 5 + 5 packets add one.
    script.writes(2);
    script.at(41 * MS).gets(ack(10));
    assert_eq!(script.cwnd(), 11);
    script.writes(2);
    script.at(80 * MS).gets(ack(12));
    script.writes(2);
    for next in [14, 16, 18, 20, 22] {
        let at_ns = script.now() + 40 * MS;
        script.at(at_ns).gets(ack(next));
        script.writes(2);
    }
    assert_eq!(script.cwnd(), 11);
}

#[test]
fn an_idle_connection_halves_its_window_for_each_timeout_but_keeps_the_initial_one() {
    // tcp_cwnd_restart(); the timeout is 240 ms, 60 ticks, and must be exceeded by a tick.
    for (idle_ms, window) in [
        (239, 80),
        (243, 80),
        (244, 40),
        (483, 40),
        (484, 20),
        (724, 10),
        (5_000, 10),
    ] {
        let mut script = application(10);
        script.writes(1);
        script.at(40 * MS).gets(ack(1));
        script.sets_window(80, 12);
        script.at(idle_ms * MS).writes(1);
        assert_eq!(script.cwnd(), window, "{idle_ms}");
        // Three quarters of the window before: 40 + 20.
        let ssthresh = if window == 80 { 12 } else { 60 };
        assert_eq!(script.ssthresh(), Some(ssthresh), "{idle_ms}");
    }
}

#[test]
fn a_window_below_the_initial_one_is_kept_when_idle() {
    let mut script = application(10);
    script.writes(1);
    script.at(40 * MS).gets(ack(1));
    script.sets_window(7, 12);
    script.at(5_000 * MS).writes(1);
    assert_eq!(script.cwnd(), 7);
}

#[test]
fn an_algorithm_is_told_of_a_restart() {
    let mut script = Script::new(Setup {
        cc: WITNESS,
        is_written: true,
        ..Setup::default()
    });
    script.writes(1);
    script.at(40 * MS).gets(ack(1));
    script.forgets();
    script.at(240 * MS).writes(1);
    assert_eq!(script.told_events(EventKind::CwndRestart).len(), 0);
    script.at(280 * MS).gets(ack(2));
    script.at(484 * MS).writes(1);
    assert_eq!(script.told_events(EventKind::CwndRestart).len(), 1);
}

#[test]
fn a_window_of_which_less_is_used_is_kept_while_acks_come() {
    // tcp_cong_avoid() stamps snd_cwnd_stamp for each ACK that advances: kernels 6.12 and 7.3 keep 40 packets
    // of which one is used, for twelve round trips.
    let mut script = application(40);
    script.sets_window(40, 10);
    for round in 0..12 {
        let at_ns = 100 * round * MS;
        script.at(at_ns).writes(1);
        script.at(at_ns + 41 * MS).gets(ack(round as u32 + 1));
    }
    assert_eq!((script.cwnd(), script.ssthresh()), (40, Some(10)));
}

/// A window of 40 packets, of which five are used while nothing is acknowledged for a timeout of 240 ms and the
/// tick of the loss probe.
fn unused_for_a_timeout() -> Script {
    let mut script = Script::new(Setup {
        cwnd: 40,
        rtt_ns: 40 * MS,
        is_written: true,
        ..Setup::default()
    });
    script.sets_window(40, 10);
    for at_ms in [0, 50, 100, 150, 200] {
        script.at(at_ms * MS).writes(1);
    }
    assert_eq!((script.fires().as_str(), script.cwnd()), ("4r", 40));
    script
}

#[test]
fn a_window_of_which_less_is_used_moves_half_way_towards_that_once_no_ack_has_come_for_a_timeout() {
    // tcp_cwnd_application_limited(): (cwnd + max(used, initial)) / 2, and three quarters as ssthresh. The
    // initial window is 40 here and moves nothing, so 60 are set.
    let mut script = unused_for_a_timeout();
    script.sets_window(60, 10);
    let at_ns = script.now() + MS;
    script.at(at_ns).writes(1);
    assert_eq!(
        (script.cwnd(), script.ssthresh(), script.state()),
        (50, Some(45), Open)
    );
    // The next step takes another timeout.
    script.at(at_ns + 10 * MS).writes(1);
    assert_eq!(script.cwnd(), 50);
}

#[test]
fn an_ack_that_does_not_advance_leaves_the_time_of_the_last_one_that_did() {
    // tcp_may_raise_cwnd(): a window update does not raise the window, so it does not stamp it.
    let mut script = unused_for_a_timeout();
    script.sets_window(60, 10);
    let at_ns = script.now() + MS;
    script.at(at_ns).gets(ack(0).window(1 << 31));
    script.writes(1);
    assert_eq!(script.cwnd(), 50);
}

#[test]
fn the_hosts_pacing_rate_is_two_windows_an_rtt_in_slow_start_and_1_2_after() {
    // tcp_update_pacing_rate(): 200 % while cwnd < ssthresh / 2.
    for (cwnd, ssthresh, percent) in [
        (10, INFINITE, 200),
        (10, 22, 200),
        (10, 21, 120),
        (10, 10, 120),
    ] {
        let mut script = Script::new(Setup {
            cc: WITNESS,
            is_written: true,
            fq: true,
            ..Setup::default()
        });
        script.sets_window(cwnd, ssthresh);
        script.writes(5);
        script.at(40 * MS).gets(ack(1));
        let window_bytes = u64::from(cwnd * MSS);
        assert_eq!(
            script.pacing_rate(),
            Some(window_bytes * percent / 100 * 25),
            "{ssthresh}"
        );
    }
}

#[test]
fn what_is_in_flight_counts_if_it_exceeds_the_window() {
    let mut script = Script::new(Setup {
        cc: WITNESS,
        is_written: true,
        fq: true,
        pacing_shift: 2,
        ..Setup::default()
    });
    script.writes(10);
    script.sets_window(4, INFINITE);
    script.at(40 * MS).takes(ack(1));
    assert_eq!(script.pacing_rate(), Some(2 * 25 * 9 * u64::from(MSS)));
}

#[test]
fn a_connection_that_is_not_paced_has_no_rate() {
    assert_eq!(Script::started(Setup::default()).pacing_rate(), None);
}

#[test]
fn a_handshakes_retransmissions_and_timeouts_are_the_connections() {
    let established = Established {
        rtt_ns: 40 * MS,
        window_bytes: 1 << 30,
        retransmissions: 3,
        timeouts: 2,
        has_window_of_one: true,
        ..Established::default()
    };
    let mut script = Script::established(Setup::default(), established);
    let totals = script.totals();
    assert_eq!((totals.packets_retransmitted, totals.timeouts), (3, 2));
    assert_eq!(script.events(), ["rto", "rto"]);
    assert_eq!((script.cwnd(), script.sends().as_str()), (1, "0"));
    // The handshake counts as a delivered packet.
    assert_eq!(script.delivered(), (1, 0));
    assert_eq!(script.min_rtt_us(), Some(40_000));
}

#[test]
fn the_peers_window_bounds_what_is_sent_beyond_what_it_acknowledged() {
    let mss = u64::from(MSS);
    let mut script = Script::new(Setup {
        window_bytes: 4 * mss - 1,
        ..Setup::default()
    });
    assert_eq!(script.sends(), "0 1 2");
    // The window closes by what is acknowledged: a smaller one in the next ACK counts.
    script.at(40 * MS);
    assert_eq!(script.gets(ack(2).window(2 * mss)), "3");
    // An ACK of the same packet may only enlarge it, or close it.
    assert_eq!(script.gets(ack(2).window(mss)), "");
    assert_eq!(script.gets(ack(2).window(4 * mss)), "4 5");
    assert_eq!(script.gets(ack(2).window(0)), "");
    assert_eq!(script.gets(ack(3).window(0)), "");
}

#[test]
fn a_window_of_a_packet_and_a_part_lets_one_packet_through_an_rtt() {
    // Half of such a window is less than a packet, and buffers still hold one (tcp_xmit_size_goal()).
    let mut script = Script::new(Setup {
        window_bytes: 2_048,
        ..Setup::default()
    });
    assert_eq!(script.sends(), "0");
    for next in 1..5_u32 {
        let sent = script.at(u64::from(next) * 40 * MS).gets(ack(next));
        assert_eq!(sent, next.to_string());
    }
}

#[test]
fn a_burst_waits_for_an_ack_while_the_window_has_room_for_less_than_it_in_bytes() {
    // tcp_tso_should_defer() compares bytes: a window of a packet and a part has no room for a burst of two, of
    // which the second is short (script 9061-83 of the differential test).
    let mss = u64::from(MSS);
    for (left_bytes, sent) in [(mss + mss / 3, ""), (2 * mss, "11 12")] {
        let mut script = Script::new(Setup {
            cwnd: 30,
            window_bytes: 11 * mss + left_bytes,
            is_written: true,
            nodelay: true,
            burst_packets: 2,
            ..Setup::default()
        });
        for _ in 0..5 {
            script.writes(2);
        }
        // Only what follows another burst within a millisecond waits.
        assert_eq!(script.at(40 * MS - US).writes(1), "10");
        script.writes_bytes(mss + 3);
        assert_eq!(script.sends(), sent, "{left_bytes}");
    }
}
