//! `fullpipe._native.differential`: scripts of the differential test and answers to them, as JSON.

use fullpipe_differential as differential;
use fullpipe_differential::packetdrill;
use fullpipe_differential::queue;
use fullpipe_differential::{Answer, Model, Script};
use fullpipe_plan::Kernel;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pythonize::pythonize;
use serde::de::DeserializeOwned;
use serde::Serialize;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let submodule = PyModule::new(module.py(), "differential")?;
    submodule.add_function(wrap_pyfunction!(draw, &submodule)?)?;
    submodule.add_function(wrap_pyfunction!(play, &submodule)?)?;
    submodule.add_function(wrap_pyfunction!(compare, &submodule)?)?;
    submodule.add_function(wrap_pyfunction!(shorter, &submodule)?)?;
    submodule.add("QUEUES", queue::Kind::ALL.map(|(name, _)| name))?;
    submodule.add_function(wrap_pyfunction!(draw_queue, &submodule)?)?;
    submodule.add_function(wrap_pyfunction!(play_queue, &submodule)?)?;
    submodule.add_function(wrap_pyfunction!(judge_queue, &submodule)?)?;
    submodule.add_function(wrap_pyfunction!(shorter_queue, &submodule)?)?;
    submodule.add_function(wrap_pyfunction!(play_packetdrill, &submodule)?)?;
    module.add_submodule(&submodule)
}

/// A random script. Raises ValueError if the model refuses what was drawn.
#[pyfunction]
fn draw(py: Python<'_>, seed: u64, number: u64, kernel: &str) -> PyResult<String> {
    let kernel = named(kernel)?;
    let script = py.detach(|| differential::draw(seed, number, kernel));
    text(&script.map_err(PyValueError::new_err)?)
}

/// The model's answer to a script, with the TCP of a kernel (`KERNELS`).
#[pyfunction]
fn play(script: &str, kernel: &str) -> PyResult<String> {
    let script: Script = read(script)?;
    let model = Model::new(&script, named(kernel)?);
    let mut model = model.map_err(PyValueError::new_err)?;
    text(&differential::play(&script, &mut model))
}

/// The first event in which two answers differ: None, or a dict with `event` and `differences`.
#[pyfunction]
fn compare<'py>(py: Python<'py>, kernel: &str, model: &str) -> PyResult<Bound<'py, PyAny>> {
    let (kernel, model): (Answer, Answer) = (read(kernel)?, read(model)?);
    Ok(pythonize(py, &differential::compare(&kernel, &model))?)
}

/// The script without each of its parts, and cut behind event `last`.
#[pyfunction]
fn shorter(script: &str, last: usize, parts: usize) -> PyResult<Vec<String>> {
    let script: Script = read(script)?;
    let all = differential::shorter(&script, last, parts);
    all.iter().map(text).collect()
}

/// A random script for a queue discipline (`QUEUES`). Raises ValueError if the model refuses what was drawn.
#[pyfunction]
fn draw_queue(
    py: Python<'_>,
    seed: u64,
    number: u64,
    queue: &str,
    kernel: &str,
) -> PyResult<String> {
    let kernel = named(kernel)?;
    let kind = queue::Kind::named(queue);
    let kind = kind.ok_or_else(|| PyValueError::new_err(format!("no queue {queue}")))?;
    let script = py.detach(|| queue::draw(seed, number, kind, kernel));
    text(&script.map_err(PyValueError::new_err)?)
}

/// The answer of the model's queue to a script, with the rules of a kernel.
#[pyfunction]
fn play_queue(script: &str, kernel: &str) -> PyResult<String> {
    let script: queue::Script = read(script)?;
    let answer = queue::play(&script, named(kernel)?);
    text(&answer.map_err(PyValueError::new_err)?)
}

/// Where the model's queue, with the rules of a kernel, differs from that kernel's answer: None, or a dict with
/// `event` and `differences`.
#[pyfunction]
fn judge_queue<'py>(
    py: Python<'py>,
    script: &str,
    answer: &str,
    kernel: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let (script, answer): (queue::Script, queue::Answer) = (read(script)?, read(answer)?);
    let kernel = named(kernel)?;
    let judged = py.detach(|| queue::judge(&script, &answer, kernel));
    Ok(pythonize(py, &judged.map_err(PyValueError::new_err)?)?)
}

/// The script without each of its parts, and cut behind event `last`.
#[pyfunction]
fn shorter_queue(script: &str, last: usize, parts: usize) -> PyResult<Vec<String>> {
    let script: queue::Script = read(script)?;
    let all = queue::shorter(&script, last, parts);
    all.iter().map(text).collect()
}

/// The model's answer to a script in packetdrill's language, with the TCP of a kernel (`KERNELS`).
#[pyfunction]
fn play_packetdrill(py: Python<'_>, program: &str, kernel: &str) -> PyResult<String> {
    let program: packetdrill::Program = read(program)?;
    let kernel = named(kernel)?;
    text(&py.detach(|| packetdrill::play(&program, kernel)))
}

fn named(kernel: &str) -> PyResult<Kernel> {
    read(&format!("\"{kernel}\""))
}

fn read<T: DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn text(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}
