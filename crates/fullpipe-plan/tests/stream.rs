//! What a writer says arrives, wherever its stream ends.

use fullpipe_plan::stream::{captures, decode, encode, follow, next_frame, private_states, Frame};
use fullpipe_plan::{CcRow, FlowRow, PingRow};
use proptest::prelude::*;

fn frames() -> Vec<Frame> {
    let flow = |delivered| FlowRow {
        flow: "bbr3.1".into(),
        bytes_delivered: delivered,
        ..FlowRow::default()
    };
    let ping = PingRow {
        seq: 7,
        rtt_us: Some(40_100),
        ..PingRow::default()
    };
    vec![
        Frame::Fact("kernel".into(), "6.12".into()),
        Frame::Flow(flow(1)),
        Frame::Ping(ping),
        Frame::Progress(5),
        Frame::Flow(flow(2)),
        Frame::Problem("late".into()),
        Frame::End,
    ]
}

fn written(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in frames {
        encode(frame, &mut bytes);
    }
    bytes
}

#[test]
fn a_whole_stream_is_complete_and_the_last_row_of_a_flow_counts() {
    let received = decode(&written(&frames()));
    assert!(received.complete);
    assert_eq!(received.tables.flows.len(), 1);
    assert_eq!(received.tables.flows[0].bytes_delivered, 2);
    assert_eq!(received.tables.ping_samples[0].rtt_us, Some(40_100));
    assert_eq!(received.facts, [("kernel".into(), "6.12".into())]);
    assert_eq!(received.problems, ["late"]);
    assert_eq!(received.progress_ns, 5);
}

#[test]
fn a_stream_cut_anywhere_keeps_every_whole_frame_before_the_cut() {
    let frames = frames();
    let bytes = written(&frames);
    for cut in 0..bytes.len() {
        let received = decode(&bytes[..cut]);
        assert!(!received.complete, "cut at {cut}");
        let whole = (0..frames.len()).filter(|&count| written(&frames[..count]).len() <= cut);
        let mut memory = written(&frames[..whole.max().unwrap_or(0)]);
        memory.resize(bytes.len() + 64, 0);
        assert_eq!(received, decode(&memory), "cut at {cut}");
    }
}

#[test]
fn damage_ends_the_reading_without_a_panic() {
    let bytes = written(&frames());
    for position in 0..bytes.len() {
        for value in [0x00, 0x7f, 0xff] {
            let mut damaged = bytes.clone();
            damaged[position] = value;
            decode(&damaged);
            follow(&damaged, position);
        }
    }
    decode(&[0xff; 64]);
}

#[test]
fn a_reader_that_follows_sees_progress_once_and_goes_on_where_it_stopped() {
    let bytes = written(&frames());
    let early = written(&frames()[..3]).len();
    let (progress, offset) = follow(&bytes[..early + 2], 0);
    assert_eq!((progress, offset), (None, early));
    let (progress, offset) = follow(&bytes, offset);
    assert_eq!((progress, offset), (Some(5), bytes.len()));
}

#[test]
fn a_trace_follows_the_end_and_arrives_in_one_piece() {
    let mut all = frames();
    all.push(Frame::Trace(vec![1, 2, 0, 4]));
    all.push(Frame::Trace(vec![5]));
    let received = decode(&written(&all));
    assert!(received.complete);
    assert_eq!(received.trace, [1, 2, 0, 4, 5]);
    assert_eq!(received.tables, decode(&written(&frames())).tables);
}

/// Frames of some kinds, with any content.
fn any_frame() -> impl Strategy<Value = Frame> {
    let text = || any::<String>();
    prop_oneof![
        (any::<u64>(), any::<u64>(), text()).prop_map(|(flow_id, bytes_acked, cc)| {
            Frame::Flow(FlowRow {
                flow_id,
                bytes_acked,
                cc: cc.into(),
                ..FlowRow::default()
            })
        }),
        (any::<u64>(), any::<Option<u64>>()).prop_map(|(seq, rtt_us)| {
            Frame::Ping(PingRow {
                seq,
                rtt_us,
                ..PingRow::default()
            })
        }),
        any::<u64>().prop_map(Frame::Progress),
        (text(), text()).prop_map(|(name, value)| Frame::Fact(name, value)),
        text().prop_map(Frame::Problem),
        text().prop_map(Frame::Failure),
        Just(Frame::End),
        any::<Vec<u8>>().prop_map(Frame::Trace),
        (any::<u64>(), "[a-z0-9]{0,6}", any::<Vec<u32>>()).prop_map(
            |(flow_id, algorithm, params)| Frame::CcAlgorithm {
                flow_id,
                algorithm,
                params,
            }
        ),
        (any::<u64>(), 0..3_u64, any::<Vec<u8>>()).prop_map(|(t_us, flow_id, state)| {
            Frame::CcState {
                t_us,
                flow_id,
                state,
            }
        }),
    ]
}

proptest! {
    #[test]
    fn any_frame_is_read_as_it_was_written(frame in any_frame()) {
        let bytes = written(std::slice::from_ref(&frame));
        let (read, rest) = next_frame(&bytes).expect("a whole frame");
        prop_assert_eq!(read, frame);
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn a_damaged_stream_keeps_every_frame_before_the_damage(
        frames in prop::collection::vec(any_frame(), 1..6),
        at in any::<prop::sample::Index>(),
        patch in prop::collection::vec(any::<u8>(), 1..8),
    ) {
        let mut bytes = written(&frames);
        let at = at.index(bytes.len());
        let end = bytes.len().min(at + patch.len());
        bytes[at..end].copy_from_slice(&patch[..end - at]);
        let received = decode(&bytes);
        let whole = (0..=frames.len()).rfind(|&count| written(&frames[..count]).len() <= at);
        let before = decode(&written(&frames[..whole.unwrap_or(0)]));
        prop_assert!(received.facts.starts_with(&before.facts));
        prop_assert!(received.problems.starts_with(&before.problems));
        prop_assert!(received.tables.ping_samples.starts_with(&before.tables.ping_samples));
        let (_, offset) = follow(&bytes, 0);
        prop_assert!(offset <= bytes.len());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        offset in 0..400_usize,
    ) {
        let mut framed = (bytes.len() as u32).to_le_bytes().to_vec();
        framed.extend(&bytes);
        for input in [&bytes, &framed] {
            decode(input);
            follow(input, offset);
        }
    }
}

#[test]
fn what_the_kernel_logged_is_one_fact_also_where_the_end_is_missing() {
    let lines = ["one\n", "two\n"].map(|line| Frame::Log(line.into()));
    let bytes = written(&[lines[0].clone(), Frame::Progress(7), lines[1].clone()]);
    let fact = ("kernel log".to_owned(), "one\ntwo\n".to_owned());
    assert_eq!(decode(&bytes).facts, [fact]);
    assert_eq!(decode(&written(&[Frame::End])).facts, []);
}

#[test]
fn a_private_state_comes_with_its_row() {
    let row = CcRow {
        t_us: 5,
        flow_id: 3,
        ..CcRow::default()
    };
    let state = vec![1, 2, 3];
    let bytes = written(&[Frame::CcPrivate {
        row: row.clone(),
        state: state.clone(),
    }]);
    assert_eq!(private_states(&bytes), [(3, 5, state)]);
    assert_eq!(decode(&bytes).tables.cc_samples.len(), 1);
}

/// A record of pcap: seconds, ns, bytes kept, bytes; then what is kept.
fn record(seconds: u32, ns: u32, content: &[u8]) -> Vec<u8> {
    let length = content.len() as u32;
    let fields = [seconds, ns, length, 1500].map(u32::to_le_bytes);
    [fields.concat(), content.to_vec()].concat()
}

#[test]
fn captures_of_several_hosts_are_one_in_the_order_of_time_and_cut_records_are_left_out() {
    let (first, second, third) = (record(0, 9, b"a"), record(1, 0, b"bc"), record(1, 5, b""));
    let mut cut = record(2, 0, b"cut off");
    cut.pop();
    let bytes = written(&[
        Frame::Packets(0, [third.clone(), cut].concat()),
        Frame::Packets(1, second.clone()),
        Frame::Packets(0, [first.clone(), second.clone()].concat()),
    ]);
    let senders = [first, second.clone(), third].concat();
    assert_eq!(captures(&bytes), [senders, second]);
}
