//! `fullpipe._native.model`: many runs of the fluid models at once. Specs and outcomes cross as
//! JSON, so that fullpipe-model alone describes them; the interpreter is free meanwhile.

use fullpipe_model::{extended, json, run};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Runs the published fluid model: a JSON array of specs in, a JSON array of outcomes out.
///
/// Raises ValueError for a spec that cannot be read or run.
#[pyfunction]
fn fluid(py: Python<'_>, specs_json: &str, threads: usize) -> PyResult<String> {
    py.detach(|| json::runs(specs_json, threads, run))
        .map_err(PyValueError::new_err)
}

/// Runs the extended fluid model: a JSON array of specs in, a JSON array of outcomes out.
///
/// Raises ValueError for a spec that cannot be read or run.
#[pyfunction]
fn fluid_extended(py: Python<'_>, specs_json: &str, threads: usize) -> PyResult<String> {
    py.detach(|| json::runs(specs_json, threads, extended::run))
        .map_err(PyValueError::new_err)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let model = PyModule::new(module.py(), "model")?;
    model.add_function(wrap_pyfunction!(fluid, &model)?)?;
    model.add_function(wrap_pyfunction!(fluid_extended, &model)?)?;
    module.add_submodule(&model)
}
