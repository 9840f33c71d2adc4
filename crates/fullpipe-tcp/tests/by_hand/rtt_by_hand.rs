//! SRTT, RTTVAR and the timeout: RFC 6298 as tcp_rtt_estimator() of tcp_input.c computes it. `srtt` has
//! three bits of fraction, the deviations have two, and 4 * RTTVAR is at least 200 ms (tcp_rto_min).

use fullpipe_cc::EventKind;

use super::script::{ack, sack, Script, Setup, MS, OWNER, US, WITNESS};

/// An application that writes one packet after the other, over a path whose handshake took 100 ms. Each
/// packet is acknowledged after one of these times.
fn samples(rtts_us: &[u64]) -> Script {
    let mut script = Script::new(Setup {
        rtt_ns: 100 * MS,
        cc: WITNESS,
        is_written: true,
        ..Setup::default()
    });
    for (number, rtt_us) in (0..).zip(rtts_us) {
        let sent_ns = script.now();
        script.writes(1);
        script
            .at(sent_ns + rtt_us * US)
            .gets(ack(number + 1).echo(sent_ns));
    }
    script
}

/// The retransmission timeout: what the timer is set to after the loss probe.
fn timeout_us(mut script: Script) -> u64 {
    script.writes(1);
    script.fires();
    (script.exact_timer() - script.now()) / US
}

/// A timeout as the kernel keeps it, in ticks of 4 ms (tcp_set_rto()).
fn in_ticks(timeout_us: u64) -> u64 {
    timeout_us.next_multiple_of(4_000)
}

/// SRTT and mean deviation in us, as the congestion control sees them, and the timeout.
fn estimates(rtts_us: &[u64]) -> (u32, u32, u64) {
    let mut script = samples(rtts_us);
    let deviation_us = script
        .told_events(EventKind::Rtt)
        .last()
        .map_or(50_000, |(conn, _)| conn.rttvar_us);
    (script.srtt_us(), deviation_us, timeout_us(script))
}

#[test]
fn the_first_sample_gives_srtt_r_and_rttvar_half_of_r() {
    // RFC 6298 section 2.2. 4 * RTTVAR is 200 ms here.
    assert_eq!(estimates(&[]), (100_000, 50_000, 300_000));
    // With an RTT of 300 ms it is 600 ms.
    let script = Script::new(Setup {
        rtt_ns: 300 * MS,
        is_written: true,
        ..Setup::default()
    });
    assert_eq!(timeout_us(script), 900_000);
    // With one of 40 ms it would be 80 ms, and is 200 ms.
    let script = Script::new(Setup {
        is_written: true,
        ..Setup::default()
    });
    assert_eq!(timeout_us(script), 240_000);
}

#[test]
fn a_rising_rtt_raises_deviation_and_timeout_at_once() {
    // The error is 160 ms: SRTT = 100 + 160 / 8, 4 * mdev = 200 + (160 - 50).
    assert_eq!(estimates(&[260_000]), (120_000, 77_500, in_ticks(430_000)));
    // The error is 140 ms: SRTT = 120 + 140 / 8, 4 * mdev = 310 + (140 - 77.5).
    let second = estimates(&[260_000, 260_000]);
    assert_eq!(second, (137_500, 93_125, in_ticks(510_000)));
}

#[test]
fn a_falling_rtt_lowers_the_timeout_by_a_quarter_of_the_difference_each_round() {
    // The error is -37.5 ms: 4 * mdev = 372.5 + (37.5 - 93.125) = 316.875 ms. RTTVAR falls from 372.5 ms by a
    // quarter of what the round's largest deviation lacks: 55.625 / 4 = 13.906 ms.
    let third = estimates(&[260_000, 260_000, 100_000]);
    assert_eq!(third, (132_812, 79_218, in_ticks(132_812 + 358_594)));
    // A fall beyond the deviation counts an eighth: (122.812 - 79.218) / 8 = 5.449 ms. RTTVAR falls by
    // (358.594 - 322.324) / 4 = 9.067 ms.
    let fourth = estimates(&[260_000, 260_000, 100_000, 10_000]);
    assert_eq!(fourth, (117_461, 80_581, in_ticks(117_461 + 349_527)));
}

#[test]
fn the_largest_deviation_of_a_window_counts_until_the_window_is_acknowledged() {
    // rtt_seq is `snd_nxt` at the first ACK, so the window ends with the ACK of packet 4.
    let mut script = Script::new(Setup {
        rtt_ns: 100 * MS,
        is_written: true,
        ..Setup::default()
    });
    script.writes(1);
    script.at(150 * MS).writes(3);
    script.at(260 * MS).gets(ack(1).echo(0));
    for (at_ms, next) in [(270, 2), (280, 3), (290, 4)] {
        script.at(at_ms * MS).gets(ack(next).echo(150 * MS));
    }
    // SRTT: 120, 120, 121.25, 123.594 ms. 4 * mdev: 310, 232.5, 184.375, 157.032 ms.
    assert_eq!(script.srtt_us(), 123_593);
    let again = || {
        let mut script = Script::new(Setup {
            rtt_ns: 100 * MS,
            is_written: true,
            ..Setup::default()
        });
        script.writes(1);
        script.at(150 * MS).writes(3);
        script.at(260 * MS).gets(ack(1).echo(0));
        for (at_ms, next) in [(270, 2), (280, 3), (290, 4)] {
            script.at(at_ms * MS).gets(ack(next).echo(150 * MS));
        }
        script
    };
    assert_eq!(timeout_us(again()), in_ticks(123_593 + 310_000));
    // The next sample ends the window. Its largest deviation was 232.5 ms: RTTVAR falls by 77.5 / 4 ms.
    script.writes(1);
    script.at(420 * MS).gets(ack(5).echo(290 * MS));
    assert_eq!(timeout_us(script), in_ticks(124_394 + 290_625));
}

#[test]
fn after_its_window_a_deviation_below_200_ms_no_longer_counts() {
    // Windows of one packet. 4 * mdev falls by a quarter with each steady sample, RTTVAR towards 200 ms by
    // a quarter of the difference: 310, 282.5 (mdev 232.5), then with a largest deviation of 200 ms
    // 261.875.
    let steady = |count: usize| {
        let mut rtts_us = vec![260_000];
        rtts_us.extend(vec![120_000; count]);
        estimates(&rtts_us)
    };
    assert_eq!(steady(1), (120_000, 58_125, in_ticks(120_000 + 290_625)));
    // 4 * mdev = 232.5 - 58.125 = 174.375: below 200 ms.
    assert_eq!(steady(2), (120_000, 43_593, in_ticks(120_000 + 267_969)));
}

#[test]
fn srtt_and_rtt_of_an_ack_are_of_its_first_and_its_last_packet() {
    // tcp_clean_rtx_queue(): seq_rtt_us from first_ackt, ca_rtt_us from last_ackt. The minimum takes the
    // second.
    let mut script = Script::new(Setup {
        cc: OWNER,
        is_written: true,
        ..Setup::default()
    });
    for at_ms in [0, 10, 20] {
        script.at(at_ms * MS).writes(1);
    }
    script.at(56 * MS).gets(ack(3).echo(0));
    assert_eq!(script.srtt_us(), (7 * 40_000 + 56_000) / 8);
    assert_eq!(script.told().1.rtt_us, 36_000);
    assert_eq!(script.min_rtt_us(), Some(36_000));
}

#[test]
fn sacked_packets_give_samples_too() {
    // sack_rtt_us from first_sackt, ca_rtt_us from last_sackt.
    let mut script = Script::new(Setup {
        cc: OWNER,
        is_written: true,
        ..Setup::default()
    });
    for at_ms in [0, 10, 20] {
        script.at(at_ms * MS).writes(1);
    }
    script.at(58 * MS).gets(sack(0, [(1, 3)]).echo(0));
    assert_eq!(script.srtt_us(), (7 * 40_000 + 48_000) / 8);
    assert_eq!(script.told().1.rtt_us, 38_000);
}

#[test]
fn the_smallest_sample_of_five_minutes_is_the_minimum() {
    // sysctl tcp_min_rtt_wlen = 300 s. The handshake's 40 ms are the minimum until then.
    let mut script = Script::new(Setup {
        is_written: true,
        ..Setup::default()
    });
    let mut next = 0;
    for (at_s, least_us) in [(1, 40_000), (299, 40_000), (301, 50_000), (400, 50_000)] {
        script.at(at_s * 1_000 * MS).writes(1);
        next += 1;
        script
            .at((at_s * 1_000 + 50) * MS)
            .gets(ack(next).echo(at_s * 1_000 * MS));
        assert_eq!(script.min_rtt_us(), Some(least_us), "{at_s} s");
    }
}

#[test]
fn a_sample_equal_to_the_minimum_renews_it() {
    let mut script = Script::new(Setup {
        is_written: true,
        ..Setup::default()
    });
    let mut next = 0;
    for (at_s, rtt_ms) in [(200, 40), (400, 50)] {
        script.at(at_s * 1_000 * MS).writes(1);
        next += 1;
        script
            .at((at_s * 1_000 + rtt_ms) * MS)
            .gets(ack(next).echo(at_s * 1_000 * MS));
        assert_eq!(script.min_rtt_us(), Some(40_000), "{at_s} s");
    }
}

#[test]
fn a_retransmitted_packet_gives_a_sample_only_by_its_timestamp() {
    // Karn's rule, and RFC 7323 section 4.1: the echo says which transmission arrived.
    for (echoes, srtt_us) in [(true, (7 * 40_000 + 32_000) / 8), (false, 40_000)] {
        let mut script = Script::new(Setup {
            is_written: true,
            ..Setup::default()
        });
        script.writes(1);
        let (at_ns, sent) = script.times_out();
        assert_eq!(sent, "0r");
        script.at(at_ns + 32 * MS);
        let reply = match echoes {
            true => ack(1).echo(at_ns),
            false => ack(1).without_echo(),
        };
        script.gets(reply);
        assert_eq!(script.srtt_us(), srtt_us);
    }
}

/// Ten packets, of which 1 to 3 are SACKed after 40 ms, so that packet 0 is sent again.
fn with_a_retransmission() -> Script {
    let mut script = Script::started(Setup::default());
    script.at(40 * MS).gets(sack(0, [(1, 4)]));
    assert_eq!(script.srtt_us(), 40_000);
    script
}

#[test]
fn an_ack_that_covers_a_retransmission_gives_no_rtt_of_the_packets_that_it_covers() {
    // Karn's rule for the whole ACK: FLAG_RETRANS_DATA_ACKED in tcp_clean_rtx_queue(). Packets 4 to 9 were sent
    // once, 80 ms ago.
    let mut script = with_a_retransmission();
    script.at(80 * MS).gets(ack(10).without_echo());
    assert_eq!(script.srtt_us(), 40_000);
    // With an echo that is the sample: 20 ms, in whole milliseconds (tcp_rtt_tsopt_us()).
    let mut script = with_a_retransmission();
    script.at(80 * MS).gets(ack(10).echo(60 * MS));
    assert_eq!(script.srtt_us(), 37_500);
    // What is newly SACKed is a sample all the same.
    let mut script = with_a_retransmission();
    script.at(80 * MS).gets(sack(4, [(5, 6)]).without_echo());
    assert_eq!(script.srtt_us(), 45_000);
}

#[test]
fn the_timeout_is_rounded_up_to_ticks_before_it_is_doubled() {
    // tcp_set_rto() keeps ticks of 4 ms: an RTT of 41 ms gives 41 + 200 ms, which are 61 ticks.
    let mut script = Script::started(Setup {
        rtt_ns: 41 * MS,
        ..Setup::default()
    });
    let mut before = 0;
    let mut waits = Vec::new();
    for _ in 0..4 {
        let (at, _) = script.times_out();
        waits.push((at - before) / MS);
        before = at;
    }
    // The first timeout counts from the loss probe, 2 * 41 + 2 ms after the packets.
    let ticks = |ms: u64| ms / 4;
    assert!(ticks(waits[1]) >= 122 && ticks(waits[2]) >= 244 && ticks(waits[3]) >= 488);
    assert_eq!(script.exact_timer() - before, 16 * 244 * MS);
}
