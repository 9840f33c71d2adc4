//! The agent runs on the kernel that is measured. As PID 1 it is the whole user space of the virtual
//! machine; otherwise it carries out one command of the Python front end, with JSON on standard input.
//! It must not parse a unit or choose a default: the plan states everything.

use std::io::{Read, Write};
use std::process::ExitCode;

mod activities;
mod activity;
mod agenda;
mod check;
mod clock;
mod cmd_kernel;
mod cmd_watch;
mod congestion;
mod differential;
mod health;
mod kernel_cc;
mod kernel_log;
mod net;
mod packet_socket;
mod peer;
mod request;
mod run;
mod sample;
mod session;
mod shared;
mod sink;
mod socket;
mod tcp_flow;
mod token;
mod two_hosts;
mod vm;

use request::Request;
use sample::Processors;
use sink::FileSink;

fn main() -> ExitCode {
    if std::process::id() == 1 {
        vm::main()
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["run", output] => run(output),
        ["serve", address, objects] => serve(address, objects),
        ["kernel", verb] => cmd_kernel::run(verb),
        ["version"] => {
            println!("{}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        _ => Err(
            "usage: fullpipe-agent run OUTPUT | serve ADDRESS OBJECTS | kernel VERB | version"
                .to_owned(),
        ),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            // Standard error may be closed.
            let _ = writeln!(std::io::stderr(), "fullpipe-agent: {sentence}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the request on standard input in namespaces of this host's kernel; frames go to `output`.
fn run(output: &str) -> Result<(), String> {
    let mut text = Vec::new();
    std::io::stdin()
        .read_to_end(&mut text)
        .map_err(|error| format!("standard input: {error}"))?;
    let request: Request =
        serde_json::from_slice(&text).map_err(|error| format!("request: {error}"))?;
    let mut sink = FileSink::create(output).map_err(|error| format!("{output}: {error}"))?;
    run::carry_out(&request, Processors::default(), &mut Vec::new(), &mut sink);
    sink.finish().map_err(|error| format!("{output}: {error}"))
}

/// Serves near ends. The token is the first line of standard input, so that no process list shows it.
fn serve(address: &str, objects: &str) -> Result<(), String> {
    let mut line = String::new();
    std::io::stdin()
        .read_line(&mut line)
        .map_err(|error| format!("standard input: {error}"))?;
    let token = line.trim();
    if token.is_empty() {
        return Err("no token on standard input".to_owned());
    }
    two_hosts::serve(address, token.to_owned(), objects.to_owned())
}
