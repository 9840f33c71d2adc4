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
    fn push(&mut self, peer: usize, packet: Frame<P>, airtime_ns: u32) {
        self.pushed += 1;
        self.held += 1;
        self.held_bytes += u64::from(packet.wire_bytes());
        let order = self.pushed;
        let handed = Handed {
            packet,
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

#[derive(Debug)]
struct Mac80211<P> {
    stations: Vec<StationQueue<P>>,
    active: VecDeque<u32>,
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
                    self.hardware.push(peer, frame, 0);
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
            let airtime_ns = u64::from(handed.airtime_ns);
            mac.pending_ns -= airtime_ns;
            mac.stations[peer].pending_ns -= airtime_ns;
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
                    hardware.push(peer as usize, frame, 0);
                }
            }
            Feed::Mac80211(mac) => mac.refill(now_ns, hardware, dropped),
        }
    }
}

impl<P: Packet> Mac80211<P> {
    /// ieee80211_next_txq() and ieee80211_txq_airtime_check(): round robin by deficits of airtime,
    /// among those whose frames in the hardware are below the limits.
    fn refill(&mut self, now_ns: u64, hardware: &mut Hardware<P>, dropped: &mut Vec<Frame<P>>) {
        let mut blocked = 0;
        while blocked < self.active.len() {
            let peer = self.active[0] as usize;
            let station = &mut self.stations[peer];
            let within = station.pending_ns < self.low_ns
                || (self.pending_ns < self.threshold_ns && station.pending_ns < self.high_ns);
            if !within {
                self.active.rotate_left(1);
                blocked += 1;
                continue;
            }
            if station.deficit_ns < 0 {
                station.deficit_ns += self.quantum_ns;
                self.active.rotate_left(1);
                // In another round it would still be blocked.
                blocked = 0;
                continue;
            }
            let Some(frame) = station.queue.dequeue(now_ns, dropped) else {
                station.active = false;
                self.active.pop_front();
                continue;
            };
            let (bits, symbol_ns) = station.rate;
            let airtime_ns =
                u64::from(mpdu_bytes(&frame)) * 8 * symbol_ns / bits + SHARED_OVERHEAD_NS;
            station.pending_ns += airtime_ns;
            self.pending_ns += airtime_ns;
            hardware.push(peer, frame, airtime_ns as u32);
        }
    }
}

/// The hardware's packets for one peer.
pub(crate) struct PeerSupply<'a, P> {
    slab: &'a mut Slab<Handed<Frame<P>>>,
    list: &'a mut List,
}

impl<P: Packet> Supply<Frame<P>> for PeerSupply<'_, P> {
    fn front(&self) -> Option<&Frame<P>> {
        self.slab.front(self.list).map(|handed| &handed.packet)
    }

    fn take(&mut self) -> Option<Handed<Frame<P>>> {
        self.slab.pop_front(self.list)
    }
}
