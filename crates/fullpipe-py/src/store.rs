//! `fullpipe._native.store`: tables of a sweep's store as files (crates/fullpipe-store).

use std::path::{Path, PathBuf};

use fullpipe_store::{settle, texts, write, Column, Columns, Error, Lasting, Reason};
use nix::errno::Errno;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::IntoPyObjectExt;

/// Columns by their names: a kind and its values.
type Given<'py> = Vec<(String, (String, Bound<'py, PyAny>))>;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let store = PyModule::new(module.py(), "store")?;
    store.add_function(wrap_pyfunction!(write_table, &store)?)?;
    store.add_function(wrap_pyfunction!(settle_tables, &store)?)?;
    store.add_function(wrap_pyfunction!(read_texts, &store)?)?;
    module.add_submodule(&store)
}

/// Writes a table that lasts, or one until it is settled. Kinds of columns are `u64`, `f64` (NaN: none),
/// `i64`, `bool`, `text` (None: none) and `lists` of real numbers. Raises OSError.
#[pyfunction]
#[pyo3(name = "write")]
fn write_table(file: PathBuf, columns: Given<'_>, lasts: bool) -> PyResult<()> {
    let columns: PyResult<Columns> = columns
        .into_iter()
        .map(|(name, (kind, values))| Ok((name, column(&kind, &values)?)))
        .collect();
    let lasting = if lasts {
        Lasting::ForGood
    } else {
        Lasting::Briefly
    };
    write(&file, &columns?, lasting).map_err(raised)
}

/// Puts the tables of files into one, each row once by these columns and in their order. Raises OSError
/// where that cannot be written, ValueError (file, reason) where one cannot be read.
#[pyfunction]
#[pyo3(name = "settle")]
fn settle_tables(
    py: Python<'_>,
    files: Vec<PathBuf>,
    unique: Vec<String>,
    out: PathBuf,
) -> PyResult<()> {
    let unique: Vec<&str> = unique.iter().map(String::as_str).collect();
    py.allow_threads(|| settle(&files, &unique, &out))
        .map_err(raised)
}

/// The values of a column of text. Raises as `settle` does.
#[pyfunction]
#[pyo3(name = "texts")]
fn read_texts(file: PathBuf, column: &str) -> PyResult<Vec<String>> {
    texts(&file, column).map_err(raised)
}

fn column(kind: &str, values: &Bound<'_, PyAny>) -> PyResult<Column> {
    Ok(match kind {
        "u64" => Column::U64(values.extract()?),
        "i64" => Column::I64(values.extract()?),
        "f64" => Column::F64(values.extract()?),
        "bool" => Column::Bool(values.extract()?),
        "text" => Column::Text(values.extract()?),
        "lists" => Column::Lists(values.extract()?),
        other => {
            return Err(PyValueError::new_err(format!(
                "{other}: is no kind of column"
            )))
        }
    })
}

/// A column as `write` takes it.
pub(crate) fn values(py: Python<'_>, column: Column) -> PyResult<(&'static str, PyObject)> {
    Ok(match column {
        Column::U64(values) => ("u64", values.into_py_any(py)?),
        Column::I64(values) => ("i64", values.into_py_any(py)?),
        Column::F64(values) => ("f64", values.into_py_any(py)?),
        Column::Bool(values) => ("bool", values.into_py_any(py)?),
        Column::Text(values) => ("text", values.into_py_any(py)?),
        Column::Lists(values) => ("lists", values.into_py_any(py)?),
    })
}

/// Writes a table that is settled later.
pub(crate) fn write_briefly(file: &Path, columns: &Columns) -> PyResult<()> {
    write(file, columns, Lasting::Briefly).map_err(raised)
}

fn raised(error: Error) -> PyErr {
    match error.reason {
        Reason::Unwritable(found) => match found.raw_os_error() {
            Some(number) => {
                PyOSError::new_err((number, Errno::from_raw(number).desc(), error.file))
            }
            None => PyOSError::new_err(format!("{}: {found}", error.file.display())),
        },
        Reason::Damaged(reason) => PyValueError::new_err((error.file, reason)),
    }
}
