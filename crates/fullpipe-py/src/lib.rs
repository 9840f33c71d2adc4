//! The Python module `fullpipe._native`: one submodule for each compiled part. Nothing here
//! decides anything; it converts types and lets go of the interpreter while Rust works.

use pyo3::prelude::*;

mod cc;
mod controller;
mod differential;
mod framing;
mod kernels;
mod measures;
mod metrics;
mod model;
#[cfg(target_os = "linux")]
mod sandbox;
mod sim;
mod stepper;
mod stream;
mod tables;
mod traces;
mod traffic;
mod wifi;

/// The version as the package's metadata have it: Cargo's `1.2.0-dev` is `1.2.0.dev0` (PEP 440).
fn python_version() -> String {
    env!("CARGO_PKG_VERSION").replace("-dev", ".dev0")
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", python_version())?;
    cc::register(module)?;
    controller::register(module)?;
    differential::register(module)?;
    framing::register(module)?;
    kernels::register(module)?;
    module.add_class::<measures::PyMeasures>()?;
    metrics::register(module)?;
    model::register(module)?;
    #[cfg(target_os = "linux")]
    sandbox::register(module)?;
    sim::register(module)?;
    module.add_class::<stepper::PyStepper>()?;
    module.add_function(wrap_pyfunction!(stepper::advance_all, module)?)?;
    stream::register(module)?;
    traces::register(module)?;
    traffic::register(module)?;
    wifi::register(module)
}
