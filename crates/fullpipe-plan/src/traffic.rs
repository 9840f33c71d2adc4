//! Traffic of many flows that come and go, as a plan describes it. Times are in ns, volumes in bytes
//! of payload.

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
    /// Which way their data goes.
    pub direction: FlowDirection,
    /// Which links they pass.
    pub route: Route,
    /// Differentiated services codepoint of their packets.
    pub dscp: u8,
    /// Negotiate ECN.
    pub ecn: bool,
    /// When arrivals begin; a trace's times count from here.
    pub start_ns: u64,
    /// When they end; flows that have begun go on. `None`: at the end of the run.
    pub stop_ns: Option<u64>,
    /// Who sends, in turns.
    pub senders: Vec<TrafficSender>,
    /// When flows come, and what they send.
    pub source: TrafficSource,
    /// Numbers of its flows that are sampled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<u64>,
}

impl Traffic {
    /// A flow of a sender, by its position; its amount is open. Panics where there is no such sender.
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
            ecn: self.ecn,
            ecn_kind: EcnKind::Classic,
        }
    }
}

/// A host that sends flows of a group.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct TrafficSender {
    /// It and its peer.
    pub hosts: Hosts,
    /// Own delay of its ends; `None`: that of all.
    pub forward_delay_ns: Option<u64>,
    /// See `forward_delay_ns`.
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
    /// Flows that were drawn before: when each comes, since the group began, and its payload.
    Listed {
        /// In the order of their coming.
        flows: Vec<(u64, u64)>,
        /// The chunks of each, where flows pause: the pause before it, and its payload.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        chunks: Vec<Vec<(u64, u64)>>,
    },
    /// Flows of a file, which whoever runs the plan brings along.
    File {
        /// Where it was found.
        file: String,
        /// SHA-256 of its bytes.
        sha256: String,
        /// What is made of them.
        configuration: Configuration,
    },
    /// Flows like those of a backbone, made to meet published facts.
    Backbone {
        /// Of its random numbers: the same flows for all seeds of a run.
        seed: u64,
        /// How long flows come.
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
    /// Points of a cumulative distribution, straight lines between them.
    Cdf {
        /// Size, and the probability in 10^-9 of no larger one; neither falls, the last is 10^9.
        points: Vec<(u64, u64)>,
    },
    /// One of a list, each as likely.
    List {
        /// Payloads.
        bytes: Vec<u64>,
    },
    /// Pareto, cut off at both ends.
    Pareto {
        /// Shape, in thousandths.
        shape_milli: u32,
        /// Least payload.
        min_bytes: u64,
        /// Largest payload.
        max_bytes: u64,
    },
}

/// What is made of the flows of a trace (bless2025, section VI).
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Configuration {
    /// Chunks and the pauses before them, as they are.
    Replay,
    /// Each flow's chunks in one, without pauses.
    Collapsed,
    /// Intervals and sizes of collapsed flows, drawn independently.
    Synthetic,
}
