//! CAKE's times of packets: the overhead of a link layer, and the shaper's arithmetic
//! (sch_cake.c, cake_calc_overhead() and cake_set_rate()).

use super::params::Framing;

/// The Ethernet header, which counts only if no overhead is configured ("raw").
const ETHERNET_BYTES: u32 = 14;
/// Slower than this the clock does not go (bytes a second).
const LEAST_BYTES_PER_S: u64 = 64;

/// The overhead of the link layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overhead {
    /// In place of the Ethernet header; `None`: raw.
    pub(super) bytes: Option<i32>,
    /// Least size of a packet with it.
    pub(super) mpu_bytes: u32,
    pub(super) framing: Framing,
}

impl Overhead {
    /// Bytes that a packet takes on the link.
    pub(super) fn on_link(&self, wire_bytes: u32) -> u32 {
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

/// Time per byte, in fixed point: `bytes * ns >> shift`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pace {
    ns: u64,
    shift: u32,
}

impl Pace {
    pub(super) fn new(bytes_per_s: u64) -> Self {
        let mut shift = 34;
        let mut ns = (1_000_000_000u64 << shift) / bytes_per_s.max(LEAST_BYTES_PER_S);
        while ns >> 34 != 0 {
            ns >>= 1;
            shift -= 1;
        }
        Self { ns, shift }
    }

    pub(super) fn duration_ns(self, bytes: u32) -> u64 {
        (u64::from(bytes) * self.ns) >> self.shift
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

    #[test]
    fn the_clock_keeps_any_rate_to_one_in_a_million_and_a_ns() {
        for rate in [64u64, 1000, 125_000, 6_250_000, 125_000_000, 1_250_000_000] {
            let pace = Pace::new(rate);
            let wanted = 60_000.0 * 1e9 / rate as f64;
            let error = pace.duration_ns(60_000) as f64 - wanted;
            assert!(error.abs() < 1.0 + 1e-6 * wanted, "{rate}: {error}");
        }
    }
}
