//! `fullpipe._native.Measures`: the metrics of many runs, as rows of a sweep's store.

use fullpipe_metrics::{Measures, Samples};
use nix::time::{clock_gettime, ClockId};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyCapsule, PyDict};

use crate::metrics::{samples, PlanFacts, Traces};
use crate::sim::{loaded, tables_of};
use crate::tables::columns;

/// Measures runs, one after another.
#[pyclass(name = "Measures", module = "fullpipe._native")]
#[derive(Default)]
pub(crate) struct PyMeasures {
    measures: Measures,
    traces: Traces,
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
    /// which are not added, with what `sim.run` raises. `transports`: as `sim.run` takes them.
    #[pyo3(signature = (runs, transports=Vec::new()))]
    fn simulate(
        &mut self,
        py: Python<'_>,
        runs: Vec<(PlanFacts, PyBackedBytes)>,
        transports: Vec<Bound<'_, PyCapsule>>,
    ) -> PyResult<Vec<(usize, PyErr)>> {
        let transports = loaded(transports)?;
        let mut failures = Vec::new();
        let mut samples = Samples::default();
        for (place, (facts, plan)) in runs.into_iter().enumerate() {
            py.check_signals()?;
            let begin_s = thread_cpu_s();
            let found = std::str::from_utf8(&plan)
                .map_err(|error| PyValueError::new_err(format!("plan: {error}")))
                .and_then(|plan| tables_of(py, plan, &transports));
            self.simulator_s += thread_cpu_s() - begin_s;
            let found = found.and_then(|tables| Ok((tables, facts.read(&mut self.traces)?)));
            match found {
                Ok((tables, facts)) => {
                    samples.become_of(tables, &facts.queues);
                    self.measures.add(&mut samples, &facts);
                }
                Err(error) => failures.push((place, error)),
            }
        }
        Ok(failures)
    }

    /// Adds a recorded run. `tables`: as `metrics.Run` takes them. Raises as that.
    #[allow(clippy::needless_pass_by_value)] // as Python hands it over
    fn add_recorded(&mut self, tables: &Bound<'_, PyDict>, facts: PlanFacts) -> PyResult<()> {
        let facts = facts.read(&mut self.traces)?;
        self.measures
            .add(&mut samples(tables, &facts.queues)?, &facts);
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

fn thread_cpu_s() -> f64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(0.0, |time| {
        time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9
    })
}
