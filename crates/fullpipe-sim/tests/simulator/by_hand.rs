//! Small runs whose every time and count is worked out by hand: probes, streams of datagrams, queue samples,
//! hosts that cost time, captures, and plans that are refused.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use crate::parts::{self, flow, wire};
use fullpipe_net::impair::{self, crandom, loss};
use fullpipe_net::{Medium, WireDirection};
use fullpipe_plan::{
    Datagrams, Flow, FlowDirection, HostWork, Hosts, Link, Plan, Probe, ProbeKind, ReaderPauses,
    Route,
};
use fullpipe_sim::{run, Inputs, Outcome, PcapWriter};

const MS: u64 = 1_000_000;

/// A direction that delays, with a rate or without one.
fn direction(rate_bps: Option<u64>, delay_ms: u64) -> WireDirection {
    WireDirection {
        delay_ns: delay_ms * MS,
        ..wire(rate_bps, 1000)
    }
}

fn link(name: &str, forward: WireDirection, reverse: WireDirection) -> Link {
    Link {
        name: name.to_owned(),
        medium: Medium::Wire {
            forward: Box::new(forward),
            reverse: Box::new(reverse),
        },
    }
}

/// A flow that starts behind the end: there has to be one.
fn later() -> Flow {
    flow(0, 0, 100_000, None)
}

fn ping(interval_ms: u64, start_ms: u64, route: Route) -> Probe {
    Probe {
        name: "ping".to_owned(),
        kind: ProbeKind::Ping,
        interval_ns: interval_ms * MS,
        start_ns: start_ms * MS,
        route,
        hosts: Hosts::default(),
        dscp: 0,
    }
}

/// Datagrams of 1000 bytes, 1042 on the wire, each 100 ms from 50 ms to 500 ms: five.
fn stream(direction: FlowDirection) -> Datagrams {
    Datagrams {
        name: "stream".to_owned(),
        direction,
        route: Route::default(),
        hosts: Hosts::default(),
        dscp: 0,
        start_ns: 50 * MS,
        stop_ns: Some(500 * MS),
        payload_bytes: 1000,
        interval_ns: 100 * MS,
        frame_bytes: None,
        deadline_ns: None,
        on_off: None,
    }
}

/// A second over one link of 10 ms there and 5 ms back, 1 and 2 ms outside it.
fn plan() -> Plan {
    let mut plan = parts::plan(direction(None, 10), direction(None, 5), vec![later()]);
    plan.duration_ns = 1000 * MS;
    plan.sample_interval_ns = 100 * MS;
    plan.access.forward_delay_ns = MS;
    plan.access.reverse_delay_ns = 2 * MS;
    plan
}

fn outcome(plan: &Plan) -> Outcome {
    run(plan, Inputs::default(), &mut |_| true).expect("the plan is sound")
}

fn rtts_us(done: &Outcome) -> Vec<Option<u64>> {
    done.tables
        .ping_samples
        .iter()
        .map(|row| row.rtt_us)
        .collect()
}

fn delays_us(done: &Outcome) -> Vec<Option<u64>> {
    let rows = done.tables.datagrams.as_ref().expect("a stream");
    rows.iter().map(|row| row.delay_us).collect()
}

fn always() -> loss::Params {
    loss::Params {
        probability_ppm: 1_000_000,
        correlation_ppm: 0,
        ecn: false,
        per_burst: false,
    }
}

/// Copies every packet.
fn copying() -> impair::Params {
    impair::Params {
        duplicate: Some(crandom::Params {
            probability_ppm: 1_000_000,
            correlation_ppm: 0,
        }),
        ..impair::Params::default()
    }
}

fn forward(plan: &mut Plan) -> &mut WireDirection {
    match &mut plan.links[0].medium {
        Medium::Wire { forward, .. } => forward,
        other => panic!("not a wire: {other:?}"),
    }
}

fn reverse(plan: &mut Plan) -> &mut WireDirection {
    match &mut plan.links[0].medium {
        Medium::Wire { reverse, .. } => reverse,
        other => panic!("not a wire: {other:?}"),
    }
}

#[test]
fn a_probe_asks_at_its_interval_and_hears_after_all_delays_of_its_path() {
    let mut plan = plan();
    plan.probes = vec![
        ping(100, 50, Route::default()),
        ping(400, 0, Route::default()),
    ];
    plan.probes[1].name = "other".to_owned();
    let done = outcome(&plan);
    let rows: Vec<_> = (done.tables.ping_samples.iter())
        .filter(|row| row.probe == "ping")
        .map(|row| (row.t_us, row.seq, row.rtt_us))
        .collect();
    let expected: Vec<_> = (0..10)
        .map(|seq| (50_000 + seq * 100_000, seq, Some(18_000)))
        .collect();
    assert_eq!(rows, expected);
    let other: Vec<_> = (done.tables.ping_samples.iter())
        .filter(|row| row.probe == "other")
        .map(|row| (row.t_us, row.seq))
        .collect();
    assert_eq!(other, [(0, 0), (400_000, 1), (800_000, 2)]);
}

#[test]
fn a_request_at_the_end_of_the_run_is_recorded_and_has_no_answer() {
    let mut plan = plan();
    plan.probes = vec![ping(491, 18, Route::default())];
    // 18, 509 and 1000 ms.
    assert_eq!(rtts_us(&outcome(&plan)), [Some(18_000), Some(18_000), None]);
    plan.probes = vec![ping(964, 18, Route::default())];
    // The answer to the one at 982 ms comes at the very end.
    assert_eq!(rtts_us(&outcome(&plan)), [Some(18_000), Some(18_000)]);
    plan.probes = vec![ping(965, 18, Route::default())];
    assert_eq!(rtts_us(&outcome(&plan)), [Some(18_000), None]);
}

#[test]
fn of_a_pings_copies_the_first_counts() {
    // The shaper's bucket is full at first: the copy of the request leaves with it, and does not count.
    let mut plan = plan();
    *forward(&mut plan) = WireDirection {
        impairments: Some(copying()),
        ..direction(Some(10_000), 10)
    };
    plan.probes = vec![ping(2000, 0, Route::default())];
    assert_eq!(rtts_us(&outcome(&plan)), [Some(18_000)]);
    // The same of a datagram, whose copy comes 833.6 ms later.
    plan.probes.clear();
    plan.datagrams = vec![Datagrams {
        start_ns: 0,
        stop_ns: Some(MS),
        ..stream(FlowDirection::Up)
    }];
    assert_eq!(delays_us(&outcome(&plan)), [Some(11_000)]);
}

#[test]
fn packets_beyond_the_bucket_pay_for_those_before_them() {
    // 12 kB/s: a ping of 98 bytes takes 8.1666 ms. The bucket of 1600 bytes is full at 0: 17 packets pass,
    // the next one waits for 17 * 98 - 1600 = 66 bytes.
    let mut plan = plan();
    *forward(&mut plan) = direction(Some(96_000), 10);
    plan.probes = (0..19).map(|_| ping(5000, 0, Route::default())).collect();
    let rtts = rtts_us(&outcome(&plan));
    assert_eq!(rtts[..17], [Some(18_000); 17]);
    assert_eq!(rtts[17..], [Some(23_500), Some(31_666)]);
}

#[test]
fn a_route_passes_its_own_links_and_no_others() {
    let mut plan = plan();
    plan.links = (0..3)
        .map(|place| {
            let name = format!("hop{place}");
            link(
                &name,
                direction(None, 10 << place),
                direction(None, 1 << place),
            )
        })
        .collect();
    for (enter, leave, links_ms) in [
        (0, 0, 11),
        (1, 1, 22),
        (2, 2, 44),
        (0, 1, 33),
        (1, 2, 66),
        (0, 2, 77),
    ] {
        plan.probes = vec![ping(5000, 0, Route { enter, leave })];
        assert_eq!(
            rtts_us(&outcome(&plan)),
            [Some((links_ms + 3) * 1000)],
            "{enter} {leave}"
        );
    }
    // A queue between two links delays what comes behind as well.
    plan.links[1] = link("hop1", direction(Some(96_000), 20), direction(None, 2));
    plan.probes = (0..18)
        .map(|_| ping(5000, 0, Route { enter: 0, leave: 2 }))
        .collect();
    // The shaper has credit for 1600 bytes: 17 packets pass, one more waits for 66 bytes.
    let rtts = rtts_us(&outcome(&plan));
    assert_eq!(rtts[..17], [Some(80_000); 17]);
    assert_eq!(rtts[17], Some(80_000 + 66 * 1_000_000 / 12_000));
}

#[test]
fn links_without_a_delay_and_links_that_hold_packets_pass_them_on() {
    // What a link passes now enters the next one now; the second one holds each packet for 7 ms.
    let mut plan = plan();
    plan.links = ["a", "b", "c"]
        .map(|name| link(name, direction(None, 0), direction(None, 0)))
        .to_vec();
    let all = Route { enter: 0, leave: 2 };
    plan.probes = vec![ping(5000, 0, all)];
    assert_eq!(rtts_us(&outcome(&plan)), [Some(3000)]);
    plan.links[0] = link(
        "a",
        direction(Some(8_000_000), 0),
        direction(Some(8_000_000), 0),
    );
    assert_eq!(rtts_us(&outcome(&plan)), [Some(3000)]);
    let holding = |delay_ms| WireDirection {
        impairments: Some(impair::Params {
            hold: Some(impair::hold::Params {
                time_ns: 7 * MS,
                packets: None,
            }),
            ..impair::Params::default()
        }),
        ..direction(None, delay_ms)
    };
    plan.links[1] = link("b", holding(4), holding(0));
    assert_eq!(rtts_us(&outcome(&plan)), [Some(3000 + 7000 + 4000 + 7000)]);
}

#[test]
fn datagrams_take_the_delays_of_their_direction() {
    let mut plan = plan();
    plan.datagrams = vec![stream(FlowDirection::Up), stream(FlowDirection::Down)];
    let done = outcome(&plan);
    let rows = done.tables.datagrams.as_ref().expect("streams");
    for (id, delay_us) in [(0, 11_000), (1, 7_000)] {
        let own: Vec<_> = (rows.iter().filter(|row| row.stream_id == id))
            .map(|row| (row.t_us, row.seq, row.frame, row.bytes, row.delay_us))
            .collect();
        let expected: Vec<_> = (0..5)
            .map(|seq| (50_000 + seq * 100_000, seq, seq, 1000, Some(delay_us)))
            .collect();
        assert_eq!(own, expected);
    }
    assert_eq!(
        (
            done.packets_delivered,
            done.packets_in_flight,
            done.control.sent
        ),
        (0, 0, 0)
    );
}

#[test]
fn loss_at_the_hosts_is_of_datagrams_in_its_direction_and_not_of_probes() {
    for (forth, back) in [(true, false), (false, true)] {
        let mut plan = plan();
        plan.access.loss = forth.then(always);
        plan.access.reverse_loss = back.then(always);
        plan.probes = vec![ping(5000, 0, Route::default())];
        plan.datagrams = vec![stream(FlowDirection::Up), stream(FlowDirection::Down)];
        plan.links.push(link(
            "second",
            direction(Some(8_000_000), 0),
            direction(None, 0),
        ));
        *forward(&mut plan) = direction(Some(8_000_000), 10);
        *reverse(&mut plan) = direction(Some(8_000_000), 5);
        let done = outcome(&plan);
        assert_eq!(rtts_us(&done), [Some(18_000)]);
        let rows = done.tables.datagrams.as_ref().expect("streams");
        for row in rows {
            let is_lost = if row.stream_id == 0 { forth } else { back };
            assert_eq!(row.delay_us.is_none(), is_lost, "{row:?}");
        }
        // The loss is counted with the queue of the first link.
        let at_end = |name: &str| {
            let mut rows = done.tables.queue_samples.iter().rev();
            rows.find(|row| row.queue == name)
                .map_or(99, |row| row.random_lost_packets)
        };
        let lost = |is_lost| if is_lost { 5 } else { 0 };
        assert_eq!(at_end("forward"), lost(forth));
        assert_eq!(at_end("reverse"), lost(back));
        assert_eq!(at_end("second.forward"), 0);
        assert_eq!(
            at_end("second.reverse"),
            99,
            "without a rate there is no queue"
        );
    }
}

#[test]
fn queues_are_sampled_at_the_interval_with_what_waits_and_what_has_gone() {
    // Three frames of three datagrams at 10, 110 and 210 ms over 8 kB/s: of each datagram of 1042 bytes 130.25
    // ms. The buffer holds 4 of them.
    let mut plan = plan();
    *forward(&mut plan) = wire(Some(64_000), 3);
    plan.sample_interval_ns = 50 * MS;
    plan.datagrams = vec![Datagrams {
        start_ns: 10 * MS,
        stop_ns: Some(300 * MS),
        frame_bytes: Some(3000),
        ..stream(FlowDirection::Up)
    }];
    let done = outcome(&plan);
    let rows: Vec<_> = (done.tables.queue_samples.iter())
        .filter(|row| row.queue == "forward")
        .map(|row| {
            (
                row.t_us / 1000,
                row.queue_packets,
                row.sent_packets,
                row.dropped_packets,
            )
        })
        .collect();
    // The bucket of 1600 bytes is full at 0: datagrams leave at 10, 10, 70.5, 200.75 and 331 ms. The second
    // frame finds none waiting, the third 2, so that 2 more fit.
    let expected = [
        (50, 1, 2, 0),
        (100, 0, 3, 0),
        (150, 3, 3, 0),
        (200, 3, 3, 0),
        (250, 4, 4, 1),
        (300, 4, 4, 1),
        (350, 3, 5, 1),
        (400, 3, 5, 1),
    ];
    assert_eq!(rows[..8], expected);
    assert_eq!(rows.len(), 20);
    for row in done.tables.queue_samples.iter() {
        assert_eq!(row.queue_bytes, 1042 * row.queue_packets);
        assert_eq!(row.sent_bytes, 1042 * row.sent_packets);
    }
    let frames = done
        .tables
        .datagrams
        .as_ref()
        .expect("a stream")
        .iter()
        .map(|row| row.frame);
    assert_eq!(frames.collect::<Vec<_>>(), [0, 0, 0, 1, 1, 1, 2, 2, 2]);
}

/// When something first happened to the first flow, in us.
fn when(done: &Outcome, event: &str) -> u64 {
    let mut rows = done.tables.events.iter();
    rows.find(|row| row.event == event)
        .map_or(0, |row| row.t_us)
}

/// One flow with one packet; the RTT is 18 ms, 11 of them up.
fn one_packet(start_ms: u64) -> Plan {
    let mut plan = plan();
    plan.flows = vec![Flow {
        amount_bytes: Some(1448),
        ..flow(1, 0, start_ms, None)
    }];
    plan
}

#[test]
fn the_first_connection_waits_for_arp_and_a_later_one_does_not() {
    for (start_ms, arp, established_ms) in [
        (0, false, 18),
        (0, true, 36),
        (17, true, 53),
        (18, true, 36),
    ] {
        let mut plan = one_packet(start_ms);
        plan.host.arp = arp;
        assert_eq!(
            when(&outcome(&plan), "established"),
            established_ms * 1000,
            "{start_ms} {arp}"
        );
    }
}

#[test]
fn an_access_link_holds_the_second_packet_back() {
    // Linux's tbf with a bucket of 1600 bytes: the first packet leaves at once, and 86 bytes are left. The other
    // 1428 take 11.424 ms at 1 Mbit/s.
    for (packets, access_bps, extra_us) in [(1, 0, 0), (1, 1_000_000, 0), (2, 1_000_000, 11_424)] {
        let mut plan = one_packet(0);
        plan.flows[0].amount_bytes = Some(1448 * packets);
        plan.host.access_rate_bps = access_bps;
        let done = outcome(&plan);
        assert_eq!(when(&done, "established"), 18_000);
        assert_eq!(
            when(&done, "finish"),
            36_000 + extra_us,
            "{packets} {access_bps}"
        );
    }
}

#[test]
fn a_hosts_processor_takes_its_time_for_each_packet() {
    // The server takes 20 us for the SYN, the client for the SYN-ACK. The handshake's ACK, at the server for 20
    // us, and the data, made in 10 us, arrive 10 us apart: 30 us after the ACK came it begins with the data,
    // if that is later. 100 us for the data and 50 us for its ACK, which costs its receiver 50 us.
    let mut plan = one_packet(0);
    plan.host.work = Some(HostWork {
        packet_ns: 100_000,
        ack_ns: 50_000,
        send_ns: 10_000,
        handshake_ns: 20_000,
    });
    let done = outcome(&plan);
    let established = 18_000 + 20 + 20;
    assert_eq!(when(&done, "established"), established);
    assert_eq!(
        when(&done, "finish"),
        established + 18_000 + 20 + 100 + 50 + 50
    );
    // A burst of two is made in 20 us. The first packets are acknowledged one by one (quick ACKs), and the
    // second packet waits for the first one's ACK.
    plan.flows[0].amount_bytes = Some(2 * 1448);
    assert_eq!(
        when(&outcome(&plan), "finish"),
        established + 18_000 + 20 + 2 * 150 + 50
    );
}

#[test]
fn jitter_delays_what_goes_back_and_no_more_than_its_maximum() {
    let mut plan = plan();
    plan.access.jitter = Some(impair::jitter::Params {
        shape: impair::jitter::Shape::PerPacket,
        max_ns: 4 * MS,
    });
    plan.probes = vec![ping(10, 0, Route::default())];
    plan.datagrams = vec![stream(FlowDirection::Up), stream(FlowDirection::Down)];
    let done = outcome(&plan);
    let rtts: Vec<u64> = rtts_us(&done).into_iter().flatten().collect();
    assert!(rtts.len() > 90 && rtts.iter().all(|us| (18_000..=22_000).contains(us)));
    assert!(rtts.iter().any(|&us| us > 21_000) && rtts.iter().any(|&us| us < 19_000));
    let rows = done.tables.datagrams.as_ref().expect("streams");
    for row in rows {
        let delay_us = row.delay_us.expect("none is lost");
        match row.stream_id {
            0 => assert_eq!(delay_us, 11_000),
            _ => assert!((7_000..=11_000).contains(&delay_us)),
        }
    }
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("one thread").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The packets of a run's capture, each with its header of 16 bytes.
fn captured(plan: &Plan) -> (Vec<u8>, Vec<Vec<u8>>) {
    let file = Shared::default();
    let inputs = Inputs {
        pcap: Some(PcapWriter::new(Box::new(file.clone())).expect("memory")),
        ..Inputs::default()
    };
    run(plan, inputs, &mut |_| true).expect("the plan is sound");
    let bytes = file.0.lock().expect("one thread").clone();
    let (header, mut rest) = bytes.split_at(24);
    let mut packets = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[8..12].try_into().expect("four"));
        let (packet, behind) = rest.split_at(16 + length as usize);
        packets.push(packet.to_vec());
        rest = behind;
    }
    (header.to_vec(), packets)
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text
        .chars()
        .filter(|digit| digit.is_ascii_hexdigit())
        .collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16);
    digits
        .chunks(2)
        .map(|pair| byte(pair).expect("hex"))
        .collect()
}

#[test]
fn a_capture_has_the_codepoint_of_every_packet_of_a_connection() {
    let mut plan = one_packet(1064);
    plan.duration_ns = 2000 * MS;
    plan.flows[0].dscp = 46;
    let (_, packets) = captured(&plan);
    // Behind headers of 16 and 14 bytes, IP's second byte: the codepoint above two bits of ECN.
    let of: Vec<_> = packets
        .iter()
        .map(|packet| packet[16 + 14 + 1] >> 2)
        .collect();
    assert_eq!(of, [46; 8]);
}

#[test]
fn a_capture_has_each_byte_of_the_headers() {
    // pcap-savefile(5) with ns; RFC 791, 9293, 7323. The flow starts at 1.064 s with an ECN-setup SYN.
    let mut plan = one_packet(1064);
    plan.duration_ns = 2000 * MS;
    plan.flows[0].ecn = true;
    let (header, packets) = captured(&plan);
    assert_eq!(
        header,
        hex("4d3cb2a1 0200 0400 00000000 00000000 80000000 01000000")
    );
    let syn = "01000000 0090d003 4e000000 4e000000
        02000a0b0001 02000a0a0001 0800
        4500 0040 0000 4000 40 06 26a2 0a0a0001 0a0b0001
        9c40 1451 000f4240 00000000 b0c2 faf0 0000 0000
        0101080a 00000428 00000000 020405b4 0402 03030e 010101";
    assert_eq!(packets[0], hex(syn));
    // Of each other packet: when it leaves or arrives at the client, ports, sequence and acknowledgment
    // numbers, flags and window. The SYN-ACK agrees to ECN; behind it the handshake's ACK, 1448 bytes and a
    // FIN leave at once, each of the latter two is acknowledged, and so is the server's FIN.
    let (at_1082, at_1100) = ("01000000 8038e304", "01000000 00e1f505");
    for (number, time, segment) in [
        (1, at_1082, "1451 9c40 000f4240 000f4241 b052"),
        (2, at_1082, "9c40 1451 000f4241 000f4241 8010 0004"),
        (3, at_1082, "9c40 1451 000f4241 000f4241 8018 0004"),
        (4, at_1082, "9c40 1451 000f47e9 000f4241 8011 0004"),
        (5, at_1100, "1451 9c40 000f4241 000f47e9 8010"),
        (6, at_1100, "1451 9c40 000f4241 000f47ea 8011"),
        (7, at_1100, "9c40 1451 000f47ea 000f4242 8010 0004"),
    ] {
        let (packet, segment) = (&packets[number], hex(segment));
        assert_eq!(packet[..8], hex(time), "{number}");
        assert_eq!(packet[50..50 + segment.len()], segment, "{number}");
    }
    assert_eq!(packets.len(), 8);
    // Timestamps in ms: the SYN-ACK's of 1075 echoes 1064, and so on.
    for (number, timestamps) in [
        (1, "0101080a 00000433 00000428"),
        (2, "0101080a 0000043a 00000433"),
        (3, "0101080a 0000043a 00000433"),
        (5, "0101080a 00000445 0000043a"),
    ] {
        assert_eq!(packets[number][70..82], hex(timestamps), "{number}");
    }
    // Of the data 66 bytes of 1514 are captured; IP's length is 1500, and ECT(0) is set.
    assert_eq!(packets[3][8..16], hex("42000000 ea050000"));
    assert_eq!(packets[3][30..34], hex("4502 05dc"));
    // The sum of each IP header with its checksum is 0xffff.
    for packet in &packets {
        let words = packet[30..50]
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
        let sum: u32 = words.sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }
}

/// Time in ms, source, destination, DSCP field, protocol, length on the wire, and what is behind IP's header.
fn read(packet: &[u8]) -> (u64, [u8; 4], [u8; 4], u8, u8, u32, Vec<u8>) {
    let word = |at: usize| u32::from_le_bytes(packet[at..at + 4].try_into().expect("four"));
    let address = |at: usize| packet[at..at + 4].try_into().expect("four");
    (
        u64::from(word(0)) * 1000 + u64::from(word(4)) / MS,
        address(42),
        address(46),
        packet[31],
        packet[39],
        word(12),
        packet[50..].to_vec(),
    )
}

#[test]
fn a_capture_has_datagrams_as_they_leave_and_probes_with_their_replies() {
    // RFC 768 and 792: ports or type, length, and checksums of 0.
    let mut plan = plan();
    plan.datagrams = vec![stream(FlowDirection::Up), stream(FlowDirection::Down)];
    plan.datagrams[0].dscp = 46;
    plan.probes = vec![
        ping(1000, 40, Route::default()),
        Probe {
            name: "udp".to_owned(),
            kind: ProbeKind::Udp,
            ..ping(1000, 600, Route::default())
        },
    ];
    let (_, packets) = captured(&plan);
    let found: Vec<_> = packets.iter().map(|packet| read(packet)).collect();
    let (near, far) = ([10, 12, 0, 1], [10, 13, 0, 1]);
    let (down_near, down_far) = ([10, 12, 0, 2], [10, 13, 0, 2]);
    let (up, down) = ("9c40 1452 03f0 0000", "1452 9c41 03f0 0000");
    for (number, at_ms) in [(1, 50), (4, 150)] {
        let sent = (at_ms, near, far, 46 << 2, 17, 1042, hex(up));
        assert_eq!(found[number], sent, "{number}");
        let sent = (at_ms, down_far, down_near, 0, 17, 1042, hex(down));
        assert_eq!(found[number + 1], sent, "{number}");
    }
    // 1 and 10 ms there, 5 and 2 ms back.
    let (near, far) = ([10, 16, 0, 1], [10, 17, 0, 1]);
    let (request, reply) = (hex("0800 0000 0000 0000"), hex("0000 0000 0000 0000"));
    assert_eq!(found[0], (40, near, far, 0, 1, 98, request));
    assert_eq!(found[3], (58, far, near, 0, 1, 98, reply));
    let (near, far) = ([10, 16, 0, 2], [10, 17, 0, 2]);
    let (request, reply) = (hex("9c41 0007 0040 0000"), hex("0007 9c41 0040 0000"));
    assert_eq!(found[12], (600, near, far, 0, 17, 98, request));
    assert_eq!(found[13], (618, far, near, 0, 17, 98, reply));
    assert_eq!(found.len(), 14);
}

#[test]
fn packets_with_data_and_those_that_open_and_close_are_counted_apart() {
    let done = outcome(&one_packet(0));
    let counts = (
        done.packets_delivered,
        done.packets_lost,
        done.packets_in_flight,
    );
    assert_eq!(counts, (1, 0, 0));
    // SYN, SYN-ACK, its ACK, a FIN behind the data, and the ACK of the peer's.
    assert_eq!(
        (done.control.sent, done.control.delivered, done.control.lost),
        (5, 5, 0)
    );
    let row = &done.tables.flows[0];
    assert_eq!(
        (row.start_us, row.completion_us, row.base_rtt_us),
        (0, Some(36_000), 18_000)
    );
    assert_eq!(
        (row.bytes_acked, row.bytes_delivered, row.mss_bytes),
        (1448, 1448, 1448)
    );
    let events: Vec<_> = (done.tables.events.iter())
        .map(|row| (row.t_us, row.event.as_ref(), row.value))
        .collect();
    assert_eq!(
        events,
        [
            (0, "start", 0),
            (18_000, "established", 10),
            (36_000, "finish", 1448)
        ]
    );
    // Sampled from its start on, each 100 ms up to the end.
    let samples: Vec<_> = done
        .tables
        .flow_samples
        .iter()
        .map(|row| row.t_us / 1000)
        .collect();
    assert_eq!(samples, [100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]);
}

#[test]
fn a_direction_that_copies_all_delivers_all_twice() {
    let mut plan = one_packet(0);
    forward(&mut plan).impairments = Some(copying());
    let done = outcome(&plan);
    assert_eq!(
        (
            done.packets_delivered,
            done.packets_lost,
            done.packets_in_flight
        ),
        (2, 0, 0)
    );
    assert_eq!(
        done.control.sent,
        done.control.delivered + done.control.lost
    );
    assert_eq!(done.tables.flows[0].packets_sent, 1);
}

/// The error of a plan with a change.
fn refused(change: impl Fn(&mut Plan)) -> Option<String> {
    let mut plan = plan();
    plan.duration_ns = 10 * MS;
    change(&mut plan);
    run(&plan, Inputs::default(), &mut |_| true)
        .err()
        .map(|error| error.0)
}

#[test]
fn plans_at_the_bounds_run_and_those_beyond_them_are_refused_by_key() {
    type Change = Box<dyn Fn(&mut Plan)>;
    let links = |count: usize| -> Change {
        Box::new(move |plan| {
            let one = plan.links[0].clone();
            plan.links = vec![one; count];
        })
    };
    let route = |enter, leave| -> Change {
        Box::new(move |plan| plan.flows[0].route = Route { enter, leave })
    };
    let hosts =
        |near, far| -> Change { Box::new(move |plan| plan.flows[0].hosts = Hosts { near, far }) };
    let pauses = |every_ns, for_ns, spread_ns| -> Change {
        Box::new(move |plan| {
            plan.host.reader_pauses = Some(ReaderPauses {
                every_ns,
                for_ns,
                spread_ns,
            });
        })
    };
    let cases: Vec<(Change, Option<&str>)> = vec![
        (Box::new(|plan| plan.duration_ns = 0), Some("duration_ns")),
        (
            Box::new(|plan| plan.sample_interval_ns = 0),
            Some("sample_interval_ns"),
        ),
        (links(0), Some("links")),
        (links(64), None),
        (links(65), Some("links")),
        (
            Box::new(|plan| plan.access.mtu_bytes = 127),
            Some("mtu_bytes"),
        ),
        (Box::new(|plan| plan.access.mtu_bytes = 128), None),
        (Box::new(|plan| plan.access.mtu_bytes = 65_000), None),
        (
            Box::new(|plan| plan.access.mtu_bytes = 65_001),
            Some("mtu_bytes"),
        ),
        (route(0, 0), None),
        (route(0, 1), Some("route")),
        (route(1, 0), Some("route")),
        (hosts(4095, 4095), None),
        (hosts(4096, 0), Some("hosts")),
        (hosts(0, 4096), Some("hosts")),
        (Box::new(|plan| plan.flows.clear()), Some("flows")),
        (
            Box::new(|plan| {
                plan.flows.clear();
                plan.datagrams = vec![stream(FlowDirection::Up)];
            }),
            None,
        ),
        (
            Box::new(|plan| plan.probes = vec![ping(0, 0, Route::default())]),
            Some("interval_ns"),
        ),
        (
            Box::new(|plan| plan.host.initial_cwnd_packets = 0),
            Some("initial_cwnd"),
        ),
        (
            Box::new(|plan| plan.host.gso_max_segments = 0),
            Some("gso_max"),
        ),
        (pauses(10, 9, 0), None),
        (pauses(10, 10, 0), Some("reader_pauses")),
        (pauses(10, 5, 4), None),
        (pauses(10, 5, 5), Some("reader_pauses")),
        (pauses(10, 3, 4), Some("reader_pauses")),
        (pauses(10, 4, 4), None),
    ];
    for (number, (change, key)) in cases.iter().enumerate() {
        let error = refused(change);
        match key {
            None => assert_eq!(error, None, "case {number}"),
            Some(key) => {
                let text = error.unwrap_or_else(|| panic!("case {number}: {key}"));
                assert!(text.contains(key), "{text}");
            }
        }
    }
}

#[test]
fn a_run_that_is_told_to_stop_is_interrupted() {
    let mut plan = one_packet(0);
    plan.duration_ns = 100 * MS;
    plan.probes = vec![Probe {
        interval_ns: 1000,
        ..ping(1, 0, Route::default())
    }];
    let mut asked = Vec::new();
    let mut stop = |at_ns| {
        asked.push(at_ns);
        false
    };
    let done = run(&plan, Inputs::default(), &mut stop).expect("the plan is sound");
    assert!(done.interrupted && asked.len() == 1 && asked[0] < plan.duration_ns);
    assert!(!outcome(&plan).interrupted);
}
