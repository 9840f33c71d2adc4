//! A frame and its answer. Knows no channel.

use super::phy::Mode;

/// The node that is the access point; station `k` is node `k + 1`.
pub(super) const ACCESS_POINT: usize = 0;

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Data { mode: Mode, mpdus: u32, bytes: u64 },
    BlockAckRequest,
}

/// A frame that one node sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    pub(super) node: usize,
    pub(super) category: usize,
    pub(super) peer: usize,
    pub(super) kind: Kind,
    pub(super) starts_ns: u64,
    /// End of the part that can collide: the RTS, or the frame without one.
    pub(super) exposed_ns: u64,
    pub(super) ends_ns: u64,
    /// Start of the transmission opportunity.
    pub(super) txop_ns: u64,
    /// MPDUs received, if that is decided before the frame's end.
    pub(super) received: Option<u32>,
}

/// The station of a pair of nodes, and the direction of its frames: up (0) or down (1).
pub(super) fn station_of(node: usize, peer: usize) -> (usize, usize) {
    if node == ACCESS_POINT {
        (peer, 1)
    } else {
        (node - 1, 0)
    }
}
