//! What packets cost the hosts, where the plan says so: each host has one processor, and packets wait while
//! it is busy. Must never know what a packet is for.

use std::collections::VecDeque;

use fullpipe_net::Direction;
use fullpipe_plan::{HostWork, Plan};

use crate::agenda::{Agenda, Event};
use crate::packet::{Body, InFlight};

/// The processors of all hosts.
pub(crate) struct Processors {
    costs: HostWork,
    /// By `IpHeader::host_at_end()`.
    hosts: Vec<Processor>,
}

#[derive(Default)]
struct Processor {
    /// Received packets; the first is being processed.
    received: VecDeque<InFlight>,
    /// ACKs that are being made, and when each is done.
    acks: VecDeque<(u64, InFlight)>,
    free_ns: u64,
}

impl Processors {
    pub(super) fn new(plan: &Plan) -> Option<Self> {
        Some(Self {
            costs: plan.host.work.clone()?,
            hosts: Vec::new(),
        })
    }

    /// What a received packet costs; `None`: it bypasses the queue, as it is not TCP's.
    fn cost_ns(&self, body: &Body) -> Option<u64> {
        match body {
            Body::Data(_) => Some(self.costs.packet_ns),
            Body::Ack(_) => Some(self.costs.ack_ns),
            Body::Handshake(_) => Some(self.costs.handshake_ns).filter(|&cost_ns| cost_ns > 0),
            _ => None,
        }
    }

    fn host(&mut self, index: usize) -> &mut Processor {
        if index >= self.hosts.len() {
            self.hosts.resize_with(index + 1, Processor::default);
        }
        &mut self.hosts[index]
    }

    /// A packet reaches the host at its end. False if it is delivered at once.
    pub(crate) fn receive(
        &mut self,
        agenda: &mut Agenda,
        direction: Direction,
        packet: &InFlight,
    ) -> bool {
        let Some(cost_ns) = self.cost_ns(&packet.body) else {
            return false;
        };
        let index = packet.header.host_at_end(direction);
        let host = self.host(index);
        host.received.push_back(*packet);
        if host.received.len() == 1 {
            let done_ns = host.work(agenda.now_ns(), cost_ns);
            agenda.schedule(done_ns, Event::Processed(index as u32));
        }
        true
    }

    /// The packet that a host is done with. It stays at the head until [`Self::finish`], as what it causes
    /// may reach the same host.
    pub(crate) fn processed(&mut self, index: usize) -> Option<InFlight> {
        self.host(index).received.front().copied()
    }

    /// Begins with the next packet.
    pub(crate) fn finish(&mut self, agenda: &mut Agenda, index: usize) {
        self.host(index).received.pop_front();
        if let Some(next) = self.processed(index) {
            let cost_ns = self.cost_ns(&next.body).unwrap_or(0);
            let done_ns = self.host(index).work(agenda.now_ns(), cost_ns);
            agenda.schedule(done_ns, Event::Processed(index as u32));
        }
    }

    /// A host makes a burst; returns when it is done.
    pub(super) fn make_burst(&mut self, now_ns: u64, index: usize, packets: u32) -> u64 {
        let cost_ns = self.costs.send_ns * u64::from(packets);
        self.host(index).work(now_ns, cost_ns)
    }

    /// A host makes an ACK; returns when it is done.
    pub(super) fn make_ack(&mut self, now_ns: u64, index: usize) -> u64 {
        let cost_ns = self.costs.ack_ns;
        self.host(index).work(now_ns, cost_ns)
    }

    /// Whether a host has ACKs that have not left: they are ahead of one that is made now.
    pub(super) fn holds_acks(&self, index: usize) -> bool {
        self.hosts
            .get(index)
            .is_some_and(|host| !host.acks.is_empty())
    }

    /// Keeps an ACK until it is made.
    pub(super) fn hold_ack(
        &mut self,
        agenda: &mut Agenda,
        made_ns: u64,
        index: usize,
        ack: InFlight,
    ) {
        let acks = &mut self.host(index).acks;
        acks.push_back((made_ns, ack));
        if acks.len() == 1 {
            agenda.schedule(made_ns, Event::AckMade(index as u32));
        }
    }

    /// The ACK that a host has made.
    pub(crate) fn ack_made(&mut self, agenda: &mut Agenda, index: usize) -> Option<InFlight> {
        let acks = &mut self.host(index).acks;
        let (_, ack) = acks.pop_front()?;
        if let Some(&(made_ns, _)) = acks.front() {
            agenda.schedule(made_ns, Event::AckMade(index as u32));
        }
        Some(ack)
    }
}

impl Processor {
    /// Adds work behind all that is pending; returns when it is done.
    fn work(&mut self, now_ns: u64, cost_ns: u64) -> u64 {
        self.free_ns = self.free_ns.max(now_ns) + cost_ns;
        self.free_ns
    }
}
