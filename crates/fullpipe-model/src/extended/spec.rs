//! What a run of the extended model is given and returns.

use serde::{Deserialize, Serialize};

use crate::spec::{check, check_flows, check_samples, positive, SpecError};

/// Congestion controls of the extended model.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Cc {
    /// Reno (RFC 5681).
    Reno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// BBR version 2.
    Bbr2,
    /// BBR version 3.
    Bbr3,
}

/// One sender.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Its congestion control.
    pub cc: Cc,
    /// Round-trip time with an empty queue.
    pub base_rtt_ms: f64,
    /// When it starts.
    pub start_ms: f64,
}

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ExtendedSpec {
    /// Capacity of the bottleneck, segments per ms.
    pub capacity_seg_per_ms: f64,
    /// Buffer of the bottleneck in segments.
    pub buffer_seg: f64,
    /// Pacing rate from which BBR sends two segments at once, segments per ms.
    pub two_burst_seg_per_ms: f64,
    /// The senders.
    pub flows: Vec<FlowSpec>,
    /// Simulated time.
    pub duration_ms: f64,
    /// Metrics count from here to the end.
    pub window_start_ms: f64,
    /// Step of the integration.
    pub step_ms: f64,
    /// Seed of the random waits between BBR's probes.
    pub seed: u64,
    /// Interval of the trace's samples; `None`: no trace.
    pub sample_interval_ms: Option<f64>,
}

/// Means over the window.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct ExtendedOutcome {
    /// Delivered rate of each flow, segments per ms.
    pub delivery_rate_seg_per_ms: Vec<f64>,
    /// Lost part of what was sent, by flow.
    pub loss: Vec<f64>,
    /// Mean queue in segments.
    pub queue_seg: f64,
    /// Part of the capacity that is used.
    pub utilisation: f64,
    /// Jain index of the delivered rates.
    pub jain_index: f64,
    /// Samples over the whole run.
    pub trace: Option<ExtendedTrace>,
}

/// Samples over the whole run; one row of the outer vectors per flow.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct ExtendedTrace {
    /// Time of each sample.
    pub time_ms: Vec<f64>,
    /// Queue in segments.
    pub queue_seg: Vec<f64>,
    /// In flight, segments.
    pub inflight_seg: Vec<Vec<f64>>,
    /// BBR's long-term bound, segments (0: none).
    pub longterm_seg: Vec<Vec<f64>>,
    /// BBR's bandwidth estimate, segments per ms.
    pub bandwidth_seg_per_ms: Vec<Vec<f64>>,
    /// BBR's minimal RTT, ms.
    pub min_rtt_ms: Vec<Vec<f64>>,
    /// BBR's phase: 0 Startup, 1 Drain, 2 Down, 3 Cruise, 4 Refill, 5 Up, 6 ProbeRTT.
    pub phase: Vec<Vec<u8>>,
}

impl ExtendedSpec {
    /// Refuses what cannot be integrated.
    ///
    /// # Errors
    /// The first field that is out of range, with what would be right.
    pub fn validate(&self) -> Result<(), SpecError> {
        positive("capacity_seg_per_ms", self.capacity_seg_per_ms)?;
        positive("buffer_seg", self.buffer_seg)?;
        positive("two_burst_seg_per_ms", self.two_burst_seg_per_ms)?;
        positive("duration_ms", self.duration_ms)?;
        positive("step_ms", self.step_ms)?;
        check_flows(self.flows.len())?;
        check(
            "duration_ms",
            self.duration_ms / self.step_ms <= 1e9,
            "must be at most 1e9 steps",
        )?;
        check(
            "window_start_ms",
            self.window_start_ms >= 0.0
                && self.window_start_ms + 2.0 * self.step_ms <= self.duration_ms,
            "must lie in the run, before its end",
        )?;
        let queue_ms = self.buffer_seg / self.capacity_seg_per_ms;
        for flow in &self.flows {
            check(
                "flows.base_rtt_ms",
                flow.base_rtt_ms.is_finite() && flow.base_rtt_ms >= 4.0 * self.step_ms,
                "must be finite and at least four steps",
            )?;
            check(
                "flows.start_ms",
                flow.start_ms >= 0.0,
                "must not be negative",
            )?;
        }
        let longest_ms = self.flows.iter().map(|f| f.base_rtt_ms).fold(0.0, f64::max);
        let history = (longest_ms + queue_ms) / self.step_ms * self.flows.len() as f64;
        check(
            "buffer_seg",
            history <= 2e7,
            "a full buffer and the base RTT must last at most 2e7 steps, over all flows",
        )?;
        check_samples(self.sample_interval_ms, self.duration_ms, self.flows.len())
    }
}
