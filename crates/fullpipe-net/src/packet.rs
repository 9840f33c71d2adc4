//! What path elements need to know of a packet. Never what it carries.

/// Ethernet's header, which Linux counts with a packet in a qdisc (psched_mtu()).
pub const LINK_HEADER_BYTES: u32 = 14;

/// The two ECN bits of the IP header (RFC 3168, RFC 8311).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable: it can only be dropped.
    #[default]
    NotEct,
    /// ECT(1): of a scalable sender (L4S, RFC 9331).
    Ect1,
    /// ECT(0).
    Ect0,
    /// Congestion experienced.
    Ce,
}

/// The hosts at the ends of a packet's path: equal numbers, equal addresses. The two sides of a network
/// have no number in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostPair {
    /// The sender of the packet.
    pub source: u32,
    /// Its receiver.
    pub destination: u32,
}

/// What an ACK filter sees of an ACK without payload (sch_cake.c, cake_ack_filter()). Numbers are
/// packet numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PureAck {
    /// Next packet expected.
    pub next: u32,
    /// SACK blocks, the newest first; the first `count` are valid.
    pub blocks: [(u32, u32); 3],
    /// Number of blocks.
    pub count: u8,
    /// The flags that report marks: ACKs that differ in them are not redundant.
    pub ecn_flags: u8,
}

/// What path elements need to know of a packet.
///
/// A burst is consecutive packets that were sent at once and differ only in their numbers. One packet
/// represents it: the first of them, with the flags that only the last of them carries.
pub trait Packet: Copy {
    /// Bytes on the wire, link header included.
    fn wire_bytes(&self) -> u32;
    /// Identifies the packet's connection and direction: what a hash of addresses, ports and
    /// protocol would.
    fn flow_key(&self) -> u32;
    /// Its ECN bits.
    fn ecn(&self) -> Ecn;
    /// Sets them to CE.
    fn mark_ce(&mut self);

    /// Whether it may be marked instead of dropped.
    fn ecn_capable(&self) -> bool {
        self.ecn() != Ecn::NotEct
    }
    /// The hosts at the ends of its path.
    fn hosts(&self) -> HostPair {
        HostPair::default()
    }
    /// Differentiated services codepoint (RFC 2474), 0 to 63.
    fn dscp(&self) -> u8 {
        0
    }
    /// Sets the codepoint to 0 (CAKE's `wash`).
    fn clear_dscp(&mut self) {}
    /// What it acknowledges, if it is an ACK and nothing else.
    fn pure_ack(&self) -> Option<PureAck> {
        None
    }
    /// Whether it was sent in one burst with the packet before it (a later segment of a GSO packet).
    fn follows_in_burst(&self) -> bool {
        false
    }
    /// Removes the flags that only the last packet of a burst carries.
    fn clear_last_flags(&mut self) {}
    /// The packet that represents a burst becomes the one that represents it without its first packet.
    fn skip_first_of_burst(&mut self) {}
    /// The first packet of the burst that this one represents.
    #[inline]
    fn first_of_burst(&self, is_followed: bool) -> Self {
        let mut first = *self;
        if is_followed {
            first.clear_last_flags();
        }
        first
    }
    /// Splits the first packet off the burst that this one represents; `others` packets remain in it.
    #[inline]
    fn split_first(&mut self, others: u32) -> Self {
        let first = self.first_of_burst(others > 0);
        if others > 0 {
            self.skip_first_of_burst();
        }
        first
    }
    /// Earliest departure time stamped by the sender, for fq; 0: none.
    fn pacing_time_ns(&self) -> u64 {
        0
    }
    /// Kernel memory that it takes (an skb's truesize), for limits of memory.
    fn memory_bytes(&self) -> u32 {
        self.wire_bytes()
    }
}
