//! The host against RFC 5681, RFC 9002 and a path whose rate is known.

mod path;

use fullpipe_cc::CaState;
use fullpipe_quic_cc::host::{Congestion, Host, Sent};
use path::{host, run, Pacing, PACKET_BYTES, START_NS};

const RTT_NS: u64 = 20_000_000;

/// Sends a window, an RTT later everything but the first `losses` packets is acknowledged, and those are
/// lost. Returns the window after it, in packets.
fn round(host: &mut Host, now_ns: &mut u64, losses: usize) -> u32 {
    let packets = host.window_bytes() / PACKET_BYTES;
    *now_ns += 1000;
    let sent: Vec<Sent> = (0..packets)
        .map(|_| host.sent(*now_ns, PACKET_BYTES))
        .collect();
    *now_ns += RTT_NS;
    for sent in &sent[losses..] {
        host.acked(*now_ns, sent.at_ns, Some(*sent), PACKET_BYTES);
        host.acks_end(*now_ns, None, false);
    }
    for sent in &sent[..losses] {
        host.lost(*now_ns, Some(*sent), PACKET_BYTES);
        host.congested(*now_ns, sent.at_ns, Congestion::Loss);
    }
    host.cwnd_packets()
}

#[test]
fn reno_doubles_its_window_each_round_of_slow_start() {
    // RFC 5681 section 3.1; RFC 9002 section 7.2 has the initial window.
    let (mut reno, mut now_ns) = (host("reno"), START_NS);
    let windows: Vec<u32> = (0..4).map(|_| round(&mut reno, &mut now_ns, 0)).collect();
    assert_eq!(windows, [20, 40, 80, 160]);
}

#[test]
fn an_episode_of_losses_halves_renos_window_once() {
    // RFC 5681 section 3.1, equation 4; RFC 9002 section 7.3.2: one reduction a round trip.
    let (mut reno, mut now_ns) = (host("reno"), START_NS);
    round(&mut reno, &mut now_ns, 0);
    round(&mut reno, &mut now_ns, 0);
    let before = reno.cwnd_packets() + 40 - 3; // slow start goes on until the losses are seen
    assert_eq!(round(&mut reno, &mut now_ns, 3), before / 2);
    assert_eq!(reno.state(), CaState::Recovery);
    let after = before / 2;
    // The first ACK of a packet sent since then ends the episode. A window adds one packet.
    assert_eq!(round(&mut reno, &mut now_ns, 0), after + 1);
    assert_eq!(reno.state(), CaState::Open);
    assert_eq!(round(&mut reno, &mut now_ns, 0), after + 2);
}

#[test]
fn marks_reduce_as_losses_do() {
    // RFC 9002 section 7.1.
    let (mut reno, mut now_ns) = (host("reno"), START_NS);
    round(&mut reno, &mut now_ns, 0);
    let newest_ns = now_ns - RTT_NS;
    reno.marked(1);
    reno.congested(now_ns, newest_ns, Congestion::Marks);
    assert_eq!((reno.cwnd_packets(), reno.state()), (10, CaState::Cwr));
    reno.congested(now_ns, newest_ns, Congestion::Marks);
    assert_eq!(reno.cwnd_packets(), 10);
}

#[test]
fn persistent_congestion_leaves_the_least_window_and_slow_start() {
    // RFC 9002 sections 7.6.2 and 7.2.
    for name in ["reno", "cubic", "bbr3"] {
        let (mut host, mut now_ns) = (host(name), START_NS);
        round(&mut host, &mut now_ns, 0);
        let sent = host.sent(now_ns, PACKET_BYTES);
        now_ns += 10 * RTT_NS;
        host.lost(now_ns, Some(sent), PACKET_BYTES);
        host.congested(now_ns, sent.at_ns, Congestion::Persistent);
        assert_eq!(host.window_bytes(), 2 * PACKET_BYTES, "{name}");
        assert_eq!(host.state(), CaState::Loss, "{name}");
        assert!(round(&mut host, &mut now_ns, 0) >= 4, "{name}");
    }
}

#[test]
fn a_reduction_that_was_wrong_is_taken_back() {
    let (mut reno, mut now_ns) = (host("reno"), START_NS);
    round(&mut reno, &mut now_ns, 0);
    round(&mut reno, &mut now_ns, 1);
    let reduced = reno.cwnd_packets();
    reno.spurious();
    assert_eq!((reduced, reno.cwnd_packets()), (19, 39));
    assert_eq!((reno.ssthresh_bytes(), reno.state()), (None, CaState::Open));
}

#[test]
fn a_window_that_the_application_does_not_fill_does_not_grow() {
    // RFC 9002 section 7.8.
    let mut reno = host("reno");
    let sent = reno.sent(START_NS, PACKET_BYTES);
    reno.acked(START_NS + RTT_NS, sent.at_ns, Some(sent), PACKET_BYTES);
    reno.acks_end(START_NS + RTT_NS, Some(0), true);
    assert_eq!(reno.cwnd_packets(), 10);
}

#[test]
fn an_ack_that_seems_to_precede_its_packet_is_no_rtt_sample() {
    let mut bbr3 = host("bbr3");
    for late_ns in [0, RTT_NS, 0] {
        let sent = bbr3.sent(START_NS + RTT_NS, PACKET_BYTES);
        let now_ns = sent.at_ns + late_ns - 500;
        bbr3.acked(now_ns, sent.at_ns, Some(sent), PACKET_BYTES);
        bbr3.acks_end(now_ns, None, false);
    }
    assert_eq!(bbr3.smoothed_rtt_us(), Some(RTT_NS / 1000 - 1));
    assert_eq!(
        bbr3.variable("min_rtt_us"),
        Some((RTT_NS / 1000 - 1) as f64)
    );
}

#[test]
fn larger_datagrams_keep_the_window_in_bytes() {
    let (mut reno, mut now_ns) = (host("reno"), START_NS);
    round(&mut reno, &mut now_ns, 0);
    let before = reno.window_bytes();
    reno.datagram_size(1452);
    assert!(reno.window_bytes() >= before && reno.window_bytes() < before + 1452);
}

#[test]
fn bbr3_finds_the_rate_of_the_path_within_a_packet() {
    // A packet of 1,250 bytes takes 1 ms at 10 Mbit/s; a sample spans an RTT of 40 packets.
    let (rate_bps, rtt_ns) = (10_000_000, 39_000_000);
    let seen = run("bbr3", rate_bps, rtt_ns, 20, Pacing::Rate);
    let max_bw_bps = seen.host.variable("max_bw_bps").expect("it has samples");
    let packet_bps = PACKET_BYTES as f64 * 8e9 / rtt_ns as f64;
    assert!(
        (max_bw_bps - rate_bps as f64).abs() <= packet_bps,
        "{max_bw_bps}"
    );
    let min_rtt_us = seen.host.variable("min_rtt_us").expect("it has samples");
    assert_eq!(min_rtt_us, 40_000.0);
    assert!(
        seen.goodput_bps > 0.9 * rate_bps as f64,
        "{}",
        seen.goodput_bps
    );
}

#[test]
fn a_rate_that_the_stack_does_not_read_works_through_the_window() {
    // The path holds 40 ms. bbr3's own window is twice that, and without a rate the other half would stand
    // in the queue.
    let seen = |pacing| run("bbr3", 10_000_000, 39_000_000, 20, pacing);
    let (rate, window, alone) = (
        seen(Pacing::Rate),
        seen(Pacing::Window),
        seen(Pacing::WindowAlone),
    );
    for seen in [&rate, &window, &alone] {
        println!(
            "{:.3e} bit/s, {:.3e} ns",
            seen.goodput_bps, seen.mean_queue_ns
        );
    }
    assert!(window.goodput_bps > 0.97 * rate.goodput_bps);
    assert!(window.mean_queue_ns < rate.mean_queue_ns + 2e6);
    assert!(alone.mean_queue_ns > 30e6);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let states = || {
        let seen = run("bbr3", 10_000_000, 39_000_000, 8, Pacing::Rate);
        format!("{:?}", seen.host.variables())
    };
    assert_eq!(states(), states());
}
