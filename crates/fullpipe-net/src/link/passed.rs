//! What calls of a link give back: packets that leave it, in which direction, and samples.

use crate::queue::Counters;

/// A direction through the row of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// As the data of "up" flows.
    Forward,
    /// Back.
    Reverse,
}

impl Direction {
    /// Both, in the order of their indices.
    pub const BOTH: [Self; 2] = [Self::Forward, Self::Reverse];

    /// Of an index that counts the directions of links or of flows: odd ones are reverse.
    #[inline]
    pub fn of_index(index: usize) -> Self {
        match index % 2 {
            0 => Self::Forward,
            _ => Self::Reverse,
        }
    }

    /// 0 or 1.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The other one.
    pub fn back(self) -> Self {
        match self {
            Self::Forward => Self::Reverse,
            Self::Reverse => Self::Forward,
        }
    }

    /// `forward` or `reverse`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Reverse => "reverse",
        }
    }
}

/// A packet that comes out of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit<P> {
    /// When: not before the call that added it. Times of one direction never decrease, unless the
    /// link reorders.
    pub at_ns: u64,
    /// Its direction.
    pub direction: Direction,
    /// The packet.
    pub packet: P,
}

/// Lists to which calls of a link add; the caller empties them.
#[derive(Clone, Debug)]
pub struct Passed<P> {
    /// Packets that came out.
    pub out: Vec<Exit<P>>,
    /// Packets that were lost or dropped.
    pub dropped: Vec<P>,
    /// Copies that the link made, which also leave it or are dropped.
    pub duplicated: Vec<P>,
}

impl<P> Default for Passed<P> {
    fn default() -> Self {
        Self {
            out: Vec::with_capacity(64),
            dropped: Vec::with_capacity(64),
            duplicated: Vec::with_capacity(64),
        }
    }
}

/// A sample of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionState {
    /// Bytes waiting.
    pub queue_bytes: u64,
    /// Packets waiting.
    pub queue_packets: u64,
    /// Totals of the queue.
    pub counters: Counters,
    /// Packets randomly lost so far.
    pub lost_packets: u64,
    /// Packets randomly marked so far.
    pub marked_packets: u64,
}
