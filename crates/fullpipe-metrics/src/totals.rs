//! A run's totals and spreads within its window, of which `definitions.rs` makes metrics.

use crate::values::Spread;

/// Some flows together.
#[derive(Debug)]
pub(crate) struct FlowTotals {
    pub(crate) count: f64,
    /// Of the first of them.
    pub(crate) start_s: f64,
    pub(crate) window_s: f64,
    pub(crate) delivered_bytes: f64,
    pub(crate) share: f64,
    pub(crate) sent_packets: f64,
    pub(crate) retransmitted_packets: f64,
    pub(crate) min_rtt_us: f64,
    pub(crate) goodput_bps: Spread,
    pub(crate) completion_s: Spread,
    pub(crate) srtt_us: Spread,
    pub(crate) cwnd_packets: Spread,
}

/// All of a run but its queues.
#[derive(Debug)]
pub(crate) struct RunTotals {
    pub(crate) window_s: f64,
    /// NaN: there are no flows.
    pub(crate) delivered_bytes: f64,
    pub(crate) sent_packets: f64,
    pub(crate) retransmitted_packets: f64,
    pub(crate) equal_demand: f64,
    /// Of the flows of equal demand.
    pub(crate) goodput_bps: Spread,
    pub(crate) ping_ms: Spread,
}

/// One queue.
#[derive(Debug)]
pub(crate) struct QueueTotals {
    /// Whether it was sampled at all.
    pub(crate) is_sampled: bool,
    pub(crate) window_s: f64,
    pub(crate) rtt_s: f64,
    pub(crate) capacity_bits: f64,
    pub(crate) sent_bytes: f64,
    /// What the link could have carried of full packets instead.
    pub(crate) carried_bytes: f64,
    pub(crate) sent_packets: f64,
    pub(crate) dropped_packets: f64,
    pub(crate) marked_packets: f64,
    pub(crate) filtered_packets: f64,
    pub(crate) random_lost_packets: f64,
    pub(crate) random_marked_packets: f64,
    pub(crate) queue_bytes: Spread,
    pub(crate) delay_s: Spread,
}
