//! Reads plans as JSON, one a line, from standard input; prints for each the number of events and every
//! table that its run left, as JSON, one a line. Built without optimisation it must print what the
//! Python module records. A package of its own: the simulator's has tools of its tests to compile.
//!
//! With `--digests` a line is `{"plan": ..., "traces": ...}`, as `tests/python/golden.py plans FILE` writes
//! them, and what is printed is the plan's name, a hash of each table and the number of events, with tabs
//! between. So two builds of the simulator are compared without Python.

mod digest;
mod traces;

use std::collections::HashMap;
use std::env;
use std::io::{self, BufRead};

use fullpipe_sim::{read_plan, run, Inputs, Outcome, Plan, Traces};
use serde_json::Value;

fn main() {
    let digests = env::args()
        .nth(1)
        .is_some_and(|option| option == "--digests");
    for line in io::stdin().lock().lines() {
        let line = line.expect("standard input is text");
        match digests {
            true => print_digests(&line),
            false => print_tables(&line),
        }
    }
}

fn print_tables(line: &str) {
    let plan = read_plan(line).expect("every line is a plan");
    let done = outcome(&plan, Traces::default());
    let tables: Vec<_> = done.tables.into_columns().collect();
    let text = serde_json::to_string(&(done.events, tables)).expect("tables are plain");
    println!("{text}");
}

fn print_digests(line: &str) {
    let mut given: HashMap<String, Value> =
        serde_json::from_str(line).expect("every line is an object");
    let mut take = |key: &str| given.remove(key).expect("every line has a plan and traces");
    let plan = read_plan(&take("plan").to_string()).expect("a plan");
    let parts = serde_json::from_value(take("traces")).expect("traces in four columns");
    let done = outcome(&plan, traces::of_parts(parts));
    let events = done.events;
    println!("{}\t{}\t{events}", plan.name, digest::line(done));
}

fn outcome(plan: &Plan, traces: Traces) -> Outcome {
    let inputs = Inputs {
        traces,
        ..Inputs::default()
    };
    run(plan, inputs, &mut |_| true).expect("the plan is sound")
}
