//! The metrics of a run as a sweep's store keeps them: one row of the run, one of each flow, one of
//! the bottleneck's queue, after the warm-up. What `fullpipe.metrics` defines, with the same arithmetic
//! in the same order; tests/python/test_sweep_measures.py holds the one against the other.
//!
//! A run of two simulated seconds takes a millisecond, and a metric of one run in Python as long as
//! that. Knows no engine and no store; a number that does not exist is NaN.

mod columns;
mod numbers;
mod samples;
mod window;

pub use columns::Measures;
pub use samples::{FlowSamples, Flows, PingSamples, QueueSamples, Samples};

/// What is known of a run beside its tables.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// What metrics leave out at the start.
    pub warmup_ns: u64,
    /// When the run was to end.
    pub duration_ns: u64,
    /// Rate of the bottleneck that the data goes through; NaN: not limited.
    pub rate_bps: f64,
    /// Base RTT of the path.
    pub rtt_ns: u64,
    /// Between samples of flows and queues.
    pub sample_interval_ns: u64,
}
