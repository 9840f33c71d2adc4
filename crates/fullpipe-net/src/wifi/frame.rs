//! The packets on the channel: those of the scenario, and those of background traffic.

use crate::packet::{Ecn, HostPair, Packet, PureAck};

/// A packet, or one of background traffic.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Frame<P> {
    /// One of the scenario's; up: from a station.
    Packet {
        packet: P,
        up: bool,
    },
    Background {
        source: u32,
        wire_bytes: u32,
    },
}

impl<P: Packet> Frame<P> {
    /// A property of a packet of the scenario; background traffic has the default.
    fn ask<T: Default>(&self, answer: impl FnOnce(&P) -> T) -> T {
        match self {
            Self::Packet { packet, .. } => answer(packet),
            Self::Background { .. } => T::default(),
        }
    }
}

impl<P: Packet> Packet for Frame<P> {
    fn wire_bytes(&self) -> u32 {
        match self {
            Self::Packet { packet, .. } => packet.wire_bytes(),
            Self::Background { wire_bytes, .. } => *wire_bytes,
        }
    }

    fn flow_key(&self) -> u32 {
        match self {
            Self::Packet { packet, .. } => packet.flow_key(),
            Self::Background { source, .. } => u32::MAX - source,
        }
    }

    fn ecn(&self) -> Ecn {
        self.ask(P::ecn)
    }

    fn mark_ce(&mut self) {
        if let Self::Packet { packet, .. } = self {
            packet.mark_ce();
        }
    }

    fn hosts(&self) -> HostPair {
        self.ask(P::hosts)
    }

    fn dscp(&self) -> u8 {
        self.ask(P::dscp)
    }

    fn clear_dscp(&mut self) {
        if let Self::Packet { packet, .. } = self {
            packet.clear_dscp();
        }
    }

    fn pure_ack(&self) -> Option<PureAck> {
        self.ask(P::pure_ack)
    }

    fn follows_in_burst(&self) -> bool {
        self.ask(P::follows_in_burst)
    }

    fn pacing_time_ns(&self) -> u64 {
        self.ask(P::pacing_time_ns)
    }

    fn memory_bytes(&self) -> u32 {
        match self {
            Self::Packet { packet, .. } => packet.memory_bytes(),
            Self::Background { wire_bytes, .. } => *wire_bytes,
        }
    }
}

/// A frame and the peer that it is for, as a queue shared by all peers holds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addressed<P> {
    pub(crate) peer: u32,
    pub(crate) frame: Frame<P>,
}

impl<P: Packet> Packet for Addressed<P> {
    fn wire_bytes(&self) -> u32 {
        self.frame.wire_bytes()
    }

    fn flow_key(&self) -> u32 {
        self.frame.flow_key()
    }

    fn ecn(&self) -> Ecn {
        self.frame.ecn()
    }

    fn mark_ce(&mut self) {
        self.frame.mark_ce();
    }

    fn hosts(&self) -> HostPair {
        self.frame.hosts()
    }

    fn dscp(&self) -> u8 {
        self.frame.dscp()
    }

    fn clear_dscp(&mut self) {
        self.frame.clear_dscp();
    }

    fn pure_ack(&self) -> Option<PureAck> {
        self.frame.pure_ack()
    }

    fn follows_in_burst(&self) -> bool {
        self.frame.follows_in_burst()
    }

    fn pacing_time_ns(&self) -> u64 {
        self.frame.pacing_time_ns()
    }

    fn memory_bytes(&self) -> u32 {
        self.frame.memory_bytes()
    }
}
