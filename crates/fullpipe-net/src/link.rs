//! The contract of a link: one hop of a network, both directions.
//!
//! A packet and a time go in; packets and the times at which they come out, and what was dropped,
//! are put into a list that the caller owns. A link has no clock and no agenda: it says when it
//! next needs attention and is called then. So a full-duplex wire, a half-duplex medium with many
//! stations, and a link that follows a trace look alike to whoever drives them. A link must never
//! know which other links there are, or what a packet carries.

use fullpipe_plan::{Link as Plan, Medium};

use crate::queue::Counters;
use crate::queued::QueuedDirection;
use crate::rng::{derive_seed, purpose};
use crate::wifi::WifiLink;
use crate::wire::Wire;
use crate::Packet;

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

    /// That of an index which counts ways of links, or of owners: every second one is a way back.
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
    /// When: not before the call that put it here. Along one way times never decrease, unless the
    /// link reorders.
    pub at_ns: u64,
    /// In which direction it goes on.
    pub direction: Direction,
    /// What.
    pub packet: P,
}

/// What calls of a link leave. The caller reads what was added and takes it out again; a link only
/// ever adds.
#[derive(Clone, Debug)]
pub struct Passed<P> {
    /// Packets that came out.
    pub out: Vec<Exit<P>>,
    /// Packets that are gone, lost by chance or dropped by a queue.
    pub dropped: Vec<P>,
    /// Packets that a link made: copies of others, which come out or are dropped like these.
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

/// What can be sampled of one way of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionState {
    /// Bytes waiting.
    pub queue_bytes: u64,
    /// Packets waiting.
    pub queue_packets: u64,
    /// The queue's totals.
    pub counters: Counters,
    /// Packets lost by chance so far.
    pub lost_packets: u64,
    /// Packets marked by chance so far.
    pub marked_packets: u64,
}

/// One hop.
///
/// A link has at most two timers, 0 and 1. Ways that are independent have one each; a medium that
/// both ways share has one. After every call the caller asks for the time of the timer that the
/// call was about, and calls [`Link::advance`] then, and possibly earlier: a call too early does
/// nothing.
pub trait Link<P: Packet> {
    /// The timer that a call of [`Link::offer`] in this direction may move.
    fn timer(&self, direction: Direction) -> usize;
    /// A packet arrives, to go this way.
    fn offer(&mut self, now_ns: u64, direction: Direction, packet: P, passed: &mut Passed<P>);
    /// Does what is due.
    fn advance(&mut self, now_ns: u64, timer: usize, passed: &mut Passed<P>);
    /// When a timer is due; `None`: not before another packet comes.
    fn due_ns(&self, timer: usize) -> Option<u64>;
    /// What this way adds to a packet's time where it can do nothing else to any packet: offering
    /// one may then be left out. `None`: it must be offered.
    fn constant_delay_ns(&self, _way: Direction) -> Option<u64> {
        None
    }
    /// How one way is; `None` where nothing can wait.
    fn state(&self, direction: Direction) -> Option<DirectionState>;
}

/// All kinds of links. An enum, not a trait object: calls are direct and can be inlined.
#[derive(Debug)]
pub enum AnyLink<P> {
    /// A full-duplex wire.
    Wire(Box<Wire<P>>),
    /// A half-duplex channel of many stations.
    Wifi(Box<WifiLink<P>>),
}

macro_rules! each {
    ($link:expr, $kind:ident => $call:expr) => {
        match $link {
            AnyLink::Wire($kind) => $call,
            AnyLink::Wifi($kind) => $call,
        }
    };
}

impl<P: Packet> AnyLink<P> {
    /// The link of a plan at position `index` of its row. The error names the key.
    pub fn new(plan: &Plan, index: u32, seed: u64, mtu_bytes: u32) -> Result<Self, String> {
        match &plan.medium {
            Medium::Wire { forward, reverse } => {
                Wire::new([forward, reverse], index, seed, mtu_bytes)
                    .map(|wire| Self::Wire(Box::new(wire)))
            }
            Medium::Wifi {
                channel,
                stations,
                traffic,
            } => {
                let seed = derive_seed(seed, purpose::WIFI_QUEUE, index);
                WifiLink::new(channel, stations, traffic, seed)
                    .map(|wifi| Self::Wifi(Box::new(wifi)))
            }
        }
        .map_err(|error| format!("link {}: {error}", plan.name))
    }

    /// The way with this index, if it is a queue, a rate and a delay of a wire.
    #[inline]
    pub fn queued(&mut self, direction: usize) -> Option<&mut QueuedDirection<P>> {
        match self {
            Self::Wire(wire) => wire.queued(direction),
            Self::Wifi(_) => None,
        }
    }

    /// An owner is new, or another than it was, and is at this station where there are any.
    pub fn set_station(&mut self, owner: u32, station: u16) {
        if let Self::Wifi(wifi) = self {
            wifi.set_station(owner, station);
        }
    }
}

impl<P: Packet> Link<P> for AnyLink<P> {
    fn timer(&self, direction: Direction) -> usize {
        each!(self, link => link.timer(direction))
    }

    fn offer(&mut self, now_ns: u64, direction: Direction, packet: P, passed: &mut Passed<P>) {
        each!(self, link => link.offer(now_ns, direction, packet, passed));
    }

    fn advance(&mut self, now_ns: u64, timer: usize, passed: &mut Passed<P>) {
        each!(self, link => link.advance(now_ns, timer, passed));
    }

    fn due_ns(&self, timer: usize) -> Option<u64> {
        each!(self, link => link.due_ns(timer))
    }

    fn constant_delay_ns(&self, direction: Direction) -> Option<u64> {
        each!(self, link => link.constant_delay_ns(direction))
    }

    fn state(&self, direction: Direction) -> Option<DirectionState> {
        each!(self, link => link.state(direction))
    }
}
