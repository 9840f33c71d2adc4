//! Whether C's structures lie in memory as this crate's do. Without this comparison a structure that
//! grew in C would be written to behind the end of its counterpart here.

use std::ffi::{c_char, CStr};
use std::sync::OnceLock;

use crate::abi::{self, Field, LayoutRow, Structure, STRUCTURES};

/// Panics if native.c was compiled with other structures than this crate's. Everything that reads one of
/// its tables asks first.
pub(crate) fn check_native() {
    static CHECKED: OnceLock<()> = OnceLock::new();
    CHECKED.get_or_init(|| {
        // SAFETY: native.c defines the table, which ends with a null row.
        let found = unsafe { check(abi::cc_layout.as_ptr()) };
        if let Err(difference) = found {
            panic!("cc/ and crates/fullpipe-cc/src/abi.rs differ: {difference}");
        }
    });
}

/// Compares a table of cc/layout.h with [`STRUCTURES`]. The error names the first structure and field
/// that differ.
///
/// # Safety
/// The table ends with a row whose `structure` is null, and its names are NUL-terminated and immutable.
pub(crate) unsafe fn check(table: *const LayoutRow) -> Result<(), String> {
    // SAFETY: the caller's.
    let theirs = unsafe { rows(table) };
    let mut theirs = &theirs[..];
    for ours in STRUCTURES {
        let Some((head, rest)) = theirs.split_first().filter(|(head, _)| head.is(ours)) else {
            return Err(format!(
                "struct {} is not where it is expected in C's table",
                ours.name
            ));
        };
        let count = rest.iter().take_while(|row| row.field.is_some()).count();
        compare(ours, head, &rest[..count])?;
        theirs = &rest[count..];
    }
    theirs.first().map_or(Ok(()), |row| {
        Err(format!("struct {} crosses in C only", row.structure))
    })
}

fn compare(ours: &Structure, head: &Row, fields: &[Row]) -> Result<(), String> {
    let name = ours.name;
    for (index, theirs) in fields.iter().enumerate() {
        let field = theirs.field.as_deref().unwrap_or_default();
        let Some(own) = ours.fields.get(index) else {
            return Err(format!("struct {name} has a field {field} in C only"));
        };
        if own.name != field {
            return Err(format!(
                "struct {name} has the field {field} in C where Rust has {}",
                own.name
            ));
        }
        if !theirs.lies_as(own) {
            return Err(format!(
                "field {field} of struct {name} has {} bytes at offset {} in C, {} at {} in Rust",
                theirs.size_bytes, theirs.offset_bytes, own.size_bytes, own.offset_bytes
            ));
        }
    }
    if let Some(own) = ours.fields.get(fields.len()) {
        return Err(format!(
            "struct {name} has a field {} in Rust only",
            own.name
        ));
    }
    if head.size_bytes != ours.size_bytes {
        let last = ours.fields.last().map_or("none", |field| field.name);
        return Err(format!(
            "struct {name} has {} bytes in C, {} in Rust, where its last field is {last}",
            head.size_bytes, ours.size_bytes
        ));
    }
    Ok(())
}

/// A row of the table.
struct Row {
    structure: String,
    /// `None`: the row is the structure itself.
    field: Option<String>,
    offset_bytes: usize,
    size_bytes: usize,
}

impl Row {
    fn is(&self, ours: &Structure) -> bool {
        self.field.is_none() && self.structure == ours.name
    }

    fn lies_as(&self, own: &Field) -> bool {
        (self.offset_bytes, self.size_bytes) == (own.offset_bytes, own.size_bytes)
    }
}

/// # Safety
/// As for [`check`].
unsafe fn rows(mut table: *const LayoutRow) -> Vec<Row> {
    let mut rows = Vec::new();
    loop {
        // SAFETY: the table goes on until the null row, which ends this loop.
        let row = unsafe { &*table };
        // SAFETY: names are NUL-terminated.
        let Some(structure) = (unsafe { text(row.structure) }) else {
            return rows;
        };
        rows.push(Row {
            structure,
            // SAFETY: as above.
            field: unsafe { text(row.field) },
            offset_bytes: row.offset_bytes as usize,
            size_bytes: row.size_bytes as usize,
        });
        // SAFETY: this was not the null row, so another follows.
        table = unsafe { table.add(1) };
    }
}

/// # Safety
/// `text` is null or NUL-terminated.
unsafe fn text(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests;
