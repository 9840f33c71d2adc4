//! Latency measurements that run in parallel with the flows.

use serde::{Deserialize, Serialize};

use crate::route::{Hosts, Route};

/// A latency measurement.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Unique name.
    pub name: String,
    /// What is sent.
    pub kind: ProbeKind,
    /// Interval between requests.
    pub interval_ns: u64,
    /// When the first request is sent.
    pub start_ns: u64,
    /// The links it passes.
    pub route: Route,
    /// The hosts at its ends.
    pub hosts: Hosts,
    /// Differentiated services codepoint of its packets.
    pub dscp: u8,
}

/// What a probe sends.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// ICMP echo.
    Ping,
    /// UDP request and reply.
    Udp,
}
