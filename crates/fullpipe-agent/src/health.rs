//! Whether the measurement itself can be trusted: figures, and reasons why not.

use std::fs;

use fullpipe_plan::stream::Frame;

use crate::request::Clock;
use crate::sample::{CpuMeter, Processors};
use crate::sink::Sink;

/// Above this load in any second the processor, not the network, limited the run.
const SATURATED_SHARE: f64 = 0.95;
/// Part of all samples that may be late.
const LATE_SHARE: f64 = 0.01;

/// Grows with the run.
pub(crate) struct Health {
    pub(crate) cpu: CpuMeter,
    interval_ns: u64,
    samples: u64,
    late_samples: u64,
    latest_ns: u64,
    backlog_drops: u64,
    problems: Vec<String>,
}

impl Health {
    pub(crate) fn start(processors: Processors, now_ns: u64, interval_ns: u64) -> Self {
        Self {
            cpu: CpuMeter::start(processors, now_ns),
            interval_ns,
            samples: 0,
            late_samples: 0,
            latest_ns: 0,
            backlog_drops: backlog_drops(),
            problems: Vec::new(),
        }
    }

    /// A sample that was due at `due_ns` is taken now.
    pub(crate) fn note_sample(&mut self, due_ns: u64, now_ns: u64) {
        let late_ns = now_ns - due_ns;
        self.samples += 1;
        self.late_samples += u64::from(late_ns > self.interval_ns / 10);
        self.latest_ns = self.latest_ns.max(late_ns);
    }

    pub(crate) fn add_problem(&mut self, sentence: String) {
        self.problems.push(sentence);
    }

    /// Emits everything at the end of the run.
    pub(crate) fn report(mut self, clock: Clock, sink: &mut dyn Sink) {
        let mut figure = |name: &str, value: f64| sink.put(&Frame::Figure(name.into(), value));
        figure("samples", self.samples as f64);
        figure("late_samples", self.late_samples as f64);
        figure("latest_sample_us", self.latest_ns as f64 / 1000.0);
        if let Some((mean, max)) = self.cpu.mean_and_max() {
            figure("cpu_busy_mean", mean);
            figure("cpu_busy_max", max);
            if max > SATURATED_SHARE {
                let whose = match clock {
                    Clock::Virtual => "the virtual processor",
                    Clock::Wall => "a processor of this host",
                };
                let percent = max * 100.0;
                self.problems.push(format!(
                    "{whose} was {percent:.0} % busy in one second: its speed is part of the result"
                ));
            }
        }
        if self.late_samples as f64 > LATE_SHARE * self.samples as f64 {
            self.problems.push(format!(
                "{} of {} samples were more than a tenth of the interval late, at most {} us",
                self.late_samples,
                self.samples,
                self.latest_ns / 1000
            ));
        }
        let drops = backlog_drops().saturating_sub(self.backlog_drops);
        if drops > 0 {
            self.problems.push(format!(
                "the kernel threw away {drops} packets between two links \
                 (net.core.netdev_max_backlog)"
            ));
        }
        if sink.is_full() {
            self.problems
                .push("the recording is not whole: its memory was full".to_owned());
        }
        for sentence in self.problems {
            sink.put(&Frame::Problem(sentence));
        }
    }
}

/// Packets that found the input queue of a processor full: second column of softnet_stat.
fn backlog_drops() -> u64 {
    let text = fs::read_to_string("/proc/net/softnet_stat").unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_ascii_whitespace().nth(1))
        .filter_map(|word| u64::from_str_radix(word, 16).ok())
        .sum()
}
