//! The clock and the random numbers of stacks that take neither as an argument: the library's calls of
//! `clock_gettime`, `getrandom`, `syscall` and BoringSSL's `RAND_bytes` come here (the modules' build.rs).
//! Python's own are not touched, nor what BoringSSL takes from the processor for its own keys (RDRAND), which
//! changes no packet's size. Must never know a stack.
//!
//! The time is the last one that an endpoint of this thread was called with. Random numbers are one sequence
//! for a thread, and the simulator gives each run a thread of its own.

use std::cell::Cell;
use std::ffi::{c_int, c_long, c_uint, c_void};

use crate::seeded;

/// When the run begins, as the stacks see it: within the certificates' validity.
const BEGIN_S: u64 = 1_800_000_000;
const NS: u64 = 1_000_000_000;

thread_local! {
    /// ns; 0: the real time.
    static NOW_NS: Cell<u64> = const { Cell::new(0) };
}

/// The time until the next call.
pub fn set(now_ns: u64) {
    NOW_NS.set(BEGIN_S * NS + now_ns);
}

extern "C" {
    fn __real_clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> c_int;
    fn __real_syscall(number: c_long, ...) -> c_long;
}

#[no_mangle]
unsafe extern "C" fn __wrap_clock_gettime(
    clock: libc::clockid_t,
    time: *mut libc::timespec,
) -> c_int {
    let now_ns = NOW_NS.get();
    if now_ns == 0 || !matches!(clock, libc::CLOCK_MONOTONIC | libc::CLOCK_REALTIME) {
        // SAFETY: passed on.
        return unsafe { __real_clock_gettime(clock, time) };
    }
    let now = libc::timespec {
        tv_sec: (now_ns / NS) as _,
        tv_nsec: (now_ns % NS) as _,
    };
    // SAFETY: the caller passes a place for it.
    unsafe { time.write(now) };
    0
}

#[no_mangle]
unsafe extern "C" fn __wrap_getrandom(bytes: *mut c_void, length: usize, _flags: c_uint) -> isize {
    // SAFETY: the caller passes a buffer with its length.
    unsafe { seeded::fill(bytes.cast(), length) };
    length as isize
}

#[no_mangle]
unsafe extern "C" fn __wrap_RAND_bytes(bytes: *mut u8, length: usize) -> c_int {
    // SAFETY: the caller passes a buffer with its length.
    unsafe { seeded::fill(bytes, length) };
    1
}

/// A variadic function is called as one with as many arguments as a system call can have.
#[no_mangle]
unsafe extern "C" fn __wrap_syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    if number == libc::SYS_getrandom {
        // BoringSSL's first call of the process probes without blocking whether the call exists. It draws
        // nothing, or the first run of a process would differ from the others.
        if c & libc::GRND_NONBLOCK as usize == 0 {
            // SAFETY: its arguments are a buffer and its length.
            unsafe { seeded::fill(a as *mut u8, b) };
        }
        return b as c_long;
    }
    // SAFETY: passed on.
    unsafe { __real_syscall(number, a, b, c, d, e, f) }
}
