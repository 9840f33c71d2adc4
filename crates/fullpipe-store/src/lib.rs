//! Tables of a sweep's store as Parquet files: written from columns, and put together in the order of
//! their keys. What a table holds is its writer's; must never know a run.
//!
//! The same rows are the same bytes, in however many files they lay before.

mod leaf;
mod panics;
mod settling;
mod table;
mod writing;

use std::fmt;
use std::path::{Path, PathBuf};

pub use settling::settle;
pub use table::{Column, Columns};
pub use writing::write;

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// Until it is settled: encoding costs more than the disk that it saves.
    Briefly,
    /// For good: small, and with what a reader needs to leave rows out.
    ForGood,
}

/// A file that cannot be read or written.
#[derive(Debug)]
pub struct Error {
    /// Which one.
    pub file: PathBuf,
    /// Why.
    pub reason: Reason,
}

/// Why a file cannot be read or written.
#[derive(Debug)]
pub enum Reason {
    /// The system does not write it.
    Unwritable(std::io::Error),
    /// It is not there, none of ours, or damaged.
    Damaged(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match &self.reason {
            Reason::Unwritable(error) => write!(f, "{file}: {error}"),
            Reason::Damaged(reason) => write!(f, "{file}: {reason}"),
        }
    }
}

impl std::error::Error for Error {}

/// Says of which file an error is.
fn at<E: Into<Reason>>(file: &Path) -> impl Fn(E) -> Error + '_ {
    |error| Error {
        file: file.to_owned(),
        reason: error.into(),
    }
}

impl From<std::io::Error> for Reason {
    fn from(error: std::io::Error) -> Self {
        Self::Unwritable(error)
    }
}

impl From<parquet::errors::ParquetError> for Reason {
    fn from(error: parquet::errors::ParquetError) -> Self {
        Self::Damaged(match error {
            parquet::errors::ParquetError::General(reason) => reason,
            other => other.to_string(),
        })
    }
}

/// The values of a column of text. Raises an error where the file cannot be read or has none.
pub fn texts(file: &Path, column: &str) -> Result<Vec<String>, Error> {
    let table = table::Table::read(file, Some(column)).map_err(at(file))?;
    table.texts(column).map_err(at(file))
}
