//! Prague's answers to hand-made calls, each against draft-briscoe-iccrg-prague-congestion-control and
//! the reference's `tcp_prague.c`. A connection of 1448-byte packets and 20 ms, unless a test says
//! otherwise. Windows and alpha count in 2^-20.

use crate::calls::{self, Caller, MSS};
use fullpipe_cc::{CaState, EventKind, INFINITE};

const ONE: f64 = (1u32 << 20) as f64;
const RTT_US: u32 = 20_000;
/// alpha is 1/2 and stays: a mark takes a quarter.
const HALF: [(&str, u32); 2] = [("alpha_init", 512), ("gain_shift", 10)];
/// No growth by virtual round trips.
const OWN_RTT: (&str, u32) = ("rtt_virtual_us", 0);

fn prague(cwnd: u32, changes: &[(&str, u32)]) -> Caller {
    Caller::prepared("prague", cwnd, changes, |conn| {
        (conn.ecn_ok, conn.srtt_us, conn.snd_nxt) = (1, RTT_US, 10 * MSS);
        conn.delivered = 1;
    })
}

/// An ACK inside the round: so many packets, of which some marked.
fn take(flow: &mut Caller, packets: u32, marked: u32) {
    flow.conn.delivered += packets;
    flow.conn.delivered_ce += marked;
    flow.deliver(packets);
}

/// The same as the last ACK of the round; the next one ends ten packets later.
fn end_round(flow: &mut Caller, packets: u32, marked: u32) {
    flow.conn.snd_una = flow.conn.snd_nxt;
    flow.conn.snd_nxt += 10 * MSS;
    take(flow, packets, marked);
}

fn window(flow: &Caller) -> f64 {
    flow.variable("window_packets").unwrap()
}

fn alpha(flow: &Caller) -> f64 {
    flow.variable("alpha").unwrap()
}

/// Behind slow start, with a window of `cwnd` and nothing else changed.
fn settled(cwnd: u32, changes: &[(&str, u32)]) -> Caller {
    let mut all = vec![("alpha_init", 0)];
    all.extend_from_slice(changes);
    let mut flow = prague(cwnd, &all);
    flow.conn.is_cwnd_limited = 0;
    take(&mut flow, 1, 1);
    assert_eq!((window(&flow), flow.ctl.ssthresh), (f64::from(cwnd), cwnd));
    flow.conn.is_cwnd_limited = 1;
    flow
}

#[test]
fn a_mark_takes_half_of_alpha_once_a_round_trip_and_turns_leave_no_gap() {
    // Draft, section on the multiplicative decrease: W -= W * alpha / 2.
    let mut flow = prague(1024, &HALF);
    flow.conn.is_cwnd_limited = 0;
    let mut expected = 1024.0;
    for (wait_us, cuts) in [
        (0, true),
        (19_999, false),
        (1, true),
        // 10 ms into the turn that ends at 40 ms: the next one ends at 60 ms.
        (30_000, true),
        (9_999, false),
        (1, true),
        // A whole turn later without a mark: a new turn begins with the mark.
        (40_000, true),
        (19_999, false),
        (1, true),
    ] {
        flow.wait_us(wait_us);
        take(&mut flow, 1, 1);
        if cuts {
            expected *= 0.75;
        }
        assert!(
            (window(&flow) - expected).abs() < 0.01,
            "{wait_us}: {} {expected}",
            window(&flow)
        );
        assert_eq!(flow.ctl.ssthresh, window(&flow).ceil() as u32);
    }
}

#[test]
fn packets_that_came_clean_grow_the_window_by_their_part_of_it() {
    // Draft, additive increase: a packet a round, 1 / cwnd for each packet that was not marked.
    for (packets, marked, clean) in [(5, 0, 5.0), (5, 2, 3.0), (2, 2, 0.0), (2, 3, 0.0)] {
        let mut flow = settled(100, &[OWN_RTT]);
        take(&mut flow, packets, marked);
        let grown = (clean * ONE / 100.0).round() / ONE;
        assert_eq!(window(&flow), 100.0 + grown, "{packets} {marked}");
    }
    let mut idle = settled(100, &[OWN_RTT]);
    idle.conn.is_cwnd_limited = 0;
    take(&mut idle, 5, 0);
    assert_eq!(window(&idle), 100.0);
}

#[test]
fn the_window_has_an_end() {
    let mut flow = settled((1 << 20) - 1, &[OWN_RTT]);
    for _ in 0..3 {
        take(&mut flow, 1 << 20, 0);
    }
    assert_eq!(window(&flow), ONE);
}

#[test]
fn slow_start_grows_by_clean_packets_and_ends_at_ssthresh() {
    let mut flow = prague(10, &[OWN_RTT]);
    assert_eq!((window(&flow), flow.variable("phase")), (10.0, Some(8.0)));
    take(&mut flow, 6, 0);
    assert_eq!((window(&flow), flow.ctl.cwnd), (16.0, 16));
    flow.ctl.ssthresh = 20;
    take(&mut flow, 4, 0);
    assert_eq!((flow.ctl.cwnd, flow.variable("phase")), (20, Some(9.0)));
    let mut crossing = prague(10, &[OWN_RTT]);
    crossing.ctl.ssthresh = 20;
    take(&mut crossing, 14, 0);
    assert_eq!(window(&crossing), 20.0 + (4.0 * ONE / 20.0).floor() / ONE);
    // A mark ends it: 20 packets become 10, and three clean ones of four add 3 / 20.
    let mut marked = prague(20, &[OWN_RTT]);
    take(&mut marked, 4, 1);
    assert_eq!(window(&marked), 10.0 + (3.0 * ONE / 20.0).floor() / ONE);
    assert_eq!(
        (marked.ctl.ssthresh, marked.variable("phase")),
        (10, Some(9.0))
    );
}

#[test]
fn the_hosts_window_follows_by_a_packet_an_ack() {
    // prague_update_cwnd(): the window rounded up, two packets at least, towards it by one.
    let mut flow = prague(20, &[OWN_RTT]);
    for cwnd in (11..=19).rev() {
        take(&mut flow, u32::from(cwnd == 19), u32::from(cwnd == 19));
        assert_eq!(flow.ctl.cwnd, cwnd);
    }
    // The mark's packet was no clean one: the window is 10 exactly.
    for cwnd in [10, 10] {
        take(&mut flow, 0, 0);
        assert_eq!(flow.ctl.cwnd, cwnd);
    }
    take(&mut flow, 1, 0);
    assert_eq!(flow.ctl.cwnd, 11, "10.1 rounded up");
    flow.ctl.cwnd = 7;
    for (clamp, cwnd) in [(8, 8), (8, 8), (9, 9)] {
        flow.conn.cwnd_clamp = clamp;
        take(&mut flow, 0, 0);
        assert_eq!(flow.ctl.cwnd, cwnd);
    }
    let mut least = prague(2, &[]);
    take(&mut least, 1, 1);
    take(&mut least, 0, 0);
    assert_eq!(
        (window(&least), least.ctl.cwnd, least.ctl.ssthresh),
        (1.0, 2, 2)
    );
}

#[test]
fn alpha_moves_by_a_sixteenth_of_each_round_once_a_mark_came() {
    // alpha -= alpha >> 4, += marked / delivered, kept in 2^-24 (prague_update_alpha()).
    let mut flow = prague(10, &[OWN_RTT, ("alpha_init", 512)]);
    end_round(&mut flow, 10, 0);
    assert_eq!(alpha(&flow), 0.5, "no mark yet, perhaps no AQM");
    end_round(&mut flow, 10, 5);
    let after = |alpha: f64, part: f64| alpha - alpha / 16.0 + part / 16.0;
    let first = after(0.5, 0.5);
    assert_eq!(alpha(&flow), first);
    take(&mut flow, 4, 4);
    assert_eq!(alpha(&flow), first, "inside the round");
    end_round(&mut flow, 12, 0);
    assert_eq!(alpha(&flow), after(first, 0.25));
    end_round(&mut flow, 10, 0);
    assert_eq!(alpha(&flow), after(after(first, 0.25), 0.0));
    end_round(&mut flow, 0, 100);
    assert_eq!(alpha(&flow), 1.0, "at most all");
}

#[test]
fn a_round_ends_when_all_of_it_is_acknowledged_and_counts_from_the_end_of_slow_start() {
    let mut flow = prague(10, &[OWN_RTT]);
    end_round(&mut flow, 1, 0);
    assert_eq!(flow.variable("round_count"), Some(0.0));
    take(&mut flow, 1, 1);
    end_round(&mut flow, 1, 0);
    assert_eq!(flow.variable("round_count"), Some(1.0));
    for (short_by, count) in [(1, 1.0), (0, 2.0)] {
        flow.conn.snd_una = flow.conn.snd_nxt - short_by;
        take(&mut flow, 1, 0);
        assert_eq!(flow.variable("round_count"), Some(count));
    }
}

#[test]
fn below_the_virtual_round_trip_growth_is_the_square_of_the_ratio() {
    // Draft, reduced RTT-dependence: (srtt / 25 ms)^2 packets a round, below it only.
    for (srtt_us, rounds, step) in [
        (10_000, 0, 0.16),
        (24_999, 0, 24_999.0 * 24_999.0 / 625e6),
        (25_000, 0, 1.0),
        (10_000, 1, 1.0),
        (0, 0, 1.0),
    ] {
        let mut flow = settled(100, &[("rtt_virtual_rounds", rounds)]);
        flow.conn.srtt_us = srtt_us;
        take(&mut flow, 7, 0);
        let grown = (7.0 * (step * ONE).round() / 100.0).round() / ONE;
        assert_eq!(window(&flow), 100.0 + grown, "{srtt_us} {rounds}");
    }
    let mut older = settled(100, &[("rtt_virtual_rounds", 1)]);
    older.conn.srtt_us = 10_000;
    older.conn.is_cwnd_limited = 0;
    end_round(&mut older, 1, 0);
    older.conn.is_cwnd_limited = 1;
    take(&mut older, 100, 0);
    assert_eq!(window(&older), 100.0 + (0.16f64 * ONE).round() / ONE);
}

#[test]
fn on_the_shortest_paths_the_window_still_grows() {
    // (20 us / 25 ms)^2 of 2^20 is less than one: tcp_prague.c adds 2^-20 of a packet for each.
    for srtt_us in [1, 20, 100, 500] {
        let mut flow = settled(100, &[("rtt_virtual_rounds", 0)]);
        flow.conn.srtt_us = srtt_us;
        take(&mut flow, 7, 0);
        let step = ((f64::from(srtt_us) / 25e3).powi(2) * ONE).round();
        let grown = (7.0 * step / 100.0).round().max(7.0) / ONE;
        assert_eq!(window(&flow), 100.0 + grown, "{srtt_us}");
    }
}

#[test]
fn the_largest_windows_rate_is_whole() {
    // 2^20 packets of 64 KB in a microsecond fill 64 bits; a window of 16 million counts as many.
    for (cwnd, srtt_us) in [(1 << 20, 1u32), (1 << 24, 1), (1 << 24, 50_000)] {
        let flow = Caller::prepared("prague", cwnd, &[("startup_pacing_gain", 4096)], |conn| {
            (conn.srtt_us, conn.mss_bytes, conn.ecn_ok) = (srtt_us, 65_483, 1)
        });
        let expected = 4.0 * f64::from(1 << 20) * 65_483.0 * 1e6 / f64::from(srtt_us);
        let rate = flow.ctl.pacing_rate_bytes_per_s as f64;
        assert!((rate / expected - 1.0).abs() < 1e-3, "{rate} {expected}");
    }
}

#[test]
fn below_the_virtual_round_trip_rounds_and_turns_last_one() {
    let mut flow = settled(1024, &[("rtt_virtual_rounds", 0), ("gain_shift", 0)]);
    flow.conn.srtt_us = 10_000;
    flow.conn.is_cwnd_limited = 0;
    for (wait_us, count) in [(24_999, 0.0), (1, 1.0), (24_999, 1.0), (1, 2.0)] {
        flow.wait_us(wait_us);
        end_round(&mut flow, 2, 1);
        assert_eq!(flow.variable("round_count"), Some(count), "{wait_us}");
    }
    // alpha is 1/2 and a turn has begun at the last mark that cut.
    assert_eq!(alpha(&flow), 0.5);
    flow.wait_us(100_000);
    take(&mut flow, 1, 1);
    let before = window(&flow);
    for (wait_us, cuts) in [(24_999, false), (1, true)] {
        flow.wait_us(wait_us);
        take(&mut flow, 1, 1);
        assert_eq!(window(&flow) < before, cuts, "{wait_us}");
    }
}

#[test]
fn a_loss_halves_once_and_in_its_episode_nothing_else_changes_the_window() {
    // prague_enter_loss(), prague_state(): upon entering Recovery, and upon a timeout.
    for (kind, value, cuts) in [
        (EventKind::State, CaState::Recovery, true),
        (EventKind::Rto, CaState::Open, true),
        (EventKind::State, CaState::Cwr, false),
        (EventKind::State, CaState::Loss, false),
    ] {
        let mut flow = settled(100, &[OWN_RTT]);
        flow.event(kind, value as u32, 0);
        let expected = if cuts { 50.0 } else { 100.0 };
        assert_eq!(
            (window(&flow), flow.variable("in_loss")),
            (expected, Some(f64::from(u8::from(cuts))))
        );
        assert_eq!(flow.ctl.ssthresh, expected as u32);
        if !cuts {
            continue;
        }
        flow.conn.ca_state = CaState::Recovery as u8;
        flow.event(EventKind::State, CaState::Recovery as u32, 0);
        flow.wait_us(100_000);
        take(&mut flow, 8, 1);
        assert_eq!(window(&flow), 50.0, "{kind:?}");
        flow.event(EventKind::State, CaState::Open as u32, 0);
        assert_eq!(flow.variable("in_loss"), Some(0.0));
        take(&mut flow, 8, 0);
        assert!(window(&flow) > 50.0);
    }
    let mut milder = settled(100, &[OWN_RTT, ("loss_beta", 768)]);
    milder.event(EventKind::Rto, 0, 0);
    assert_eq!(window(&milder), 75.0);
    let mut first = prague(10, &[]);
    first.event(EventKind::Rto, 0, 0);
    assert_eq!(
        (first.variable("phase"), window(&first)),
        (Some(9.0), 5.0),
        "slow start is over"
    );
}

#[test]
fn an_undo_restores_both_windows_but_never_lowers_them() {
    let mut flow = settled(100, &[OWN_RTT]);
    flow.event(EventKind::Rto, 0, 0);
    flow.ctl.cwnd = 60;
    flow.event(EventKind::Undo, 0, 0);
    assert_eq!((window(&flow), flow.ctl.cwnd), (100.0, 100));
    flow.event(EventKind::State, CaState::Open as u32, 0);
    flow.conn.ca_state = CaState::Cwr as u8;
    flow.event(EventKind::State, CaState::Open as u32, 0);
    for _ in 0..3 {
        take(&mut flow, 100, 0);
    }
    let grown = (window(&flow), flow.ctl.cwnd);
    assert!(grown.0 > 102.0 && grown.1 > 100);
    flow.event(EventKind::Undo, 0, 0);
    assert_eq!((window(&flow), flow.ctl.cwnd), grown);
}

#[test]
fn it_paces_at_its_window_in_a_round_trip_and_twice_that_far_below_ssthresh() {
    // prague_update_pacing_rate(): cwnd < ssthresh / 2, and at least two packets' window.
    for (cwnd, ssthresh, changes, percent) in [
        (10, INFINITE, &[][..], 200),
        (10, 22, &[][..], 200),
        (10, 21, &[][..], 100),
        (10, 20, &[][..], 100),
        (10, INFINITE, &[("startup_pacing_gain", 1536)][..], 150),
        (10, 10, &[("pacing_gain", 1280)][..], 125),
        (1, 6, &[][..], 200),
    ] {
        let mut flow = prague(cwnd, changes);
        flow.conn.is_cwnd_limited = 0;
        flow.ctl.ssthresh = ssthresh;
        flow.deliver(1);
        let packets = u64::from(flow.ctl.cwnd.max(2));
        let expected = packets * u64::from(MSS) * 50 * percent / 100;
        assert_eq!(
            flow.ctl.pacing_rate_bytes_per_s, expected,
            "{cwnd} {ssthresh}"
        );
    }
}

#[test]
fn a_burst_is_a_quarter_of_a_millisecond_and_a_packet_at_least() {
    // 1000 packets in 20 ms are 12.5 in 250 us; twice that in slow start.
    for (cwnd, burst_us, ssthresh, most) in [
        (1000, 250, INFINITE, 25),
        (1000, 250, 1000, 12),
        (1000, 1000, 1000, 50),
        (100, 250, 100, 1),
        (240, 250, 240, 3),
        (1_000_000, 10_000, 1_000_000, 0xffff),
        (1000, 0, 1000, 0),
    ] {
        let mut flow = prague(cwnd, &[("burst_us", burst_us)]);
        flow.conn.is_cwnd_limited = 0;
        flow.ctl.tso_most = 0;
        flow.ctl.ssthresh = ssthresh;
        flow.deliver(1);
        assert_eq!(flow.ctl.tso_most, most, "{cwnd} {burst_us}");
    }
    // Version 0.6 of tcp_prague.c: the host's least, two packets.
    let mut earlier = prague(100, &[("min_burst", 2)]);
    earlier.ctl.ssthresh = 100;
    earlier.deliver(1);
    assert_eq!(earlier.ctl.tso_most, 2);
}

#[test]
fn without_a_round_trip_it_does_not_pace_by_itself_and_without_ecn_it_is_not_scalable() {
    let flow = Caller::prepared("prague", 10, &[], |conn| conn.packets_out = 3);
    // The contract's default: twice the window in a round trip, here of 1 us at the least.
    assert_eq!(
        flow.ctl.pacing_rate_bytes_per_s,
        2 * 10 * u64::from(MSS) * 1_000_000
    );
    assert_eq!(
        (flow.ctl.is_scalable, prague(10, &[]).ctl.is_scalable),
        (0, 1)
    );
    // Marks of before the connection's first ACK are not its own.
    let mut late = Caller::prepared("prague", 10, &[], |conn| {
        (conn.ecn_ok, conn.delivered_ce) = (1, 7)
    });
    late.deliver(1);
    assert_eq!(late.variable("phase"), Some(8.0));
}

#[test]
fn the_constants_are_the_drafts() {
    for (name, stored) in [
        ("gain_shift", 4),
        ("alpha_init", 1024),
        ("rtt_virtual_us", 25_000),
        ("rtt_virtual_rounds", 500),
        ("loss_beta", 512),
        ("startup_pacing_gain", 2048),
        ("pacing_gain", 1024),
        ("burst_us", 250),
    ] {
        assert_eq!(calls::stored("prague", name), stored, "{name}");
    }
}
