//! `fullpipe._native.sim`: runs a plan in the simulator.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use fullpipe_cc::log;
use fullpipe_plan::{Table, Tables};
use fullpipe_sim::transport::{Loaded, Transport, CAPSULE};
use fullpipe_sim::{read_plan, run as run_plan, Inputs, Outcome, PcapWriter, Plan, Traces};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::controller::{self, take_raised};
use crate::tables;

/// Interval between progress callbacks and signal checks.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let sim = PyModule::new(module.py(), "sim")?;
    sim.add_function(wrap_pyfunction!(run, &sim)?)?;
    sim.add_function(wrap_pyfunction!(components, &sim)?)?;
    module.add_submodule(&sim)
}

/// Part of the simulator -> SHA-256 of the sources that it was compiled from.
#[pyfunction]
fn components(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let result = PyDict::new(py);
    for (name, digest) in fullpipe_sim::components() {
        result.set_item(name, digest)?;
    }
    Ok(result)
}

/// Runs a plan (JSON). Returns a dict of tables, each a dict column -> (kind, values), and
/// `health`, `interrupted`, and `log` if files of a kernel printed something. `progress(simulated_ns)` may
/// return False to stop early. `traces` holds the flows of the plan's files (`traffic.trace()`) by their
/// SHA-256; `rows` takes rows while they come, as a dict of one table; what it did not get is in the tables. `transports` are the
/// capsules of modules with other transports than TCP (`fullpipe_quic.transport`). `pcap` and `cc_trace` are
/// descriptors of open files for a capture and for a trace of calls, which are closed at the end.
///
/// Raises ValueError for a bad plan, RuntimeError where a class raised something (`algorithm`, and what
/// it raised as the cause), OSError where a file cannot be written.
#[allow(clippy::too_many_arguments)] // Python's, most of them with a default
#[pyfunction]
#[pyo3(signature = (plan_json, progress=None, pcap=None, cc_trace=None, traces=None, rows=None, transports=Vec::new()))]
fn run<'py>(
    py: Python<'py>,
    plan_json: &str,
    progress: Option<Py<PyAny>>,
    pcap: Option<RawFd>,
    cc_trace: Option<RawFd>,
    traces: Option<HashMap<String, Py<crate::traffic::PyTrace>>>,
    rows: Option<Py<PyAny>>,
    transports: Vec<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyDict>> {
    let plan = read(plan_json)?;
    let files = Files { pcap, cc_trace };
    let transports = loaded(transports)?;
    let _ = log::take(); // of a run that failed
    let outcome = simulated(py, &plan, progress, files, traces, rows, &transports)?;
    let result = tables::to_dict(py, outcome.tables)?;
    let health = PyDict::new(py);
    health.set_item("events", outcome.events)?;
    health.set_item("packets_delivered", outcome.packets_delivered)?;
    health.set_item("packets_lost", outcome.packets_lost)?;
    health.set_item("packets_in_flight", outcome.packets_in_flight)?;
    if !plan.traffic.is_empty() {
        health.set_item("traffic_flows", outcome.traffic_flows)?;
        health.set_item("traffic_connections", outcome.traffic_connections)?;
    }
    let failures = outcome.transport_failures;
    if !failures.is_empty() {
        health.set_item("transport_failures", failures)?;
    }
    result.set_item("health", health)?;
    result.set_item("interrupted", outcome.interrupted)?;
    let logged = log::take();
    if !logged.is_empty() {
        result.set_item("log", logged)?;
    }
    Ok(result)
}

/// Runs a plan (JSON) that names no trace of traffic. Raises as `run`.
pub(crate) fn tables_of(
    py: Python<'_>,
    plan_json: &str,
    transports: &[Loaded],
) -> PyResult<Tables> {
    let plan = read(plan_json)?;
    let files = Files::default();
    simulated(py, &plan, None, files, None, None, transports).map(|outcome| outcome.tables)
}

fn read(plan_json: &str) -> PyResult<Plan> {
    read_plan(plan_json).map_err(|error| PyValueError::new_err(format!("plan: {error}")))
}

/// The transports of modules. Raises ValueError if one is not of this version.
pub(crate) fn loaded(capsules: Vec<Bound<'_, PyCapsule>>) -> PyResult<Vec<Loaded>> {
    let all = capsules.into_iter();
    all.map(|capsule| loaded_one(&capsule)).collect()
}

fn loaded_one(capsule: &Bound<'_, PyCapsule>) -> PyResult<Loaded> {
    let address = capsule
        .pointer_checked(Some(CAPSULE))
        .map_err(|_| PyValueError::new_err("transport: not a module of transports"))?;
    // SAFETY: a capsule of this name points to the address of such a table, which is a static of a module
    // that Python never unloads.
    let module = unsafe { *address.cast::<*const std::ffi::c_void>().as_ptr() };
    // SAFETY: as before.
    unsafe { Loaded::new(module) }
        .map_err(|error| PyValueError::new_err(format!("transport: {error}; run make quic")))
}

/// Descriptors of the files that a run writes in addition to its tables.
#[derive(Clone, Copy, Default)]
struct Files {
    pcap: Option<RawFd>,
    cc_trace: Option<RawFd>,
}

fn unwritable(what: &str, error: &std::io::Error) -> PyErr {
    PyOSError::new_err(format!("{what}: {error}"))
}

fn opened(descriptor: RawFd) -> BufWriter<File> {
    // SAFETY: the caller gave it away; one that is not open fails as a write.
    BufWriter::new(File::from(unsafe { OwnedFd::from_raw_fd(descriptor) }))
}

/// See `run`.
fn simulated(
    py: Python<'_>,
    plan: &Plan,
    progress: Option<Py<PyAny>>,
    files: Files,
    traces: Option<HashMap<String, Py<crate::traffic::PyTrace>>>,
    rows: Option<Py<PyAny>>,
    transports: &[Loaded],
) -> PyResult<Outcome> {
    let pcap = files.pcap.map(|file| {
        PcapWriter::new(Box::new(opened(file))).map_err(|error| unwritable("--pcap", &error))
    });
    let pcap = pcap.transpose()?;
    let cc_trace = files.cc_trace.map(opened);
    let traces: Traces = traces
        .unwrap_or_default()
        .into_iter()
        .map(|(hash, trace)| (hash, trace.get().0.clone()))
        .collect();
    let mut refused = None;
    let mut take = |table: Table| {
        Python::attach(|py| {
            let pass_on = || {
                let passed = PyDict::new(py);
                passed.set_item(table.name, tables::columns(py, table)?)?;
                rows.as_ref()
                    .map(|rows| rows.call1(py, (passed,)))
                    .transpose()
            };
            refused = refused.take().or(pass_on().err());
        });
    };
    let mut failure = None;
    let mut raised = None;
    let mut last = Instant::now();
    let choices = plan.flows.iter().map(|flow| &flow.cc);
    let has_classes = choices
        .chain(plan.traffic.iter().map(|group| &group.cc))
        .any(|cc| is_class(cc.algorithm.as_deref()));
    let _ = take_raised();
    let transports: Vec<&dyn Transport> = transports.iter().map(|one| one as _).collect();
    let work = || {
        let mut ask = |done_ns: u64| {
            raised = take_raised();
            if raised.is_some() {
                return false;
            }
            let Some(progress) = &progress else {
                return true;
            };
            if last.elapsed() < PROGRESS_INTERVAL && done_ns < plan.duration_ns {
                return true;
            }
            last = Instant::now();
            Python::attach(|py| {
                let answer = py
                    .check_signals()
                    .and_then(|()| progress.call1(py, (done_ns,)));
                match answer.and_then(|value| value.is_truthy(py)) {
                    Ok(go_on) => go_on,
                    Err(error)
                        if error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py) =>
                    {
                        false
                    }
                    Err(error) => {
                        failure = Some(error);
                        false
                    }
                }
            })
        };
        let inputs = Inputs {
            pcap,
            cc_trace: cc_trace.map(|file| Box::new(file) as Box<dyn Write + Send>),
            traces,
            rows: rows.is_some().then_some(&mut take),
            transports: &transports,
        };
        run_plan(plan, inputs, &mut ask)
    };
    // A class is called for every ACK: the interpreter is not let go of in between, which would cost
    // more than the call where other threads want it.
    let outcome = if has_classes {
        work()
    } else if !transports.is_empty() {
        // A thread of its own: stacks keep random numbers for a thread, which must start again.
        py.detach(|| std::thread::scope(|scope| scope.spawn(work).join()))
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    } else {
        py.detach(work)
    };
    if let Some(error) = failure.or(refused) {
        return Err(error);
    }
    if let Some(what) = raised.or_else(take_raised) {
        return Err(controller::raised(py, what));
    }
    let outcome = outcome.map_err(|error| PyValueError::new_err(error.to_string()))?;
    if let Some(error) = &outcome.pcap_error {
        return Err(unwritable("--pcap", error));
    }
    if let Some(error) = &outcome.cc_trace_error {
        return Err(unwritable("--cc-trace", error));
    }
    Ok(outcome)
}

/// Whether a plan's algorithm is a class of Python (fullpipe/congestion/userfiles/classes.py).
fn is_class(algorithm: Option<&str>) -> bool {
    algorithm.is_some_and(|name| name.starts_with("py:"))
}
