//! Algorithms from outside the project: shared objects that cc/outside.c makes of one file. They
//! join those of the registry and are called as those are; their code is guarded (cc/outside.h), and
//! what it did wrong is asked for here.

use std::ffi::{c_char, CStr};
use std::fmt;
use std::path::Path;
use std::sync::{Mutex, Once, PoisonError};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::abi;
use crate::registry::{self, Algorithm};

/// `struct cc_failure` of cc/outside.h.
#[repr(C)]
struct RawFailure {
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

#[derive(Clone, Copy)]
struct Loaded {
    algorithm: &'static Algorithm,
    failure: unsafe extern "C" fn(*mut RawFailure),
    fault: unsafe extern "C" fn(),
}

static LOADED: Mutex<Vec<Loaded>> = Mutex::new(Vec::new());

/// Loads a shared object that was made of this build's cc/outside.c; from now on it is known by
/// `name`, which no other may have. Loading one again does nothing.
pub fn load(path: &Path, name: &str) -> Result<&'static Algorithm, LoadError> {
    if let Some(known) = registry::algorithm(name) {
        return Ok(known);
    }
    let failed = |error: libloading::Error| LoadError(format!("{}: {error}", path.display()));
    // SAFETY: the object was made by this program of cc/outside.c: it has no constructors, and the
    // symbols have the types of cc/outside_guard.c.
    let (raw, failure, fault) = unsafe {
        let library = Library::open(Some(path), RTLD_NOW | RTLD_LOCAL).map_err(failed)?;
        let raw = *library
            .get::<*const abi::Algorithm>(b"cc_outside")
            .map_err(failed)?;
        let failure = *library.get(b"cc_outside_failure").map_err(failed)?;
        let fault = *library.get(b"cc_outside_fault").map_err(failed)?;
        std::mem::forget(library); // its code may be called as long as the program lives
        (&*raw, failure, fault)
    };
    let algorithm: &'static Algorithm = Box::leak(Box::new(registry::read_algorithm(
        raw,
        Some(name.to_owned()),
    )));
    lock().push(Loaded {
        algorithm,
        failure,
        fault,
    });
    catch_faults();
    Ok(algorithm)
}

/// The algorithm that was loaded under this name.
pub(crate) fn find(name: &str) -> Option<&'static Algorithm> {
    let loaded = lock();
    let found = loaded.iter().find(|item| item.algorithm.name == name)?;
    Some(found.algorithm)
}

/// What went wrong in the code of any algorithm, called by this thread, since the last question.
pub fn take_failure() -> Option<Failure> {
    let loaded = lock().clone();
    loaded.into_iter().find_map(|item| {
        let mut raw = RawFailure {
            file: std::ptr::null(),
            offset: 0,
            kind: 0,
            line: 0,
        };
        // SAFETY: it fills the structure.
        unsafe { (item.failure)(&mut raw) };
        let what = match raw.kind {
            0 => return None,
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
        Some(Failure {
            algorithm: item.algorithm.name.to_owned(),
            what,
            place,
            offset: raw.offset,
        })
    })
}

fn lock() -> std::sync::MutexGuard<'static, Vec<Loaded>> {
    LOADED.lock().unwrap_or_else(PoisonError::into_inner)
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
    // Not locked by this thread: guarded code calls nothing of this module.
    if let Ok(loaded) = LOADED.try_lock() {
        let faults: [Option<unsafe extern "C" fn()>; 16] =
            std::array::from_fn(|index| loaded.get(index).map(|item| item.fault));
        drop(loaded);
        for fault in faults.into_iter().flatten() {
            // SAFETY: leaves the call that this thread was in, if it was in one; else returns.
            unsafe { fault() };
        }
    }
    // SAFETY: the instruction is repeated and ends the program as it would have.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}
