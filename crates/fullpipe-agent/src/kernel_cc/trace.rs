//! Moves the eBPF programs' log of calls into a trace (fullpipe_cc::trace), in a thread of its own
//! that runs until `finish`.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use fullpipe_cc::trace::{Introduction, TraceWriter, CALL_BYTES};
use libbpf_rs::{MapHandle, RingBufferBuilder};

use super::features::kernel_release;
use super::load::{Counters, Loaded};

/// How often the ring buffers are emptied: at 64 MB each, 200,000 calls fit between two reads.
const PERIOD: Duration = Duration::from_millis(20);

/// A thread that writes the trace of some congestion controls.
pub(crate) struct Tracer {
    stop: Sender<()>,
    thread: JoinHandle<io::Result<()>>,
}

struct Source {
    ring: MapHandle,
    counters: MapHandle,
}

impl Tracer {
    /// Begins a trace of `loaded`, which must have been loaded as traced, before sockets use them.
    pub(crate) fn start(loaded: &[&Loaded], out: Box<dyn Write + Send>) -> Result<Self, String> {
        let release = &kernel_release();
        let failed = |error: &dyn std::fmt::Display| format!("trace: {error}");
        let mut writer = TraceWriter::new(out).map_err(|error| failed(&error))?;
        let mut sources = Vec::new();
        for (id, item) in (0..).zip(loaded) {
            let meaning = Introduction {
                algorithm: item.algorithm(),
                params: item.params(),
                kernel_name: item.kernel_name(),
                release,
                keeps_facts: false,
            };
            writer
                .algorithm(id, &meaning)
                .map_err(|error| failed(&error))?;
            let handle =
                |map: &str| MapHandle::try_from(&item.map(map)?).map_err(|error| failed(&error));
            sources.push(Source {
                ring: handle("fp_trace")?,
                counters: handle(".bss")?,
            });
        }
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("trace".to_owned())
            .spawn(move || drain(writer, &sources, || stopped.recv_timeout(PERIOD)))
            .map_err(|error| failed(&error))?;
        Ok(Self { stop, thread })
    }

    /// Writes the rest and returns the first write error.
    pub(crate) fn finish(self) -> io::Result<()> {
        drop(self.stop);
        self.thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the trace's thread failed")))
    }
}

fn drain(
    writer: TraceWriter<Box<dyn Write + Send>>,
    sources: &[Source],
    wait: impl Fn() -> Result<(), RecvTimeoutError>,
) -> io::Result<()> {
    let state = Rc::new(RefCell::new((writer, Ok(()))));
    let mut builder = RingBufferBuilder::new();
    for (id, source) in (0..).zip(sources) {
        let state = Rc::clone(&state);
        builder
            .add(&source.ring, move |call| {
                let (writer, outcome) = &mut *state.borrow_mut();
                if outcome.is_ok() {
                    *outcome = match call.len() == CALL_BYTES {
                        true => writer.call(id, call),
                        false => Err(io::Error::other("the object logs calls of another build")),
                    };
                }
                0
            })
            .map_err(io::Error::other)?;
    }
    let rings = builder.build().map_err(io::Error::other)?;
    loop {
        let is_last = wait() == Err(RecvTimeoutError::Disconnected);
        rings.consume().map_err(io::Error::other)?;
        if is_last {
            break;
        }
    }
    let (writer, outcome) = &mut *state.borrow_mut();
    std::mem::replace(outcome, Ok(()))?;
    for (id, source) in (0..).zip(sources) {
        let lost = Counters::read(&source.counters).map_or(0, |found| found.trace_lost);
        if lost > 0 {
            writer.lost(id, lost)?;
        }
    }
    writer.flush()
}
