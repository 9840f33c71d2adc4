//! When a receiver acknowledges, what it reports, and the window that it offers.

use super::peer::{MS, MSS, START};
use super::ticks::fires_ns;
use fullpipe_plan::{AckPolicy, Kernel};
use fullpipe_tcp::{Absences, Ack, Block, Data, Feedback, Receiver, ReceiverConfig, Rules};

fn config() -> ReceiverConfig {
    ReceiverConfig {
        mss_bytes: MSS,
        ack_policy: AckPolicy::Linux,
        rules: Rules::default(),
        window_bytes: None,
        rmem_max_bytes: 64 << 20,
        low_water_bytes: 1,
        work_ns: 0,
        absences: None,
        aggregation_ns: 0,
        feedback: Feedback::Latched,
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

/// A window that autotuning leaves alone.
fn fixed() -> ReceiverConfig {
    ReceiverConfig {
        window_bytes: Some(1 << 20),
        ..config()
    }
}

/// A receiver that has spent the quick ACKs of its start: packets 0..count came a ms apart.
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

/// What the first buffer of 128 KiB holds of packets of 1448 bytes, which take 2344 bytes of memory there:
/// in units of 1/256, as Linux counts (tcp_sk(sk)->scaling_ratio, 158).
const FIRST_CLAMP_BYTES: u64 = 131_072 * (1448 * 256 / 2344) / 256;

#[test]
fn the_first_packets_make_the_window_grow_as_linux_offered_it() {
    // What rcv_wnd was in the virtual machine (Debian's 6.12.117, by a kprobe) behind the first packets of
    // a flow: two packets more for each, up to what the buffer holds beside the packet itself, rounded up
    // to the window's unit of 2 KiB.
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
fn what_makes_the_window_grow_is_acknowledged_at_once() {
    // tcp_grow_window(): two packets for each, and icsk_ack.quick |= 1. What the first buffer holds beside
    // the packet that has just come is six packets' growth more than the window at first, beside the
    // sixteen quick ACKs of the start.
    let (mut receiver, now_ns) = (Receiver::new(config()), START);
    let mut ack = |number| receiver.on_data(now_ns, &data(number, now_ns)).is_some();
    assert!((0..22).all(&mut ack));
    assert_eq!([ack(22), ack(23)], [false, true]);
}

#[test]
fn where_a_packet_beyond_a_hole_came_first_there_are_no_quick_acks_of_the_start() {
    // It made the window grow, and its ACK was the only quick one: leaving sets icsk_ack.ato
    // (tcp_dec_quickack_mode()), whose absence tells tcp_event_data_recv() of a start. Seen in the virtual
    // machine, of whose flows' first windows often only the probe of the tail arrives.
    let (mut receiver, now_ns) = (Receiver::new(config()), START);
    let mut ack = |number| receiver.on_data(now_ns, &data(number, now_ns)).is_some();
    assert!(ack(1) && ack(0));
    // Four more make the window grow.
    assert!((2..6).all(&mut ack));
    assert_eq!([ack(6), ack(7), ack(8), ack(9)], [false, true, false, true]);
}

#[test]
fn before_linux_6_6_half_of_the_buffer_is_window_and_no_packet_makes_it_grow() {
    // sysctl tcp_adv_win_scale 1: what the window may grow to is what it is at first.
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

/// A packet that ends a burst or what was written.
fn pushed(number: u32, departs_ns: u64) -> Data {
    Data {
        push: true,
        ..data(number, departs_ns)
    }
}

#[test]
fn a_reader_acknowledges_a_lone_packet_at_once_behind_psh_and_only_then() {
    // Full packets since Linux 6.6: tcp_measure_rcv_mss() notes ICSK_ACK_PUSHED, and
    // __tcp_cleanup_rbuf() acknowledges when the reader has emptied the buffer. The application
    // reads 8 KB at a time, here every ninth packet; 26 have been acknowledged, the last ten in pairs.
    let ninths = ReceiverConfig {
        mss_bytes: 1000,
        low_water_bytes: 8192,
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
fn before_linux_6_6_psh_hastened_the_ack_of_a_short_packet_only() {
    // tcp_measure_rcv_mss() noted ICSK_ACK_PUSHED for less than rcv_mss. Stable releases have had the
    // change since October 2023, 6.1's among them; 6.4 had no more of them by then.
    let acked = |kernel: Kernel, payload_bytes: u32| {
        let older = ReceiverConfig {
            rules: kernel.into(),
            low_water_bytes: 1,
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
fn behind_psh_a_lone_packet_waits_for_the_reader() {
    let slow = ReceiverConfig {
        low_water_bytes: 8192,
        ..fixed()
    };
    let (mut receiver, now_ns) = settled(slow, 32);
    assert_eq!(receiver.on_data(now_ns, &pushed(32, now_ns)), None);
}

#[test]
fn an_ack_that_fills_the_last_hole_goes_at_once() {
    // RFC 5681 section 4.2, tcp_data_queue(): ICSK_ACK_NOW.
    let (mut receiver, now_ns) = settled(config(), 32);
    receiver.on_data(now_ns, &data(33, now_ns));
    let ack = receiver.on_data(now_ns, &data(32, now_ns));
    assert_eq!(ack.map(|ack| ack.next), Some(34));
}

#[test]
fn beyond_a_hole_psh_hastens_no_ack() {
    // What waits there fills the buffer (sk_rmem_alloc), and a reader cannot empty it.
    let (mut receiver, now_ns) = settled(fixed(), 32);
    let acks = (33..37).map(|number| receiver.on_data(now_ns, &pushed(number, now_ns)).is_some());
    // The fourth duplicate ACK is the first to be compressed.
    assert_eq!(acks.collect::<Vec<_>>(), [true, true, true, false]);
}

#[test]
fn the_policy_of_every_second_packet_knows_no_psh() {
    let every_second = ReceiverConfig {
        ack_policy: AckPolicy::EverySecond,
        ..config()
    };
    let (mut receiver, now_ns) = settled(every_second, 32);
    assert_eq!(receiver.on_data(now_ns, &pushed(32, now_ns)), None);
    assert_eq!(receiver.timer_ns(), Some(fires_ns(now_ns, 40 * MS)));
}

#[test]
fn a_pause_brings_back_quick_acks() {
    // tcp_event_data_recv(): longer than the timeout, the sender may be in slow start again.
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
fn filling_a_hole_moves_the_ack_over_what_waited_beyond_it() {
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

/// A receiver with packets 0..40 whose RTT samples were of 100 ms, so that 5 % is more than a
/// millisecond, and which owes no ACK; and the time.
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
    // tcp_comp_sack_delay_ns, tcp_comp_sack_nr: each 5 % of the RTT, at most 1 ms, or 44 packets; and
    // tcp_comp_sack_slack_ns, a tenth of a millisecond, where nothing else wakes the processor.
    let (mut receiver, now_ns) = with_rtt_of_100_ms(Kernel::default());
    let at_once = (41..44).filter(|&n| receiver.on_data(now_ns, &data(n, now_ns)).is_some());
    assert_eq!(at_once.count(), 3);
    assert!((44..80).all(|n| receiver.on_data(now_ns, &data(n, now_ns)).is_none()));
    let due_ns = now_ns + MS + MS / 10;
    assert_eq!(receiver.timer_ns(), Some(due_ns));
    let ack = receiver.on_timer(due_ns).expect("the compressed ACK");
    assert_eq!(ack.blocks[0], Block { start: 41, end: 80 });
}

#[test]
fn acks_are_compressed_by_the_handshakes_rtt_where_a_queue_has_made_others_longer() {
    // __tcp_ack_snd_check(): the smaller of what data say and of tp->srtt_us.
    let (mut receiver, now_ns) = with_rtt_of_100_ms(Kernel::default());
    receiver.establish(START, Some(10 * MS));
    for number in 41..45 {
        receiver.on_data(now_ns, &data(number, now_ns));
    }
    assert_eq!(receiver.timer_ns(), Some(now_ns + MS / 2 + MS / 10));
}

#[test]
fn compressed_acks_wait_for_a_third_of_the_rtt_since_6_19_and_ten_times_more_punctually() {
    // tcp_comp_sack_rtt_percent, tcp_comp_sack_slack_ns; the most is a millisecond as before.
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
fn the_rtt_of_a_receiver_does_not_rise_while_something_waits_to_be_read_since_6_16() {
    // tcp_rcv_rtt_update(): a sample of 10 ms, then one of 100 ms behind unread packets.
    let wait_ns = |kernel: Kernel| {
        let slow = ReceiverConfig {
            rules: kernel.into(),
            low_water_bytes: 40 * MSS,
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
fn the_rtt_of_a_receiver_falls_at_once_since_late_2025_and_slowly_before() {
    // tcp_rcv_rtt_update(): 5 % of what it says are the wait of compressed ACKs, here after samples of
    // 100 ms and one of 10 ms.
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
fn an_echo_of_the_clocks_first_millisecond_counts_as_any_other() {
    let (mut receiver, now_ns) = settled(fixed(), 32);
    let echo = Data {
        echo_ns: MS / 2,
        ..data(32, now_ns)
    };
    receiver.on_data(now_ns, &echo);
    for number in 34..38 {
        receiver.on_data(now_ns, &data(number, now_ns));
    }
    // Of an RTT of a second 5 % are more than compressed ACKs wait at most.
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
fn what_came_twice_is_reported_as_a_duplicate() {
    // RFC 2883 section 4.
    let (mut receiver, now_ns) = settled(config(), 32);
    let ack = receiver.on_data(now_ns, &data(7, now_ns)).expect("at once");
    assert!(ack.dsack);
    assert_eq!((ack.next, ack.blocks[0]), (32, Block { start: 7, end: 8 }));
    assert_eq!(receiver.delivered_bytes(), 32 * u64::from(MSS));
}

#[test]
fn what_came_twice_brings_back_quick_acks() {
    // tcp_data_queue(): the sender may have lost its ACKs (tcp_enter_quickack_mode()).
    let (mut receiver, now_ns) = settled(fixed(), 32);
    receiver.on_data(now_ns, &data(7, now_ns));
    let mut ack = |number| receiver.on_data(now_ns, &data(number, now_ns)).is_some();
    // One of the sixteen was the duplicate's own.
    assert!((32..47).all(&mut ack));
    assert_eq!([ack(47), ack(48)], [false, true]);
}

#[test]
fn the_echoed_timestamp_is_of_the_first_packet_since_the_last_ack() {
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

/// A reader that is away every 100 ms, first at `START + 20 ms`, for so long.
fn away_for(lengths_ns: &[u64]) -> ReceiverConfig {
    ReceiverConfig {
        low_water_bytes: 1,
        absences: Some(Absences {
            every_ns: 100 * MS,
            one_begins_ns: START + 20 * MS,
            lengths_ns: lengths_ns.into(),
        }),
        ..fixed()
    }
}

fn sometimes_away() -> ReceiverConfig {
    away_for(&[3 * MS])
}

#[test]
fn absences_may_differ_in_length_and_come_again_in_the_same_order() {
    let absences = away_for(&[3 * MS, MS]).absences.expect("given");
    let back_ns = |at_ms: u64| {
        absences
            .back_ns(START + at_ms * MS)
            .map(|ns| (ns - START) / MS)
    };
    let ends = [20, 120, 220, 320].map(back_ns);
    let (first, second) = (ends[0].expect("away"), ends[1].expect("away"));
    assert_eq!([first - 20, second - 120].iter().sum::<u64>(), 4);
    assert_eq!(ends[2..], [Some(first + 200), Some(second + 200)]);
    assert_eq!([19, first, 119, second].map(back_ns), [None; 4]);
}

#[test]
fn what_nobody_has_read_is_acknowledged_at_once_when_the_reader_is_back() {
    // __tcp_ack_snd_check() leaves the ACK to tcp_recvmsg() while the window has no room for more.
    let (mut receiver, _) = settled(sometimes_away(), 20);
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
fn a_reader_that_is_back_after_one_packet_leaves_it_to_the_timer_of_delayed_acks() {
    let (mut receiver, _) = settled(sometimes_away(), 20);
    let now_ns = START + 121 * MS;
    assert_eq!(receiver.on_data(now_ns, &data(20, now_ns)), None);
    assert_eq!(receiver.on_timer(START + 123 * MS), None);
    assert!(receiver.timer_ns() > Some(START + 123 * MS));
}

#[test]
fn a_hole_is_told_at_once_though_the_reader_is_away() {
    let (mut receiver, _) = settled(sometimes_away(), 20);
    let now_ns = START + 21 * MS;
    let ack = receiver.on_data(now_ns, &data(25, now_ns));
    assert_eq!(ack.map(|ack| (ack.next, ack.count)), Some((20, 1)));
}

#[test]
fn a_reader_that_is_away_at_the_end_closes_when_it_is_back() {
    let (mut receiver, _) = settled(sometimes_away(), 20);
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
    // tcp_gro_receive() flushes with TCP_FLAG_PSH; what follows is gathered anew.
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
fn a_fixed_window_stays_what_it_is() {
    let fixed = ReceiverConfig {
        window_bytes: Some(65_536),
        ..config()
    };
    let (receiver, _) = settled(fixed, 5000);
    assert_eq!(receiver.window_bytes(), 65_536);
}

/// What is offered while `per_round` packets come every 40 ms, round by round.
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
fn an_autotuned_window_is_always_twice_what_an_rtt_brought() {
    // tcp_rcv_space_adjust(): a sender in slow start doubles, and must never be stopped.
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
fn autotuning_ends_where_packets_fill_the_largest_buffer() {
    // tcp_rmem[2]: of its bytes so many are window as of a packet's, before Linux 6.6 half.
    let most = |kernel: Kernel| {
        let small = ReceiverConfig {
            rmem_max_bytes: 1 << 20,
            rules: kernel.into(),
            ..config()
        };
        let offered = windows(small, |round| 10 << round, 10);
        *offered.last().unwrap()
    };
    // A packet that has come and is not read takes 1447 bytes of it; the unit is 2^(20 - 15).
    let full = (1 << 20) * 158 / 256 - 1447_u64;
    assert_eq!(most(Kernel::default()), full.next_multiple_of(1 << 5));
    // Since 6.18 windows are told in units for 4 MB at least: 2^(22 - 15).
    assert_eq!(most(Kernel::Linux7_3), full.next_multiple_of(1 << 7));
    let half = (1 << 19) - 2344 / 2_u64;
    assert_eq!(most(Kernel::Linux5_13), half.next_multiple_of(1 << 5));
}

/// Takes in packets that echo what was sent 40 ms before; what is offered then.
fn take(receiver: &mut Receiver, at_ms: u64, numbers: impl Iterator<Item = u32>) -> u64 {
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

/// What is offered after `beyond` packets of the second round trip that a hole holds back, after the round
/// trip that begins with the missing one, and after the one that follows.
fn windows_around_a_hole(beyond: u32, kernel: Kernel) -> [u64; 3] {
    let mut receiver = Receiver::new(ReceiverConfig {
        rules: kernel.into(),
        ..config()
    });
    let end = 11 + beyond;
    take(&mut receiver, 0, 0..10);
    let held_back = take(&mut receiver, 40, 11..end);
    take(&mut receiver, 80, 10..11);
    let filled = take(&mut receiver, 80, end..end + 10);
    [
        held_back,
        filled,
        take(&mut receiver, 120, end + 10..end + 150),
    ]
}

#[test]
fn what_waits_beyond_a_hole_counts_for_autotuning_when_it_is_read() {
    // tcp_rcv_space_adjust() counts copied_seq, and is asked after each buffer that is read: of a long
    // run beyond the hole (MAX_SKB_FRAGS) the first buffer ends the round trip. What waits behind it counts
    // against it since late 2025, and for the next round trip then and before.
    for kernel in [Kernel::Linux6_12, Kernel::default()] {
        let [held_back, filled, next] = windows_around_a_hole(50, kernel);
        assert!(held_back <= FIRST_CLAMP_BYTES && filled <= FIRST_CLAMP_BYTES);
        assert!(next > 2 * 38 * u64::from(MSS), "{kernel:?}: {next}");
    }
}

#[test]
fn a_short_run_beyond_a_hole_is_read_with_the_packet_that_fills_it() {
    let [held_back, filled, _] = windows_around_a_hole(10, Kernel::default());
    assert!(held_back <= FIRST_CLAMP_BYTES && filled > FIRST_CLAMP_BYTES);
}

#[test]
fn what_waits_to_be_read_counts_against_what_was_read_since_late_2025() {
    // The missing packet and the nine behind it are one buffer; 24 that came before those nine are others
    // (17 pages of 4 KiB at most). Of the 34 the first ten made the buffer grow, until the others counted
    // against them.
    let filled = |kernel: Kernel| {
        let mut receiver = Receiver::new(ReceiverConfig {
            rules: kernel.into(),
            ..config()
        });
        take(&mut receiver, 0, 0..10);
        take(&mut receiver, 40, (20..44).chain(11..20));
        take(&mut receiver, 80, 10..11);
        take(&mut receiver, 80, 44..54)
    };
    assert!(filled(Kernel::default()) <= FIRST_CLAMP_BYTES);
    assert!(filled(Kernel::Linux6_12) > FIRST_CLAMP_BYTES);
}

#[test]
fn what_comes_while_the_host_is_busy_is_read_together() {
    // The reader has the processor when no packet waits for it: in the machine two packets 14 us apart are
    // both in the buffer when it is read, and count for the same round trip.
    let later = |work_ns: u64| {
        let mut receiver = Receiver::new(ReceiverConfig {
            work_ns,
            ..config()
        });
        receiver.establish(START, None);
        take(&mut receiver, 0, 0..10);
        for number in 10..21 {
            let now_ns = START + 40 * MS + u64::from(number) * MS / 100;
            let packet = Data {
                echo_ns: now_ns - 40 * MS,
                ..data(number, now_ns)
            };
            receiver.on_data(now_ns, &packet);
        }
        take(&mut receiver, 60, 21..31)
    };
    assert!(later(0) <= FIRST_CLAMP_BYTES && later(MS / 100) > FIRST_CLAMP_BYTES);
}

#[test]
fn what_waits_beyond_a_hole_leaves_less_to_offer_and_nothing_is_taken_back() {
    // __tcp_select_window(): what is free of the buffer; tcp_select_window(): never less than was offered.
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
