//! Traces: what a host did replays identically, what it did not is found and named, and no byte of
//! a trace is trusted.

use fullpipe_cc::replay::{replay, Replay};
use fullpipe_cc::trace::{Introduction, TraceWriter, CALL_BYTES, CALL_RECORD_BYTES};
use fullpipe_cc::{algorithm, algorithms, sets, Ack, Conn, Controller, Ctl, Event, EventKind};
use proptest::prelude::*;

/// `struct fp_call` of bpf/glue.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Call {
    socket: u32,
    sequence: u32,
    kind: u32,
    unused: u32,
    conn: Conn,
    ack: Ack,
    event: Event,
    before: Ctl,
    after: Ctl,
}

const INIT: u32 = 0;
const ACK: u32 = 1;
const EVENT: u32 = 2;
const RELEASE: u32 = 3;

impl Call {
    fn bytes(&self) -> Vec<u8> {
        // SAFETY: integers without padding between them, so every byte is initialised.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), CALL_BYTES) }.to_vec()
    }
}

/// What a host does with a connection that loses every 50th packet, call by call.
fn calls(name: &str, params: &[u32], socket: u32, count: u32) -> Vec<Call> {
    let Some(found) = algorithm(name) else {
        panic!("{name} is no algorithm")
    };
    let Ok(mut controller) = Controller::new(found, params) else {
        panic!("{name} refuses its own parameters")
    };
    let mut conn = Conn {
        mss_bytes: 1448,
        pacing_rate_cap_bytes_per_s: u64::MAX,
        cwnd_clamp: u32::MAX,
        gso_max_segs: 44,
        srtt_us: 20_000,
        seed: socket,
        is_cwnd_limited: 1,
        ..Conn::default()
    };
    let mut ctl = Ctl {
        cwnd: 10,
        ssthresh: fullpipe_cc::INFINITE,
        ..Ctl::default()
    };
    let mut made = Vec::new();
    for sequence in 0..count {
        conn.now_us += 500;
        conn.now_ns = conn.now_us * 1000;
        conn.inflight = ctl.cwnd / 2;
        conn.packets_out = conn.inflight;
        let mut call = Call {
            socket,
            sequence,
            before: ctl,
            ..Call::default()
        };
        if sequence == 0 {
            controller.init(&conn, &mut ctl);
            (call.kind, call.conn) = (INIT, conn);
        } else if sequence % 3 == 1 {
            conn.snd_nxt = conn.snd_nxt.wrapping_add(2 * conn.mss_bytes);
            (call.kind, call.conn) = (EVENT, conn);
            call.event.kind = EventKind::Send as u32;
            controller.on_event(&conn, call.event, &mut ctl);
        } else {
            conn.lost += u32::from(sequence % 50 == 0);
            conn.delivered += 2;
            conn.delivered_us = conn.now_us;
            conn.snd_una = conn.snd_una.wrapping_add(2 * conn.mss_bytes);
            call.ack = Ack {
                prior_us: conn.now_us.saturating_sub(20_000),
                prior_delivered: conn.delivered.saturating_sub(40),
                delivered: 40,
                interval_us: 20_000,
                rtt_us: 20_000,
                acked_sacked: 2,
                losses: u32::from(sequence % 50 == 0),
                prior_inflight: conn.inflight + 2,
                last_end_seq: conn.snd_una,
                ..Ack::default()
            };
            (call.kind, call.conn) = (ACK, conn);
            controller.on_ack(&conn, &mut call.ack, &mut ctl);
        }
        call.after = ctl;
        made.push(call);
    }
    made
}

fn written(algorithm: &str, params: &[u32], calls: &[Call]) -> Vec<u8> {
    let mut trace = Vec::new();
    let mut write = || -> std::io::Result<()> {
        let mut writer = TraceWriter::new(&mut trace)?;
        let meaning = Introduction {
            algorithm,
            params,
            kernel_name: "fp_x",
            release: "6.12",
            keeps_facts: false,
        };
        writer.algorithm(0, &meaning)?;
        for call in calls {
            writer.call(0, &call.bytes())?;
        }
        writer.flush()
    };
    assert!(write().is_ok(), "a vector takes everything");
    trace
}

fn defaults(name: &str) -> Vec<u32> {
    algorithm(name).map_or_else(Vec::new, |found| {
        found.params.iter().map(|param| param.default).collect()
    })
}

fn replayed(trace: &[u8]) -> Replay {
    replay(trace).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn what_a_host_did_with_every_set_replays_identically() {
    for set in sets() {
        let made = calls(set.algorithm, &set.values, 1, 2000);
        let found = replayed(&written(set.algorithm, &set.values, &made));
        let one = &found.algorithms[0];
        assert_eq!(one.difference, None, "{}", set.name);
        assert_eq!((one.calls, one.connections), (2000, 1), "{}", set.name);
        assert_eq!((one.acks, one.skipped), (1332, 0), "{}", set.name);
        assert!(!found.is_cut_off);
    }
}

#[test]
fn a_changed_output_is_named_with_its_call_its_field_and_both_values() {
    let mut made = calls("bbr3", &defaults("bbr3"), 7, 400);
    let native = made[123].after.cwnd;
    made[123].after.cwnd += 1;
    made[200].after.ssthresh += 1;
    let found = replayed(&written("bbr3", &defaults("bbr3"), &made));
    let Some(first) = &found.algorithms[0].difference else {
        panic!("the change went unseen")
    };
    assert_eq!((first.socket, first.sequence), (7, 123));
    assert_eq!((first.call.as_str(), first.field), ("ack", "cwnd"));
    assert_eq!(first.kernel, u64::from(native) + 1);
    assert_eq!(first.native, u64::from(native));
}

#[test]
fn a_changed_input_or_constant_shows_in_the_outputs() {
    let mut made = calls("bbr3", &defaults("bbr3"), 1, 400);
    made[5].ack.rtt_us = 3_000;
    assert!(
        replayed(&written("bbr3", &defaults("bbr3"), &made)).algorithms[0]
            .difference
            .is_some()
    );
    let made = calls("bbr3", &defaults("bbr3"), 1, 400);
    let mut other = defaults("bbr3");
    other[0] += 1;
    assert!(replayed(&written("bbr3", &other, &made)).algorithms[0]
        .difference
        .is_some());
}

#[test]
fn behind_a_gap_a_connection_is_left_out_and_the_others_are_not() {
    let first = calls("cubic", &defaults("cubic"), 1, 300);
    let second = calls("cubic", &defaults("cubic"), 2, 300);
    let mut mixed: Vec<Call> = Vec::new();
    for (a, b) in first.iter().zip(&second) {
        mixed.extend([*a, *b]);
    }
    mixed.retain(|call| (call.socket, call.sequence) != (1, 100));
    let release = Call {
        socket: 1,
        sequence: 300,
        kind: RELEASE,
        ..Call::default()
    };
    mixed.push(release);
    let again = calls("cubic", &defaults("cubic"), 1, 50);
    mixed.extend(&again);
    let one = &replayed(&written("cubic", &defaults("cubic"), &mixed)).algorithms[0];
    assert_eq!(one.difference, None);
    assert_eq!(one.connections, 3);
    assert_eq!(one.calls, 100 + 300 + 50);
    assert_eq!(one.skipped, 199 + 1);
}

#[test]
fn a_trace_cut_off_anywhere_keeps_what_came_before() {
    let made = calls("reno", &defaults("reno"), 1, 20);
    let trace = written("reno", &defaults("reno"), &made);
    let record = CALL_RECORD_BYTES;
    let begin = trace.len() - 20 * record;
    for cut in begin..=trace.len() {
        let found = replayed(&trace[..cut]);
        assert_eq!(found.algorithms[0].calls as usize, (cut - begin) / record);
        assert_eq!(
            found.is_cut_off,
            (cut - begin) % record != 0,
            "cut at {cut}"
        );
    }
}

#[test]
fn what_is_no_trace_is_refused_with_the_place_and_the_reason() {
    let made = calls("reno", &defaults("reno"), 1, 3);
    let good = written("reno", &defaults("reno"), &made);
    let refused = |bytes: &[u8], words: &str| {
        let Err(error) = replay(bytes) else {
            panic!("{words}: taken")
        };
        assert!(error.to_string().contains(words), "{error}");
    };
    refused(b"", "not a trace");
    refused(b"pcap, or something", "not a trace");
    refused(&written("bbr9", &[], &made), "\"bbr9\"");
    refused(&written("bbr3", &[1, 2], &made), "2 parameters given");
    let mut long = good.clone();
    long[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    refused(&long, "none has more than");
    let mut unknown = good.clone();
    let at = unknown.len() - CALL_BYTES - 8;
    unknown[at] = 9;
    refused(&unknown, "before it is introduced");
    let mut kind = good.clone();
    let at = kind.len() - CALL_BYTES + 8;
    kind[at] = 77;
    refused(&kind, "unknown kind of call 77");
}

proptest! {
    /// Every algorithm takes every input, and no trace does more than be refused.
    #[test]
    fn no_damage_to_a_trace_ends_the_program(
        which in 0..algorithms().len(),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..400),
    ) {
        let found = &algorithms()[which];
        let params = defaults(found.name);
        let mut trace = written(found.name, &params, &calls(found.name, &params, 1, 150));
        for (place, value) in &places {
            let at = place.index(trace.len());
            trace[at] = *value;
        }
        let _ = replay(trace.as_slice());
        // The same damage where only calls are: most of these are replayed to their end.
        let mut trace = written(found.name, &params, &calls(found.name, &params, 1, 150));
        let record = CALL_RECORD_BYTES;
        let begin = trace.len() - 150 * record;
        for (place, value) in &places {
            let at = place.index(150 * (CALL_BYTES - 16));
            trace[begin + at / (CALL_BYTES - 16) * record + 32 + at % (CALL_BYTES - 16)] = *value;
        }
        let _ = replay(trace.as_slice());
    }
}
