//! A full-duplex wire: two independent directions, each of one of two kinds.

use super::contract::{Link, Passage};
use super::general::GeneralDirection;
use super::params::WireDirection;
use super::passed::{Direction, DirectionState, Passed};
use super::queued::QueuedDirection;
use super::shaped::NEVER_NS;
use crate::packet::Packet;

/// Both directions.
#[derive(Debug)]
pub struct Wire<P> {
    sides: [Side<P>; 2],
}

/// A direction, of the kind that its plan asks for.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // a box would cost an indirection for every packet
enum Side<P> {
    Queued(QueuedDirection<P>),
    General(Box<GeneralDirection<P>>),
}

impl<P: Packet> Side<P> {
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
        let side = |params, direction: Direction| {
            let index = 2 * index + direction as u32;
            Side::new(params, direction, index, seed, mtu_bytes)
        };
        Ok(Self {
            sides: [
                side(forward, Direction::Forward)?,
                side(reverse, Direction::Reverse)?,
            ],
        })
    }
}

impl<P: Packet> Link<P> for Wire<P> {
    fn timer(&self, direction: Direction) -> usize {
        direction.index()
    }

    fn offer(&mut self, now_ns: u64, direction: Direction, packet: P, passed: &mut Passed<P>) {
        match &mut self.sides[direction.index()] {
            Side::Queued(queued) => queued.offer(now_ns, packet, passed),
            Side::General(general) => general.offer(now_ns, packet, passed),
        }
    }

    fn advance(&mut self, now_ns: u64, timer: usize, passed: &mut Passed<P>) {
        match &mut self.sides[timer] {
            Side::Queued(queued) => queued.advance(now_ns, passed),
            Side::General(general) => general.advance(now_ns, passed),
        }
    }

    fn due_ns(&self, timer: usize) -> Option<u64> {
        let due_ns = match &self.sides[timer] {
            Side::Queued(queued) => queued.due_ns(),
            Side::General(general) => general.due_ns(),
        };
        (due_ns != NEVER_NS).then_some(due_ns)
    }

    fn passage(&self, direction: Direction) -> Passage {
        match &self.sides[direction.index()] {
            Side::Queued(_) => Passage::Queued,
            Side::General(general) => general.passage(),
        }
    }

    #[inline]
    fn queued(&mut self, timer: usize) -> Option<&mut QueuedDirection<P>> {
        match &mut self.sides[timer] {
            Side::Queued(queued) => Some(queued),
            Side::General(_) => None,
        }
    }

    fn state(&self, direction: Direction) -> Option<DirectionState> {
        match &self.sides[direction.index()] {
            Side::Queued(queued) => Some(queued.state()),
            Side::General(general) => general.state(),
        }
    }
}

#[cfg(test)]
mod tests;
