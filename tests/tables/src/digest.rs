//! A hash of each table that a run leaves, over names, kinds and values. Equal hashes of two builds by one
//! compiler mean equal tables; they say nothing across compilers, whose hash function may differ.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};

use fullpipe_plan::{Column, Table};
use fullpipe_sim::Outcome;

/// `TABLE=HASH` of each table, and of the counts of packets, with spaces between. How many events a run
/// took is its cost, not its result.
pub(crate) fn line(outcome: Outcome) -> String {
    let mut counts = DefaultHasher::new();
    [
        outcome.packets_delivered,
        outcome.packets_lost,
        outcome.packets_in_flight,
        outcome.traffic_flows,
        outcome.traffic_connections,
    ]
    .hash(&mut counts);
    let mut line = format!("packets={:016x}", counts.finish());
    for table in outcome.tables.into_columns() {
        write!(line, " {}={:016x}", table.name, of_table(&table)).expect("a String takes all");
    }
    line
}

fn of_table(table: &Table) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (name, column) in &table.columns {
        name.hash(&mut hasher);
        std::mem::discriminant(column).hash(&mut hasher);
        of_column(column, &mut hasher);
    }
    hasher.finish()
}

fn of_column(column: &Column, hasher: &mut DefaultHasher) {
    match column {
        Column::U64(values) => values.hash(hasher),
        Column::OptU64(values) => values.hash(hasher),
        Column::OptI64(values) => values.hash(hasher),
        Column::F64(values) => values.iter().for_each(|value| bits(*value).hash(hasher)),
        Column::OptF64(values) => values.iter().for_each(|value| value.map(bits).hash(hasher)),
        Column::Text(values) => values.hash(hasher),
    }
}

/// NaN has many patterns of bits.
fn bits(value: f64) -> u64 {
    match value.is_nan() {
        true => f64::NAN.to_bits(),
        false => value.to_bits(),
    }
}
