//! `fullpipe._native.traffic`: traces of flows, and the fluid yardsticks over them.

use std::sync::Arc;

use fullpipe_model::sharing;
use fullpipe_net::{derive_seed, purpose};
use fullpipe_plan::TrafficSource;
use fullpipe_sim::read_plan;
use fullpipe_workload::{backbone, Chunk, Flows, Trace, TraceFlow};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Flows with their chunks.
#[pyclass(frozen, name = "Trace", module = "fullpipe._native.traffic")]
pub(crate) struct PyTrace(pub(crate) Arc<Trace>);

#[pymethods]
impl PyTrace {
    /// How many flows there are.
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// What `trace` makes it of.
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<[Bound<'py, PyBytes>; 4]> {
        let mut parts: [Vec<u64>; 4] = Default::default();
        for flow in 0..self.0.len() {
            let chunks = self.0.chunks(flow);
            parts[0].push(self.0.start_ns(flow));
            parts[1].push(chunks.len() as u64);
            for chunk in chunks.map(|place| self.0.chunk(place)) {
                parts[2].push(chunk.pause_ns);
                parts[3].push(chunk.bytes);
            }
        }
        let [starts, counts, pauses, bytes] = &parts;
        Ok([
            words(py, starts)?,
            words(py, counts)?,
            words(py, pauses)?,
            words(py, bytes)?,
        ])
    }

    /// One row a chunk, as bytes of little-endian u64: the flow's number, when it began, the pause
    /// before the chunk (both ns), its payload.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<[Bound<'py, PyBytes>; 4]> {
        let mut columns: [Vec<u64>; 4] = Default::default();
        for flow in 0..self.0.len() {
            for chunk in self.0.chunks(flow).map(|place| self.0.chunk(place)) {
                let row = [
                    flow as u64,
                    self.0.start_ns(flow),
                    chunk.pause_ns,
                    chunk.bytes,
                ];
                for (column, value) in columns.iter_mut().zip(row) {
                    column.push(value);
                }
            }
        }
        let [flows, starts, pauses, bytes] = &columns;
        Ok([
            words(py, flows)?,
            words(py, starts)?,
            words(py, pauses)?,
            words(py, bytes)?,
        ])
    }
}

/// A trace from columns of little-endian u64 (`Trace.parts`), one value a flow: when it began (ns) and how many
/// chunks it has; one value a chunk: the pause before it (ns), its payload.
///
/// Raises ValueError where flows are out of order or without bytes.
#[pyfunction]
fn trace(starts: &[u8], counts: &[u8], pauses: &[u8], bytes: &[u8]) -> PyResult<PyTrace> {
    let mut first_chunk = 0u32;
    let flows = numbers(starts)
        .zip(numbers(counts))
        .map(|(start_ns, count)| {
            let flow = TraceFlow {
                start_ns,
                first_chunk,
            };
            first_chunk = first_chunk.saturating_add(count as u32);
            flow
        })
        .collect();
    let chunks: Vec<Chunk> = numbers(pauses)
        .zip(numbers(bytes))
        .map(|(pause_ns, bytes)| Chunk { pause_ns, bytes })
        .collect();
    if first_chunk as usize != chunks.len() {
        return Err(PyValueError::new_err("trace: counts and chunks differ"));
    }
    let made = Trace::new(flows, chunks).map_err(PyValueError::new_err)?;
    Ok(PyTrace(Arc::new(made)))
}

/// Flows like those of a backbone link (crates/fullpipe-workload/src/backbone.rs).
///
/// Raises ValueError where they would be none, or too many.
#[pyfunction(name = "backbone")]
fn generate(py: Python<'_>, seed: u64, duration_ns: u64, rate_bps: u64) -> PyResult<PyTrace> {
    let made = py.detach(|| backbone(seed, duration_ns, rate_bps));
    Ok(PyTrace(Arc::new(made.map_err(PyValueError::new_err)?)))
}

/// A flow: when it comes (ns since its group began), its payload, and the chunks in which it is sent, as
/// (pause before it in ns, payload), where they are several.
type Arrival = (u64, u64, Vec<(u64, u64)>);

/// The flows that a group of a plan's traffic will see, up to its end or the run's; `trace` holds those
/// of its file.
///
/// Raises ValueError where the plan has no such group, or more than `most` flows would come.
#[pyfunction]
fn arrivals(
    py: Python<'_>,
    plan_json: &str,
    group: u32,
    trace: Option<Py<PyTrace>>,
    most: usize,
) -> PyResult<Vec<Arrival>> {
    let bad = PyValueError::new_err::<String>;
    let plan = read_plan(plan_json).map_err(|error| bad(error.to_string()))?;
    let traffic = plan
        .traffic
        .get(group as usize)
        .ok_or_else(|| bad(format!("traffic: has no group {group}")))?;
    let trace = trace.map(|trace| trace.get().0.clone());
    py.detach(|| {
        let trace = match traffic.source {
            TrafficSource::Backbone {
                seed,
                duration_ns,
                rate_bps,
                ..
            } => Some(Arc::new(backbone(seed, duration_ns, rate_bps)?)),
            _ => trace,
        };
        let end_ns = traffic.stop_ns.unwrap_or(u64::MAX).min(plan.duration_ns);
        let seed = derive_seed(plan.seed, purpose::TRAFFIC, group);
        let chunks_of = |range: std::ops::Range<usize>| match &trace {
            Some(trace) => range
                .map(|place| trace.chunk(place))
                .map(|chunk| (chunk.pause_ns, chunk.bytes))
                .collect(),
            None => Vec::new(),
        };
        let found: Vec<Arrival> = Flows::new(&traffic.source, trace.clone(), seed)?
            .take_while(|flow| flow.at_ns.saturating_add(traffic.start_ns) < end_ns)
            .map(|flow| {
                (
                    flow.at_ns,
                    flow.bytes,
                    flow.chunks.map_or(Vec::new(), chunks_of),
                )
            })
            .take(most + 1)
            .collect();
        match found.len() > most {
            true => Err(format!("more than {most} flows")),
            false => Ok(found),
        }
    })
    .map_err(bad)
}

/// Times in the system of jobs under a discipline, `srpt` or `ps`, as bytes of little-endian f64; `arrivals` and
/// `works` are bytes of f64, in the order of arrival, in one unit of time.
///
/// Raises ValueError for another discipline, and for arrivals that are out of order.
#[pyfunction]
fn fluid<'py>(
    py: Python<'py>,
    discipline: &str,
    arrivals: &[u8],
    works: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let run = match discipline {
        "srpt" => sharing::shortest_first,
        "ps" => sharing::processor_sharing,
        _ => return Err(PyValueError::new_err("discipline: srpt or ps")),
    };
    let reals = |bytes: &[u8]| -> Vec<f64> { numbers(bytes).map(f64::from_bits).collect() };
    let (arrivals, works) = (reals(arrivals), reals(works));
    let times = py
        .detach(|| run(&arrivals, &works))
        .map_err(PyValueError::new_err)?;
    let bits: Vec<u64> = times.into_iter().map(f64::to_bits).collect();
    words(py, &bits)
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks_exact(8).map(|word| {
        word.iter()
            .rev()
            .fold(0, |sum, &byte| sum << 8 | u64::from(byte))
    })
}

fn words<'py>(py: Python<'py>, values: &[u64]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, 8 * values.len(), |bytes| {
        for (place, value) in bytes.chunks_exact_mut(8).zip(values) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        Ok(())
    })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let traffic = PyModule::new(module.py(), "traffic")?;
    traffic.add_class::<PyTrace>()?;
    traffic.add_function(wrap_pyfunction!(trace, &traffic)?)?;
    traffic.add_function(wrap_pyfunction!(generate, &traffic)?)?;
    traffic.add_function(wrap_pyfunction!(arrivals, &traffic)?)?;
    traffic.add_function(wrap_pyfunction!(fluid, &traffic)?)?;
    module.add_submodule(&traffic)
}
