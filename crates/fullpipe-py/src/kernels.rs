//! `fullpipe._native.KERNELS`, `DEFAULT_KERNEL`: the Linux releases whose TCP the simulator has, as
//! scenarios and plans name them.

use fullpipe_plan::Kernel;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

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
    module.add("KERNELS", PyTuple::new(module.py(), names)?)?;
    module.add("DEFAULT_KERNEL", name(Kernel::default())?)
}
