//! Traces of every call of congestion controls: the form that the kernel's programs log and
//! [`crate::replay`] reads, and a log of it for hosts in this process.
//!
//! A trace is [`MAGIC`] and then records of `kind: u32, bytes: u32, body`, all little-endian:
//!
//! * [`RECORD_ALGORITHM`]: `id: u32`, `count: u32`, `count` stored parameters, then the names of the
//!   algorithm, of the congestion control and of the kernel's release, each as `bytes: u32` and UTF-8,
//!   and `keeps_facts: u32` (since November 2026; 0 where it is missing): not 0 where the host kept
//!   each packet's flight and losses itself, and so no ring ([`Controller::without_ring`])
//! * [`RECORD_CALL`]: `id: u32`, `unused: u32`, and `struct fp_call` of bpf/glue.h
//! * [`RECORD_LOST`]: `id: u32`, `count: u32` calls that the kernel had no room to log
//!
//! [`Controller::without_ring`]: crate::Controller::without_ring

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use crate::abi::{Ack, Conn, Ctl, Event};

pub(crate) const MAGIC: &[u8; 8] = b"fpcctrc4";
pub(crate) const RECORD_ALGORITHM: u32 = 1;
pub(crate) const RECORD_CALL: u32 = 2;
pub(crate) const RECORD_LOST: u32 = 3;

pub(crate) const CALL_INIT: u32 = 0;
pub(crate) const CALL_ACK: u32 = 1;
pub(crate) const CALL_EVENT: u32 = 2;
pub(crate) const CALL_RELEASE: u32 = 3;

/// `struct fp_call` of bpf/glue.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Call {
    pub(crate) socket: u32,
    pub(crate) sequence: u32,
    pub(crate) kind: u32,
    pub(crate) unused: u32,
    pub(crate) conn: Conn,
    pub(crate) ack: Ack,
    pub(crate) event: Event,
    pub(crate) before: Ctl,
    pub(crate) after: Ctl,
}

/// Size of one logged call, as the kernel's side must have it.
pub const CALL_BYTES: usize = size_of::<Call>();
/// Bytes of a call's record in a trace: kind, length, id, padding, and the call.
pub const CALL_RECORD_BYTES: usize = 16 + CALL_BYTES;

/// What calls of one `id` mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Introduction<'a> {
    /// Name in the registry.
    pub algorithm: &'a str,
    /// Stored parameters.
    pub params: &'a [u32],
    /// The name that sockets set (TCP_CONGESTION), or another name that identifies the instance.
    pub kernel_name: &'a str,
    /// Of the kernel, or what else carries the packets.
    pub release: &'a str,
    /// The host kept each packet's flight and losses itself.
    pub keeps_facts: bool,
}

/// Writes a trace.
pub struct TraceWriter<W: Write> {
    out: W,
}

impl<W: Write> TraceWriter<W> {
    /// A trace without records.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        Ok(Self { out })
    }

    /// Says what calls of this `id` mean. It comes before the first of them.
    pub fn algorithm(&mut self, id: u32, meaning: &Introduction) -> io::Result<()> {
        let mut body = id.to_le_bytes().to_vec();
        body.extend((meaning.params.len() as u32).to_le_bytes());
        body.extend(meaning.params.iter().flat_map(|value| value.to_le_bytes()));
        for text in [meaning.algorithm, meaning.kernel_name, meaning.release] {
            body.extend((text.len() as u32).to_le_bytes());
            body.extend(text.as_bytes());
        }
        body.extend(u32::from(meaning.keeps_facts).to_le_bytes());
        self.record(RECORD_ALGORITHM, &body)
    }

    /// One call as the kernel logged it: [`CALL_BYTES`] bytes.
    pub fn call(&mut self, id: u32, call: &[u8]) -> io::Result<()> {
        let mut body = [0; 8 + CALL_BYTES];
        body[..4].copy_from_slice(&id.to_le_bytes());
        body[8..].copy_from_slice(call);
        self.record(RECORD_CALL, &body)
    }

    /// So many calls are missing.
    pub fn lost(&mut self, id: u32, count: u32) -> io::Result<()> {
        let mut body = [0; 8];
        body[..4].copy_from_slice(&id.to_le_bytes());
        body[4..].copy_from_slice(&count.to_le_bytes());
        self.record(RECORD_LOST, &body)
    }

    /// Everything is with the operating system.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn record(&mut self, kind: u32, body: &[u8]) -> io::Result<()> {
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&(body.len() as u32).to_le_bytes())?;
        self.out.write_all(body)
    }
}

/// The trace of the controllers of one host in this process. Clones write to the same trace.
#[derive(Clone)]
pub struct CallLog(Rc<RefCell<Shared>>);

struct Shared {
    writer: TraceWriter<Box<dyn Write + Send>>,
    /// Introductions so far: `kernel_name`, and the number of its connections.
    known: Vec<(String, u32)>,
    outcome: io::Result<()>,
}

/// A connection's place in a [`CallLog`].
pub(crate) struct Logged {
    log: CallLog,
    id: u32,
    socket: u32,
    sequence: u32,
}

impl CallLog {
    /// A trace without calls.
    pub fn new(out: Box<dyn Write + Send>) -> io::Result<Self> {
        Ok(Self(Rc::new(RefCell::new(Shared {
            writer: TraceWriter::new(out)?,
            known: Vec::new(),
            outcome: Ok(()),
        }))))
    }

    /// Writes what is left and returns the first error of writing.
    pub fn finish(self) -> io::Result<()> {
        let mut shared = self.0.borrow_mut();
        std::mem::replace(&mut shared.outcome, Ok(()))?;
        shared.writer.flush()
    }

    /// One more connection of `meaning.kernel_name`, which is introduced once.
    pub(crate) fn connection(&self, meaning: &Introduction) -> Logged {
        let shared = &mut *self.0.borrow_mut();
        let known = &mut shared.known;
        let found = known
            .iter()
            .position(|(name, _)| name == meaning.kernel_name);
        let id = found.unwrap_or_else(|| {
            known.push((meaning.kernel_name.to_owned(), 0));
            known.len() - 1
        });
        known[id].1 += 1;
        let socket = known[id].1;
        if found.is_none() && shared.outcome.is_ok() {
            shared.outcome = shared.writer.algorithm(id as u32, meaning);
        }
        Logged {
            log: self.clone(),
            id: id as u32,
            socket,
            sequence: 0,
        }
    }
}

impl Logged {
    /// Writes a call; whose it is and its place among the connection's are filled in.
    pub(crate) fn write(&mut self, mut call: Call) {
        call.socket = self.socket;
        call.sequence = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        // SAFETY: integers without padding between them (repr(C); tests compare with the kernel's
        // object), so every byte is initialised.
        let bytes =
            unsafe { std::slice::from_raw_parts(std::ptr::from_ref(&call).cast(), CALL_BYTES) };
        let shared = &mut *self.log.0.borrow_mut();
        if shared.outcome.is_ok() {
            shared.outcome = shared.writer.call(self.id, bytes);
        }
    }
}
