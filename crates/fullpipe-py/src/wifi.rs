//! `fullpipe._native.wifi`: a Wi-Fi channel with its background traffic alone.

use fullpipe_net::wifi::{saturation as saturate, Wifi};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pythonize::pythonize;

/// Runs a channel (JSON of fullpipe-net's `Wifi`) from 0 to `to_ns` and returns what each of its
/// background sources sent after `from_ns`: a list of dicts `station`, `up`, `category`,
/// `delivered_packets`, `delivered_bytes`, `lost_packets`, `ppdus`, `unanswered_ppdus`, `mpdus`,
/// `retried_mpdus`, `airtime_ns`.
///
/// Raises ValueError for a channel that cannot be.
#[pyfunction]
fn saturation<'py>(
    py: Python<'py>,
    wifi_json: &str,
    seed: u64,
    from_ns: u64,
    to_ns: u64,
) -> PyResult<Bound<'py, PyAny>> {
    let wifi: Wifi = serde_json::from_str(wifi_json)
        .map_err(|error| PyValueError::new_err(format!("wifi: {error}")))?;
    let shares = py
        .detach(|| saturate(&wifi, seed, from_ns, to_ns))
        .map_err(PyValueError::new_err)?;
    Ok(pythonize(py, &shares)?)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let wifi = PyModule::new(module.py(), "wifi")?;
    wifi.add_function(wrap_pyfunction!(saturation, &wifi)?)?;
    module.add_submodule(&wifi)
}
