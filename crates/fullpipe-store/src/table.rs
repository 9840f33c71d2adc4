//! A table in memory: from columns, or from a file.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use crate::leaf::{text, Leaf, Values};
use crate::panics;

/// Values of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Unsigned integers.
    U64(Vec<u64>),
    /// Integers, of which some may be missing.
    I64(Vec<Option<i64>>),
    /// Real numbers; NaN: there is none.
    F64(Vec<f64>),
    /// Truths, of which some may be missing.
    Bool(Vec<Option<bool>>),
    /// Text, of which some may be missing.
    Text(Vec<Option<String>>),
    /// Lists of real numbers.
    Lists(Vec<Vec<f64>>),
}

/// Columns of equal length by their names, in order.
pub type Columns = Vec<(String, Column)>;

/// A table.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) schema: TypePtr,
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) rows: usize,
}

impl Table {
    /// One of these columns.
    pub(crate) fn of(columns: &Columns) -> Result<Self> {
        let fields: Result<Vec<TypePtr>> = columns
            .iter()
            .map(|(name, column)| column.field(name).map(Arc::new))
            .collect();
        let schema = Type::group_type_builder("schema").with_fields(fields?);
        Ok(Self {
            schema: Arc::new(schema.build()?),
            leaves: columns.iter().map(|(_, column)| column.leaf()).collect(),
            rows: columns.first().map_or(0, |(_, column)| column.len()),
        })
    }

    /// That of a file; of `only` this column.
    pub(crate) fn read(file: &Path, only: Option<&str>) -> Result<Self> {
        // Of some damage the library says nothing but panics: one of a hundred bytes that flipped.
        panics::caught(|| Self::read_whole(file, only)).unwrap_or_else(|said| {
            let reason = format!("no table can be read ({said})");
            Err(ParquetError::General(reason))
        })
    }

    fn read_whole(file: &Path, only: Option<&str>) -> Result<Self> {
        let reader = SerializedFileReader::new(Bytes::from(fs::read(file)?))?;
        let described = reader.metadata().file_metadata().schema_descr_ptr();
        let mut table = Self {
            schema: described.root_schema_ptr(),
            leaves: Vec::new(),
            rows: 0,
        };
        let wanted: Vec<usize> = (0..described.num_columns())
            .filter(|&place| only.is_none_or(|name| described.column(place).name() == name))
            .collect();
        for &place in &wanted {
            table.leaves.push(Leaf::empty(&described.column(place))?);
        }
        for group in 0..reader.num_row_groups() {
            let group = reader.get_row_group(group)?;
            let rows = usize::try_from(group.metadata().num_rows())
                .map_err(|_| ParquetError::General("has a row group of no length".into()))?;
            table.rows += rows;
            for (leaf, &place) in table.leaves.iter_mut().zip(&wanted) {
                leaf.read(group.get_column_reader(place)?, rows)?;
            }
        }
        for (leaf, &place) in table.leaves.iter().zip(&wanted) {
            leaf.check(&described.column(place))?;
        }
        if let (Some(name), true) = (only, wanted.is_empty()) {
            return Err(ParquetError::General(format!("has no column {name}")));
        }
        Ok(table)
    }

    /// The columns as Parquet describes them.
    pub(crate) fn described(&self) -> SchemaDescriptor {
        SchemaDescriptor::new(self.schema.clone())
    }

    /// The one column of text, which has a value in each row.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>> {
        match self.leaves.first().map(|leaf| &leaf.values) {
            Some(Values::Text(values)) if values.len() == self.rows => {
                values.iter().map(text).collect()
            }
            _ => Err(ParquetError::General(format!("column {name} is no text"))),
        }
    }
}

impl Column {
    /// How many rows it has.
    pub fn len(&self) -> usize {
        match self {
            Self::U64(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::Bool(values) => values.len(),
            Self::Text(values) => values.len(),
            Self::Lists(values) => values.len(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn field(&self, name: &str) -> Result<Type> {
        let (physical, logical) = match self {
            Self::U64(_) => {
                let unsigned = LogicalType::Integer {
                    bit_width: 64,
                    is_signed: false,
                };
                (Physical::INT64, Some(unsigned))
            }
            Self::I64(_) => (Physical::INT64, None),
            Self::F64(_) | Self::Lists(_) => (Physical::DOUBLE, None),
            Self::Bool(_) => (Physical::BOOLEAN, None),
            Self::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let named = if matches!(self, Self::Lists(_)) {
            "element"
        } else {
            name
        };
        let field = Type::primitive_type_builder(named, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()?;
        if !matches!(self, Self::Lists(_)) {
            return Ok(field);
        }
        let repeated = Type::group_type_builder("list")
            .with_repetition(Repetition::REPEATED)
            .with_fields(vec![Arc::new(field)])
            .build()?;
        Type::group_type_builder(name)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(Some(LogicalType::List))
            .with_converted_type(ConvertedType::LIST)
            .with_fields(vec![Arc::new(repeated)])
            .build()
    }

    fn leaf(&self) -> Leaf {
        let (values, definition) = match self {
            // Parquet has signed integers, and says that these are none.
            Self::U64(values) => (
                Values::Int(values.iter().map(|&one| one as i64).collect()),
                vec![1; values.len()],
            ),
            Self::I64(values) => (
                Values::Int(values.iter().flatten().copied().collect()),
                levels(values),
            ),
            Self::Bool(values) => (
                Values::Bool(values.iter().flatten().copied().collect()),
                levels(values),
            ),
            Self::Text(values) => (Values::Text(joined(values)), levels(values)),
            Self::F64(values) => (
                Values::Real(values.iter().copied().filter(|one| !one.is_nan()).collect()),
                values.iter().map(|one| i16::from(!one.is_nan())).collect(),
            ),
            Self::Lists(lists) => (
                Values::Real(lists.concat()),
                lists.iter().flat_map(|list| definition(list)).collect(),
            ),
        };
        let repetition = match self {
            Self::Lists(lists) => lists.iter().flat_map(|list| repetition(list)).collect(),
            _ => Vec::new(),
        };
        Leaf {
            values,
            definition,
            repetition,
        }
    }
}

/// 1 for what is there.
fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
    values.iter().map(|one| i16::from(one.is_some())).collect()
}

/// 1 of a list that is empty, 3 of a value; 0 and 2 of what may be missing elsewhere.
fn definition(list: &[f64]) -> Vec<i16> {
    if list.is_empty() {
        vec![1]
    } else {
        vec![3; list.len()]
    }
}

/// 0 where a list begins.
fn repetition(list: &[f64]) -> Vec<i16> {
    (0..list.len().max(1))
        .map(|place| i16::from(place > 0))
        .collect()
}

/// The texts as pieces of one.
fn joined(values: &[Option<String>]) -> Vec<ByteArray> {
    let mut all = Vec::with_capacity(values.iter().flatten().map(String::len).sum());
    for value in values.iter().flatten() {
        all.extend_from_slice(value.as_bytes());
    }
    let all = Bytes::from(all);
    let mut begin = 0;
    let piece = |value: &String| {
        let end = begin + value.len();
        let piece = all.slice(begin..end);
        begin = end;
        piece.into()
    };
    values.iter().flatten().map(piece).collect()
}
