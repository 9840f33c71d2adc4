//! What metrics need of a run's plan.

use crate::capacity::Capacity;
use crate::packet_cost::PacketCost;

/// What is known of a run beside its tables.
#[derive(Clone, Debug)]
pub struct Facts {
    /// When the window begins: by default, when the warm-up ends.
    pub start_s: f64,
    /// When the window ends at the latest; infinite where the plan does not say.
    pub end_s: f64,
    /// Between samples of flows and queues.
    pub sample_interval_s: f64,
    /// Base RTT of the path (RTTmin: no queue, no serialization); NaN: not known.
    pub rtt_s: f64,
    /// The flows whose shares can be compared (`fullpipe.plan.demand`), for Jain's index of the run.
    pub equal_demand: Vec<usize>,
    /// The queues to measure. The first is the bottleneck that the data goes through.
    pub queues: Vec<QueueFacts>,
}

/// A queue that is measured.
#[derive(Clone, Debug)]
pub struct QueueFacts {
    /// Its name in `queue_samples`.
    pub name: String,
    /// What its link carries, in full packets.
    pub capacity: Capacity,
    /// What short packets cost beside full ones; `None`: their bytes.
    pub packet_cost: Option<PacketCost>,
    /// What a policer lets through; infinite without one.
    pub policed_bps: f64,
}
