//! Metrics of many runs, as the tables `runs`, `flows` and `path` of a sweep's store.

use fullpipe_plan::{Column, Table, Text};

use crate::definitions::{about, Metrics, FLOW, QUEUE, RUN};
use crate::facts::Facts;
use crate::measured::Measured;
use crate::samples::Samples;

/// Metrics of runs, in the order in which they came.
#[derive(Debug, Default)]
pub struct Measures {
    run: Vec<u64>,
    flow_id: Vec<u64>,
    flow: Vec<Text>,
    cc: Vec<Text>,
    direction: Vec<Text>,
    silent: Vec<Text>,
    unsettled: Vec<Text>,
    // Whole rows: after a run nothing is in the processor's caches, and each column would be a miss.
    runs: Vec<Vec<f64>>,
    flows: Vec<Vec<f64>>,
    path: Vec<Vec<f64>>,
}

impl Measures {
    /// Measures a run, and takes the names of its flows.
    pub fn add(&mut self, samples: &mut Samples, facts: &Facts) {
        let measured = Measured::new(samples, facts);
        let names = &mut samples.flows;
        let run = self.runs.len() as u64;
        self.run.extend(names.flow.iter().map(|_| run));
        self.flow_id.extend(0..names.flow.len() as u64);
        self.flow.append(&mut names.flow);
        self.cc.append(&mut names.cc);
        self.direction.append(&mut names.direction);
        let silent: Vec<String> = measured.silent_flows().map(|one| one.to_string()).collect();
        self.unsettled.push(measured.unsettled().into());
        self.silent.push(silent.join(" ").into());
        self.runs.push(measured.run());
        self.flows.extend(measured.flows());
        self.path.extend(measured.queues().take(1));
    }

    /// The tables; `run` says which of the runs a flow is of, `silent` lists the flows of a run that
    /// delivered nothing, `unsettled` what had not settled.
    pub fn into_tables(self) -> [Table; 3] {
        let mut flows = vec![
            ("run", Column::U64(self.run)),
            ("flow_id", Column::U64(self.flow_id)),
            ("flow", Column::Text(self.flow)),
            ("cc", Column::Text(self.cc)),
            ("direction", Column::Text(self.direction)),
        ];
        flows.extend(columns(FLOW, &self.flows));
        let mut runs = columns(RUN, &self.runs);
        runs.push(("silent", Column::Text(self.silent)));
        runs.push(("unsettled", Column::Text(self.unsettled)));
        [
            table("runs", runs),
            table("flows", flows),
            table("path", columns(QUEUE, &self.path)),
        ]
    }
}

fn table(name: &'static str, columns: Vec<(&'static str, Column)>) -> Table {
    Table { name, columns }
}

fn columns<T>(metrics: Metrics<T>, rows: &[Vec<f64>]) -> Vec<(&'static str, Column)> {
    let values = |place: usize| rows.iter().map(|row| row[place]).collect();
    let columns = about(metrics).enumerate();
    let columns = columns.map(|(place, one)| (one.name, Column::F64(values(place))));
    columns.collect()
}
