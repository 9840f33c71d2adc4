//! A channel as its caller drives it: packets in, time forward, packets out. One thing happens at a time,
//! so it is one state machine: contention, then an exchange, then contention.

use super::exchange::{Exchange, ACCESS_POINT};
use super::frame::Frame;
use super::phy::DETECTION_NS;
use super::state::{Channel, Delivered, Step};
use crate::packet::Packet;

impl<P: Packet> Channel<P> {
    /// When [`Channel::advance`] must be called next; `u64::MAX`: not before a packet is sent.
    pub fn next_ns(&self) -> u64 {
        self.next.0.min(self.next_source_ns)
    }

    /// Hands a packet to a station's stack (`up`) or to the access point's for that station. It
    /// takes effect at `now_ns`, which must not be before any time seen so far, nor after
    /// [`Channel::next_ns`]. Packets that the queues drop for it are added to `dropped`.
    pub fn send(
        &mut self,
        now_ns: u64,
        station: usize,
        up: bool,
        category: usize,
        packet: P,
        dropped: &mut Vec<P>,
    ) {
        let (node, peer) = if up {
            (station + 1, 0)
        } else {
            (ACCESS_POINT, station)
        };
        self.counts[usize::from(!up)].offered_packets += 1;
        self.offer(now_ns, node, category, peer, Frame::Packet { packet, up });
        self.hand_out(dropped);
    }

    /// Does all that is due by `now_ns`. Packets that arrive are added to `delivered`, in order of time; those
    /// that queues and retry limits drop, to `dropped`.
    pub fn advance(
        &mut self,
        now_ns: u64,
        delivered: &mut Vec<Delivered<P>>,
        dropped: &mut Vec<P>,
    ) {
        loop {
            let at_ns = self.next_ns();
            if at_ns > now_ns || at_ns == u64::MAX {
                break;
            }
            if self.next_source_ns <= self.next.0 {
                self.feed(at_ns);
            } else {
                match self.next.1 {
                    Step::Access => self.access(at_ns),
                    Step::PassOn(exchange) => self.pass_on(at_ns, exchange),
                    Step::Sent(exchange) => self.sent(exchange),
                    Step::Continue(exchange) => {
                        let Exchange { node, category, .. } = exchange;
                        let next = self.frame(at_ns, node, category, exchange.txop_ns);
                        self.begin(next);
                    }
                }
            }
            self.hand_out(dropped);
        }
        match delivered.is_empty() {
            true => std::mem::swap(delivered, &mut self.arrived),
            false => delivered.append(&mut self.arrived),
        }
    }

    /// Starts all frames that are due. Nodes that are due within the detection time do not notice each other.
    fn access(&mut self, now_ns: u64) {
        let horizon_ns = now_ns + DETECTION_NS;
        let beacon = self.beacon_start_ns() <= horizon_ns;
        self.starters.clear();
        for (index, node) in self.nodes.iter_mut().enumerate() {
            let mut sends = beacon && index == ACCESS_POINT;
            for (number, category) in node.categories.iter_mut().enumerate().rev() {
                let edcaf = &mut category.edcaf;
                match edcaf.access_ns(node.idle_from_ns) {
                    Some(at_ns) if at_ns <= horizon_ns && !sends => {
                        sends = true;
                        self.starters.push((index, number, at_ns));
                    }
                    // The higher category of the same node wins (10.23.2.4, internal collision).
                    Some(at_ns) if at_ns <= horizon_ns && !beacon => {
                        edcaf.failed(&mut self.backoff);
                    }
                    _ => edcaf.freeze(node.idle_from_ns, horizon_ns),
                }
            }
        }
        if let (&[(node, category, at_ns)], false) = (&self.starters[..], beacon) {
            let exchange = self.frame(at_ns, node, category, at_ns);
            self.begin(exchange);
            return;
        }
        self.collide(now_ns, beacon);
        self.contend();
    }

    /// Several frames at once, or a beacon. Nothing is received but a single beacon.
    fn collide(&mut self, now_ns: u64, beacon: bool) {
        let mut end_ns = now_ns;
        if beacon {
            end_ns = now_ns + self.phy.beacon_ns;
            self.beacon_due_ns += self.beacon_interval_ns;
        }
        self.colliding.clear();
        for index in 0..self.starters.len() {
            let (node, category, at_ns) = self.starters[index];
            let exchange = self.frame(at_ns, node, category, at_ns);
            end_ns = end_ns.max(exchange.exposed_ns);
            self.colliding.push(exchange);
        }
        let heard = self.rules.eifs && !self.colliding.is_empty();
        let extra_ns = if heard { self.phy.eifs_extra_ns() } else { 0 };
        self.idle_from(end_ns + extra_ns);
        for index in 0..self.colliding.len() {
            let exchange = self.colliding[index];
            let waited_ns = exchange.exposed_ns + self.phy.timeout_ns;
            self.nodes[exchange.node].idle_from_ns = end_ns.max(waited_ns);
            self.unanswered(end_ns, &exchange);
        }
    }
}
