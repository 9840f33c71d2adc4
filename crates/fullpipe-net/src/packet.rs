//! What elements need to know of a packet. Never what it carries.

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

/// The hosts that a packet travels between: equal numbers, equal addresses. Numbers of the two
/// sides of a network are apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostPair {
    /// Where it comes from.
    pub source: u32,
    /// Where it goes.
    pub destination: u32,
}

/// What a filter of ACKs sees of one without payload (sch_cake.c, cake_ack_filter()). Numbers are
/// packet numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PureAck {
    /// Next packet expected.
    pub next: u32,
    /// SACK blocks, the newest first; `count` of them are meant.
    pub blocks: [(u32, u32); 3],
    /// How many blocks there are.
    pub count: u8,
    /// The flags that report marks: ACKs that differ in them say different things.
    pub ecn_flags: u8,
}

/// What elements need to know of a packet.
pub trait Packet: Copy {
    /// Bytes on the wire, link header included.
    fn wire_bytes(&self) -> u32;
    /// Identifies the packet's connection and direction: what a hash of addresses, ports and
    /// protocol would.
    fn flow_key(&self) -> u32;
    /// Its ECN bits.
    fn ecn(&self) -> Ecn;
    /// Marks it: congestion experienced.
    fn mark_ce(&mut self);

    /// Whether it may be marked instead of dropped.
    fn ecn_capable(&self) -> bool {
        self.ecn() != Ecn::NotEct
    }
    /// The flow or probe that it belongs to; the same for both directions.
    fn owner(&self) -> u32 {
        self.flow_key()
    }
    /// The hosts that it travels between.
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
    /// It was handed down in one burst with the packet before it (a GSO packet's later segments).
    fn follows_in_burst(&self) -> bool {
        false
    }
    /// Of a run of packets, which were handed down in one burst and differ in nothing but their
    /// numbers, this stands for all and becomes the first, behind which others follow: what the last
    /// one has, it has not.
    fn end_follows(&mut self) {}
    /// The same becomes what is left of the run without its first packet.
    fn drop_first(&mut self) {}
    /// The first of a run, where others follow it or none do.
    #[inline]
    fn first(&self, is_followed: bool) -> Self {
        let mut first = *self;
        if is_followed {
            first.end_follows();
        }
        first
    }
    /// The first of a run, of which so many others are left in `self`.
    #[inline]
    fn split_first(&mut self, others: u32) -> Self {
        let first = self.first(others > 0);
        if others > 0 {
            self.drop_first();
        }
        first
    }
    /// Earliest departure time stamped by the sender, for fq; 0: none.
    fn pacing_time_ns(&self) -> u64 {
        0
    }
    /// Memory that it takes in a kernel (an skb's truesize), for fq_codel's memory limit.
    fn memory_bytes(&self) -> u32 {
        self.wire_bytes()
    }
}
