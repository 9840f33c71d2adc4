//! When Linux's timers expire: they count ticks, and never come early (kernel/time/timer.c,
//! calc_wheel_index()). High-resolution timers (pacing, compressed ACKs) do not come here.

/// HZ=250, as Debian builds its kernels.
const TICK_NS: u64 = 4_000_000;
/// So many ticks ahead a level of the wheel reaches; the next one is this many times coarser.
const LEVEL_TICKS: u64 = 63;
const LEVEL_FACTOR: u64 = 8;

/// When a timer expires that is set at `now_ns` to wait for `wait_ns`.
pub(crate) fn expires_ns(now_ns: u64, wait_ns: u64) -> u64 {
    let wait = wait_ns.div_ceil(TICK_NS);
    let at = now_ns / TICK_NS + wait;
    if wait < LEVEL_TICKS {
        return (at + 1) * TICK_NS;
    }
    let mut granularity = LEVEL_FACTOR;
    while wait >= LEVEL_TICKS * granularity {
        granularity *= LEVEL_FACTOR;
    }
    (at / granularity + 1) * granularity * TICK_NS
}

/// A timer that is set. Nearly every one is set anew before it expires, so that its tick is only looked
/// for where it may be the next to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Countdown {
    /// When it was set, and to wait for so long.
    pub(crate) now_ns: u64,
    pub(crate) wait_ns: u64,
}

impl Countdown {
    /// One that is not set.
    pub(crate) const NEVER: Self = Self {
        now_ns: u64::MAX,
        wait_ns: 0,
    };

    /// It is set.
    #[inline]
    pub(crate) fn runs(self) -> bool {
        self.now_ns != u64::MAX
    }

    /// When it expires.
    #[inline]
    pub(crate) fn expires_ns(self) -> u64 {
        expires_ns(self.now_ns, self.wait_ns)
    }

    /// It never expires before: less work than to say when.
    #[inline]
    pub(crate) fn ends_ns(self) -> u64 {
        self.now_ns + self.wait_ns
    }
}
