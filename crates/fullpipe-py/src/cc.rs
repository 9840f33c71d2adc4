//! `fullpipe._native.cc`: the registry of algorithms and parameter sets.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use fullpipe_cc::replay::{replay, Replay, TraceError};
use fullpipe_cc::{algorithms, external, sets, Algorithm};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let cc = PyModule::new(module.py(), "cc")?;
    cc.add_function(wrap_pyfunction!(list_algorithms, &cc)?)?;
    cc.add_function(wrap_pyfunction!(list_sets, &cc)?)?;
    cc.add_function(wrap_pyfunction!(load, &cc)?)?;
    cc.add_function(wrap_pyfunction!(replay_trace, &cc)?)?;
    module.add_submodule(&cc)
}

/// All algorithms of the registry: name, title, sources, flags, state_bytes, params.
#[pyfunction(name = "algorithms")]
fn list_algorithms(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for algorithm in algorithms() {
        list.append(describe(py, algorithm)?)?;
    }
    Ok(list)
}

/// Loads an external algorithm, a shared object compiled with this build's cc/external.c, and its
/// guard. Plans use `name`. Returns the same dict as an element of `algorithms`. Raises ValueError
/// if an object cannot be loaded.
#[pyfunction]
fn load<'py>(
    py: Python<'py>,
    path: PathBuf,
    name: &str,
    guard: PathBuf,
) -> PyResult<Bound<'py, PyDict>> {
    let loaded = external::load(&path, name, &guard);
    describe(
        py,
        loaded.map_err(|error| PyValueError::new_err(error.to_string()))?,
    )
}

fn describe<'py>(py: Python<'py>, algorithm: &Algorithm) -> PyResult<Bound<'py, PyDict>> {
    let params = PyList::empty(py);
    for param in &algorithm.params {
        let item = PyDict::new(py);
        item.set_item("name", param.name)?;
        item.set_item("unit", param.unit)?;
        item.set_item("zero", param.zero)?;
        item.set_item("source", param.source)?;
        item.set_item("meaning", param.meaning)?;
        item.set_item("default", param.default)?;
        item.set_item("min", param.min)?;
        item.set_item("max", param.max)?;
        item.set_item("scale", param.scale)?;
        params.append(item)?;
    }
    let item = PyDict::new(py);
    item.set_item("name", algorithm.name)?;
    item.set_item("title", algorithm.title)?;
    item.set_item("sources", algorithm.sources)?;
    item.set_item("flags", algorithm.flags())?;
    item.set_item("state_bytes", algorithm.state_bytes())?;
    item.set_item("params", params)?;
    Ok(item)
}

/// All parameter sets: name, algorithm, kernel_name, title, values (stored).
#[pyfunction(name = "sets")]
fn list_sets(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for set in sets() {
        let item = PyDict::new(py);
        item.set_item("name", set.name)?;
        item.set_item("algorithm", set.algorithm)?;
        item.set_item("kernel_name", set.kernel_name)?;
        item.set_item("title", set.title)?;
        item.set_item("values", set.values.clone())?;
        list.append(item)?;
    }
    Ok(list)
}

/// What a trace of the kernel's calls gives natively: algorithms, is_cut_off. Raises OSError where
/// the file cannot be read, ValueError where it is no trace.
#[pyfunction(name = "replay")]
fn replay_trace(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let found: Replay = py
        .allow_threads(|| replay(BufReader::new(File::open(path)?)))
        .map_err(|error: TraceError| match error {
            TraceError::Io(error) => PyErr::from(error),
            malformed @ TraceError::Malformed(..) => PyValueError::new_err(malformed.to_string()),
        })?;
    let list = PyList::empty(py);
    for one in &found.algorithms {
        let item = PyDict::new(py);
        item.set_item("algorithm", &one.algorithm)?;
        item.set_item("kernel_name", &one.kernel_name)?;
        item.set_item("release", &one.release)?;
        item.set_item("calls", one.calls)?;
        item.set_item("acks", one.acks)?;
        item.set_item("connections", one.connections)?;
        item.set_item("skipped", one.skipped)?;
        item.set_item("lost", one.lost)?;
        let difference = match &one.difference {
            None => None,
            Some(first) => {
                let place = PyDict::new(py);
                place.set_item("connection", first.socket)?;
                place.set_item("sequence", first.sequence)?;
                place.set_item("call", &first.call)?;
                place.set_item("field", first.field)?;
                place.set_item("kernel", first.kernel)?;
                place.set_item("native", first.native)?;
                Some(place)
            }
        };
        item.set_item("difference", difference)?;
        list.append(item)?;
    }
    let result = PyDict::new(py);
    result.set_item("algorithms", list)?;
    result.set_item("is_cut_off", found.is_cut_off)?;
    Ok(result)
}
