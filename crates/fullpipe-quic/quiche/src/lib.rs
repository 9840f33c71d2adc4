//! quiche as an endpoint of fullpipe's simulator: the Python module `fullpipe_quiche`.
//!
//! A module of its own, as its BoringSSL and that of tquic (in `fullpipe_quic`) cannot be in one library.
//! Nothing here knows the simulator.

mod quiche;

use fullpipe_quic_common::stacks::{add_to, Library, Stack};
use pyo3::prelude::*;

struct Quiche;

impl Library for Quiche {
    const STACKS: &'static [Stack] = &[quiche::STACK];
}

#[pymodule]
fn fullpipe_quiche(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    add_to::<Quiche>(module)
}
