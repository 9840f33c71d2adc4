//! A column as Parquet has it: values, and levels that say where there are none and where lists begin.

use std::mem;

use parquet::column::reader::ColumnReader;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{AsBytes, ByteArray};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescriptor;

/// The values that there are.
#[derive(Debug)]
pub(crate) enum Values {
    Bool(Vec<bool>),
    Int(Vec<i64>),
    Real(Vec<f64>),
    Text(Vec<ByteArray>),
}

/// A column. Without `definition` each row has a value, without `repetition` one at most.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub(crate) values: Values,
    pub(crate) definition: Vec<i16>,
    pub(crate) repetition: Vec<i16>,
}

impl Leaf {
    /// One without rows, of the kind of this column.
    pub(crate) fn empty(column: &ColumnDescriptor) -> Result<Self> {
        use parquet::basic::Type::{BOOLEAN, BYTE_ARRAY, DOUBLE, INT64};
        let values = match column.physical_type() {
            BOOLEAN => Values::Bool(Vec::new()),
            INT64 => Values::Int(Vec::new()),
            DOUBLE => Values::Real(Vec::new()),
            BYTE_ARRAY => Values::Text(Vec::new()),
            other => {
                return Err(ParquetError::General(format!(
                    "{}: {other} is no type of a store's columns",
                    column.path()
                )))
            }
        };
        Ok(Self {
            values,
            definition: Vec::new(),
            repetition: Vec::new(),
        })
    }

    /// Adds all rows of a reader.
    pub(crate) fn read(&mut self, reader: ColumnReader, rows: usize) -> Result<()> {
        macro_rules! read {
            ($reader:ident, $values:ident) => {{
                let levels = (Some(&mut self.definition), Some(&mut self.repetition));
                let (found, _, _) = $reader.read_records(rows, levels.0, levels.1, $values)?;
                found
            }};
        }
        let found = match (reader, &mut self.values) {
            (ColumnReader::BoolColumnReader(mut from), Values::Bool(values)) => read!(from, values),
            (ColumnReader::Int64ColumnReader(mut from), Values::Int(values)) => read!(from, values),
            (ColumnReader::DoubleColumnReader(mut from), Values::Real(values)) => {
                read!(from, values)
            }
            (ColumnReader::ByteArrayColumnReader(mut from), Values::Text(values)) => {
                read!(from, values)
            }
            _ => return Err(ParquetError::General("has columns of other types".into())),
        };
        if found == rows {
            Ok(())
        } else {
            Err(ParquetError::EOF(format!("has {found} of {rows} rows")))
        }
    }

    /// Raises an error for levels that this column cannot have.
    pub(crate) fn check(&self, column: &ColumnDescriptor) -> Result<()> {
        let within = |levels: &[i16], most| levels.iter().all(|level| (0..=most).contains(level));
        if within(&self.definition, column.max_def_level())
            && within(&self.repetition, column.max_rep_level())
        {
            return Ok(());
        }
        Err(ParquetError::General(format!(
            "{}: impossible levels",
            column.path()
        )))
    }

    /// Writes all rows.
    pub(crate) fn write(&self, writer: &mut ColumnWriter<'_>) -> Result<()> {
        macro_rules! write {
            ($writer:ident, $values:ident) => {
                $writer.write_batch($values, some(&self.definition), some(&self.repetition))?
            };
        }
        match (writer, &self.values) {
            (ColumnWriter::BoolColumnWriter(to), Values::Bool(values)) => write!(to, values),
            (ColumnWriter::Int64ColumnWriter(to), Values::Int(values)) => write!(to, values),
            (ColumnWriter::DoubleColumnWriter(to), Values::Real(values)) => write!(to, values),
            (ColumnWriter::ByteArrayColumnWriter(to), Values::Text(values)) => write!(to, values),
            _ => unreachable!("the schema is the columns' own"),
        };
        Ok(())
    }

    /// Takes these rows out, each once, by where each begins (`begins`); None: all are one value.
    pub(crate) fn taken(&mut self, rows: &[u32], begins: Option<&[Begin]>) -> Self {
        let values = match &mut self.values {
            Values::Bool(values) => Values::Bool(pick(values, rows, begins)),
            Values::Int(values) => Values::Int(pick(values, rows, begins)),
            Values::Real(values) => Values::Real(pick(values, rows, begins)),
            Values::Text(values) => Values::Text(pick(values, rows, begins)),
        };
        let levels = |levels: &[i16]| match begins {
            None => levels.get(..rows.len()).unwrap_or_default().to_vec(),
            Some(begins) => {
                let mut found = Vec::with_capacity(levels.len());
                for &row in rows.iter().filter(|_| !levels.is_empty()) {
                    let row = row as usize;
                    let (begin, end) = (begins[row].level, begins[row + 1].level);
                    found.extend_from_slice(&levels[begin as usize..end as usize]);
                }
                found
            }
        };
        Self {
            values,
            definition: levels(&self.definition),
            repetition: levels(&self.repetition),
        }
    }

    /// Where each of so many rows begins, and where the last one ends; None: each is one value that
    /// is there, at the level `most`.
    pub(crate) fn begins(&self, rows: usize, most: i16) -> Option<Vec<Begin>> {
        if self.repetition.is_empty() && self.definition.iter().all(|&level| level == most) {
            return None;
        }
        let mut found = Vec::with_capacity(rows + 1);
        let mut value = 0;
        for (level, definition) in self.definition.iter().enumerate() {
            if self.repetition.get(level).is_none_or(|&level| level == 0) {
                found.push(Begin {
                    level: level as u32,
                    value,
                });
            }
            value += u32::from(*definition == most);
        }
        found.push(Begin {
            level: self.definition.len() as u32,
            value,
        });
        Some(found)
    }
}

/// Levels, where a column has any.
fn some(levels: &[i16]) -> Option<&[i16]> {
    (!levels.is_empty()).then_some(levels)
}

/// Where a row begins among levels and among values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin {
    level: u32,
    value: u32,
}

fn pick<T: Default>(values: &mut [T], rows: &[u32], begins: Option<&[Begin]>) -> Vec<T> {
    let mut found = Vec::with_capacity(rows.len());
    for &row in rows {
        let row = row as usize;
        match begins {
            None => found.push(mem::take(&mut values[row])),
            Some(begins) => {
                let (begin, end) = (begins[row].value, begins[row + 1].value);
                found.extend(
                    values[begin as usize..end as usize]
                        .iter_mut()
                        .map(mem::take),
                );
            }
        }
    }
    found
}

/// The texts of a column that has one in each row.
pub(crate) fn text(value: &ByteArray) -> Result<String> {
    String::from_utf8(value.as_bytes().to_vec())
        .map_err(|_| ParquetError::General("text that is no UTF-8".into()))
}
