//! Rates and delays from files: Mahimahi's delivery opportunities, and delays with their times. Every
//! line of a file is checked.

use std::fs::File;
use std::io::{BufRead, BufReader};

use serde::{Deserialize, Serialize};

/// Most lines of a file: 48 s at 1 Gbit/s.
pub const MAX_LINES: usize = 4_000_000;
/// Bytes on the wire that an opportunity passes: an IP packet of 1500 and its Ethernet header.
pub const OPPORTUNITY_BYTES: u64 = 1514;
/// A day.
const MAX_MS: u64 = 86_400_000;
const NS_PER_MS: u64 = 1_000_000;

/// A file that a plan refers to.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct TraceFile {
    /// Its path.
    pub path: String,
    /// The hash of its content, which decides a run's result.
    pub sha256: String,
}

/// Delivery opportunities: at each a full packet may pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateTrace {
    /// When, in ms; never decreasing. The last one is the length, after which all repeats.
    pub times_ms: Vec<u32>,
}

impl RateTrace {
    /// From a file of Mahimahi; the error names line and value.
    pub fn read(path: &str) -> Result<Self, String> {
        let mut times_ms: Vec<u32> = Vec::new();
        each_line(path, |number, line| {
            let ms = milliseconds(number, line)?;
            if let Some(&before) = times_ms.last().filter(|&&before| before > ms) {
                return Err(format!(
                    "line {number}: {ms}: comes after {before}; times never decrease"
                ));
            }
            times_ms.push(ms);
            Ok(())
        })?;
        match times_ms.last() {
            None => Err("is empty; a trace has a time in ms on each line".into()),
            Some(0) => Err(format!(
                "line {}: 0: the last time is the trace's length and must be above 0",
                times_ms.len()
            )),
            Some(_) => Ok(Self { times_ms }),
        }
    }

    /// After which it repeats.
    pub fn period_ms(&self) -> u64 {
        self.times_ms.last().copied().unwrap_or(1).into()
    }

    /// Mean rate on the wire.
    pub fn mean_bps(&self) -> u64 {
        self.times_ms.len() as u64 * OPPORTUNITY_BYTES * 8 * 1000 / self.period_ms()
    }

    /// The rate in each `bin_ms` until `end_ns` as (ns, bit/s), where it changes: for shapers that
    /// know rates only.
    pub fn steps(&self, bin_ms: u64, end_ns: u64) -> Vec<(u64, u64)> {
        let period = self.period_ms();
        let count_before = |ms: u64| {
            let within = (ms % period) as u32;
            let in_part = self.times_ms.partition_point(|&at| at < within);
            (ms / period) * self.times_ms.len() as u64 + in_part as u64
        };
        let mut steps: Vec<(u64, u64)> = Vec::new();
        let mut start_ms = 0;
        while start_ms * NS_PER_MS < end_ns {
            let packets = count_before(start_ms + bin_ms) - count_before(start_ms);
            let rate_bps = packets * OPPORTUNITY_BYTES * 8 * 1000 / bin_ms;
            if steps.last().is_none_or(|&(_, last)| last != rate_bps) {
                steps.push((start_ms * NS_PER_MS, rate_bps));
            }
            start_ms += bin_ms;
        }
        steps
    }
}

/// Delays from times on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayTrace {
    /// Times and delays in ns; times rise from 0.
    pub steps: Vec<(u64, u64)>,
    /// After which it repeats.
    pub period_ns: u64,
}

impl DelayTrace {
    /// From a file with a time in ms and a one-way delay in ms on each line; the time of the last line
    /// is where it repeats. The error names line and value.
    pub fn read(path: &str) -> Result<Self, String> {
        let mut steps: Vec<(u64, u64)> = Vec::new();
        each_line(path, |number, line| {
            let (time, delay) = line.split_once([' ', '\t']).ok_or_else(|| {
                format!("line {number}: {line:?}: must be a time and a delay in ms, as 15000 31.5")
            })?;
            let at_ns = u64::from(milliseconds(number, time)?) * NS_PER_MS;
            let delay = delay.trim();
            let delay_ms: f64 = delay.parse().unwrap_or(f64::NAN);
            if !(0.0..=3_600_000.0).contains(&delay_ms) {
                return Err(format!(
                    "line {number}: {delay:?}: a delay is a number of ms from 0 to 3600000"
                ));
            }
            match steps.last() {
                None if at_ns > 0 => {
                    return Err(format!("line {number}: {time}: the first time must be 0"))
                }
                Some(&(before_ns, _)) if before_ns >= at_ns => {
                    return Err(format!(
                        "line {number}: {time}: comes after {}; times rise",
                        before_ns / NS_PER_MS
                    ))
                }
                _ => {}
            }
            steps.push((at_ns, (delay_ms * 1e6).round() as u64));
            Ok(())
        })?;
        let last = steps.pop();
        match last {
            None => Err("is empty; a trace has a time and a delay in ms on each line".into()),
            Some(_) if steps.is_empty() => {
                Err("line 1: is the only one; the last line says where the trace repeats".into())
            }
            Some((period_ns, _)) => Ok(Self { steps, period_ns }),
        }
    }

    /// All steps until `end_ns`, repetitions written out.
    pub fn unrolled(&self, end_ns: u64) -> Vec<(u64, u64)> {
        let rounds = (0..).map(|round| round * self.period_ns);
        rounds
            .take_while(|&base_ns| base_ns < end_ns)
            .flat_map(|base_ns| self.steps.iter().map(move |&(at, ns)| (base_ns + at, ns)))
            .take_while(|&(at_ns, _)| at_ns < end_ns)
            .take(MAX_LINES)
            .collect()
    }
}

fn milliseconds(number: usize, text: &str) -> Result<u32, String> {
    let text = text.trim();
    match text.parse::<u64>() {
        Ok(ms) if ms <= MAX_MS => Ok(ms as u32),
        _ => {
            let shown: String = text.chars().take(40).collect();
            Err(format!(
                "line {number}: {shown:?}: a time is a whole number of ms, 0 to {MAX_MS}"
            ))
        }
    }
}

fn each_line(
    path: &str,
    mut each: impl FnMut(usize, &str) -> Result<(), String>,
) -> Result<(), String> {
    const MOST_BYTES: u64 = 100;
    let told = |error: std::io::Error| format!("cannot be read: {error}");
    let mut file = BufReader::with_capacity(1 << 16, File::open(path).map_err(told)?);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        // Limits the memory for a line that does not end.
        let mut part = std::io::Read::take(&mut file, MOST_BYTES);
        if part.read_until(b'\n', &mut line).map_err(told)? == 0 {
            break;
        }
        let text = std::str::from_utf8(&line).unwrap_or("not text").trim();
        // A byte-order mark, which editors on Windows write.
        let text = if number == 1 {
            text.trim_start_matches('\u{feff}')
        } else {
            text
        };
        if number > MAX_LINES {
            return Err(format!(
                "line {number}: {text}: one too many; a trace has at most {MAX_LINES} lines"
            ));
        }
        // Mahimahi reads no empty lines; the end of a file may have one.
        if text.is_empty() {
            let mut byte = [0];
            let more = std::io::Read::read(&mut file, &mut byte).map_err(told)?;
            if more == 0 {
                break;
            }
            return Err(format!("line {number}: is empty"));
        }
        each(number, text)?;
    }
    Ok(())
}
