//! The kernel's ticks, by which its timers expire.

use std::fs;

use crate::clock::now_ns;

/// HZ=250, as Debian builds its kernels.
const TICK_NS: u64 = 4_000_000;
/// Scripts begin where all levels of the timer wheel turn that they use.
const WHEEL_TICKS: u64 = 4_096;
/// Least time between two scripts.
const PAUSE_NS: u64 = 100_000_000;

/// Which tick is when.
pub(super) struct Ticks {
    /// The tick of time 0.
    first: u64,
}

impl Ticks {
    pub(super) fn read() -> Result<Self, String> {
        Ok(Self {
            first: first_tick()?,
        })
    }

    /// The next time at which a script may begin.
    pub(super) fn next_start_ns(&self) -> u64 {
        let soonest = (now_ns() + PAUSE_NS) / TICK_NS + self.first;
        (soonest.next_multiple_of(WHEEL_TICKS) - self.first) * TICK_NS
    }
}

/// The tick that the kernel counts at time 0 of the clock. Ticks come at multiples of their length.
fn first_tick() -> Result<u64, String> {
    let path = "/proc/timer_list";
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let number = |line: &str, before: &str, behind: &str| {
        let middle = line.strip_prefix(before)?.strip_suffix(behind)?;
        middle.parse::<u64>().ok()
    };
    let find = |before: &str, behind: &str| {
        let mut lines = text.lines();
        let value = lines.find_map(|line| number(line.trim(), before, behind));
        value.ok_or_else(|| format!("{path}: has no line `{before}N{behind}`"))
    };
    let now_ns = find("now at ", " nsecs")?;
    Ok(find("jiffies: ", "")? - now_ns / TICK_NS)
}
