//! The queues of one access category at one node: a driver's FIFO below a queue discipline, or mac80211's
//! queues with airtime fairness and airtime queue limits. Both feed the hardware's queues, one for each peer,
//! from which A-MPDUs are made.

use std::collections::VecDeque;

use super::ampdu::{mpdu_bytes, Handed, Supply};
use super::frame::{Addressed, Frame};
use super::params::WifiQueues;
use crate::packet::Packet;
use crate::queue::slab::{List, Slab};
use crate::queue::Queue;

/// Airtime of an aggregated packet besides its bits, for the limits: preamble, contention
/// and BlockAck shared by sixteen (ieee80211_calc_expected_tx_airtime() shifts by at most 4).
const SHARED_OVERHEAD_NS: u64 = 100_000 / 16;
/// The rate and MTU that disciplines take for the channel's; only RED uses the rate.
const NOMINAL_RATE_BPS: u64 = 100_000_000;
const MTU_BYTES: u32 = 1500;

/// The hardware's queues.
#[derive(Debug)]
struct Hardware<P> {
    slab: Slab<Handed<Frame<P>>>,
    lists: Vec<List>,
    /// Packets here and in the air.
    held: usize,
    held_bytes: u64,
    pushed: u64,
}

impl<P: Packet> Hardware<P> {
    #[inline]
    fn push(&mut self, peer: usize, packet: &Frame<P>, airtime_ns: u32) {
        self.pushed += 1;
        self.held += 1;
        self.held_bytes += u64::from(packet.wire_bytes());
        let order = self.pushed;
        let handed = Handed {
            packet: *packet,
            order,
            airtime_ns,
        };
        self.slab.push_back(&mut self.lists[peer], handed);
    }
}

/// mac80211's queue of one station.
#[derive(Debug)]
struct StationQueue<P> {
    queue: Queue<Frame<P>>,
    /// Airtime of its packets in the hardware.
    pending_ns: u64,
    deficit_ns: i64,
    /// Data bits of a symbol at the last rate, and the symbol.
    rate: (u64, u64),
    active: bool,
}

/// Which active stations may have less airtime in the hardware than the limits allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unblocked {
    None,
    /// This one at most.
    One(u32),
    Any,
}

#[derive(Debug)]
struct Mac80211<P> {
    stations: Vec<StationQueue<P>>,
    active: VecDeque<u32>,
    unblocked: Unblocked,
    low_ns: u64,
    high_ns: u64,
    threshold_ns: u64,
    quantum_ns: i64,
    pending_ns: u64,
}

#[derive(Debug)]
enum Feed<P> {
    Driver {
        limit: usize,
        qdisc: Option<Queue<Addressed<P>>>,
        refused: Vec<Addressed<P>>,
    },
    Mac80211(Mac80211<P>),
}

/// The queues of one category at one node.
#[derive(Debug)]
pub(crate) struct CategoryQueue<P> {
    hardware: Hardware<P>,
    feed: Feed<P>,
}

impl<P: Packet> CategoryQueue<P> {
    /// Queues towards `peers`.
    pub(crate) fn new(config: &WifiQueues, peers: usize, seed: u64) -> Self {
        let feed = match config {
            WifiQueues::Driver {
                limit_packets,
                qdisc,
            } => Feed::Driver {
                limit: *limit_packets as usize,
                qdisc: qdisc
                    .as_ref()
                    .map(|qdisc| Queue::new(qdisc, NOMINAL_RATE_BPS, MTU_BYTES, seed)),
                refused: Vec::new(),
            },
            WifiQueues::Mac80211 {
                qdisc,
                aql_low_ns,
                aql_high_ns,
                aql_threshold_ns,
                airtime_quantum_ns,
            } => Feed::Mac80211(Mac80211 {
                stations: (0..peers)
                    .map(|_| StationQueue {
                        queue: Queue::new(qdisc, NOMINAL_RATE_BPS, MTU_BYTES, seed),
                        pending_ns: 0,
                        deficit_ns: 0,
                        rate: (26, 4_000),
                        active: false,
                    })
                    .collect(),
                active: VecDeque::new(),
                unblocked: Unblocked::None,
                low_ns: *aql_low_ns,
                high_ns: *aql_high_ns,
                threshold_ns: *aql_threshold_ns,
                quantum_ns: (*airtime_quantum_ns).max(1) as i64,
                pending_ns: 0,
            }),
        };
        Self {
            hardware: Hardware {
                slab: Slab::default(),
                lists: vec![List::default(); peers],
                held: 0,
                held_bytes: 0,
                pushed: 0,
            },
            feed,
        }
    }

    /// Packets and bytes above the hardware and in it.
    pub(crate) fn backlog(&self) -> (u64, u64) {
        let hardware = (self.hardware.held as u64, self.hardware.held_bytes);
        let add = |(packets, bytes), more_packets: usize, more_bytes| {
            (packets + more_packets as u64, bytes + more_bytes)
        };
        match &self.feed {
            Feed::Driver { qdisc: None, .. } => hardware,
            Feed::Driver {
                qdisc: Some(queue), ..
            } => add(hardware, queue.packets(), queue.bytes()),
            Feed::Mac80211(mac) => mac.stations.iter().fold(hardware, |sum, station| {
                add(sum, station.queue.packets(), station.queue.bytes())
            }),
        }
    }

    /// Packets marked so far.
    pub(crate) fn marked(&self) -> u64 {
        match &self.feed {
            Feed::Driver { qdisc, .. } => qdisc
                .as_ref()
                .map_or(0, |queue| queue.counters().marked_packets),
            Feed::Mac80211(mac) => mac
                .stations
                .iter()
                .map(|station| station.queue.counters().marked_packets)
                .sum(),
        }
    }

    /// A frame arrives from the stack.
    pub(crate) fn offer(
        &mut self,
        now_ns: u64,
        peer: usize,
        frame: Frame<P>,
        dropped: &mut Vec<Frame<P>>,
    ) {
        match &mut self.feed {
            Feed::Driver {
                limit,
                qdisc,
                refused,
            } => {
                if let Some(queue) = qdisc {
                    let peer = peer as u32;
                    queue.enqueue(now_ns, Addressed { peer, frame }, refused);
                    dropped.extend(refused.drain(..).map(|addressed| addressed.frame));
                } else if self.hardware.held < *limit {
                    self.hardware.push(peer, &frame, 0);
                } else {
                    dropped.push(frame);
                }
            }
            Feed::Mac80211(mac) => {
                let station = &mut mac.stations[peer];
                station.queue.enqueue(now_ns, frame, dropped);
                if !station.active && station.queue.packets() > 0 {
                    station.active = true;
                    mac.active.push_back(peer as u32);
                    mac.unblock(peer);
                }
            }
        }
        self.refill(now_ns, dropped);
    }

    /// The hardware's packets for one peer.
    pub(crate) fn supply(&mut self, peer: usize) -> PeerSupply<'_, P> {
        PeerSupply {
            slab: &mut self.hardware.slab,
            list: &mut self.hardware.lists[peer],
        }
    }

    /// The order of the oldest packet that the hardware has for a peer and has not yet sent.
    pub(crate) fn order(&self, peer: usize) -> Option<u64> {
        let list = &self.hardware.lists[peer];
        self.hardware.slab.front(list).map(|handed| handed.order)
    }

    /// A packet left the hardware, received or given up.
    pub(crate) fn completed(&mut self, peer: usize, handed: &Handed<Frame<P>>) {
        self.hardware.held -= 1;
        self.hardware.held_bytes -= u64::from(handed.packet.wire_bytes());
        if let Feed::Mac80211(mac) = &mut self.feed {
            mac.completed(peer, handed.airtime_ns.into());
        }
    }

    /// Airtime was used by frames from or to a station, at a rate in bits a symbol.
    pub(crate) fn charge(&mut self, peer: usize, used_ns: u64, rate: (u64, u64)) {
        if let Feed::Mac80211(mac) = &mut self.feed {
            let station = &mut mac.stations[peer];
            station.deficit_ns -= used_ns as i64;
            station.rate = rate;
        }
    }

    /// Moves packets to the hardware, as the limits allow.
    pub(crate) fn refill(&mut self, now_ns: u64, dropped: &mut Vec<Frame<P>>) {
        let hardware = &mut self.hardware;
        match &mut self.feed {
            Feed::Driver { qdisc: None, .. } => {}
            Feed::Driver {
                limit,
                qdisc: Some(queue),
                refused,
            } => {
                while hardware.held < *limit {
                    let taken = queue.dequeue(now_ns, refused);
                    dropped.extend(refused.drain(..).map(|addressed| addressed.frame));
                    let Some(Addressed { peer, frame }) = taken else {
                        break;
                    };
                    hardware.push(peer as usize, &frame, 0);
                }
            }
            Feed::Mac80211(mac) => mac.refill(now_ns, hardware, dropped),
        }
    }
}

impl<P: Packet> Mac80211<P> {
    /// A packet that took this airtime left the hardware. Above the threshold of all stations' airtime a
    /// station's own limit counts, and its own airtime alone.
    fn completed(&mut self, peer: usize, airtime_ns: u64) {
        self.pending_ns -= airtime_ns;
        self.stations[peer].pending_ns -= airtime_ns;
        match self.pending_ns < self.threshold_ns {
            true => self.unblocked = Unblocked::Any,
            false => self.unblock(peer),
        }
    }

    /// A station may be within the limits again.
    fn unblock(&mut self, peer: usize) {
        let peer = peer as u32;
        self.unblocked = match self.unblocked {
            Unblocked::None => Unblocked::One(peer),
            Unblocked::One(other) if other == peer => Unblocked::One(peer),
            Unblocked::One(_) | Unblocked::Any => Unblocked::Any,
        };
    }

    /// ieee80211_next_txq(): round robin by deficits of airtime, among those whose frames in the hardware
    /// are below the limits.
    fn refill(&mut self, now_ns: u64, hardware: &mut Hardware<P>, dropped: &mut Vec<Frame<P>>) {
        match self.unblocked {
            Unblocked::None => {}
            Unblocked::One(peer) => self.refill_one(peer as usize, now_ns, hardware, dropped),
            Unblocked::Any => self.refill_all(now_ns, hardware, dropped),
        }
        self.unblocked = Unblocked::None;
    }

    fn refill_all(&mut self, now_ns: u64, hardware: &mut Hardware<P>, dropped: &mut Vec<Frame<P>>) {
        let mut blocked = 0;
        while blocked < self.active.len() {
            let peer = self.active[0] as usize;
            if !self.is_within_limits(peer) {
                self.active.rotate_left(1);
                blocked += 1;
                continue;
            }
            if self.stations[peer].deficit_ns < 0 {
                self.stations[peer].deficit_ns += self.quantum_ns;
                self.active.rotate_left(1);
                // In another round it would still be blocked.
                blocked = 0;
                continue;
            }
            if !self.hand_down(peer, now_ns, hardware, dropped) {
                self.active.pop_front();
            }
        }
    }

    /// As [`Self::refill_all`] while all others are blocked: the order stays, except that a station that
    /// waited for its deficit has its turn last.
    fn refill_one(
        &mut self,
        peer: usize,
        now_ns: u64,
        hardware: &mut Hardware<P>,
        dropped: &mut Vec<Frame<P>>,
    ) {
        let mut waited = false;
        while self.stations[peer].active && self.is_within_limits(peer) {
            if self.stations[peer].deficit_ns < 0 {
                self.stations[peer].deficit_ns += self.quantum_ns;
                waited = true;
            } else if !self.hand_down(peer, now_ns, hardware, dropped) {
                break;
            }
        }
        let is_active = self.stations[peer].active;
        if is_active && !waited {
            return;
        }
        let mut active = self.active.iter();
        let Some(mut place) = active.position(|&other| other == peer as u32) else {
            return;
        };
        if is_active {
            place += 1;
        } else {
            self.active.remove(place);
        }
        if waited {
            self.active.rotate_left(place);
        }
    }

    /// ieee80211_txq_airtime_check().
    fn is_within_limits(&self, peer: usize) -> bool {
        let pending_ns = self.stations[peer].pending_ns;
        pending_ns < self.low_ns
            || (self.pending_ns < self.threshold_ns && pending_ns < self.high_ns)
    }

    /// Moves a station's next packet to the hardware. If there is none the station is no longer active, and
    /// the result is false.
    fn hand_down(
        &mut self,
        peer: usize,
        now_ns: u64,
        hardware: &mut Hardware<P>,
        dropped: &mut Vec<Frame<P>>,
    ) -> bool {
        let station = &mut self.stations[peer];
        station.active = station.queue.choose(now_ns, dropped);
        // Frames arrive one by one, so that none is followed by others of its burst.
        let chosen = station.queue.front().filter(|_| station.active);
        let Some((frame, _)) = chosen else {
            return false;
        };
        let (bits, symbol_ns) = station.rate;
        let airtime_ns = u64::from(mpdu_bytes(frame)) * 8 * symbol_ns / bits + SHARED_OVERHEAD_NS;
        hardware.push(peer, frame, airtime_ns as u32);
        station.queue.leave();
        station.pending_ns += airtime_ns;
        self.pending_ns += airtime_ns;
        true
    }
}

/// The hardware's packets for one peer.
pub(crate) struct PeerSupply<'a, P> {
    slab: &'a mut Slab<Handed<Frame<P>>>,
    list: &'a mut List,
}

impl<P: Packet> Supply<Frame<P>> for PeerSupply<'_, P> {
    fn front(&self) -> Option<&Handed<Frame<P>>> {
        self.slab.front(self.list)
    }

    fn drop_front(&mut self) {
        self.slab.drop_front(self.list);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{mac80211, Small};
    use super::*;

    const PEERS: usize = 5;

    /// Numbers in a fixed order that looks random.
    fn random() -> impl FnMut(u64) -> u64 {
        let mut state = 88_172_645_463_325_252_u64;
        move |end| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % end
        }
    }

    /// What the hardware got, in order, with what is above and in it, after each of several thousand offers,
    /// completions and charges. `whole_rounds`: each refill asks all active stations.
    fn handed_down(whole_rounds: bool) -> Vec<(u64, usize, u64)> {
        let mut queue = CategoryQueue::<Small>::new(&mac80211(), PEERS, 1);
        let (mut below, mut dropped) = (random(), Vec::new());
        let mut history = Vec::new();
        for now_ns in (0..20_000).map(|step| step * 50_000) {
            let peer = below(PEERS as u64) as usize;
            if let (true, Feed::Mac80211(mac)) = (whole_rounds, &mut queue.feed) {
                mac.unblocked = Unblocked::Any;
            }
            match below(5) {
                0 | 1 => {
                    let packet = Small(1514);
                    let frame = Frame::Packet { packet, up: false };
                    queue.offer(now_ns, peer, frame, &mut dropped);
                }
                2 => queue.charge(peer, below(3_000_000), (26, 4_000)),
                _ => {
                    for _ in 0..below(4) {
                        if let Some(&handed) = queue.supply(peer).front() {
                            queue.supply(peer).drop_front();
                            history.push((handed.order, peer, queue.backlog().0));
                            queue.completed(peer, &handed);
                        }
                    }
                    queue.refill(now_ns, &mut dropped);
                }
            }
        }
        history
    }

    #[test]
    fn a_refill_that_asks_only_the_unblocked_station_is_that_of_a_whole_round() {
        let history = handed_down(false);
        assert!(history.len() > 4_000, "{}", history.len());
        assert_eq!(history, handed_down(true));
    }
}
