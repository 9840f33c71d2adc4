//! Scripts: what the peer of a socket sends and what its application does, and when. Byte numbers count from the
//! first byte of the socket's data, times in us from the start of the script.

use serde::{Deserialize, Serialize};

/// Bits of the peer's window scale.
pub const WINDOW_SHIFT: u8 = 3;

/// One script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Its name, unique in a list.
    pub name: String,
    /// How far behind a tick of the kernel's timer wheel it starts.
    pub phase_us: u64,
    /// The host under test.
    pub host: Host,
    /// The peer.
    pub peer: Peer,
    /// What happens, in the order of time.
    pub events: Vec<Event>,
}

/// The host whose TCP is under test. Everything else is the kernel's default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its congestion control, by the kernel's name.
    pub cc: String,
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// Uses ECN (RFC 3168) if the peer does (sysctl tcp_ecn = 1).
    pub ecn: bool,
}

/// What the peer's SYN says. It permits SACK and scales its window by 3 bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Payload of a full packet, without the timestamp option.
    pub payload_bytes: u32,
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// Asks for ECN, or agrees to it.
    pub ecn: bool,
}

/// Something happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub at_us: u64,
    /// What.
    #[serde(flatten)]
    pub action: Action,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The application connects. Without this the socket listens.
    Connect {},
    /// The peer's SYN arrives.
    Syn {},
    /// The peer's SYN-ACK arrives; it echoes the timestamp of the SYN that was sent then.
    SynAck {
        /// When the SYN was sent.
        echo_us: u64,
    },
    /// The application writes; what the socket does not take at once it writes as soon as it can.
    Write {
        /// Payload.
        bytes: u64,
    },
    /// An ACK of the peer arrives. The first one of a passive opening completes it.
    Ack(PeerAck),
    /// Nothing: the socket is looked at.
    Look {},
}

/// What an ACK of the peer says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerAck {
    /// The next byte expected.
    pub next: u64,
    /// SACK blocks, in the order of the option. At most three.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sack: Vec<[u64; 2]>,
    /// Window in bytes, a multiple of 8.
    pub window: u64,
    /// When the packet was sent whose timestamp it echoes.
    pub echo_us: u64,
    /// ECE.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ece: bool,
}

impl Script {
    /// Whether the application connects.
    pub fn is_active(&self) -> bool {
        let mut actions = self.events.iter().map(|event| &event.action);
        actions.any(|action| *action == Action::Connect {})
    }
}

impl PeerAck {
    /// Whether the first block is a DSACK: below the number acknowledged, or within the second block
    /// (RFC 2883 section 4, tcp_check_dsack()).
    pub(crate) fn is_dsack(&self) -> bool {
        match self.sack[..] {
            [first, ..] if first[0] < self.next => true,
            [first, second, ..] => first[1] <= second[1] && first[0] >= second[0],
            _ => false,
        }
    }
}
