//! TCP small queues (tcp_small_queue_check()), and bursts.

use super::peer::{
    ack, config, numbers, reno, reno_offered, sack, sender, sender_over, sends, MS, MSS, RTT, START,
};
use fullpipe_plan::{Kernel, Pacing};
use fullpipe_tcp::{Ack, Data, Sender, SenderConfig};

/// A connection with fq whose pacing rate is 1.2 windows per RTT (tcp_update_pacing_rate()).
fn under_fq(pacing_shift: u8) -> Sender {
    under_fq_with(SenderConfig {
        pacing_shift,
        initial_cwnd: 1000,
        ..config()
    })
}

fn under_fq_with(settings: SenderConfig) -> Sender {
    let settings = SenderConfig {
        pacing: Pacing::Fq,
        gso_max_segments: 45,
        ..settings
    };
    let mut sender = sender("reno", settings);
    let first = sends(&mut sender, START);
    for packet in &first {
        sender.departed(packet);
    }
    let sent = first.iter().map(|packet| packet.number).max().unwrap() + 1;
    sender.on_ack(START + RTT, &ack(sent, START));
    sender
}

#[test]
fn small_queues_bound_the_time_queued_below_tcp() {
    // sk_pacing_shift 10, 9, 8, 7: about 1, 2, 4, 8 ms at the pacing rate.
    for shift in [10, 9, 8, 7] {
        let mut sender = under_fq(shift);
        let waiting: u64 = sends(&mut sender, START + RTT)
            .iter()
            .map(|packet| u64::from(packet.payload_bytes))
            .sum();
        let allowed = sender.pacing_rate().unwrap() >> shift;
        let burst = allowed.min(45 * u64::from(MSS));
        assert!(waiting > allowed, "shift {shift}: {waiting} of {allowed}");
        assert!(
            waiting <= allowed + 2 * burst,
            "shift {shift}: {waiting} of {allowed}"
        );
    }
}

#[test]
fn at_most_4_mb_are_queued_below_tcp_since_6_16() {
    // tcp_limit_output_bytes: 8 ms at 870 MB/s are 6.8 MB. Memory counts (truesize): 896 bytes a burst
    // beside its payload.
    let waiting = |kernel: Kernel| -> u64 {
        let mut sender = under_fq_with(SenderConfig {
            pacing_shift: 7,
            initial_cwnd: 20_000,
            rules: kernel.into(),
            ..config()
        });
        let packets = sends(&mut sender, START + RTT);
        let memory = |one: &Data| u64::from(one.payload_bytes) + 896 * u64::from(one.leads_burst);
        packets.iter().map(memory).sum()
    };
    let burst = 45 * u64::from(MSS) + 896;
    for newer in [Kernel::Linux6_18, Kernel::Linux7_3] {
        assert!((4 << 20..(4 << 20) + 2 * burst).contains(&waiting(newer)));
    }
    assert!(waiting(Kernel::default()) > 6_500_000);
}

#[test]
fn two_small_bursts_may_wait_below_tcp_and_no_third() {
    // tcp_small_queue_check() compares sk_wmem_alloc, which counts the socket itself as one byte, with
    // twice the next buffer's memory. At 1.4 MB/s a burst has two packets, and a millisecond is less.
    let mut sender = under_fq_with(SenderConfig {
        initial_cwnd: 20,
        ..config()
    });
    let out = sends(&mut sender, START + RTT);
    let bursts = out.chunk_by(|_, next| !next.leads_burst);
    assert_eq!(bursts.map(<[Data]>::len).collect::<Vec<_>>(), [2, 2]);
}

#[test]
fn one_buffer_alone_never_stops_the_next() {
    // tcp_rtx_queue_empty_or_single_skb(): twenty packets are more than two buffers of one packet and
    // more than 2^-14 s at 290 MB/s.
    let settings = SenderConfig {
        pacing: Pacing::Fq,
        pacing_shift: 14,
        gso_max_segments: 45,
        initial_cwnd: 100,
        written_by_application: true,
        ..config()
    };
    let mut sender = sender_over(MS, "reno", settings);
    let mut sent = |packets: u32| {
        sender.write(packets);
        sends(&mut sender, START).len()
    };
    assert_eq!((sent(20), sent(1), sent(1)), (20, 1, 0));
}

#[test]
fn packets_that_depart_make_room_below_tcp_one_by_one() {
    let mut sender = under_fq(10);
    let mut waiting = sends(&mut sender, START + RTT);
    let limit: usize = waiting.len();
    for _ in 0..20 {
        let at_ns = waiting[0].departs_ns;
        let leaving = waiting
            .iter()
            .take_while(|packet| packet.departs_ns == at_ns)
            .count();
        for packet in waiting.drain(..leaving) {
            sender.departed(&packet);
        }
        waiting.extend(sends(&mut sender, at_ns));
        assert!(waiting.len() <= limit, "{} of {limit}", waiting.len());
    }
}

#[test]
fn departed_packets_make_room_below_tcp() {
    let mut sender = under_fq(10);
    let waiting = sends(&mut sender, START + RTT);
    assert!(sends(&mut sender, START + RTT).is_empty());
    for packet in &waiting {
        sender.departed(packet);
    }
    assert!(!sends(&mut sender, START + RTT).is_empty());
}

#[test]
fn retransmissions_may_queue_twice_as_much_as_new_data() {
    // The factor of tcp_small_queue_check(). BBRv1's pacing rate, and so the limit, does not fall with a
    // loss.
    let settings = SenderConfig {
        pacing: Pacing::Fq,
        initial_cwnd: 1000,
        gso_max_segments: 45,
        ..config()
    };
    let mut sender = sender("bbr1", settings);
    let mut sent = 0;
    while sent < 1000 {
        for packet in sends(&mut sender, START) {
            sender.departed(&packet);
            sent += 1;
        }
    }
    sender.on_ack(START + RTT, &ack(500, START));
    assert!(!sends(&mut sender, START + RTT).is_empty());
    assert!(sends(&mut sender, START + RTT).is_empty());
    sender.on_ack(START + RTT, &sack(500, START, &[(501, 600)]));
    let again = sends(&mut sender, START + RTT);
    let repaired: Vec<(u32, bool)> = again
        .iter()
        .map(|packet| (packet.number, packet.is_retransmission))
        .collect();
    assert_eq!(repaired, [(500, true)]);
}

#[test]
fn a_burst_lasts_about_a_millisecond_at_the_pacing_rate() {
    // tcp_tso_autosize(): pacing rate >> sk_pacing_shift, at least two packets.
    let mut sender = under_fq(10);
    let out = sends(&mut sender, START + RTT);
    let leaders: Vec<usize> = (0..out.len())
        .filter(|&index| out[index].leads_burst)
        .collect();
    let per_ms = (sender.pacing_rate().unwrap() >> 10) / u64::from(MSS);
    for pair in leaders.windows(2) {
        assert_eq!((pair[1] - pair[0]) as u64, per_ms.clamp(2, 45));
    }
    assert!(leaders.len() > 1);
}

#[test]
fn bursts_depart_spaced_at_the_pacing_rate() {
    let mut sender = under_fq(9);
    let out = sends(&mut sender, START + RTT);
    let rate = sender.pacing_rate().unwrap();
    let bytes: u64 = out
        .iter()
        .map(|packet| u64::from(packet.payload_bytes))
        .sum();
    let last = out.iter().rev().find(|packet| packet.leads_burst).unwrap();
    let span_ns = last.departs_ns - out[0].departs_ns;
    let burst = out
        .iter()
        .filter(|packet| packet.departs_ns == last.departs_ns)
        .count() as u64;
    let spaced = bytes - burst * u64::from(MSS);
    // The first burst after a pause has a credit of up to half a burst.
    let expected_ns = spaced * 1_000_000_000 / rate;
    assert!(
        span_ns <= expected_ns && span_ns >= expected_ns / 2,
        "{span_ns} {expected_ns}"
    );
}

/// The packets with PSH.
fn pushed(mut packets: Vec<Data>) -> Vec<u32> {
    packets.retain(|packet| packet.push);
    numbers(&packets)
}

#[test]
fn a_burst_of_several_packets_carries_psh_on_its_last_only() {
    // __tcp_transmit_skb() sets PSH on a GSO skb, tcp_gso_segment() keeps it on the last segment.
    let out = sends(&mut under_fq(10), START + RTT);
    let bursts: Vec<&[Data]> = out.chunk_by(|_, next| !next.leads_burst).collect();
    assert!(bursts.iter().all(|burst| burst.len() > 2));
    let lasts = bursts.iter().map(|burst| burst[burst.len() - 1].number);
    assert_eq!(pushed(out.clone()), lasts.collect::<Vec<_>>());
}

#[test]
fn a_single_packet_of_a_flow_with_more_to_send_carries_no_psh() {
    // __tcp_transmit_skb() does not set it there, so the ACK may be delayed.
    assert_eq!(sends(&mut reno(), START).len(), 10);
    assert_eq!(pushed(sends(&mut reno(), START)), []);
    // A window of eleven is five bursts of two and a single packet.
    let odd = SenderConfig {
        gso_max_segments: 2,
        initial_cwnd: 11,
        ..config()
    };
    let out = sends(&mut sender("reno", odd), START);
    assert_eq!(out.len(), 11);
    assert_eq!(pushed(out), [1, 3, 5, 7, 9]);
}

#[test]
fn before_6_10_no_burst_spans_two_buffers_of_the_write_queue() {
    // tcp_sendmsg() fills buffers of 65279 bytes (tcp_xmit_size_goal()), 45 packets, or of half the receive
    // window; tcp_grow_skb() is in 6.10. The second flight is written while the first fills the congestion
    // window.
    let lengths = |kernel: Kernel, window_bytes: u64| -> Vec<usize> {
        let settings = SenderConfig {
            rules: kernel.into(),
            gso_max_segments: 64,
            pacing_shift: 9,
            initial_cwnd: 31,
            ..config()
        };
        let mut sender = reno_offered(window_bytes, settings);
        let ack = |next, sent_ns| Ack {
            window_bytes,
            ..ack(next, sent_ns)
        };
        assert_eq!(sends(&mut sender, START).len(), 31);
        sender.on_ack(START + RTT, &ack(31, START));
        let out = sends(&mut sender, START + RTT);
        assert_eq!(out.len(), 62);
        let bursts = out.chunk_by(|_, next| !next.leads_burst);
        bursts.map(<[Data]>::len).collect()
    };
    // Ends of bursts that are shorter than the others, except for the last.
    let cuts = |lengths: Vec<usize>| -> Vec<usize> {
        let most = lengths.iter().max().copied();
        let ends = lengths.iter().scan(0, |end, length| {
            *end += length;
            Some((*end, Some(*length) < most))
        });
        let cuts = ends.filter(|&(end, is_short)| is_short && end < 62);
        cuts.map(|(end, _)| end).collect()
    };
    for (packets, window_bytes) in [(45, 1 << 30), (31, 62 * u64::from(MSS))] {
        for old in [Kernel::Linux5_13, Kernel::Linux6_1, Kernel::Linux6_4] {
            let cuts = cuts(lengths(old, window_bytes));
            let apart = cuts.windows(2).map(|pair| pair[1] - pair[0]);
            assert!(!cuts.is_empty() && cuts[0] <= packets);
            assert!(
                apart.clone().all(|apart| apart == packets),
                "{old:?} {cuts:?}"
            );
        }
        for new in [Kernel::Linux6_12, Kernel::default(), Kernel::Linux7_3] {
            assert_eq!(cuts(lengths(new, window_bytes)), [], "{new:?}");
        }
    }
}

#[test]
fn the_last_buffer_of_the_write_queue_is_extended_by_the_next_write() {
    // tcp_sendmsg_locked() appends to the last buffer while that is unsent.
    let settings = SenderConfig {
        rules: Kernel::Linux6_4.into(),
        gso_max_segments: 64,
        initial_cwnd: 100,
        written_by_application: true,
        ..config()
    };
    let mut sender = sender("reno", settings);
    let mut lengths = |packets: u32| -> Vec<usize> {
        sender.write(packets);
        let out = sends(&mut sender, START);
        let bursts = out.chunk_by(|_, next| !next.leads_burst);
        bursts.map(<[Data]>::len).collect()
    };
    assert_eq!(lengths(44), [4; 11]);
    assert_eq!(lengths(4), [4], "a buffer of its own");
}

#[test]
fn the_last_written_packet_carries_psh() {
    // tcp_push() at the end of tcp_sendmsg_locked().
    let mut sender = sender(
        "reno",
        SenderConfig {
            written_by_application: true,
            ..config()
        },
    );
    sender.write(3);
    assert_eq!(pushed(sends(&mut sender, START)), [2]);
    sender.write(1);
    assert_eq!(pushed(sends(&mut sender, START)), [3]);
}

#[test]
fn tso_deferral_compares_with_a_third_of_the_window_in_bytes() {
    // tcp_tso_should_defer(): four of 13 packets are less than a third, five of 14 are more. An ACK is due in
    // half a millisecond, and bursts may have 14 packets.
    let sent = |window: u32| {
        let settings = SenderConfig {
            gso_max_segments: 64,
            pacing_shift: 5,
            written_by_application: true,
            ..config()
        };
        let mut sender = sender("reno", settings);
        let now_ns = START + RTT - MS / 2;
        sender.write(8);
        assert_eq!(sends(&mut sender, START).len(), 8);
        sender.write(1);
        assert_eq!(sends(&mut sender, now_ns - 1).len(), 1);
        sender.amend(|ctl| ctl.cwnd = window);
        sender.write(20);
        sends(&mut sender, now_ns).len()
    };
    assert_eq!((sent(13), sent(14)), (0, 5));
}

#[test]
fn a_single_packet_is_deferred_only_if_an_ack_is_due_within_a_millisecond() {
    // tcp_tso_should_defer(), since late 2025 min(1 ms, SRTT / 2): a burst is two packets, the window has room
    // for one, and another was sent just before.
    let sent = |kernel: Kernel, rtt_ns: u64, due_ns: u64| {
        let settings = SenderConfig {
            rules: kernel.into(),
            gso_max_segments: 2,
            written_by_application: true,
            ..config()
        };
        let mut sender = sender_over(rtt_ns, "reno", settings);
        let now_ns = START + rtt_ns - due_ns;
        sender.write(8);
        assert_eq!(sends(&mut sender, START).len(), 8);
        sender.write(1);
        assert_eq!(sends(&mut sender, now_ns - 1).len(), 1);
        sender.write(2);
        sends(&mut sender, now_ns).len()
    };
    // 6.1: stable releases.
    for newer in [Kernel::Linux6_1, Kernel::default(), Kernel::Linux7_3] {
        for due_ns in [0, MS / 2, MS] {
            assert_eq!(sent(newer, RTT, due_ns), 0, "{newer:?} {due_ns}");
        }
        for due_ns in [MS + 1, RTT / 2, RTT - 1] {
            assert_eq!(sent(newer, RTT, due_ns), 1, "{newer:?} {due_ns}");
        }
        assert_eq!(
            (sent(newer, MS, MS / 2), sent(newer, MS, MS / 2 + 1)),
            (0, 1)
        );
    }
    // Earlier kernels waited for half a round trip.
    for older in [Kernel::Linux5_13, Kernel::Linux6_4, Kernel::Linux6_12] {
        assert_eq!(
            (sent(older, RTT, RTT / 2), sent(older, RTT, RTT / 2 + 1)),
            (0, 1)
        );
    }
}

#[test]
fn a_burst_that_the_pacing_timer_releases_may_be_deferred() {
    // tcp_tso_should_defer() measures the time since the last burst by tcp_wstamp_ns, which pacing moves to
    // the next departure (tcp_update_skb_after_send()). BBRv1 starts with 2.89 x 0.99 times thirteen
    // packets per RTT of 100 ms: two packets take 5.4 ms, half of which is credit for a late timer.
    let sent = |last_ns: u64| {
        let settings = SenderConfig {
            gso_max_segments: 2,
            initial_cwnd: 13,
            written_by_application: true,
            ..config()
        };
        let mut sender = sender_over(100 * MS, "bbr1", settings);
        sender.write(10);
        assert_eq!(sends(&mut sender, START).len(), 10);
        sender.write(2);
        assert_eq!(sends(&mut sender, START + last_ns).len(), 2);
        sender.write(2);
        sends(&mut sender, START + 100 * MS - MS / 2).len()
    };
    assert_eq!(sent(96 * MS), 0, "its turn was at 98.7 ms");
    assert_eq!(sent(90 * MS), 1, "its turn was at 92.7 ms");
}
