//! Runs plans (JSON files) without Python, so that a profiler sees the simulator and nothing else,
//! and tells of each what it cost. Two builds whose last columns are equal gave equal recordings.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Write as _;
use std::hash::Hasher;
use std::{env, fs};

use fullpipe_sim::{read_plan, run, Inputs, Outcome};

/// What is written into it is only hashed.
struct Digest(DefaultHasher);

impl std::fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

/// Of all that a run left, its count of events apart: a build may need fewer.
fn digest(outcome: Outcome) -> u64 {
    let mut digest = Digest(DefaultHasher::new());
    let counts = (
        outcome.packets_delivered,
        outcome.packets_lost,
        outcome.packets_in_flight,
        outcome.control,
    );
    let mut written = write!(digest, "{counts:?}");
    for table in outcome.tables.into_columns() {
        written = written.and(write!(digest, "{table:?}"));
    }
    written.expect("hashing cannot fail");
    digest.0.finish()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in env::args().skip(1) {
        let plan = read_plan(&fs::read_to_string(&path)?)?;
        let outcome = run(&plan, Inputs::default(), &mut |_| true)?;
        let (packets, events) = (outcome.packets_delivered, outcome.events);
        let digest = digest(outcome);
        println!("{path} {packets} packets {events} events {digest:016x}");
    }
    Ok(())
}
