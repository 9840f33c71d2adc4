//! Moves the kernel's log of calls into a trace (fullpipe_cc::trace), in a thread of its own
//! that runs until `finish`.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use fullpipe_cc::trace::{Introduction, TraceWriter, CALL_BYTES};
use libbpf_rs::{MapHandle, RingBufferBuilder};

use super::features::kernel_release;
use super::load::Loaded;
use super::module::{self, Device};
use super::settings::Counters;

/// How often the ring buffers are emptied: at 64 MB each, 200,000 calls fit between two reads.
const PERIOD: Duration = Duration::from_millis(20);

/// A thread that writes the trace of some congestion controls.
pub(crate) struct Tracer {
    stop: Sender<()>,
    thread: JoinHandle<io::Result<()>>,
}

enum Source {
    Ebpf {
        ring: MapHandle,
        counters: MapHandle,
    },
    Module {
        device: File,
        kernel_name: String,
    },
}

impl Source {
    fn of(item: &Loaded) -> Result<Self, String> {
        if item.is_module() {
            return Ok(Self::Module {
                device: Device::trace(item.kernel_name())?,
                kernel_name: item.kernel_name().to_owned(),
            });
        }
        let handle = |map: &str| {
            MapHandle::try_from(&item.map(map)?).map_err(|error| format!("trace: {error}"))
        };
        Ok(Self::Ebpf {
            ring: handle("fp_trace")?,
            counters: handle(".bss")?,
        })
    }

    /// Calls that found no room.
    fn lost(&self) -> u32 {
        let counters = match self {
            Self::Ebpf { counters, .. } => Counters::read(counters),
            Self::Module { kernel_name, .. } => Device::open()
                .and_then(|device| device.find(kernel_name))
                .map(|described| described.counters()),
        };
        counters.map_or(0, |found| found.trace_lost)
    }
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
                keeps_facts: item.is_module() && module::keeps_facts(),
            };
            writer
                .algorithm(id, &meaning)
                .map_err(|error| failed(&error))?;
            sources.push(Source::of(item)?);
        }
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("trace".to_owned())
            .spawn(move || drain(writer, &mut sources, || stopped.recv_timeout(PERIOD)))
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
    sources: &mut [Source],
    wait: impl Fn() -> Result<(), RecvTimeoutError>,
) -> io::Result<()> {
    let state = Rc::new(RefCell::new((writer, Ok(()))));
    let put = |state: &RefCell<(TraceWriter<_>, io::Result<()>)>, id, call: &[u8]| {
        let (writer, outcome) = &mut *state.borrow_mut();
        if outcome.is_ok() {
            *outcome = match call.len() == CALL_BYTES {
                true => writer.call(id, call),
                false => Err(io::Error::other("the kernel logs calls of another build")),
            };
        }
    };
    let mut builder = RingBufferBuilder::new();
    let mut has_rings = false;
    for (id, source) in (0..).zip(sources.iter()) {
        if let Source::Ebpf { ring, .. } = source {
            let state = Rc::clone(&state);
            let add = move |call: &[u8]| {
                put(&state, id, call);
                0
            };
            builder.add(ring, add).map_err(io::Error::other)?;
            has_rings = true;
        }
    }
    let rings = match has_rings {
        true => Some(builder.build().map_err(io::Error::other)?),
        false => None,
    };
    loop {
        let is_last = wait() == Err(RecvTimeoutError::Disconnected);
        if let Some(rings) = &rings {
            rings.consume().map_err(io::Error::other)?;
        }
        for (id, source) in (0..).zip(sources.iter_mut()) {
            if let Source::Module { device, .. } = source {
                module::drain(device, CALL_BYTES, |call| put(&state, id, call))?;
            }
        }
        if is_last {
            break;
        }
    }
    let (writer, outcome) = &mut *state.borrow_mut();
    std::mem::replace(outcome, Ok(()))?;
    for (id, source) in (0..).zip(sources.iter()) {
        let lost = source.lost();
        if lost > 0 {
            writer.lost(id, lost)?;
        }
    }
    writer.flush()
}
