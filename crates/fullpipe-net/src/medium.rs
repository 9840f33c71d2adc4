//! The kinds of links: what a plan says of each, and a link of any kind. A new kind is a file or folder, a
//! variant of [`Medium`] and one of [`AnyLink`].

use serde::{Deserialize, Serialize};

use crate::link::wire::Wire;
use crate::link::{
    Direction, DirectionState, Link, Passage, Passed, QueuedDirection, WireDirection,
};
use crate::packet::Packet;
use crate::rng::{derive_seed, purpose};
use crate::wifi::{Wifi, WifiLink};

/// What a link is made of, as a plan describes it.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Medium {
    /// A full-duplex wire: its two directions are independent.
    Wire {
        /// From the senders of "up" flows.
        forward: Box<WireDirection>,
        /// Back to them.
        reverse: Box<WireDirection>,
    },
    /// A Wi-Fi channel: forward is from its stations to its access point.
    Wifi {
        /// The channel.
        channel: Box<Wifi>,
        /// The station of each flow, and then of each probe, page and stream of datagrams: positions
        /// in the channel's list. Those without an entry are at the first.
        stations: Vec<u16>,
        /// The station of each group of traffic.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        traffic: Vec<u16>,
    },
}

impl Medium {
    /// The directions of a wire; `None`: it is none.
    pub fn wire(&self) -> Option<[&WireDirection; 2]> {
        match self {
            Self::Wire { forward, reverse } => Some([forward, reverse]),
            Self::Wifi { .. } => None,
        }
    }
}

/// A link of any kind. An enum, not a trait object: calls are direct and can be inlined.
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
    /// The link at position `index` of its row. The error names a key.
    pub fn new(medium: &Medium, index: u32, seed: u64, mtu_bytes: u32) -> Result<Self, String> {
        match medium {
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

    fn passage(&self, direction: Direction) -> Passage {
        each!(self, link => link.passage(direction))
    }

    #[inline]
    fn queued(&mut self, timer: usize) -> Option<&mut QueuedDirection<P>> {
        each!(self, link => link.queued(timer))
    }

    fn set_station(&mut self, flow_key: u32, station: u16) {
        each!(self, link => link.set_station(flow_key, station));
    }

    fn state(&self, direction: Direction) -> Option<DirectionState> {
        each!(self, link => link.state(direction))
    }
}
