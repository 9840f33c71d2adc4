//! Algorithms from outside the project: shared objects that cc/outside.c makes of one file. They
//! join those of the registry and are called as those are; their code is guarded (cc/outside.h), and
//! what it did wrong is asked for here.

use std::ffi::{c_char, c_void, CStr, OsString};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use libloading::os::unix::{Library, Symbol, RTLD_LOCAL, RTLD_NOW};

use crate::abi;
use crate::registry::{self, Algorithm};

/// `struct cc_failure` of cc/outside.h.
#[repr(C)]
struct RawFailure {
    algorithm: *const abi::Algorithm,
    file: *const c_char,
    offset: u64,
    kind: u32,
    line: u32,
}

/// What an algorithm's code did that ended its calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its algorithm.
    pub algorithm: String,
    /// What it did.
    pub what: &'static str,
    /// File and line, where known.
    pub place: Option<(String, u32)>,
    /// Place in the shared object, where known; for addr2line.
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

/// An algorithm, and where its row of the table lies.
#[derive(Clone, Copy)]
struct Loaded {
    algorithm: &'static Algorithm,
    row: usize,
}

/// cc/outside_guard.c, of one compiler.
#[derive(Clone)]
struct Guard {
    /// Of its file, by which algorithms find it.
    name: OsString,
    failure: unsafe extern "C" fn(*mut RawFailure),
}

/// A program's compilers are few.
const MOST_GUARDS: usize = 16;

static LOADED: Mutex<Vec<Loaded>> = Mutex::new(Vec::new());
static GUARDS: Mutex<Vec<Guard>> = Mutex::new(Vec::new());
/// The guards' cc_outside_fault(), for a signal's handler, which may wait for nothing.
static FAULTS: [AtomicPtr<c_void>; MOST_GUARDS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST_GUARDS];

/// Loads a shared object that was made of this build's cc/outside.c, and its guard; from now on it
/// is known by `name`, which no other may have. Loading one again does nothing.
pub fn load(path: &Path, name: &str, guard: &Path) -> Result<&'static Algorithm, LoadError> {
    if let Some(known) = registry::algorithm(name) {
        return Ok(known);
    }
    watch_with(guard)?;
    // SAFETY: the object was made by this program of cc/outside.c: it has no constructors, and its
    // symbol is a row of the table.
    let raw = unsafe {
        let library = open(path)?;
        let raw = *symbol::<*const abi::Algorithm>(&library, path, b"cc_outside")?;
        std::mem::forget(library); // its code may be called as long as the program lives
        &*raw
    };
    let algorithm: &'static Algorithm = Box::leak(Box::new(registry::read_algorithm(
        raw,
        Some(name.to_owned()),
    )));
    lock(&LOADED).push(Loaded {
        algorithm,
        row: std::ptr::from_ref(raw) as usize,
    });
    Ok(algorithm)
}

/// Loads a guard, unless one of its name, which says its content, is there.
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
    // SAFETY: the object was made by this program of cc/outside_guard.c: it has no constructors,
    // and the symbols have these types.
    unsafe {
        let library = open(path)?;
        let failure = *symbol(&library, path, b"cc_outside_failure")?;
        let fault = *symbol::<unsafe extern "C" fn()>(&library, path, b"cc_outside_fault")?;
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

/// The algorithm that was loaded under this name.
pub(crate) fn find(name: &str) -> Option<&'static Algorithm> {
    let loaded = lock(&LOADED);
    let found = loaded.iter().find(|item| item.algorithm.name == name)?;
    Some(found.algorithm)
}

/// What went wrong in the code of any algorithm, called by this thread, since the last question.
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
        1 => "a call did not end within 1,000,000 steps: a loop without bound",
        2 => "a call took more than 64 KiB of stack: it calls itself without end",
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

/// Faults of guarded code end the call, not the program; others stay what they were.
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
