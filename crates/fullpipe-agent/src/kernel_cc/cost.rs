//! What the programs of `bpf/` cost, by the kernel's statistics of eBPF programs: calls and time. In a
//! virtual machine whose clock counts instructions, time is instructions.

use std::fs;

use libbpf_rs::query::ProgInfoIter;
use serde::Serialize;

const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";
/// Prefix of the names of all functions of `bpf/`.
const PREFIX: &str = "fp_";

/// One program, since it was loaded.
#[derive(Serialize)]
pub(crate) struct Cost {
    program: String,
    calls: u64,
    ns: u64,
}

/// Switches on the kernel's statistics of all programs; they stay on.
pub(crate) fn count() -> Result<(), String> {
    fs::write(SWITCH, "1\n").map_err(|error| format!("{SWITCH}: {error}"))
}

/// The cost of each of our loaded programs. The kernel cuts names to 15 letters.
pub(crate) fn costs() -> Vec<Cost> {
    ProgInfoIter::default()
        .map(|program| Cost {
            program: program.name.to_string_lossy().into_owned(),
            calls: program.run_cnt,
            ns: program.run_time_ns,
        })
        .filter(|cost| cost.program.starts_with(PREFIX))
        .collect()
}
