//! Scripts: a queue at a rate, and the packets that arrive at it.

use fullpipe_net::{Ecn, Qdisc, LINK_HEADER_BYTES};
use serde::{Deserialize, Serialize};

use crate::shorter::without_parts;

/// The least packet: Ethernet, IPv4, UDP and its number.
pub const LEAST_BYTES: u32 = LINK_HEADER_BYTES + 20 + 8 + 4;

/// One script. Times count from the moment in which the queue is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Its name, unique in a list.
    pub name: String,
    /// The rate of the link, shaped by htb or by the discipline itself.
    pub rate_bps: u64,
    /// The queue.
    pub qdisc: Qdisc,
    /// What arrives, in the order of time.
    pub events: Vec<Arrival>,
}

/// A packet arrives. As text: `[at_us, bytes, flow, tos]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u32, u8, u8)", into = "(u64, u32, u8, u8)")]
pub struct Arrival {
    /// When.
    pub at_us: u64,
    /// On the wire, with the link header.
    pub bytes: u32,
    /// Its flow: a source, a destination and a port of its own. Flows 2n and 2n + 1 have the same source.
    pub flow: u8,
    /// DSCP and ECN, as in its IP header.
    pub tos: u8,
}

impl From<(u64, u32, u8, u8)> for Arrival {
    fn from((at_us, bytes, flow, tos): (u64, u32, u8, u8)) -> Self {
        Self {
            at_us,
            bytes: bytes.max(LEAST_BYTES),
            flow,
            tos,
        }
    }
}

impl From<Arrival> for (u64, u32, u8, u8) {
    fn from(arrival: Arrival) -> Self {
        (arrival.at_us, arrival.bytes, arrival.flow, arrival.tos)
    }
}

impl Arrival {
    /// ECT(0) becomes ECT(1).
    pub(super) fn become_l4s(&mut self) {
        if self.ecn() == Ecn::Ect0 {
            self.tos ^= 3;
        }
    }

    /// Its ECN bits.
    pub fn ecn(&self) -> Ecn {
        match self.tos & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }
}

/// The script without each of its `parts` parts, and cut behind event `last`.
pub fn shorter(script: &Script, last: usize, parts: usize) -> Vec<Script> {
    let all = without_parts(&script.events, 0, last, parts).enumerate();
    all.map(|(number, events)| Script {
        name: format!("{}/{number}", script.name),
        events,
        ..script.clone()
    })
    .collect()
}
