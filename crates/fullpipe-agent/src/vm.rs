//! PID 1 of the virtual machine: mounts what a kernel needs, loads the modules that the image
//! brings, finds the memory that it shares with the host (an ivshmem device: plain memory, so that
//! nothing in it takes virtual time or depends on the host's), runs the request that lies in it,
//! and turns the machine off. It must never know what a request means.
//!
//! The memory: 8 bytes [`MAGIC`], 8 bytes length of the request, the request (JSON); frames begin
//! at [`STREAM_OFFSET`] after them, rounded up.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::PathBuf;

use fullpipe_scenario::stream::Frame;
use nix::mount::{mount, MsFlags};
use nix::sys::mman::{mmap, MapFlags, ProtFlags};
use nix::sys::reboot::{reboot, RebootMode};

use crate::request::Request;
use crate::session;
use crate::sink::{MemorySink, Sink};

const MAGIC: &[u8; 8] = b"fullpipe";
/// The stream begins at the next multiple of this.
const STREAM_OFFSET: usize = 4096;
/// Bytes of a trace in one frame.
const TRACE_FRAME_BYTES: usize = 1 << 18;
/// Vendor and device of QEMU's ivshmem (QEMU docs/specs/ivshmem-spec).
const IVSHMEM: (&str, &str) = ("0x1af4", "0x1110");

/// Never returns: the machine ends.
pub(crate) fn main() -> ! {
    if let Err(sentence) = serve() {
        // Goes to the console, whose end the host shows with its error.
        println!("fullpipe-agent: {sentence}");
    }
    // A machine that cannot be turned off resets, which QEMU is told to take for the end.
    let _ = reboot(RebootMode::RB_POWER_OFF);
    let _ = reboot(RebootMode::RB_AUTOBOOT);
    loop {
        std::thread::park();
    }
}

fn serve() -> Result<(), String> {
    mount_all()?;
    let modules = load_modules()?;
    let memory = shared_memory()?;
    let (text, stream) = split(memory)?;
    let mut sink = MemorySink::new(stream);
    let request: Request =
        serde_json::from_slice(text).map_err(|error| format!("request: {error}"))?;
    sink.put(&Frame::Fact("modules".into(), modules));
    session::run(&request, &mut sink);
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

/// Loads the files that `/modules/order` names, one a line, and returns their names.
fn load_modules() -> Result<String, String> {
    let order = fs::read_to_string("/modules/order").unwrap_or_default();
    for name in order.lines() {
        let path = format!("/modules/{name}");
        let file = File::open(&path).map_err(|error| format!("{path}: {error}"))?;
        nix::kmod::finit_module(file.as_fd(), c"", nix::kmod::ModuleInitFlags::empty())
            .map_err(|error| format!("module {name}: {error}"))?;
    }
    Ok(order.lines().collect::<Vec<_>>().join(" "))
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

fn split(memory: &'static mut [u8]) -> Result<(&'static [u8], &'static mut [u8]), String> {
    let bad = || "the shared memory holds no request".to_owned();
    let (head, rest) = memory.split_first_chunk_mut::<16>().ok_or_else(bad)?;
    let (magic, length) = head.split_at(8);
    let length = u64::from_le_bytes(length.try_into().map_err(|_| bad())?) as usize;
    let stream_start = (16usize.saturating_add(length)).div_ceil(STREAM_OFFSET) * STREAM_OFFSET;
    if magic != MAGIC || stream_start > rest.len() {
        return Err(bad());
    }
    let (request, stream) = rest.split_at_mut(stream_start - 16);
    Ok((&request[..length], stream))
}
