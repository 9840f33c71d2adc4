//! `fullpipe._native.traces`: files of rates and delays, checked and summed up.

use fullpipe_net::trace::{DelayTrace, RateTrace};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let traces = PyModule::new(parent.py(), "traces")?;
    traces.add_function(wrap_pyfunction!(rates, &traces)?)?;
    traces.add_function(wrap_pyfunction!(rate_steps, &traces)?)?;
    traces.add_function(wrap_pyfunction!(delays, &traces)?)?;
    parent.add_submodule(&traces)
}

/// (opportunities, period in ms, mean rate in bit/s) of a file of Mahimahi. Raises ValueError naming
/// line and value.
#[pyfunction]
fn rates(py: Python<'_>, path: &str) -> PyResult<(usize, u64, u64)> {
    let trace = py
        .detach(|| RateTrace::read(path))
        .map_err(PyValueError::new_err)?;
    let count = trace.times_ms.len();
    Ok((count, trace.period_ms(), trace.mean_bps()))
}

/// The rate in each bin until the end as (ns, bit/s), where it changes. Raises ValueError.
#[pyfunction]
fn rate_steps(py: Python<'_>, path: &str, bin_ms: u64, end_ns: u64) -> PyResult<Vec<(u64, u64)>> {
    py.detach(|| RateTrace::read(path).map(|trace| trace.steps(bin_ms.max(1), end_ns)))
        .map_err(PyValueError::new_err)
}

/// Steps until the end as (ns, delay in ns), repetitions written out. Raises ValueError naming line
/// and value.
#[pyfunction]
fn delays(py: Python<'_>, path: &str, end_ns: u64) -> PyResult<Vec<(u64, u64)>> {
    py.detach(|| DelayTrace::read(path).map(|trace| trace.unrolled(end_ns)))
        .map_err(PyValueError::new_err)
}
