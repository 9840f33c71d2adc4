//! What a link layer adds to packets (sch_cake.c, cake_calc_overhead(); of Linux's other shapers
//! psched_l2t_ns()).

use serde::{Deserialize, Serialize};

/// The Ethernet header, which counts only if no overhead is configured ("raw").
const ETHERNET_BYTES: u32 = 14;

/// Framing of the link layer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// None.
    None,
    /// ATM cells: 53 bytes for 48.
    Atm,
    /// PTM (VDSL2): 65 bytes for 64.
    Ptm,
}

/// The overhead of the link layer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Overhead {
    /// In place of the Ethernet header; `None`: raw.
    pub bytes: Option<i32>,
    /// Least size of a packet with it.
    pub mpu_bytes: u32,
    /// How packets are framed.
    pub framing: Framing,
}

impl Overhead {
    /// Bytes that a packet takes on the link.
    #[must_use]
    pub fn on_link(&self, wire_bytes: u32) -> u32 {
        let bytes = match self.bytes {
            None => i64::from(wire_bytes),
            Some(more) => i64::from(wire_bytes) - i64::from(ETHERNET_BYTES) + i64::from(more),
        };
        let bytes = bytes.max(i64::from(self.mpu_bytes)).max(0) as u32;
        match self.framing {
            Framing::None => bytes,
            // Cells of 48 bytes with 5 of header.
            Framing::Atm => bytes.div_ceil(48) * 53,
            // One byte more for each 64 begun.
            Framing::Ptm => bytes + bytes.div_ceil(64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(overhead: Option<i32>, mpu: u32, framing: Framing, wire_bytes: u32) -> u32 {
        let overhead = Overhead {
            bytes: overhead,
            mpu_bytes: mpu,
            framing,
        };
        overhead.on_link(wire_bytes)
    }

    #[test]
    fn a_full_packet_on_adsl_takes_32_cells() {
        // 1500 + 32 (PPPoE over LLC/SNAP) = 1532 = 31.9 cells of 48 bytes.
        assert_eq!(bytes(Some(32), 0, Framing::Atm, 1514), 32 * 53);
        // A bare ACK with timestamps: 52 + 32 = 84 bytes, two cells.
        assert_eq!(bytes(Some(32), 0, Framing::Atm, 66), 2 * 53);
        // Exactly filled cells need no further one.
        assert_eq!(bytes(Some(0), 0, Framing::Atm, 14 + 96), 2 * 53);
        assert_eq!(bytes(Some(0), 0, Framing::Atm, 14 + 97), 3 * 53);
    }

    #[test]
    fn overhead_replaces_the_ethernet_header_and_small_packets_are_filled_up() {
        assert_eq!(bytes(None, 0, Framing::None, 1514), 1514);
        assert_eq!(bytes(Some(38), 84, Framing::None, 1514), 1538);
        assert_eq!(bytes(Some(38), 84, Framing::None, 54), 84);
        assert_eq!(bytes(Some(-8), 0, Framing::None, 114), 92);
        // 1530 bytes and one for each 64 begun: 24.
        assert_eq!(bytes(Some(30), 0, Framing::Ptm, 1514), 1554);
    }
}
