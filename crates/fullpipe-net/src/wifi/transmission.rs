//! The exchange of a node that may send: its frame, the answer, and the fate of its packets.

use super::ampdu::{Fate, Handed};
use super::exchange::{station_of, Exchange, Kind, ACCESS_POINT};
use super::frame::Frame;
use super::phy::{Mode, MAX_PPDU_NS};
use super::state::{Channel, Delivered, Step};
use crate::packet::Packet;

impl<P: Packet> Channel<P> {
    /// The next frame of a category at a node that may send. The category has a packet.
    pub(super) fn frame(
        &mut self,
        at_ns: u64,
        node: usize,
        number: usize,
        txop_ns: u64,
    ) -> Exchange {
        let category = &mut self.nodes[node].categories[number];
        let peer = category.next_peer().unwrap_or(0);
        let (station, direction) = station_of(node, peer);
        let mode = self.radios[station].rates[direction].choose(at_ns);
        let phy = &self.phy;
        let mut exchange = Exchange {
            node,
            category: number,
            peer,
            kind: Kind::BlockAckRequest,
            starts_ns: at_ns,
            exposed_ns: 0,
            ends_ns: 0,
            txop_ns,
            received: None,
        };
        if category.pairs[peer].request_block_ack {
            exchange.ends_ns = at_ns + phy.block_ack_request_ns(mode);
            exchange.exposed_ns = exchange.ends_ns;
            return exchange;
        }
        let mut limit_ns = MAX_PPDU_NS;
        if category.txop_ns > 0 {
            let left_ns = (txop_ns + category.txop_ns).saturating_sub(at_ns);
            let answer_ns = phy.sifs_ns + phy.block_ack_ns(mode);
            limit_ns = limit_ns.min(left_ns.saturating_sub(answer_ns));
        }
        let most_bytes = phy.most_bytes(mode, limit_ns);
        let psdu = category.load(peer, most_bytes, phy.always_ampdu);
        let air_ns = phy.ppdu_ns(mode, psdu.bytes);
        let totals = &mut category.pairs[peer].totals;
        let mut data_ns = at_ns;
        if psdu.bytes > self.rts_threshold_bytes {
            exchange.exposed_ns = at_ns + phy.rts_ns(mode);
            data_ns = exchange.exposed_ns + 2 * phy.sifs_ns + phy.cts_ns(mode);
        }
        totals.ppdus += 1;
        totals.mpdus += u64::from(psdu.mpdus);
        totals.retried_mpdus += u64::from(psdu.retried);
        exchange.ends_ns = data_ns + air_ns;
        if data_ns == at_ns {
            exchange.exposed_ns = exchange.ends_ns;
        }
        exchange.kind = Kind::Data {
            mode,
            mpdus: psdu.mpdus,
            bytes: psdu.bytes,
        };
        exchange
    }

    /// Starts a frame that does not collide.
    pub(super) fn begin(&mut self, mut exchange: Exchange) {
        // No node contends before the exchange is over.
        self.next = (exchange.ends_ns, Step::Sent(exchange));
        if let Kind::Data { mode, mpdus, .. } = exchange.kind {
            if self.rules.pass_on_each_mpdu && mpdus > 1 {
                exchange.received = Some(self.receive(exchange.starts_ns, &exchange, mode));
                self.pass_on(exchange.starts_ns, exchange);
            }
        }
    }

    /// Delivers the packets of an A-MPDU whose MPDUs have ended, up to the first missing one.
    pub(super) fn pass_on(&mut self, now_ns: u64, exchange: Exchange) {
        self.next = (exchange.ends_ns, Step::Sent(exchange));
        let Kind::Data { mode, bytes, .. } = exchange.kind else {
            return;
        };
        let (station, _) = station_of(exchange.node, exchange.peer);
        let category = &mut self.nodes[exchange.node].categories[exchange.category];
        let window = &mut category.pairs[exchange.peer].window;
        while let Some(end_bytes) = window.next_end_bytes() {
            let after_ns = self.phy.payload_ns(mode, bytes.saturating_sub(end_bytes));
            let at_ns = exchange.ends_ns.saturating_sub(after_ns);
            if at_ns > now_ns {
                self.next = (at_ns, Step::PassOn(exchange));
                return;
            }
            if let Some(Frame::Packet { packet, up }) = window.pass_on() {
                self.arrived.push(Delivered {
                    station,
                    up,
                    packet,
                });
            }
        }
    }

    /// The frame of an exchange has been sent: its packets arrive and are answered.
    pub(super) fn sent(&mut self, exchange: Exchange) {
        let now_ns = exchange.ends_ns;
        let Exchange {
            node,
            category,
            peer,
            ..
        } = exchange;
        let (station, direction) = station_of(node, peer);
        let (answer_ns, answered) = match exchange.kind {
            Kind::BlockAckRequest => {
                let mode = self.radios[station].rates[direction].current();
                let pair = &mut self.nodes[node].categories[category].pairs[peer];
                pair.request_block_ack = false;
                (self.phy.block_ack_ns(mode), true)
            }
            Kind::Data { mode, mpdus, .. } => {
                let received = match exchange.received {
                    Some(received) => received,
                    None => self.receive(now_ns, &exchange, mode),
                };
                self.radios[station].rates[direction].report(mode, mpdus, received);
                let answer_ns = if mpdus == 1 {
                    self.phy.ack_ns(mode)
                } else {
                    self.phy.block_ack_ns(mode)
                };
                (answer_ns, received > 0)
            }
        };
        if !answered {
            self.idle_from(now_ns);
            self.nodes[node].idle_from_ns = now_ns + self.phy.timeout_ns;
            self.unanswered(now_ns, &exchange);
            self.contend();
            return;
        }
        let end_ns = now_ns + self.phy.sifs_ns + answer_ns;
        if let Kind::Data { mode, .. } = exchange.kind {
            self.nodes[node].categories[category].pairs[peer].attempts = 0;
            self.account(&exchange, mode, end_ns);
            self.release(now_ns, &exchange, false);
        }
        let next_ns = end_ns + self.phy.sifs_ns;
        if self.may_go_on(&exchange, next_ns) {
            self.next = (next_ns, Step::Continue(exchange));
            return;
        }
        self.nodes[node].categories[category]
            .edcaf
            .succeeded(&mut self.backoff);
        self.end_txop(&exchange, end_ns);
        self.contend();
    }

    /// Draws which MPDUs of a frame are received. Returns how many.
    fn receive(&mut self, now_ns: u64, exchange: &Exchange, mode: Mode) -> u32 {
        let (station, _) = station_of(exchange.node, exchange.peer);
        let radio = &mut self.radios[station];
        let snr_mdb = radio.snr_mdb(now_ns);
        let (base, errors, loss) = (radio.error, &mut self.errors, &mut self.loss);
        let window = &mut self.nodes[exchange.node].categories[exchange.category].pairs
            [exchange.peer]
            .window;
        if snr_mdb.is_none() && base == 0 {
            return window.receive(|_| false);
        }
        window.receive(|bytes| {
            let noise = snr_mdb.map_or(0, |mdb| errors.lost(mode.mcs, mdb, bytes));
            let lost = base + noise - ((u128::from(base) * u128::from(noise)) >> 32) as u64;
            u64::from(loss.next_u32()) < lost
        })
    }

    /// Charges the airtime of an exchange to its station at both ends.
    fn account(&mut self, exchange: &Exchange, mode: Mode, end_ns: u64) {
        let Exchange {
            node,
            category,
            peer,
            ..
        } = *exchange;
        let used_ns = end_ns - exchange.starts_ns;
        let rate = (mode.bits_per_symbol, self.phy.symbol_ns);
        let (station, _) = station_of(node, peer);
        let sender = &mut self.nodes[node].categories[category];
        sender.pairs[peer].totals.airtime_ns += used_ns;
        sender.queue.charge(peer, used_ns, rate);
        let (receiver, receiver_peer) = if node == ACCESS_POINT {
            (station + 1, 0)
        } else {
            (ACCESS_POINT, station)
        };
        let receiver = &mut self.nodes[receiver].categories[category];
        receiver.queue.charge(receiver_peer, used_ns, rate);
    }

    /// Removes finished packets from a window, and refills the queues from the sources.
    fn release(&mut self, now_ns: u64, exchange: &Exchange, give_up: bool) {
        let (station, _) = station_of(exchange.node, exchange.peer);
        let category = &mut self.nodes[exchange.node].categories[exchange.category];
        let pair = &mut category.pairs[exchange.peer];
        let (totals, queue, refused) = (&mut pair.totals, &mut category.queue, &mut self.refused);
        let (sources, arrived) = (&mut self.sources, &mut self.arrived);
        let counts = &mut self.counts;
        let done = |handed: &Handed<Frame<P>>, fate: Fate| {
            queue.completed(exchange.peer, handed);
            if fate == Fate::Lost {
                totals.lost_packets += 1;
                refused.push(handed.packet);
                return;
            }
            totals.delivered_packets += 1;
            totals.delivered_bytes += u64::from(handed.packet.wire_bytes());
            match handed.packet {
                Frame::Packet { packet, up } => {
                    let count = &mut counts[usize::from(!up)];
                    count.sent_packets += 1;
                    count.sent_bytes += u64::from(packet.wire_bytes());
                    if fate == Fate::Received {
                        arrived.push(Delivered {
                            station,
                            up,
                            packet,
                        });
                    }
                }
                Frame::Background { source, .. } => sources[source as usize].done(),
            }
        };
        if give_up {
            pair.window.give_up(self.block_ack_retry_limit, done);
        } else {
            pair.window.release(self.block_ack_retry_limit, done);
        }
        category.queue.refill(now_ns, &mut self.refused);
        if category.next_peer().is_none() {
            category.edcaf.wants_from_ns = None;
        }
        if !self.sources.is_empty() {
            self.feed(now_ns);
        }
    }

    /// No answer arrived: the contention window grows; under Normal Ack the frame may be given up.
    pub(super) fn unanswered(&mut self, now_ns: u64, exchange: &Exchange) {
        let Exchange {
            node,
            category,
            peer,
            ..
        } = *exchange;
        let (station, direction) = station_of(node, peer);
        let data_sent = exchange.exposed_ns == exchange.ends_ns;
        let target = &mut self.nodes[node].categories[category];
        let pair = &mut target.pairs[peer];
        let mut single = false;
        if let Kind::Data { mode, mpdus, .. } = exchange.kind {
            single = mpdus == 1;
            if data_sent {
                pair.window.missed();
                pair.totals.unanswered_ppdus += 1;
                self.radios[station].rates[direction].report(mode, mpdus, 0);
                pair.request_block_ack = !single && self.rules.explicit_block_ack_request;
            } else {
                pair.window.unload();
            }
        }
        pair.attempts += u32::from(single);
        let give_up = single && pair.attempts >= self.retry_limit;
        if give_up {
            pair.attempts = 0;
            target.edcaf.succeeded(&mut self.backoff);
        } else {
            target.edcaf.failed(&mut self.backoff);
        }
        if give_up || self.block_ack_retry_limit.is_some() {
            self.release(now_ns, exchange, give_up);
        }
    }

    /// Whether the holder of a TXOP has another frame that fits, with its answer, into the rest of it.
    fn may_go_on(&mut self, exchange: &Exchange, next_ns: u64) -> bool {
        let category = &mut self.nodes[exchange.node].categories[exchange.category];
        if category.txop_ns == 0 {
            return false;
        }
        let Some(peer) = category.next_peer() else {
            return false;
        };
        let (station, direction) = station_of(exchange.node, peer);
        let mode = self.radios[station].rates[direction].current();
        let bytes = category.next_bytes(peer);
        let air_ns = self.phy.ppdu_ns(mode, bytes) + self.phy.sifs_ns + self.phy.ack_ns(mode);
        next_ns + air_ns <= exchange.txop_ns + category.txop_ns
    }

    /// The medium becomes idle: at once for the two ends, for the others when their NAV ends.
    fn end_txop(&mut self, exchange: &Exchange, end_ns: u64) {
        let limit_ns = self.nodes[exchange.node].categories[exchange.category].txop_ns;
        if limit_ns == 0 || !self.rules.reserve_whole_txop {
            self.idle_from(end_ns);
            return;
        }
        let reserved_ns = exchange.txop_ns + limit_ns;
        let cf_end_ns = end_ns + self.phy.sifs_ns + self.phy.cf_end_ns();
        if cf_end_ns <= reserved_ns {
            self.idle_from(cf_end_ns);
        } else {
            self.idle_from(end_ns.max(reserved_ns));
            // A frame's Duration is not for the node that it is addressed to (10.3.2.4).
            let (station, _) = station_of(exchange.node, exchange.peer);
            for node in [ACCESS_POINT, station + 1] {
                self.nodes[node].idle_from_ns = end_ns;
            }
        }
    }
}
