//! One direction of a wire, as a plan describes it.

use serde::{Deserialize, Serialize};

use super::framing::Overhead;
use crate::impair::{self, loss};
use crate::queue::Qdisc;
use crate::trace::TraceFile;

/// One direction of a wire.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct WireDirection {
    /// Rate at which packets are sent. `None`: not limited (and no queue).
    pub rate_bps: Option<u64>,
    /// One-way delay after that.
    pub delay_ns: u64,
    /// The queue before the rate.
    pub qdisc: Qdisc,
    /// Random loss before the queue.
    pub loss: Option<loss::Params>,
    /// The rate from a time on (ns, bit/s), in order of time; 0: nothing passes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_steps: Vec<(u64, u64)>,
    /// The delay from a time on (ns, ns), in order of time. Packets keep their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delay_steps: Vec<(u64, u64)>,
    /// Delivery opportunities in place of a rate; `rate_bps` is then their mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_trace: Option<TraceFile>,
    /// Delays with their times, repeated, in place of `delay_ns`, which is then the first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_trace: Option<TraceFile>,
    /// What the link layer adds to packets at the rate; `None`: nothing to an Ethernet frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Overhead>,
    /// What else happens to packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impairments: Option<impair::Params>,
}
