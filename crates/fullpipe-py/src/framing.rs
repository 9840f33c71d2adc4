//! `fullpipe._native.framing`: what a link layer adds to packets.

use fullpipe_net::Overhead;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Bytes that a packet takes on a link layer (JSON of fullpipe-net's `Overhead`).
///
/// Raises ValueError for an overhead that is none.
#[pyfunction]
fn on_link(wire_bytes: u32, overhead_json: &str) -> PyResult<u32> {
    let overhead: Overhead = serde_json::from_str(overhead_json)
        .map_err(|error| PyValueError::new_err(format!("overhead: {error}")))?;
    Ok(overhead.on_link(wire_bytes))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let framing = PyModule::new(module.py(), "framing")?;
    framing.add_function(wrap_pyfunction!(on_link, &framing)?)?;
    module.add_submodule(&framing)
}
