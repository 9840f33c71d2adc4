//! An algorithm's own variables as rows of `cc_samples`: the same in the simulator and from the kernel's
//! map.

use fullpipe_cc::{Algorithm, Controller, Phase};

use crate::rows::{CcRow, Column, Table, Text};

/// The rows of `cc_samples`. Its last columns are the variables for which [`CcRow`] has none; a flow
/// whose algorithm does not have one is null there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CcSamples {
    rows: Vec<CcRow>,
    own: Vec<(&'static str, Vec<Option<f64>>)>,
}

impl CcSamples {
    /// Makes the columns of an algorithm, which its first row does otherwise.
    pub fn declare(&mut self, algorithm: &Algorithm) {
        for variable in &algorithm.variables {
            if setter(variable.column).is_none() {
                self.own(variable.column);
            }
        }
    }

    /// Adds the row of a flow at a moment.
    pub fn push(&mut self, t_us: u64, flow_id: u64, controller: &Controller) {
        let mut row = CcRow {
            t_us,
            flow_id,
            ..CcRow::default()
        };
        self.push_row(CcRow::default());
        for (variable, value) in controller
            .algorithm()
            .variables
            .iter()
            .zip(controller.variables())
        {
            match setter(variable.column) {
                Some(set) => set(&mut row, value),
                None => {
                    let column = self.own(variable.column);
                    if let Some(last) = column.last_mut() {
                        *last = value;
                    }
                }
            }
        }
        if let Some(last) = self.rows.last_mut() {
            *last = row;
        }
    }

    /// Adds a row without other variables.
    pub fn push_row(&mut self, row: CcRow) {
        self.rows.push(row);
        for (_, values) in &mut self.own {
            values.push(None);
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Removes the rows, and keeps the columns.
    pub fn clear(&mut self) {
        self.rows.clear();
        for (_, values) in &mut self.own {
            values.clear();
        }
    }

    /// The rows as columns.
    pub fn table(&self) -> Table {
        let mut table = CcRow::table(&self.rows);
        let own = self.own.iter();
        let own = own.map(|(name, values)| (*name, Column::OptF64(values.clone())));
        table.columns.extend(own);
        table
    }

    /// A column of its own, with a place for each row.
    fn own(&mut self, name: &'static str) -> &mut Vec<Option<f64>> {
        let rows = self.rows.len();
        let found = self.own.iter().position(|(known, _)| *known == name);
        let place = found.unwrap_or_else(|| {
            self.own.push((name, vec![None; rows]));
            self.own.len() - 1
        });
        &mut self.own[place].1
    }
}

type Setter = fn(&mut CcRow, Option<f64>);

/// How a row's column of that name is set, if rows have it.
fn setter(column: &str) -> Option<Setter> {
    let setter: Setter = match column {
        "phase" => |row, value| row.phase = phase_name(value),
        "bw_bps" => |row, value| row.bw_bps = whole(value),
        "max_bw_bps" => |row, value| row.max_bw_bps = whole(value),
        "bw_shortterm_bps" => |row, value| row.bw_shortterm_bps = whole(value),
        "min_rtt_us" => |row, value| row.min_rtt_us = whole(value),
        "pacing_gain" => |row, value| row.pacing_gain = value.unwrap_or(0.0),
        "cwnd_gain" => |row, value| row.cwnd_gain = value.unwrap_or(0.0),
        "inflight_longterm_packets" => |row, value| row.inflight_longterm_packets = whole(value),
        "inflight_shortterm_packets" => |row, value| row.inflight_shortterm_packets = whole(value),
        "extra_acked_packets" => |row, value| row.extra_acked_packets = whole(value).unwrap_or(0),
        "round_count" => |row, value| row.round_count = whole(value).unwrap_or(0),
        _ => return None,
    };
    Some(setter)
}

fn whole(value: Option<f64>) -> Option<u64> {
    value.map(|value| value as u64)
}

/// The name of a variable of unit "phase".
pub(crate) fn phase_name(value: Option<f64>) -> Text {
    Phase::from_raw(value.map_or(0, |value| value as u32))
        .name()
        .into()
}
