//! How busy the processors are, from /proc/stat. It must never know what keeps them busy.

use std::fs;

/// Length of a window in which a processor's load is averaged.
const WINDOW_NS: u64 = 1_000_000_000;
/// Part of a window that must have passed for its load to count.
const LEAST_WINDOW_NS: u64 = 200_000_000;
/// /proc/stat counts in 1/100 s on every Linux of today (USER_HZ).
const TICK_NS: u64 = 10_000_000;

/// Busy shares over windows of a second.
pub(crate) struct CpuMeter {
    window_start_ns: u64,
    idle_ns: Vec<u64>,
    shares: Vec<f64>,
}

impl CpuMeter {
    pub(crate) fn start(now_ns: u64) -> Self {
        Self {
            window_start_ns: now_ns,
            idle_ns: idle_times(),
            shares: Vec::new(),
        }
    }

    /// When to call [`CpuMeter::look`] next.
    pub(crate) fn due_ns(&self) -> u64 {
        self.window_start_ns + WINDOW_NS
    }

    /// Closes a window.
    pub(crate) fn look(&mut self, now_ns: u64) {
        let passed_ns = now_ns - self.window_start_ns;
        let idle_ns = idle_times();
        if passed_ns >= LEAST_WINDOW_NS {
            for (now, before) in idle_ns.iter().zip(&self.idle_ns) {
                let idle = now.saturating_sub(*before) as f64 / passed_ns as f64;
                self.shares.push((1.0 - idle).clamp(0.0, 1.0));
            }
        }
        self.idle_ns = idle_ns;
        self.window_start_ns = now_ns;
    }

    /// Mean and largest share of all processors and windows; `None`: the run was too short.
    pub(crate) fn mean_and_max(&self) -> Option<(f64, f64)> {
        let max = self.shares.iter().copied().reduce(f64::max)?;
        Some((
            self.shares.iter().sum::<f64>() / self.shares.len() as f64,
            max,
        ))
    }
}

/// Idle time of each processor since boot, waiting for I/O included.
fn idle_times() -> Vec<u64> {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let is_processor = |line: &&str| {
        let name = line.strip_prefix("cpu").unwrap_or("");
        name.starts_with(|first: char| first.is_ascii_digit())
    };
    text.lines()
        .filter(is_processor)
        .map(|line| {
            let field = |index: usize| -> u64 {
                let word = line.split_ascii_whitespace().nth(index);
                word.and_then(|word| word.parse().ok()).unwrap_or(0)
            };
            (field(4) + field(5)) * TICK_NS
        })
        .collect()
}
