//! What files of the Linux kernel log in a run of the simulator (cc/linux_print.h), as `dmesg` writes it.
//! Each thread has its own log, as each run has one thread. It must not know what any line means.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::{c_char, CStr};
use std::fmt::Write as _;

/// What of a flood is kept, as of a kernel's (crates/fullpipe-agent, kernel_log.rs).
const MOST_BYTES: usize = 64 << 10;
/// DEFAULT_RATELIMIT_INTERVAL and DEFAULT_RATELIMIT_BURST of linux/ratelimit_types.h.
const INTERVAL_NS: u64 = 5_000_000_000;
const BURST: u32 = 10;

/// How often a place in the file may log (`enum linux_limit`).
const ONCE: u32 = 1;
const RATED: u32 = 2;
const ONCE_THE_SAME: u32 = 3;

/// The type of `linux_log`.
pub(crate) type Hook =
    extern "C" fn(limit: u32, place: *const c_char, now_ns: u64, text: *const c_char);

/// The log of a run.
#[derive(Default)]
struct Log {
    text: String,
    left_out: u64,
    /// Places, or places and texts, that may not log again.
    said: HashSet<String>,
    /// Of a place: when its interval began, and lines in it.
    rates: HashMap<String, (u64, u32)>,
}

impl Log {
    fn add(&mut self, limit: u32, place: &str, now_ns: u64, text: &str) {
        let is_silent = match limit {
            ONCE => !self.said.insert(place.to_owned()),
            ONCE_THE_SAME => !self.said.insert(format!("{place} {text}")),
            RATED => self.is_too_often(place, now_ns),
            _ => false,
        };
        if is_silent {
            return;
        }
        let (seconds, rest) = (now_ns / 1_000_000_000, now_ns / 1000 % 1_000_000);
        for line in text.lines() {
            if self.text.len() < MOST_BYTES {
                let _ = writeln!(self.text, "[{seconds:5}.{rest:06}] {line}");
            } else {
                self.left_out += 1;
            }
        }
    }

    fn is_too_often(&mut self, place: &str, now_ns: u64) -> bool {
        let rate = self.rates.entry(place.to_owned()).or_insert((now_ns, 0));
        if now_ns.saturating_sub(rate.0) > INTERVAL_NS {
            *rate = (now_ns, 0);
        }
        rate.1 += 1;
        rate.1 > BURST
    }

    fn finish(mut self) -> String {
        if self.left_out > 0 {
            let _ = writeln!(self.text, "({} lines more)", self.left_out);
        }
        self.text
    }
}

thread_local! {
    static LOG: RefCell<Log> = RefCell::default();
}

/// What was logged on this thread since the last time; empty where nothing was.
pub fn take() -> String {
    LOG.take().finish()
}

pub(crate) extern "C" fn receive(
    limit: u32,
    place: *const c_char,
    now_ns: u64,
    text: *const c_char,
) {
    // SAFETY: cc/linux_print.h passes literals and a buffer, each with its NUL.
    let (place, text) = unsafe { (CStr::from_ptr(place), CStr::from_ptr(text)) };
    LOG.with_borrow_mut(|log| {
        log.add(
            limit,
            &place.to_string_lossy(),
            now_ns,
            &text.to_string_lossy(),
        );
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_time_as_dmesg_writes_it() {
        let mut log = Log::default();
        log.add(0, "x.c:1", 3_012_345_999, "one\ntwo\n");
        assert_eq!(log.finish(), "[    3.012345] one\n[    3.012345] two\n");
    }

    #[test]
    fn a_place_logs_once_or_ten_times_in_five_seconds() {
        let mut log = Log::default();
        for second in 0..12 {
            log.add(ONCE, "x.c:1", second * 1_000_000_000, "once");
            log.add(
                ONCE_THE_SAME,
                "x.c:2",
                0,
                if second < 6 { "a" } else { "b" },
            );
        }
        for tenth in 0..100 {
            log.add(RATED, "x.c:3", tenth * 100_000_000, "rated");
        }
        let text = log.finish();
        let count = |word: &str| text.lines().filter(|line| line.ends_with(word)).count();
        assert_eq!((count("once"), count("] a"), count("] b")), (1, 1, 1));
        assert_eq!(count("rated"), 20);
    }

    #[test]
    fn a_flood_is_counted_and_not_kept() {
        let mut log = Log::default();
        for _ in 0..10_000 {
            log.add(0, "x.c:1", 0, "more and more");
        }
        let text = log.finish();
        assert!(text.len() < MOST_BYTES + 100);
        let kept = text.lines().count() - 1;
        assert!(text.ends_with(&format!("({} lines more)\n", 10_000 - kept)));
    }
}
