//! `fullpipe._native.Measures`: the rows of a sweep's store (crates/fullpipe-metrics).

use fullpipe_metrics::{Facts, FlowSamples, Flows, Measures, PingSamples, QueueSamples, Samples};
use fullpipe_plan::Text;
use nix::time::{clock_gettime, ClockId};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;

use crate::sim::tables_of;
use crate::tables::columns;

/// What metrics need of a plan: warm-up and duration (ns), the queue of the bottleneck, its rate (None:
/// not limited), the base RTT and the time between samples (ns).
type Known = (u64, u64, String, Option<f64>, u64, u64);

/// Measures runs, one after another.
#[pyclass(name = "Measures", module = "fullpipe._native")]
#[derive(Default)]
pub(crate) struct PyMeasures {
    measures: Measures,
    /// CPU time of this thread within the simulator.
    #[pyo3(get)]
    simulator_s: f64,
}

#[pymethods]
impl PyMeasures {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Runs plans (JSON without traces of traffic) and adds them. Returns the places of those that failed,
    /// which are not added, with what `sim.run` raises.
    fn simulate(
        &mut self,
        py: Python<'_>,
        runs: Vec<(Known, PyBackedBytes)>,
    ) -> PyResult<Vec<(usize, PyErr)>> {
        let mut failures = Vec::new();
        let mut samples = Samples::default();
        for (place, (known, plan)) in runs.into_iter().enumerate() {
            py.check_signals()?;
            let begin_s = thread_cpu_s();
            let found = std::str::from_utf8(&plan)
                .map_err(PyErr::from)
                .and_then(|plan| tables_of(py, plan));
            self.simulator_s += thread_cpu_s() - begin_s;
            match found {
                Ok(tables) => {
                    samples.become_of(tables, &known.2);
                    self.add(&mut samples, &known);
                }
                Err(error) => failures.push((place, error)),
            }
        }
        Ok(failures)
    }

    /// Adds a recorded run: table -> column -> 64-bit floats as little-endian bytes, NaN for null, or
    /// a list of text; of `queue_samples` the rows of the bottleneck's queue.
    ///
    /// Raises ValueError where columns of a table differ in length, KeyError where one is missing.
    fn add_recorded(&mut self, tables: &Bound<'_, PyDict>, known: Known) -> PyResult<()> {
        self.add(&mut samples(tables)?, &known);
        Ok(())
    }

    /// Tables `runs`, `flows` and `path` as `sim.run` returns tables: a row for each run in its order, of
    /// `flows` one for each flow, whose `run` is the number of its run. Removes the runs.
    fn take<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let [runs, flows, path] = std::mem::take(&mut self.measures).into_tables();
        let result = PyDict::new(py);
        for (name, table) in [("runs", runs), ("flows", flows), ("path", path)] {
            result.set_item(name, columns(py, table)?)?;
        }
        Ok(result)
    }
}

impl PyMeasures {
    fn add(&mut self, samples: &mut Samples, known: &Known) {
        let facts = Facts {
            warmup_ns: known.0,
            duration_ns: known.1,
            rate_bps: known.3.unwrap_or(f64::NAN),
            rtt_ns: known.4,
            sample_interval_ns: known.5,
        };
        self.measures.add(samples, &facts);
    }
}

fn thread_cpu_s() -> f64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(0.0, |time| {
        time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9
    })
}

fn samples(tables: &Bound<'_, PyDict>) -> PyResult<Samples> {
    let flows = Recorded::of(tables, "flows")?;
    let sampled = Recorded::of(tables, "flow_samples")?;
    let queue = Recorded::of(tables, "queue_samples")?;
    let pings = Recorded::of(tables, "ping_samples")?;
    let start_us = flows.numbers("start_us", None)?;
    let rows = Some(start_us.len());
    let flows = Flows {
        flow: flows.texts("flow", rows)?,
        cc: flows.texts("cc", rows)?,
        direction: flows.texts("direction", rows)?,
        completion_us: flows.numbers("completion_us", rows)?,
        start_us,
    };
    let t_us = sampled.numbers("t_us", None)?;
    let rows = Some(t_us.len());
    let flow_samples = FlowSamples {
        flow_id: sampled
            .numbers("flow_id", rows)?
            .into_iter()
            .map(|number| number as usize)
            .collect(),
        srtt_us: sampled.numbers("srtt_us", rows)?,
        min_rtt_us: sampled.numbers("min_rtt_us", rows)?,
        cwnd_packets: sampled.numbers("cwnd_packets", rows)?,
        counters: sampled.together(
            ["bytes_delivered", "packets_sent", "packets_retransmitted"],
            rows,
        )?,
        t_us,
    };
    let t_us = queue.numbers("t_us", None)?;
    let rows = Some(t_us.len());
    let queue_samples = QueueSamples {
        queue_bytes: queue.numbers("queue_bytes", rows)?,
        counters: queue.together(
            [
                "sent_bytes",
                "sent_packets",
                "dropped_packets",
                "marked_packets",
                "random_lost_packets",
                "random_marked_packets",
            ],
            rows,
        )?,
        t_us,
    };
    let t_us = pings.numbers("t_us", None)?;
    let ping_samples = PingSamples {
        rtt_us: pings.numbers("rtt_us", Some(t_us.len()))?,
        t_us,
    };
    Ok(Samples {
        flows,
        flow_samples,
        queue_samples,
        ping_samples,
    })
}

/// A table's columns as Python hands them over.
struct Recorded<'py> {
    name: &'static str,
    table: Bound<'py, PyAny>,
}

impl<'py> Recorded<'py> {
    fn of(tables: &Bound<'py, PyDict>, name: &'static str) -> PyResult<Self> {
        let table = tables.as_any().get_item(name)?;
        Ok(Self { name, table })
    }

    /// `rows`: how many there must be.
    fn numbers(&self, column: &str, rows: Option<usize>) -> PyResult<Vec<f64>> {
        let item = self.table.get_item(column)?;
        let bytes: &[u8] = item.extract()?;
        let words = bytes.chunks_exact(8);
        let found: Vec<f64> = words
            .map(|word| f64::from_le_bytes(word.try_into().expect("chunks of eight")))
            .collect();
        self.checked(column, found, rows)
    }

    fn texts(&self, column: &str, rows: Option<usize>) -> PyResult<Vec<Text>> {
        let found: Vec<String> = self.table.get_item(column)?.extract()?;
        let found = found.into_iter().map(Text::from).collect();
        self.checked(column, found, rows)
    }

    /// Columns of numbers, row by row.
    fn together<const N: usize>(
        &self,
        columns: [&str; N],
        rows: Option<usize>,
    ) -> PyResult<Vec<[f64; N]>> {
        let mut found = vec![[0.0; N]; rows.unwrap_or_default()];
        for (place, column) in columns.into_iter().enumerate() {
            for (row, value) in found.iter_mut().zip(self.numbers(column, rows)?) {
                row[place] = value;
            }
        }
        Ok(found)
    }

    fn checked<T>(&self, column: &str, found: Vec<T>, rows: Option<usize>) -> PyResult<Vec<T>> {
        match rows {
            Some(rows) if rows != found.len() => Err(PyValueError::new_err(format!(
                "{}.{column}: has {} rows, not {rows}",
                self.name,
                found.len()
            ))),
            _ => Ok(found),
        }
    }
}
