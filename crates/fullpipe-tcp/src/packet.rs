//! Packets between a sender and a receiver: data and ACKs.

/// SACK blocks that fit into TCP's option space beside timestamps (RFC 2018 section 3).
pub const MAX_BLOCKS: usize = 3;

/// A data packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Packet number.
    pub number: u32,
    /// Payload; 0: a FIN without data, or a window probe.
    pub payload_bytes: u32,
    /// When it leaves the sender.
    pub departs_ns: u64,
    /// Timestamp echo (RFC 7323): when the newest ACK was sent, for the receiver's RTT estimate.
    pub echo_ns: u64,
    /// A retransmission.
    pub is_retransmission: bool,
    /// The first packet of a burst.
    pub leads_burst: bool,
    /// CWR (RFC 3168).
    pub cwr: bool,
    /// PSH: the last packet of a burst, or of an application's write.
    pub push: bool,
    /// FIN.
    pub fin: bool,
    /// ECN-capable: ECT(1) if `l4s`, else ECT(0).
    pub ect: bool,
    /// Sent as L4S (RFC 9331).
    pub l4s: bool,
    /// Marked: congestion experienced.
    pub ce: bool,
}

impl Data {
    /// A packet without data that asks for the window.
    #[inline]
    pub fn is_window_probe(&self) -> bool {
        self.payload_bytes == 0 && !self.fin
    }

    /// Of the packet that represents a burst, makes its first packet, which others follow.
    #[inline]
    pub fn clear_last_flags(&mut self) {
        self.push = false;
        self.fin = false;
    }

    /// Of the packet that represents a burst, makes the one that represents it without its first packet.
    #[inline]
    pub fn skip_first_of_burst(&mut self) {
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
                first.clear_last_flags();
                left.skip_first_of_burst();
            }
            first
        })
    }
}

/// A SACK block: packets `start..end` arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// First packet.
    pub start: u32,
    /// One past the last.
    pub end: u32,
}

impl Block {
    /// A block of one packet.
    pub(crate) fn of(number: u32) -> Self {
        Self {
            start: number,
            end: number + 1,
        }
    }
}

/// How a receiver reports ECN marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnFeedback {
    /// A mark sets ECE on every ACK until the sender answers with CWR (RFC 3168).
    #[default]
    Latched,
    /// ECE says whether all packets that the ACK covers were marked (DCTCP, RFC 8257 section 3.2).
    EachPacket,
    /// Every ACK counts the marked packets (accurate ECN, RFC 9768). Its ACE field and the byte counters
    /// of its option are modelled as one count of packets, modulo 256.
    Accurate,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Next packet expected.
    pub next: u32,
    /// SACK blocks, the newest first; only `count` of them are valid.
    pub blocks: [Block; MAX_BLOCKS],
    /// Number of blocks.
    pub count: u8,
    /// The first block is a DSACK (RFC 2883).
    pub dsack: bool,
    /// ECN feedback: ECE as 0 or 1, or with accurate ECN the number of marked packets, modulo 256.
    pub marks: u8,
    /// FIN: all data arrived and the receiver has closed its side.
    pub fin: bool,
    /// Advertised window.
    pub window_bytes: u64,
    /// Timestamp echo (RFC 7323 section 4.3): when the acknowledged data packet was sent.
    pub echo_ns: u64,
    /// When it was sent.
    pub sent_ns: u64,
}
