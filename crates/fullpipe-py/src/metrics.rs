//! `fullpipe._native.metrics`: the metrics of a run (crates/fullpipe-metrics).

use std::collections::HashMap;
use std::sync::Arc;

use fullpipe_metrics::{
    tables, About, Capacity, Facts, FlowSamples, Flows, Measured, PacketCost, PingSamples,
    QueueFacts, QueueSamples, Samples, Settling, Window, VERSION,
};
use fullpipe_net::trace::RateTrace;
use fullpipe_plan::Text;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let metrics = PyModule::new(parent.py(), "metrics")?;
    metrics.add("VERSION", VERSION)?;
    let known = PyDict::new(parent.py());
    for (table, columns) in tables() {
        let about = |one: About| (one.name, one.unit, one.meaning);
        known.set_item(table, columns.into_iter().map(about).collect::<Vec<_>>())?;
    }
    metrics.add("TABLES", known)?;
    metrics.add_function(wrap_pyfunction!(jain, &metrics)?)?;
    metrics.add_function(wrap_pyfunction!(window, &metrics)?)?;
    metrics.add_class::<PyRun>()?;
    metrics.add_class::<PyCapacity>()?;
    parent.add_submodule(&metrics)
}

/// Jain's index of 64-bit floats, those left out that are NaN; NaN for none, and for zeros alone.
#[pyfunction]
fn jain(values: &[u8]) -> f64 {
    fullpipe_metrics::jain(numbers(values))
}

/// Start and end of what counts, and how late a sample may be, in s. `sampled_us`: when flows were
/// sampled, as 64-bit floats. Raises ValueError where the trace of a link cannot be read.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // as Python hands it over
fn window(facts: PlanFacts, sampled_us: &[u8]) -> PyResult<(f64, f64, f64)> {
    let facts = facts.read(&mut Traces::default())?;
    let window = Window::new(&facts, &numbers(sampled_us));
    Ok((window.start_s, window.end_s, window.late_s))
}

/// A metric that drifts: its name, mean, slope a second and p.
type Drift = (String, f64, f64, f64);

/// The metrics of one run.
#[pyclass(name = "Run", module = "fullpipe._native.metrics", frozen)]
struct PyRun(Measured);

#[pymethods]
impl PyRun {
    /// `tables`: table -> column -> 64-bit floats as little-endian bytes, NaN for null, or a list of
    /// text; of `queue_samples` the same of each queue in `facts`.
    ///
    /// Raises ValueError where columns of a table differ in length or the trace of a link cannot be
    /// read, KeyError where a column is missing.
    #[new]
    #[allow(clippy::needless_pass_by_value)] // as Python hands it over
    fn new(facts: PlanFacts, tables: &Bound<'_, PyDict>) -> PyResult<Self> {
        let facts = facts.read(&mut Traces::default())?;
        let samples = samples(tables, &facts.queues)?;
        Ok(Self(Measured::new(&samples, &facts)))
    }

    /// The metrics of the run, in the order of `TABLES`; NaN where there is none.
    fn run(&self) -> Vec<f64> {
        self.0.run()
    }

    /// The metrics of each flow.
    fn flows(&self) -> Vec<Vec<f64>> {
        self.0.flows().collect()
    }

    /// The metrics of some flows together, by their positions.
    fn group(&self, members: Vec<usize>) -> Vec<f64> {
        self.0.group(&members)
    }

    /// The flows that delivered nothing, though they had the time to.
    fn silent_flows(&self) -> Vec<usize> {
        self.0.silent_flows().collect()
    }

    /// Whether the run had settled: (`too short`, `changing` or `tested`; how long the window would have
    /// to be where it is too short; of each metric that drifts its name, mean, slope a second and p).
    fn settling(&self) -> (&'static str, Option<f64>, Vec<Drift>) {
        match self.0.settling() {
            Settling::TooShort(least_s) => ("too short", Some(*least_s), Vec::new()),
            Settling::Changing => ("changing", None, Vec::new()),
            Settling::Tested(drifts) => {
                let rows = drifts
                    .iter()
                    .map(|one| (one.quantity.name(), one.mean, one.slope_per_s, one.p_value));
                ("tested", None, rows.collect())
            }
        }
    }

    /// The metrics of each queue in the facts.
    fn queues(&self) -> Vec<Vec<f64>> {
        self.0.queues().collect()
    }
}

/// What a link can carry.
#[pyclass(name = "Capacity", module = "fullpipe._native.metrics", frozen)]
struct PyCapacity {
    capacity: Capacity,
    packet_cost: Option<PacketCost>,
}

#[pymethods]
impl PyCapacity {
    /// Of a plan. Raises ValueError where its trace cannot be read.
    #[new]
    #[allow(clippy::needless_pass_by_value)] // as Python hands it over
    fn new(planned: PlanCapacity) -> PyResult<Self> {
        Ok(Self {
            capacity: planned.read(&mut Traces::default())?,
            packet_cost: planned.packet_cost(),
        })
    }

    /// Bits that the link can carry between each time (s) and the next; NaN where that is not known.
    /// Both are 64-bit floats.
    fn bits<'py>(&self, py: Python<'py>, edges_s: &[u8]) -> Bound<'py, PyBytes> {
        let edges_s = numbers(edges_s);
        let found = edges_s
            .windows(2)
            .map(|edge| self.capacity.bits(edge[0], edge[1]));
        bytes(py, found)
    }

    /// How long (s) the link takes from each time (s) on for so many bytes; infinite where it never
    /// carries them, NaN where that is not known. All are 64-bit floats.
    fn drain_s<'py>(
        &self,
        py: Python<'py>,
        at_s: &[u8],
        volume_bytes: &[u8],
    ) -> Bound<'py, PyBytes> {
        let volumes = numbers(at_s).into_iter().zip(numbers(volume_bytes));
        bytes(
            py,
            volumes.map(|(at_s, volume)| self.capacity.drain_s(at_s, volume)),
        )
    }

    /// So many packets of so many bytes together as bytes of full packets, of which `bits` and `drain_s`
    /// are. All are 64-bit floats; NaN for a number of packets that is not known.
    fn in_full_packets<'py>(
        &self,
        py: Python<'py>,
        volume_bytes: &[u8],
        packets: &[u8],
    ) -> Bound<'py, PyBytes> {
        let volumes = numbers(volume_bytes).into_iter().zip(numbers(packets));
        let volumes = volumes.map(|(volume, packets)| match self.packet_cost {
            Some(cost) => cost.in_full_packets(volume, packets),
            None => volume,
        });
        bytes(py, volumes)
    }
}

/// Traces that were read, by their paths.
pub(crate) type Traces = HashMap<String, Arc<RateTrace>>;

/// What metrics need of a plan (`fullpipe.plan.facts.Facts`).
#[derive(FromPyObject)]
pub(crate) struct PlanFacts {
    start_s: f64,
    end_s: f64,
    sample_interval_s: f64,
    rtt_s: f64,
    equal_demand: Vec<usize>,
    pub(crate) queues: Vec<PlanQueue>,
}

#[derive(FromPyObject)]
pub(crate) struct PlanQueue {
    pub(crate) name: String,
    capacity: PlanCapacity,
    policed_bps: Option<f64>,
}

#[derive(FromPyObject)]
struct PlanCapacity {
    rates: Vec<(f64, f64)>,
    trace: Option<String>,
    /// Bytes of a full packet, and per byte that a packet lacks of it.
    packet_cost: Option<(f64, f64)>,
}

impl PlanFacts {
    /// Raises ValueError where a trace cannot be read.
    pub(crate) fn read(&self, traces: &mut Traces) -> PyResult<Facts> {
        let queues = self.queues.iter().map(|queue| {
            Ok(QueueFacts {
                name: queue.name.clone(),
                capacity: queue.capacity.read(traces)?,
                packet_cost: queue.capacity.packet_cost(),
                policed_bps: queue.policed_bps.unwrap_or(f64::INFINITY),
            })
        });
        Ok(Facts {
            start_s: self.start_s,
            end_s: self.end_s,
            sample_interval_s: self.sample_interval_s,
            rtt_s: self.rtt_s,
            equal_demand: self.equal_demand.clone(),
            queues: queues.collect::<PyResult<_>>()?,
        })
    }
}

impl PlanCapacity {
    fn packet_cost(&self) -> Option<PacketCost> {
        let cost = self.packet_cost;
        cost.map(|(full_bytes, per_missing_byte)| PacketCost {
            full_bytes,
            per_missing_byte,
        })
    }

    fn read(&self, traces: &mut Traces) -> PyResult<Capacity> {
        let Some(path) = &self.trace else {
            return Ok(match self.rates.is_empty() {
                true => Capacity::Unknown,
                false => Capacity::Rates(self.rates.clone()),
            });
        };
        if !traces.contains_key(path) {
            let trace = RateTrace::read(path)
                .map_err(|error| PyValueError::new_err(format!("{path}: {error}")))?;
            traces.insert(path.clone(), Arc::new(trace));
        }
        Ok(Capacity::Trace(traces[path].clone()))
    }
}

fn numbers(bytes: &[u8]) -> Vec<f64> {
    let words = bytes.chunks_exact(8);
    let words = words.map(|word| f64::from_le_bytes(word.try_into().expect("chunks of eight")));
    words.collect()
}

fn bytes(py: Python<'_>, numbers: impl Iterator<Item = f64>) -> Bound<'_, PyBytes> {
    let bytes: Vec<u8> = numbers.flat_map(f64::to_le_bytes).collect();
    PyBytes::new(py, &bytes)
}

/// The samples of a recorded run, with those of these queues.
pub(crate) fn samples(tables: &Bound<'_, PyDict>, queues: &[QueueFacts]) -> PyResult<Samples> {
    let flows = Recorded::of(tables.as_any(), "flows")?;
    let sampled = Recorded::of(tables.as_any(), "flow_samples")?;
    let pings = Recorded::of(tables.as_any(), "ping_samples")?;
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
    let t_us = pings.numbers("t_us", None)?;
    let ping_samples = PingSamples {
        rtt_us: pings.numbers("rtt_us", Some(t_us.len()))?,
        t_us,
    };
    let of_queues = tables.as_any().get_item("queue_samples")?;
    let queues = queues
        .iter()
        .map(|queue| queue_samples(&of_queues, &queue.name));
    Ok(Samples {
        flows,
        flow_samples,
        queues: queues.collect::<PyResult<_>>()?,
        ping_samples,
    })
}

fn queue_samples(tables: &Bound<'_, PyAny>, name: &str) -> PyResult<QueueSamples> {
    let queue = Recorded::of(tables, name)?;
    let t_us = queue.numbers("t_us", None)?;
    let rows = Some(t_us.len());
    Ok(QueueSamples {
        queue_bytes: queue.numbers("queue_bytes", rows)?,
        queue_packets: queue.numbers("queue_packets", rows)?,
        counters: queue.together(
            [
                "sent_bytes",
                "sent_packets",
                "dropped_packets",
                "marked_packets",
                "random_lost_packets",
                "random_marked_packets",
                "filtered_packets",
            ],
            rows,
        )?,
        t_us,
    })
}

/// A table's columns as Python hands them over.
struct Recorded<'a, 'py> {
    name: &'a str,
    table: Bound<'py, PyAny>,
}

impl<'a, 'py> Recorded<'a, 'py> {
    fn of(tables: &Bound<'py, PyAny>, name: &'a str) -> PyResult<Self> {
        let table = tables.get_item(name)?;
        Ok(Self { name, table })
    }

    /// `rows`: how many there must be.
    fn numbers(&self, column: &str, rows: Option<usize>) -> PyResult<Vec<f64>> {
        let item = self.table.get_item(column)?;
        self.checked(column, numbers(item.extract()?), rows)
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
