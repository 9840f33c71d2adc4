//! Time and waiting: one clock (CLOCK_MONOTONIC) and one place to sleep.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::time::{clock_gettime, ClockId};

const MAX_EVENTS: usize = 64;

/// ns since some fixed moment.
pub(crate) fn now_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| {
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    })
}

/// Sleeps until a descriptor is ready or a moment has come.
pub(crate) struct Poller {
    epoll: Epoll,
    ready: Vec<libc::epoll_event>,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        // The kernel may else wake a thread 50 us late to save wake-ups.
        // SAFETY: sets a number of the calling thread.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        Ok(Self {
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            ready: vec![libc::epoll_event { events: 0, u64: 0 }; MAX_EVENTS],
        })
    }

    /// From now on a request to end (SIGTERM, SIGINT) is an event with that token, as long as what is
    /// returned lives.
    pub(crate) fn watch_requests_to_end(&self, token: u64) -> io::Result<SignalFd> {
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGTERM);
        signals.add(Signal::SIGINT);
        signals.thread_block()?;
        let requests = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC)?;
        self.epoll
            .add(&requests, EpollEvent::new(EpollFlags::EPOLLIN, token))?;
        Ok(requests)
    }

    pub(crate) fn watch(&self, what: impl AsFd, flags: EpollFlags, token: u64) -> io::Result<()> {
        Ok(self.epoll.add(what, EpollEvent::new(flags, token))?)
    }

    /// Waits until `at_ns`, or less; returns how many [`Poller::event`]s there are.
    pub(crate) fn wait_until(&mut self, at_ns: u64) -> io::Result<usize> {
        let left_ns = at_ns.saturating_sub(now_ns());
        let timeout = libc::timespec {
            tv_sec: (left_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (left_ns % 1_000_000_000) as libc::c_long,
        };
        let epoll: RawFd = self.epoll.0.as_raw_fd();
        // SAFETY: the array has MAX_EVENTS elements and outlives the call, as does the timeout.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                epoll,
                self.ready.as_mut_ptr(),
                MAX_EVENTS as libc::c_int,
                &raw const timeout,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        if count >= 0 {
            return Ok(count as usize);
        }
        let error = io::Error::last_os_error();
        if error.kind() == io::ErrorKind::Interrupted {
            return Ok(0);
        }
        Err(error)
    }

    /// Token and flags of an event.
    pub(crate) fn event(&self, index: usize) -> (u64, EpollFlags) {
        let event = self.ready[index];
        let flags = event.events as i32;
        (event.u64, EpollFlags::from_bits_truncate(flags))
    }
}
