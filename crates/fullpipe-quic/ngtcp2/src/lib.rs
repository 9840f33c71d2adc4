//! ngtcp2 as an endpoint of fullpipe's simulator: the Python module `fullpipe_ngtcp2`.
//!
//! A module of its own, as it is C and brings a TLS library of C. Nothing here knows the simulator.

mod ngtcp2;
mod told;

use fullpipe_quic_common::stacks::{add_to, Library, Stack};
use pyo3::prelude::*;

struct Ngtcp2;

impl Library for Ngtcp2 {
    const STACKS: &'static [Stack] = &[ngtcp2::STACK];
}

#[pymodule]
fn fullpipe_ngtcp2(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    add_to::<Ngtcp2>(module)
}
