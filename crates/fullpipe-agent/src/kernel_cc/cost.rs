//! What the programs of `bpf/` take, by the kernel's own statistics of eBPF programs: calls, and the
//! time in them, which in a virtual machine that counts instructions is instructions.

use std::fs;

use libbpf_rs::query::ProgInfoIter;
use serde::Serialize;

const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";
/// Begins the names of all functions of `bpf/`.
const PREFIX: &str = "fp_";

/// One program, since it was loaded.
#[derive(Serialize)]
pub(crate) struct Cost {
    program: String,
    calls: u64,
    ns: u64,
}

/// Lets this kernel count, for all programs and until it ends.
pub(crate) fn count() -> Result<(), String> {
    fs::write(SWITCH, "1\n").map_err(|error| format!("{SWITCH}: {error}"))
}

/// What every program of ours that is loaded now took. The kernel cuts names to 15 letters.
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
