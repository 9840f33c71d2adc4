//! QUIC stacks as endpoints of fullpipe's simulator: the Python module `fullpipe_quic`.
//!
//! Each stack is a file and a feature. A stack is used as released, with the settings that its file names;
//! what they have in common is in the crate `fullpipe-quic-common`. quiche is a module of its own, as its
//! BoringSSL and tquic's cannot be in one library. Nothing here knows the simulator.

#[cfg(feature = "noq")]
mod noq;
#[cfg(feature = "quinn")]
mod quinn;
#[cfg(feature = "s2n")]
mod s2n;
#[cfg(feature = "s2n")]
mod s2n_model;
#[cfg(feature = "tquic")]
mod tquic;

use fullpipe_quic_common::stacks::{add_to, Library, Stack};
use pyo3::prelude::*;

/// The stacks of this library.
pub struct Quic;

impl Library for Quic {
    const STACKS: &'static [Stack] = &[
        #[cfg(feature = "quinn")]
        quinn::STACK,
        #[cfg(feature = "noq")]
        noq::STACK,
        #[cfg(feature = "s2n")]
        s2n::STACK,
        #[cfg(feature = "tquic")]
        tquic::STACK,
    ];
}

#[pymodule]
fn fullpipe_quic(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    add_to::<Quic>(module)
}
