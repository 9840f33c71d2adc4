//! A time at which a wait for packets ends.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// A timer: a timeout of ppoll() itself may be late by a thousandth of its length.
pub(super) struct Alarm(TimerFd);

impl Alarm {
    pub(super) fn new() -> Result<Self, String> {
        TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC)
            .map(Self)
            .map_err(|error| format!("timer: {error}"))
    }

    /// Waits until that time, or until one of `ready` is.
    pub(super) fn wait<'fd>(
        &'fd self,
        until_ns: u64,
        ready: &mut Vec<PollFd<'fd>>,
    ) -> Result<(), String> {
        let moment = Expiration::OneShot(Duration::from_nanos(until_ns).into());
        self.0
            .set(moment, TimerSetTimeFlags::TFD_TIMER_ABSTIME)
            .map_err(|error| format!("timer: {error}"))?;
        ready.push(PollFd::new(self.0.as_fd(), PollFlags::POLLIN));
        let done = poll(ready, PollTimeout::NONE);
        done.map(drop).map_err(|error| format!("poll: {error}"))
    }
}
