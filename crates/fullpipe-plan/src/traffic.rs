//! Traffic groups of a plan: many flows that arrive and leave. Times are in ns, volumes in bytes of payload.

use serde::{Deserialize, Serialize};

use crate::flow::{CcChoice, EcnKind, Flow};
use crate::route::{FlowDirection, Hosts, Route};

/// One group of flows: an entry of the scenario's `[[traffic]]`.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// Unique name.
    pub name: String,
    /// Congestion control of its flows.
    pub cc: CcChoice,
    /// Direction of their data.
    pub direction: FlowDirection,
    /// The links they pass.
    pub route: Route,
    /// Differentiated services codepoint of their packets.
    pub dscp: u8,
    /// Whether they negotiate ECN.
    pub ecn: bool,
    /// When arrivals begin; a trace's times count from here.
    pub start_ns: u64,
    /// When arrivals end; flows that have started go on. `None`: at the end of the run.
    pub stop_ns: Option<u64>,
    /// The sending hosts. Flows are assigned to them round robin.
    pub senders: Vec<TrafficSender>,
    /// When flows arrive, and what they send.
    pub source: TrafficSource,
    /// Numbers of its flows that are sampled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<u64>,
}

impl Traffic {
    /// A flow of the sender at this position, without its amount. Panics if there is no such sender.
    pub fn member(&self, sender: usize) -> Flow {
        let of = &self.senders[sender];
        Flow {
            name: self.name.clone(),
            cc: self.cc.clone(),
            start_ns: 0,
            stop_ns: None,
            amount_bytes: None,
            app_rate_bps: None,
            direction: self.direction,
            route: self.route,
            hosts: of.hosts,
            dscp: self.dscp,
            forward_delay_ns: of.forward_delay_ns,
            reverse_delay_ns: of.reverse_delay_ns,
            jitter: None,
            pattern: None,
            receive_window_bytes: None,
            nodelay: false,
            ecn: self.ecn,
            ecn_kind: EcnKind::Classic,
            max_pacing_rate_bps: None,
            stack: None,
        }
    }
}

/// A host that sends flows of a group.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct TrafficSender {
    /// The sender and its peer.
    pub hosts: Hosts,
    /// Own delay behind the last link; `None`: as in [`crate::Access`].
    pub forward_delay_ns: Option<u64>,
    /// Own delay behind the first link, in the reverse direction; `None`: as in [`crate::Access`].
    pub reverse_delay_ns: Option<u64>,
}

/// Where flows come from.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TrafficSource {
    /// Intervals and sizes are drawn.
    Drawn {
        /// Shape of the intervals between arrivals.
        arrivals: Intervals,
        /// Their mean, in ps.
        mean_interval_ps: u64,
        /// How much a flow sends.
        sizes: Sizes,
    },
    /// Flows that were drawn before the run.
    Listed {
        /// Arrival times since the start of the group and payloads, in the order of arrival.
        flows: Vec<(u64, u64)>,
        /// For flows that pause, the chunks of each: the pause before a chunk, and its payload.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        chunks: Vec<Vec<(u64, u64)>>,
    },
    /// Flows of a file, which are given to the engine with the plan.
    File {
        /// Its path.
        file: String,
        /// SHA-256 of its bytes.
        sha256: String,
        /// What is made of them.
        configuration: Configuration,
    },
    /// Generated flows that match published facts about a backbone link.
    Backbone {
        /// Seed of the generator, independent of the seed of a run.
        seed: u64,
        /// How long flows arrive.
        duration_ns: u64,
        /// Payload over that time.
        rate_bps: u64,
        /// What is made of them.
        configuration: Configuration,
    },
}

/// Shapes of intervals.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Intervals {
    /// Exponential.
    Poisson,
    /// Log-normal.
    Lognormal {
        /// Standard deviation of the logarithm, in thousandths.
        sigma_milli: u32,
    },
}

/// Distributions of sizes.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Sizes {
    /// Always the same.
    Fixed {
        /// Payload.
        bytes: u64,
    },
    /// Points of a cumulative distribution, with linear interpolation.
    Cdf {
        /// Sizes and the probability in 10^-9 that a size is no larger; both never decrease, and the last
        /// probability is 10^9.
        points: Vec<(u64, u64)>,
    },
    /// A random one of a list.
    List {
        /// Payloads.
        bytes: Vec<u64>,
    },
    /// Bounded Pareto.
    Pareto {
        /// Shape, in thousandths.
        shape_milli: u32,
        /// Least payload.
        min_bytes: u64,
        /// Largest payload.
        max_bytes: u64,
    },
}

/// How the flows of a trace are used (bless2025, section VI).
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Configuration {
    /// Chunks with the pauses before them.
    Replay,
    /// Flows without pauses, each as one chunk.
    Collapsed,
    /// Intervals and sizes of collapsed flows, drawn independently.
    Synthetic,
}
