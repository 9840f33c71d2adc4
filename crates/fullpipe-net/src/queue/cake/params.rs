//! CAKE's parameters, with tc's names and defaults (tc-cake(8)).

use serde::{Deserialize, Serialize};

use crate::link::framing::Framing;

use crate::queue::discipline::Parameters;

/// Parameters of sch_cake. The qdisc's limit in bytes is its memory limit; `None`: what the kernel
/// derives from rate and RTT.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Nominal RTT, the interval of its CoDel (tc: 100 ms).
    pub rtt_ns: u64,
    /// Acceptable standing delay (tc: a twentieth of the RTT).
    pub target_ns: u64,
    /// Whether it shapes to the link's rate itself. Otherwise a shaper above it does.
    pub shapes: bool,
    /// Traffic classes (tc: diffserv3).
    pub tins: Tins,
    /// Between whom the rate is shared fairly (tc: triple-isolate).
    pub isolation: Isolation,
    /// Whether redundant ACKs are dropped (tc: no).
    pub ack_filter: AckFilter,
    /// Bytes that the link layer adds to an IP packet; `None`: an Ethernet header.
    pub overhead_bytes: Option<i32>,
    /// Least size of a packet on the link (tc: 0).
    pub mpu_bytes: u32,
    /// Link-layer framing (tc: none).
    pub framing: Framing,
    /// Charges dropped packets too, as for a shaper behind the bottleneck.
    pub ingress: bool,
    /// Sets its bandwidth by the rate at which packets arrive.
    pub autorate_ingress: bool,
    /// Clears the DSCP of all packets.
    pub wash: bool,
    /// Splits GSO packets (tc: yes). Only kernels have any.
    pub split_gso: bool,
}

impl Parameters for Params {
    fn shapes(&self) -> bool {
        self.shapes
    }
}

/// Traffic classes (sch_cake.c).
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Tins {
    /// One.
    Besteffort,
    /// Bulk, best effort, voice.
    Diffserv3,
    /// Bulk, best effort, video, voice.
    Diffserv4,
    /// Eight by the current use of the code points.
    Diffserv8,
    /// Eight by IP precedence.
    Precedence,
}

/// Between whom the rate is shared fairly.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Nobody: one queue.
    Flowblind,
    /// Source hosts.
    Srchost,
    /// Destination hosts.
    Dsthost,
    /// Pairs of hosts.
    Hosts,
    /// Flows.
    Flows,
    /// Source hosts, then flows.
    DualSrchost,
    /// Destination hosts, then flows.
    DualDsthost,
    /// Hosts on both sides, then flows.
    TripleIsolate,
}

/// CAKE's ACK filter.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum AckFilter {
    /// Off.
    No,
    /// Keeps two ACKs of a connection.
    Filter,
    /// Keeps one.
    Aggressive,
}
