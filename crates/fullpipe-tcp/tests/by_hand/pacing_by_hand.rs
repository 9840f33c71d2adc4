//! Pacing and bursts: tcp_update_skb_after_send(), tcp_pacing_check(), tcp_tso_autosize(),
//! tcp_small_queue_check().

use super::script::{ack, sack, Script, Setup, MS, MSS, OWNER, US};

/// At this rate a full packet takes a millisecond.
const PACKET_A_MS: u64 = 1_000 * MSS as u64;

fn paced(is_written: bool) -> Script {
    Script::new(Setup {
        cc: OWNER,
        cwnd: 100,
        rate: PACKET_A_MS,
        is_written,
        ..Setup::default()
    })
}

#[test]
fn pacing_begins_with_the_tenth_packet() {
    // data_segs_out >= TCP_INIT_CWND.
    let mut script = paced(false);
    assert_eq!(script.sends(), "0 1 2 3 4 5 6 7 8 9");
    for number in 10..14_u64 {
        let due_ns = (number - 9) * MS;
        assert_eq!(script.timer(), Some(due_ns));
        assert_eq!(script.fires(), number.to_string());
    }
}

#[test]
fn a_late_packet_has_a_credit_of_its_delay_but_of_half_its_length_at_most() {
    let mut script = paced(true);
    assert_eq!(script.writes(10).split(' ').count(), 10);
    // The next may leave at 1 ms, and leaves at 1.2 ms: the one after at 2 ms.
    assert_eq!((script.timer(), script.fires().as_str()), (Some(MS), ""));
    script.at(1_200 * US);
    assert_eq!(script.writes(2), "10");
    assert_eq!(script.timer(), Some(2 * MS));
    assert_eq!(
        (script.fires().as_str(), script.fires().as_str()),
        ("11", "")
    );
    // It leaves 2 ms late: the next one half a millisecond later.
    script.at(5 * MS);
    assert_eq!(script.writes(2), "12");
    assert_eq!(script.timer(), Some(5_500 * US));
}

#[test]
fn with_fq_packets_carry_their_time_of_departure() {
    let mut script = Script::new(Setup {
        cc: OWNER,
        cwnd: 14,
        rate: PACKET_A_MS,
        fq: true,
        pacing_shift: 2,
        ..Setup::default()
    });
    let packets = script.packets();
    let first_ns = packets[0].departs_ns;
    let after: Vec<u64> = packets
        .iter()
        .map(|packet| (packet.departs_ns - first_ns) / US)
        .collect();
    // The eleventh and later ones a millisecond apart.
    assert_eq!(after[..10], [0; 10]);
    assert_eq!(after[10..], [1_000, 2_000, 3_000, 4_000]);
}

#[test]
fn a_retransmission_is_paced_like_a_new_packet() {
    let mut script = paced(true);
    script.writes(12);
    for sent in ["10", "11", ""] {
        assert_eq!(script.fires(), sent);
    }
    script.at(40 * MS);
    assert_eq!(script.gets(sack(0, [(4, 8)])), "0r");
    // 37 ms late: half a millisecond of credit.
    assert_eq!(script.timer(), Some(40_500 * US));
    assert_eq!(script.fires(), "1r");
    assert_eq!(script.timer(), Some(41_500 * US));
}

#[test]
fn a_burst_lasts_for_a_millisecond_and_longer_on_short_paths() {
    // tcp_tso_autosize(): rate >> 10 bytes, and 65279 >> (min_rtt_us >> 9) more. An algorithm's least burst
    // is one packet, the device's largest 44.
    let rate = 1024 * 6 * u64::from(MSS);
    for (rtt_us, packets) in [
        (40_000, 6),
        // (8688 + 65279 / 2) / 1448 = 28.5, (8688 + 65279 / 4) / 1448 = 17.3.
        (1_000, 28),
        (1_024, 17),
        (4_608, 6),
        (511, 44),
    ] {
        let mut script = Script::new(Setup {
            cc: OWNER,
            rtt_ns: rtt_us * US,
            cwnd: 200,
            rate,
            burst_packets: 44,
            ..Setup::default()
        });
        // Later bursts wait for their time.
        assert_eq!(script.bursts()[0], packets, "{rtt_us}");
    }
}

#[test]
fn a_burst_is_at_most_half_a_window() {
    // tcp_cwnd_test().
    for (cwnd, sizes) in [(10, vec![5, 5]), (7, vec![3, 3, 1]), (1, vec![1])] {
        let mut script = Script::new(Setup {
            cc: OWNER,
            rtt_ns: 500 * US,
            cwnd,
            burst_packets: 44,
            ..Setup::default()
        });
        assert_eq!(script.bursts(), sizes, "{cwnd}");
    }
}

#[test]
fn small_queues_count_the_memory_of_bursts_and_of_the_socket() {
    // tcp_small_queue_check(): sk_wmem_alloc, with 896 bytes a buffer and one for the socket, must not exceed
    // twice the next buffer's memory. At this rate 2^-10 s are less.
    let mut script = Script::new(Setup {
        cc: OWNER,
        cwnd: 20,
        rate: PACKET_A_MS,
        fq: true,
        ..Setup::default()
    });
    let first = script.packets();
    assert_eq!(first.len(), 2);
    // One leaves: one more may be queued.
    script.departs(&first[0]);
    assert_eq!(script.sends(), "2");
    assert_eq!(script.sends(), "");
    script.departs(&first[1]);
    assert_eq!(script.sends(), "3");
}

#[test]
fn small_queues_allow_the_time_that_the_pacing_shift_says() {
    // 2344 bytes a packet. At 1024 * 4 * 2344 bytes/s a shift of 10 allows four of them, and the socket's
    // byte is too many for a fifth; with one byte more it is not.
    for (bytes, packets) in [(4 * 2_344, 4), (4 * 2_344 + 1, 5)] {
        let mut script = Script::new(Setup {
            cc: OWNER,
            cwnd: 20,
            rate: 1_024 * bytes,
            fq: true,
            ..Setup::default()
        });
        assert_eq!(script.packets().len(), packets, "{bytes}");
    }
}

#[test]
fn retransmissions_may_queue_twice_as_much() {
    let mut script = Script::new(Setup {
        cc: OWNER,
        cwnd: 12,
        rate: 1_024 * 3_000,
        fq: true,
        ..Setup::default()
    });
    let mut all = Vec::new();
    loop {
        let some = script.packets();
        if some.is_empty() {
            break;
        }
        for packet in &some {
            script.departs(packet);
        }
        all.extend(some);
    }
    assert_eq!(all.len(), 12);
    // Four packets of 2344 bytes are twice 4688 bytes; the socket's byte is too many for a fifth.
    script.at(40 * MS);
    assert_eq!(script.gets(sack(0, [(9, 12)])), "0r 1r 2r 3r");
    script.departs(&all[0]);
    assert_eq!(script.gets(ack(0)), "4r");
}
