//! Events, and their order in time.

use std::cmp::Ordering;

use fullpipe_net::LinkDirection;

/// What is due. Numbers are indices: of connections, links, lines, hosts, pages, and so on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A link's timer.
    Link(LinkDirection),
    /// A packet between two links reaches the second one; the direction is that of the first.
    NextLink(LinkDirection),
    /// A packet on an access line reaches its host (flow id * 2 + direction).
    Access(u32),
    /// A sender's timer.
    Sender(u32),
    /// A receiver's timer.
    Receiver(u32),
    /// A burst leaves its sender's host (fq, access link).
    Departure(u32),
    /// An application writes.
    Write(u32),
    /// A connection starts.
    Start(u32),
    /// The address of its first SYN is resolved (ARP).
    Resolved(u32),
    /// A handshake's timer.
    Handshake(u32),
    /// An application stops.
    Stop(u32),
    /// A probe sends a request.
    Probe(u32),
    /// A page's timer.
    Page(u32),
    /// A stream sends a datagram.
    Datagram(u32),
    /// A flow of a traffic group arrives.
    Arrival(u32),
    /// A host's processor is done with a received packet.
    Processed(u32),
    /// A host's processor is done with an ACK to send.
    AckMade(u32),
    /// A timer of an endpoint of another transport (flow * 2 + end).
    Endpoint(u32),
    /// Everything is sampled.
    Sample,
}

/// An event on the agenda.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) at_ns: u64,
    /// Serial number, which orders events at one time.
    pub(crate) serial: u64,
    pub(crate) event: Event,
}

impl Pending {
    /// Unique, so the event itself need not be compared.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.at_ns) << 64 | u128::from(self.serial)
    }
}

impl Ord for Pending {
    /// The event that is due first is the greatest, for heaps and lists that yield the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    /// As one comparison, for sorting.
    #[inline]
    fn lt(&self, other: &Self) -> bool {
        other.key() < self.key()
    }

    /// As one comparison, for heaps.
    #[inline]
    fn le(&self, other: &Self) -> bool {
        other.key() <= self.key()
    }
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pending {}
