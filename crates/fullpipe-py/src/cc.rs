//! `fullpipe._native.cc`: the registry of algorithms and parameter sets.

use fullpipe_cc::{algorithms, sets};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let cc = PyModule::new(module.py(), "cc")?;
    cc.add_function(wrap_pyfunction!(list_algorithms, &cc)?)?;
    cc.add_function(wrap_pyfunction!(list_sets, &cc)?)?;
    module.add_submodule(&cc)
}

/// All algorithms: name, title, sources, flags, params.
#[pyfunction(name = "algorithms")]
fn list_algorithms(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for algorithm in algorithms() {
        let params = PyList::empty(py);
        for param in &algorithm.params {
            let item = PyDict::new(py);
            item.set_item("name", param.name)?;
            item.set_item("unit", param.unit)?;
            item.set_item("zero", param.zero)?;
            item.set_item("source", param.source)?;
            item.set_item("meaning", param.meaning)?;
            item.set_item("default", param.default)?;
            item.set_item("min", param.min)?;
            item.set_item("max", param.max)?;
            item.set_item("scale", param.scale)?;
            params.append(item)?;
        }
        let item = PyDict::new(py);
        item.set_item("name", algorithm.name)?;
        item.set_item("title", algorithm.title)?;
        item.set_item("sources", algorithm.sources)?;
        item.set_item("flags", algorithm.flags())?;
        item.set_item("params", params)?;
        list.append(item)?;
    }
    Ok(list)
}

/// All parameter sets: name, algorithm, kernel_name, title, values (stored).
#[pyfunction(name = "sets")]
fn list_sets(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for set in sets() {
        let item = PyDict::new(py);
        item.set_item("name", set.name)?;
        item.set_item("algorithm", set.algorithm)?;
        item.set_item("kernel_name", set.kernel_name)?;
        item.set_item("title", set.title)?;
        item.set_item("values", set.values.clone())?;
        list.append(item)?;
    }
    Ok(list)
}
