//! Tables of many files in one, each row once, in the order of what tells rows apart.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use parquet::data_type::AsBytes;
use parquet::errors::{ParquetError, Result};

use crate::leaf::Values;
use crate::table::Table;
use crate::writing::write_rows;
use crate::{at, Error, Lasting};

/// Puts the tables of `files`, one at least, into the file `out`: rows in the order of the columns
/// `unique` (text by its bytes, numbers without a sign), of those equal in them the first.
pub fn settle(files: &[PathBuf], unique: &[&str], out: &Path) -> Result<(), Error> {
    let mut joined: Option<Table> = None;
    for file in files {
        let table = Table::read(file, None).map_err(at(file))?;
        match &mut joined {
            None => joined = Some(table),
            Some(joined) => joined.append(table).map_err(at(file))?,
        }
    }
    let Some(mut table) = joined else {
        return Ok(());
    };
    let rows = table.rows_by(unique).map_err(at(&files[0]))?;
    write_rows(&mut table, &rows, out, Lasting::ForGood).map_err(at(out))
}

impl Table {
    fn append(&mut self, other: Self) -> Result<()> {
        if !same_columns(self, &other) {
            return Err(ParquetError::General(
                "has other columns than those beside it".into(),
            ));
        }
        for (mine, others) in self.leaves.iter_mut().zip(other.leaves) {
            match (&mut mine.values, others.values) {
                (Values::Bool(mine), Values::Bool(mut others)) => mine.append(&mut others),
                (Values::Int(mine), Values::Int(mut others)) => mine.append(&mut others),
                (Values::Real(mine), Values::Real(mut others)) => mine.append(&mut others),
                (Values::Text(mine), Values::Text(mut others)) => mine.append(&mut others),
                _ => unreachable!("of the same columns"),
            }
            mine.definition.extend(others.definition);
            mine.repetition.extend(others.repetition);
        }
        self.rows += other.rows;
        Ok(())
    }

    /// The rows in the order of these columns, each combination of their values once.
    fn rows_by(&self, names: &[&str]) -> Result<Vec<u32>> {
        let described = self.described();
        let columns: Result<Vec<Sortable<'_>>> = names
            .iter()
            .map(|name| {
                let place = (0..described.num_columns())
                    .find(|&place| described.column(place).name() == *name);
                let values = place.map(|place| &self.leaves[place].values);
                let found = match values {
                    Some(Values::Int(values)) => Sortable::Int(values),
                    Some(Values::Text(values)) => {
                        Sortable::Text(values.iter().map(AsBytes::as_bytes).collect())
                    }
                    _ => return Err(ParquetError::General(format!("has no column {name}"))),
                };
                if found.len() == self.rows {
                    return Ok(found);
                }
                Err(ParquetError::General(format!("{name} is missing in rows")))
            })
            .collect();
        let columns = columns?;
        let compare = |&one: &u32, &other: &u32| {
            columns
                .iter()
                .map(|column| column.compare(one as usize, other as usize))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        };
        // Most rows differ within the first bytes, which lie in a row here.
        let first = columns.first();
        let begin = |row| first.map_or(0, |column| column.begin(row as usize));
        let mut begun: Vec<(u64, u32)> =
            (0..self.rows as u32).map(|row| (begin(row), row)).collect();
        begun.sort_by(|(one, row), (other, than)| one.cmp(other).then_with(|| compare(row, than)));
        let mut rows: Vec<u32> = begun.into_iter().map(|(_, row)| row).collect();
        rows.dedup_by(|one, before| compare(one, before).is_eq());
        Ok(rows)
    }
}

/// A column by which rows are sorted.
enum Sortable<'a> {
    Int(&'a [i64]),
    Text(Vec<&'a [u8]>),
}

impl Sortable<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Int(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    /// In the order of values, as far as it goes.
    fn begin(&self, row: usize) -> u64 {
        match self {
            Self::Int(values) => values[row] as u64,
            Self::Text(values) => {
                let mut bytes = [0; 8];
                let length = values[row].len().min(8);
                bytes[..length].copy_from_slice(&values[row][..length]);
                u64::from_be_bytes(bytes)
            }
        }
    }

    fn compare(&self, one: usize, other: usize) -> Ordering {
        match self {
            Self::Int(values) => (values[one] as u64).cmp(&(values[other] as u64)),
            Self::Text(values) => values[one].cmp(values[other]),
        }
    }
}

/// Whether tables have columns of the same names and kinds.
fn same_columns(one: &Table, other: &Table) -> bool {
    let (one, other) = (one.described(), other.described());
    one.num_columns() == other.num_columns()
        && one
            .columns()
            .iter()
            .zip(other.columns())
            .all(|(one, other)| {
                one.path() == other.path()
                    && one.physical_type() == other.physical_type()
                    && one.max_def_level() == other.max_def_level()
                    && one.max_rep_level() == other.max_rep_level()
            })
}
