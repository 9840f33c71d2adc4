//! `fullpipe._native.KERNELS`, `DEFAULT_KERNEL`: the Linux releases whose TCP the simulator has, as
//! scenarios and plans name them. `GSO_MAX_SEGMENTS`: packets in the largest burst of each.

use fullpipe_plan::Kernel;
use fullpipe_tcp::Rules;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

fn name(kernel: Kernel) -> PyResult<String> {
    let json = serde_json::to_value(kernel).ok();
    let name = json.as_ref().and_then(|json| json.as_str());
    name.map(str::to_owned)
        .ok_or_else(|| PyValueError::new_err(format!("{kernel:?} has no name")))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let names = Kernel::ALL
        .into_iter()
        .map(name)
        .collect::<PyResult<Vec<_>>>()?;
    let bursts = PyDict::new(module.py());
    for kernel in Kernel::ALL {
        bursts.set_item(name(kernel)?, Rules::from(kernel).gso_max_segments())?;
    }
    module.add("GSO_MAX_SEGMENTS", bursts)?;
    module.add("KERNELS", PyTuple::new(module.py(), names)?)?;
    module.add("DEFAULT_KERNEL", name(Kernel::default())?)
}
