//! The resolved scenario. Times are in ns since the start of the run, rates in bit/s, volumes in
//! bytes. `None` means "as a stock Linux host would", and each field says what that is.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use crate::applications::{Datagrams, Page};
use crate::flow::Flow;
use crate::host::HostOptions;
use crate::links::{Access, Link};
use crate::probe::Probe;
use crate::traffic::Traffic;

/// One run of one scenario.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Name for people; not interpreted.
    pub name: String,
    /// Seed of every random number of the run.
    pub seed: u64,
    /// How long the run lasts.
    pub duration_ns: u64,
    /// Interval of flow, queue and algorithm samples.
    pub sample_interval_ns: u64,
    /// The row of links that is the network, in the order in which "up" flows pass it.
    pub links: Vec<Link>,
    /// MTU, delays, jitter and loss outside the links.
    pub access: Access,
    /// The first bottleneck in short form, for models and reports; engines ignore it.
    #[serde(default, skip_serializing, deserialize_with = "ignored")]
    pub path: (),
    /// The connections, in the order of their flow ids 0, 1, ...
    pub flows: Vec<Flow>,
    /// Latency measurements.
    pub probes: Vec<Probe>,
    /// Groups of flows that arrive and leave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<Traffic>,
    /// Web pages that are loaded repeatedly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<Page>,
    /// Streams of datagrams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub datagrams: Vec<Datagrams>,
    /// How the end hosts' TCP is set up.
    pub host: HostOptions,
}

/// TCP_NOTSENT_LOWAT of flows that stop before the run does.
const NOTSENT_LOWAT_BYTES: u32 = 128 * 1024;

impl Plan {
    /// SO_RCVLOWAT of a flow's receiver. With a fixed window it is one byte, or the window would
    /// close.
    pub fn receive_low_water_bytes(&self, flow: &Flow) -> u32 {
        match flow.receive_window_bytes {
            Some(_) => 1,
            None => self.host.receive_low_water_bytes,
        }
    }

    /// TCP_NOTSENT_LOWAT of a flow, set if its application stops before the run does: TCP still sends
    /// all that is buffered when it stops.
    pub fn notsent_lowat_bytes(&self, flow: &Flow) -> Option<u32> {
        let stops = |stop_ns| stop_ns < self.duration_ns;
        let stops_early = flow.stop_ns.is_some_and(stops) || flow.pattern.is_some();
        stops_early.then_some(NOTSENT_LOWAT_BYTES)
    }

    /// Delays between the row of links and the hosts (forward, reverse); without a flow those of a probe.
    pub fn end_delays_ns(&self, flow: Option<&Flow>) -> (u64, u64) {
        let own = |get: fn(&Flow) -> Option<u64>, common| flow.and_then(get).unwrap_or(common);
        (
            own(|flow| flow.forward_delay_ns, self.access.forward_delay_ns),
            own(|flow| flow.reverse_delay_ns, self.access.reverse_delay_ns),
        )
    }

    /// A flow's RTT without queueing and serialization.
    pub fn base_rtt_ns(&self, flow: &Flow) -> u64 {
        let (forward_ns, reverse_ns) = self.end_delays_ns(Some(flow));
        let links = &self.links[flow.route.range()];
        let links_ns: u64 = links.iter().map(Link::base_rtt_ns).sum();
        forward_ns + reverse_ns + links_ns
    }
}

fn ignored<'de, D: Deserializer<'de>>(value: D) -> Result<(), D::Error> {
    IgnoredAny::deserialize(value).map(|_| ())
}
