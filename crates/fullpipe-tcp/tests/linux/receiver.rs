//! When a receiver acknowledges, what it reports, and the window that it advertises.

use super::peer::{MS, MSS, START};
use super::ticks::fires_ns;
use fullpipe_plan::{AckPolicy, Kernel};
use fullpipe_tcp::{Ack, Block, Data, EcnFeedback, ReaderStalls, Receiver, ReceiverConfig, Rules};

fn config() -> ReceiverConfig {
    ReceiverConfig {
        mss_bytes: MSS,
        ack_policy: AckPolicy::Linux,
        rules: Rules::default(),
        window_bytes: None,
        rmem_max_bytes: 64 << 20,
        rcvlowat_bytes: 1,
        work_ns: 0,
        reader_stalls: None,
        aggregation_ns: 0,
        feedback: EcnFeedback::Latched,
    }
}

fn data(number: u32, departs_ns: u64) -> Data {
    Data {
        number,
        payload_bytes: MSS,
        departs_ns,
        ..Data::default()
    }
}

/// A fixed window.
fn fixed() -> ReceiverConfig {
    ReceiverConfig {
        window_bytes: Some(1 << 20),
        ..config()
    }
}

/// A receiver after its initial quick ACKs: packets 0..count arrived 1 ms apart.
fn settled(config: ReceiverConfig, count: u32) -> (Receiver, u64) {
    let mut receiver = Receiver::new(config);
    let mut now_ns = START;
    for number in 0..count {
        now_ns = START + u64::from(number) * MS;
        receiver.on_data(now_ns, &data(number, now_ns));
    }
    (receiver, now_ns)
}

#[test]
fn the_first_sixteen_packets_are_acknowledged_one_by_one_and_then_every_second() {
    // tcp_incr_quickack(): the window over two packets, at most TCP_MAX_QUICKACKS (16).
    let mut receiver = Receiver::new(fixed());
    let acks: Vec<bool> = (0..32)
        .map(|number| {
            receiver
                .on_data(START + u64::from(number) * MS, &data(number, 0))
                .is_some()
        })
        .collect();
    assert!(acks[..16].iter().all(|&acked| acked));
    assert!(
        acks[16..].chunks(2).all(|pair| pair == [false, true]),
        "{acks:?}"
    );
}

/// Window of the initial buffer of 128 KiB with packets of 1448 bytes, whose truesize is 2344: in 256ths, as
/// Linux counts (scaling_ratio, 158).
const FIRST_CLAMP_BYTES: u64 = 131_072 * (1448 * 256 / 2344) / 256;

#[test]
fn the_window_grows_with_the_first_packets_as_traced_on_linux() {
    // rcv_wnd after the first packets of a flow, traced by a kprobe in the virtual machine (Debian's
    // 6.12.117): two packets more for each packet, up to what is free in the buffer, rounded up to the
    // window's scale of 2 KiB.
    let mut receiver = Receiver::new(config());
    assert_eq!(receiver.window_bytes(), 65_160);
    let offered = (0..8).map(|number| {
        let ack = receiver.on_data(START, &data(number, START));
        ack.expect("at once").window_bytes
    });
    let seen = [
        67_584, 71_680, 73_728, 75_776, 79_872, 79_872, 79_872, 79_872,
    ];
    assert_eq!(offered.collect::<Vec<_>>(), seen);
}

#[test]
fn packets_that_make_the_window_grow_are_acknowledged_at_once() {
    // tcp_grow_window(): two packets for each packet, and icsk_ack.quick |= 1. Six packets make the window
    // grow before the initial buffer is full; they follow the sixteen initial quick ACKs.
    let (mut receiver, now_ns) = (Receiver::new(config()), START);
    let mut ack = |number| receiver.on_data(now_ns, &data(number, now_ns)).is_some();
    assert!((0..22).all(&mut ack));
    assert_eq!([ack(22), ack(23)], [false, true]);
}

#[test]
fn no_quick_acks_follow_if_the_first_packet_is_beyond_a_hole() {
    // The packet made the window grow, and its ACK was the only quick one: tcp_dec_quickack_mode() sets
    // icsk_ack.ato, which tcp_event_data_recv() takes for a connection past its start. Seen in the virtual
    // machine, when only the tail loss probe of a flow's initial window arrives.
    let (mut receiver, now_ns) = (Receiver::new(config()), START);
    let mut ack = |number| receiver.on_data(now_ns, &data(number, now_ns)).is_some();
    assert!(ack(1) && ack(0));
    // Four more packets make the window grow.
    assert!((2..6).all(&mut ack));
    assert_eq!([ack(6), ack(7), ack(8), ack(9)], [false, true, false, true]);
}

#[test]
fn before_linux_6_6_the_window_is_half_of_the_buffer_and_does_not_grow() {
    // sysctl tcp_adv_win_scale 1: the initial window is the largest.
    let older = ReceiverConfig {
        rules: Kernel::Linux5_13.into(),
        ..config()
    };
    let (mut receiver, now_ns) = (Receiver::new(older), START);
    let mut ack = |number| receiver.on_data(now_ns, &data(number, now_ns)).is_some();
    assert!((0..16).all(&mut ack));
    assert_eq!([ack(16), ack(17)], [false, true]);
}

#[test]
fn a_single_packet_is_acknowledged_after_40_ms() {
    // TCP_ATO_MIN; RFC 1122 section 4.2.3.2 allows 500 ms.
    let (mut receiver, mut now_ns) = settled(config(), 32);
    now_ns += MS;
    assert_eq!(receiver.on_data(now_ns, &data(32, now_ns)), None);
    let at_ns = fires_ns(now_ns, 40 * MS);
    assert_eq!(receiver.timer_ns(), Some(at_ns));
    assert_eq!(receiver.on_timer(at_ns - 1), None);
    assert_eq!(receiver.on_timer(at_ns).map(|ack| ack.next), Some(33));
}

/// A packet with PSH.
fn pushed(number: u32, departs_ns: u64) -> Data {
    Data {
        push: true,
        ..data(number, departs_ns)
    }
}

#[test]
fn a_reader_acknowledges_a_single_packet_at_once_only_if_it_has_psh() {
    // Since Linux 6.6, for full packets too: tcp_measure_rcv_mss() sets ICSK_ACK_PUSHED, and
    // __tcp_cleanup_rbuf() acknowledges when the reader has emptied the buffer. The application reads 8 KB
    // at a time, every ninth packet. 26 packets are acknowledged, the last ten in pairs.
    let ninths = ReceiverConfig {
        mss_bytes: 1000,
        rcvlowat_bytes: 8192,
        ..fixed()
    };
    let (mut plain, now_ns) = settled(ninths.clone(), 26);
    assert_eq!(plain.on_data(now_ns, &data(26, now_ns)), None);
    let (mut receiver, now_ns) = settled(ninths, 26);
    let ack = receiver.on_data(now_ns, &pushed(26, now_ns));
    assert_eq!(ack.map(|ack| ack.next), Some(27));
    assert_eq!(receiver.timer_ns(), None);
}

#[test]
fn before_linux_6_6_psh_hastened_only_acks_of_short_packets() {
    // tcp_measure_rcv_mss() set ICSK_ACK_PUSHED only below rcv_mss. Stable 6.1 has the change since October
    // 2023; 6.4 had reached its end of life by then.
    let acked = |kernel: Kernel, payload_bytes: u32| {
        let older = ReceiverConfig {
            rules: kernel.into(),
            rcvlowat_bytes: 1,
            ..fixed()
        };
        let (mut receiver, now_ns) = settled(older, 32);
        let packet = Data {
            payload_bytes,
            ..pushed(32, now_ns)
        };
        receiver.on_data(now_ns, &packet).is_some()
    };
    for kernel in [Kernel::Linux5_13, Kernel::Linux6_4] {
        assert!(!acked(kernel, MSS), "{kernel:?}");
        assert!(acked(kernel, MSS - 1), "{kernel:?}");
    }
    assert!(acked(Kernel::Linux6_1, MSS));
}

#[test]
fn the_ack_of_a_single_packet_with_psh_waits_for_the_reader() {
    let slow = ReceiverConfig {
        rcvlowat_bytes: 8192,
        ..fixed()
    };
    let (mut receiver, now_ns) = settled(slow, 32);
    assert_eq!(receiver.on_data(now_ns, &pushed(32, now_ns)), None);
}

#[test]
fn the_ack_of_a_packet_that_fills_the_last_hole_is_sent_at_once() {
    // RFC 5681 section 4.2, tcp_data_queue(): ICSK_ACK_NOW.
    let (mut receiver, now_ns) = settled(config(), 32);
    receiver.on_data(now_ns, &data(33, now_ns));
    let ack = receiver.on_data(now_ns, &data(32, now_ns));
    assert_eq!(ack.map(|ack| ack.next), Some(34));
}

#[test]
fn psh_beyond_a_hole_hastens_no_ack() {
    // The packets beyond the hole stay in the buffer (sk_rmem_alloc), so a reader cannot empty it.
    let (mut receiver, now_ns) = settled(fixed(), 32);
    let acks = (33..37).map(|number| receiver.on_data(now_ns, &pushed(number, now_ns)).is_some());
    // The fourth duplicate ACK is the first to be compressed.
    assert_eq!(acks.collect::<Vec<_>>(), [true, true, true, false]);
}

#[test]
fn the_policy_of_every_second_packet_ignores_psh() {
    let every_second = ReceiverConfig {
        ack_policy: AckPolicy::EverySecond,
        ..config()
    };
    let (mut receiver, now_ns) = settled(every_second, 32);
    assert_eq!(receiver.on_data(now_ns, &pushed(32, now_ns)), None);
    assert_eq!(receiver.timer_ns(), Some(fires_ns(now_ns, 40 * MS)));
}

#[test]
fn quick_acks_return_after_a_pause() {
    // tcp_event_data_recv(): after a pause longer than the timeout.
    let (mut receiver, now_ns) = settled(config(), 32);
    receiver.establish(now_ns, Some(40 * MS));
    let later_ns = now_ns + 1000 * MS;
    for number in 32..48 {
        assert!(
            receiver
                .on_data(later_ns, &data(number, later_ns))
                .is_some(),
            "{number}"
        );
    }
    assert!(receiver.on_data(later_ns, &data(48, later_ns)).is_none());
}

#[test]
fn the_policies_for_formulas_are_exact() {
    let mut every = Receiver::new(ReceiverConfig {
        ack_policy: AckPolicy::EveryPacket,
        ..config()
    });
    assert!((0..50).all(|number| every.on_data(START, &data(number, START)).is_some()));
    let mut second = Receiver::new(ReceiverConfig {
        ack_policy: AckPolicy::EverySecond,
        ..config()
    });
    let acks = (0..50)
        .filter(|&n| second.on_data(START, &data(n, START)).is_some())
        .count();
    assert_eq!(acks, 25);
}

#[test]
fn a_hole_is_reported_at_once_with_the_newest_block_first() {
    // RFC 5681 section 4.2, RFC 2018 section 4.
    let (mut receiver, now_ns) = settled(config(), 32);
    let mut acks: Vec<Ack> = Vec::new();
    for number in [33, 35, 37] {
        acks.push(
            receiver
                .on_data(now_ns, &data(number, now_ns))
                .expect("at once"),
        );
    }
    let last = acks[2];
    assert_eq!((last.next, last.count), (32, 3));
    let starts: Vec<u32> = last.blocks.iter().map(|block| block.start).collect();
    assert_eq!(starts, [37, 35, 33]);
}

#[test]
fn filling_a_hole_acknowledges_the_packets_beyond_it() {
    let (mut receiver, now_ns) = settled(config(), 32);
    receiver.on_data(now_ns, &data(34, now_ns));
    receiver.on_data(now_ns, &data(33, now_ns));
    let ack = receiver.on_data(now_ns, &data(32, now_ns));
    let next = ack
        .or_else(|| receiver.on_timer(fires_ns(now_ns, 40 * MS)))
        .expect("an ACK")
        .next;
    assert_eq!(next, 35);
    assert_eq!(receiver.delivered_bytes(), 35 * u64::from(MSS));
}

/// A receiver after packets 0..40 with RTT samples of 100 ms and without a delayed ACK; and the time.
fn with_rtt_of_100_ms(kernel: Kernel) -> (Receiver, u64) {
    let (mut receiver, now_ns) = settled(
        ReceiverConfig {
            rules: kernel.into(),
            ..fixed()
        },
        32,
    );
    for number in 32..40 {
        let echo = Data {
            echo_ns: now_ns - 100 * MS,
            ..data(number, now_ns)
        };
        receiver.on_data(now_ns, &echo);
    }
    receiver.on_timer(now_ns + 40 * MS);
    (receiver, now_ns + 50 * MS)
}

#[test]
fn after_three_duplicate_acks_they_are_compressed_to_one_a_millisecond() {
    // tcp_comp_sack_delay_ns, tcp_comp_sack_nr: every 5 % of the RTT, at most 1 ms, or 44 packets. An idle
    // processor adds tcp_comp_sack_slack_ns, 0.1 ms.
    let (mut receiver, now_ns) = with_rtt_of_100_ms(Kernel::default());
    let at_once = (41..44).filter(|&n| receiver.on_data(now_ns, &data(n, now_ns)).is_some());
    assert_eq!(at_once.count(), 3);
    assert!((44..80).all(|n| receiver.on_data(now_ns, &data(n, now_ns)).is_none()));
    let due_ns = now_ns + MS + MS / 10;
    assert_eq!(receiver.timer_ns(), Some(due_ns));
    let ack = receiver.on_timer(due_ns).expect("the compressed ACK");
    assert_eq!(ack.blocks[0], Block { start: 41, end: 80 });
}

/// Delivers packets at once; returns the ACKs that each causes.
fn acks_of(receiver: &mut Receiver, now_ns: u64, numbers: &[u32]) -> Vec<Vec<Ack>> {
    let acks = |&number: &u32| {
        let answer = receiver.on_data(now_ns, &data(number, now_ns));
        let preceding = receiver.take_preceding_ack();
        preceding.into_iter().chain(answer).collect()
    };
    numbers.iter().map(acks).collect()
}

fn blocks(ack: &Ack) -> Vec<(u32, u32)> {
    let valid = &ack.blocks[..usize::from(ack.count)];
    valid.iter().map(|one| (one.start, one.end)).collect()
}

#[test]
fn a_compressed_ack_is_sent_as_soon_as_a_third_block_begins() {
    // tcp_sack_new_ofo_skb(), TCP_SACK_BLOCKS_EXPECTED: the held-back ACK has the blocks of before, and the
    // packet that caused it gets none of its own (tcp_event_ack_sent() clears ICSK_ACK_SCHED).
    let (mut receiver, now_ns) = with_rtt_of_100_ms(Kernel::default());
    let acks = acks_of(&mut receiver, now_ns, &[41, 42, 43, 44, 46]);
    assert_eq!(
        acks.iter().map(Vec::len).collect::<Vec<_>>(),
        [1, 1, 1, 0, 0]
    );
    let flushed = acks_of(&mut receiver, now_ns, &[48]);
    assert_eq!(blocks(&flushed[0][0]), [(46, 47), (41, 45)]);
    assert_eq!((flushed[0].len(), receiver.timer_ns()), (1, None));
    // The next packet starts compression again, and the timer reports all three.
    assert_eq!(acks_of(&mut receiver, now_ns, &[49]), [vec![]]);
    let due_ns = receiver.timer_ns().expect("compressed");
    let ack = receiver.on_timer(due_ns).expect("the compressed ACK");
    assert_eq!(blocks(&ack), [(48, 50), (46, 47), (41, 45)]);
}

#[test]
fn a_compressed_ack_is_sent_before_the_third_or_fourth_block_moves_to_the_front() {
    // tcp_sack_new_ofo_skb(): the block has grown already, but an ACK has room for three.
    for (number, third) in [(43, (43, 45)), (41, (44, 45))] {
        let (mut receiver, now_ns) = with_rtt_of_100_ms(Kernel::default());
        acks_of(&mut receiver, now_ns, &[42, 44, 46, 48]);
        assert_eq!(acks_of(&mut receiver, now_ns, &[49]), [vec![]]);
        let acks = acks_of(&mut receiver, now_ns, &[number]);
        let reported: Vec<_> = acks[0].iter().map(blocks).collect();
        assert_eq!(reported, [[(48, 50), (46, 47), third]], "{number}");
    }
}

#[test]
fn of_a_forgotten_block_only_the_new_packet_is_reported() {
    // selective_acks has TCP_NUM_SACKS (4) entries, whatever the queue of packets beyond holes has.
    let every_packet = ReceiverConfig {
        ack_policy: AckPolicy::EveryPacket,
        ..config()
    };
    let (mut receiver, now_ns) = settled(every_packet, 32);
    acks_of(&mut receiver, now_ns, &[34, 35, 37, 39, 41, 43]);
    let acks = acks_of(&mut receiver, now_ns, &[36, 40]);
    assert_eq!(blocks(&acks[0][0]), [(36, 38), (43, 44), (41, 42)]);
    assert_eq!(blocks(&acks[1][0]), [(39, 42), (36, 38), (43, 44)]);
}

#[test]
fn forty_four_acks_are_held_back_and_the_next_one_is_sent() {
    // __tcp_ack_snd_check(): compressed_ack >= tcp_comp_sack_nr (44).
    let (mut receiver, now_ns) = with_rtt_of_100_ms(Kernel::default());
    let numbers: Vec<u32> = (41..90).collect();
    let acks = acks_of(&mut receiver, now_ns, &numbers);
    let sent: Vec<u32> = (41..90)
        .filter(|n| !acks[*n as usize - 41].is_empty())
        .collect();
    assert_eq!(sent, [41, 42, 43, 88]);
}

#[test]
fn a_duplicate_beyond_a_hole_is_reported_unless_compression_holds_the_ack_back() {
    // tcp_data_queue_ofo() reports it and puts its block first; tcp_data_queue() clears the report.
    let (mut receiver, now_ns) = with_rtt_of_100_ms(Kernel::default());
    let acks = acks_of(&mut receiver, now_ns, &[41, 43, 41]);
    assert!(acks[2][0].dsack);
    assert_eq!(blocks(&acks[2][0]), [(41, 42), (41, 42), (43, 44)]);
    assert_eq!(acks_of(&mut receiver, now_ns, &[43, 44]), [vec![], vec![]]);
    let due_ns = receiver.timer_ns().expect("compressed");
    let ack = receiver.on_timer(due_ns).expect("the compressed ACK");
    assert_eq!((ack.dsack, blocks(&ack)), (false, vec![(43, 45), (41, 42)]));
}

#[test]
fn ack_compression_uses_the_smaller_of_the_handshakes_and_the_receivers_rtt() {
    // __tcp_ack_snd_check(): the smaller of rcv_rtt_est and tp->srtt_us.
    let (mut receiver, now_ns) = with_rtt_of_100_ms(Kernel::default());
    receiver.establish(START, Some(10 * MS));
    for number in 41..45 {
        receiver.on_data(now_ns, &data(number, now_ns));
    }
    assert_eq!(receiver.timer_ns(), Some(now_ns + MS / 2 + MS / 10));
}

#[test]
fn compressed_acks_wait_for_a_third_of_the_rtt_with_a_tenth_of_the_slack_since_6_19() {
    // tcp_comp_sack_rtt_percent, tcp_comp_sack_slack_ns; at most 1 ms as before.
    let wait_ns = |kernel: Kernel, rtt_ns: u64| {
        let (mut receiver, now_ns) = with_rtt_of_100_ms(kernel);
        receiver.establish(START, Some(rtt_ns));
        for number in 41..45 {
            receiver.on_data(now_ns, &data(number, now_ns));
        }
        receiver.timer_ns().expect("compressed") - now_ns
    };
    let newest = Kernel::Linux7_3;
    assert_eq!(wait_ns(newest, 2 * MS), 2 * MS * 33 / 100 + MS / 100);
    assert_eq!(wait_ns(newest, 10 * MS), MS + MS / 100);
    for older in [Kernel::default(), Kernel::Linux6_18] {
        assert_eq!(wait_ns(older, 2 * MS), MS / 10 + MS / 10);
    }
}

#[test]
fn a_receivers_rtt_does_not_rise_while_data_are_unread_since_6_16() {
    // tcp_rcv_rtt_update(): a sample of 10 ms, then one of 100 ms while packets are unread.
    let wait_ns = |kernel: Kernel| {
        let slow = ReceiverConfig {
            rules: kernel.into(),
            rcvlowat_bytes: 40 * MSS,
            ..config()
        };
        let (mut receiver, now_ns) = settled(slow, 32);
        for (number, rtt_ms) in [(32, 10), (33, 100)] {
            let echo = Data {
                echo_ns: now_ns - rtt_ms * MS,
                ..data(number, now_ns)
            };
            receiver.on_data(now_ns, &echo);
        }
        for number in 35..39 {
            receiver.on_data(now_ns, &data(number, now_ns));
        }
        receiver.timer_ns().expect("compressed") - now_ns
    };
    assert_eq!(wait_ns(Kernel::Linux6_18), MS / 2 + MS / 10);
    assert_eq!(wait_ns(Kernel::Linux7_3), MS + MS / 100);
    let risen_ns = (7 * 10 * MS + 100 * MS) / 8;
    assert_eq!(wait_ns(Kernel::default()), MS.min(risen_ns / 20) + MS / 10);
}

#[test]
fn a_receivers_rtt_falls_at_once_since_2025_and_slowly_before() {
    // tcp_rcv_rtt_update(): samples of 100 ms, then one of 10 ms. The delay of compressed ACKs is 5 % of
    // the RTT.
    let wait_ns = |kernel: Kernel| {
        let (mut receiver, now_ns) = with_rtt_of_100_ms(kernel);
        let short = Data {
            echo_ns: now_ns - 10 * MS,
            ..data(41, now_ns)
        };
        receiver.on_data(now_ns, &short);
        for number in 42..46 {
            receiver.on_data(now_ns, &data(number, now_ns));
        }
        receiver.timer_ns().expect("compressed") - now_ns
    };
    let slack_ns = MS / 10;
    assert_eq!(wait_ns(Kernel::default()), MS / 2 + slack_ns);
    assert_eq!(wait_ns(Kernel::Linux5_13), MS + slack_ns);
}

#[test]
fn a_timestamp_echo_of_the_first_millisecond_counts() {
    let (mut receiver, now_ns) = settled(fixed(), 32);
    let echo = Data {
        echo_ns: MS / 2,
        ..data(32, now_ns)
    };
    receiver.on_data(now_ns, &echo);
    for number in 34..38 {
        receiver.on_data(now_ns, &data(number, now_ns));
    }
    // 5 % of an RTT of 1 s exceed the longest delay of compressed ACKs.
    assert_eq!(receiver.timer_ns(), Some(now_ns + MS + MS / 10));
}

#[test]
fn the_policy_of_every_second_packet_acknowledges_each_one_beyond_a_hole() {
    // RFC 5681 section 4.2.
    let every_second = ReceiverConfig {
        ack_policy: AckPolicy::EverySecond,
        ..fixed()
    };
    let (mut receiver, now_ns) = settled(every_second, 32);
    assert!((33..80).all(|n| receiver.on_data(now_ns, &data(n, now_ns)).is_some()));
}

#[test]
fn a_duplicate_packet_is_reported_by_a_dsack() {
    // RFC 2883 section 4.
    let (mut receiver, now_ns) = settled(config(), 32);
    let ack = receiver.on_data(now_ns, &data(7, now_ns)).expect("at once");
    assert!(ack.dsack);
    assert_eq!((ack.next, ack.blocks[0]), (32, Block { start: 7, end: 8 }));
    assert_eq!(receiver.delivered_bytes(), 32 * u64::from(MSS));
}

#[test]
fn a_duplicate_packet_brings_back_quick_acks() {
    // tcp_data_queue(): the sender may have lost its ACKs (tcp_enter_quickack_mode()).
    let (mut receiver, now_ns) = settled(fixed(), 32);
    receiver.on_data(now_ns, &data(7, now_ns));
    let mut ack = |number| receiver.on_data(now_ns, &data(number, now_ns)).is_some();
    // One of the sixteen was the duplicate's ACK.
    assert!((32..47).all(&mut ack));
    assert_eq!([ack(47), ack(48)], [false, true]);
}

#[test]
fn the_timestamp_echo_is_of_the_first_packet_since_the_last_ack() {
    // RFC 7323 section 4.3: a delayed ACK must not hide the delay from the sender.
    let (mut receiver, now_ns) = settled(config(), 32);
    receiver.on_data(now_ns + MS, &data(32, 1111));
    let ack = receiver
        .on_data(now_ns + 2 * MS, &data(33, 2222))
        .expect("the second");
    assert_eq!(ack.echo_ns, 1111);
}

#[test]
fn receive_aggregation_acknowledges_a_burst_at_once() {
    let gro = ReceiverConfig {
        aggregation_ns: MS,
        ..config()
    };
    let mut receiver = Receiver::new(gro);
    assert!((0..20).all(|number| receiver.on_data(START, &data(number, START)).is_none()));
    assert_eq!(receiver.timer_ns(), Some(START + MS));
    assert_eq!(receiver.on_timer(START + MS).map(|ack| ack.next), Some(20));
}

/// A reader that stalls every 100 ms, first at `START + 20 ms`, for these durations.
fn stalled_for(durations_ns: &[u64]) -> ReceiverConfig {
    ReceiverConfig {
        rcvlowat_bytes: 1,
        reader_stalls: Some(ReaderStalls {
            every_ns: 100 * MS,
            phase_ns: START + 20 * MS,
            durations_ns: durations_ns.into(),
        }),
        ..fixed()
    }
}

fn sometimes_stalled() -> ReceiverConfig {
    stalled_for(&[3 * MS])
}

#[test]
fn stalls_repeat_their_durations_in_order() {
    let reader_stalls = stalled_for(&[3 * MS, MS]).reader_stalls.expect("given");
    let back_ns = |at_ms: u64| {
        reader_stalls
            .end_ns(START + at_ms * MS)
            .map(|ns| (ns - START) / MS)
    };
    let ends = [20, 120, 220, 320].map(back_ns);
    let (first, second) = (ends[0].expect("away"), ends[1].expect("away"));
    assert_eq!([first - 20, second - 120].iter().sum::<u64>(), 4);
    assert_eq!(ends[2..], [Some(first + 200), Some(second + 200)]);
    assert_eq!([19, first, 119, second].map(back_ns), [None; 4]);
}

#[test]
fn unread_packets_are_acknowledged_when_a_stall_ends() {
    // __tcp_ack_snd_check() leaves the ACK to tcp_recvmsg() while the window is smaller than advertised.
    let (mut receiver, _) = settled(sometimes_stalled(), 20);
    for number in 20..40 {
        let now_ns = START + 20 * MS + u64::from(number) * MS / 40;
        assert_eq!(receiver.on_data(now_ns, &data(number, now_ns)), None);
    }
    let back_ns = START + 23 * MS;
    assert_eq!(receiver.timer_ns(), Some(back_ns));
    assert_eq!(receiver.on_timer(back_ns).map(|ack| ack.next), Some(40));
    assert_eq!(receiver.timer_ns(), None);
    let answers = [40, 41].map(|number| receiver.on_data(back_ns, &data(number, back_ns)));
    assert_eq!(answers.map(|ack| ack.map(|ack| ack.next)), [None, Some(42)]);
}

#[test]
fn a_window_that_reading_opens_is_told_even_if_everything_was_acknowledged() {
    // __tcp_cleanup_rbuf(): else a sender whose window was closed during the stall would wait for good.
    let config = ReceiverConfig {
        window_bytes: None,
        rmem_max_bytes: 128 << 10,
        ..stalled_for(&[90 * MS])
    };
    let (mut receiver, _) = settled(config, 20);
    let (now_ns, back_ns) = (START + 21 * MS, START + 110 * MS);
    let mut end = 20;
    while receiver.window_bytes() >= 1448 {
        let first = end;
        end += (receiver.window_bytes() / 1448) as u32;
        for number in first..end {
            receiver.on_data(now_ns, &data(number, now_ns));
        }
        let due_ns = receiver.timer_ns().expect("an ACK is delayed");
        assert!(due_ns < back_ns);
        receiver.on_timer(due_ns);
    }
    let closed_bytes = receiver.window_bytes();
    assert!(closed_bytes < 1448, "{closed_bytes}");
    let told = receiver.on_timer(back_ns).expect("the window opens");
    assert_eq!(told.next, end);
    assert!(told.window_bytes >= 10 * 1448, "{}", told.window_bytes);
}

#[test]
fn a_single_packet_during_a_stall_is_acknowledged_by_the_delayed_ack_timer() {
    let (mut receiver, _) = settled(sometimes_stalled(), 20);
    let now_ns = START + 121 * MS;
    assert_eq!(receiver.on_data(now_ns, &data(20, now_ns)), None);
    assert_eq!(receiver.on_timer(START + 123 * MS), None);
    assert!(receiver.timer_ns() > Some(START + 123 * MS));
}

#[test]
fn a_hole_is_reported_at_once_during_a_stall() {
    let (mut receiver, _) = settled(sometimes_stalled(), 20);
    let now_ns = START + 21 * MS;
    let ack = receiver.on_data(now_ns, &data(25, now_ns));
    assert_eq!(ack.map(|ack| (ack.next, ack.count)), Some((20, 1)));
}

#[test]
fn a_reader_that_is_stalled_at_the_end_closes_when_the_stall_ends() {
    let (mut receiver, _) = settled(sometimes_stalled(), 20);
    let now_ns = START + 21 * MS;
    let last = Data {
        fin: true,
        ..data(20, now_ns)
    };
    assert!(receiver.on_data(now_ns, &last).is_none_or(|ack| !ack.fin));
    let closed = receiver.on_timer(START + 23 * MS);
    assert!(closed.is_some_and(|ack| ack.fin && ack.next == 21));
}

#[test]
fn psh_ends_aggregation() {
    // tcp_gro_receive() flushes at TCP_FLAG_PSH.
    let gro = ReceiverConfig {
        aggregation_ns: MS,
        ..config()
    };
    let mut receiver = Receiver::new(gro);
    assert!((0..19).all(|number| receiver.on_data(START, &data(number, START)).is_none()));
    let ack = receiver.on_data(START, &pushed(19, START));
    assert_eq!(ack.map(|ack| ack.next), Some(20));
    let later_ns = START + MS / 2;
    assert_eq!(receiver.on_data(later_ns, &data(20, later_ns)), None);
    assert_eq!(receiver.timer_ns(), Some(later_ns + MS));
}

#[test]
fn a_fixed_window_never_changes() {
    let fixed = ReceiverConfig {
        window_bytes: Some(65_536),
        ..config()
    };
    let (receiver, _) = settled(fixed, 5000);
    assert_eq!(receiver.window_bytes(), 65_536);
}

/// The window after each round of 40 ms, in which `per_round` packets arrive.
fn windows(config: ReceiverConfig, per_round: impl Fn(u32) -> u32, rounds: u32) -> Vec<u64> {
    let mut receiver = Receiver::new(config);
    let (mut number, mut offered) = (0, Vec::new());
    for round in 0..rounds {
        let now_ns = START + u64::from(round) * 40 * MS;
        for _ in 0..per_round(round) {
            let packet = Data {
                echo_ns: now_ns - 40 * MS,
                ..data(number, now_ns)
            };
            receiver.on_data(now_ns, &packet);
            number += 1;
        }
        offered.push(receiver.window_bytes());
    }
    offered
}

#[test]
fn an_autotuned_window_is_at_least_twice_the_bytes_of_an_rtt() {
    // tcp_rcv_space_adjust(): it must not limit a sender in slow start, which doubles.
    let doubling = |round: u32| 10 << round;
    let offered = windows(config(), doubling, 10);
    assert!(
        offered[0] < FIRST_CLAMP_BYTES,
        "what the first buffer holds"
    );
    for (round, window) in offered.iter().enumerate().skip(1) {
        let next_round_bytes = u64::from(doubling(round as u32 + 1)) * u64::from(MSS);
        assert!(
            *window >= next_round_bytes || round == 9,
            "round {round}: {window}"
        );
    }
}

#[test]
fn an_autotuned_window_does_not_grow_while_the_rate_does_not() {
    let offered = windows(config(), |_| 100, 60);
    assert_eq!(offered[30], offered[59]);
}

#[test]
fn autotuning_ends_at_the_largest_buffer() {
    // tcp_rmem[2] times the scaling ratio, which before Linux 6.6 was a half.
    let most = |kernel: Kernel| {
        let small = ReceiverConfig {
            rmem_max_bytes: 1 << 20,
            rules: kernel.into(),
            ..config()
        };
        let offered = windows(small, |round| 10 << round, 10);
        *offered.last().unwrap()
    };
    // An unread packet takes 1447 bytes of the window; the scale is 2^(20 - 15).
    let full = (1 << 20) * 158 / 256 - 1447_u64;
    assert_eq!(most(Kernel::default()), full.next_multiple_of(1 << 5));
    // Since 6.18 the scale is for at least 4 MB: 2^(22 - 15).
    assert_eq!(most(Kernel::Linux7_3), full.next_multiple_of(1 << 7));
    let half = (1 << 19) - 2344 / 2_u64;
    assert_eq!(most(Kernel::Linux5_13), half.next_multiple_of(1 << 5));
}

/// Receives packets with timestamp echoes of 40 ms before; returns the window then.
fn receive(receiver: &mut Receiver, at_ms: u64, numbers: impl Iterator<Item = u32>) -> u64 {
    let now_ns = START + at_ms * MS;
    for number in numbers {
        let packet = Data {
            echo_ns: now_ns - 40 * MS,
            ..data(number, now_ns)
        };
        receiver.on_data(now_ns, &packet);
    }
    receiver.window_bytes()
}

/// The window in three round trips: with `beyond` packets beyond a hole, after the hole is filled, and after
/// the round trip that follows.
fn windows_around_a_hole(beyond: u32, kernel: Kernel) -> [u64; 3] {
    let mut receiver = Receiver::new(ReceiverConfig {
        rules: kernel.into(),
        ..config()
    });
    let end = 11 + beyond;
    receive(&mut receiver, 0, 0..10);
    let held_back = receive(&mut receiver, 40, 11..end);
    receive(&mut receiver, 80, 10..11);
    let filled = receive(&mut receiver, 80, end..end + 10);
    [
        held_back,
        filled,
        receive(&mut receiver, 120, end + 10..end + 150),
    ]
}

#[test]
fn packets_beyond_a_hole_count_for_autotuning_when_they_are_read() {
    // tcp_rcv_space_adjust() counts copied_seq and runs after each buffer that is read. Of many packets
    // beyond the hole (MAX_SKB_FRAGS) the first buffer ends the round trip; the others count for the next
    // one, and since 2025 they are also subtracted from this one.
    for kernel in [Kernel::Linux6_12, Kernel::default()] {
        let [held_back, filled, next] = windows_around_a_hole(50, kernel);
        assert!(held_back <= FIRST_CLAMP_BYTES && filled <= FIRST_CLAMP_BYTES);
        assert!(next > 2 * 38 * u64::from(MSS), "{kernel:?}: {next}");
    }
}

#[test]
fn a_few_packets_beyond_a_hole_are_read_with_the_packet_that_fills_it() {
    let [held_back, filled, _] = windows_around_a_hole(10, Kernel::default());
    assert!(held_back <= FIRST_CLAMP_BYTES && filled > FIRST_CLAMP_BYTES);
}

#[test]
fn unread_packets_are_subtracted_from_read_ones_since_2025() {
    // The missing packet and the nine after it are one buffer; the other 24 are in further buffers (17 pages
    // of 4 KiB at most). The first ten made the buffer grow, until the others were subtracted.
    let filled = |kernel: Kernel| {
        let mut receiver = Receiver::new(ReceiverConfig {
            rules: kernel.into(),
            ..config()
        });
        receive(&mut receiver, 0, 0..10);
        receive(&mut receiver, 40, (20..44).chain(11..20));
        receive(&mut receiver, 80, 10..11);
        receive(&mut receiver, 80, 44..54)
    };
    assert!(filled(Kernel::default()) <= FIRST_CLAMP_BYTES);
    assert!(filled(Kernel::Linux6_12) > FIRST_CLAMP_BYTES);
}

#[test]
fn packets_that_arrive_while_the_host_is_busy_are_read_together() {
    // The application runs when no packet is waiting for the processor: in the virtual machine two packets
    // 14 us apart are both read together, and count for the same round trip.
    let later = |work_ns: u64| {
        let mut receiver = Receiver::new(ReceiverConfig {
            work_ns,
            ..config()
        });
        receiver.establish(START, None);
        receive(&mut receiver, 0, 0..10);
        for number in 10..21 {
            let now_ns = START + 40 * MS + u64::from(number) * MS / 100;
            let packet = Data {
                echo_ns: now_ns - 40 * MS,
                ..data(number, now_ns)
            };
            receiver.on_data(now_ns, &packet);
        }
        receive(&mut receiver, 60, 21..31)
    };
    assert!(later(0) <= FIRST_CLAMP_BYTES && later(MS / 100) > FIRST_CLAMP_BYTES);
}

#[test]
fn packets_beyond_a_hole_reduce_the_window_which_never_shrinks() {
    // __tcp_select_window(): the free part of the buffer; tcp_select_window(): it never shrinks.
    let (mut receiver, now_ns) = settled(config(), 32);
    let offered = receiver.window_bytes();
    for number in 33..73 {
        receiver.on_data(now_ns, &data(number, now_ns));
    }
    assert_eq!(receiver.window_bytes(), offered);
    let ack = receiver
        .on_data(now_ns, &data(32, now_ns))
        .expect("at once");
    assert_eq!(ack.next, 73);
    let taken = 41 * (u64::from(MSS) + 896 / 12);
    assert!(
        ack.window_bytes < FIRST_CLAMP_BYTES - taken / 2,
        "{}",
        ack.window_bytes
    );
    let ack = receiver.on_data(now_ns, &data(73, now_ns));
    let ack = ack.or_else(|| receiver.on_data(now_ns, &data(74, now_ns)));
    assert_eq!(ack.map(|ack| ack.window_bytes), Some(offered));
}

#[test]
fn a_delayed_ack_waits_for_no_longer_than_an_rtt_and_at_least_40_ms() {
    // tcp_delack_timer_handler() doubles the ATO if no second packet came; tcp_send_delayed_ack() bounds it.
    for (rtt_ms, wait_ms) in [(25, 40), (60, 60), (300, 80)] {
        let (mut receiver, now_ns) = settled(fixed(), 32);
        receiver.establish(now_ns, Some(rtt_ms * MS));
        assert_eq!(receiver.on_data(now_ns, &data(32, now_ns)), None);
        let due_ns = receiver.timer_ns().expect("a delayed ACK");
        assert_eq!(due_ns, fires_ns(now_ns, 40 * MS));
        receiver.on_timer(due_ns).expect("it is due");
        let later_ns = now_ns + 120 * MS;
        assert_eq!(receiver.on_data(later_ns, &data(33, later_ns)), None);
        let due_ns = receiver.timer_ns().expect("a delayed ACK");
        assert_eq!(due_ns, fires_ns(later_ns, wait_ms * MS), "{rtt_ms}");
    }
}
