//! Time and waiting: one clock (CLOCK_MONOTONIC) and one place to sleep.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{clock_gettime, clock_nanosleep, ClockNanosleepFlags};

use crate::token::Token;

const MAX_EVENTS: usize = 64;

/// ns of CLOCK_MONOTONIC.
pub(crate) fn now_ns() -> u64 {
    read_ns(nix::time::ClockId::CLOCK_MONOTONIC)
}

/// ns of CLOCK_REALTIME, in which kernels stamp packets.
pub(crate) fn real_ns() -> u64 {
    read_ns(nix::time::ClockId::CLOCK_REALTIME)
}

fn read_ns(clock: nix::time::ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |time| {
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    })
}

/// Has the timers of this thread expire when they are due. By default the kernel may wake a thread 50 us
/// late (timer slack).
pub(crate) fn wake_when_due() {
    // SAFETY: sets a number of the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// Sleeps until that time.
pub(crate) fn sleep_until(at_ns: u64) {
    let moment = TimeSpec::from_duration(Duration::from_nanos(at_ns));
    let flags = ClockNanosleepFlags::TIMER_ABSTIME;
    while clock_nanosleep(nix::time::ClockId::CLOCK_MONOTONIC, flags, &moment) == Err(Errno::EINTR)
    {
    }
}

/// Sleeps until a descriptor is ready or a time is reached.
pub(crate) struct Poller {
    epoll: Epoll,
    /// Set again only when the time changes: with a timeout in every call, each packet that wakes a
    /// reader would set and clear a timer.
    alarm: TimerFd,
    alarm_ns: Option<u64>,
    ready: Vec<EpollEvent>,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        wake_when_due();
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let alarm = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC)?;
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        epoll.add(&alarm, EpollEvent::new(flags, Token::Alarm.to_bits()))?;
        Ok(Self {
            epoll,
            alarm,
            alarm_ns: None,
            ready: vec![EpollEvent::empty(); MAX_EVENTS],
        })
    }

    /// Turns SIGTERM and SIGINT into [`Token::End`] until the returned value is dropped.
    pub(crate) fn watch_end_signals(&self) -> io::Result<SignalFd> {
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGTERM);
        signals.add(Signal::SIGINT);
        signals.thread_block()?;
        let requests = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC)?;
        self.watch(&requests, EpollFlags::EPOLLIN, Token::End)?;
        Ok(requests)
    }

    pub(crate) fn watch(&self, what: impl AsFd, flags: EpollFlags, token: Token) -> io::Result<()> {
        Ok(self
            .epoll
            .add(what, EpollEvent::new(flags, token.to_bits()))?)
    }

    /// Waits until `at_ns` or until something is ready; returns how many [`Poller::event`]s there are,
    /// and whether the time has come.
    pub(crate) fn wait_until(&mut self, at_ns: u64) -> io::Result<(usize, bool)> {
        if self.alarm_ns != Some(at_ns) {
            // A time of 0 would stop the alarm.
            let moment = Expiration::OneShot(Duration::from_nanos(at_ns.max(1)).into());
            self.alarm
                .set(moment, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
            self.alarm_ns = Some(at_ns);
        }
        let count = match self.epoll.wait(&mut self.ready, EpollTimeout::NONE) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        let alarm = Token::Alarm.to_bits();
        let Some(rang) = (0..count).find(|&index| self.ready[index].data() == alarm) else {
            return Ok((count, false));
        };
        self.alarm_ns = None;
        self.ready.copy_within(rang + 1..count, rang);
        Ok((count - 1, true))
    }

    /// Token and flags of an event.
    pub(crate) fn event(&self, index: usize) -> Option<(Token, EpollFlags)> {
        let event = self.ready[index];
        Some((Token::of_bits(event.data())?, event.events()))
    }
}
