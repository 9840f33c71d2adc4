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
    /// Of each algorithm so far: rows are many, and columns are found by their names.
    layouts: Vec<Layout>,
}

/// Where the variables of an algorithm go.
#[derive(Clone, Debug, PartialEq)]
struct Layout {
    algorithm: &'static str,
    targets: Vec<Target>,
}

/// Where a variable goes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    Row(Field),
    /// The column of its own with this position.
    Own(usize),
}

impl CcSamples {
    /// Makes the columns of an algorithm, which its first row does otherwise.
    pub fn declare(&mut self, algorithm: &'static Algorithm) {
        self.layout(algorithm);
    }

    /// Adds the row of a flow at a moment.
    pub fn push(&mut self, t_us: u64, flow_id: u64, controller: &Controller) {
        let layout = self.layout(controller.algorithm());
        self.push_row(CcRow {
            t_us,
            flow_id,
            ..CcRow::default()
        });
        let mut targets = self.layouts[layout].targets.iter();
        let (row, own) = (self.rows.last_mut(), &mut self.own);
        let Some(row) = row else { return };
        controller.read_variables(|value| match targets.next() {
            Some(Target::Row(field)) => field.set(row, value),
            Some(&Target::Own(column)) => {
                if let Some(last) = own[column].1.last_mut() {
                    *last = value;
                }
            }
            None => {}
        });
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

    /// The position of an algorithm's layout. Makes its columns if there are none yet.
    fn layout(&mut self, algorithm: &'static Algorithm) -> usize {
        let name = algorithm.name;
        let known = self.layouts.iter();
        if let Some(position) = known
            .map(|layout| layout.algorithm)
            .position(|of| of == name)
        {
            return position;
        }
        let variables = algorithm.variables.iter();
        let targets = variables.map(|variable| match Field::of(variable.column) {
            Some(field) => Target::Row(field),
            None => Target::Own(self.own(variable.column)),
        });
        let layout = Layout {
            targets: targets.collect(),
            algorithm: name,
        };
        self.layouts.push(layout);
        self.layouts.len() - 1
    }

    /// The position of a column of its own, with a value for each row.
    fn own(&mut self, name: &'static str) -> usize {
        let position = self.own.iter().position(|(column, _)| *column == name);
        position.unwrap_or_else(|| {
            self.own.push((name, vec![None; self.rows.len()]));
            self.own.len() - 1
        })
    }
}

/// A column of rows that an algorithm's variable fills.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Field {
    Phase,
    Bw,
    MaxBw,
    BwShortterm,
    MinRtt,
    PacingGain,
    CwndGain,
    InflightLongterm,
    InflightShortterm,
    ExtraAcked,
    RoundCount,
}

impl Field {
    /// The one of that name, if rows have it.
    fn of(column: &str) -> Option<Self> {
        Some(match column {
            "phase" => Self::Phase,
            "bw_bps" => Self::Bw,
            "max_bw_bps" => Self::MaxBw,
            "bw_shortterm_bps" => Self::BwShortterm,
            "min_rtt_us" => Self::MinRtt,
            "pacing_gain" => Self::PacingGain,
            "cwnd_gain" => Self::CwndGain,
            "inflight_longterm_packets" => Self::InflightLongterm,
            "inflight_shortterm_packets" => Self::InflightShortterm,
            "extra_acked_packets" => Self::ExtraAcked,
            "round_count" => Self::RoundCount,
            _ => return None,
        })
    }

    fn set(self, row: &mut CcRow, value: Option<f64>) {
        match self {
            Self::Phase => row.phase = phase_name(value),
            Self::Bw => row.bw_bps = whole(value),
            Self::MaxBw => row.max_bw_bps = whole(value),
            Self::BwShortterm => row.bw_shortterm_bps = whole(value),
            Self::MinRtt => row.min_rtt_us = whole(value),
            Self::PacingGain => row.pacing_gain = value.unwrap_or(0.0),
            Self::CwndGain => row.cwnd_gain = value.unwrap_or(0.0),
            Self::InflightLongterm => row.inflight_longterm_packets = whole(value),
            Self::InflightShortterm => row.inflight_shortterm_packets = whole(value),
            Self::ExtraAcked => row.extra_acked_packets = whole(value).unwrap_or(0),
            Self::RoundCount => row.round_count = whole(value).unwrap_or(0),
        }
    }
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

#[cfg(test)]
mod tests {
    use fullpipe_cc::algorithm;

    use super::*;

    fn controller(name: &str) -> Controller {
        let algorithm = algorithm(name).expect("built in");
        let params = algorithm.params.iter().map(|param| param.default);
        Controller::new(algorithm, &params.collect::<Vec<_>>()).expect("defaults are in range")
    }

    #[test]
    fn a_column_of_its_own_has_the_values_of_its_algorithm_and_nulls_in_rows_of_others() {
        let (cubic, bbr) = (controller("cubic"), controller("bbr3"));
        let mut samples = CcSamples::default();
        let rows = [Some(&cubic), Some(&bbr), None, Some(&cubic)];
        for (t_us, of) in (0..).zip(rows) {
            match of {
                Some(of) => samples.push(t_us, 7, of),
                None => samples.push_row(CcRow::default()),
            }
        }
        let table = samples.table();
        let own = table.columns.iter().skip(CcRow::table(&[]).columns.len());
        let mut names = Vec::new();
        for (name, values) in own {
            names.push(*name);
            let wanted = rows.map(|of| {
                let variables = &of?.algorithm().variables;
                let position = variables.iter().position(|known| known.column == *name)?;
                of?.variables()[position]
            });
            assert_eq!(values, &Column::OptF64(wanted.to_vec()), "{name}");
        }
        assert!(
            names.contains(&"w_max_packets") && names.len() > 4,
            "{names:?}"
        );
    }
}
