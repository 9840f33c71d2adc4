//! External algorithms: shared objects compiled from one user's file and cc/external.c. They join the
//! registry and are called like built-in ones. Their code is guarded (cc/external.h);
//! [`take_failure`] returns what it did wrong.

use std::ffi::{c_char, c_void, CStr, OsString};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use libloading::os::unix::{Library, Symbol, RTLD_LOCAL, RTLD_NOW};

use crate::abi;
use crate::registry::{self, Algorithm};

/// `struct cc_failure` of cc/external.h.
#[repr(C)]
struct RawFailure {
    algorithm: *const abi::Algorithm,
    file: *const c_char,
    offset: u64,
    kind: u32,
    line: u32,
}

/// Why the guard ended an algorithm's calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Name of the algorithm.
    pub algorithm: String,
    /// What the code did.
    pub what: &'static str,
    /// File and line, if known.
    pub place: Option<(String, u32)>,
    /// Offset in the shared object for addr2line; 0 if unknown.
    pub offset: u64,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)
    }
}

/// Why a shared object cannot be used.
#[derive(Debug)]
pub struct LoadError(String);

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LoadError {}

/// An algorithm and the address of its table row.
#[derive(Clone, Copy)]
struct Loaded {
    algorithm: &'static Algorithm,
    row: usize,
}

/// cc/external_guard.c as one compiler built it.
#[derive(Clone)]
struct Guard {
    /// Its file name, which contains the hash of its content.
    name: OsString,
    failure: unsafe extern "C" fn(*mut RawFailure),
}

/// One for each compiler that built an algorithm of this process.
const MOST_GUARDS: usize = 16;

static LOADED: Mutex<Vec<Loaded>> = Mutex::new(Vec::new());
static GUARDS: Mutex<Vec<Guard>> = Mutex::new(Vec::new());
/// The guards' cc_external_fault(). A signal handler reads them, so they take no lock.
static FAULTS: [AtomicPtr<c_void>; MOST_GUARDS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST_GUARDS];

/// Loads a shared object that was compiled with this build's cc/external.c, and its guard, and
/// registers it as `name`, which must be unique. Loading one again does nothing.
pub fn load(path: &Path, name: &str, guard: &Path) -> Result<&'static Algorithm, LoadError> {
    if let Some(known) = registry::algorithm(name) {
        return Ok(known);
    }
    watch_with(guard)?;
    // SAFETY: the object was made by this program of cc/external.c: it has no constructors, and its
    // symbol is a row of the table.
    let raw = unsafe {
        let library = open(path)?;
        let raw = *symbol::<*const abi::Algorithm>(&library, path, b"cc_external")?;
        std::mem::forget(library); // its code may be called as long as the program lives
        &*raw
    };
    let algorithm = registry::add(registry::read_algorithm(raw, Some(name.to_owned())));
    lock(&LOADED).push(Loaded {
        algorithm,
        row: std::ptr::from_ref(raw) as usize,
    });
    Ok(algorithm)
}

/// Loads a guard unless one with its name is loaded.
fn watch_with(path: &Path) -> Result<(), LoadError> {
    let mut guards = lock(&GUARDS);
    let name = path.file_name().unwrap_or_default();
    if guards.iter().any(|guard| guard.name == name) {
        return Ok(());
    }
    let slot = FAULTS.get(guards.len()).ok_or_else(|| {
        LoadError(format!(
            "{}: {MOST_GUARDS} compilers have made algorithms for this program; start it again",
            path.display()
        ))
    })?;
    // SAFETY: the object was made by this program of cc/external_guard.c: it has no constructors,
    // and the symbols have these types.
    unsafe {
        let library = open(path)?;
        let failure = *symbol(&library, path, b"cc_external_failure")?;
        let fault = *symbol::<unsafe extern "C" fn()>(&library, path, b"cc_external_fault")?;
        std::mem::forget(library);
        slot.store(fault as *mut c_void, Ordering::Release);
        guards.push(Guard {
            name: name.to_owned(),
            failure,
        });
    }
    catch_faults();
    Ok(())
}

/// # Safety
/// The object's constructors run.
unsafe fn open(path: &Path) -> Result<Library, LoadError> {
    Library::open(Some(path), RTLD_NOW | RTLD_LOCAL).map_err(|error| failed(path, &error))
}

/// # Safety
/// The symbol has the type `T`.
unsafe fn symbol<T>(library: &Library, path: &Path, name: &[u8]) -> Result<Symbol<T>, LoadError> {
    library.get(name).map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &libloading::Error) -> LoadError {
    LoadError(format!("{}: {error}", path.display()))
}

/// Returns and clears the failure of any algorithm that this thread called.
pub fn take_failure() -> Option<Failure> {
    let guards = lock(&GUARDS).clone();
    let raw = guards.into_iter().find_map(|guard| {
        let mut raw = RawFailure {
            algorithm: std::ptr::null(),
            file: std::ptr::null(),
            offset: 0,
            kind: 0,
            line: 0,
        };
        // SAFETY: it fills the structure.
        unsafe { (guard.failure)(&mut raw) };
        (raw.kind != 0).then_some(raw)
    })?;
    let what = match raw.kind {
        1 => "a call did not end within 1,000,000 steps: an unbounded loop",
        2 => "a call took more than 64 KiB of stack: unbounded recursion",
        3 => "division by zero",
        4 => "an index outside its array",
        _ => "it touched memory that is not its own",
    };
    let place = (!raw.file.is_null()).then(|| {
        // SAFETY: a literal of the object, which stays loaded.
        let file = unsafe { CStr::from_ptr(raw.file) };
        (file.to_string_lossy().into_owned(), raw.line)
    });
    let loaded = lock(&LOADED);
    let whose = loaded
        .iter()
        .find(|item| item.row == raw.algorithm as usize)?;
    Some(Failure {
        algorithm: whose.algorithm.name.to_owned(),
        what,
        place,
        offset: raw.offset,
    })
}

fn lock<T>(list: &Mutex<T>) -> MutexGuard<'_, T> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Faults in guarded code end the call, not the program. Other faults keep their default action.
fn catch_faults() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL] {
            // SAFETY: a plain handler; what was there before takes over where it is not ours.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = on_fault as extern "C" fn(i32) as usize;
                action.sa_flags = libc::SA_NODEFER | libc::SA_ONSTACK;
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
    });
}

extern "C" fn on_fault(signal: i32) {
    for fault in &FAULTS {
        let fault = fault.load(Ordering::Acquire);
        if fault.is_null() {
            break;
        }
        // SAFETY: of that type; leaves the call that this thread was in, if it was in one.
        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(fault)() };
    }
    // SAFETY: the instruction is repeated and ends the program as it would have.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}
