//! What a fluid run returns.

use serde::{Deserialize, Serialize};

/// Means over the window, and the trace if the run has one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Outcome {
    /// Mean sending rate of each flow, segments per ms.
    pub sending_rate_seg_per_ms: Vec<f64>,
    /// Mean delivery rate of each flow, segments per ms: what of its arrivals the link serves.
    pub delivery_rate_seg_per_ms: Vec<f64>,
    /// Jain index of the sending rates.
    pub jain_index: f64,
    /// Lost part of the volume sent, with drop-tail's smooth loss (the published program's metric).
    pub loss_smooth: f64,
    /// Lost part of the volume sent, with the loss that acts on the queue.
    pub loss_discrete: f64,
    /// Mean queue in segments.
    pub queue_seg: f64,
    /// Mean part of the link that is used; 1 whenever there is a queue.
    pub utilisation: f64,
    /// Mean change of flow 0's RTT from one ms to the next.
    pub jitter_ms: f64,
    /// Samples over the whole run.
    pub trace: Option<Trace>,
}

/// Samples over the whole run; one row of the outer vectors per flow.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Trace {
    /// Time of each sample.
    pub time_ms: Vec<f64>,
    /// Queue in segments.
    pub queue_seg: Vec<f64>,
    /// Loss probability that acts on the queue.
    pub loss_probability: Vec<f64>,
    /// Sending rates, segments per ms.
    pub sending_rate_seg_per_ms: Vec<Vec<f64>>,
    /// Congestion windows, segments.
    pub window_seg: Vec<Vec<f64>>,
}
