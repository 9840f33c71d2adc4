//! Reads plans as JSON, one a line, from standard input; prints for each its name and a hash of
//! everything its run left. Two builds agree exactly if they print the same.

use std::io::{self, BufRead};

use fullpipe_sim::{run, Inputs, Plan};

fn main() {
    for line in io::stdin().lock().lines() {
        let line = line.expect("standard input is text");
        let plan: Plan = serde_json::from_str(&line).expect("every line is a plan");
        let done = run(&plan, Inputs::default(), &mut |_| true).expect("the plan is sound");
        let tables = serde_json::to_vec(&done.tables.into_columns().collect::<Vec<_>>())
            .expect("tables are plain");
        println!(
            "{}: {} events, {} bytes, hash {:016x}",
            plan.name,
            done.events,
            tables.len(),
            fnv1a(&tables)
        );
    }
}

/// FNV-1a with 64 bits (Fowler, Noll and Vo).
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
