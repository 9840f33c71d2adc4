//! Reads a qlog file by the data model of the `qlog` crate and prints how many events of each name
//! it holds. An event that the model does not know ends it with status 1.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::process::ExitCode;

use qlog::events::EventType;
use qlog::reader::{Event, QlogSeqReader};

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: fullpipe-qlog-check FILE");
        return ExitCode::from(2);
    };
    match counts(&path) {
        Ok(found) => {
            for (name, count) in found {
                println!("{name} {count}");
            }
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("{path}: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Event names with their numbers.
fn counts(path: &str) -> Result<BTreeMap<String, u64>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let reader = QlogSeqReader::new(Box::new(BufReader::new(file))).map_err(|e| e.to_string())?;
    let mut found = BTreeMap::new();
    for event in reader {
        match event {
            Event::Qlog(event) => {
                let name = format!("{:?}", EventType::from(&event.data));
                *found.entry(name).or_insert(0) += 1;
            }
            Event::Json(event) => return Err(format!("unknown event {}", event.name)),
        }
    }
    Ok(found)
}
