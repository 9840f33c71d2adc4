//! What one fluid run is given, and the check that it makes sense.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Congestion controls of the published model.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Cc {
    /// Reno.
    Reno,
    /// CUBIC with the published program's constants.
    Cubic,
    /// BBR version 1.
    Bbr1,
    /// BBR version 2.
    Bbr2,
}

/// How the bottleneck decides about drops.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Aqm {
    /// Drops what does not fit.
    DropTail,
    /// Drops with probability queue / buffer.
    Red,
}

/// One sender.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Its congestion control.
    pub cc: Cc,
    /// One-way delay before the bottleneck.
    pub access_delay_ms: f64,
    /// Part of a second in [0, 1) by which its first probing period is already older than ten
    /// round trips, where any flow is BBRv2.
    pub period_age_s: f64,
}

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Capacity of the bottleneck, segments per ms.
    pub capacity_seg_per_ms: f64,
    /// Buffer of the bottleneck in segments.
    pub buffer_seg: f64,
    /// The buffer as a multiple of capacity x one-way link delay; BBRv2's initial upper bound of
    /// the in-flight volume depends on it.
    pub buffer_link_bdp: f64,
    /// One-way delay of the bottleneck link.
    pub link_delay_ms: f64,
    /// How drops are decided.
    pub aqm: Aqm,
    /// The senders. Their order matters: BBR's probing phases depend on the index.
    pub flows: Vec<FlowSpec>,
    /// Simulated time.
    pub duration_ms: f64,
    /// Metrics count from here...
    pub window_start_ms: f64,
    /// ...until so long before the end.
    pub window_cut_ms: f64,
    /// Step of the integration.
    pub step_ms: f64,
    /// Interval of the trace's samples; `None`: no trace.
    pub sample_interval_ms: Option<f64>,
}

/// Why a [`Spec`] cannot be run.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{field}: {reason}")]
pub struct SpecError {
    /// The field.
    pub field: &'static str,
    /// What would be right.
    pub reason: String,
}

/// Bounds that keep memory and index arithmetic in range whatever the caller asks for.
const STEPS_MAX: f64 = 4.0e9;
const BASE_RTT_MAX_MS: f64 = 60_000.0;
const HISTORY_STEPS_MAX: f64 = 5.0e7;
const SAMPLES_MAX: f64 = 1.0e7;

pub(crate) fn positive(field: &'static str, value: f64) -> Result<(), SpecError> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(SpecError {
        field,
        reason: format!("must be a finite number above 0, not {value}"),
    })
}

pub(crate) fn check(field: &'static str, holds: bool, reason: &str) -> Result<(), SpecError> {
    if holds {
        return Ok(());
    }
    Err(SpecError {
        field,
        reason: reason.to_owned(),
    })
}

pub(crate) fn check_flows(flows: usize) -> Result<(), SpecError> {
    let is_good = (1..=1000).contains(&flows);
    check("flows", is_good, "must be between 1 and 1000 flows")
}

pub(crate) fn check_samples(
    interval_ms: Option<f64>,
    duration_ms: f64,
    flows: usize,
) -> Result<(), SpecError> {
    let Some(interval_ms) = interval_ms else {
        return Ok(());
    };
    positive("sample_interval_ms", interval_ms)?;
    let samples = duration_ms / interval_ms * flows as f64;
    let too_many = "too short: over 1e7 samples";
    check("sample_interval_ms", samples <= SAMPLES_MAX, too_many)
}

impl Spec {
    /// Refuses what cannot be integrated.
    ///
    /// # Errors
    /// The first field that is out of range, with what would be right.
    pub fn validate(&self) -> Result<(), SpecError> {
        positive("capacity_seg_per_ms", self.capacity_seg_per_ms)?;
        positive("buffer_seg", self.buffer_seg)?;
        positive("buffer_link_bdp", self.buffer_link_bdp)?;
        positive("link_delay_ms", self.link_delay_ms)?;
        positive("duration_ms", self.duration_ms)?;
        positive("step_ms", self.step_ms)?;
        check_flows(self.flows.len())?;
        let steps = self.duration_ms / self.step_ms;
        check(
            "duration_ms",
            steps <= STEPS_MAX,
            "must be at most 4e9 steps",
        )?;
        check("duration_ms", steps >= 2.0, "must be at least two steps")?;
        check("step_ms", self.step_ms <= 1.0, "must be at most 1 ms")?;
        let mut history_steps = 0.0;
        for flow in &self.flows {
            check(
                "flows.access_delay_ms",
                flow.access_delay_ms.is_finite() && flow.access_delay_ms >= self.step_ms,
                "must be finite and at least one step",
            )?;
            check(
                "flows.period_age_s",
                (0.0..1.0).contains(&flow.period_age_s),
                "must be in [0, 1)",
            )?;
            let rtt_ms = self.base_rtt_ms(flow);
            check(
                "flows.access_delay_ms",
                rtt_ms <= BASE_RTT_MAX_MS,
                "base RTT must be <= 60 s",
            )?;
            let queue_ms = self.buffer_seg / self.capacity_seg_per_ms;
            history_steps += (4.0 * rtt_ms + 4.0 * queue_ms) / self.step_ms;
        }
        check(
            "buffer_seg",
            history_steps <= HISTORY_STEPS_MAX,
            "base RTT and buffer are too long for this step: the history would not fit in memory",
        )?;
        check(
            "window_start_ms",
            self.window_start_ms >= 0.0
                && self.window_cut_ms >= 0.0
                && self.window_start_ms + 2.0 * self.step_ms.max(1.0)
                    <= self.duration_ms - self.window_cut_ms,
            "must lie in the run, at least 2 ms before the end of the window",
        )?;
        check_samples(self.sample_interval_ms, self.duration_ms, self.flows.len())
    }

    /// Round-trip time of a flow with an empty queue.
    #[must_use]
    pub fn base_rtt_ms(&self, flow: &FlowSpec) -> f64 {
        2.0 * self.link_delay_ms + 2.0 * flow.access_delay_ms
    }
}
