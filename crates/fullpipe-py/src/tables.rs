//! The tables of a run as Python sees them: a dict table -> dict column -> (kind, values).

use fullpipe_plan::{Column, Table, Tables};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use pyo3::IntoPyObjectExt;

/// All tables in their fixed order.
pub(crate) fn to_dict(py: Python<'_>, tables: Tables) -> PyResult<Bound<'_, PyDict>> {
    let result = PyDict::new(py);
    for table in tables.into_columns() {
        let name = table.name;
        result.set_item(name, columns(py, table)?)?;
    }
    Ok(result)
}

/// One table's columns.
pub(crate) fn columns(py: Python<'_>, table: Table) -> PyResult<Bound<'_, PyDict>> {
    let columns = PyDict::new(py);
    for (name, column) in table.columns {
        columns.set_item(name, column_values(py, column)?)?;
    }
    Ok(columns)
}

/// A column as (kind, values): little-endian 64-bit values as bytes, or a list of text.
fn column_values(py: Python<'_>, column: Column) -> PyResult<Py<PyAny>> {
    match column {
        Column::U64(values) => pair(py, "u64", words(py, &values, |value| value.to_le_bytes())?),
        Column::F64(values) => pair(py, "f64", words(py, &values, |value| value.to_le_bytes())?),
        Column::OptI64(values) => {
            let data = words(py, &values, |value| value.unwrap_or(0).to_le_bytes())?;
            pair(py, "opt_i64", (data, valid(py, &values)))
        }
        Column::OptF64(values) => {
            let data = words(py, &values, |value| value.unwrap_or(0.0).to_le_bytes())?;
            pair(py, "opt_f64", (data, valid(py, &values)))
        }
        Column::Text(values) => pair(py, "text", values),
        Column::OptU64(values) => {
            let data = words(py, &values, |value| value.unwrap_or(0).to_le_bytes())?;
            pair(py, "opt_u64", (data, valid(py, &values)))
        }
    }
}

/// A byte for each value: 1 where it exists.
fn valid<'py, T>(py: Python<'py>, values: &[Option<T>]) -> Bound<'py, PyBytes> {
    let valid: Vec<u8> = values
        .iter()
        .map(|value| u8::from(value.is_some()))
        .collect();
    PyBytes::new(py, &valid)
}

fn words<'py, T: Copy>(
    py: Python<'py>,
    values: &[T],
    to_bytes: impl Fn(T) -> [u8; 8],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, 8 * values.len(), |bytes| {
        for (place, value) in bytes.chunks_exact_mut(8).zip(values) {
            place.copy_from_slice(&to_bytes(*value));
        }
        Ok(())
    })
}

fn pair<'py>(
    py: Python<'py>,
    kind: &str,
    values: impl IntoPyObjectExt<'py>,
) -> PyResult<Py<PyAny>> {
    (kind, values.into_bound_py_any(py)?).into_py_any(py)
}
