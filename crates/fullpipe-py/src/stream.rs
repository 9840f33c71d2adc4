//! `fullpipe._native.stream`: reads what an agent wrote.

use fullpipe_plan::stream;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use pythonize::pythonize;

use crate::tables;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let submodule = PyModule::new(module.py(), "stream")?;
    submodule.add_function(wrap_pyfunction!(decode, &submodule)?)?;
    submodule.add_function(wrap_pyfunction!(captures, &submodule)?)?;
    submodule.add_function(wrap_pyfunction!(follow, &submodule)?)?;
    submodule.add_function(wrap_pyfunction!(private_states, &submodule)?)?;
    module.add_submodule(&submodule)
}

/// Decodes a stream of frames, whole or cut off. Returns a dict: `tables` (as `sim.run`), `facts`
/// and `figures` (lists of pairs), `problems` (sentences), `failure` (a sentence or None),
/// `progress_ns`, `complete`, `trace` (bytes). Damage ends the reading; it never raises.
#[pyfunction]
fn decode<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let received = py.detach(|| stream::decode(data));
    let result = pythonize(py, &received)?.cast_into::<PyDict>()?;
    result.set_item("tables", tables::to_dict(py, received.tables)?)?;
    result.set_item("trace", PyBytes::new(py, &received.trace))?;
    Ok(result)
}

/// The newest progress in ns in `data` from `offset` on (or None), and the next offset.
#[pyfunction]
fn follow(data: &[u8], offset: usize) -> (Option<u64>, usize) {
    stream::follow(data, offset)
}

/// The private states of congestion controls of the kernel's own: (flow, time in us, bytes) each.
#[pyfunction]
fn private_states<'py>(py: Python<'py>, data: &[u8]) -> Vec<(u64, u64, Bound<'py, PyBytes>)> {
    let states = py.detach(|| stream::private_states(data)).into_iter();
    states
        .map(|(flow, t_us, state)| (flow, t_us, PyBytes::new(py, &state)))
        .collect()
}

/// The records of the captures at senders and receivers (pcap-savefile(5), times in ns).
#[pyfunction]
fn captures<'py>(py: Python<'py>, data: &[u8]) -> [Bound<'py, PyBytes>; 2] {
    let captures = py.detach(|| stream::captures(data));
    captures.map(|records| PyBytes::new(py, &records))
}
