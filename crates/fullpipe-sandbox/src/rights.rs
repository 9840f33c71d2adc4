//! The rights that a process keeps.

use std::path::PathBuf;

/// What a process keeps. Paths that do not exist are left out; a folder stands for all below it.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    /// Files and folders that may be read, and mapped as libraries.
    pub read: Vec<PathBuf>,
    /// Files and folders that may be read, written, created and removed.
    pub write: Vec<PathBuf>,
    /// Programs, and folders of programs, that may be read and executed. Without any, `execve` is
    /// refused.
    pub execute: Vec<PathBuf>,
    /// May it start processes? Threads are always allowed.
    pub processes: bool,
    /// Most bytes of address space.
    pub memory_bytes: Option<u64>,
    /// Most bytes of a file that it writes.
    pub file_bytes: Option<u64>,
}
