//! RFC 5681: how a window grows, with Linux's count of packets instead of ACKs (RFC 3465).

use super::peer::{ack, config, numbers, reno, sack, sender, sends, with_cwnd, MS, RTT, START};
use fullpipe_plan::Kernel;
use fullpipe_tcp::{Sender, SenderConfig};

/// Sends a window and acknowledges each packet an RTT later; returns the window then.
fn round(sender: &mut Sender, now_ns: u64) -> u32 {
    let packets = sends(sender, now_ns);
    for packet in &packets {
        sender.on_ack(now_ns + RTT, &ack(packet.number + 1, packet.departs_ns));
    }
    sender.cwnd()
}

/// A connection in congestion avoidance after one loss in a window of ten. The ACK that ended recovery
/// has begun to raise the window again, as in tcp_cong_control().
fn in_avoidance() -> (Sender, u64) {
    let mut sender = reno();
    sends(&mut sender, START);
    let mut now_ns = START + RTT;
    for end in 2..=10 {
        sender.on_ack(now_ns, &sack(0, START, &[(1, end)]));
    }
    let again = sends(&mut sender, now_ns);
    assert_eq!(again[0].number, 0);
    now_ns += RTT;
    let next = again.iter().map(|packet| packet.number).max().unwrap() + 1;
    sender.on_ack(now_ns, &ack(next.max(10), START + RTT));
    assert_eq!((sender.ssthresh(), sender.cwnd()), (Some(5), 6));
    (sender, now_ns)
}

#[test]
fn exactly_the_initial_window_is_sent_at_once() {
    let mut sender = reno();
    assert_eq!(
        numbers(&sends(&mut sender, START)),
        (0..10).collect::<Vec<_>>()
    );
    assert_eq!(sender.inflight(), 10);
    assert!(sends(&mut sender, START + MS).is_empty());
}

#[test]
fn slow_start_doubles_the_window_every_round() {
    let mut sender = reno();
    for (index, window) in [20, 40, 80, 160].into_iter().enumerate() {
        assert_eq!(round(&mut sender, START + index as u64 * RTT), window);
    }
}

#[test]
fn slow_start_counts_packets_and_not_acks() {
    // RFC 3465 with L unbounded, as Linux: ten packets acknowledged by one ACK grow it by ten.
    let mut sender = reno();
    sends(&mut sender, START);
    sender.on_ack(START + RTT, &ack(10, START));
    assert_eq!(sender.cwnd(), 20);
}

#[test]
fn congestion_avoidance_adds_one_packet_a_round() {
    let (mut sender, mut now_ns) = in_avoidance();
    for window in 7..30 {
        now_ns += RTT;
        assert_eq!(round(&mut sender, now_ns), window);
    }
}

#[test]
fn a_window_that_the_application_does_not_fill_does_not_grow() {
    // RFC 7661's concern, tcp_is_cwnd_limited(): in slow start up to twice what was used.
    let mut sender = sender(
        "reno",
        SenderConfig {
            written_by_application: true,
            ..config()
        },
    );
    for index in 0..50 {
        sender.write(2);
        round(&mut sender, START + index * RTT);
    }
    assert_eq!(sender.cwnd(), 10);
}

#[test]
fn after_an_idle_timeout_the_window_halves_for_each_timeout_but_not_below_the_initial_one() {
    // RFC 2861 as tcp_cwnd_restart(): the timeout is 200 ms above the RTT of 40 ms.
    let mut idle = sender(
        "reno",
        SenderConfig {
            written_by_application: true,
            ..config()
        },
    );
    let mut now_ns = START;
    for packets in [10, 20, 40, 80] {
        idle.write(packets);
        round(&mut idle, now_ns);
        now_ns += RTT;
    }
    while !idle.is_drained() {
        // The send buffer could not take the last write at once.
        round(&mut idle, now_ns);
        now_ns += RTT;
    }
    let window = idle.cwnd();
    assert!(window / 4 > 10);
    let timeout_ns = RTT + 200 * MS;
    idle.write(1);
    now_ns = now_ns - RTT + 5 * timeout_ns / 2;
    sends(&mut idle, now_ns);
    assert_eq!(idle.cwnd(), window / 4);
    idle.on_ack(now_ns + RTT, &ack(151, now_ns));
    idle.write(1);
    sends(&mut idle, now_ns + 100 * timeout_ns);
    assert_eq!(idle.cwnd(), 10);
}

#[test]
fn the_receive_window_bounds_the_flight() {
    let mut sender = with_cwnd(100);
    let first = sends(&mut sender, START);
    assert_eq!(first.len(), 100);
    let mut small = ack(100, START);
    small.window_bytes = 7 * u64::from(super::peer::MSS) + 100;
    sender.on_ack(START + RTT, &small);
    assert_eq!(sends(&mut sender, START + RTT).len(), 7);
}

#[test]
fn before_linux_6_1_a_window_limited_flight_could_count_as_not_limited() {
    // tcp_cwnd_validate(): 5.13 did not note that the window limited a flight if an earlier one was as
    // large, so five acknowledged packets do not raise the window. Later kernels count them, with the one
    // that ended recovery, as a window of six and add one.
    let grown = |kernel: Kernel| {
        let settings = SenderConfig {
            rules: kernel.into(),
            gso_max_segments: 2,
            initial_cwnd: 12,
            written_by_application: true,
            ..config()
        };
        let mut sender = sender("reno", settings);
        sender.write(12);
        assert_eq!(sends(&mut sender, START).len(), 12);
        sender.on_ack(START + RTT, &sack(0, START, &[(1, 12)]));
        assert_eq!(sends(&mut sender, START + RTT).len(), 1);
        sender.on_ack(START + 2 * RTT, &ack(12, START + RTT));
        assert_eq!(sender.cwnd(), 6);
        let begins_ns = START + 3 * RTT;
        sender.write(4);
        assert_eq!(sends(&mut sender, begins_ns).len(), 4);
        sender.write(1);
        assert_eq!(sends(&mut sender, begins_ns + RTT * 6 / 10 - 1).len(), 1);
        sender.write(2);
        assert_eq!(
            sends(&mut sender, begins_ns + RTT * 6 / 10).len(),
            0,
            "held back"
        );
        sender.on_ack(begins_ns + RTT, &ack(17, begins_ns));
        sender.cwnd()
    };
    assert_eq!((grown(Kernel::Linux5_13), grown(Kernel::Linux6_4)), (6, 7));
}

#[test]
fn a_window_that_its_application_leaves_unused_is_kept_while_acks_come() {
    // tcp_cong_avoid() stamps snd_cwnd_stamp, so RFC 2861's decay (tcp_cwnd_application_limited()) waits for
    // a timeout without an ACK that advances.
    let mut sender = sender(
        "reno",
        SenderConfig {
            written_by_application: true,
            ..config()
        },
    );
    let mut now_ns = START;
    for packets in [10, 20] {
        sender.write(packets);
        round(&mut sender, now_ns);
        now_ns += RTT;
    }
    assert_eq!(sender.cwnd(), 40);
    for _ in 0..13 {
        sender.write(2);
        assert_eq!(round(&mut sender, now_ns), 40);
        now_ns += RTT;
    }
}
