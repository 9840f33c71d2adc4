//! Applications of a plan besides flows: pages that are loaded again and again, and streams of
//! datagrams without congestion control. Times are in ns, volumes in bytes of payload.

use serde::{Deserialize, Serialize};

use crate::flow::{CcChoice, OnOff};
use crate::route::{FlowDirection, Hosts, Route};

/// A web page that is loaded repeatedly: an entry of the scenario's `[[page]]`. The near host is the client.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// Unique name.
    pub name: String,
    /// Congestion control of both ends.
    pub cc: CcChoice,
    /// The links its packets pass.
    pub route: Route,
    /// Client and server.
    pub hosts: Hosts,
    /// Differentiated services codepoint of its packets.
    pub dscp: u8,
    /// Whether it negotiates ECN.
    pub ecn: bool,
    /// When the first load begins.
    pub start_ns: u64,
    /// From when on no load begins. `None`: the end of the run.
    pub stop_ns: Option<u64>,
    /// How objects share connections.
    pub protocol: Protocol,
    /// Connections at most.
    pub connections: u32,
    /// Which connections look up the server's name.
    pub lookup: Lookup,
    /// A request, header included.
    pub request_bytes: u32,
    /// Time that the server takes to begin a response.
    pub think_ns: u64,
    /// Objects in order; their levels never decrease.
    pub objects: Vec<PageObject>,
    /// Interval between the starts of loads, unless a load takes longer.
    pub interval_ns: u64,
    /// Least time between the end of a load and the start of the next one.
    pub pause_ns: u64,
    /// Loads at most. `None`: as many as there is time for.
    pub loads: Option<u32>,
    /// Connections stay open from one load to the next.
    pub keeps_connections: bool,
    /// Client and server set TCP_NODELAY.
    pub nodelay: bool,
}

/// One response of the server.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct PageObject {
    /// Header included.
    pub bytes: u64,
    /// It is requested when all objects of lower levels have arrived.
    pub level: u32,
}

/// How a page's objects share connections.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// HTTP/1.1 with keep-alive: one object a connection at a time.
    Http1,
    /// HTTP/2: one connection, with interleaved frames.
    Http2,
}

/// Which connections look up a name.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Lookup {
    /// None.
    None,
    /// The first connection of a load, for all.
    Once,
    /// Each connection.
    Each,
}

/// A stream of datagrams: an entry of the scenario's `[[udp]]`.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Datagrams {
    /// Unique name.
    pub name: String,
    /// Its direction.
    pub direction: FlowDirection,
    /// The links it passes.
    pub route: Route,
    /// The hosts at its ends.
    pub hosts: Hosts,
    /// Differentiated services codepoint of its packets.
    pub dscp: u8,
    /// When it begins.
    pub start_ns: u64,
    /// When it ends. `None`: at the end of the run.
    pub stop_ns: Option<u64>,
    /// Payload of a datagram, at most.
    pub payload_bytes: u32,
    /// From one datagram, or one frame, to the next.
    pub interval_ns: u64,
    /// Size of video frames, whose datagrams are sent at once. `None`: there are no frames.
    pub frame_bytes: Option<u32>,
    /// A frame that is incomplete by then is late; only metrics use it.
    pub deadline_ns: Option<u64>,
    /// On and off periods. `None`: always on.
    pub on_off: Option<OnOff>,
}
