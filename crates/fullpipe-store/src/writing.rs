//! A table as a file.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Type as Physical, ZstdLevel};
use parquet::errors::Result;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::SchemaDescriptor;

use crate::leaf::Leaf;
use crate::table::{Columns, Table};
use crate::{at, Error, Lasting, Reason};

/// Rows of a file's groups; part of what its bytes are.
const GROUP_ROWS: usize = 1 << 16;

/// Writes columns as a table.
pub fn write(file: &Path, columns: &Columns, lasting: Lasting) -> Result<(), Error> {
    let mut table = Table::of(columns).map_err(at(file))?;
    let rows: Vec<u32> = (0..table.rows as u32).collect();
    write_rows(&mut table, &rows, file, lasting).map_err(at(file))
}

/// Writes these rows of a table, each once, and takes them out of it.
pub(crate) fn write_rows(
    table: &mut Table,
    rows: &[u32],
    file: &Path,
    lasting: Lasting,
) -> std::result::Result<(), Reason> {
    let described = table.described();
    let properties = Arc::new(properties(&described, lasting));
    let mut writer = SerializedFileWriter::new(Vec::new(), table.schema.clone(), properties)?;
    let begins: Vec<_> = (table.leaves.iter().enumerate())
        .map(|(place, leaf)| leaf.begins(table.rows, described.column(place).max_def_level()))
        .collect();
    for some in rows.chunks(GROUP_ROWS) {
        let mut group = writer.next_row_group()?;
        for (leaf, begins) in table.leaves.iter_mut().zip(&begins) {
            let taken: Leaf = leaf.taken(some, begins.as_deref());
            let mut column = group.next_column()?.expect("a leaf for each column");
            taken.write(column.untyped())?;
            column.close()?;
        }
        group.close()?;
    }
    Ok(fs::write(file, writer.into_inner()?)?)
}

fn properties(described: &SchemaDescriptor, lasting: Lasting) -> WriterProperties {
    let for_good = lasting == Lasting::ForGood;
    let (compression, statistics) = if for_good {
        (
            Compression::ZSTD(ZstdLevel::default()),
            EnabledStatistics::Chunk,
        )
    } else {
        (Compression::LZ4_RAW, EnabledStatistics::None)
    };
    let mut found = WriterProperties::builder()
        .set_compression(compression)
        .set_statistics_enabled(statistics)
        .set_offset_index_disabled(true)
        .set_max_row_group_size(GROUP_ROWS)
        .set_dictionary_enabled(false);
    for column in described.columns() {
        // Words by numbers for them, of which keys, as measures, would have as many as rows.
        if for_good && column.physical_type() == Physical::BYTE_ARRAY && column.name() != "key" {
            found = found.set_column_dictionary_enabled(column.path().clone(), true);
        }
    }
    found.build()
}
