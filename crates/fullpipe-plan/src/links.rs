//! The network of a plan: a row of links, and what lies between it and the hosts.

use serde::{Deserialize, Serialize};

use crate::damage::{Damage, Jitter, Loss};
use crate::qdisc::Qdisc;
use crate::tables::Text;
use crate::traces::TraceFile;
use crate::wifi::Wifi;

/// Name of the only link of a `[path]`, whose queues are just `forward` and `reverse`.
const PATH: &str = "path";

/// One hop, both directions. "Forward" is the direction of "up" flows.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Unique name; `path` for the only link of a `[path]`.
    pub name: String,
    /// What it is made of.
    pub medium: Medium,
}

impl Link {
    /// Both delays, as they are at the start.
    pub fn base_rtt_ns(&self) -> u64 {
        match &self.medium {
            Medium::Wire { forward, reverse } => forward.delay_ns + reverse.delay_ns,
            Medium::Wifi { .. } => 0,
        }
    }

    /// Names of its two queues in recordings.
    pub fn queue_names(&self) -> [Text; 2] {
        ["forward", "reverse"].map(|direction| match self.name.as_str() {
            PATH => direction.into(),
            name => format!("{name}.{direction}").into(),
        })
    }

    /// Rates forward and reverse; `None`: not limited, or not fixed.
    pub fn rates_bps(&self) -> [Option<u64>; 2] {
        match &self.medium {
            Medium::Wire { forward, reverse } => [forward.rate_bps, reverse.rate_bps],
            Medium::Wifi { .. } => [None, None],
        }
    }

    /// At which station a connection is that opens later. `None` on a wire.
    pub fn station_of(&self, newcomer: Newcomer) -> Option<u16> {
        let Medium::Wifi {
            stations, traffic, ..
        } = &self.medium
        else {
            return None;
        };
        let known = match newcomer {
            Newcomer::Page(position) => stations.get(position),
            Newcomer::Traffic(group) => traffic.get(group),
        };
        Some(known.copied().unwrap_or(0))
    }
}

/// Kinds of links.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Medium {
    /// A full-duplex wire: its two ways know nothing of one another.
    Wire {
        /// From the senders of "up" flows.
        forward: Box<Wire>,
        /// Back to them.
        reverse: Box<Wire>,
    },
    /// A Wi-Fi channel: forward is from its stations to its access point.
    Wifi {
        /// The channel.
        channel: Box<Wifi>,
        /// At which of its stations each flow is, and then each probe, page and stream of
        /// datagrams: positions in the channel's list. Whoever has none is at the first.
        stations: Vec<u16>,
        /// The same of each group of traffic.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        traffic: Vec<u16>,
    },
}

/// Whose connection it is that opens while a plan runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newcomer {
    /// A page's, by the position of that among flows, probes, pages and streams.
    Page(usize),
    /// A group of traffic's, by its position.
    Traffic(usize),
}

/// One way of a wire.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Wire {
    /// Rate at which packets go in. `None`: not limited (and no queue).
    pub rate_bps: Option<u64>,
    /// One-way delay after that.
    pub delay_ns: u64,
    /// What waits for the rate.
    pub qdisc: Qdisc,
    /// Random loss before the queue.
    pub loss: Option<Loss>,
    /// The rate from a time on (ns, bit/s), in the order of time; 0: nothing passes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_steps: Vec<(u64, u64)>,
    /// The delay from a time on (ns, ns), in the order of time. Packets keep their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delay_steps: Vec<(u64, u64)>,
    /// Delivery opportunities in place of a rate; `rate_bps` is then their mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_trace: Option<TraceFile>,
    /// Delays from times on, repeated, in place of `delay_ns`, which is then the first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_trace: Option<TraceFile>,
    /// What else happens to packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<Damage>,
}

/// What lies between the row of links and the hosts: the same for all flows that do not say
/// otherwise.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Ends {
    /// Bytes of an IP packet at most, without the link header.
    pub mtu_bytes: u32,
    /// One-way delay behind the last link.
    pub forward_delay_ns: u64,
    /// One-way delay of the way back, behind the first link.
    pub reverse_delay_ns: u64,
    /// Random extra delay of the way back.
    pub jitter: Option<Jitter>,
    /// Random loss of what flows send forward (netem at the senders' egress).
    pub loss: Option<Loss>,
    /// Random loss of what flows send back (ACKs of "up" flows).
    pub reverse_loss: Option<Loss>,
}
