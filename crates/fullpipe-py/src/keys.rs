//! What keys of runs are made of: `fullpipe._native.sha256`, `named_parts`.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyFrozenSet;
use sha2::{Digest, Sha256};

/// SHA-256 of `head` and each of `tails` behind it, the first so many of its 64 hexadecimal digits.
#[pyfunction]
#[pyo3(signature = (head, tails, digits = 64))]
pub(crate) fn sha256(head: &[u8], tails: Vec<PyBackedBytes>, digits: usize) -> Vec<String> {
    let begun = Sha256::new_with_prefix(head);
    let hash = |tail: &PyBackedBytes| {
        let found = begun.clone().chain_update(tail).finalize();
        let digit = |four: u8| char::from_digit(u32::from(four), 16).expect("four bits");
        let fours = found.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        fours.take(digits).map(digit).collect()
    };
    tails.iter().map(hash).collect()
}

/// The parts of the code that a plan's JSON, or a piece of it, names: algorithms as `cc:NAME`, what has a
/// `kind` at any depth (queue disciplines, links, jitter) as `net:NAME`. Raises UnicodeDecodeError.
#[pyfunction]
pub(crate) fn named_parts<'py>(py: Python<'py>, json: &[u8]) -> PyResult<Bound<'py, PyFrozenSet>> {
    let json = std::str::from_utf8(json)?;
    let algorithms = named(json, "\"algorithm\":\"").map(|name| format!("cc:{name}"));
    let kinds = named(json, "\"kind\":\"").map(|name| format!("net:{name}"));
    PyFrozenSet::new(py, algorithms.chain(kinds).collect::<Vec<_>>())
}

/// The names behind a key.
fn named<'a>(json: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    json.match_indices(key)
        .filter_map(move |(place, _)| json[place + key.len()..].split_once('"'))
        .map(|(name, _)| name)
        .filter(move |name| !name.is_empty() && name.bytes().all(is_plain))
}
