//! What packets cost the hosts at their ends, where the plan says so: each host has one processor
//! for what TCP receives and sends, and what it cannot do at once waits. Never what a packet is for.

use std::collections::VecDeque;

use fullpipe_net::Direction;
use fullpipe_plan::{HostWork, Plan};

use crate::events::Event;
use crate::packet::{Body, InFlight};
use crate::run::Simulation;

/// The processors of all hosts.
pub(crate) struct Processors {
    costs: HostWork,
    /// By `Label::end()`.
    hosts: Vec<Processor>,
}

#[derive(Default)]
struct Processor {
    /// The first is being handled.
    waiting: VecDeque<InFlight>,
    /// ACKs, and when each is made.
    making: VecDeque<(u64, InFlight)>,
    free_ns: u64,
}

impl Processors {
    pub(crate) fn new(plan: &Plan) -> Option<Self> {
        Some(Self {
            costs: plan.host.work.clone()?,
            hosts: Vec::new(),
        })
    }

    /// None: not TCP's, and never in the way of what is.
    fn cost_ns(&self, body: &Body) -> Option<u64> {
        match body {
            Body::Data(_) => Some(self.costs.packet_ns),
            Body::Ack(_) => Some(self.costs.ack_ns),
            Body::Handshake(_) => Some(self.costs.handshake_ns).filter(|&cost_ns| cost_ns > 0),
            _ => None,
        }
    }

    fn of(&mut self, index: usize) -> &mut Processor {
        if index >= self.hosts.len() {
            self.hosts.resize_with(index + 1, Processor::default);
        }
        &mut self.hosts[index]
    }
}

impl Processor {
    /// Work is done behind what is under way.
    fn take(&mut self, now_ns: u64, cost_ns: u64) -> u64 {
        self.free_ns = self.free_ns.max(now_ns) + cost_ns;
        self.free_ns
    }
}

impl Simulation<'_> {
    /// A packet reaches the host at the end of its way.
    #[inline(always)] // in most runs it is one question
    pub(crate) fn reach(&mut self, direction: Direction, packet: &InFlight) {
        match self.processors {
            None => self.deliver(direction, packet),
            Some(_) => self.queue_for_host(direction, packet),
        }
    }

    #[inline(never)]
    fn queue_for_host(&mut self, direction: Direction, packet: &InFlight) {
        let now_ns = self.now_ns;
        let Some(processors) = &mut self.processors else {
            return;
        };
        let Some(cost_ns) = processors.cost_ns(&packet.body) else {
            return self.deliver(direction, packet);
        };
        let index = packet.label.end(direction);
        let processor = processors.of(index);
        processor.waiting.push_back(*packet);
        if processor.waiting.len() == 1 {
            let done_ns = processor.take(now_ns, cost_ns);
            self.agenda.schedule(done_ns, Event::Work(index as u32));
        }
    }

    /// A host is done with a packet, and begins with the next.
    pub(crate) fn work(&mut self, index: usize) {
        let first = |processors: &mut Processors| processors.of(index).waiting.front().copied();
        let Some(packet) = self.processors.as_mut().and_then(first) else {
            return;
        };
        // It stays at the head meanwhile: what it sets off may reach this very host.
        self.deliver(Direction::of_index(index), &packet);
        let Some(processors) = &mut self.processors else {
            return;
        };
        processors.of(index).waiting.pop_front();
        if let Some(next) = first(processors) {
            let cost_ns = processors.cost_ns(&next.body).unwrap_or(0);
            let done_ns = processors.of(index).take(self.now_ns, cost_ns);
            self.agenda.schedule(done_ns, Event::Work(index as u32));
        }
    }

    /// Sending takes hosts time.
    pub(crate) fn sending_costs(&self) -> bool {
        self.plan
            .host
            .work
            .as_ref()
            .is_some_and(|work| work.send_ns > 0)
    }

    /// The host at which this way of an owner begins makes a burst, which costs it something; when it
    /// is done with all of it.
    pub(crate) fn makes_burst(&mut self, owner: usize, direction: Direction, packets: u32) -> u64 {
        let now_ns = self.now_ns;
        let index = self.labels[owner].end(direction.back());
        self.processors.as_mut().map_or(now_ns, |processors| {
            let cost_ns = processors.costs.send_ns * u64::from(packets);
            processors.of(index).take(now_ns, cost_ns)
        })
    }

    /// The host at which this way of a flow begins makes an ACK, which leaves when that is done.
    #[inline(never)] // in most runs that takes no time
    pub(crate) fn make_ack(&mut self, flow: usize, direction: Direction, mut packet: InFlight) {
        let now_ns = self.now_ns;
        let index = packet.label.end(direction.back());
        let made_ns = self.processors.as_mut().map_or(now_ns, |processors| {
            let cost_ns = processors.costs.ack_ns;
            processors.of(index).take(now_ns, cost_ns)
        });
        if !self.egress.passes(direction, &mut packet) {
            return;
        }
        self.connections[flow].under_way += 1;
        match &mut self.processors {
            Some(processors) if made_ns > now_ns => {
                let making = &mut processors.of(index).making;
                making.push_back((made_ns, packet));
                if making.len() == 1 {
                    self.agenda.schedule(made_ns, Event::Made(index as u32));
                }
            }
            _ => self.enter_row(direction, &packet),
        }
    }

    /// A host has made an ACK, which leaves.
    pub(crate) fn made(&mut self, index: usize) {
        let Some(processors) = &mut self.processors else {
            return;
        };
        let making = &mut processors.of(index).making;
        let Some((_, packet)) = making.pop_front() else {
            return;
        };
        if let Some(&(made_ns, _)) = making.front() {
            self.agenda.schedule(made_ns, Event::Made(index as u32));
        }
        self.enter_row(Direction::of_index(index).back(), &packet);
    }
}
