//! Reads plans as JSON, one a line, from standard input; prints for each the number of events and every
//! table that its run left, as JSON, one a line. Built without optimisation it must print what the
//! Python module records. A package of its own: the simulator's has tools of its tests to compile.

use std::io::{self, BufRead};

use fullpipe_sim::{read_plan, run, Inputs};

fn main() {
    for line in io::stdin().lock().lines() {
        let line = line.expect("standard input is text");
        let plan = read_plan(&line).expect("every line is a plan");
        let done = run(&plan, Inputs::default(), &mut |_| true).expect("the plan is sound");
        let tables: Vec<_> = done.tables.into_columns().collect();
        let text = serde_json::to_string(&(done.events, tables)).expect("tables are plain");
        println!("{text}");
    }
}
