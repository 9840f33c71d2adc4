//! The rows of a recording as a stream of frames, for engines that run in another process or
//! machine. A frame is a length (u32, little endian) and a postcard-coded [`Frame`]. A stream may
//! end anywhere, for example when the machine crashes; every complete frame before that counts. A
//! writer into zeroed memory writes a frame's length last, so that a partial frame has length 0.
//! Input is hostile until decoded. This module must not depend on its writers or readers.

use std::collections::HashMap;

use fullpipe_cc::{algorithm, Controller};
use serde::{Deserialize, Serialize};

use crate::rows::{
    CcRow, CpuRow, DatagramRow, EventRow, FlowRow, FlowSampleRow, NicRow, ObjectRow, PageRow,
    PingRow, QueueRow, TcpMemoryRow, TrafficRow, TrafficSampleRow,
};
use crate::tables::Tables;

/// No frame is longer; a longer one is damage.
const MAX_FRAME_BYTES: usize = 1 << 20;
/// The fact that has what the kernel logged.
const KERNEL_LOG: &str = "kernel log";

/// One row, or a statement of the writer about the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Frame {
    /// A row of `flows`; a later one of the same flow replaces the earlier.
    Flow(FlowRow),
    /// A row of `flow_samples`.
    FlowSample(FlowSampleRow),
    /// A row of `queue_samples`.
    Queue(QueueRow),
    /// A row of `ping_samples`.
    Ping(PingRow),
    /// A row of `cc_samples`.
    Cc(CcRow),
    /// A row of `events`.
    Event(EventRow),
    /// Time of the run that has passed, in ns.
    Progress(u64),
    /// A fact about where the run took place (`kernel`, `modules`, ...).
    Fact(String, String),
    /// A figure about the instrument (`cpu_busy_max`, `late_samples`, ...).
    Figure(String, f64),
    /// A reason why this run should not be trusted.
    Problem(String),
    /// Why the run ended early.
    Failure(String),
    /// The run ended as planned; only its trace follows, if the run has one.
    End,
    /// The next bytes of a trace of the congestion controls' calls.
    Trace(Vec<u8>),
    /// The algorithm whose state the frames [`Frame::CcState`] of a flow hold.
    CcAlgorithm {
        /// Position in the plan.
        flow_id: u64,
        /// As the front end names it.
        algorithm: String,
        /// Stored constants.
        params: Vec<u32>,
    },
    /// An algorithm's state, from which the reader makes a row of `cc_samples`.
    CcState {
        /// Since the start of the run.
        t_us: u64,
        /// Position in the plan.
        flow_id: u64,
        /// The state's bytes, in C's layout; of a kernel's file the first of them.
        state: Vec<u8>,
    },
    /// A row of `page_loads`.
    Page(PageRow),
    /// A row of `page_objects`.
    Object(ObjectRow),
    /// A row of `datagrams`.
    Datagram(DatagramRow),
    /// A row of `cpu_samples`.
    Cpu(CpuRow),
    /// A row of `nic_samples`.
    Nic(NicRow),
    /// A row of `tcp_memory_samples`.
    TcpMemory(TcpMemoryRow),
    /// A row of `traffic`.
    Traffic(TrafficRow),
    /// A row of `traffic_samples`.
    TrafficSample(TrafficSampleRow),
    /// What a kernel did as a script of the differential test was played to it, as JSON.
    Answer(String),
    /// Lines that the kernel logged.
    Log(String),
    /// A row of `cc_samples` of a congestion control of the kernel's own, and the bytes behind
    /// inet_csk_ca().
    CcPrivate {
        /// What the kernel tells of it.
        row: CcRow,
        /// Of a fixed length; what the congestion control does not use is zero.
        state: Vec<u8>,
    },
    /// Records of a capture (pcap-savefile(5), times since the start of the run in ns), and where:
    /// at the senders (0) or at the receivers.
    Packets(u8, Vec<u8>),
}

/// Appends one frame to `out`.
pub fn encode(frame: &Frame, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    match postcard::to_extend(frame, std::mem::take(out)) {
        Ok(written) => *out = written,
        Err(error) => unreachable!("a vector takes every frame: {error}"),
    }
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Everything that a stream held.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Received {
    /// The rows.
    #[serde(skip)]
    pub tables: Tables,
    /// Facts in the order of arrival, and behind them what the kernel logged.
    pub facts: Vec<(String, String)>,
    /// Figures in the order of arrival.
    pub figures: Vec<(String, f64)>,
    /// Reasons for distrust.
    pub problems: Vec<String>,
    /// Why the run ended early, from the writer.
    pub failure: Option<String>,
    /// Time of the run that had passed at the last progress frame, in ns.
    pub progress_ns: u64,
    /// The writer came to its planned end.
    pub complete: bool,
    /// Answers to scripts of the differential test, as JSON.
    pub answers: Vec<String>,
    /// The bytes of a trace of calls.
    #[serde(skip)]
    pub trace: Vec<u8>,
    /// Lines that the kernel logged, so far.
    #[serde(skip)]
    log: String,
}

/// Reads frames until the end of `bytes`, a frame of length zero, or damage.
pub fn decode(bytes: &[u8]) -> Received {
    let mut received = Received::default();
    let mut readers = HashMap::new();
    let mut rest = bytes;
    while let Some((frame, tail)) = next_frame(rest) {
        rest = tail;
        received.take(frame, &mut readers);
    }
    if !received.log.is_empty() {
        let log = std::mem::take(&mut received.log);
        received.facts.push((KERNEL_LOG.into(), log));
    }
    received
}

/// The private states of congestion controls of the kernel's own: flow, time in us, bytes.
pub fn private_states(bytes: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
    let mut states = Vec::new();
    let mut rest = bytes;
    while let Some((frame, tail)) = next_frame(rest) {
        rest = tail;
        if let Frame::CcPrivate { row, state } = frame {
            states.push((row.flow_id, row.t_us, state));
        }
    }
    states
}

/// The captures at senders and receivers: the records of each in the order of time.
pub fn captures(bytes: &[u8]) -> [Vec<u8>; 2] {
    let mut records: [Vec<([u32; 2], &[u8])>; 2] = Default::default();
    let mut frames = Vec::new();
    let mut rest = bytes;
    while let Some((frame, tail)) = next_frame(rest) {
        rest = tail;
        if let Frame::Packets(end, packets) = frame {
            frames.push((usize::from(end != 0), packets));
        }
    }
    for (end, packets) in &frames {
        let mut rest = &packets[..];
        while let Some(head) = rest.first_chunk::<16>() {
            let field = |at: usize| {
                u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
            };
            let Some((record, tail)) = rest.split_at_checked(16 + field(8) as usize) else {
                break;
            };
            records[*end].push(([field(0), field(4)], record));
            rest = tail;
        }
    }
    records.map(|mut listed| {
        listed.sort_by_key(|(time, _)| *time);
        listed
            .iter()
            .flat_map(|(_, record)| *record)
            .copied()
            .collect()
    })
}

/// The newest [`Frame::Progress`] from `offset` on, and where the next look should begin; for a
/// reader that follows a stream while it is written.
pub fn follow(bytes: &[u8], offset: usize) -> (Option<u64>, usize) {
    let mut rest = bytes.get(offset..).unwrap_or(&[]);
    let mut progress = None;
    while let Some((frame, tail)) = next_frame(rest) {
        rest = tail;
        if let Frame::Progress(ns) = frame {
            progress = Some(ns);
        }
    }
    (progress, bytes.len() - rest.len())
}

/// The first frame and the bytes after it; `None`: no whole frame.
pub fn next_frame(bytes: &[u8]) -> Option<(Frame, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length) as usize;
    if length == 0 || length > MAX_FRAME_BYTES || length > rest.len() {
        return None;
    }
    let (body, tail) = rest.split_at(length);
    Some((postcard::from_bytes(body).ok()?, tail))
}

impl Received {
    fn take(&mut self, frame: Frame, readers: &mut HashMap<u64, Controller>) {
        match frame {
            Frame::Flow(row) => {
                let rows = &mut self.tables.flows;
                match rows.iter_mut().find(|known| known.flow_id == row.flow_id) {
                    Some(known) => *known = row,
                    None => rows.push(row),
                }
            }
            Frame::FlowSample(row) => self.tables.flow_samples.push(row),
            Frame::Queue(row) => self.tables.queue_samples.push(row),
            Frame::Ping(row) => self.tables.ping_samples.push(row),
            Frame::Cc(row) => self.tables.cc_samples.push_row(row),
            Frame::CcPrivate { row, .. } => self.tables.cc_samples.push_row(row),
            Frame::Event(row) => self.tables.events.push(row),
            Frame::Page(row) => self.tables.page_loads.get_or_insert_default().push(row),
            Frame::Object(row) => self.tables.page_objects.get_or_insert_default().push(row),
            Frame::Datagram(row) => self.tables.datagrams.get_or_insert_default().push(row),
            Frame::Cpu(row) => self.tables.cpu_samples.get_or_insert_default().push(row),
            Frame::Nic(row) => self.tables.nic_samples.get_or_insert_default().push(row),
            Frame::TcpMemory(row) => {
                let rows = &mut self.tables.tcp_memory_samples;
                rows.get_or_insert_default().push(row);
            }
            Frame::Traffic(row) => self.tables.traffic.get_or_insert_default().push(row),
            Frame::TrafficSample(row) => {
                let rows = &mut self.tables.traffic_samples;
                rows.get_or_insert_default().push(row);
            }
            Frame::Progress(ns) => self.progress_ns = self.progress_ns.max(ns),
            Frame::Fact(name, value) => self.facts.push((name, value)),
            Frame::Figure(name, value) => self.figures.push((name, value)),
            Frame::Problem(sentence) => self.problems.push(sentence),
            Frame::Failure(sentence) => self.failure = Some(sentence),
            Frame::End => self.complete = true,
            // Of `captures`.
            Frame::Packets(..) => {}
            Frame::Log(lines) => self.log.push_str(&lines),
            Frame::Answer(text) => self.answers.push(text),
            Frame::Trace(bytes) => self.trace.extend(bytes),
            Frame::CcAlgorithm {
                flow_id,
                algorithm: name,
                params,
            } => {
                let known = algorithm(&name).ok_or_else(|| format!("{name} is not known here"));
                match known.and_then(|known| {
                    Controller::new(known, &params).map_err(|error| error.to_string())
                }) {
                    Ok(reader) => {
                        self.tables.cc_samples.declare(reader.algorithm());
                        readers.insert(flow_id, reader);
                    }
                    Err(reason) => self.problems.push(format!("cc_samples: {reason}")),
                }
            }
            Frame::CcState {
                t_us,
                flow_id,
                state,
            } => {
                let Some(reader) = readers.get_mut(&flow_id) else {
                    return;
                };
                // Of a kernel's file only the begin is sent (module/linux/linux_tcp.h).
                if let Some(place) = reader.state_mut().get_mut(..state.len()) {
                    place.copy_from_slice(&state);
                    self.tables.cc_samples.push(t_us, flow_id, reader);
                }
            }
        }
    }
}
