//! Limits of memory and of files (setrlimit(2)), and no new privileges.

use std::io;

use crate::rights::Rights;

pub(crate) fn set(rights: &Rights) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    limit(libc::RLIMIT_CORE, 0)?;
    if let Some(bytes) = rights.memory_bytes {
        limit(libc::RLIMIT_AS, bytes)?;
    }
    if let Some(bytes) = rights.file_bytes {
        limit(libc::RLIMIT_FSIZE, bytes)?;
    }
    Ok(())
}

/// A limit that is lower already stays.
fn limit(resource: libc::__rlimit_resource_t, value: u64) -> io::Result<()> {
    let mut now = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: it fills the structure.
    check(unsafe { libc::getrlimit(resource, &mut now) })?;
    let wanted = libc::rlimit {
        rlim_cur: now.rlim_cur.min(value),
        rlim_max: now.rlim_max.min(value),
    };
    // SAFETY: it reads the structure.
    check(unsafe { libc::setrlimit(resource, &wanted) })
}

pub(crate) fn check(answer: libc::c_int) -> io::Result<()> {
    if answer == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
