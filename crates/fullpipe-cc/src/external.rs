//! External algorithms: shared objects compiled from one user's file and cc/external.c. They join the
//! registry and are called like built-in ones. What their code does, the process does: only a confined
//! one may load them.

use std::ffi::c_void;
use std::fmt::Display;
use std::path::Path;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::abi;
use crate::layout;
use crate::log;
use crate::registry::{self, Algorithm};

/// Why a shared object cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct LoadError(String);

/// An algorithm that was loaded.
#[derive(Clone, Copy)]
pub struct Loaded {
    /// As the registry has it.
    pub algorithm: &'static Algorithm,
    /// Where its shared object begins in memory: addresses less this are those of its file.
    pub base: usize,
}

/// Loads a shared object that was compiled with this build's cc/external.c, and registers it as `name`,
/// which must be unique. One that was compiled with other structures is refused. Its code runs with all
/// rights of this process.
pub fn load(path: &Path, name: &str) -> Result<Loaded, LoadError> {
    let failed = |error: &dyn Display| LoadError(format!("{}: {error}", path.display()));
    // SAFETY: its initialisers run with this process's rights, which the caller has restricted.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
    let library = library.map_err(|error| failed(&error))?;
    check_layout(&library).map_err(|error| failed(&error))?;
    // SAFETY: cc/external.c defines a row of the table by that name, whose layout is this crate's.
    let raw = unsafe { library.get::<*const abi::Algorithm>(b"cc_external") };
    let raw: *const abi::Algorithm = *raw.map_err(|error| failed(&error))?;
    // SAFETY: a pointer to a function (cc/linux_print.h), which no thread calls yet.
    if let Ok(listener) = unsafe { library.get::<*mut Option<log::Hook>>(b"linux_log") } {
        // SAFETY: as above: it is there as long as the library, which stays loaded.
        unsafe { **listener = Some(log::receive) };
    }
    // Its code may be called as long as the program lives.
    std::mem::forget(library);
    // SAFETY: a constant of the library, which stays loaded.
    let raw = unsafe { &*raw };
    let algorithm = registry::algorithm(name)
        .unwrap_or_else(|| registry::add(registry::read_algorithm(raw, Some(name.to_owned()))));
    let base = base_of(std::ptr::from_ref(raw).cast());
    Ok(Loaded { algorithm, base })
}

/// Compares the library's structures with this crate's.
fn check_layout(library: &Library) -> Result<(), String> {
    let differs = |how: &str| format!("was compiled with another cc.h than this program's: {how}");
    // SAFETY: cc/external.c defines the table by that name.
    let table = unsafe { library.get::<*const abi::LayoutRow>(b"cc_layout") };
    let table = table.map_err(|_| differs("it has no table of its structures (cc_layout)"))?;
    // SAFETY: the table of cc/layout.h ends with a null row; its names are literals.
    unsafe { layout::check(*table) }.map_err(|difference| differs(&difference))
}

/// Where the object that holds an address begins; 0 if none does.
fn base_of(address: *const c_void) -> usize {
    // SAFETY: zeros are a valid Dl_info, which dladdr fills; it reads nothing at the address.
    unsafe {
        let mut found: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(address, &mut found) == 0 {
            return 0;
        }
        found.dli_fbase as usize
    }
}
