//! A process gives up its rights for good: which files it may read, write and execute (Landlock),
//! which system calls it may make (seccomp), how much memory it may take. What is executed
//! afterwards inherits all of it. Must never know what the process is for.

use std::io;

mod calls;
mod ending;
mod faults;
mod files;
mod limits;
mod rights;

pub use ending::end_with_parent;
pub use faults::{end_with, report_faults};
pub use rights::Rights;

/// What this kernel cannot confine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Files can be read and written as far as the user may.
    Files,
    /// System calls are not filtered: programs, processes, sockets.
    Calls,
}

impl Missing {
    /// As a name: `files` or `calls`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Calls => "calls",
        }
    }
}

/// Confines this process to `rights`, and returns what the kernel cannot confine. No later call can
/// give a right back.
///
/// Landlock restricts the calling thread and those that it starts, so there may be only one: with
/// more it is an error of kind `InvalidInput`, and nothing was confined. Any other error leaves the
/// process partly confined: end it.
pub fn confine(rights: &Rights) -> io::Result<Vec<Missing>> {
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{threads} threads run already; Landlock would restrict one of them"),
        ));
    }
    limits::set(rights)?;
    let mut missing = Vec::new();
    if !files::restrict(rights)? {
        missing.push(Missing::Files);
    }
    if !calls::restrict(rights)? {
        missing.push(Missing::Calls);
    }
    Ok(missing)
}
