//! Congestion controls that outlive the process that loaded them: each has a folder of the bpf file
//! system, `fullpipe/NAME`, with its registration and the maps that say what it is and which sockets use it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::mount::{mount, MsFlags};
use nix::sys::statfs::{statfs, BPF_FS_MAGIC};
use serde::Serialize;

use super::features::check_rights;
use super::load::{available, Loaded};
use super::module::{self, Described, Device};
use super::settings::{check_name, Counters, Settings};

const BPF_FS: &str = "/sys/fs/bpf";
const FOLDER: &str = "/sys/fs/bpf/fullpipe";
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// The registration: a link, or before Linux 6.4 the struct_ops map.
const LINK: &str = "link";
const OPS: &str = "ops";
const SETTINGS: &str = "settings";
const COUNTERS: &str = "counters";
/// State by socket.
const SOCKETS: &str = "sockets";
/// Separates name and number of a folder whose congestion control was unloaded but is still in use.
const LEAVING: char = '@';

/// One congestion control that is, or was, registered.
#[derive(Debug, Serialize)]
pub(crate) struct Listed {
    /// The name that sockets choose.
    kernel_name: String,
    /// Name in the registry.
    algorithm: String,
    /// Stored constants.
    params: Vec<u32>,
    /// Sockets that use it now.
    sockets: u32,
    /// Sockets that ever used it.
    opened: u32,
    /// New sockets can choose it.
    is_registered: bool,
    /// It is of the kernel module, not eBPF.
    is_module: bool,
}

impl Loaded {
    /// Keeps the registration beyond this process, until [`unload`].
    pub(crate) fn keep(mut self) -> Result<(), String> {
        if self.is_module() {
            std::mem::forget(self); // it stays until the module goes
            return Ok(());
        }
        let folder = Path::new(FOLDER).join(self.kernel_name());
        retire(&folder)?;
        fs::create_dir_all(&folder).map_err(|error| at(&folder, &error))?;
        let pinned = self.pin_into(&folder);
        if pinned.is_err() {
            remove(&folder);
        }
        pinned
    }

    fn pin_into(&mut self, folder: &Path) -> Result<(), String> {
        self.pin_map(".rodata", &folder.join(SETTINGS))?;
        self.pin_map(".bss", &folder.join(COUNTERS))?;
        self.pin_map("fp_sockets", &folder.join(SOCKETS))?;
        self.pin_map("fp_ops", &folder.join(OPS))?;
        // Last: from here on it outlives this process.
        if let Some(mut link) = self.take_link() {
            let path = folder.join(LINK);
            link.pin(&path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }

    fn pin_map(&self, name: &str, path: &Path) -> Result<(), String> {
        let failed = |error| format!("{}: {error}", path.display());
        let mut handle = MapHandle::try_from(&self.map(name)?).map_err(failed)?;
        handle.pin(path).map_err(failed)
    }
}

/// Registered congestion controls, and unloaded ones that sockets still use; removes the others.
pub(crate) fn list() -> Result<Vec<Listed>, String> {
    check_rights()?;
    let mut found = Vec::new();
    for folder in folders()? {
        match describe(&folder) {
            Some(item) if item.is_registered || item.sockets > 0 => found.push(item),
            // A link that cannot be described still holds its registration.
            None if folder.join(LINK).exists() => {}
            _ => remove(&folder),
        }
    }
    found.extend(of_module()?.iter().map(Listed::from));
    found.sort_by(|a, b| a.kernel_name.cmp(&b.kernel_name));
    Ok(found)
}

/// Those of the kernel module that are registered or in use.
fn of_module() -> Result<Vec<Described>, String> {
    if !module::is_loaded() {
        return Ok(Vec::new());
    }
    let is_there = |one: &Described| one.is_registered() || one.counters().live > 0;
    Ok(Device::open()?.all().into_iter().filter(is_there).collect())
}

impl From<&Described> for Listed {
    fn from(one: &Described) -> Self {
        Self {
            kernel_name: one.kernel_name(),
            algorithm: one.algorithm(),
            params: one.params().to_vec(),
            sockets: one.counters().live,
            opened: one.counters().opened,
            is_registered: one.is_registered(),
            is_module: true,
        }
    }
}

/// Takes a name of the module away, and with the last one the module.
fn unregister(one: &Described) -> Result<u32, String> {
    let device = Device::open()?;
    device.unregister(&one.kernel_name())?;
    drop(device);
    if !of_module()?.iter().any(Described::is_registered) {
        module::remove(); // which sockets may delay until they close
    }
    Ok(one.counters().live)
}

/// Unregisters the name; returns how many sockets use it until they close.
pub(crate) fn unload(name: &str) -> Result<u32, String> {
    check_name(name)?;
    let listed = list()?;
    let folder = Path::new(FOLDER).join(name);
    let of_module = of_module()?;
    let is_it = |one: &&Described| one.is_registered() && one.kernel_name() == name;
    let of_module = of_module.iter().find(is_it);
    if of_module.is_none() && !folder.is_dir() {
        let known: Vec<&str> = listed
            .iter()
            .filter(|item| item.is_registered)
            .map(|item| item.kernel_name.as_str())
            .collect();
        return Err(match known.is_empty() {
            true => format!("{name} is not loaded; nothing is"),
            false => format!("{name} is not loaded; loaded are {}", known.join(", ")),
        });
    }
    if fs::read_to_string(DEFAULT).is_ok_and(|default| default.trim() == name) {
        // It is the kernel's default, which every new socket gets.
        return Err(format!(
            "{name} is this host's default congestion control: choose another one first, such as \
             sysctl net.ipv4.tcp_congestion_control=cubic"
        ));
    }
    if let Some(one) = of_module {
        return unregister(one);
    }
    let path = folder.join(LINK);
    if path.exists() {
        // The last reference to the link unregisters.
        fs::remove_file(&path).map_err(|error| at(&path, &error))?;
    } else if let Ok(ops) = MapHandle::from_pinned_path(folder.join(OPS)) {
        ops.delete(&0u32.to_ne_bytes())
            .map_err(|error| format!("{name} cannot be unregistered: {error}"))?;
    }
    await_end_of(name);
    // A pinned struct_ops map would keep the programs.
    let _ = fs::remove_file(folder.join(OPS));
    let sockets = describe(&folder).map_or(0, |item| item.sockets);
    if sockets > 0 {
        retire(&folder)?;
    } else {
        remove(&folder);
    }
    Ok(sockets)
}

/// Waits until the kernel has unregistered the name, some milliseconds after the last reference was
/// dropped (bpf_link_put() leaves it to a worker).
fn await_end_of(name: &str) {
    const LOOKS: u32 = 500;
    const PAUSE: Duration = Duration::from_millis(10);
    for _ in 0..LOOKS {
        if !available().iter().any(|known| known == name) {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

fn folders() -> Result<Vec<PathBuf>, String> {
    let folder = Path::new(FOLDER);
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(at(folder, &error)),
    }
}

/// The maps of sockets' states, of everything that is or was registered here.
pub(super) fn registrations() -> Result<Vec<(Settings, MapHandle)>, String> {
    check_rights()?;
    Ok(folders()?
        .iter()
        .filter_map(|folder| {
            let settings = MapHandle::from_pinned_path(folder.join(SETTINGS)).ok()?;
            let bytes = settings
                .lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
                .ok()
                .flatten()?;
            // Versions without `watch` did not pin this map.
            let sockets = MapHandle::from_pinned_path(folder.join(SOCKETS)).ok()?;
            Some((Settings::read(&bytes)?, sockets))
        })
        .collect())
}

fn describe(folder: &Path) -> Option<Listed> {
    let settings = MapHandle::from_pinned_path(folder.join(SETTINGS)).ok()?;
    let bytes = settings
        .lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
        .ok()
        .flatten()?;
    let settings = Settings::read(&bytes)?;
    let counters = MapHandle::from_pinned_path(folder.join(COUNTERS)).ok()?;
    let counters = Counters::read(&counters).ok()?;
    let is_kept = folder.join(LINK).exists() || folder.join(OPS).exists();
    Some(Listed {
        is_registered: is_kept && available().contains(&settings.kernel_name),
        kernel_name: settings.kernel_name,
        algorithm: settings.algorithm,
        params: settings.params,
        sockets: counters.live,
        opened: counters.opened,
        is_module: false,
    })
}

/// Renames the folder of a name, if there is one: its maps still count sockets.
fn retire(folder: &Path) -> Result<(), String> {
    if !folder.exists() {
        return Ok(());
    }
    let free = (1u32..)
        .map(|number| PathBuf::from(format!("{}{LEAVING}{number}", folder.display())))
        .find(|path| !path.exists());
    match free {
        Some(path) => fs::rename(folder, path).map_err(|error| at(folder, &error)),
        None => Ok(()),
    }
}

fn remove(folder: &Path) {
    for name in [LINK, OPS, SETTINGS, COUNTERS, SOCKETS] {
        // It may be gone already.
        let _ = fs::remove_file(folder.join(name));
    }
    let _ = fs::remove_dir(folder);
}

/// The folder of [`Loaded::keep`]; the error says what is missing.
pub(crate) fn ensure_mounted() -> Result<(), String> {
    let is_mounted = statfs(BPF_FS).is_ok_and(|found| found.filesystem_type() == BPF_FS_MAGIC);
    if is_mounted {
        return Ok(());
    }
    mount(
        Some("bpf"),
        BPF_FS,
        Some("bpf"),
        MsFlags::empty(),
        None::<&str>,
    )
    .map_err(|error| {
        format!(
            "no bpf file system at {BPF_FS}, where a congestion control is kept, and none can be \
             mounted there: {error}"
        )
    })
}

fn at(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}
