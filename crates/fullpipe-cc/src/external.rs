//! External algorithms: shared objects compiled from one user's file and cc/external.c. They join the
//! registry and are called like built-in ones. What their code does, the process does: only a confined
//! one may load them.

use std::ffi::c_void;
use std::path::Path;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::abi;
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
/// which must be unique. Its code runs with all rights of this process.
pub fn load(path: &Path, name: &str) -> Result<Loaded, LoadError> {
    let failed = |error| LoadError(format!("{}: {error}", path.display()));
    // SAFETY: none; the caller has confined the process (see above). The symbol is a row of the table.
    let raw = unsafe {
        let library = Library::open(Some(path), RTLD_NOW | RTLD_LOCAL).map_err(failed)?;
        let raw = *library
            .get::<*const abi::Algorithm>(b"cc_external")
            .map_err(failed)?;
        std::mem::forget(library); // its code may be called as long as the program lives
        &*raw
    };
    let algorithm = registry::algorithm(name)
        .unwrap_or_else(|| registry::add(registry::read_algorithm(raw, Some(name.to_owned()))));
    let base = base_of(std::ptr::from_ref(raw).cast());
    Ok(Loaded { algorithm, base })
}

/// Where the object that holds an address begins; 0 if none does.
fn base_of(address: *const c_void) -> usize {
    // SAFETY: it fills the structure.
    unsafe {
        let mut found: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(address, &mut found) == 0 {
            return 0;
        }
        found.dli_fbase as usize
    }
}
