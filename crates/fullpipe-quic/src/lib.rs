//! QUIC stacks as endpoints of fullpipe's simulator: the Python module `fullpipe_quic`.
//!
//! Each stack is a file and a feature. A stack is used as released, with the settings that its file names;
//! what they have in common is `common.rs`. Nothing here knows the simulator.

mod common;
#[cfg(feature = "noq")]
mod noq;
#[cfg(feature = "quinn")]
mod quinn;
#[cfg(feature = "s2n")]
mod s2n;
mod seeded;
#[cfg(feature = "tquic")]
mod tquic;
#[cfg(feature = "tquic")]
mod virtual_time;

use fullpipe_transport::{Endpoint, Module, Setup, Transport, CAPSULE};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

/// Both ends of a connection.
type Ends = [Box<dyn Endpoint>; 2];

/// A stack.
struct Stack {
    /// As flows write it before the colon.
    name: &'static str,
    /// The crate and its version.
    version: &'static str,
    /// Its congestion controls.
    controls: &'static [&'static str],
    open: fn(&str, &Setup) -> Result<Ends, String>,
}

const STACKS: &[Stack] = &[
    #[cfg(feature = "quinn")]
    quinn::STACK,
    #[cfg(feature = "noq")]
    noq::STACK,
    #[cfg(feature = "s2n")]
    s2n::STACK,
    #[cfg(feature = "tquic")]
    tquic::STACK,
];

/// All stacks of this build.
#[derive(Default)]
pub struct Quic;

impl Transport for Quic {
    fn open(&self, cc: &str, setup: &Setup) -> Option<Result<Ends, String>> {
        let (stack, control) = cc.split_once(':')?;
        let stack = STACKS.iter().find(|known| known.name == stack)?;
        if !stack.controls.contains(&control) {
            return Some(Err(format!(
                "{} has {}",
                stack.name,
                stack.controls.join(", ")
            )));
        }
        Some((stack.open)(control, setup))
    }
}

static MODULE: Module = Module::of::<Quic>();

/// Stacks of this build: name -> (crate and version, congestion controls).
#[pyfunction]
fn stacks(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    for stack in STACKS {
        found.set_item(stack.name, (stack.version, stack.controls.to_vec()))?;
    }
    Ok(found)
}

#[pymodule]
fn fullpipe_quic(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let address = Address(std::ptr::from_ref(&MODULE));
    let capsule = PyCapsule::new(py, address, Some(CAPSULE.to_owned()))?;
    module.add("transport", capsule)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(stacks, module)?)
}

/// What the capsule points to.
#[repr(transparent)]
struct Address(*const Module);

// SAFETY: it points to a static that nobody changes.
unsafe impl Send for Address {}
