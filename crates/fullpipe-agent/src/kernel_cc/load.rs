//! Loads one object with one set of constants and registers it.

use std::ffi::OsStr;
use std::fs;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Mutex;

use libbpf_rs::{
    Link, Map, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenMapMut, OpenObject,
    PrintLevel,
};

use super::features::{self, Features};
use super::module::Device;
use super::settings::{
    check_name, collision, put_text, word, Counters, Settings, ALGORITHM, CONG_CONTROL_ARGS,
    IS_TRACED, KERNEL_NAME, PARAMS, TICK_US,
};
use super::verifier;

/// Offsets in `fp_ops` (bpf/kernel.h) of the name and of a callback that not every kernel has.
const NAME_PLACE: usize = 16;
const TX_START: Range<usize> = 16..24;
const TX_START_PROGRAM: &str = "fp_cwnd_event_tx_start";
/// Memory of the ring buffer that a trace passes through.
const TRACE_BYTES: u32 = 64 << 20;
/// Lines of libbpf's and the verifier's log that an error shows.
const LOG_LINES: usize = 12;
/// libbpf has one message callback for all threads: one load at a time collects messages.
pub(super) static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What to load.
pub(crate) struct Wanted<'a> {
    pub(crate) code: Code<'a>,
    /// Its algorithm as the front end names it: `NAME`, or `NAME@HASH` of an external one.
    pub(crate) algorithm: &'a str,
    /// The name that sockets will choose.
    pub(crate) kernel_name: &'a str,
    /// All stored values, in the algorithm's order.
    pub(crate) params: &'a [u32],
    /// Log every call ([`super::Tracer`]).
    pub(crate) is_traced: bool,
}

/// The form in which the kernel gets an algorithm.
#[derive(Clone, Copy)]
pub(crate) enum Code<'a> {
    /// An object that bpf/build.sh made.
    Object(&'a [u8]),
    /// The kernel module, which is loaded ([`super::insert`]).
    Module,
}

/// A registered congestion control. Dropping it unregisters the name; sockets that use it keep it.
pub(crate) struct Loaded {
    form: Form,
    /// A buffer for one state.
    value: Vec<u8>,
    state_bytes: usize,
    algorithm: String,
    flags: u32,
    kernel_name: String,
    params: Vec<u32>,
}

enum Form {
    Ebpf(Box<Programs>),
    Module(Device),
}

/// The eBPF form.
struct Programs {
    object: Object,
    link: Option<Link>,
    has_links: bool,
    /// State by socket.
    sockets: MapHandle,
}

/// Loads and registers. The error says what is missing or wrong.
pub(crate) fn load(wanted: &Wanted<'_>) -> Result<Loaded, String> {
    match wanted.code {
        Code::Object(object) => load_object(wanted, object),
        Code::Module => register(wanted),
    }
}

fn register(wanted: &Wanted<'_>) -> Result<Loaded, String> {
    let name = wanted.kernel_name;
    let device = Device::open()?;
    let made = device.register(wanted.algorithm, name, wanted.params, wanted.is_traced)?;
    Ok(Loaded {
        form: Form::Module(device),
        value: vec![0; made.state_bytes as usize],
        state_bytes: made.state_bytes as usize,
        algorithm: wanted.algorithm.to_owned(),
        flags: made.flags,
        kernel_name: name.to_owned(),
        params: wanted.params.to_vec(),
    })
}

fn load_object(wanted: &Wanted<'_>, object: &[u8]) -> Result<Loaded, String> {
    let name = wanted.kernel_name;
    check_name(name)?;
    let features = features::probe()?;
    if available().iter().any(|known| known == name) {
        return Err(collision(name));
    }
    let _guard = ONE_AT_A_TIME.lock();
    collect_log();
    let mut open = ObjectBuilder::default()
        .open_memory(object)
        .map_err(|_| failed("the eBPF object cannot be read"))?;
    let built = configure(&mut open, wanted, features)?;
    let mut object = open
        .load()
        .map_err(|error| failed(&format!("the kernel refuses {}: {error}", wanted.algorithm)))?;
    let link = object
        .maps_mut()
        .find(|map| map.name() == "fp_ops")
        .ok_or_else(|| "the eBPF object has no fp_ops".to_owned())?
        .attach_struct_ops()
        .map_err(
            |error| match available().iter().any(|known| known == name) {
                true => collision(name),
                false => failed(&format!("{name} cannot be registered: {error}")),
            },
        )?;
    let sockets = MapHandle::try_from(&map(&object, "fp_sockets")?)
        .map_err(|error| failed(&format!("fp_sockets: {error}")))?;
    Ok(Loaded {
        value: vec![0; sockets.value_size() as usize],
        form: Form::Ebpf(Box::new(Programs {
            object,
            link: Some(link),
            has_links: features.has_links,
            sockets,
        })),
        state_bytes: built.state_bytes,
        algorithm: wanted.algorithm.to_owned(),
        flags: built.flags,
        kernel_name: name.to_owned(),
        params: wanted.params.to_vec(),
    })
}

impl Loaded {
    /// The name that sockets choose.
    pub(crate) fn kernel_name(&self) -> &str {
        &self.kernel_name
    }

    /// Whether it is that algorithm with these constants.
    pub(crate) fn is(&self, algorithm: &str, params: &[u32]) -> bool {
        self.algorithm == algorithm && self.params == params
    }

    /// As the front end names it.
    pub(crate) fn algorithm(&self) -> &str {
        &self.algorithm
    }

    /// Whether it has one of [`fullpipe_cc::flags`].
    pub(crate) fn wants(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Stored constants.
    pub(crate) fn params(&self) -> &[u32] {
        &self.params
    }

    /// Sets the seed of the random numbers of future sockets; 0, the default: the kernel's numbers.
    pub(crate) fn set_seed(&self, seed: u32) -> Result<(), String> {
        let failed = |error| format!("seed of {}: {error}", self.kernel_name);
        if let Form::Module(device) = &self.form {
            return device.set_seed(&self.kernel_name, seed);
        }
        let counters = self.map(".bss")?;
        let first = 0u32.to_ne_bytes();
        let mut value = counters.lookup(&first, MapFlags::ANY).map_err(failed)?;
        let place = value
            .as_mut()
            .and_then(|value| value.get_mut(COUNTERS_SEED));
        place
            .ok_or("the eBPF object has no seed")?
            .copy_from_slice(&seed.to_ne_bytes());
        let value = value.unwrap_or_default();
        counters
            .update(&first, &value, MapFlags::ANY)
            .map_err(failed)
    }

    /// The algorithm's state of a socket of this process, in C's layout; `None` if another algorithm
    /// controls it. One system call. The kernel may be
    /// writing it meanwhile: on several processors values can be of two consecutive calls.
    pub(crate) fn state(&mut self, socket: BorrowedFd<'_>) -> Result<Option<&[u8]>, String> {
        let key = socket.as_raw_fd().to_ne_bytes();
        let is_ours = match &self.form {
            Form::Ebpf(programs) => programs
                .sockets
                .lookup_into(&key, &mut self.value, MapFlags::ANY)
                .map_err(|error| {
                    format!("state of a socket under {}: {error}", self.kernel_name)
                })?,
            Form::Module(device) => {
                let bytes = device.state(socket, &mut self.value)?;
                bytes > 0 && bytes == self.state_bytes
            }
        };
        let state = self.value.get(..self.state_bytes);
        let state = state.ok_or("the eBPF object's state is larger than its socket's")?;
        Ok(is_ours.then_some(state))
    }

    /// Whether it is of the module.
    pub(super) fn is_module(&self) -> bool {
        matches!(self.form, Form::Module(_))
    }

    /// The map of that name, or with that suffix (libbpf puts the object's name before `.bss`).
    pub(super) fn map(&self, name: &str) -> Result<Map<'_>, String> {
        match &self.form {
            Form::Ebpf(programs) => map(&programs.object, name),
            Form::Module(_) => Err(format!("{}: a module has no maps", self.kernel_name)),
        }
    }

    /// The link of the registration, to be pinned; none before Linux 6.4.
    pub(super) fn take_link(&mut self) -> Option<Link> {
        let Form::Ebpf(programs) = &mut self.form else {
            return None;
        };
        let mut link = programs.link.take()?;
        if programs.has_links {
            return Some(link);
        }
        link.disconnect(); // the kernel keeps what is registered until its map's entry is deleted
        None
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Form::Module(device) = &self.form {
            // It may have been taken away already.
            let _ = device.unregister(&self.kernel_name);
        }
    }
}

impl Counters {
    /// Reads `fp_counters` of a `.bss` map.
    pub(super) fn read(map: &impl MapCore) -> Result<Self, String> {
        let value = map
            .lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| format!("counters: {error}"))?
            .filter(|value| value.len() >= 12)
            .ok_or("counters: the map is too small")?;
        Ok(Self {
            live: word(&value, 0),
            opened: word(&value, 4),
            trace_lost: word(&value, 8),
        })
    }
}

/// The seed in `fp_counters`.
const COUNTERS_SEED: Range<usize> = 12..16;

fn configure(
    open: &mut OpenObject,
    wanted: &Wanted<'_>,
    features: &Features,
) -> Result<Settings, String> {
    let mut built = None;
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if name.ends_with(".rodata") {
            built = Some(write_settings(&mut map, wanted, features)?);
        } else if name == "fp_ops" {
            let ops = map.initial_value_mut().ok_or("fp_ops has no value")?;
            put_text(&mut ops[..NAME_PLACE], wanted.kernel_name);
            if !features.has_tx_start {
                ops[TX_START].fill(0);
            }
            if !features.has_links {
                map.set_map_flags(0).map_err(|error| error.to_string())?;
            }
        } else if name == "fp_trace" && wanted.is_traced {
            map.set_max_entries(TRACE_BYTES)
                .map_err(|error| error.to_string())?;
        }
    }
    for mut program in open.progs_mut() {
        if program.name() == TX_START_PROGRAM && !features.has_tx_start {
            program.set_autoload(false);
        }
    }
    built.ok_or_else(|| "the eBPF object has no settings".to_owned())
}

fn write_settings(
    map: &mut OpenMapMut<'_>,
    wanted: &Wanted<'_>,
    features: &Features,
) -> Result<Settings, String> {
    let bytes = map.initial_value_mut().unwrap_or_default();
    let built = Settings::read(bytes).ok_or("the eBPF object has no settings")?;
    if built.params.len() != wanted.params.len() || wanted.algorithm.len() >= KERNEL_NAME {
        return Err(format!(
            "the eBPF object is of another build: {} with {} constants, not {} with {}",
            built.algorithm,
            built.params.len(),
            wanted.algorithm,
            wanted.params.len()
        ));
    }
    put_text(&mut bytes[ALGORITHM..KERNEL_NAME], wanted.algorithm);
    put_text(&mut bytes[KERNEL_NAME..IS_TRACED], wanted.kernel_name);
    for (at, value) in [
        (IS_TRACED, u32::from(wanted.is_traced)),
        (TICK_US, features.tick_us),
        (CONG_CONTROL_ARGS, features.cong_control_args),
    ] {
        bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    for (place, value) in bytes[PARAMS..].chunks_exact_mut(4).zip(wanted.params) {
        place.copy_from_slice(&value.to_ne_bytes());
    }
    Ok(built)
}

fn map<'obj>(object: &'obj Object, name: &str) -> Result<Map<'obj>, String> {
    let found = |map: &Map<'_>| match name.starts_with('.') {
        true => map.name().to_string_lossy().ends_with(name),
        false => map.name() == OsStr::new(name),
    };
    object
        .maps()
        .find(found)
        .ok_or_else(|| format!("the eBPF object has no map {name}"))
}

/// The congestion controls that the kernel offers now.
pub(crate) fn available() -> Vec<String> {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap_or_default()
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

static LOG: Mutex<String> = Mutex::new(String::new());

pub(super) fn collect_log() {
    if let Ok(mut log) = LOG.lock() {
        log.clear();
    }
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, message| {
        if let Ok(mut log) = LOG.lock() {
            log.push_str(&message);
        }
    })));
}

/// The error with the verifier's reason, or with the last lines of libbpf's log.
pub(super) fn failed(sentence: &str) -> String {
    let log = LOG.lock().map(|log| log.clone()).unwrap_or_default();
    if let Some(reason) = verifier::reason(&log) {
        return format!("{sentence}: {reason}");
    }
    let lines: Vec<&str> = log.lines().filter(|line| !line.is_empty()).collect();
    let tail = &lines[lines.len().saturating_sub(LOG_LINES)..];
    if tail.is_empty() {
        return sentence.to_owned();
    }
    format!(
        "{sentence}; the last lines of its log:\n  {}",
        tail.join("\n  ")
    )
}
