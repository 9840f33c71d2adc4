//! What travels between a sender and a receiver.

/// SACK blocks that fit beside timestamps in TCP's option space (RFC 2018 section 3).
pub const MAX_BLOCKS: usize = 3;

/// A data packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Packet number.
    pub number: u32,
    /// Payload; 0: a FIN that travels alone.
    pub payload_bytes: u32,
    /// When it leaves the sender.
    pub departs_ns: u64,
    /// Timestamp echo of the newest ACK (RFC 7323), for the receiver's RTT estimate.
    pub echo_ns: u64,
    /// It was sent before.
    pub is_retransmission: bool,
    /// It is the first of what TCP handed down at once (a GSO packet).
    pub leads_burst: bool,
    /// It carries CWR (RFC 3168).
    pub cwr: bool,
    /// It ends what TCP handed down at once, or what the application wrote (PSH).
    pub push: bool,
    /// Nothing follows it (FIN).
    pub fin: bool,
    /// It can be marked.
    pub ect: bool,
    /// Then as ECT(1), which L4S queues take (RFC 9331); else as ECT(0).
    pub l4s: bool,
    /// It has been marked.
    pub ce: bool,
}

impl Data {
    /// Of the packet that represents a burst, makes its first packet, which others follow.
    #[inline]
    pub fn end_follows(&mut self) {
        self.push = false;
        self.fin = false;
    }

    /// Of the packet that represents a burst, makes the one that represents it without its first packet.
    #[inline]
    pub fn drop_first(&mut self) {
        self.number += 1;
        self.leads_burst = false;
        self.cwr = false;
    }
}

/// Consecutive packets that TCP hands down at once and that differ only in their numbers: a GSO packet
/// that is not segmented yet. Only the first leads the burst and carries CWR, only the last carries
/// PSH and FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// The first packet, with the flags of the last.
    pub data: Data,
    /// How many: at least one.
    pub count: u32,
}

impl Burst {
    /// Its packets, one by one.
    pub fn packets(self) -> impl Iterator<Item = Data> {
        let mut left = self.data;
        (0..self.count).rev().map(move |others| {
            let mut first = left;
            if others > 0 {
                first.end_follows();
                left.drop_first();
            }
            first
        })
    }
}

/// Packets `start..end` arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// First packet.
    pub start: u32,
    /// One past the last.
    pub end: u32,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Next packet expected.
    pub next: u32,
    /// SACK blocks, the newest first; `count` of them are meant.
    pub blocks: [Block; MAX_BLOCKS],
    /// How many blocks there are.
    pub count: u8,
    /// The first block reports a duplicate (RFC 2883).
    pub dsack: bool,
    /// What it says of marks ([`crate::Feedback`]): 1 or 0 (ECE), or with accurate ECN how many
    /// packets have come marked, modulo 256.
    pub marks: u8,
    /// All has arrived, and the receiver's side is closed too (FIN).
    pub fin: bool,
    /// Advertised window.
    pub window_bytes: u64,
    /// Timestamp of the data packet that this answers (RFC 7323 section 4.3).
    pub echo_ns: u64,
    /// When it was sent.
    pub sent_ns: u64,
}
