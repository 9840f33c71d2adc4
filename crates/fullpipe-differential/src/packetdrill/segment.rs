//! A TCP packet as a script writes it. Sequence numbers count from those of the SYNs.

use serde::{Deserialize, Serialize};

/// Bits of TCP's header.
pub const FIN: u16 = 0x01;
/// SYN
pub const SYN: u16 = 0x02;
/// RST
pub const RST: u16 = 0x04;
/// PSH
pub const PSH: u16 = 0x08;
/// ACK
pub const ACK: u16 = 0x10;
/// ECE
pub const ECE: u16 = 0x40;
/// CWR
pub const CWR: u16 = 0x80;

/// A packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// When the machine sent it, in us from the start; 0 if the peer did.
    #[serde(default)]
    pub at_us: u64,
    /// ECN codepoint of the IP header.
    #[serde(default)]
    pub ecn: u8,
    /// Bits of the header.
    pub flags: u16,
    /// Number of its first byte.
    pub sequence: u32,
    /// Payload.
    pub bytes: u32,
    /// Number that it acknowledges.
    #[serde(default)]
    pub ack: u32,
    /// As in the header, not scaled.
    #[serde(default)]
    pub window: u16,
    /// Options, in their order.
    #[serde(default)]
    pub options: Vec<TcpOption>,
}

/// An option.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TcpOption {
    /// No operation.
    Nop,
    /// End of the list.
    Eol,
    /// Maximum segment size.
    Mss(u16),
    /// Window scale.
    Wscale(u8),
    /// SACK permitted.
    SackOk,
    /// SACK blocks.
    Sack(Vec<(u32, u32)>),
    /// Timestamp and echo.
    Ts(u32, u32),
    /// Kind and content of another.
    Other(u8, Vec<u8>),
}

impl Segment {
    /// Whether a bit is set.
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Timestamp and echo.
    pub fn timestamps(&self) -> Option<(u32, u32)> {
        self.options.iter().find_map(|option| match *option {
            TcpOption::Ts(value, echo) => Some((value, echo)),
            _ => None,
        })
    }

    /// Its SACK blocks.
    pub fn sack(&self) -> &[(u32, u32)] {
        let blocks = self.options.iter().find_map(|option| match option {
            TcpOption::Sack(blocks) => Some(&blocks[..]),
            _ => None,
        });
        blocks.unwrap_or_default()
    }

    /// The number behind its last byte; SYN and FIN count.
    pub fn end(&self) -> u32 {
        let controls = u32::from(self.has(SYN)) + u32::from(self.has(FIN));
        self.sequence.wrapping_add(self.bytes + controls)
    }
}
