//! What a queue does while a script is played to it.

use serde::{Deserialize, Serialize};

/// A packet leaves the link. As text: `[packet, at_us, tos]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u64, u8)", into = "(u32, u64, u8)")]
pub struct Departure {
    /// Its position in the script.
    pub packet: u32,
    /// When it leaves.
    pub at_us: u64,
    /// DSCP and ECN with which it leaves.
    pub tos: u8,
}

impl From<(u32, u64, u8)> for Departure {
    fn from((packet, at_us, tos): (u32, u64, u8)) -> Self {
        Self { packet, at_us, tos }
    }
}

impl From<Departure> for (u32, u64, u8) {
    fn from(departure: Departure) -> Self {
        (departure.packet, departure.at_us, departure.tos)
    }
}

/// What left the link, in this order. Packets that are not among them were dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The script's name.
    pub script: String,
    /// The departures.
    pub left: Vec<Departure>,
}

impl Answer {
    pub(super) fn has(&self, packet: u32) -> bool {
        self.left.iter().any(|departure| departure.packet == packet)
    }
}
