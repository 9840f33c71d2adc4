//! What packets that are not full take of a link whose layer adds bytes to each.

/// A link carries what its capacity says in full packets. In short ones it carries less, where every
/// packet has a header, a least size or cells of a layer below.
///
/// Recordings have bytes and packets, and not the size of each packet. They are taken for a mix of full
/// packets and plain ACKs: exact for such, for one of the two, and wherever each packet costs the same
/// more. Of packets between these sizes ATM's cells are off by one half at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketCost {
    /// A full packet on the wire.
    pub full_bytes: f64,
    /// What each byte that a packet lacks of a full one costs all the same, in bytes on the wire of
    /// full packets.
    pub per_missing_byte: f64,
}

impl PacketCost {
    /// So many packets as bytes of full ones. The bytes alone where the number of packets is not known.
    pub fn in_full_packets(&self, bytes: f64, packets: f64) -> f64 {
        let missing = packets * self.full_bytes - bytes;
        // `max` ignores NaN. Packets that are joined (GSO) are longer than a full one.
        bytes + self.per_missing_byte * missing.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ATM with 10 bytes for an Ethernet header: 1514 B take 32 cells of 53 B, 66 B take two.
    fn atm() -> PacketCost {
        let of_ack = 2.0 * 53.0 * 1514.0 / (32.0 * 53.0);
        PacketCost {
            full_bytes: 1514.0,
            per_missing_byte: (of_ack - 66.0) / (1514.0 - 66.0),
        }
    }

    #[test]
    fn acks_and_full_packets_take_their_cells() {
        let cells = |bytes, packets| atm().in_full_packets(bytes, packets) / 1514.0 * 32.0;
        let close = |one: f64, other: f64| (one - other).abs() < 1e-9;
        assert!(close(cells(5.0 * 1514.0, 5.0), 5.0 * 32.0));
        assert!(close(cells(7.0 * 66.0, 7.0), 7.0 * 2.0));
        let mixed = cells(5.0 * 1514.0 + 7.0 * 66.0, 12.0);
        assert!(close(mixed, 5.0 * 32.0 + 7.0 * 2.0));
    }

    #[test]
    fn bytes_stay_where_packets_are_not_counted_or_are_joined() {
        assert_eq!(atm().in_full_packets(3000.0, f64::NAN), 3000.0);
        assert_eq!(atm().in_full_packets(9084.0, 1.0), 9084.0);
    }
}
