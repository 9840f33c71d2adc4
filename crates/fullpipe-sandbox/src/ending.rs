//! Ends a process, and all that it starts, with its parent.

use std::io;
use std::mem::MaybeUninit;

use libc::{c_int, c_uint, pid_t, sigset_t};

use crate::limits::check;

/// From now on this process, and what it starts in its process group, ends when its parent does, even
/// by SIGKILL. PR_SET_PDEATHSIG does not pass to children, and a compiler is several processes. So the
/// caller goes on in a child, while its process waits: it kills the group when its parent ends, and
/// otherwise ends as the child does.
///
/// For the time between fork(2) and execve(2). The process then leads a process group.
pub fn end_with_parent() -> io::Result<()> {
    // SAFETY: these calls take no pointers.
    let (parent, own) = unsafe { (libc::getppid(), libc::getpid()) };
    // SAFETY: as above.
    if unsafe { libc::getpgrp() } != own {
        // SAFETY: as above.
        check(unsafe { libc::setpgid(0, 0) })?;
    }
    let before = block(&[libc::SIGTERM, libc::SIGCHLD])?;
    // SAFETY: there is one thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            die_with(own, libc::SIGKILL)?;
            // SAFETY: it reads the set.
            check(unsafe { libc::sigprocmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) })
        }
        child => guard(parent, child),
    }
}

/// Waits for the child's end and ends alike; kills the group when the parent ends.
fn guard(parent: pid_t, child: pid_t) -> ! {
    close_all();
    let awaited = set_of(&[libc::SIGTERM, libc::SIGCHLD]);
    let (mut signal, mut status) = (0, 0);
    // SAFETY: the pointers are of variables of this function; the group is this process's own.
    unsafe {
        if die_with(parent, libc::SIGTERM).is_ok() {
            while libc::sigwait(&awaited, &mut signal) == 0 && signal == libc::SIGCHLD {
                if libc::waitpid(child, &mut status, libc::WNOHANG) == child {
                    end_as(status);
                }
            }
        }
        libc::kill(0, libc::SIGKILL);
        libc::_exit(1)
    }
}

/// Ends this process with the status of another.
fn end_as(status: c_int) -> ! {
    // SAFETY: no pointers but of the set.
    unsafe {
        if libc::WIFSIGNALED(status) {
            let signal = libc::WTERMSIG(status);
            libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
            libc::signal(signal, libc::SIG_DFL);
            libc::sigprocmask(libc::SIG_UNBLOCK, &set_of(&[signal]), std::ptr::null_mut());
            libc::raise(signal);
        }
        libc::_exit(libc::WEXITSTATUS(status))
    }
}

/// Has the kernel send a signal when the parent ends; an error if it has ended already.
fn die_with(parent: pid_t, signal: c_int) -> io::Result<()> {
    // SAFETY: no pointers.
    unsafe {
        check(libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0))?;
        if libc::getppid() == parent {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::ESRCH))
        }
    }
}

/// Whoever reads a pipe would wait for its end as long as it is open here.
fn close_all() {
    // SAFETY: no pointers; nothing of this process is used any more.
    unsafe {
        if libc::syscall(libc::SYS_close_range, 0, c_uint::MAX, 0) != 0 {
            for descriptor in 0..libc::sysconf(libc::_SC_OPEN_MAX) as c_int {
                libc::close(descriptor);
            }
        }
    }
}

/// Blocks signals; returns which were blocked before.
fn block(signals: &[c_int]) -> io::Result<sigset_t> {
    let mut before = MaybeUninit::uninit();
    // SAFETY: it reads one set and fills the other.
    unsafe {
        check(libc::sigprocmask(
            libc::SIG_BLOCK,
            &set_of(signals),
            before.as_mut_ptr(),
        ))?;
        Ok(before.assume_init())
    }
}

fn set_of(signals: &[c_int]) -> sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the first call fills the set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}
