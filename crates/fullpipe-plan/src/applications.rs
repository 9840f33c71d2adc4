//! Applications of a plan besides flows: pages that are loaded again and again, and streams of
//! datagrams without congestion control. Times are in ns, volumes in bytes of payload.

use serde::{Deserialize, Serialize};

use crate::flow::{CcChoice, OnOff};
use crate::route::{FlowDirection, Hosts, Route};

/// A page and how it is loaded: an entry of the scenario's `[[page]]`. The near host is the client.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// Unique name.
    pub name: String,
    /// Congestion control of both ends.
    pub cc: CcChoice,
    /// Which links its packets pass.
    pub route: Route,
    /// Client and server.
    pub hosts: Hosts,
    /// Differentiated services codepoint of its packets.
    pub dscp: u8,
    /// Negotiate ECN.
    pub ecn: bool,
    /// When the first load begins.
    pub start_ns: u64,
    /// From when on none begins. `None`: the end of the run.
    pub stop_ns: Option<u64>,
    /// How objects share connections.
    pub protocol: Protocol,
    /// Connections at most.
    pub connections: u32,
    /// Who looks the server's name up.
    pub lookup: Lookup,
    /// A request, header included.
    pub request_bytes: u32,
    /// What the server takes to begin an answer.
    pub think_ns: u64,
    /// What is loaded, in order; levels do not fall.
    pub objects: Vec<PageObject>,
    /// From one load's start to the next one's, if it has ended by then.
    pub interval_ns: u64,
    /// From one load's end to the next one's start at least.
    pub pause_ns: u64,
    /// Loads at most. `None`: as many as there is time for.
    pub loads: Option<u32>,
    /// Connections stay open from one load to the next.
    pub keeps_connections: bool,
}

/// One answer of the server.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct PageObject {
    /// Header included.
    pub bytes: u64,
    /// It is asked for when all of lower levels have come.
    pub level: u32,
}

/// How a page's objects share connections.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// HTTP/1.1 with keep-alive: one object a connection at a time.
    Http1,
    /// As HTTP/2: one connection, whose frames take turns.
    Http2,
}

/// Who looks a name up.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Lookup {
    /// Nobody.
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
    /// Which way it goes.
    pub direction: FlowDirection,
    /// Which links it passes.
    pub route: Route,
    /// Its ends.
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
    /// A video's frame, cut into datagrams that leave at once. `None`: each datagram for itself.
    pub frame_bytes: Option<u32>,
    /// A frame that is not whole by then is late: metrics read it, engines do not.
    pub deadline_ns: Option<u64>,
    /// On and off periods. `None`: always on.
    pub on_off: Option<OnOff>,
}
