//! Expiry of timers in Linux's timer wheel, which counts ticks and never fires early: calc_wheel_index()
//! of kernel/time/timer.c. High-resolution timers (pacing, compressed ACKs) do not use it.

/// HZ=250, as Debian builds its kernels.
const TICK_NS: u64 = 4_000_000;
/// Ticks that the first level of the wheel spans, and how much coarser each further level is.
const LEVEL_TICKS: u64 = 63;
const LEVEL_FACTOR: u64 = 8;

/// When a timer that is set at `now_ns` for `wait_ns` expires.
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

/// A timer. Most are set again before they expire, so the tick of expiry is computed only on demand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Countdown {
    /// When it was set; `u64::MAX`: it does not run.
    pub(crate) set_ns: u64,
    pub(crate) wait_ns: u64,
}

impl Countdown {
    /// A timer that does not run.
    pub(crate) const NEVER: Self = Self {
        set_ns: u64::MAX,
        wait_ns: 0,
    };

    /// Whether it runs.
    #[inline]
    pub(crate) fn runs(self) -> bool {
        self.set_ns != u64::MAX
    }

    /// When it expires.
    #[inline]
    pub(crate) fn expires_ns(self) -> u64 {
        expires_ns(self.set_ns, self.wait_ns)
    }

    /// A lower bound of the expiry, cheaper than [`Self::expires_ns`].
    #[inline]
    pub(crate) fn lower_bound_ns(self) -> u64 {
        self.set_ns + self.wait_ns
    }
}
