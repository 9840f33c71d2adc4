//! The network of a plan: a row of links, and the paths between it and the hosts.

use fullpipe_net::impair::{jitter, loss};
use fullpipe_net::Medium;
use serde::{Deserialize, Serialize};

use crate::rows::Text;

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
        let wire = self.medium.wire();
        wire.map_or(0, |directions| {
            directions.map(|way| way.delay_ns).iter().sum()
        })
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
        let wire = self.medium.wire();
        wire.map_or([None; 2], |directions| directions.map(|way| way.rate_bps))
    }

    /// The station of a connection that opens during the run. `None` on a wire.
    pub fn station_of(&self, origin: ConnectionOrigin) -> Option<u16> {
        let Medium::Wifi {
            stations, traffic, ..
        } = &self.medium
        else {
            return None;
        };
        let known = match origin {
            ConnectionOrigin::Page(position) => stations.get(position),
            ConnectionOrigin::Traffic(group) => traffic.get(group),
        };
        Some(known.copied().unwrap_or(0))
    }
}

/// The origin of a connection that opens during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionOrigin {
    /// A page, by its position among flows, probes, pages and streams.
    Page(usize),
    /// A group of traffic, by its position.
    Traffic(usize),
}

/// The paths between the row of links and the hosts: the defaults of all flows.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// Largest IP packet, without the link header.
    pub mtu_bytes: u32,
    /// One-way delay behind the last link.
    pub forward_delay_ns: u64,
    /// One-way delay of the reverse direction, behind the first link.
    pub reverse_delay_ns: u64,
    /// Random extra delay of the reverse direction.
    pub jitter: Option<jitter::Params>,
    /// Random loss of what flows send forward (netem at the senders' egress).
    pub loss: Option<loss::Params>,
    /// Random loss of what flows send back (ACKs of "up" flows).
    pub reverse_loss: Option<loss::Params>,
}

/// Headers of IPv4 and TCP, and the timestamp option with its padding: 20 + 20 + 12.
pub const TCP_HEADERS_BYTES: u32 = 52;

impl Access {
    /// The payload of TCP's largest packet.
    pub fn mss_bytes(&self) -> u32 {
        self.mtu_bytes - TCP_HEADERS_BYTES
    }
}
