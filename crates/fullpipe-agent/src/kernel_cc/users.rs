//! The sockets of other processes that use our congestion controls, with the algorithm's state of
//! each. A socket's descriptor is duplicated (pidfd_getfd(2)) only while it is read: kept longer, the
//! socket would outlive its owner's close. Sockets of the kernel itself are not seen.

use std::collections::HashSet;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use super::module::{self, Device};
use super::pins::registrations;
use super::settings::Settings;
use crate::sample::option;

/// One socket at the time of a sample.
pub(crate) struct User {
    /// A copy of the owner's descriptor.
    pub(crate) socket: OwnedFd,
    /// The same in every sample.
    pub(crate) inode: u64,
    /// Name of the process.
    pub(crate) program: String,
    /// The socket's congestion control.
    pub(crate) kernel_name: String,
    pub(crate) algorithm: String,
    pub(crate) params: Vec<u32>,
    /// Whether it paces.
    pub(crate) owns_cwnd: bool,
    /// In C's layout.
    pub(crate) state: Vec<u8>,
}

/// All of them, each once.
pub(crate) fn users() -> Result<Vec<User>, String> {
    let known = registrations()?;
    let device = module::is_loaded().then(Device::open).transpose()?;
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for (pid, number, inode) in open_sockets() {
        if seen.contains(&inode) {
            continue;
        }
        // The process may have ended meanwhile.
        let Some(socket) = borrow(pid, number) else {
            continue;
        };
        let Some(name) = congestion_control(&socket) else {
            continue;
        };
        let state_of = |(settings, map): &(Settings, MapHandle)| {
            let is_it = settings.kernel_name == name;
            is_it.then(|| state(map, settings, &socket))?
        };
        let of_ebpf = || {
            known
                .iter()
                .find_map(|one| Some((one.0.clone(), state_of(one)?)))
        };
        let of_module = || device.as_ref()?.user(&name, socket.as_fd());
        let Some((settings, state)) = of_ebpf().or_else(of_module) else {
            continue;
        };
        seen.insert(inode);
        found.push(User {
            socket,
            inode,
            program: program(pid),
            kernel_name: name,
            owns_cwnd: settings.flags & fullpipe_cc::flags::OWNS_CWND != 0,
            algorithm: settings.algorithm,
            params: settings.params,
            state,
        });
    }
    Ok(found)
}

/// The state of a socket that this registration controls: a name can have been registered again.
fn state(map: &MapHandle, settings: &Settings, socket: &OwnedFd) -> Option<Vec<u8>> {
    let key = socket.as_raw_fd().to_ne_bytes();
    let mut value = map.lookup(&key, MapFlags::ANY).ok().flatten()?;
    if value.len() < settings.state_bytes {
        return None;
    }
    value.truncate(settings.state_bytes);
    Some(value)
}

/// (process, descriptor, inode) of every socket of every process.
fn open_sockets() -> Vec<(i32, i32, u64)> {
    let mut found = Vec::new();
    let Ok(processes) = fs::read_dir("/proc") else {
        return found;
    };
    let own = std::process::id().to_string();
    for process in processes.flatten() {
        let name = process.file_name().to_string_lossy().into_owned();
        let Ok(pid) = name.parse::<i32>() else {
            continue;
        };
        let Ok(descriptors) = fs::read_dir(process.path().join("fd")) else {
            continue;
        };
        if name == own {
            continue;
        }
        for descriptor in descriptors.flatten() {
            let number = descriptor.file_name().to_string_lossy().parse::<i32>();
            let Ok(target) = fs::read_link(descriptor.path()) else {
                continue;
            };
            if let (Ok(number), Some(inode)) = (number, socket_inode(&target)) {
                found.push((pid, number, inode));
            }
        }
    }
    found
}

/// Of `socket:[12345]`.
fn socket_inode(target: &Path) -> Option<u64> {
    let text = target.to_str()?;
    text.strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

fn borrow(pid: i32, number: i32) -> Option<OwnedFd> {
    // SAFETY: the calls take and return numbers only; the new descriptors have no other owner.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        if process < 0 {
            return None;
        }
        let process = OwnedFd::from_raw_fd(process as i32);
        let copy = libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0);
        (copy >= 0).then(|| OwnedFd::from_raw_fd(copy as i32))
    }
}

/// `None`: no TCP socket.
fn congestion_control(socket: &OwnedFd) -> Option<String> {
    let mut name = [0u8; 16];
    let length = option(socket, libc::TCP_CONGESTION, &mut name).ok()?;
    let text = name.get(..length)?;
    let end = text.iter().position(|&byte| byte == 0);
    Some(String::from_utf8_lossy(&text[..end.unwrap_or(length)]).into_owned())
}

fn program(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm"))
        .map(|name| name.trim().to_owned())
        .unwrap_or_default()
}
