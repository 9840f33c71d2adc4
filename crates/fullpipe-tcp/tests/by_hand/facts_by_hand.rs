//! What a congestion control is told: struct tcp_sock and struct rate_sample as an algorithm of Linux
//! reads them, each number counted by hand.

use fullpipe_cc::EventKind;
use fullpipe_plan::CcFacts;

use super::script::{ack, dsack, sack, Script, Setup, MS, MSS, OWNER, US, WITNESS};

fn owner(cwnd: u32) -> Script {
    Script::started(Setup {
        cwnd,
        cc: OWNER,
        ..Setup::default()
    })
}

#[test]
fn the_scoreboards_counts_are_those_of_tcp_sock() {
    let mut script = owner(20);
    script.at(40 * MS);
    script.takes(sack(0, [(3, 9)]));
    let (conn, ack_) = script.told();
    // 0 to 2 are lost; of 20 packets 6 are SACKed.
    assert_eq!(
        (conn.packets_out, conn.sacked_out, conn.lost_out),
        (20, 6, 3)
    );
    assert_eq!((conn.retrans_out, conn.inflight), (0, 11));
    assert_eq!((conn.lost, ack_.losses, ack_.acked_sacked), (3, 3, 6));
    assert_eq!(ack_.prior_inflight, 20);
    assert_eq!((conn.snd_una, conn.snd_nxt), (0, 20 * MSS));
    assert_eq!(conn.high_seq, 20 * MSS);
    assert_eq!((conn.ca_state, conn.prior_ca_state), (3, 0));
    // The handshake counts as one delivered packet.
    assert_eq!(conn.delivered, 7);
    script.sends();
    // The retransmission of packet 0 is delivered, as one of three, and packets 9 to 11.
    script.at(80 * MS).takes(sack(1, [(3, 12)]).echo(40 * MS));
    let (conn, ack_) = script.told();
    assert_eq!((conn.packets_out, conn.sacked_out), (25, 9));
    assert_eq!((ack_.acked_sacked, conn.delivered), (4, 11));
    assert_eq!(conn.snd_una, MSS);
    // The rest of the first flight is lost, as what was sent after it was delivered: 12 to 19.
    assert_eq!((ack_.losses, conn.lost_out, conn.retrans_out), (8, 10, 2));
    assert_eq!(ack_.prior_inflight, 20);
}

#[test]
fn acks_are_counted_and_their_timestamps_are_in_milliseconds() {
    let mut script = owner(10);
    script.at(40 * MS).takes(ack(1).echo(0).sent(20 * MS));
    script
        .at(41 * MS)
        .takes(ack(2).echo(7 * MS).sent(21_900 * US));
    let (conn, _) = script.told();
    assert_eq!(conn.acks, 2);
    // The connection was established at 1 s.
    assert_eq!(
        (conn.rcv_tsval, conn.rcv_tsecr, conn.ts_tick_us),
        (1_021, 1_007, 1_000)
    );
    assert_eq!((conn.srtt_us, conn.min_rtt_us), (script.srtt_us(), 40_000));
    assert_eq!((conn.now_us, conn.now_ns), (1_041_000, 1_041 * MS));
}

#[test]
fn a_rate_sample_is_of_the_newest_packet_that_an_ack_delivers() {
    // tcp_rate_skb_delivered(), tcp_rate_gen(): ten packets at 0, then one at 40 ms for each ACK.
    let mut script = owner(10);
    script.at(40 * MS).takes(ack(1).echo(0));
    let (_, first) = script.told();
    // From the handshake, which counts as delivered at time 0.
    assert_eq!((first.prior_us, first.prior_delivered), (1_000_000, 1));
    assert_eq!((first.delivered, first.interval_us), (1, 40_000));
    // The application began to write with nothing in flight (tcp_sendmsg_locked()).
    assert_eq!((first.is_app_limited, first.is_retrans), (1, 0));
    assert_eq!((first.tx_inflight, first.last_end_seq), (1, MSS));
    assert_eq!((first.rtt_us, first.age_us), (40_000, 40_000));
    script.sends();
    script.at(44 * MS).takes(ack(4).echo(0));
    let (_, second) = script.told();
    assert_eq!((second.delivered, second.interval_us), (4, 44_000));
    assert_eq!((second.tx_inflight, second.last_end_seq), (4, 4 * MSS));
    assert_eq!((second.prior_inflight, second.acked_sacked), (10, 3));
    script.takes(ack(10).echo(0));
    script.at(80 * MS).takes(ack(11).echo(40 * MS));
    let (_, third) = script.told();
    // Packet 10 was sent at 40 ms, when 2 were delivered, and 11 at the time of its ACK.
    assert_eq!((third.prior_us, third.prior_delivered), (1_040_000, 2));
    assert_eq!((third.delivered, third.interval_us), (10, 40_000));
    assert_eq!(third.tx_inflight, 10);
    assert_eq!(third.age_us, 40_000);
}

#[test]
fn an_ack_that_delivers_nothing_has_no_sample() {
    let mut script = owner(10);
    script.at(40 * MS).takes(ack(1).echo(0));
    script.takes(ack(1).echo(0));
    let (_, sample) = script.told();
    assert_eq!(
        (sample.delivered, sample.interval_us, sample.rtt_us),
        (-1, -1, -1)
    );
    assert_eq!((sample.acked_sacked, sample.losses), (0, 0));
}

#[test]
fn a_single_short_last_packet_may_be_acknowledged_late() {
    // tcp_clean_rtx_queue(), FLAG_ACK_MAYBE_DELAYED: alone in flight, and shorter than the MSS.
    for (bytes, is_delayed) in [(100, 1), (u64::from(MSS), 0), (u64::from(MSS) + 100, 0)] {
        let mut script = Script::new(Setup {
            cc: OWNER,
            is_written: true,
            ..Setup::default()
        });
        script.writes_last(bytes);
        script.sends();
        let packets = bytes.div_ceil(u64::from(MSS)) as u32;
        script.at(40 * MS).takes(ack(packets).echo(0));
        assert_eq!(script.told().1.is_ack_delayed, is_delayed, "{bytes}");
    }
}

#[test]
fn application_limited_samples_end_with_what_was_in_flight() {
    // tcp_rate_check_app_limited(): the application stops after each write. The bubble ends once `delivered`
    // passes what was delivered and in flight at the last check: with the last write (1 + 6), or on Google's
    // kernels with the last ACK (5 + 3).
    for (facts, limit, after) in [(CcFacts::Stock, 7, 0), (CcFacts::Google, 8, 8)] {
        let mut script = Script::new(Setup {
            cc: OWNER,
            is_written: true,
            facts,
            ..Setup::default()
        });
        script.writes(4);
        script.at(10 * MS).writes(2);
        script.at(20 * MS).writes(1);
        script.at(40 * MS).takes(ack(4).echo(0));
        assert_eq!(script.told().1.is_app_limited, 1);
        script.at(50 * MS).takes(ack(6).echo(10 * MS));
        let (conn, sample) = script.told();
        assert_eq!((sample.is_app_limited, conn.app_limited), (1, limit));
        script.at(60 * MS).takes(ack(7).echo(20 * MS));
        assert_eq!(script.told().0.app_limited, after);
    }
}

#[test]
fn unsent_data_are_counted_in_bytes_and_packets() {
    let mut script = Script::new(Setup {
        cc: OWNER,
        cwnd: 2,
        is_written: true,
        ..Setup::default()
    });
    script.writes(5);
    script.at(40 * MS).takes(ack(1).echo(0));
    let (conn, _) = script.told();
    assert_eq!((conn.unsent_packets, conn.unsent_bytes), (3, 3 * MSS));
    assert_eq!(conn.max_packets_out, 2);
    assert_eq!((conn.is_cwnd_limited, conn.is_cwnd_full), (1, 1));
}

#[test]
fn states_are_told_while_the_old_one_lasts() {
    // tcp_set_ca_state() calls set_state() before it changes icsk_ca_state.
    let mut script = Script::started(Setup {
        cwnd: 20,
        cc: WITNESS,
        ..Setup::default()
    });
    let mut states = |at_ms: u64, reply| {
        script.forgets();
        script.at(at_ms * MS).gets(reply);
        let told = script.told_events(EventKind::State);
        let pair = |&(conn, event): &(fullpipe_cc::Conn, fullpipe_cc::Event)| {
            (u32::from(conn.ca_state), event.value)
        };
        told.iter().map(pair).collect::<Vec<_>>()
    };
    // Open 0, Disorder 1, Recovery 3.
    assert_eq!(states(40, sack(0, [(1, 2)])), [(0, 1)]);
    assert_eq!(states(40, sack(0, [(1, 3)])), []);
    assert_eq!(states(40, sack(0, [(1, 4)])), [(1, 3)]);
    assert_eq!(states(44, ack(22).echo(40 * MS)), [(3, 0)]);
}

#[test]
fn an_rtt_event_counts_the_packets_that_it_acknowledges() {
    let mut script = Script::started(Setup {
        cc: WITNESS,
        ..Setup::default()
    });
    script.forgets();
    script.at(43 * MS).takes(ack(3).echo(0));
    let events = script.told_events(EventKind::Rtt);
    let said: Vec<(u32, u32)> = events
        .iter()
        .map(|(_, event)| (event.value, event.packets))
        .collect();
    assert_eq!(said, [(43_000, 3)]);
    // A SACK gives a sample and acknowledges none.
    script.at(44 * MS).takes(sack(3, [(4, 6)]).echo(0));
    let events = script.told_events(EventKind::Rtt);
    let said: Vec<(u32, u32)> = events
        .iter()
        .map(|(_, event)| (event.value, event.packets))
        .collect();
    assert_eq!(said, [(44_000, 0)]);
}

#[test]
fn the_bits_of_an_ack_event_say_what_was_new() {
    // tcp_in_ack_event(): slow path 1, window update 2, ECE 4.
    let mut script = Script::started(Setup {
        cc: WITNESS,
        ..Setup::default()
    });
    script.forgets();
    let mut bits = |at_ms: u64, reply| {
        script.at(at_ms * MS).takes(reply);
        let told = script.told_events(EventKind::Ack);
        told.iter()
            .map(|(_, event)| event.value)
            .collect::<Vec<_>>()
    };
    assert_eq!(bits(40, ack(1).echo(0)), [2]);
    assert_eq!(bits(40, ack(1).echo(0)), [0]);
    assert_eq!(bits(40, ack(1).echo(0).window(1 << 31)), [3]);
    assert_eq!(bits(40, sack(1, [(2, 3)]).echo(0).window(1 << 31)), [1]);
    assert_eq!(bits(41, ack(4).echo(0).window(1 << 31)), [2]);
}

#[test]
fn a_transmission_starts_when_nothing_is_in_flight() {
    // CA_EVENT_TX_START of tcp_event_data_sent().
    let mut script = Script::new(Setup {
        cc: WITNESS,
        is_written: true,
        ..Setup::default()
    });
    script.forgets();
    script.writes(3);
    assert_eq!(script.told_events(EventKind::TxStart).len(), 1);
    script.at(40 * MS).gets(ack(2).echo(0));
    script.writes(1);
    assert_eq!(script.told_events(EventKind::TxStart).len(), 0);
    script.at(50 * MS).gets(ack(4).echo(0));
    script.writes(1);
    let told = script.told_events(EventKind::TxStart);
    assert_eq!(told.len(), 1);
    // The time of the last transmission is that of the one before.
    assert_eq!(told[0].0.last_send_us, 1_040_000);
}

#[test]
fn a_timeout_is_told_once_an_episode() {
    // tcp_enter_loss(): CA_EVENT_LOSS and ssthresh() at the first timeout only.
    let mut script = Script::started(Setup {
        cc: WITNESS,
        ..Setup::default()
    });
    script.forgets();
    script.times_out();
    assert_eq!(script.told_events(EventKind::Rto).len(), 1);
    script.times_out();
    assert_eq!(script.told_events(EventKind::Rto).len(), 0);
    assert_eq!(script.ssthresh(), Some(5));
}

#[test]
fn an_ack_of_a_short_packet_with_sacked_ones_before_is_not_late() {
    // tcp_clean_rtx_queue(): prior_sacked is 0. ECN keeps the ACK off the fast path.
    for (has_sack, is_delayed) in [(false, 1), (true, 0)] {
        let mut script = Script::new(Setup {
            cc: OWNER,
            is_written: true,
            ecn: Some(fullpipe_tcp::EcnFeedback::Latched),
            ..Setup::default()
        });
        script.writes_last(100);
        script.sends();
        if has_sack {
            script.at(39 * MS).takes(sack(0, [(1, 2)]).echo(0));
        }
        script.at(40 * MS).takes(ack(1).echo(0));
        assert_eq!(script.told().1.is_ack_delayed, is_delayed);
    }
}

#[test]
fn a_dsack_of_a_packet_that_was_sent_once_shows_no_reordering() {
    // tcp_sacktag_one(), DSACK: only of a packet that is SACKed and was retransmitted.
    let mut script = owner(20);
    script.at(40 * MS);
    assert_eq!(&script.gets(sack(0, [(1, 12)]))[..2], "0r");
    script
        .at(41 * MS)
        .takes(dsack(0, [(2, 3), (1, 12)]).echo(0));
    assert_eq!(script.told().0.reordering, 3);
}

#[test]
fn googles_kernel_tells_of_each_loss_with_the_packets_age_and_flight() {
    let mut script = owner(20);
    script.forgets();
    script.at(44 * MS).takes(sack(0, [(2, 5)]).echo(0));
    let told = script.told_events(EventKind::Lost);
    let said: Vec<(u32, u32, u32)> = told
        .iter()
        .map(|(conn, event)| (event.value, event.packets, conn.lost_age_us))
        .collect();
    // One and two packets were in flight with them, one and two were lost since they were sent.
    assert_eq!(said, [(1, 1, 44_000), (2, 2, 44_000)]);
}

#[test]
fn unsent_data_stay_below_notsent_lowat() {
    // tcp_stream_memory_free(): no buffer is started at the limit. Buffers are of one packet here.
    let mut script = Script::started(Setup {
        cc: OWNER,
        notsent_lowat_bytes: Some(5 * u64::from(MSS)),
        ..Setup::default()
    });
    script.at(40 * MS).takes(ack(1).echo(0));
    assert_eq!(script.told().0.unsent_packets, 5);
}

#[test]
fn an_ack_that_others_have_overtaken_sacks_packets_and_counts_none_as_delivered() {
    // tcp_ack(), old_ack: sack_delivered is not added. Script 73-75 of the differential test.
    let mut script = Script::started(Setup::default());
    script.at(40 * MS).takes(ack(4));
    let before = script.delivered();
    script.takes(sack(2, [(5, 7)]));
    assert_eq!(
        (script.delivered(), script.sender().info().sacked),
        (before, 2)
    );
}
