//! `fullpipe._native.Stepper`: a simulation that waits for decisions (fullpipe-sim's stepper.rs).

use fullpipe_sim::{read_plan, Stepper};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::tables;

/// Since the last look: acks, delivered, marked, lost, timeouts, rtt_samples, rtt_sum_us.
type Counts = (u64, u64, u64, u64, u64, u64, u64);
/// Now: cwnd, inflight, srtt_us, min_rtt_us, is_established, is_finished.
type State = (u32, u32, u32, u32, bool, bool);

/// A run in steps; flows whose algorithm is "agent" wait for decisions.
#[pyclass(name = "Stepper", module = "fullpipe", unsendable)]
pub(crate) struct PyStepper(Option<Stepper>);

#[pymethods]
impl PyStepper {
    /// Begins the run of a plan (JSON). Raises ValueError for a bad one.
    #[new]
    fn new(plan_json: &str) -> PyResult<Self> {
        let plan = read_plan(plan_json)
            .map_err(|error| PyValueError::new_err(format!("plan: {error}")))?;
        let stepper =
            Stepper::new(plan).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self(Some(stepper)))
    }

    /// Advances to this time or, with `stops_at_acks`, to an agent's ACK. Returns that agent's
    /// number, or None.
    fn advance(&mut self, until_ns: u64, stops_at_acks: bool) -> PyResult<Option<usize>> {
        Ok(self.stepper()?.advance(until_ns, stops_at_acks))
    }

    /// The counts of an agent's flow since the last call, and its state (`Counts`, `State`).
    fn look(&mut self, agent: usize) -> PyResult<(Counts, State)> {
        let stepper = self.checked(agent)?;
        let seen = stepper.look(agent);
        let counts = (
            seen.acks,
            seen.delivered,
            seen.marked,
            seen.lost,
            seen.timeouts,
            seen.rtt_samples,
            seen.rtt_sum_us,
        );
        let state = (
            seen.cwnd,
            seen.inflight,
            seen.srtt_us,
            seen.min_rtt_us,
            seen.is_established,
            seen.is_finished,
        );
        Ok((counts, state))
    }

    /// Bytes and packets that wait at the links of an agent's route.
    fn queued(&mut self, agent: usize) -> PyResult<(u64, u64)> {
        Ok(self.checked(agent)?.queued(agent))
    }

    /// Sets window (packets) and pacing rate (bytes/s; 0: it follows the window) of an agent.
    fn decide(&mut self, agent: usize, cwnd: u32, pacing_rate_bytes_per_s: u64) -> PyResult<()> {
        self.checked(agent)?
            .decide(agent, cwnd, pacing_rate_bytes_per_s);
        Ok(())
    }

    #[getter]
    fn now_ns(&mut self) -> PyResult<u64> {
        Ok(self.stepper()?.now_ns())
    }

    #[getter]
    fn is_over(&mut self) -> PyResult<bool> {
        Ok(self.stepper()?.is_over())
    }

    /// Ends the run; returns what `sim.run` does. The stepper cannot be used afterwards.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.stepper()?;
        let outcome = self.0.take().map(Stepper::finish);
        let outcome = outcome.ok_or_else(ended)?;
        let result = tables::to_dict(py, outcome.tables)?;
        result.set_item("interrupted", outcome.interrupted)?;
        Ok(result)
    }
}

impl PyStepper {
    fn stepper(&mut self) -> PyResult<&mut Stepper> {
        self.0.as_mut().ok_or_else(ended)
    }

    fn checked(&mut self, agent: usize) -> PyResult<&mut Stepper> {
        let stepper = self.stepper()?;
        if agent >= stepper.agents() {
            return Err(PyIndexError::new_err(format!("there is no agent {agent}")));
        }
        Ok(stepper)
    }
}

fn ended() -> PyErr {
    PyValueError::new_err("the run has ended")
}
