//! The state of a channel: its nodes with their queues, its sources, and when a node may send next.

use super::errors::ErrorTable;
use super::exchange::{Exchange, ACCESS_POINT};
use super::frame::Frame;
use super::minstrel::RateControl;
use super::params::{Wifi, WifiRate, WifiRules};
use super::phy::Phy;
use super::radio::Radio;
use super::sources::Source;
use super::station::{Node, Totals};
use crate::packet::Packet;
use crate::queue::Counters;
use crate::rng::{derive_seed, purpose, Rng};

/// A packet that arrived over the channel.
#[derive(Clone, Copy, Debug)]
pub struct Delivered<P> {
    /// Index of the station in the plan.
    pub station: usize,
    /// From the station to the access point.
    pub up: bool,
    /// The packet.
    pub packet: P,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// A node may send, or a beacon is due.
    Access,
    /// MPDUs of the frame in the air have ended, whose packets are delivered at once.
    PassOn(Exchange),
    /// The frame of the exchange has been sent.
    Sent(Exchange),
    /// The holder of a TXOP sends its next frame.
    Continue(Exchange),
}

/// A channel with an access point and its stations.
#[derive(Debug)]
pub struct Channel<P> {
    pub(super) phy: Phy,
    pub(super) rules: WifiRules,
    pub(super) retry_limit: u32,
    pub(super) block_ack_retry_limit: Option<u32>,
    pub(super) rts_threshold_bytes: u64,
    pub(super) nodes: Vec<Node<P>>,
    pub(super) radios: Vec<Radio>,
    pub(super) errors: ErrorTable,
    pub(super) sources: Vec<Source>,
    pub(super) beacon_interval_ns: u64,
    pub(super) beacon_due_ns: u64,
    pub(super) next: (u64, Step),
    pub(super) next_source_ns: u64,
    pub(super) backoff: Rng,
    pub(super) loss: Rng,
    pub(super) starters: Vec<(usize, usize, u64)>,
    pub(super) colliding: Vec<Exchange>,
    pub(super) refused: Vec<Frame<P>>,
    pub(super) arrived: Vec<Delivered<P>>,
    /// Packets of the scenario that went up, and down.
    pub(super) counts: [Counters; 2],
}

impl<P: Packet> Channel<P> {
    /// A channel at time 0. The same plan and seed give the same channel. The error names a key.
    pub fn new(wifi: &Wifi, seed: u64) -> Result<Self, String> {
        let phy = Phy::new(wifi)?;
        if wifi.stations.is_empty() {
            return Err("stations: there must be at least one".into());
        }
        for access in &wifi.access {
            if access.cw_min > access.cw_max || access.cw_max > 32_767 || access.aifsn < 2 {
                return Err("access: cw_min <= cw_max <= 32767 and aifsn >= 2 must hold".into());
            }
        }
        let count = wifi.stations.len();
        let mut nodes = Vec::with_capacity(count + 1);
        nodes.push(Node::new(wifi, &phy, &wifi.queues, count, seed, 0));
        let mut radios = Vec::with_capacity(count);
        let mut sources = Vec::new();
        for (index, station) in wifi.stations.iter().enumerate() {
            let node = Node::new(wifi, &phy, &station.queues, 1, seed, index as u32 + 1);
            nodes.push(node);
            let rate = match station.rate {
                WifiRate::Fixed { mcs } => RateControl::Fixed(phy.mode(mcs).ok_or_else(|| {
                    format!(
                        "mcs: {mcs} does not exist at {} MHz with {} streams",
                        wifi.width_mhz, wifi.streams
                    )
                })?),
                WifiRate::Minstrel => RateControl::minstrel(&phy),
            };
            radios.push(Radio::new(station, rate)?);
            for background in &station.background {
                sources.push(Source::new(background, index)?);
            }
        }
        let mut channel = Self {
            phy,
            rules: wifi.rules,
            retry_limit: wifi.retry_limit.max(1),
            block_ack_retry_limit: wifi.block_ack_retry_limit,
            rts_threshold_bytes: wifi.rts_threshold_bytes.map_or(u64::MAX, u64::from),
            nodes,
            radios,
            errors: ErrorTable::new(wifi.streams),
            sources,
            beacon_interval_ns: wifi.beacon_interval_ns,
            beacon_due_ns: match wifi.beacon_interval_ns {
                0 => u64::MAX,
                interval_ns => interval_ns,
            },
            next: (u64::MAX, Step::Access),
            next_source_ns: 0,
            backoff: Rng::new(derive_seed(seed, purpose::WIFI_BACKOFF, 0)),
            loss: Rng::new(derive_seed(seed, purpose::WIFI_LOSS, 0)),
            starters: Vec::new(),
            colliding: Vec::new(),
            refused: Vec::new(),
            arrived: Vec::new(),
            counts: [Counters::default(); 2],
        };
        channel.contend();
        Ok(channel)
    }

    /// Totals of one category from (`up`) or to a station.
    pub fn totals(&self, station: usize, up: bool, category: usize) -> Totals {
        let (node, peer) = if up {
            (station + 1, 0)
        } else {
            (ACCESS_POINT, station)
        };
        self.nodes[node].categories[category].pairs[peer].totals
    }

    /// Packets and bytes that wait to go up, or down, with those in the hardware and in the air, and with
    /// background traffic.
    pub fn backlog(&self, up: bool) -> (u64, u64) {
        let categories = self.senders(up).iter().flat_map(|node| &node.categories);
        categories.fold((0, 0), |(packets, bytes), category| {
            let (more_packets, more_bytes) = category.queue.backlog();
            (packets + more_packets, bytes + more_bytes)
        })
    }

    /// Totals of the scenario's packets that went up, or down. Marks are those of all packets.
    pub fn counters(&self, up: bool) -> Counters {
        let categories = self.senders(up).iter().flat_map(|node| &node.categories);
        Counters {
            marked_packets: categories.map(|category| category.queue.marked()).sum(),
            ..self.counts[usize::from(!up)]
        }
    }

    fn senders(&self, up: bool) -> &[Node<P>] {
        if up {
            &self.nodes[ACCESS_POINT + 1..]
        } else {
            &self.nodes[..=ACCESS_POINT]
        }
    }

    /// Puts a frame into a node's queues and lets it contend.
    pub(super) fn offer(
        &mut self,
        now_ns: u64,
        node: usize,
        category: usize,
        peer: usize,
        frame: Frame<P>,
    ) {
        let idle_from_ns = self.nodes[node].idle_from_ns;
        let contending = matches!(self.next.1, Step::Access);
        let target = &mut self.nodes[node].categories[category];
        target.queue.offer(now_ns, peer, frame, &mut self.refused);
        if target.edcaf.wants_from_ns.is_some() || target.next_peer().is_none() {
            return;
        }
        let busy = !contending || now_ns < idle_from_ns;
        target.edcaf.want(now_ns, busy, &mut self.backoff);
        if contending {
            let at_ns = target.edcaf.access_ns(idle_from_ns).unwrap_or(u64::MAX);
            self.next.0 = self.next.0.min(at_ns);
        }
    }

    /// Queues the frames of sources that are due.
    pub(super) fn feed(&mut self, now_ns: u64) {
        for index in 0..self.sources.len() {
            let source = &mut self.sources[index];
            let (node, category, peer) = (source.node, source.category, source.peer);
            let frame = Frame::Background {
                source: index as u32,
                wire_bytes: source.wire_bytes,
            };
            for _ in 0..source.due(now_ns) {
                self.offer(now_ns, node, category, peer, frame);
            }
        }
        self.plan_sources();
    }

    fn plan_sources(&mut self) {
        let times = self.sources.iter().filter_map(Source::next_ns);
        self.next_source_ns = times.min().unwrap_or(u64::MAX);
    }

    /// Hands dropped packets to the caller, and tells sources of their dropped frames.
    pub(super) fn hand_out(&mut self, dropped: &mut Vec<P>) {
        for frame in self.refused.drain(..) {
            match frame {
                Frame::Packet { packet, up } => {
                    self.counts[usize::from(!up)].dropped_packets += 1;
                    dropped.push(packet);
                }
                Frame::Background { source, .. } => self.sources[source as usize].done(),
            }
        }
    }

    /// Plans the next access to the medium.
    pub(super) fn contend(&mut self) {
        let mut first_ns = self.beacon_start_ns();
        for node in &self.nodes {
            for category in &node.categories {
                if let Some(at_ns) = category.edcaf.access_ns(node.idle_from_ns) {
                    first_ns = first_ns.min(at_ns);
                }
            }
        }
        self.next = (first_ns, Step::Access);
    }

    /// A beacon is sent PIFS after the medium is first idle past its due time.
    pub(super) fn beacon_start_ns(&self) -> u64 {
        let pifs_ns = self.phy.sifs_ns + self.phy.slot_ns;
        let idle_ns = self.nodes[ACCESS_POINT].idle_from_ns;
        self.beacon_due_ns.max(idle_ns.saturating_add(pifs_ns))
    }

    pub(super) fn idle_from(&mut self, at_ns: u64) {
        for node in &mut self.nodes {
            node.idle_from_ns = at_ns;
        }
    }
}
