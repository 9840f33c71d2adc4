//! `fullpipe-agent kernel load | list | unload | trace`: a request in JSON on standard input, the
//! answer in JSON on standard output. It must never know how a congestion control is loaded.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::sys::signal::{signal, SigHandler, Signal};
use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::json;

use crate::kernel_cc::{self, Tracer, Wanted};

/// What to load, as the front end resolved it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// File that bpf/build.sh made.
    object: String,
    algorithm: String,
    kernel_name: String,
    params: Vec<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unload {
    kernel_name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Trace {
    congestion_control: Request,
    /// File that the trace goes to.
    out: String,
    /// What to run meanwhile: a program and its arguments.
    command: Vec<String>,
}

/// Does what `verb` says.
pub(crate) fn run(verb: &str) -> Result<(), String> {
    match verb {
        "load" => {
            let request: Request = read()?;
            kernel_cc::ensure_mounted()?;
            load(&request, false)?.keep()?;
            println!("{}", json!({ "kernel_name": request.kernel_name }));
        }
        "list" => println!("{}", json!(kernel_cc::list()?)),
        "unload" => {
            let sockets = kernel_cc::unload(&read::<Unload>()?.kernel_name)?;
            println!("{}", json!({ "sockets": sockets }));
        }
        "trace" => println!("{}", json!({ "failure": trace(&read()?)? })),
        _ => return Err("usage: fullpipe-agent kernel load | list | unload | trace".to_owned()),
    }
    Ok(())
}

fn read<T: DeserializeOwned>() -> Result<T, String> {
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| format!("standard input: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("request: {error}"))
}

fn load(request: &Request, is_traced: bool) -> Result<kernel_cc::Loaded, String> {
    let object =
        fs::read(&request.object).map_err(|error| format!("{}: {error}", request.object))?;
    kernel_cc::load(&Wanted {
        object: &object,
        algorithm: &request.algorithm,
        kernel_name: &request.kernel_name,
        params: &request.params,
        seed: 0,
        is_traced,
    })
}

/// Loads, runs the command, and unloads; returns how the command failed, if it did.
fn trace(request: &Trace) -> Result<Option<String>, String> {
    let (program, arguments) = request
        .command
        .split_first()
        .ok_or("a trace needs a command to run")?;
    let loaded = load(&request.congestion_control, true)?;
    let file = File::create(&request.out).map_err(|error| format!("{}: {error}", request.out))?;
    let release = nix::sys::utsname::uname()
        .map(|name| name.release().to_string_lossy().into_owned())
        .unwrap_or_default();
    let tracer = Tracer::start(&[&loaded], Box::new(BufWriter::new(file)), &release)?;
    // An interruption is the command's business; what was traced until then is kept.
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe { signal(Signal::SIGINT, SigHandler::SigIgn) }.map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    // SAFETY: between fork and exec only signal() is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            signal(Signal::SIGINT, SigHandler::SigDfl)?;
            Ok(())
        })
    };
    let status = command.status();
    tracer
        .finish()
        .map_err(|error| format!("{}: {error}", request.out))?;
    Ok(match status {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("{program}: {status}")),
        Err(error) => Some(format!("{program}: {error}")),
    })
}
