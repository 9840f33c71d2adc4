//! `fullpipe._native.sandbox`: this process gives up its rights.

use std::os::fd::RawFd;
use std::path::PathBuf;

use fullpipe_sandbox::{confine as confine_to, Missing, Rights};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let sandbox = PyModule::new(module.py(), "sandbox")?;
    sandbox.add_function(wrap_pyfunction!(confine, &sandbox)?)?;
    sandbox.add_function(wrap_pyfunction!(report_faults, &sandbox)?)?;
    sandbox.add_function(wrap_pyfunction!(end_with, &sandbox)?)?;
    sandbox.add_function(wrap_pyfunction!(end_with_parent, &sandbox)?)?;
    module.add_submodule(&sandbox)
}

/// Confines this process for good: files below `read` can be read (and libraries among them
/// loaded), below `write` changed, programs below `execute` executed; paths that do not exist are
/// left out. Without `execute` nothing can be executed, without `processes` no process started.
/// There are no sockets, signals to others, mounts or ioctls in any case. `memory_bytes` limits the
/// address space, `file_bytes` each file that is written.
///
/// Returns what this kernel cannot confine: a list of `files` (Landlock) and `calls` (seccomp). For
/// `preexec_fn` of a child, or a process with one thread. Raises OSError if there are more threads,
/// or if the kernel refuses.
#[pyfunction]
#[pyo3(signature = (*, read=vec![], write=vec![], execute=vec![], processes=false, memory_bytes=None, file_bytes=None))]
fn confine(
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    execute: Vec<PathBuf>,
    processes: bool,
    memory_bytes: Option<u64>,
    file_bytes: Option<u64>,
) -> PyResult<Vec<&'static str>> {
    let rights = Rights {
        read,
        write,
        execute,
        processes,
        memory_bytes,
        file_bytes,
    };
    let missing = confine_to(&rights)
        .map_err(|error| PyOSError::new_err(format!("cannot be confined: {error}")))?;
    Ok(missing.into_iter().map(Missing::name).collect())
}

/// From now on a fault writes a line to the descriptor `reports` before it ends the process: `fault`, the
/// signal's number, and in hexadecimal digits the addresses of the code, of the stack, and of what was
/// touched. So does SIGUSR1. Python's own handlers (faulthandler), if there before, are called afterwards.
/// A panic, to which external code can bring the simulator by overwriting it, prints nothing: the exception
/// that it raises has its message.
#[pyfunction]
fn report_faults(reports: RawFd) -> PyResult<()> {
    std::panic::set_hook(Box::new(|_| {}));
    Ok(fullpipe_sandbox::report_faults(reports)?)
}

/// Ends this process when the other end of a socket is closed.
#[pyfunction]
fn end_with(socket: RawFd) {
    fullpipe_sandbox::end_with(socket);
}

/// Ends this process, and what it starts in its process group, with its parent. For `preexec_fn` of a
/// child, before `confine`.
#[pyfunction]
fn end_with_parent() -> PyResult<()> {
    Ok(fullpipe_sandbox::end_with_parent()?)
}
