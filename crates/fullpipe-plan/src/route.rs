//! Where packets enter and leave the row of links, between which hosts, in which direction.

pub use fullpipe_net::Route;
use serde::{Deserialize, Serialize};

/// Direction of a flow's data.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum FlowDirection {
    /// Through the forward bottleneck.
    Up,
    /// Through the reverse bottleneck.
    Down,
}

/// The hosts at a flow's ends, numbered from 0 on either side. Flows that name the same number
/// share the host, and so the address, on every engine.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    /// Where the row begins: sends "up" flows, receives "down" ones.
    pub near: u16,
    /// Where it ends.
    pub far: u16,
}
