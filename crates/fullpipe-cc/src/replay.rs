//! The replay of a trace of calls ([`crate::trace`]) through the native build: identical inputs must
//! give identical outputs, bit for bit. Every byte of a trace is untrusted. This module must
//! not depend on the source of the trace.
//!
//! Calls of one connection carry a sequence number; from a gap on the connection is left out, since
//! its state is not known any more.

use std::collections::HashMap;
use std::io::{self, Read};

use serde::Serialize;
use thiserror::Error;

use crate::abi::{Ack, Conn, Ctl, Event, EventKind};
use crate::controller::Controller;
use crate::flags;
use crate::registry::algorithm;
use crate::trace::{
    Call, CALL_ACK, CALL_BYTES, CALL_EVENT, CALL_INIT, CALL_RELEASE, MAGIC, RECORD_ALGORITHM,
    RECORD_CALL, RECORD_LOST,
};

/// No record is longer.
const RECORD_BYTES_MAX: u32 = 64 * 1024;
/// More connections at once than this are not a trace but an attack on memory.
const CONNECTIONS_MAX: usize = 1 << 18;

/// Why a trace cannot be replayed.
#[derive(Debug, Error)]
pub enum TraceError {
    /// It could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is not a trace: at this byte, for this reason.
    #[error("byte {0}: {1}")]
    Malformed(u64, String),
}

/// Where a replay first gave something else than the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Connection, from 1.
    #[serde(rename = "connection")]
    pub socket: u32,
    /// Its call, from 0.
    pub sequence: u32,
    /// `init`, `ack`, or the event.
    pub call: String,
    /// The output that differs, by its name in cc/cc.h.
    pub field: &'static str,
    /// What the kernel had.
    pub kernel: u64,
    /// What the native build gave.
    pub native: u64,
}

/// What became of one algorithm's calls.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Replayed {
    /// Name in the registry.
    pub algorithm: String,
    /// What sockets wrote.
    pub kernel_name: String,
    /// Of the kernel.
    pub release: String,
    /// Calls replayed.
    pub calls: u64,
    /// Of those, ACKs.
    pub acks: u64,
    /// Connections.
    pub connections: u64,
    /// Calls that were logged but whose connection has a gap before them.
    pub skipped: u64,
    /// Calls that the kernel could not log.
    pub lost: u64,
    /// The first difference of any connection.
    pub difference: Option<Difference>,
}

/// What a replay found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Replay {
    /// One for each algorithm record, in the trace's order.
    pub algorithms: Vec<Replayed>,
    /// The last record is incomplete: its writer was interrupted.
    pub is_cut_off: bool,
}

/// A call of a trace.
pub struct Step<'a> {
    /// The name that sockets set, or another one that identifies the instance.
    pub kernel_name: &'a str,
    /// Connection, from 1.
    pub connection: u32,
    /// Its call, from 0.
    pub sequence: u32,
    /// `init`, `ack`, or the event.
    pub name: &'static str,
    /// The connection at the call.
    pub conn: &'a Conn,
    /// The rate sample, of an ACK.
    pub ack: Option<&'a Ack>,
    /// The event, of one.
    pub event: Option<&'a Event>,
    /// The controls before the call.
    pub before: &'a Ctl,
    /// What the host had after it.
    pub after: &'a Ctl,
    /// The native build's instance after the call; `None`: there is a gap before it.
    pub controller: Option<&'a Controller>,
    /// The output that the native build gave otherwise.
    pub differs: Option<&'static str>,
}

/// Runs every call of a trace through the native build.
pub fn replay(trace: impl Read) -> Result<Replay, TraceError> {
    walk(trace, |_| {})
}

/// As [`replay`], and shows each call as it was made.
pub fn walk(trace: impl Read, mut show: impl FnMut(&Step)) -> Result<Replay, TraceError> {
    let mut state = State::default();
    let is_cut_off = records(trace, |kind, body| state.take(kind, body, &mut show))?;
    Ok(state.finish(is_cut_off))
}

/// The algorithms that a trace introduces, in its order.
pub fn introduced(trace: impl Read) -> Result<Vec<&'static crate::Algorithm>, TraceError> {
    let mut state = State::default();
    records(trace, |kind, body| match kind {
        RECORD_ALGORITHM => state.take_algorithm(body),
        _ => Ok(()),
    })?;
    Ok(state.known.iter().map(|known| known.algorithm).collect())
}

/// Takes the records of a trace one after another; returns whether the last one is incomplete.
fn records(
    trace: impl Read,
    mut take: impl FnMut(u32, &[u8]) -> Result<(), String>,
) -> Result<bool, TraceError> {
    let mut reader = Reader { trace, offset: 0 };
    let mut magic = [0; 8];
    if !reader.fill(&mut magic)? || &magic != MAGIC {
        return Err(reader.malformed(format!(
            "not a trace of congestion-control calls: it does not begin with {:?}",
            String::from_utf8_lossy(MAGIC)
        )));
    }
    let mut body = Vec::new();
    loop {
        let mut head = [0; 8];
        match reader.read_up_to(&mut head)? {
            0 => return Ok(false),
            8 => {}
            _ => return Ok(true),
        }
        let (kind, bytes) = (u32_at(&head, 0), u32_at(&head, 4));
        if bytes > RECORD_BYTES_MAX {
            return Err(reader.malformed(format!(
                "a record of {bytes} bytes; none has more than {RECORD_BYTES_MAX}"
            )));
        }
        body.resize(bytes as usize, 0);
        if !reader.fill(&mut body)? {
            return Ok(true);
        }
        take(kind, &body).map_err(|reason| reader.malformed(reason))?;
    }
}

struct Reader<R> {
    trace: R,
    offset: u64,
}

impl<R: Read> Reader<R> {
    /// Reads as much as there is.
    fn read_up_to(&mut self, buffer: &mut [u8]) -> Result<usize, TraceError> {
        let mut have = 0;
        while have < buffer.len() {
            match self.trace.read(&mut buffer[have..]) {
                Ok(0) => break,
                Ok(more) => have += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.offset += have as u64;
        Ok(have)
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<bool, TraceError> {
        Ok(self.read_up_to(buffer)? == buffer.len())
    }

    fn malformed(&self, reason: String) -> TraceError {
        TraceError::Malformed(self.offset, reason)
    }
}

struct Known {
    algorithm: &'static crate::Algorithm,
    params: Vec<u32>,
    keeps_facts: bool,
    replayed: Replayed,
}

struct Connection {
    controller: Controller,
    sequence: u32,
    has_gap: bool,
}

#[derive(Default)]
struct State {
    ids: HashMap<u32, usize>,
    known: Vec<Known>,
    connections: HashMap<(usize, u32), Connection>,
}

impl State {
    fn finish(self, is_cut_off: bool) -> Replay {
        Replay {
            algorithms: self.known.into_iter().map(|item| item.replayed).collect(),
            is_cut_off,
        }
    }

    fn take(&mut self, kind: u32, body: &[u8], show: &mut impl FnMut(&Step)) -> Result<(), String> {
        match kind {
            RECORD_ALGORITHM => self.take_algorithm(body),
            RECORD_CALL => self.take_call(body, show),
            RECORD_LOST => {
                let index = self.index(body)?;
                let count = body
                    .get(4..8)
                    .ok_or("a record of lost calls is too short")?;
                self.known[index].replayed.lost += u64::from(u32_at(count, 0));
                Ok(())
            }
            _ => Err(format!("unknown kind of record {kind}")),
        }
    }

    fn index(&self, body: &[u8]) -> Result<usize, String> {
        let id = u32_at(body.get(..4).ok_or("a record is too short")?, 0);
        let index = self.ids.get(&id).copied();
        index.ok_or_else(|| format!("algorithm {id} is used before it is introduced"))
    }

    fn take_algorithm(&mut self, body: &[u8]) -> Result<(), String> {
        let mut rest = body;
        let id = take_u32(&mut rest)?;
        let count = take_u32(&mut rest)? as usize;
        if count > rest.len() / 4 {
            return Err(format!("{count} parameters do not fit the record"));
        }
        let params = (0..count)
            .map(|_| take_u32(&mut rest))
            .collect::<Result<Vec<_>, _>>()?;
        let (name, kernel_name) = (take_text(&mut rest)?, take_text(&mut rest)?);
        let release = take_text(&mut rest)?;
        let keeps_facts = !rest.is_empty() && take_u32(&mut rest)? != 0;
        let found = algorithm(&name)
            .ok_or_else(|| format!("algorithm {name:?} is not in this build's registry"))?;
        Controller::new(found, &params).map_err(|error| error.to_string())?;
        if self.ids.insert(id, self.known.len()).is_some() {
            return Err(format!("algorithm {id} is introduced twice"));
        }
        self.known.push(Known {
            algorithm: found,
            params,
            keeps_facts,
            replayed: Replayed {
                algorithm: name,
                kernel_name,
                release,
                ..Replayed::default()
            },
        });
        Ok(())
    }

    fn take_call(&mut self, body: &[u8], show: &mut impl FnMut(&Step)) -> Result<(), String> {
        let index = self.index(body)?;
        if body.len() != 8 + CALL_BYTES {
            return Err(format!(
                "a call of {} bytes; this trace's should have {CALL_BYTES}",
                body.len().saturating_sub(8)
            ));
        }
        let body = &body[8..];
        // SAFETY: the slice has exactly the size of Call, all of whose fields are integers, for
        // which every bit pattern is valid; `read_unaligned` needs no alignment.
        let call: Call = unsafe { body.as_ptr().cast::<Call>().read_unaligned() };
        let known = &mut self.known[index];
        let key = (index, call.socket);
        if call.kind == CALL_INIT {
            if self.connections.len() >= CONNECTIONS_MAX {
                return Err(format!("more than {CONNECTIONS_MAX} connections at once"));
            }
            let controller = Controller::new(known.algorithm, &known.params);
            let controller = controller.map_err(|error| error.to_string())?;
            self.connections.insert(
                key,
                Connection {
                    controller: match known.keeps_facts {
                        true => controller.without_ring(),
                        false => controller,
                    },
                    sequence: call.sequence,
                    has_gap: false,
                },
            );
            known.replayed.connections += 1;
        }
        let mut native = self.connections.get_mut(&key);
        if let Some(connection) = &mut native {
            connection.has_gap |= call.sequence != connection.sequence;
            connection.sequence = call.sequence.wrapping_add(1);
        }
        // Without a connection its beginning was lost.
        let mut native = native.filter(|connection| !connection.has_gap);
        known.replayed.skipped += u64::from(native.is_none());
        if call.kind == CALL_RELEASE {
            self.connections.remove(&key);
            return Ok(());
        }
        let name = call_name(&call)?;
        let mut difference = None;
        if let Some(connection) = &mut native {
            check_call(&call)?;
            difference = run(&mut connection.controller, &call, name);
            known.replayed.calls += 1;
            known.replayed.acks += u64::from(call.kind == CALL_ACK);
        }
        show(&Step {
            kernel_name: &known.replayed.kernel_name,
            connection: call.socket,
            sequence: call.sequence,
            name,
            conn: &call.conn,
            ack: (call.kind == CALL_ACK).then_some(&call.ack),
            event: (call.kind == CALL_EVENT).then_some(&call.event),
            before: &call.before,
            after: &call.after,
            controller: native.map(|connection| &connection.controller),
            differs: difference.as_ref().map(|found| found.field),
        });
        if known.replayed.difference.is_none() {
            known.replayed.difference = difference;
        }
        Ok(())
    }
}

/// What no host would say; an algorithm may rely on it (a division by the packet size, say).
fn check_call(call: &Call) -> Result<(), String> {
    if call.conn.mss_bytes == 0 || call.conn.mss_bytes > 1 << 16 {
        return Err(format!("mss_bytes is {}", call.conn.mss_bytes));
    }
    if call.before.cwnd == 0 {
        return Err("cwnd is 0".to_owned());
    }
    Ok(())
}

fn call_name(call: &Call) -> Result<&'static str, String> {
    match call.kind {
        CALL_INIT => Ok("init"),
        CALL_ACK => Ok("ack"),
        CALL_EVENT => event_name(call.event.kind),
        kind => Err(format!("unknown kind of call {kind}")),
    }
}

/// One call through the native build; what differs first, if anything.
fn run(controller: &mut Controller, call: &Call, name: &str) -> Option<Difference> {
    let mut ctl = call.before;
    let mut ack = call.ack;
    match call.kind {
        CALL_INIT => controller.init(&call.conn, &mut ctl),
        CALL_ACK => controller.on_ack(&call.conn, &mut ack, &mut ctl),
        _ => controller.on_event(&call.conn, call.event, &mut ctl),
    }
    let has_ring = call.kind == CALL_ACK && controller.wants(flags::WANTS_RING);
    let pairs = [
        (
            "tx_inflight",
            call.ack.tx_inflight,
            ack.tx_inflight,
            has_ring,
        ),
        ("lost", call.ack.lost, ack.lost, has_ring),
        ("cwnd", call.after.cwnd, ctl.cwnd, true),
        ("ssthresh", call.after.ssthresh, ctl.ssthresh, true),
        ("tso_segs", call.after.tso_segs, ctl.tso_segs, true),
        (
            "sndbuf_factor",
            call.after.sndbuf_factor,
            ctl.sndbuf_factor,
            true,
        ),
        ("cwnd_cnt", call.after.cwnd_cnt, ctl.cwnd_cnt, true),
    ];
    let wide = [
        (
            "pacing_rate_Bps",
            call.after.pacing_rate_bytes_per_s,
            ctl.pacing_rate_bytes_per_s,
        ),
        ("timer_us", call.after.timer_us, ctl.timer_us),
    ];
    let first = pairs
        .iter()
        .find(|(_, kernel, native, counts)| *counts && kernel != native)
        .map(|&(field, kernel, native, _)| (field, u64::from(kernel), u64::from(native)))
        .or(wide
            .into_iter()
            .find(|(_, kernel, native)| kernel != native));
    first.map(|(field, kernel, native)| Difference {
        socket: call.socket,
        sequence: call.sequence,
        call: name.to_owned(),
        field,
        kernel,
        native,
    })
}

fn event_name(kind: u32) -> Result<&'static str, String> {
    const NAMES: [(EventKind, &str); 14] = [
        (EventKind::TxStart, "tx_start"),
        (EventKind::CwndRestart, "cwnd_restart"),
        (EventKind::CompleteCwr, "complete_cwr"),
        (EventKind::Rto, "rto"),
        (EventKind::EcnCe, "ecn_ce"),
        (EventKind::State, "state"),
        (EventKind::Ssthresh, "ssthresh"),
        (EventKind::Undo, "undo"),
        (EventKind::Rtt, "rtt"),
        (EventKind::Send, "send"),
        (EventKind::Lost, "lost"),
        (EventKind::TlpRecovery, "tlp_recovery"),
        (EventKind::Ack, "ack_taken"),
        (EventKind::Timer, "timer"),
    ];
    NAMES
        .iter()
        .find(|(known, _)| *known as u32 == kind)
        .map(|(_, name)| *name)
        .ok_or_else(|| format!("unknown event {kind}"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn take_u32(rest: &mut &[u8]) -> Result<u32, String> {
    let (word, tail) = rest.split_at_checked(4).ok_or("a record is too short")?;
    *rest = tail;
    Ok(u32_at(word, 0))
}

fn take_text(rest: &mut &[u8]) -> Result<String, String> {
    let bytes = take_u32(rest)? as usize;
    let (text, tail) = rest.split_at_checked(bytes).ok_or("a text is cut off")?;
    *rest = tail;
    String::from_utf8(text.to_vec()).map_err(|_| "a text is not UTF-8".to_owned())
}
