//! `fullpipe._native.sha256`: hashes of texts that begin alike.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
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
