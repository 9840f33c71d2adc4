//! Which queue of a tin a packet goes to: CAKE's 8-way set-associative hash, and the counts of
//! busy flows a host by which host isolation divides (sch_cake.c, cake_hash()).
//!
//! Linux's hash is keyed at boot. Here it is fixed and sends neighbouring keys to different queues, so that
//! flows share one only if a set of eight is full.

use super::params::Isolation;
use crate::packet::Packet;

pub(super) const QUEUES: usize = 1024;
const WAYS: usize = 8;

/// The parts of a packet's address that the hash uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct HashKeys {
    by_flow: bool,
    by_source: bool,
    by_destination: bool,
}

impl HashKeys {
    pub(super) fn new(isolation: Isolation) -> Self {
        let (by_source, by_destination, by_flow) = match isolation {
            Isolation::Flowblind => (false, false, false),
            Isolation::Srchost => (true, false, false),
            Isolation::Dsthost => (false, true, false),
            Isolation::Hosts => (true, true, false),
            Isolation::Flows => (false, false, true),
            Isolation::DualSrchost => (true, false, true),
            Isolation::DualDsthost => (false, true, true),
            Isolation::TripleIsolate => (true, true, true),
        };
        Self {
            by_flow,
            by_source,
            by_destination,
        }
    }

    fn divides_by_source(self) -> bool {
        self.by_flow && self.by_source
    }

    fn divides_by_destination(self) -> bool {
        self.by_flow && self.by_destination
    }
}

/// Hosts of one side, in a set-associative table of their own.
#[derive(Debug)]
struct Hosts {
    tags: Box<[u32; QUEUES]>,
    busy_flows: Box<[u16; QUEUES]>,
}

impl Hosts {
    fn new() -> Self {
        Self {
            tags: Box::new([0; QUEUES]),
            busy_flows: Box::new([0; QUEUES]),
        }
    }

    /// The host's place: its own, else one of its set without busy flows, else a shared one.
    fn find(&mut self, hash: u32) -> u16 {
        let found = set_of(hash)
            .find(|&place| self.tags[place] == hash)
            .or_else(|| set_of(hash).find(|&place| self.busy_flows[place] == 0));
        let place = found.unwrap_or(hash as usize % QUEUES);
        self.tags[place] = hash;
        place as u16
    }

    #[inline]
    fn busy(&self, place: u16) -> u16 {
        self.busy_flows[usize::from(place) % QUEUES]
    }

    fn add(&mut self, place: u16, change: i32) {
        let busy = &mut self.busy_flows[usize::from(place) % QUEUES];
        *busy = (i32::from(*busy) + change).clamp(0, QUEUES as i32) as u16;
    }
}

/// The places of a hash's set, its own first.
fn set_of(hash: u32) -> impl Iterator<Item = usize> {
    let own = hash as usize % QUEUES;
    let first = own - own % WAYS;
    (0..WAYS).map(move |direction| first + (own + direction) % WAYS)
}

/// A queue's state, for the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// In no list.
    Free,
    /// Busy, and counted with its hosts.
    Bulk,
    Other,
}

/// The tags of one tin.
#[derive(Debug)]
pub(super) struct FlowTable {
    keys: HashKeys,
    tags: Box<[u32; QUEUES]>,
    /// Places of each queue's source and destination.
    hosts_of: Box<[[u16; 2]; QUEUES]>,
    sources: Hosts,
    destinations: Hosts,
}

impl FlowTable {
    pub(super) fn new(keys: HashKeys) -> Self {
        Self {
            keys,
            tags: Box::new([0; QUEUES]),
            hosts_of: Box::new([[0; 2]; QUEUES]),
            sources: Hosts::new(),
            destinations: Hosts::new(),
        }
    }

    /// The packet's queue, which is its flow's from now on.
    #[inline]
    pub(super) fn classify<P: Packet>(&mut self, packet: &P, used: impl Fn(usize) -> Use) -> usize {
        let keys = self.keys;
        let hash = match keys.by_flow {
            true => spread(packet.flow_key(), 0xc2b2_ae35),
            false => {
                let [source, destination] = hashes_of_hosts(packet);
                let source = if keys.by_source { source } else { 0 };
                let destination = if keys.by_destination { destination } else { 0 };
                source ^ destination
            }
        };
        let own = hash as usize % QUEUES;
        if self.tags[own] == hash && used(own) != Use::Free {
            return own;
        }
        self.find(packet, hash, used)
    }

    /// A flow's queue that is not the first of its set, or is to be its flow's from now on.
    #[inline(never)]
    fn find<P: Packet>(&mut self, packet: &P, hash: u32, used: impl Fn(usize) -> Use) -> usize {
        let keys = self.keys;
        let [source, destination] = hashes_of_hosts(packet);
        let own = hash as usize % QUEUES;
        let known = set_of(hash).find(|&place| self.tags[place] == hash);
        if let Some(place) = known.filter(|&place| used(place) != Use::Free) {
            return place;
        }
        let free = known.or_else(|| set_of(hash).find(|&place| used(place) == Use::Free));
        // With no free one in the set the first is shared, and its hosts are the newcomer's.
        let place = free.unwrap_or(own);
        let is_bulk = used(place) == Use::Bulk;
        if is_bulk {
            self.count(place, -1);
        }
        self.tags[place] = hash;
        if keys.divides_by_source() {
            self.hosts_of[place][0] = self.sources.find(source);
        }
        if keys.divides_by_destination() {
            self.hosts_of[place][1] = self.destinations.find(destination);
        }
        if is_bulk {
            self.count(place, 1);
        }
        place
    }

    /// A queue became busy (`1`) or is no longer (`-1`).
    pub(super) fn count(&mut self, queue: usize, change: i32) {
        let [source, destination] = self.hosts_of[queue % QUEUES];
        if self.keys.divides_by_source() {
            self.sources.add(source, change);
        }
        if self.keys.divides_by_destination() {
            self.destinations.add(destination, change);
        }
    }

    /// Busy flows of the busier one of a queue's hosts, at least 1.
    #[inline]
    pub(super) fn host_load(&self, queue: usize) -> u16 {
        let [source, destination] = self.hosts_of[queue % QUEUES];
        let mut load = 1;
        if self.keys.divides_by_source() {
            load = load.max(self.sources.busy(source));
        }
        if self.keys.divides_by_destination() {
            load = load.max(self.destinations.busy(destination));
        }
        load
    }
}

/// Of a packet's source and destination.
fn hashes_of_hosts<P: Packet>(packet: &P) -> [u32; 2] {
    let hosts = packet.hosts();
    [
        spread(hosts.source, 0x9e37_79b1),
        spread(hosts.destination, 0x85eb_ca6b),
    ]
}

/// An odd factor keeps up to `QUEUES` neighbouring numbers apart modulo `QUEUES`. Never 0, which
/// an empty tag holds, for small numbers.
fn spread(number: u32, factor: u32) -> u32 {
    number.wrapping_add(1).wrapping_mul(factor)
}
