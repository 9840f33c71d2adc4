//! When a receiver acknowledges: tcp_event_data_recv(), tcp_incr_quickack(), __tcp_ack_snd_check(),
//! tcp_send_delayed_ack(), tcp_delack_timer_handler(); and what it reports: RFC 2018, RFC 2883.

use fullpipe_plan::AckPolicy;
use fullpipe_tcp::{Data, ReaderStalls};

use super::reader::{data, data_at, echoing, Reader, Terms};
use super::script::{MS, MSS, TICK, US};

/// 20 packets came 1 ms apart: the quick ACKs are over, and nothing is unacknowledged.
fn settled() -> Reader {
    settled_with(Terms::default())
}

fn settled_with(terms: Terms) -> Reader {
    Reader::settled(terms, 20)
}

#[test]
fn a_new_connection_acknowledges_as_many_packets_quickly_as_half_its_window_holds() {
    // tcp_incr_quickack(): rcv_wnd / (2 * rcv_mss), and at most 16.
    for (packets, quick) in [(100, 16), (32, 16), (31, 15), (20, 10), (4, 2)] {
        let mut reader = Reader::new(Terms {
            window_bytes: Some(packets * u64::from(MSS)),
            ..Terms::default()
        });
        let acked = reader.answers_to(0..24);
        let first_delayed = acked.iter().position(|&is_acked| !is_acked);
        assert_eq!(first_delayed, Some(quick), "{packets}");
        // From then on every second one.
        assert_eq!(acked[quick..quick + 4], [false, true, false, true]);
    }
}

#[test]
fn a_window_that_reading_can_double_is_acknowledged_at_once() {
    // __tcp_cleanup_rbuf(): the new window is at least twice what is left of the last one. Of three packets
    // one leaves two.
    for (packets, is_at_once) in [(1, true), (2, true), (3, false)] {
        let mut reader = Reader::new(Terms {
            window_bytes: Some(packets * u64::from(MSS)),
            ..Terms::default()
        });
        let acked = reader.answers_to(0..24);
        assert_eq!(
            acked.iter().all(|&is_acked| is_acked),
            is_at_once,
            "{packets}"
        );
    }
}

#[test]
fn a_delayed_ack_waits_for_40_ms() {
    // TCP_ATO_MIN; the timer wheel adds a tick.
    let mut reader = settled();
    assert_eq!(reader.at(20 * MS).gets(data(20)), "");
    assert_eq!(reader.exact_timer(), 60 * MS);
    assert_eq!(reader.fires(), (60 * MS + TICK, "21".into()));
    assert_eq!(reader.timer(), None);
}

#[test]
fn a_delayed_ack_that_its_timer_sent_doubles_the_delay_up_to_the_rtt() {
    // tcp_delack_timer_handler(): ato 40, 80, 160 ms, then the longest delay of 200 ms
    // (TCP_DELACK_MAX). tcp_send_delayed_ack() waits for no longer than an RTT.
    for (rtt_ms, waits_ms) in [(100, [40, 80, 100, 100]), (1_000, [40, 80, 160, 200])] {
        let mut reader = settled_with(Terms {
            rtt_ns: Some(rtt_ms * MS),
            ..Terms::default()
        });
        // Gaps between the delay and the timeout change nothing.
        for (number, (at_ms, wait_ms)) in (20..).zip([20, 120, 290, 500].into_iter().zip(waits_ms))
        {
            assert_eq!(reader.at(at_ms * MS).gets(data(number)), "");
            assert_eq!(reader.exact_timer(), (at_ms + wait_ms) * MS, "{number}");
            reader.fires();
        }
    }
}

#[test]
fn packets_adapt_the_delay_by_the_time_between_them() {
    // tcp_event_data_recv(): up to 20 ms apart, ato / 2 + 20 ms; further apart, but closer than ato, half of it
    // and the gap.
    let after = |gap_us: u64| {
        let mut reader = settled_with(Terms {
            rtt_ns: Some(1_000 * MS),
            ..Terms::default()
        });
        // Two expiries: ato = 160 ms.
        let mut at_ns = 20 * MS;
        for number in [20, 21] {
            reader.at(at_ns).gets(data(number));
            at_ns = reader.fires().0 + 200 * MS;
        }
        reader.at(at_ns).gets(data(22));
        // The second packet is acknowledged with the first; the third waits.
        let second_ns = at_ns + gap_us * US;
        reader.at(second_ns.min(reader.timer().unwrap()));
        assert_eq!(reader.gets(data(23)), "24");
        reader.gets(data(24));
        (reader.exact_timer() - reader.now()) / MS
    };
    // The third packet comes at once, which is a gap of 0 ms: ato / 2 + 20 ms again.
    assert_eq!(after(20_000), (160 / 2 + 20) / 2 + 20);
    assert_eq!(after(20_001), (160 / 2 + 20) / 2 + 20);
    assert_eq!(after(30_000), (160 / 2 + 30) / 2 + 20);
    assert_eq!(after(60_000), (160 / 2 + 60) / 2 + 20);
}

#[test]
fn quick_acks_return_after_a_pause_longer_than_the_timeout() {
    // icsk_rto without a sample of data: the handshake's RTT and 200 ms.
    for (pause_us, is_quick) in [(240_000, false), (240_001, true)] {
        let mut reader = settled();
        reader.at(19 * MS + pause_us * US);
        let acked = reader.answers_to(20..22);
        assert_eq!(acked, [is_quick, true], "{pause_us}");
    }
    // Without an RTT the timeout is a second.
    for (pause_us, is_quick) in [(1_000_000, false), (1_000_001, true)] {
        let mut reader = settled_with(Terms {
            rtt_ns: None,
            ..Terms::default()
        });
        reader.at(19 * MS + pause_us * US);
        assert_eq!(reader.answers_to(20..21), [is_quick], "{pause_us}");
    }
}

#[test]
fn a_duplicate_brings_back_quick_acks_and_the_shortest_delay() {
    // tcp_enter_quickack_mode(): 16 more, of which the DSACK is the first.
    let mut reader = settled();
    reader.at(20 * MS).gets(data(20));
    reader.fires();
    assert_eq!(reader.gets(data(7)), "21 d[7-8]");
    let acked = reader.answers_to(21..39);
    assert_eq!(acked.iter().position(|&is_acked| !is_acked), Some(15));
    assert_eq!(reader.exact_timer() - reader.now(), 40 * MS);
}

#[test]
fn the_last_quick_ack_resets_the_delay() {
    // tcp_dec_quickack_mode(). The delay had grown to 80 ms.
    let mut reader = settled_with(Terms {
        window_bytes: Some(4 * u64::from(MSS)),
        ..Terms::default()
    });
    reader.at(20 * MS).gets(data(20));
    let (at_ns, _) = reader.fires();
    // A pause of more than the timeout: two quick ACKs.
    reader.at(at_ns + 400 * MS);
    assert_eq!(reader.answers_to(21..24), [true, true, false]);
    assert_eq!(reader.exact_timer() - reader.now(), 40 * MS);
}

#[test]
fn sack_blocks_report_the_newest_first_and_at_most_three() {
    let mut reader = settled();
    reader.at(20 * MS);
    assert_eq!(reader.gets(data(22)), "20 [22-23]");
    assert_eq!(reader.gets(data(23)), "20 [22-24]");
    assert_eq!(reader.gets(data(26)), "20 [26-27] [22-24]");
    // Three duplicate ACKs are sent at once, later ones are compressed. A fourth block makes the ACK leave
    // that waits, instead of its own.
    assert_eq!(reader.gets(data(30)), "");
    assert_eq!(reader.gets(data(34)), "20 [30-31] [26-27] [22-24]");
    assert_eq!(reader.timer(), None);
    assert_eq!(reader.gets(data(35)), "");
    let (_, ack) = reader.fires();
    assert_eq!(ack, "20 [34-36] [30-31] [26-27]");
}

#[test]
fn a_packet_between_two_blocks_joins_them() {
    // tcp_sack_maybe_coalesce().
    let mut reader = settled_with(Terms {
        policy: AckPolicy::EverySecond,
        ..Terms::default()
    });
    reader.at(20 * MS);
    assert_eq!(reader.gets(data(22)), "20 [22-23]");
    assert_eq!(reader.gets(data(24)), "20 [24-25] [22-23]");
    assert_eq!(reader.gets(data(26)), "20 [26-27] [24-25] [22-23]");
    assert_eq!(reader.gets(data(23)), "20 [22-25] [26-27]");
    assert_eq!(reader.gets(data(21)), "20 [21-25] [26-27]");
    // The hole below them is filled: all but the last block are in order.
    assert_eq!(reader.gets(data(20)), "25 [26-27]");
    assert_eq!(reader.gets(data(25)), "27");
    assert_eq!(reader.delivered_bytes(), 27 * u64::from(MSS));
}

#[test]
fn a_packet_that_comes_twice_beyond_a_hole_is_a_dsack_before_its_block() {
    // RFC 2883 section 4.1.2: the first block is the duplicate, the second contains it.
    let mut reader = settled();
    reader.at(20 * MS).gets(data(22));
    assert_eq!(reader.gets(data(22)), "20 d[22-23] [22-23]");
    assert_eq!(reader.delivered_bytes(), 21 * u64::from(MSS));
    // The next ACK no longer reports it.
    assert_eq!(reader.gets(data(23)), "20 [22-24]");
}

#[test]
fn compressed_acks_wait_for_a_twentieth_of_the_rtt_but_a_millisecond_at_most_and_the_slack() {
    // tcp_comp_sack_rtt_percent 5, tcp_comp_sack_delay_ns 1 ms, tcp_comp_sack_slack_ns 100 us.
    for (rtt_us, wait_ns) in [
        (10_000, 600_000),
        (19_000, 1_050_000),
        (20_000, 1_100_000),
        (80_000, 1_100_000),
    ] {
        let mut reader = settled_with(Terms {
            rtt_ns: Some(rtt_us * US),
            ..Terms::default()
        });
        // The RTT of data is 120 ms; the smaller one counts.
        reader.at(120 * MS).gets(echoing(20, 0));
        reader.gets(data(21));
        for number in 23..26 {
            assert_ne!(reader.gets(data(number)), "");
        }
        assert_eq!(reader.gets(data(26)), "");
        assert_eq!(reader.timer(), Some(120 * MS + wait_ns), "{rtt_us}");
        // A later packet does not postpone it.
        reader.at(120 * MS + 300 * US).gets(data(27));
        assert_eq!(reader.fires(), (120 * MS + wait_ns, "22 [23-28]".into()));
    }
}

#[test]
fn a_new_hole_has_three_duplicate_acks_of_its_own() {
    let mut reader = settled();
    reader.at(20 * MS);
    assert_eq!(reader.answers_to(21..26), [true, true, true, false, false]);
    assert_eq!(reader.gets(data(20)), "26");
    assert_eq!(reader.answers_to(27..32), [true, true, true, false, false]);
}

#[test]
fn a_timestamp_echo_is_of_the_packet_that_the_last_ack_expected() {
    // RFC 7323 section 4.3 with delayed ACKs: of two packets the first one's.
    let mut reader = settled();
    reader.at(30 * MS).gets(data_at(20, 10 * MS));
    reader.gets(data_at(21, 11 * MS));
    assert_eq!(reader.echo(), 10 * MS);
    // Beyond a hole the echo stays, the packet that fills it is echoed.
    reader.gets(data_at(23, 13 * MS));
    assert_eq!(reader.echo(), 10 * MS);
    reader.at(40 * MS).gets(data_at(22, 35 * MS));
    assert_eq!(reader.echo(), 35 * MS);
}

#[test]
fn a_fin_is_answered_with_a_fin_that_is_repeated_until_it_is_acknowledged() {
    // RFC 6298's backoff; tcp_orphan_retries: eight retries.
    let fin = |number| Data {
        fin: true,
        ..data(number)
    };
    let mut reader = settled();
    reader.at(20 * MS);
    assert_eq!(reader.gets(fin(20)), "21 fin");
    let mut before_ns = reader.now();
    for retry in 0..8 {
        let waited_ns = reader.exact_timer() - before_ns;
        let timeout_ns = (240 * MS) << retry;
        assert!(waited_ns > timeout_ns && waited_ns < timeout_ns + timeout_ns / 7 + 2 * TICK);
        let (at_ns, ack) = reader.fires();
        assert_eq!(ack, "21 fin", "{retry}");
        before_ns = at_ns;
    }
    assert_eq!(reader.fires().1, "");
    assert_eq!(reader.timer(), None);

    let mut reader = settled();
    reader.at(20 * MS).gets(fin(20));
    reader.is_acknowledged();
    assert_eq!(reader.timer(), None);
    // The sender repeats its FIN: this side answers, and starts no timer.
    reader.at(300 * MS).gets(fin(20));
    assert_eq!(reader.timer(), None);
}

#[test]
fn a_fin_beyond_a_hole_waits_for_the_hole() {
    let mut reader = settled();
    reader.at(20 * MS);
    let fin = Data {
        fin: true,
        ..data(21)
    };
    assert_eq!(reader.gets(fin), "20 [21-22]");
    assert_eq!(reader.gets(data(20)), "22 fin");
}

#[test]
fn psh_makes_the_reader_acknowledge_what_it_has_read() {
    // ICSK_ACK_PUSHED in __tcp_cleanup_rbuf(); it lasts for one ACK.
    let mut reader = settled();
    let pushed = Data {
        push: true,
        ..data(20)
    };
    assert_eq!(reader.at(20 * MS).gets(pushed), "21");
    assert_eq!(reader.gets(data(21)), "");
    assert_eq!(reader.gets(data(22)), "23");
}

#[test]
fn a_reader_that_waits_for_8_kb_reads_them_with_the_sixth_packet() {
    // SO_RCVLOWAT in whole packets: 8192 bytes are 5.7 of them. __tcp_cleanup_rbuf() then acknowledges
    // what more than one packet has brought.
    let mut reader = settled_with(Terms {
        low_water_bytes: 8_192,
        window_bytes: None,
        ..Terms::default()
    });
    assert!(reader.window_bytes() > 20_000);
    reader.at(21 * MS);
    let acked = reader.answers_to(20..32);
    assert_eq!(
        acked.iter().filter(|&&is_acked| is_acked).count(),
        6,
        "{acked:?}"
    );
}

#[test]
fn packets_within_the_aggregation_time_are_acknowledged_together() {
    let mut reader = Reader::new(Terms {
        aggregation_ns: 50 * US,
        ..Terms::default()
    });
    for number in 0..20 {
        reader.at(u64::from(number) * MS).gets(data(number));
        reader.fires();
    }
    let base_ns = 25 * MS;
    while reader.timer().is_some() {
        reader.fires();
    }
    let base_ns = base_ns.max(reader.now() + MS);
    reader.at(base_ns);
    assert_eq!(reader.answers_to(20..24), [false; 4]);
    assert_eq!(reader.timer(), Some(base_ns + 50 * US));
    reader.at(base_ns + 40 * US);
    assert_eq!(reader.gets(data(24)), "");
    assert_eq!(reader.fires(), (base_ns + 50 * US, "25".into()));
}

#[test]
fn a_stall_ends_after_its_duration() {
    // Stalls of 3 and 5 ms in turn, every 20 ms; one begins at 7 ms.
    let stalls = ReaderStalls {
        every_ns: 20 * MS,
        phase_ns: 47 * MS,
        durations_ns: [3 * MS, 5 * MS].into(),
    };
    // The stall before time 7 is number 0 and the stall at 7 is number 1.
    for (at_us, end_us) in [
        (0, None),
        (6_999, None),
        (7_000, Some(12_000)),
        (11_999, Some(12_000)),
        (12_000, None),
        (27_000, Some(30_000)),
        (29_999, Some(30_000)),
        (30_000, None),
        (47_000, Some(52_000)),
    ] {
        assert_eq!(
            stalls.end_ns(at_us * US),
            end_us.map(|us: u64| us * US),
            "{at_us}"
        );
    }
}

#[test]
fn an_echo_gives_one_sample_of_the_receivers_rtt() {
    // tcp_rcv_rtt_measure_ts(): rcv_rtt_last_tsecr. Compressed ACKs wait for a twentieth of 10 ms and the
    // slack; a second sample of 26 ms would make it 12 ms.
    let mut reader = settled_with(Terms {
        rtt_ns: None,
        ..Terms::default()
    });
    reader.at(20 * MS).gets(echoing(20, 10 * MS));
    reader.at(36 * MS).gets(echoing(21, 10 * MS + 999 * US));
    assert_eq!(reader.answers_to(23..27), [true, true, true, false]);
    assert_eq!(reader.timer(), Some(36 * MS + 600 * US));
}
