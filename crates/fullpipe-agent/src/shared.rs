//! What a virtual machine shares with its host. In QEMU it is the memory of an ivshmem device: plain
//! memory, so that nothing in it takes virtual time or depends on the host's. User Mode Linux has no
//! such device; there it is a file of the host (hostfs), where time is virtual too. This module must
//! not know what a job contains.
//!
//! The layout: [`Header`]; at [`JOB_OFFSET`] the job, behind it the files that it names; where the
//! header says, frames.

use std::borrow::Cow;
use std::fs::{self, File};
use std::mem::{offset_of, size_of};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicU8, Ordering};

use nix::mount::{mount, MsFlags};
use nix::sys::mman::{mmap, MapFlags, ProtFlags};

use crate::sink::{SharedSink, Space};

const MAGIC: &[u8; 8] = b"fullpipe";
const JOB_OFFSET: usize = 4096;
/// Vendor and device of QEMU's ivshmem (QEMU docs/specs/ivshmem-spec).
const IVSHMEM: (&str, &str) = ("0x1af4", "0x1110");
/// Where the host's folder is mounted, and the file in it.
const HOST_FOLDER: &str = "/host";
const HOST_FILE: &str = "/host/shared";

/// The first bytes; all little endian.
#[repr(C)]
struct Header {
    /// The magic bytes, bytes of the job, and offset of the stream ([`extent`]). Written by the host.
    job: [u64; 3],
    /// [`LAYOUT`] as qemu/turnstile.c has it, written before the guest starts. Zero: there is no
    /// turnstile.
    layout: [AtomicU8; 8],
    /// Not zero: the guest sleeps until it reads its job. Written by the guest for qemu/turnstile.c.
    ready: AtomicU32,
    /// For how long the processor has idled; written by qemu/turnstile.c whenever it has. Zero: this
    /// machine does not say.
    idle_ns: AtomicU64,
}

// Where both sides look for it, whatever else changes.
const _: () = assert!(offset_of!(Header, layout) == 24);

/// Sizes and offsets of [`Header`], in the order of `layout` in qemu/turnstile.c.
const LAYOUT: [u8; 8] = [
    size_of::<Header>() as u8,
    offset_of!(Header, job) as u8,
    offset_of!(Header, layout) as u8,
    size_of::<[AtomicU8; 8]>() as u8,
    offset_of!(Header, ready) as u8,
    size_of::<AtomicU32>() as u8,
    offset_of!(Header, idle_ns) as u8,
    size_of::<AtomicU64>() as u8,
];

pub(crate) enum Shared {
    Memory(&'static mut [u8]),
    File(File),
}

/// The parts of what is shared.
pub(crate) struct Opened {
    pub(crate) job: Cow<'static, [u8]>,
    pub(crate) files: Cow<'static, [u8]>,
    pub(crate) sink: SharedSink,
    pub(crate) idle_ns: Option<&'static AtomicU64>,
}

impl Shared {
    pub(crate) fn find() -> Result<Self, String> {
        match find_device() {
            Some(folder) => Ok(Self::Memory(map(&folder)?)),
            None => host_file().map(Self::File),
        }
    }

    /// The host may keep the machine from now on until it opens the job.
    pub(crate) fn say_ready(&self) -> Result<(), String> {
        if let Self::Memory(memory) = self {
            header(memory)?.ready.store(1, Ordering::Release);
        }
        Ok(())
    }

    pub(crate) fn open(self) -> Result<Opened, String> {
        let bad = || "the shared memory holds no job".to_owned();
        match self {
            Self::Memory(memory) => {
                let (head, rest) = memory.split_at_mut_checked(JOB_OFFSET).ok_or_else(bad)?;
                let (job_bytes, front_bytes) = extent(head).ok_or_else(bad)?;
                let head = header(head)?;
                let (front, stream) = rest.split_at_mut_checked(front_bytes).ok_or_else(bad)?;
                let (job, files) = front.split_at_checked(job_bytes).ok_or_else(bad)?;
                let tells = head.idle_ns.load(Ordering::Relaxed) > 0;
                Ok(Opened {
                    job: Cow::Borrowed(job),
                    files: Cow::Borrowed(files),
                    sink: SharedSink::new(Space::Memory(stream)),
                    idle_ns: tells.then_some(&head.idle_ns),
                })
            }
            Self::File(file) => {
                let failed = |error| format!("{HOST_FILE}: {error}");
                let bytes = file.metadata().map_err(failed)?.len() as usize;
                let read = |at: usize, bytes: usize| {
                    let mut content = vec![0; bytes];
                    let done = file.read_exact_at(&mut content, at as u64);
                    done.map(|()| content).map_err(failed)
                };
                let head = read(0, JOB_OFFSET)?;
                let (job_bytes, front_bytes) = extent(&head).ok_or_else(bad)?;
                let mut job = read(JOB_OFFSET, front_bytes)?;
                let files = job.split_off(job_bytes);
                let start = JOB_OFFSET + front_bytes;
                let left = bytes.checked_sub(start).ok_or_else(bad)?;
                Ok(Opened {
                    job: Cow::Owned(job),
                    files: Cow::Owned(files),
                    sink: SharedSink::new(Space::File(file, start as u64, left)),
                    idle_ns: None,
                })
            }
        }
    }
}

/// Bytes of the job, and of the job and its files, from the first bytes; `None`: there is no job.
fn extent(head: &[u8]) -> Option<(usize, usize)> {
    let word = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
    let front_bytes = (word(16)? as usize).checked_sub(JOB_OFFSET)?;
    let job_bytes = word(8)? as usize;
    (head.starts_with(MAGIC) && job_bytes <= front_bytes).then_some((job_bytes, front_bytes))
}

/// The first bytes of the memory, if QEMU's side means the same by them.
fn header(memory: &[u8]) -> Result<&Header, String> {
    if memory.len() < JOB_OFFSET {
        return Err("the shared memory is too small".to_owned());
    }
    // SAFETY: the memory is larger than a header, begins at a page, and lives as long as the
    // reference; every value of its bytes is one of the fields' types.
    let header = unsafe { &*memory.as_ptr().cast::<Header>() };
    let theirs = header
        .layout
        .each_ref()
        .map(|byte| byte.load(Ordering::Relaxed));
    match theirs {
        LAYOUT | [0, ..] => Ok(header),
        _ => Err(format!(
            "shared memory: the header's sizes and offsets are {theirs:?} in qemu/turnstile.c and \
             {LAYOUT:?} in the agent: they are of different builds; `make build` makes both"
        )),
    }
}

fn host_file() -> Result<File, String> {
    let failed = |error: &dyn std::fmt::Display| {
        format!("no ivshmem device, and {HOST_FILE} of User Mode Linux: {error}")
    };
    fs::create_dir_all(HOST_FOLDER).map_err(|error| failed(&error))?;
    mount(
        Some("none"),
        HOST_FOLDER,
        Some("hostfs"),
        MsFlags::empty(),
        None::<&str>,
    )
    .map_err(|error| failed(&error))?;
    let file = File::options().read(true).write(true).open(HOST_FILE);
    file.map_err(|error| failed(&error))
}

fn map(folder: &Path) -> Result<&'static mut [u8], String> {
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

/// The folder of the ivshmem device; `None`: this machine has none.
fn find_device() -> Option<PathBuf> {
    // User Mode Linux has no PCI.
    let devices = fs::read_dir("/sys/bus/pci/devices").ok()?;
    let reads = |folder: &PathBuf, name: &str, value: &str| {
        fs::read_to_string(folder.join(name)).is_ok_and(|text| text.trim() == value)
    };
    devices
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|folder| reads(folder, "vendor", IVSHMEM.0) && reads(folder, "device", IVSHMEM.1))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const TURNSTILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../qemu/turnstile.c");

    /// Two pages with a job of two bytes, as qemu/turnstile.c of this source leaves them to the guest.
    fn memory_behind(turnstile: &str, name: &str) -> &'static mut [u8] {
        let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let [source, library, shared] =
            ["turnstile.c", "turnstile.so", "shared"].map(|name| folder.join(name));
        fs::write(&source, turnstile).expect("written");
        let mut memory = vec![0; 2 * JOB_OFFSET];
        memory[..8].copy_from_slice(MAGIC);
        memory[8..16].copy_from_slice(&2u64.to_le_bytes());
        memory[16..24].copy_from_slice(&(JOB_OFFSET as u64 + 2).to_le_bytes());
        fs::write(&shared, &memory).expect("written");
        let compiled = Command::new("cc")
            .args(["-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .status();
        assert!(compiled.expect("a C compiler").success());
        let preloaded = Command::new("true")
            .env("LD_PRELOAD", &library)
            .env("FULLPIPE_SHARED", &shared)
            .status();
        assert!(preloaded.expect("true").success());
        memory = fs::read(&shared).expect("read");
        fs::remove_dir_all(&folder).expect("removed");
        let words = vec![[0u64; JOB_OFFSET / 8]; 2].leak();
        // SAFETY: a slice of words that is never freed, seen as its bytes.
        let aligned = unsafe {
            std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), memory.len())
        };
        aligned.copy_from_slice(&memory);
        aligned
    }

    #[test]
    fn qemus_side_and_the_guests_agree_on_the_header() {
        let source = fs::read_to_string(TURNSTILE).expect("its source");
        let memory = memory_behind(&source, "agrees");
        let layout = offset_of!(Header, layout);
        assert_eq!(memory[layout..layout + 8], LAYOUT);
        assert!(Shared::Memory(memory).open().is_ok());
    }

    #[test]
    fn a_header_that_grew_at_qemus_side_is_refused_with_both_layouts() {
        let source = fs::read_to_string(TURNSTILE).expect("its source");
        let (ready, idle) = ("_Atomic(uint32_t) ready;", "_Atomic(int64_t) idle_ns;\n};");
        for (before, after) in [
            (ready, format!("uint64_t more; {ready}")),
            (ready, format!("{ready} uint64_t more;")),
            (idle, idle.replace("};", "char more; };")),
        ] {
            let grown = source.replacen(before, &after, 1);
            assert_ne!(grown, source);
            let refused = Shared::Memory(memory_behind(&grown, "grew")).open();
            let sentence = refused.err().expect("refused");
            assert!(sentence.contains("qemu/turnstile.c"), "{sentence}");
            assert!(sentence.contains(&format!("{LAYOUT:?}")), "{sentence}");
        }
    }

    #[test]
    fn a_machine_without_a_turnstile_has_no_layout_to_compare() {
        let memory = memory_behind("typedef int nothing;", "without");
        assert!(Shared::Memory(memory).open().is_ok());
    }
}
