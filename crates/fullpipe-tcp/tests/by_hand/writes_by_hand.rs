//! What an application writes, and what becomes of it: packets that writes leave short, the FIN, and the
//! socket's memory (tcp_sendmsg_locked(), tcp_send_fin(), sk_stream_write_space()).

use super::script::{ack, Script, Setup, MS, MSS};

const FULL: u64 = MSS as u64;

fn application(cwnd: u32) -> Script {
    Script::new(Setup {
        cwnd,
        is_written: true,
        ..Setup::default()
    })
}

/// Number, payload, PSH and FIN of what may be sent now.
fn sent(script: &mut Script) -> Vec<(u32, u32, bool, bool)> {
    let packets = script.packets();
    packets
        .iter()
        .map(|packet| (packet.number, packet.payload_bytes, packet.push, packet.fin))
        .collect()
}

#[test]
fn bytes_fill_a_short_packet_that_is_not_sent_yet() {
    let mut script = application(1);
    script.writes(1);
    // The window is full: 100 bytes wait, and 1400 more fill them up to 1448 and leave 52.
    script.writes_bytes(100);
    assert_eq!(script.sender().unsent_bytes(), 100);
    script.writes_bytes(1_400);
    assert_eq!(script.sender().unsent_bytes(), 1_500);
    assert_eq!(script.sender().written_bytes(), FULL + 1_500);
    script.sets_window(10, 10);
    let payloads: Vec<(u32, u32)> = sent(&mut script).iter().map(|one| (one.0, one.1)).collect();
    assert_eq!(payloads, [(1, 1_448), (2, 52)]);
}

#[test]
fn bytes_after_a_short_packet_that_was_sent_begin_another() {
    let mut script = Script::new(Setup {
        is_written: true,
        nodelay: true,
        ..Setup::default()
    });
    script.writes_bytes(100);
    let first: Vec<u32> = sent(&mut script).iter().map(|one| one.1).collect();
    script.writes_bytes(1_500);
    let second: Vec<u32> = sent(&mut script).iter().map(|one| one.1).collect();
    assert_eq!((first, second), (vec![100], vec![1_448, 52]));
    let sender = script.sender();
    assert_eq!(sender.written_bytes(), 1_600);
    let before: Vec<u64> = (0..4).map(|number| sender.bytes_before(number)).collect();
    assert_eq!(before, [0, 100, 1_548, 1_600]);
    script.at(40 * MS).gets(ack(2));
    assert_eq!(script.sender().acked_bytes(), 1_548);
    assert!(!script.sender().is_drained());
    script.gets(ack(3));
    assert!(script.sender().is_drained());
}

#[test]
fn a_write_that_just_fills_a_short_packet_leaves_none() {
    let mut script = application(1);
    script.writes(1);
    script.writes_bytes(100);
    script.writes_bytes(1_348);
    script.writes_bytes(10);
    script.sets_window(10, 10);
    let payloads: Vec<u32> = sent(&mut script).iter().map(|one| one.1).collect();
    assert_eq!(payloads, [1_448, 10]);
}

#[test]
fn the_last_bytes_carry_the_fin_if_they_wait_and_else_it_goes_alone() {
    // tcp_send_fin() appends it to what waits in the write queue.
    let mut script = application(2);
    script.writes_last(3 * FULL + 7);
    assert_eq!(
        sent(&mut script),
        [(0, MSS, false, false), (1, MSS, false, false)]
    );
    script.at(40 * MS).takes(ack(2));
    assert_eq!(
        sent(&mut script),
        [(2, MSS, false, false), (3, 7, true, true)]
    );
    // The FIN counts as one byte of the sequence space.
    let sender = script.sender();
    let at: Vec<u64> = (2..5).map(|number| sender.sequence_bytes(number)).collect();
    assert_eq!(at, [2 * FULL, 3 * FULL, 3 * FULL + 8]);
    script.at(80 * MS).takes(ack(4));
    let sender = script.sender();
    assert_eq!(
        (sender.acked_bytes(), sender.is_finished()),
        (3 * FULL + 7, true)
    );
    assert!(!sender.is_closed(), "the peer has not closed");
    script.takes(ack(4).fin());
    assert!(script.sender().is_closed());

    // The window takes all: everything is sent before the application closes.
    let mut script = application(10);
    script.writes_last(FULL + 7);
    assert_eq!(
        sent(&mut script),
        [
            (0, MSS, false, false),
            (1, 7, true, false),
            (2, 0, false, true)
        ]
    );
    let sender = script.sender();
    let at: Vec<u64> = (1..4).map(|number| sender.sequence_bytes(number)).collect();
    assert_eq!(at, [FULL, FULL + 7, FULL + 8]);
    script.at(40 * MS).takes(ack(2));
    let sender = script.sender();
    assert_eq!(
        (sender.acked_bytes(), sender.is_finished()),
        (FULL + 7, true)
    );
    script.takes(ack(2).fin());
    assert!(
        !script.sender().is_closed(),
        "this side's FIN is not acknowledged"
    );
    script.takes(ack(3).fin());
    assert!(script.sender().is_closed());
    // A FIN is no packet with data.
    assert_eq!(script.totals().packets_sent, 2);
}

#[test]
fn the_window_decides_about_the_fin_with_what_is_in_flight() {
    // Of a window of 3 one packet is in flight: two fit, three do not.
    for (packets, fin_alone) in [(2, true), (3, false)] {
        let mut script = application(3);
        script.writes(1);
        script.writes_last(packets * FULL);
        sent(&mut script);
        script.at(40 * MS).takes(ack(1));
        let rest = sent(&mut script);
        assert_eq!(
            rest.last().map(|one| (one.1 == 0, one.3)),
            Some((fin_alone, true))
        );
    }
}

#[test]
fn a_stream_that_ends_sends_what_was_written_and_its_fin() {
    let mut script = application(4);
    script.writes(2);
    script.stop();
    assert_eq!(sent(&mut script), [(2, 0, false, true)]);
    // With data that wait the last one carries it.
    let mut script = application(1);
    script.writes(3);
    script.stop();
    script.at(40 * MS).takes(ack(1));
    assert_eq!(
        sent(&mut script),
        [(1, MSS, false, false), (2, MSS, true, true)]
    );
}

#[test]
fn an_unlimited_application_that_pauses_leaves_nothing_half_written() {
    let mut script = application(4);
    script.set_unlimited(true);
    assert_eq!(script.sends(), "0 1 2 3");
    script.set_unlimited(false);
    let written = script.sender().written_bytes();
    assert_eq!(written % FULL, 0);
    let mut next = 4;
    for round in 1..100 {
        script.at(round * 40 * MS);
        let sent = script.gets(ack(next));
        if sent.is_empty() {
            break;
        }
        next = 1 + sent.rsplit(' ').next().unwrap().parse::<u32>().unwrap();
    }
    assert_eq!(u64::from(next) * FULL, written);
    assert!(script.sender().is_drained());
}

#[test]
fn unsent_data_stay_below_notsent_lowat_and_one_buffer() {
    // TCP_NOTSENT_LOWAT is checked when a buffer is started: bursts of one packet make buffers of one.
    let mut script = Script::new(Setup {
        notsent_lowat_bytes: Some(5 * FULL),
        ..Setup::default()
    });
    assert_eq!(script.sends(), "0 1 2 3 4 5 6 7 8 9");
    let mut setup_windows = vec![];
    for next in 1..4 {
        script.at(40 * MS + u64::from(next) * MS).gets(ack(next));
        setup_windows.push(script.cwnd());
    }
    assert_eq!(setup_windows, [11, 12, 13]);
}

#[test]
fn a_flow_of_less_than_a_packet_is_one_short_packet() {
    let mut script = Script::new(Setup {
        amount_bytes: Some(100),
        ..Setup::default()
    });
    assert_eq!(
        sent(&mut script),
        [(0, 100, true, false), (1, 0, false, true)]
    );
}

#[test]
fn nothing_is_sent_before_the_handshake_is_done() {
    let mut script = Script::unestablished(Setup::default());
    assert_eq!(script.sends(), "");
    script.syn_times_out();
    script.syn_times_out();
    let totals = script.totals();
    assert_eq!((totals.packets_retransmitted, totals.timeouts), (2, 2));
}

/// Payloads of what is sent when an application writes 100 bytes each 10 ms, up to 90 ms; packets up to each
/// number are acknowledged at 40 and 80 ms.
fn tiny_writes(nodelay: bool) -> Vec<u32> {
    let mut script = Script::new(Setup {
        is_written: true,
        nodelay,
        ..Setup::default()
    });
    let mut payloads = Vec::new();
    for step in 0..10 {
        script.at(10 * step * MS);
        if step == 4 || step == 8 {
            script.takes(ack(payloads.len() as u32));
        }
        script.writes_bytes(100);
        payloads.extend(sent(&mut script).iter().map(|packet| packet.1));
    }
    payloads
}

#[test]
fn a_short_packet_waits_until_the_short_one_before_is_acknowledged() {
    // RFC 896 as tcp_nagle_check() has it: 100 bytes leave, then what 40 ms bring.
    assert_eq!(tiny_writes(false), [100, 400, 400]);
    assert_eq!(tiny_writes(true), [100; 10]);
}

#[test]
fn a_short_packet_does_not_wait_for_full_ones() {
    // tcp_minshall_check() asks for short packets only; tcp_mss_split_point() takes the short end of a burst
    // with it.
    for burst_packets in [1, 4] {
        let mut script = Script::new(Setup {
            is_written: true,
            burst_packets,
            ..Setup::default()
        });
        script.writes_bytes(2 * FULL + 100);
        let payloads: Vec<u32> = sent(&mut script).iter().map(|packet| packet.1).collect();
        assert_eq!(payloads, [1_448, 1_448, 100]);
        // The next short end waits, and the full packets before it do not.
        script.writes_bytes(2 * FULL + 50);
        let payloads: Vec<u32> = sent(&mut script).iter().map(|packet| packet.1).collect();
        assert_eq!(payloads, [1_448, 1_448]);
        script.at(40 * MS).takes(ack(2));
        assert_eq!(sent(&mut script), [], "packet 2 is unacknowledged");
        script.takes(ack(3));
        let payloads: Vec<u32> = sent(&mut script).iter().map(|packet| packet.1).collect();
        assert_eq!(payloads, [50]);
    }
}

#[test]
fn what_bursts_leave_of_the_receive_window_is_filled_with_a_part_of_a_packet() {
    // tcp_mss_split_point(); tcp_snd_wnd_test() asks for room for the first packet of a burst.
    for (burst_packets, payloads) in [(1, vec![1_448, 1_448]), (4, vec![1_448, 1_448, 700])] {
        let mut script = Script::new(Setup {
            is_written: true,
            rtt_ns: MS, // bursts are not cut
            burst_packets,
            ..Setup::default()
        });
        script.writes_bytes(FULL);
        sent(&mut script);
        script.at(MS).takes(ack(1).window(2 * FULL + 700));
        script.writes_bytes(5 * FULL);
        let window: Vec<u32> = sent(&mut script).iter().map(|packet| packet.1).collect();
        assert_eq!(window, payloads);
        // What follows is cut into packets from there on.
        script.at(2 * MS).takes(ack(1 + window.len() as u32));
        let rest: Vec<u32> = sent(&mut script).iter().map(|packet| packet.1).collect();
        assert_eq!(rest[..2], [1_448, 1_448]);
        assert_eq!(rest.iter().chain(&window).sum::<u32>(), 5 * 1_448);
        let next = 1 + (window.len() + rest.len()) as u32;
        script.at(3 * MS).takes(ack(next));
        assert!(script.sender().is_drained());
    }
}

#[test]
fn a_short_packet_that_waits_leaves_with_the_fin() {
    // tcp_send_fin(): __tcp_push_pending_frames() with TCP_NAGLE_OFF.
    let mut script = application(10);
    script.writes_bytes(100);
    sent(&mut script);
    script.writes_bytes(200);
    assert_eq!(sent(&mut script), []);
    script.writes_last(50);
    let payloads: Vec<u32> = sent(&mut script).iter().map(|packet| packet.1).collect();
    assert_eq!(payloads.iter().sum::<u32>(), 250);
}

#[test]
fn a_loss_probe_sends_the_short_packet_that_waits() {
    // tcp_send_loss_probe(): tcp_write_xmit() with TCP_NAGLE_OFF.
    let mut script = application(10);
    script.writes_bytes(100);
    sent(&mut script);
    script.writes_bytes(200);
    assert_eq!(sent(&mut script), []);
    assert_eq!(script.fires(), "1");
}

#[test]
fn a_packet_begins_where_the_one_before_ended_and_nowhere_else() {
    let mut script = Script::started(Setup {
        is_written: true,
        nodelay: true,
        ..Setup::default()
    });
    script.writes_bytes(2 * u64::from(MSS) + 100);
    assert_eq!(script.sends(), "0 1 2");
    script.writes_bytes(u64::from(MSS));
    assert_eq!(script.sends(), "3");
    let mss = u64::from(MSS);
    for (byte, packet) in [
        (0, Some(0)),
        (mss, Some(1)),
        (2 * mss, Some(2)),
        (2 * mss + 100, Some(3)),
        (3 * mss + 100, Some(4)),
        (3 * mss, None),
        (1, None),
    ] {
        assert_eq!(script.sender().packet_at(byte), packet, "{byte}");
    }
    let info = script.sender().info();
    assert_eq!(
        (info.unacked, info.data_segs_out, info.notsent_bytes),
        (4, 4, 0)
    );
}
