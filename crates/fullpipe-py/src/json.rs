//! `fullpipe._native.to_json`: plain values as compact JSON, as Pydantic's `to_json` writes them, whose
//! module takes longer to load than a hundred plans to be written.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::ser::{CompactFormatter, Formatter};

/// JSON (UTF-8, no blanks) of None, truths, numbers, text, lists, tuples, and dicts with keys of text.
/// Raises TypeError for anything else, OverflowError beyond 64 bits.
#[pyfunction]
pub(crate) fn to_json<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let mut json = Vec::with_capacity(1024);
    write(&mut json, value)?;
    Ok(PyBytes::new(value.py(), &json))
}

fn write(json: &mut Vec<u8>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let mut format = CompactFormatter;
    if let Ok(text) = value.downcast::<PyString>() {
        serde_json::to_writer(json, text.to_str()?).expect("into memory");
    } else if let Ok(truth) = value.downcast::<PyBool>() {
        format.write_bool(json, truth.is_true())?;
    } else if let Ok(number) = value.downcast::<PyInt>() {
        match number.extract::<i64>() {
            Ok(number) => format.write_i64(json, number)?,
            Err(_) => format.write_u64(json, number.extract()?)?,
        }
    } else if value.is_none() {
        format.write_null(json)?;
    } else if let Ok(dict) = value.downcast::<PyDict>() {
        json.push(b'{');
        for (place, (key, value)) in dict.iter().enumerate() {
            if place > 0 {
                json.push(b',');
            }
            let key = key.downcast::<PyString>()?.to_str()?;
            serde_json::to_writer(&mut *json, key).expect("into memory");
            json.push(b':');
            write(json, &value)?;
        }
        json.push(b'}');
    } else if let Ok(list) = value.downcast::<PyList>() {
        write_all(json, list.iter())?;
    } else if let Ok(tuple) = value.downcast::<PyTuple>() {
        write_all(json, tuple.iter())?;
    } else if let Ok(number) = value.downcast::<PyFloat>() {
        let number = number.value();
        if number.is_finite() {
            format.write_f64(json, number)?;
        } else {
            let word = if number.is_nan() { "NaN" } else { "Infinity" };
            let sign = if number < 0.0 { "-" } else { "" };
            json.extend_from_slice(sign.as_bytes());
            json.extend_from_slice(word.as_bytes());
        }
    } else {
        let kind = value.get_type();
        return Err(PyTypeError::new_err(format!("{kind}: is no plain value")));
    }
    Ok(())
}

fn write_all<'py>(
    json: &mut Vec<u8>,
    values: impl Iterator<Item = Bound<'py, PyAny>>,
) -> PyResult<()> {
    json.push(b'[');
    for (place, value) in values.enumerate() {
        if place > 0 {
            json.push(b',');
        }
        write(json, &value)?;
    }
    json.push(b']');
    Ok(())
}
