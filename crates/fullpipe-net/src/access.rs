//! Between the row of links and a host: loss at the senders' egress, and a delay line with jitter for each
//! flow and direction.

use crate::impair::jitter::JitterSource;
use crate::impair::loss::{self, LossGate};
use crate::link::delay::{Carried, DelayLine};
use crate::link::Direction;
use crate::packet::Packet;
use crate::rng::{derive_seed, purpose};

/// Loss at the egress of all hosts, in each direction.
#[derive(Debug)]
pub struct EgressLoss([Option<LossGate>; 2]);

impl EgressLoss {
    /// The loss of what is sent forward, and of what is sent back.
    pub fn new(forward: Option<&loss::Params>, reverse: Option<&loss::Params>, seed: u64) -> Self {
        let gate = |loss: Option<_>, purpose| {
            loss.map(|loss| LossGate::new(loss, derive_seed(seed, purpose, 0)))
        };
        Self([
            gate(forward, purpose::LOSS),
            gate(reverse, purpose::REVERSE_LOSS),
        ])
    }

    /// Whether packets are neither lost nor marked in this direction.
    #[inline]
    pub fn is_none(&self, direction: Direction) -> bool {
        self.0[direction.index()].is_none()
    }

    /// False if the packet is lost; it may be marked.
    #[inline]
    pub fn passes<P: Packet>(&mut self, direction: Direction, packet: &mut P) -> bool {
        self.0[direction.index()]
            .as_mut()
            .is_none_or(|gate| gate.passes(packet))
    }

    /// Packets lost and marked so far, in each direction.
    pub fn totals(&self) -> [(u64, u64); 2] {
        let totals = |gate: &LossGate| (gate.lost(), gate.marked());
        self.0
            .each_ref()
            .map(|gate| gate.as_ref().map_or((0, 0), totals))
    }
}

/// The delay line of a flow in one direction.
#[derive(Debug)]
pub struct AccessLine<P> {
    packets: DelayLine<P>,
    delay_ns: u64,
    jitter: Option<JitterSource>,
}

impl<P: Copy> AccessLine<P> {
    /// A line with a delay behind its jitter.
    pub fn new(delay_ns: u64, jitter: Option<JitterSource>) -> Self {
        Self {
            packets: DelayLine::default(),
            delay_ns,
            jitter,
        }
    }

    /// Whether packets pass it at once.
    pub fn is_direct(&self) -> bool {
        self.delay_ns == 0 && self.jitter.is_none()
    }

    /// Whether no packet is on it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// A packet enters at `at_ns`, which is now or later.
    #[inline(always)] // for every ACK
    pub fn carry(&mut self, now_ns: u64, at_ns: u64, packet: &P) -> Carried {
        let released_ns = match &mut self.jitter {
            Some(jitter) => jitter.release_ns(at_ns),
            None => at_ns,
        };
        self.packets
            .carry(now_ns, released_ns + self.delay_ns, packet)
    }

    /// The first packet, if it has reached its host.
    #[inline(always)] // a reference, as a returned packet would be copied twice
    pub fn ready(&self, now_ns: u64) -> Option<&P> {
        self.packets.ready(now_ns)
    }

    /// Removes the first packet.
    #[inline(always)] // for every ACK
    pub fn leave(&mut self) {
        self.packets.leave();
    }

    /// When the first packet reaches its host.
    #[inline]
    pub fn due_ns(&self) -> Option<u64> {
        self.packets.due_ns()
    }
}

#[cfg(test)]
mod tests;
