//! The contract of a link: one hop of a network, both directions.
//!
//! The caller passes a packet and a time. The link adds to a list of the caller's which packets leave it
//! and when, and which it dropped. A link has no clock and no agenda: it says when it must be called
//! next. So a full-duplex wire, a half-duplex medium with many stations and a link that follows a trace
//! look alike to the caller. A link must not know other links, or what a packet carries.

use super::passed::{Direction, DirectionState, Passed};
use super::queued::QueuedDirection;
use crate::packet::Packet;

/// How packets pass a direction of a link. It never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// By the steps of [`Link::queued`]: bursts stay whole, and packets leave one by one, without lists.
    Queued,
    /// After so many ns: the link need not be called.
    Delayed(u64),
    /// By [`Link::offer`] and [`Link::advance`].
    Offered,
}

/// One hop.
///
/// A link has at most two timers, 0 and 1. Independent directions have one each; a medium that both
/// directions share has one. After every call the caller reads the time of the timer that the call
/// concerned, and calls [`Link::advance`] at that time. An earlier call has no effect.
pub trait Link<P: Packet> {
    /// The timer that [`Link::offer`] in this direction may set.
    fn timer(&self, direction: Direction) -> usize;
    /// A packet arrives at the link.
    fn offer(&mut self, now_ns: u64, direction: Direction, packet: P, passed: &mut Passed<P>);
    /// Sends, releases and drops what is due.
    fn advance(&mut self, now_ns: u64, timer: usize, passed: &mut Passed<P>);
    /// When a timer is due; `None`: not before another packet arrives.
    fn due_ns(&self, timer: usize) -> Option<u64>;
    /// How packets pass a direction. Whatever it is, [`Self::offer`] and [`Self::advance`] do the same.
    fn passage(&self, _way: Direction) -> Passage {
        Passage::Offered
    }
    /// The direction that a timer serves, if it is one with [`Passage::Queued`].
    fn queued(&mut self, _timer: usize) -> Option<&mut QueuedDirection<P>> {
        None
    }
    /// Sets the station of a flow that has no packets in the link, where there are stations.
    fn set_station(&mut self, _flow_key: u32, _station: u16) {}
    /// A sample of one direction; `None`: it has no queue.
    fn state(&self, direction: Direction) -> Option<DirectionState>;
}
