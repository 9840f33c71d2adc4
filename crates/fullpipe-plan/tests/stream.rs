//! What a writer says arrives, wherever its stream ends.

use fullpipe_plan::stream::{decode, encode, follow, Frame};
use fullpipe_plan::{FlowRow, PingRow};

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
