//! Stacks as a module of Python, whose attribute `transport` an engine loads. Must never know a stack, nor
//! the simulator.

use std::marker::PhantomData;

use fullpipe_transport::{Endpoint, Module, Setup, Transport, CAPSULE};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyCapsule, PyDict, PyTuple};

/// Both ends of a connection.
pub type Ends = [Box<dyn Endpoint>; 2];

/// A stack.
pub struct Stack {
    /// As flows write it before the colon.
    pub name: &'static str,
    /// The crate and its version.
    pub version: &'static str,
    /// Its congestion controls.
    pub controls: &'static [&'static str],
    /// Both ends of a connection with one of them.
    pub open: fn(&str, &Setup) -> Result<Ends, String>,
}

/// The stacks of a library.
pub trait Library: Sync + 'static {
    /// All of this build.
    const STACKS: &'static [Stack];
}

/// All of a library as a transport.
pub struct Stacks<L>(PhantomData<L>);

impl<L> Default for Stacks<L> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<L: Library> Stacks<L> {
    const MODULE: &'static Module = &Module::of::<Self>();
}

impl<L: Library> Transport for Stacks<L> {
    fn open(&self, cc: &str, setup: &Setup) -> Option<Result<Ends, String>> {
        let (stack, control) = cc.split_once(':')?;
        let stack = L::STACKS.iter().find(|known| known.name == stack)?;
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

/// Adds to a module of Python: `transport`, the capsule; `stacks()`, a dict name -> (crate and version,
/// congestion controls).
///
/// # Errors
/// What Python raises.
pub fn add_to<L: Library>(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let address = Address(Stacks::<L>::MODULE);
    let capsule = PyCapsule::new(py, address, Some(CAPSULE.to_owned()))?;
    module.add("transport", capsule)?;
    let stacks = PyCFunction::new_closure(
        py,
        Some(c"stacks"),
        Some(c"Stacks of this build: name -> (crate and version, congestion controls)."),
        |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| -> PyResult<Py<PyDict>> {
            let found = PyDict::new(arguments.py());
            for stack in L::STACKS {
                found.set_item(stack.name, (stack.version, stack.controls.to_vec()))?;
            }
            Ok(found.unbind())
        },
    )?;
    module.add("stacks", stacks)
}

/// What the capsule points to.
#[repr(transparent)]
struct Address(*const Module);

// SAFETY: it points to a static that nobody changes.
unsafe impl Send for Address {}
