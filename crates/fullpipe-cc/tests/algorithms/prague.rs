//! Prague against draft-briscoe-iccrg-prague-congestion-control: by hand, and against the law that
//! its rules give.

use crate::calls::{Caller, MSS};
use fullpipe_cc::{CaState, EventKind};

/// A connection that negotiated ECN.
fn prague(cwnd: u32, changes: &[(&str, u32)]) -> Caller {
    Caller::prepared("prague", cwnd, changes, |conn| {
        conn.ecn_ok = 1;
        conn.srtt_us = 20_000;
    })
}

/// A round trip of ACKs, one a packet; `is_marked` says of each packet whether it came marked.
fn round(flow: &mut Caller, rtt_us: u64, mut is_marked: impl FnMut(u32) -> bool) {
    let packets = u64::from(flow.ctl.cwnd);
    let begin_us = flow.conn.now_us;
    flow.conn.srtt_us = rtt_us as u32;
    for packet in 1..=packets {
        flow.wait_us(begin_us + rtt_us * packet / packets - flow.conn.now_us);
        flow.conn.delivered = flow.conn.delivered.wrapping_add(1);
        flow.conn.delivered_ce += u32::from(is_marked(flow.conn.delivered));
        flow.ack(1);
    }
}

/// Behind slow start, with `changes` to the constants.
fn settled(cwnd: u32, changes: &[(&str, u32)]) -> Caller {
    let mut flow = prague(2 * cwnd, changes);
    round(&mut flow, 20_000, |number| number == 1);
    flow
}

#[test]
fn the_first_mark_ends_slow_start_and_halves() {
    let mut flow = prague(20, &[]);
    assert_eq!(flow.ctl.is_scalable, 1);
    round(&mut flow, 20_000, |_| false);
    assert_eq!(flow.ctl.cwnd, 40);
    round(&mut flow, 20_000, |number| number == 21);
    assert_eq!(flow.ctl.ssthresh, 20);
    assert!((20..=22).contains(&flow.ctl.cwnd), "{}", flow.ctl.cwnd);
}

#[test]
fn without_ecn_its_packets_are_not_ect1() {
    assert_eq!(Caller::new("prague", 10).ctl.is_scalable, 0);
}

#[test]
fn it_grows_by_a_packet_a_round_also_while_it_is_marked() {
    let mut flow = settled(100, &[("alpha_init", 0), ("gain_shift", 10)]);
    let before = flow.ctl.cwnd;
    for _ in 0..20 {
        // One mark in a hundred, whose alpha hardly weighs.
        round(&mut flow, 40_000, |number| number % 100 == 0);
        flow.conn.ca_state = CaState::Cwr as u8;
    }
    assert!(
        (before + 17..=before + 20).contains(&flow.ctl.cwnd),
        "{before} {}",
        flow.ctl.cwnd
    );
}

#[test]
fn below_the_virtual_round_trip_it_grows_by_the_square_of_the_ratio() {
    // Reduced RTT-dependence: 10 ms of 20 ms: a quarter of a packet a round.
    let changes = [("rtt_virtual_us", 20_000), ("rtt_virtual_rounds", 0)];
    let mut flow = settled(50, &changes);
    round(&mut flow, 10_000, |_| false);
    let before = flow.ctl.cwnd;
    for _ in 0..40 {
        round(&mut flow, 10_000, |_| false);
    }
    assert!(
        (9..=11).contains(&(flow.ctl.cwnd - before)),
        "{}",
        flow.ctl.cwnd - before
    );
}

#[test]
fn a_flow_is_of_its_own_round_trip_until_it_has_lived_some_rounds() {
    let growth = |rounds| {
        let mut flow = settled(
            50,
            &[("rtt_virtual_us", 20_000), ("rtt_virtual_rounds", rounds)],
        );
        let before = flow.ctl.cwnd;
        for _ in 0..20 {
            round(&mut flow, 10_000, |_| false);
        }
        flow.ctl.cwnd - before
    };
    assert!((18..=20).contains(&growth(500)), "{}", growth(500));
    assert!((4..=6).contains(&growth(0)), "{}", growth(0));
}

#[test]
fn a_loss_halves_and_its_undoing_restores() {
    let mut flow = settled(100, &[]);
    let before = flow.ctl.cwnd;
    flow.event(EventKind::State, CaState::Recovery as u32, 0);
    assert!(
        flow.ctl.ssthresh.abs_diff(before / 2) <= 1,
        "{}",
        flow.ctl.ssthresh
    );
    flow.conn.ca_state = CaState::Recovery as u8;
    // A packet an ACK, and no growth.
    flow.ack(1);
    assert_eq!(flow.ctl.cwnd, before - 1);
    flow.event(EventKind::Undo, 0, 0);
    assert_eq!(flow.ctl.cwnd, before);
}

#[test]
fn it_paces_at_its_window_in_a_round_trip_in_bursts_of_a_quarter_of_a_millisecond() {
    let mut flow = settled(400, &[]);
    round(&mut flow, 40_000, |_| false);
    let rate = f64::from(flow.ctl.cwnd) * f64::from(MSS) / 0.040;
    let paced = flow.ctl.pacing_rate_bytes_per_s as f64;
    assert!((paced / rate - 1.0).abs() < 0.01, "{paced} {rate}");
    assert_eq!(
        u32::from(flow.ctl.tso_most),
        (paced * 0.00025 / f64::from(MSS)) as u32
    );
}

#[test]
fn bursts_hold_one_packet_and_two_as_before_0_7() {
    // prague_tso_segs(): from version 0.7 on at least one packet; before, not below sysctl
    // tcp_min_tso_segs, whose default is 2. Ten packets in 10 ms are 0.25 packets in a quarter of a
    // millisecond.
    for (changes, packets) in [(&[][..], 1), (&[("min_burst", 2)][..], 2)] {
        let mut flow = settled(10, changes);
        round(&mut flow, 10_000, |_| false);
        assert_eq!(flow.ctl.tso_most, packets);
    }
}

#[test]
fn its_window_is_two_over_the_marking_probability() {
    // RFC 9332 appendix A and the DCTCP law for random marks: growth of a packet a round against
    // half of p of the window a round gives W = 2 / p.
    for (one_in, rtt_us) in [(20u32, 30_000u64), (50, 40_000)] {
        let mut flow = settled(2 * one_in, &[]);
        let (mut random, mut windows) = (1u32, Vec::new());
        for number in 0..1200 {
            round(&mut flow, rtt_us, |_| {
                random ^= random << 13;
                random ^= random >> 17;
                random ^= random << 5;
                random % one_in == 0
            });
            if number > 200 {
                windows.push(f64::from(flow.ctl.cwnd));
            }
        }
        let mean = windows.iter().sum::<f64>() / windows.len() as f64;
        let law = 2.0 * f64::from(one_in);
        assert!((mean / law - 1.0).abs() < 0.2, "1/{one_in}: {mean} {law}");
    }
}
