//! PID 1 of the virtual machine: mounts what a kernel needs, loads the modules that the image
//! brings, finds the memory that it shares with the host (an ivshmem device: plain memory, so that
//! nothing in it takes virtual time or depends on the host's), and does whatever takes long and is
//! the same for all runs. Until [`READY_GRID_NS`] is over it then sleeps: the host may keep the
//! machine as it is in that moment, and start every later one there. It reads the job from the
//! memory only after that, so that a kept machine and one that booted cannot differ. After the run it
//! turns the machine off. It must never know what a request contains.
//!
//! The memory: [`Header`]; at [`JOB_OFFSET`] the job (JSON), behind it the files that it
//! names; where the header says, frames.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use fullpipe_plan::stream::Frame;
use nix::mount::{mount, MsFlags};
use nix::sys::mman::{mmap, MapFlags, ProtFlags};
use nix::sys::reboot::{reboot, RebootMode};
use serde::Deserialize;

use crate::clock::{now_ns, sleep_until};
use crate::kernel_cc::{load, Loaded, Wanted};
use crate::request::Request;
use crate::sample::Processors;
use crate::session;
use crate::sink::{MemorySink, Sink};

const MAGIC: &[u8; 8] = b"fullpipe";
const JOB_OFFSET: usize = 4096;
/// A machine wakes at a whole multiple of this to read its job, and sleeps for a tenth at least.
const READY_GRID_NS: u64 = 1_000_000_000;
/// Congestion controls that are loaded before any run is known: a list of [`Set`], and the objects.
const READY: &str = "/ready";
const READY_LIST: &str = "/ready/sets.json";
/// Bytes of a trace in one frame.
const TRACE_FRAME_BYTES: usize = 1 << 18;
/// Vendor and device of QEMU's ivshmem (QEMU docs/specs/ivshmem-spec).
const IVSHMEM: (&str, &str) = ("0x1af4", "0x1110");

/// The first bytes of the shared memory; all little endian.
#[repr(C)]
struct Header {
    magic: [u8; 8],
    job_bytes: u64,
    stream_offset: u64,
    /// Not zero: the guest sleeps until it reads its job (qemu/turnstile.c). Written by the guest,
    /// all else by the host.
    ready: AtomicU32,
    /// For how long the processor has idled; written whenever it has. Zero: this QEMU does not say.
    idle_ns: AtomicU64,
}

/// The work that the host gives this machine.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    request: Request,
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
    let modules = load_modules();
    let memory = shared_memory()?;
    let ready = load_sets()?;
    let wake_ns = (now_ns() + READY_GRID_NS / 10).next_multiple_of(READY_GRID_NS);
    header(memory)?.ready.store(1, Ordering::Release);
    sleep_until(wake_ns);
    run(memory, &modules, ready)
}

fn run(memory: &'static mut [u8], modules: &Modules, mut ready: Vec<Loaded>) -> Result<(), String> {
    let bad = || "the shared memory holds no job".to_owned();
    let (head, rest) = memory.split_at_mut_checked(JOB_OFFSET).ok_or_else(bad)?;
    let head = header(head)?;
    let (job_bytes, stream_offset) = (head.job_bytes as usize, head.stream_offset as usize);
    if &head.magic != MAGIC {
        return Err(bad());
    }
    let (front, stream) = stream_offset
        .checked_sub(JOB_OFFSET)
        .and_then(|offset| rest.split_at_mut_checked(offset))
        .ok_or_else(bad)?;
    let (text, mut files) = front.split_at_checked(job_bytes).ok_or_else(bad)?;
    let job: Job = serde_json::from_slice(text).map_err(|error| format!("job: {error}"))?;
    for (name, bytes) in &job.objects {
        let (content, rest) = files.split_at_checked(*bytes).ok_or_else(bad)?;
        let path = format!("{}/{name}", job.request.objects);
        fs::write(&path, content).map_err(|error| format!("{path}: {error}"))?;
        // Some are programs.
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&path, mode).map_err(|error| format!("{path}: {error}"))?;
        files = rest;
    }
    let mut sink = MemorySink::new(stream);
    if let Some(error) = job
        .modules
        .iter()
        .find_map(|name| modules.refused.get(name))
    {
        sink.put(&Frame::Failure(error.clone()));
        return Ok(());
    }
    sink.put(&Frame::Fact("modules".into(), modules.loaded.join(" ")));
    let tells = head.idle_ns.load(Ordering::Relaxed) > 0;
    let processors = Processors {
        idle_ns: tells.then_some(&head.idle_ns),
    };
    session::run(&job.request, processors, &mut ready, &mut sink);
    // They end with the machine; to take each out of the kernel first would only cost time.
    std::mem::forget(ready);
    match &job.request.cc_trace {
        Some(path) => hand_over(path, &mut sink).map_err(|error| format!("{path}: {error}")),
        None => Ok(()),
    }
}

fn header(memory: &[u8]) -> Result<&Header, String> {
    if memory.len() < JOB_OFFSET {
        return Err("the shared memory is too small".to_owned());
    }
    // SAFETY: the memory is larger than a header, begins at a page, and lives as long as the
    // reference; every value of its bytes is one of the fields' types.
    Ok(unsafe { &*memory.as_ptr().cast::<Header>() })
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
            object: &object,
            algorithm: &set.algorithm,
            kernel_name: &format!("ready{number}"),
            params: &set.params,
            is_traced: false,
        });
        ready.extend(loaded.ok());
    }
    Ok(ready)
}

fn shared_memory() -> Result<&'static mut [u8], String> {
    let folder = find_device()?;
    let path = folder.join("resource2");
    // The kernel opens a device's memory only after the device is enabled.
    fs::write(folder.join("enable"), "1").map_err(|error| format!("enabling ivshmem: {error}"))?;
    let file = File::options()
        .read(true)
        .write(true)
        .open(&path)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let bytes = file
        .metadata()
        .ok()
        .and_then(|facts| std::num::NonZeroUsize::new(facts.len() as usize))
        .ok_or_else(|| format!("{}: has no size", path.display()))?;
    let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a fresh mapping of a device's memory, which nothing in this process aliases and
    // which is never unmapped.
    unsafe {
        let start = mmap(None, bytes, protection, MapFlags::MAP_SHARED, &file, 0)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(std::slice::from_raw_parts_mut(
            start.as_ptr().cast(),
            bytes.get(),
        ))
    }
}

fn find_device() -> Result<PathBuf, String> {
    let devices = fs::read_dir("/sys/bus/pci/devices").map_err(|error| format!("PCI: {error}"))?;
    let reads = |folder: &PathBuf, name: &str, value: &str| {
        fs::read_to_string(folder.join(name)).is_ok_and(|text| text.trim() == value)
    };
    devices
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|folder| reads(folder, "vendor", IVSHMEM.0) && reads(folder, "device", IVSHMEM.1))
        .ok_or_else(|| "no ivshmem device".to_owned())
}
