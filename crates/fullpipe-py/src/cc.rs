//! `fullpipe._native.cc`: the registry of algorithms and parameter sets.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use fullpipe_cc::replay::{replay, TraceError};
use fullpipe_cc::trace::CALL_RECORD_BYTES;
use fullpipe_cc::{algorithms, external, sets, Algorithm, Param, Variable};
use fullpipe_plan::calls::calls;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::pythonize;
use serde::Serialize;

use crate::tables;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let cc = PyModule::new(module.py(), "cc")?;
    cc.add_function(wrap_pyfunction!(list_algorithms, &cc)?)?;
    cc.add_function(wrap_pyfunction!(list_sets, &cc)?)?;
    cc.add_function(wrap_pyfunction!(load, &cc)?)?;
    cc.add_function(wrap_pyfunction!(replay_trace, &cc)?)?;
    cc.add_function(wrap_pyfunction!(calls_of, &cc)?)?;
    cc.add("CALL_RECORD_BYTES", CALL_RECORD_BYTES)?;
    module.add_submodule(&cc)
}

/// What Python learns of an algorithm.
#[derive(Serialize)]
pub(crate) struct About<'a> {
    name: &'a str,
    title: &'a str,
    sources: &'a str,
    flags: u32,
    state_bytes: usize,
    params: &'a [Param],
    variables: &'a [Variable],
}

impl<'a> About<'a> {
    pub(crate) fn of(algorithm: &'a Algorithm) -> Self {
        let defaults: Vec<u32> = algorithm.params.iter().map(|one| one.default).collect();
        Self {
            name: algorithm.name,
            title: algorithm.title,
            sources: algorithm.sources,
            flags: algorithm.flags_of(&defaults),
            state_bytes: algorithm.state_bytes(),
            params: &algorithm.params,
            variables: &algorithm.variables,
        }
    }
}

/// All algorithms of the registry: name, title, sources, flags (with the default constants),
/// state_bytes, params, variables.
#[pyfunction(name = "algorithms")]
fn list_algorithms(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let all: Vec<_> = algorithms().iter().map(About::of).collect();
    Ok(pythonize(py, &all)?)
}

/// Loads an external algorithm, a shared object compiled with this build's cc/external.c. Plans use
/// `name`. Returns the same dict as an element of `algorithms`, with `base`: where the object begins in
/// memory. Its code runs with all rights of this process. Raises ValueError if it cannot be loaded.
#[pyfunction]
fn load<'py>(py: Python<'py>, path: PathBuf, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let loaded = external::load(&path, name);
    let loaded = loaded.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let found = pythonize(py, &About::of(loaded.algorithm))?;
    found.set_item("base", loaded.base)?;
    Ok(found)
}

/// All parameter sets: name, algorithm, kernel_name, title, values (stored).
#[pyfunction(name = "sets")]
fn list_sets(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    Ok(pythonize(py, sets())?)
}

/// Passes the calls of a trace to `rows`, as `sim.run` does with tables, each of some thousand calls;
/// returns and raises what `replay` does.
#[pyfunction(name = "calls")]
fn calls_of<'py>(py: Python<'py>, path: PathBuf, rows: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let mut raised = None;
    let found = calls(&path, |table| {
        let name = table.name;
        let answer = tables::columns(py, table).and_then(|columns| {
            let given = PyDict::new(py);
            given.set_item(name, columns)?;
            rows.call1(py, (given,))
        });
        raised = raised.take().or(answer.err());
    });
    if let Some(error) = raised {
        return Err(error);
    }
    Ok(pythonize(py, &found.map_err(trace_error)?)?)
}

fn trace_error(error: TraceError) -> PyErr {
    match error {
        TraceError::Io(error) => PyErr::from(error),
        malformed @ TraceError::Malformed(..) => PyValueError::new_err(malformed.to_string()),
    }
}

/// What a trace of the kernel's calls gives natively: algorithms, is_cut_off. Raises OSError where
/// the file cannot be read, ValueError where it is no trace.
#[pyfunction(name = "replay")]
fn replay_trace(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    let found = py
        .detach(|| replay(BufReader::new(File::open(path)?)))
        .map_err(trace_error)?;
    Ok(pythonize(py, &found)?)
}
