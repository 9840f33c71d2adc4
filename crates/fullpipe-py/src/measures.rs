//! `fullpipe._native.Measures`: the rows of a sweep's store (crates/fullpipe-measures).

use fullpipe_measures::{Facts, FlowSamples, Flows, Measures, PingSamples, QueueSamples, Samples};
use fullpipe_scenario::{Column, Table};
use nix::time::{clock_gettime, ClockId};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict};

use crate::sim::tables_of;
use crate::tables;

/// A plan (JSON), and what is known beside it: warm-up and duration (ns), the queue of the bottleneck,
/// its rate (None: not limited), the base RTT (ns).
type Run = (PyBackedBytes, u64, u64, PyBackedStr, Option<f64>, u64);

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

    /// Runs plans that name no trace of traffic and adds them, all in one call: a short run is over in a
    /// millisecond, behind which nothing of the interpreter is left in the processor's caches. Gives the
    /// places of those that could not be run, which are not added, with what `sim.run` raises.
    fn simulate(&mut self, py: Python<'_>, runs: Vec<Run>) -> PyResult<Vec<(usize, PyErr)>> {
        let mut failures = Vec::new();
        let mut samples = Samples::default();
        for (place, (plan, warmup_ns, duration_ns, queue, rate_bps, rtt_ns)) in
            runs.iter().enumerate()
        {
            py.check_signals()?;
            let begin_s = thread_cpu_s();
            let found = std::str::from_utf8(plan)
                .map_err(PyErr::from)
                .and_then(|plan| tables_of(py, plan));
            self.simulator_s += thread_cpu_s() - begin_s;
            match found {
                Ok(tables) => {
                    let facts = facts(*warmup_ns, *duration_ns, *rate_bps, *rtt_ns);
                    samples.become_of(tables, queue);
                    self.measures.add(&mut samples, &facts);
                }
                Err(error) => failures.push((place, error)),
            }
        }
        Ok(failures)
    }

    /// Adds a recorded run: table -> column -> 64-bit floats as little-endian bytes, NaN for null, or
    /// a list of text; of `queue_samples` the rows of the bottleneck's queue. `rate_bps` is the
    /// bottleneck's (None: not limited).
    ///
    /// Raises ValueError where columns of a table differ in length, KeyError where one is missing.
    fn add_recorded(
        &mut self,
        tables: &Bound<'_, PyDict>,
        warmup_ns: u64,
        duration_ns: u64,
        rate_bps: Option<f64>,
        rtt_ns: u64,
    ) -> PyResult<()> {
        let facts = facts(warmup_ns, duration_ns, rate_bps, rtt_ns);
        self.measures.add(&mut samples(tables)?, &facts);
        Ok(())
    }

    /// Tables `runs`, `flows` and `path` as `sim.run` gives tables, but for text, which is where each
    /// value ends (32-bit, little-endian) and all values in a row: a row a run in its order, of `flows`
    /// one a flow, with the number of its run. Nothing is left.
    fn take<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let result = PyDict::new(py);
        for table in std::mem::take(&mut self.measures).into_tables() {
            let name = table.name;
            let (texts, numbers) = table
                .columns
                .into_iter()
                .partition(|(_, column)| matches!(column, Column::Text(_)));
            let numbers = Table {
                name,
                columns: numbers,
            };
            let columns = tables::columns(py, numbers)?;
            for (name, column) in texts as Vec<(&str, Column)> {
                if let Column::Text(values) = column {
                    columns.set_item(name, ("text", joined(py, &values)))?;
                }
            }
            result.set_item(name, columns)?;
        }
        Ok(result)
    }
}

/// Where each text ends, the beginning of the first included, and all of them in a row.
fn joined<'py>(py: Python<'py>, texts: &[String]) -> (Bound<'py, PyBytes>, Bound<'py, PyBytes>) {
    let mut end = 0i32;
    let mut ends = Vec::with_capacity(4 * (texts.len() + 1));
    ends.extend(end.to_le_bytes());
    for text in texts {
        end += text.len() as i32;
        ends.extend(end.to_le_bytes());
    }
    (
        PyBytes::new(py, &ends),
        PyBytes::new(py, texts.concat().as_bytes()),
    )
}

fn thread_cpu_s() -> f64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(0.0, |time| {
        time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9
    })
}

fn facts(warmup_ns: u64, duration_ns: u64, rate_bps: Option<f64>, rtt_ns: u64) -> Facts {
    Facts {
        warmup_ns,
        duration_ns,
        rate_bps: rate_bps.unwrap_or(f64::NAN),
        rtt_ns,
    }
}

fn samples(tables: &Bound<'_, PyDict>) -> PyResult<Samples> {
    let flows = Columns::of(tables, "flows")?;
    let sampled = Columns::of(tables, "flow_samples")?;
    let queue = Columns::of(tables, "queue_samples")?;
    let pings = Columns::of(tables, "ping_samples")?;
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
struct Columns<'py> {
    name: &'static str,
    table: Bound<'py, PyAny>,
}

impl<'py> Columns<'py> {
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

    fn texts(&self, column: &str, rows: Option<usize>) -> PyResult<Vec<String>> {
        let found = self.table.get_item(column)?.extract()?;
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
