//! Times of the processors, from /proc/stat, and from the virtual machine if it reports idle time. It
//! must never know what keeps them busy.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

/// Length of a window in which a processor's load is averaged.
const WINDOW_NS: u64 = 1_000_000_000;
/// Part of a window that must have passed for its load to count.
const LEAST_WINDOW_NS: u64 = 200_000_000;
/// /proc/stat counts in 1/100 s (USER_HZ).
const TICK_NS: u64 = 10_000_000;

/// The processors of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Processors {
    /// Idle time of the only processor, in a machine that counts it. Since Linux 7.x a kernel without
    /// CONFIG_IRQ_TIME_ACCOUNTING counts interrupts that wake an idle processor, and the packets that
    /// these forward, as idle time (kernel/sched/cputime.c kcpustat_irq_enter()).
    pub(crate) idle_ns: Option<&'static AtomicU64>,
}

/// Busy shares over windows of a second.
pub(crate) struct CpuMeter {
    processors: Processors,
    window_start_ns: u64,
    idle_ns: Vec<u64>,
    shares: Vec<f64>,
}

impl CpuMeter {
    pub(crate) fn start(processors: Processors, now_ns: u64) -> Self {
        Self {
            processors,
            window_start_ns: now_ns,
            idle_ns: processors.idle_times(),
            shares: Vec::new(),
        }
    }

    /// The first window begins now.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        *self = Self::start(self.processors, now_ns);
    }

    /// When to call [`CpuMeter::look`] next.
    pub(crate) fn due_ns(&self) -> u64 {
        self.window_start_ns + WINDOW_NS
    }

    /// Closes a window.
    pub(crate) fn look(&mut self, now_ns: u64) {
        let passed_ns = now_ns - self.window_start_ns;
        let idle_ns = self.processors.idle_times();
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

/// What a processor has spent since boot, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// Its number.
    pub(crate) cpu: u64,
    /// Programs, those with a lowered priority included.
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    pub(crate) irq_ns: u64,
    pub(crate) softirq_ns: u64,
    /// Taken by the host of a virtual machine.
    pub(crate) steal_ns: u64,
    /// Waiting for I/O included.
    pub(crate) idle_ns: u64,
}

impl Processors {
    /// Each processor's times: proc_stat(5), the lines `cpuN`.
    pub(crate) fn times(self) -> Vec<Times> {
        let mut all = parse(&fs::read_to_string("/proc/stat").unwrap_or_default());
        if let (Some(told), [only]) = (self.idle_ns, all.as_mut_slice()) {
            only.idle_ns = told.load(Ordering::Relaxed);
        }
        all
    }

    fn idle_times(self) -> Vec<u64> {
        self.times().iter().map(|times| times.idle_ns).collect()
    }
}

fn parse(text: &str) -> Vec<Times> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.strip_prefix("cpu")?.split(' ');
            let cpu = words.next()?.parse().ok()?;
            let mut next = || -> u64 {
                let ticks = words.next().and_then(|word| word.parse::<u64>().ok());
                ticks.unwrap_or(0) * TICK_NS
            };
            let [user, nice, system, idle, iowait, irq, softirq, steal] =
                std::array::from_fn(|_| next());
            Some(Times {
                cpu,
                user_ns: user + nice,
                system_ns: system,
                irq_ns: irq,
                softirq_ns: softirq,
                steal_ns: steal,
                idle_ns: idle + iowait,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_single_processors_are_read_in_the_order_of_proc_stat() {
        let text = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu3 0 0 0 1\nintr 7 8\n";
        let hundredths = |value: u64| value * 10_000_000;
        let first = Times {
            cpu: 0,
            user_ns: hundredths(3),
            system_ns: hundredths(3),
            irq_ns: hundredths(6),
            softirq_ns: hundredths(7),
            steal_ns: hundredths(8),
            idle_ns: hundredths(9),
        };
        let last = Times {
            cpu: 3,
            idle_ns: hundredths(1),
            ..Times::default()
        };
        assert_eq!(parse(text), [first, last]);
    }
}
