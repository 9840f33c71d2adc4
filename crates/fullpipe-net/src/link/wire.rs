//! A full-duplex wire: two independent directions, each with one of two treatments.

use super::contract::{Direction, DirectionState, Link, Passed};
use super::general::GeneralDirection;
use super::params::WireDirection;
use super::queued::QueuedDirection;
use super::shaped::NEVER_NS;
use crate::packet::Packet;

/// Both directions.
#[derive(Debug)]
pub struct Wire<P> {
    directions: [Treatment<P>; 2],
}

/// What a direction does, chosen when it is made.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // a box would cost an indirection for every packet
enum Treatment<P> {
    Queued(QueuedDirection<P>),
    General(Box<GeneralDirection<P>>),
}

impl<P: Packet> Treatment<P> {
    fn new(
        params: &WireDirection,
        direction: Direction,
        index: u32,
        seed: u64,
        mtu_bytes: u32,
    ) -> Result<Self, String> {
        if let Some(queued) = QueuedDirection::new(params, direction, index, seed, mtu_bytes)? {
            return Ok(Self::Queued(queued));
        }
        let general = GeneralDirection::new(params, direction, index, seed, mtu_bytes)?;
        Ok(Self::General(Box::new(general)))
    }
}

impl<P: Packet> Wire<P> {
    /// The wire at position `index` of its row, from its forward and its reverse direction. The error
    /// names a key.
    pub fn new(
        [forward, reverse]: [&WireDirection; 2],
        index: u32,
        seed: u64,
        mtu_bytes: u32,
    ) -> Result<Self, String> {
        let treatment = |params, direction: Direction| {
            let index = 2 * index + direction as u32;
            Treatment::new(params, direction, index, seed, mtu_bytes)
        };
        Ok(Self {
            directions: [
                treatment(forward, Direction::Forward)?,
                treatment(reverse, Direction::Reverse)?,
            ],
        })
    }

    /// The direction with this index, if it is a queued one.
    #[inline]
    pub(crate) fn queued(&mut self, direction: usize) -> Option<&mut QueuedDirection<P>> {
        match &mut self.directions[direction] {
            Treatment::Queued(queued) => Some(queued),
            Treatment::General(_) => None,
        }
    }
}

impl<P: Packet> Link<P> for Wire<P> {
    fn timer(&self, direction: Direction) -> usize {
        direction.index()
    }

    fn offer(&mut self, now_ns: u64, direction: Direction, packet: P, passed: &mut Passed<P>) {
        match &mut self.directions[direction.index()] {
            Treatment::Queued(queued) => queued.offer(now_ns, packet, passed),
            Treatment::General(general) => general.offer(now_ns, packet, passed),
        }
    }

    fn advance(&mut self, now_ns: u64, timer: usize, passed: &mut Passed<P>) {
        match &mut self.directions[timer] {
            Treatment::Queued(queued) => queued.advance(now_ns, passed),
            Treatment::General(general) => general.advance(now_ns, passed),
        }
    }

    fn due_ns(&self, timer: usize) -> Option<u64> {
        let due_ns = match &self.directions[timer] {
            Treatment::Queued(queued) => queued.due_ns(),
            Treatment::General(general) => general.due_ns(),
        };
        (due_ns != NEVER_NS).then_some(due_ns)
    }

    fn constant_delay_ns(&self, direction: Direction) -> Option<u64> {
        match &self.directions[direction.index()] {
            Treatment::Queued(_) => None,
            Treatment::General(general) => general.constant_delay_ns(),
        }
    }

    fn state(&self, direction: Direction) -> Option<DirectionState> {
        match &self.directions[direction.index()] {
            Treatment::Queued(queued) => Some(queued.state()),
            Treatment::General(general) => general.state(),
        }
    }
}

#[cfg(test)]
mod tests;
