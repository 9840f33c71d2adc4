//! `fullpipe-agent kernel load | list | unload | trace | watch`: a request in JSON on standard input, the
//! answer in JSON on standard output. A trace lasts until standard input ends. It must never know
//! how a congestion control is loaded.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read};

use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::json;

use crate::cmd_watch;
use crate::kernel_cc::{self, Code, Tracer, Wanted};

/// What to load, as the front end resolved it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// File that bpf/build.sh made; or, if `is_module`, the kernel module, which is loaded where the
    /// kernel has none yet.
    object: String,
    #[serde(default)]
    is_module: bool,
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
}

/// Executes the command `verb`.
pub(crate) fn run(verb: &str) -> Result<(), String> {
    match verb {
        "load" => {
            let request: Request = read()?;
            if !request.is_module {
                kernel_cc::ensure_mounted()?;
            }
            load(&request, false)?.keep()?;
            println!("{}", json!({ "kernel_name": request.kernel_name }));
        }
        "list" => println!("{}", json!(kernel_cc::list()?)),
        "unload" => {
            let sockets = kernel_cc::unload(&read::<Unload>()?.kernel_name)?;
            println!("{}", json!({ "sockets": sockets }));
        }
        "trace" => return trace(),
        "watch" => return cmd_watch::run(),
        _ => {
            return Err(
                "usage: fullpipe-agent kernel load | list | unload | trace | watch".to_owned(),
            )
        }
    }
    Ok(())
}

fn read<T: DeserializeOwned>() -> Result<T, String> {
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| format!("standard input: {error}"))?;
    parse(&text)
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_slice(text.as_bytes()).map_err(|error| format!("request: {error}"))
}

fn load(request: &Request, is_traced: bool) -> Result<kernel_cc::Loaded, String> {
    let mut object = Vec::new();
    let code = match request.is_module {
        true => {
            kernel_cc::insert(&request.object, false)?;
            Code::Module
        }
        false => {
            let failed = |error: io::Error| format!("{}: {error}", request.object);
            object.extend(fs::read(&request.object).map_err(failed)?);
            Code::Object(&object)
        }
    };
    kernel_cc::load(&Wanted {
        code,
        algorithm: &request.algorithm,
        kernel_name: &request.kernel_name,
        params: &request.params,
        is_traced,
    })
}

/// Traces from the answer `ready` until standard input ends.
fn trace() -> Result<(), String> {
    let mut line = String::new();
    io::stdin()
        .read_line(&mut line)
        .map_err(|error| format!("standard input: {error}"))?;
    let request: Trace = parse(&line)?;
    let loaded = load(&request.congestion_control, true)?;
    let failed = |error: io::Error| format!("{}: {error}", request.out);
    let file = File::create_new(&request.out).map_err(failed)?;
    let tracer = Tracer::start(&[&loaded], Box::new(BufWriter::new(file)))?;
    println!("{}", json!("ready"));
    io::copy(&mut io::stdin(), &mut io::sink())
        .map_err(|error| format!("standard input: {error}"))?;
    tracer.finish().map_err(failed)
}
