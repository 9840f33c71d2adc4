//! A node of the channel, access point or station: for each access category its contention, its
//! queues and its block-ack windows.

use serde::Serialize;

use super::ampdu::{mpdu_bytes, Limits, Psdu, Supply, Window};
use super::edca::Edcaf;
use super::frame::Frame;
use super::params::{Wifi, WifiQueues};
use super::phy::Phy;
use super::queues::CategoryQueue;
use crate::packet::Packet;
use crate::rng::derive_seed;
use crate::rng::purpose;

/// Totals from one node to another in one category since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Packets handed on in order, and their bytes with Ethernet's header.
    pub delivered_packets: u64,
    /// See `delivered_packets`.
    pub delivered_bytes: u64,
    /// Packets given up.
    pub lost_packets: u64,
    /// Data PPDUs sent, and those that nothing answered.
    pub ppdus: u64,
    /// See `ppdus`.
    pub unanswered_ppdus: u64,
    /// MPDUs sent, and those of them that had been sent before.
    pub mpdus: u64,
    /// See `mpdus`.
    pub retried_mpdus: u64,
    /// Time of its exchanges on the air.
    pub airtime_ns: u64,
}

impl Totals {
    /// The difference to an earlier reading.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            delivered_packets: self.delivered_packets - earlier.delivered_packets,
            delivered_bytes: self.delivered_bytes - earlier.delivered_bytes,
            lost_packets: self.lost_packets - earlier.lost_packets,
            ppdus: self.ppdus - earlier.ppdus,
            unanswered_ppdus: self.unanswered_ppdus - earlier.unanswered_ppdus,
            mpdus: self.mpdus - earlier.mpdus,
            retried_mpdus: self.retried_mpdus - earlier.retried_mpdus,
            airtime_ns: self.airtime_ns - earlier.airtime_ns,
        }
    }
}

/// One direction between two nodes in one category.
#[derive(Debug)]
pub(crate) struct Pair<P> {
    pub(crate) window: Window<Frame<P>>,
    /// A BlockAckReq has to be answered before more data are sent.
    pub(crate) request_block_ack: bool,
    /// Failed attempts of a frame under Normal Ack.
    pub(crate) attempts: u32,
    pub(crate) totals: Totals,
}

/// One access category at one node.
#[derive(Debug)]
pub(crate) struct Category<P> {
    pub(crate) edcaf: Edcaf,
    pub(crate) queue: CategoryQueue<P>,
    pub(crate) pairs: Vec<Pair<P>>,
    pub(crate) txop_ns: u64,
    pub(crate) max_ampdu_bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Node<P> {
    /// When the medium becomes, or became, idle for this node.
    pub(crate) idle_from_ns: u64,
    pub(crate) categories: [Category<P>; 4],
}

impl<P: Packet> Node<P> {
    pub(crate) fn new(
        wifi: &Wifi,
        phy: &Phy,
        queues: &WifiQueues,
        peers: usize,
        seed: u64,
        index: u32,
    ) -> Self {
        let category = |number: usize| {
            let access = &wifi.access[number];
            let queue_seed = derive_seed(seed, purpose::WIFI_QUEUE, index * 4 + number as u32);
            Category {
                edcaf: Edcaf::new(access, phy.sifs_ns, phy.slot_ns),
                queue: CategoryQueue::new(queues, peers, queue_seed),
                pairs: (0..peers)
                    .map(|_| Pair {
                        window: Window::new(),
                        request_block_ack: false,
                        attempts: 0,
                        totals: Totals::default(),
                    })
                    .collect(),
                txop_ns: access.txop_ns,
                max_ampdu_bytes: u64::from(access.max_ampdu_bytes),
            }
        };
        Self {
            idle_from_ns: 0,
            categories: [0, 1, 2, 3].map(category),
        }
    }
}

impl<P: Packet> Category<P> {
    /// The peer whose packet has waited longest; `None`: no packet waits.
    pub(crate) fn next_peer(&self) -> Option<usize> {
        let orders = self.pairs.iter().enumerate().filter_map(|(peer, pair)| {
            let order = pair.window.order().or_else(|| self.queue.order(peer))?;
            Some((order, peer))
        });
        orders.min().map(|(_, peer)| peer)
    }

    /// Makes the next PSDU for a peer, of at most `most_bytes` if it is aggregated.
    pub(crate) fn load(&mut self, peer: usize, most_bytes: u64, always_ampdu: bool) -> Psdu {
        let limits = Limits {
            ampdu_bytes: self.max_ampdu_bytes.min(most_bytes),
            always_ampdu,
        };
        self.pairs[peer]
            .window
            .load(limits, &mut self.queue.supply(peer))
    }

    /// Bytes of the next MPDU for a peer.
    pub(crate) fn next_bytes(&mut self, peer: usize) -> u64 {
        let oldest = self.pairs[peer].window.oldest_bytes();
        let supply = self.queue.supply(peer);
        let next = || supply.front().map(|handed| mpdu_bytes(&handed.packet));
        u64::from(oldest.or_else(next).unwrap_or(0))
    }
}
