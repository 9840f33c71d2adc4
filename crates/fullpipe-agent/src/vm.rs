//! PID 1 of a virtual machine, QEMU's or User Mode Linux: mounts what a kernel needs, loads the
//! modules that the image brings, finds what it shares with the host (shared.rs), and does whatever
//! takes long and is the same for all runs. Until [`READY_GRID_NS`] is over it then sleeps: the host
//! may keep the machine as it is in that moment, and start every later one there. It reads the job
//! only after that, so that a kept machine and one that booted cannot differ. After the run it turns
//! the machine off. It must never know what a request contains.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;

use fullpipe_plan::stream::Frame;
use nix::mount::{mount, MsFlags};
use nix::sys::reboot::{reboot, RebootMode};
use serde::Deserialize;

use crate::clock::{now_ns, sleep_until};
use crate::differential::{self, Scripts};
use crate::kernel_cc::{load, watch_sockets, Code, Loaded, Wanted};
use crate::kernel_log::WithLog;
use crate::request::Request;
use crate::run::carry_out;
use crate::sample::Processors;
use crate::shared::{Opened, Shared};
use crate::sink::Sink;

/// A machine wakes at a whole multiple of this to read its job, and sleeps for a tenth at least.
const READY_GRID_NS: u64 = 1_000_000_000;
/// Congestion controls that are loaded before any run is known: a list of [`Set`], and the objects.
const READY: &str = "/ready";
const READY_LIST: &str = "/ready/sets.json";
/// Bytes of a trace in one frame.
const TRACE_FRAME_BYTES: usize = 1 << 18;

/// The work that the host gives this machine.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    #[serde(default)]
    request: Option<Request>,
    /// Or scripts that are played to it.
    #[serde(default)]
    scripts: Scripts,
    /// Names of modules without which it cannot be run.
    modules: Vec<String>,
    /// Names and bytes of the files that follow, for the request's folder of objects.
    objects: Vec<(String, usize)>,
}

/// An algorithm with constants that runs may want.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    algorithm: String,
    /// Stored constants.
    params: Vec<u32>,
}

/// The modules of the image.
struct Modules {
    loaded: Vec<String>,
    refused: HashMap<String, String>,
}

/// Never returns: the machine ends.
pub(crate) fn main() -> ! {
    if let Err(sentence) = serve() {
        // Goes to the console; the host shows its last lines with the error.
        println!("fullpipe-agent: {sentence}");
    }
    // A machine that cannot be turned off resets; QEMU runs with -no-reboot and ends.
    let _ = reboot(RebootMode::RB_POWER_OFF);
    let _ = reboot(RebootMode::RB_AUTOBOOT);
    loop {
        std::thread::park();
    }
}

fn serve() -> Result<(), String> {
    mount_all()?;
    leave_memory_to_tcp()?;
    // The host interrupts a machine that hangs, and the kernel then says where it is (watch.py).
    let _ = fs::write("/proc/sys/kernel/unknown_nmi_panic", "1");
    let modules = load_modules();
    let shared = Shared::find()?;
    let ready = load_sets()?;
    // Reading the kernel's types takes long. Where it cannot be done, the run says why.
    let _ = watch_sockets(READY, true);
    let wake_ns = (now_ns() + READY_GRID_NS / 10).next_multiple_of(READY_GRID_NS);
    shared.say_ready()?;
    sleep_until(wake_ns);
    run(shared, &modules, ready)
}

fn run(shared: Shared, modules: &Modules, mut ready: Vec<Loaded>) -> Result<(), String> {
    let Opened {
        job,
        files,
        mut sink,
        idle_ns,
    } = shared.open()?;
    let mut files = files.as_ref();
    let job: Job = serde_json::from_slice(&job).map_err(|error| format!("job: {error}"))?;
    let folder = job
        .request
        .as_ref()
        .map_or("/run", |request| &request.objects);
    for (name, bytes) in &job.objects {
        let (content, rest) = files
            .split_at_checked(*bytes)
            .ok_or("job: its files are not whole")?;
        let path = format!("{folder}/{name}");
        fs::write(&path, content).map_err(|error| format!("{path}: {error}"))?;
        // Some are programs.
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&path, mode).map_err(|error| format!("{path}: {error}"))?;
        files = rest;
    }
    if let Some(error) = job
        .modules
        .iter()
        .find_map(|name| modules.refused.get(name))
    {
        sink.put(&Frame::Failure(error.clone()));
        return Ok(());
    }
    sink.put(&Frame::Fact("modules".into(), modules.loaded.join(" ")));
    let Some(request) = &job.request else {
        differential::answer(&job.scripts, &mut sink);
        return Ok(());
    };
    let mut logged = WithLog::new(&mut sink);
    carry_out(request, Processors { idle_ns }, &mut ready, &mut logged);
    logged.finish();
    // They end with the machine; to take each out of the kernel first would only cost time.
    std::mem::forget(ready);
    match &request.cc_trace {
        Some(path) => hand_over(path, &mut sink).map_err(|error| format!("{path}: {error}")),
        None => Ok(()),
    }
}

/// Puts a file into the stream, since files of the machine end with it.
fn hand_over(path: &str, sink: &mut dyn Sink) -> io::Result<()> {
    let mut file = File::open(path)?;
    loop {
        let mut bytes = vec![0; TRACE_FRAME_BYTES];
        let have = file.read(&mut bytes)?;
        if have == 0 {
            return Ok(());
        }
        bytes.truncate(have);
        sink.put(&Frame::Trace(bytes));
    }
}

fn mount_all() -> Result<(), String> {
    for (kind, target) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/run"),
        ("bpf", "/sys/fs/bpf"),
    ] {
        // Folders of sysfs exist already.
        let _ = fs::create_dir_all(target);
        mount(
            Some(kind),
            target,
            Some(kind),
            MsFlags::empty(),
            None::<&str>,
        )
        .map_err(|error| format!("mounting {target}: {error}"))?;
    }
    Ok(())
}

/// A kernel gives a sixteenth of its memory to TCP and shrinks windows beyond (tcp_init_mem()). Hosts
/// that carry fast and long paths have memory for that; this machine has it for nothing else.
fn leave_memory_to_tcp() -> Result<(), String> {
    let facts = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total_kib: u64 = facts
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.strip_suffix("kB"))
        .and_then(|figure| figure.trim().parse().ok())
        .ok_or("/proc/meminfo: no MemTotal")?;
    let half_pages = total_kib / 8;
    let limits = format!("{half_pages} {half_pages} {half_pages}");
    fs::write("/proc/sys/net/ipv4/tcp_mem", limits).map_err(|error| format!("tcp_mem: {error}"))
}

/// Loads the files that `/modules/order` names, one a line. Which of them a run needs is not known
/// yet, so one that the kernel refuses is only noted.
fn load_modules() -> Modules {
    let mut modules = Modules {
        loaded: Vec::new(),
        refused: HashMap::new(),
    };
    let order = fs::read_to_string("/modules/order").unwrap_or_default();
    for name in order.lines() {
        let loaded = File::open(format!("/modules/{name}.ko")).and_then(|file| {
            let flags = nix::kmod::ModuleInitFlags::empty();
            Ok(nix::kmod::finit_module(file.as_fd(), c"", flags)?)
        });
        match loaded {
            Ok(()) => modules.loaded.push(name.to_owned()),
            Err(error) => {
                let sentence = format!("module {name}: {error}");
                modules.refused.insert(name.to_owned(), sentence);
            }
        }
    }
    modules
}

/// Loads the sets of the image: reading the kernel's types and verifying programs is most of what a
/// run's start costs, and the same for all. One that this kernel refuses is left to the run that wants
/// it, which says why.
fn load_sets() -> Result<Vec<Loaded>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{READY_LIST}: {error}");
    let text = fs::read(READY_LIST).map_err(|error| failed(&error))?;
    let sets: Vec<Set> = serde_json::from_slice(&text).map_err(|error| failed(&error))?;
    let mut ready = Vec::with_capacity(sets.len());
    for (number, set) in sets.iter().enumerate() {
        let path = format!("{READY}/{}.bpf.o", set.algorithm);
        let object = fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
        let loaded = load(&Wanted {
            code: Code::Object(&object),
            algorithm: &set.algorithm,
            kernel_name: &format!("ready{number}"),
            params: &set.params,
            is_traced: false,
        });
        ready.extend(loaded.ok());
    }
    Ok(ready)
}
