//! `fullpipe._native.run_keys`: hashes of texts that begin alike.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use sha2::{Digest, Sha256};

/// SHA-256 of `head` and each of `tails` behind it: the first half of it in hexadecimal digits.
#[pyfunction]
pub(crate) fn run_keys(head: &[u8], tails: Vec<PyBackedBytes>) -> Vec<String> {
    let begun = Sha256::new_with_prefix(head);
    let key = |tail: &PyBackedBytes| {
        let found = begun.clone().chain_update(tail).finalize();
        let digit = |four: u8| char::from_digit(u32::from(four), 16).expect("four bits");
        let digits = found[..16].iter().flat_map(|byte| [byte >> 4, byte & 15]);
        digits.map(digit).collect()
    };
    tails.iter().map(key).collect()
}
