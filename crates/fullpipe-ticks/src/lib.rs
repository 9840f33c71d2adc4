//! Expiry of timers in Linux's timer wheel, which counts ticks and never fires early: calc_wheel_index()
//! of kernel/time/timer.c. High-resolution timers (pacing, compressed ACKs, DualPI2's updates) do not use it.

/// HZ=250, as Debian builds its kernels.
pub const TICK_NS: u64 = 4_000_000;
/// Ticks that the first level of the wheel spans, and how much coarser each further level is.
const LEVEL_TICKS: u64 = 63;
const LEVEL_FACTOR: u64 = 8;

/// Timers that wait less than this have a bucket of their tick.
pub const FINE_NS: u64 = (LEVEL_TICKS - 1) * TICK_NS;

/// The tick in which a timer ends that is set at `now_ns` for `wait_ns`. Its bucket may expire later.
#[inline]
#[must_use]
pub fn ends_in_tick(now_ns: u64, wait_ns: u64) -> u64 {
    now_ns / TICK_NS + wait_ns.div_ceil(TICK_NS)
}

/// When a timer that is set at `now_ns` for `wait_ns` expires.
#[inline]
#[must_use]
pub fn expires_ns(now_ns: u64, wait_ns: u64) -> u64 {
    expires_at(ends_in_tick(now_ns, wait_ns), wait_ns.div_ceil(TICK_NS))
}

/// Time from one moment to another as code sees it that counts ticks (tcp_jiffies32).
#[inline]
#[must_use]
pub fn elapsed_ns(from_ns: u64, to_ns: u64) -> u64 {
    (to_ns / TICK_NS).saturating_sub(from_ns / TICK_NS) * TICK_NS
}

/// The same of a timer that is set while another one of this tick expires: the wheel's clock is a tick ahead
/// then (__run_timers()).
#[must_use]
pub fn expires_from_handler_ns(now_ns: u64, wait_ns: u64) -> u64 {
    let wait = wait_ns.div_ceil(TICK_NS);
    expires_at(ends_in_tick(now_ns, wait_ns), wait.saturating_sub(1))
}

/// When the bucket expires that has tick `at`, `wait` ticks ahead of the wheel's clock.
#[inline]
fn expires_at(at: u64, wait: u64) -> u64 {
    if wait < LEVEL_TICKS {
        return (at + 1) * TICK_NS;
    }
    let mut granularity = LEVEL_FACTOR;
    while wait >= LEVEL_TICKS * granularity {
        granularity *= LEVEL_FACTOR;
    }
    (at / granularity + 1) * granularity * TICK_NS
}
