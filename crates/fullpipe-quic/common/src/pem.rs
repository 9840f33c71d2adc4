//! The certificate and its key as text, and as files, from which some stacks read them. RSA, which
//! BoringSSL takes as it is, and whose signatures have one length. Must never know a stack.

use std::fs::File;
use std::io::{Result, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The certificate, valid from 2020 to 2120.
pub const CERTIFICATE: &str = include_str!("../certificate/rsa_certificate.pem");
/// Its key, which is public: it protects nothing.
pub const KEY: &str = include_str!("../certificate/rsa_key.pem");

/// A file in memory.
pub struct Pem {
    /// Where it can be read, for as long as this lives.
    pub path: String,
    _descriptor: OwnedFd,
}

/// [`CERTIFICATE`] as a file.
///
/// # Errors
/// If the system makes no file.
pub fn certificate() -> Result<Pem> {
    file(CERTIFICATE.as_bytes())
}

/// [`KEY`] as a file.
///
/// # Errors
/// If the system makes no file.
pub fn key() -> Result<Pem> {
    file(KEY.as_bytes())
}

fn file(bytes: &[u8]) -> Result<Pem> {
    // SAFETY: the name ends with NUL.
    let descriptor = unsafe { libc::memfd_create(c"certificate".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: it was just opened.
    let owned = unsafe { OwnedFd::from_raw_fd(descriptor) };
    File::from(owned.try_clone()?).write_all(bytes)?;
    Ok(Pem {
        path: format!("/proc/self/fd/{}", owned.as_raw_fd()),
        _descriptor: owned,
    })
}
