//! Congestion controls of the kernel module `fullpipe_cc` (module/): loads the module, registers sets
//! of constants through its device, reads states and the log of calls there.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::kmod::{delete_module, finit_module, DeleteModuleFlags, ModuleInitFlags};

use super::settings::{check_name, collision, Counters, Settings};

/// The module's name.
const NAME: &str = "fullpipe_cc";
const DEVICE: &str = "/dev/fullpipe_cc";
const RING: &str = "/sys/module/fullpipe_cc/parameters/ring";
const PARAMS_MOST: usize = 128;

/// `struct fp_described` of module/device.h.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Described {
    algorithm: [u8; 32],
    kernel_name: [u8; 16],
    is_traced: u32,
    tick_us: u32,
    cong_control_args: u32,
    pub(super) flags: u32,
    pub(super) state_bytes: u32,
    param_count: u32,
    params: [u32; PARAMS_MOST],
    live: u32,
    opened: u32,
    trace_lost: u32,
    seed: u32,
    is_registered: u32,
    index: u32,
}

/// `struct fp_state` of module/device.h.
#[repr(C)]
struct State {
    socket: i32,
    bytes: u32,
    buffer: u64,
}

const WRITES: u32 = 1;
const READS: u32 = 2;
const REGISTER: u32 = code(WRITES, 1, size_of::<Described>());
const UNREGISTER: u32 = code(WRITES, 2, 16);
const DESCRIBE: u32 = code(READS | WRITES, 3, size_of::<Described>());
const STATE: u32 = code(WRITES, 4, size_of::<State>());
const SEED: u32 = code(WRITES, 5, size_of::<Described>());
const TRACE: u32 = code(WRITES, 6, 16);

/// `_IOC()` of asm-generic/ioctl.h with the letter F.
const fn code(direction: u32, number: u32, bytes: usize) -> u32 {
    direction << 30 | (bytes as u32) << 16 | (b'F' as u32) << 8 | number
}

/// Loads the module's file, without registering anything; nothing happens if it is loaded. With
/// `uses_ring` it judges losses by the contract's ring, as eBPF has to.
pub(crate) fn insert(path: &str, uses_ring: bool) -> Result<(), String> {
    if is_loaded() {
        return Ok(());
    }
    let file = File::open(path).map_err(|error| format!("{path}: {error}"))?;
    let params = match uses_ring {
        true => c"on_request=1 ring=1",
        false => c"on_request=1",
    };
    match finit_module(file.as_fd(), params, ModuleInitFlags::empty()) {
        Ok(()) | Err(Errno::EEXIST) => Ok(()),
        Err(error) => Err(format!("the kernel refuses {path}: {}", refusal(error))),
    }
}

/// Loads a module that registers congestion controls by itself. One of that name that nobody uses
/// makes way.
pub(crate) fn insert_other(path: &str) -> Result<(), String> {
    let file = File::open(path).map_err(|error| format!("{path}: {error}"))?;
    let name = Path::new(path).file_name().unwrap_or_default();
    let shown = name.to_string_lossy();
    let own = shown.trim_end_matches(".ko").replace('-', "_");
    if let Ok(own) = CString::new(own) {
        // Most often there is none.
        let _ = delete_module(&own, DeleteModuleFlags::O_NONBLOCK);
    }
    finit_module(file.as_fd(), c"", ModuleInitFlags::empty()).map_err(|error| {
        let reason = match error {
            Errno::EEXIST => {
                "it, or a congestion control that it registers, has a name that the kernel has \
                 already"
                    .to_owned()
            }
            Errno::ENOENT => "it needs a symbol that the kernel does not have".to_owned(),
            other => refusal(other),
        };
        format!("the kernel refuses {shown}: {reason}")
    })
}

/// Whether the loaded module keeps a record of every packet.
pub(super) fn keeps_facts() -> bool {
    fs::read_to_string(RING).is_ok_and(|answer| answer.trim() == "N")
}

/// Whether the running kernel has the module.
pub(super) fn is_loaded() -> bool {
    Path::new(DEVICE).exists()
}

fn refusal(error: Errno) -> String {
    match error {
        Errno::ENOSYS => "it takes no modules (needs CONFIG_MODULES=y)".to_owned(),
        Errno::EKEYREJECTED | Errno::ENOKEY => {
            "it asks for a signature by a key that it knows: sign the module (README of `fullpipe \
             kernel module`), or use --as ebpf"
                .to_owned()
        }
        Errno::EPERM => {
            "no right to load modules: run as root; a locked-down kernel (lockdown, secure boot) \
             or kernel.modules_disabled=1 refuses root too"
                .to_owned()
        }
        Errno::ENOEXEC => {
            "it was built for another kernel: build it with the headers of this one".to_owned()
        }
        other => other.desc().to_owned(),
    }
}

/// The module's device.
pub(super) struct Device(File);

impl Device {
    pub(super) fn open() -> Result<Self, String> {
        File::options()
            .read(true)
            .write(true)
            .open(DEVICE)
            .map(Self)
            .map_err(|error| format!("{DEVICE}: {error}"))
    }

    /// Registers an algorithm of the module with constants under a name.
    pub(super) fn register(
        &self,
        algorithm: &str,
        kernel_name: &str,
        params: &[u32],
        is_traced: bool,
    ) -> Result<Described, String> {
        check_name(kernel_name)?;
        let mut wanted = Described::named(kernel_name);
        if algorithm.len() >= wanted.algorithm.len() || params.len() > PARAMS_MOST {
            return Err(format!(
                "{algorithm}: too long for the module, or its constants are"
            ));
        }
        wanted.algorithm[..algorithm.len()].copy_from_slice(algorithm.as_bytes());
        wanted.params[..params.len()].copy_from_slice(params);
        wanted.param_count = params.len() as u32;
        wanted.is_traced = u32::from(is_traced);
        match self.command(REGISTER, &mut wanted) {
            Ok(_) => self.find(kernel_name),
            Err(Errno::EEXIST) => Err(collision(kernel_name)),
            Err(Errno::ENOENT | Errno::EINVAL) => Err(format!(
                "the module {NAME} that is loaded has no {algorithm} with {} constants: unload it \
                 (rmmod {NAME}), or build it with {algorithm}",
                params.len()
            )),
            Err(Errno::EBUSY) => Err(format!(
                "{kernel_name}: a file of the Linux kernel has one set of constants at a time, and \
                 {algorithm} is registered with others"
            )),
            Err(Errno::ERANGE) => Err(format!("{kernel_name}: a constant is out of its range")),
            Err(error) => Err(format!(
                "{kernel_name} cannot be registered: {}",
                error.desc()
            )),
        }
    }

    /// Takes the name away; sockets that use it keep it.
    pub(super) fn unregister(&self, kernel_name: &str) -> Result<(), String> {
        let failed = |error: Errno| format!("{kernel_name}: {}", error.desc());
        let mut name = Described::named(kernel_name).kernel_name;
        self.command(UNREGISTER, &mut name).map_err(failed)?;
        Ok(())
    }

    /// What was registered, in that order.
    pub(super) fn all(&self) -> Vec<Described> {
        (0..)
            .map_while(|index| {
                let mut described = Described::named("");
                described.index = index;
                self.command(DESCRIBE, &mut described).ok()?;
                Some(described)
            })
            .collect()
    }

    /// The registered one of that name.
    pub(super) fn find(&self, kernel_name: &str) -> Result<Described, String> {
        let found = |one: &Described| one.is_registered() && one.kernel_name() == kernel_name;
        let all = self.all();
        let one = all.into_iter().find(found);
        one.ok_or_else(|| format!("the module {NAME} has no {kernel_name}"))
    }

    pub(super) fn set_seed(&self, kernel_name: &str, seed: u32) -> Result<(), String> {
        let mut wanted = Described::named(kernel_name);
        wanted.seed = seed;
        let failed = |error: Errno| format!("seed of {kernel_name}: {}", error.desc());
        self.command(SEED, &mut wanted).map_err(failed)?;
        Ok(())
    }

    /// Puts the state of a socket of this process into `value`; returns its bytes, 0 if the module
    /// does not control it.
    pub(super) fn state(&self, socket: BorrowedFd<'_>, value: &mut [u8]) -> Result<usize, String> {
        let mut asked = State {
            socket: socket.as_raw_fd(),
            bytes: value.len() as u32,
            buffer: value.as_mut_ptr() as u64,
        };
        self.command(STATE, &mut asked)
            .map_err(|error| format!("state of a socket: {}", error.desc()))
    }

    /// What controls a socket of this process under a name, and its state; `None`: not the module.
    pub(super) fn user(&self, name: &str, socket: BorrowedFd<'_>) -> Option<(Settings, Vec<u8>)> {
        let of_name = |one: &Described| one.kernel_name() == name;
        let one = self.all().into_iter().rev().find(of_name)?;
        let mut state = vec![0; one.state_bytes as usize];
        let have = self.state(socket, &mut state).ok()?;
        let settings = Settings {
            algorithm: one.algorithm(),
            kernel_name: name.to_owned(),
            params: one.params().to_vec(),
            flags: one.flags,
            state_bytes: state.len(),
        };
        (have == state.len()).then_some((settings, state))
    }

    /// From here on reading this device gives the calls of one name.
    pub(super) fn trace(kernel_name: &str) -> Result<File, String> {
        let device = Self::open()?;
        let mut name = Described::named(kernel_name).kernel_name;
        let failed = |error: Errno| format!("trace of {kernel_name}: {}", error.desc());
        device.command(TRACE, &mut name).map_err(failed)?;
        Ok(device.0)
    }

    fn command<T>(&self, command: u32, argument: &mut T) -> Result<usize, Errno> {
        // SAFETY: `argument` is the structure of the command, whose size its code has; the buffer that
        // a State points to is as large as it says.
        let result = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::c_ulong::from(command) as _,
                std::ptr::from_mut(argument),
            )
        };
        Errno::result(result).map(|value| value as usize)
    }
}

impl Described {
    fn named(kernel_name: &str) -> Self {
        // SAFETY: all fields are integers or arrays of them, for which zero is a value.
        let mut named: Self = unsafe { std::mem::zeroed() };
        let bytes = kernel_name.len().min(named.kernel_name.len() - 1);
        named.kernel_name[..bytes].copy_from_slice(&kernel_name.as_bytes()[..bytes]);
        named
    }

    pub(super) fn algorithm(&self) -> String {
        text(&self.algorithm)
    }

    pub(super) fn kernel_name(&self) -> String {
        text(&self.kernel_name)
    }

    pub(super) fn params(&self) -> &[u32] {
        &self.params[..(self.param_count as usize).min(PARAMS_MOST)]
    }

    pub(super) fn is_registered(&self) -> bool {
        self.is_registered != 0
    }

    pub(super) fn counters(&self) -> Counters {
        Counters {
            live: self.live,
            opened: self.opened,
            trace_lost: self.trace_lost,
        }
    }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}

/// Takes the module out of the kernel, unless something still uses it.
pub(super) fn remove() {
    let _ = delete_module(c"fullpipe_cc", DeleteModuleFlags::O_NONBLOCK);
}

/// The calls of a trace, from the device of [`Device::trace`].
pub(super) fn drain(
    device: &mut File,
    call_bytes: usize,
    mut each: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut calls = vec![0; call_bytes * 256];
    loop {
        let have = io::Read::read(device, &mut calls)?;
        if have == 0 {
            return Ok(());
        }
        for call in calls[..have].chunks_exact(call_bytes) {
            each(call);
        }
    }
}
