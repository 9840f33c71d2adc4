//! Delivery-rate samples: draft-ietf-ccwg-bbr section 4.1, tcp_rate.c.

use super::peer::{ack, config, expires, sender, sends, MS, MSS, RTT, START};
use fullpipe_plan::RateRestart;
use fullpipe_tcp::{Sender, SenderConfig};

const PACKET_BITS: u64 = MSS as u64 * 8;

/// A sender whose application writes packet by packet.
fn application() -> Sender {
    sender(
        "reno",
        SenderConfig {
            initial_cwnd: 1000,
            written_by_application: true,
            ..config()
        },
    )
}

fn write_spaced(sender: &mut Sender, count: u64, from_ns: u64, gap_ns: u64) {
    for index in 0..count {
        sender.write(1);
        assert_eq!(sends(sender, from_ns + index * gap_ns).len(), 1);
    }
}

/// The packets of a window sent at once, acknowledged one by one.
fn ack_spaced(sender: &mut Sender, first: u32, count: u32, from_ns: u64, gap_ns: u64) {
    for index in 0..count {
        let now_ns = from_ns + u64::from(index) * gap_ns;
        sender.on_ack(now_ns, &ack(first + index + 1, now_ns - RTT));
    }
}

#[test]
fn compressed_acks_do_not_raise_the_rate_above_the_send_rate() {
    // The interval is the larger of the send and the ACK interval.
    let mut sender = application();
    write_spaced(&mut sender, 200, START, MS);
    // ACKs of 100 ms arrive at once.
    let now_ns = START + 199 * MS + RTT;
    for next in 1..=200 {
        sender.on_ack(now_ns, &ack(next, START + u64::from(next - 1) * MS));
    }
    let most = PACKET_BITS * 1000;
    assert!(
        sender.delivery_rate_bps() <= most * 201 / 199,
        "{}",
        sender.delivery_rate_bps()
    );
}

#[test]
fn a_burst_is_rated_at_the_speed_of_its_acks() {
    let mut sender = sender(
        "reno",
        SenderConfig {
            initial_cwnd: 100,
            ..config()
        },
    );
    assert_eq!(sends(&mut sender, START).len(), 100);
    ack_spaced(&mut sender, 0, 100, START + RTT, MS);
    let interval_ms = (RTT + 99 * MS) / MS;
    assert_eq!(
        sender.delivery_rate_bps(),
        100 * PACKET_BITS * 1000 / interval_ms
    );
}

#[test]
fn a_steady_flow_is_rated_at_its_rate() {
    let mut sender = application();
    let rtt_ms = RTT / MS;
    for index in 0..500 {
        let now_ns = START + index * MS;
        sender.write(1);
        sends(&mut sender, now_ns);
        if index >= rtt_ms {
            sender.on_ack(now_ns, &ack((index - rtt_ms) as u32 + 1, now_ns - RTT));
        }
    }
    assert_eq!(sender.delivery_rate_bps(), PACKET_BITS * 1000);
}

#[test]
fn an_application_limited_sample_does_not_lower_the_rate() {
    let mut sender = application();
    sender.write(100);
    sends(&mut sender, START);
    ack_spaced(&mut sender, 0, 100, START + RTT, MS / 10);
    let fast = sender.delivery_rate_bps();
    // One packet per RTT.
    for index in 0..10 {
        let now_ns = START + (4 + index) * RTT;
        sender.write(1);
        sends(&mut sender, now_ns);
        sender.on_ack(now_ns + RTT, &ack(101 + index as u32, now_ns));
        assert_eq!(sender.delivery_rate_bps(), fast);
    }
}

#[test]
fn an_application_limited_sample_that_is_higher_counts() {
    let mut sender = application();
    for index in 0..3 {
        let now_ns = START + index * RTT;
        sender.write(1);
        sends(&mut sender, now_ns);
        sender.on_ack(now_ns + RTT, &ack(index as u32 + 1, now_ns));
    }
    let slow = sender.delivery_rate_bps();
    let now_ns = START + 4 * RTT;
    sender.write(50);
    sends(&mut sender, now_ns);
    ack_spaced(&mut sender, 3, 50, now_ns + RTT, MS / 100);
    assert!(sender.delivery_rate_bps() > 20 * slow);
}

#[test]
fn a_flow_that_always_has_data_is_never_application_limited() {
    // A falling rate is therefore used at once.
    let mut sender = sender(
        "reno",
        SenderConfig {
            initial_cwnd: 100,
            ..config()
        },
    );
    sends(&mut sender, START);
    ack_spaced(&mut sender, 0, 100, START + RTT, MS / 10);
    let fast = sender.delivery_rate_bps();
    let now_ns = START + RTT + 10 * MS;
    let count = sends(&mut sender, now_ns).len() as u32;
    ack_spaced(&mut sender, 100, count, now_ns + RTT, 10 * MS);
    assert!(sender.delivery_rate_bps() < fast / 2);
}

#[test]
fn a_spurious_timeout_starts_a_new_interval_only_where_lost_packets_do_not_count() {
    // 100 packets are delayed for longer than the timeout, and their ACK comes an RTT after it. Linux
    // divides by all that time, the rule before pull request 56 of draft-ietf-ccwg-bbr by the RTT.
    for restart in [RateRestart::Unacknowledged, RateRestart::Inflight] {
        let mut sender = sender(
            "reno",
            SenderConfig {
                initial_cwnd: 100,
                rate_restart: restart,
                ..config()
            },
        );
        assert_eq!(sends(&mut sender, START).len(), 100);
        let mut timeout_ns = START;
        while sender.totals().timeouts == 0 {
            timeout_ns = expires(&mut sender).0;
        }
        sender.on_ack(timeout_ns + RTT, &ack(100, START));
        let begin_ns = match restart {
            RateRestart::Unacknowledged => START,
            RateRestart::Inflight => timeout_ns,
        };
        let interval_us = (timeout_ns + RTT) / 1000 - begin_ns / 1000;
        let expected_bps = 100 * PACKET_BITS * 1_000_000 / interval_us;
        assert_eq!(sender.delivery_rate_bps(), expected_bps, "{restart:?}");
    }
}
