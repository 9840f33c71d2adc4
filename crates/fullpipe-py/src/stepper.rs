//! `fullpipe._native.Stepper`: a simulation that waits for decisions (fullpipe-sim's stepper.rs).

use std::sync::{Mutex, PoisonError};

use fullpipe_sim::{read_plan, Stepper};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::controller::{raised, take_raised};
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
    /// number, or None. Raises RuntimeError where a class raised an exception.
    fn advance(
        &mut self,
        py: Python<'_>,
        until_ns: u64,
        stops_at_acks: bool,
    ) -> PyResult<Option<usize>> {
        let stepper = Lent(self.stepper()?);
        let agent = py.detach(move || stepper.advance(until_ns, stops_at_acks));
        take_raised().map_or(Ok(agent), |what| Err(raised(py, what)))
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

/// A stepper that runs without the GIL.
struct Lent<'a>(&'a mut Stepper);

// SAFETY: it stays on its thread; only the GIL is let go of. What it calls in Python takes it again.
unsafe impl Send for Lent<'_> {}

impl Lent<'_> {
    fn advance(self, until_ns: u64, stops_at_acks: bool) -> Option<usize> {
        self.0.advance(until_ns, stops_at_acks)
    }
}

/// A stepper on its way to a thread and back.
struct Moved {
    position: usize,
    stepper: Stepper,
    until_ns: u64,
    agent: Option<usize>,
    /// What a class raised.
    raised: Option<(String, PyErr)>,
}

// SAFETY: a stepper owns every `Rc` in it, and all of them move with it. What it calls in Python takes
// the GIL first. Nothing in it belongs to the thread that made it.
unsafe impl Send for Moved {}

/// Advances each stepper to its time or, with `stops_at_acks`, to an agent's ACK, on so many threads
/// and without the GIL. Returns those agents' numbers, or None. Raises RuntimeError where a class
/// raised an exception.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // as Python hands them over
pub(crate) fn advance_all(
    py: Python<'_>,
    steppers: Vec<PyRefMut<'_, PyStepper>>,
    until_ns: Vec<u64>,
    stops_at_acks: bool,
    threads: usize,
) -> PyResult<Vec<Option<usize>>> {
    let mut steppers = steppers;
    if steppers.iter().any(|stepper| stepper.0.is_none()) {
        return Err(ended());
    }
    let taken = steppers.iter_mut().zip(until_ns).enumerate();
    let taken = taken.filter_map(|(position, (stepper, until_ns))| {
        stepper.0.take().map(|stepper| Moved {
            position,
            stepper,
            until_ns,
            agent: None,
            raised: None,
        })
    });
    let waiting = Mutex::new(taken.collect::<Vec<_>>());
    let done = Mutex::new(Vec::new());
    py.detach(|| {
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| advance_waiting(&waiting, &done, stops_at_acks));
            }
            advance_waiting(&waiting, &done, stops_at_acks);
        });
    });
    let mut agents = vec![None; steppers.len()];
    let mut first_raised = None;
    for moved in done.into_inner().unwrap_or_else(PoisonError::into_inner) {
        agents[moved.position] = moved.agent;
        first_raised = first_raised.or(moved.raised);
        steppers[moved.position].0 = Some(moved.stepper);
    }
    first_raised.map_or(Ok(agents), |what| Err(raised(py, what)))
}

fn advance_waiting(waiting: &Mutex<Vec<Moved>>, done: &Mutex<Vec<Moved>>, stops_at_acks: bool) {
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
    while let Some(mut moved) = next() {
        moved.agent = moved.stepper.advance(moved.until_ns, stops_at_acks);
        moved.raised = take_raised();
        done.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(moved);
    }
}

fn ended() -> PyErr {
    PyValueError::new_err("the run has ended")
}
