//! A receive window that closes, and how its sender finds out that it is open again: tcp_check_probe_timer(),
//! tcp_ack_probe(), tcp_send_probe0(), tcp_write_wakeup(), and tcp_oow_rate_limited() of the receiver
//! (RFC 9293 section 3.8.6.1).

use fullpipe_tcp::Data;

use super::reader::{data, Reader, Terms};
use super::script::{ack, Script, Setup, MS, MSS};

/// Two of three packets were sent and acknowledged at 40 ms by an ACK that closes the window.
fn closed() -> Script {
    let mut script = Script::new(Setup {
        cwnd: 2,
        is_written: true,
        ..Setup::default()
    });
    assert_eq!(script.writes(3), "0 1");
    let sent = script.at(40 * MS).gets(ack(2).window(0));
    assert_eq!(sent, "");
    script
}

/// The timeout after one RTT sample of 40 ms, which comes with a least deviation of 200 ms.
const RTO: u64 = 240 * MS;

#[test]
fn a_closed_window_is_probed_after_a_timeout_and_then_at_doubled_waits() {
    let mut script = closed();
    let mut begun_ns = 40 * MS;
    for doublings in 0..4 {
        assert_eq!(script.exact_timer(), begun_ns + (RTO << doublings));
        // The packet that was acknowledged last, without its data.
        assert_eq!(script.fires(), "1");
        begun_ns = script.now();
    }
    assert_eq!(script.totals().packets_retransmitted, 0);
    assert_eq!(script.flight(), 0);
}

#[test]
fn a_probe_carries_no_data_and_is_no_packet_in_flight() {
    let mut script = closed();
    let probe = script.fires_packets();
    assert_eq!(probe.len(), 1);
    assert!(probe[0].is_window_probe() && !probe[0].is_retransmission && !probe[0].push);
}

#[test]
fn an_ack_that_keeps_the_window_closed_puts_the_next_probe_off() {
    let mut script = closed();
    script.fires();
    let answered_ns = script.now() + 40 * MS;
    assert_eq!(script.at(answered_ns).gets(ack(2).window(0)), "");
    assert_eq!(script.exact_timer(), answered_ns + 2 * RTO);
}

#[test]
fn an_ack_that_opens_the_window_ends_the_probes() {
    let mut script = closed();
    script.fires();
    let answered_ns = script.now() + 40 * MS;
    let sent = script.at(answered_ns).gets(ack(2).window(u64::from(MSS)));
    assert_eq!((sent.as_str(), script.flight()), ("2", 1));
    let ended_ns = answered_ns + 40 * MS;
    script.at(ended_ns).gets(ack(3));
    assert_eq!(script.timer(), None);
    // The next closed window is probed after the first wait again.
    script.writes(1);
    script.at(ended_ns + 40 * MS).gets(ack(4).window(0));
    script.writes(1);
    assert_eq!(script.exact_timer(), ended_ns + 40 * MS + RTO);
}

#[test]
fn a_window_that_opens_after_a_timeout_finds_half_the_congestion_window() {
    // tcp_ack_update_window(), tcp_cwnd_restart(): a half for each timeout, 10 at least.
    for (idle_ns, cwnd) in [
        (RTO - 4 * MS, 40),
        (RTO + 8 * MS, 20),
        (2 * RTO + 8 * MS, 10),
    ] {
        let mut script = closed();
        script.sets_window(40, 20);
        // The packets left at 0 ms; probes do not count.
        while script.timer().is_some_and(|due_ns| due_ns <= idle_ns) {
            script.fires();
        }
        script.at(idle_ns).takes(ack(2).window(u64::from(MSS)));
        assert_eq!(script.cwnd(), cwnd, "{idle_ns}");
    }
}

#[test]
fn a_window_of_less_than_a_packet_is_filled_by_the_first_probe() {
    let mut script = Script::new(Setup {
        cwnd: 2,
        is_written: true,
        ..Setup::default()
    });
    script.writes(3);
    assert_eq!(script.at(40 * MS).gets(ack(2).window(500)), "");
    let sent = script.fires_packets();
    let packet = |data: &Data| (data.number, data.payload_bytes, data.push);
    assert_eq!(
        sent.iter().map(packet).collect::<Vec<_>>(),
        [(2, 500, true)]
    );
    assert_eq!(script.flight(), 1);
    // What is left of the packet follows.
    let rest_ns = script.now() + 40 * MS;
    script.at(rest_ns).takes(ack(3).window(5_000));
    assert_eq!(
        script.packets().iter().map(packet).next(),
        Some((3, 948, true))
    );
}

#[test]
fn an_application_that_has_written_nothing_is_not_probed_for() {
    let mut script = Script::new(Setup {
        cwnd: 2,
        is_written: true,
        ..Setup::default()
    });
    script.writes(2);
    script.at(40 * MS).gets(ack(2).window(0));
    assert_eq!(script.timer(), None);
    // What it writes then waits for a probe.
    script.at(50 * MS).writes(1);
    assert_eq!(script.exact_timer(), 50 * MS + RTO);
}

#[test]
fn a_receiver_answers_one_probe_in_half_a_second_with_its_window() {
    let probe = Data {
        payload_bytes: 0,
        ..data(1)
    };
    let mut reader = Reader::settled(Terms::default(), 2);
    let mut answered = Vec::new();
    for at_ms in [300, 301, 799, 800, 1_299, 1_300] {
        let answer = reader.at(at_ms * MS).gets(probe);
        if !answer.is_empty() {
            assert_eq!(
                (answer.as_str(), reader.last().window_bytes),
                ("2", 1 << 20)
            );
            answered.push(at_ms);
        }
    }
    assert_eq!(answered, [300, 800, 1_300]);
}
