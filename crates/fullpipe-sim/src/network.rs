//! The network: a row of links. Carries each packet from the link where it enters the row to the one where
//! it leaves it. Must not know who sent a packet, or why.

use fullpipe_net::{AnyLink, DelayLine, Direction, Link, Packet, Passed};
use fullpipe_plan::{Newcomer, Plan, Route};
use fullpipe_tcp::Data;

use crate::applications::Applications;
use crate::ends::NEVER_NS;
use crate::events::{Agenda, Event};
use crate::packet::{Body, InFlight, Label};
use crate::run::{BadPlan, Simulation};

/// How packets pass one direction of a link.
#[derive(Clone, Copy)]
enum Treatment {
    /// By the steps of [`fullpipe_net::QueuedDirection`], which need no lists. Bursts stay whole.
    Queued,
    /// By the calls of [`Link`]. A direction that only delays need not be called.
    General { constant_delay_ns: Option<u64> },
}

impl Treatment {
    fn of(link: &mut AnyLink<InFlight>, direction: Direction) -> Self {
        match link.queued(direction.index()) {
            Some(_) => Self::Queued,
            None => Self::General {
                constant_delay_ns: link.constant_delay_ns(direction),
            },
        }
    }
}

/// One direction of a link.
struct LinkDirection {
    treatment: Treatment,
    /// When the event of the link's timer with this index is due; [`NEVER_NS`]: it has none.
    timer_ns: u64,
}

/// Packets between two links.
struct Gap {
    packets: DelayLine<InFlight>,
    /// When the event of the first of them is due; [`NEVER_NS`]: it has none.
    event_ns: u64,
}

/// The row.
pub(crate) struct Network {
    pub(crate) links: Vec<AnyLink<InFlight>>,
    /// By position of the link * 2 + direction.
    directions: Vec<LinkDirection>,
    /// Behind each direction of each link, likewise.
    gaps: Vec<Gap>,
    /// By owner.
    routes: Vec<Route>,
    passed: Passed<InFlight>,
}

impl Network {
    pub(crate) fn new(plan: &Plan) -> Result<Self, BadPlan> {
        let mtu_bytes = plan.ends.mtu_bytes;
        let mut links: Vec<_> = (0..)
            .zip(&plan.links)
            .map(|(index, link)| {
                AnyLink::new(&link.medium, index, plan.seed, mtu_bytes)
                    .map_err(|error| BadPlan(format!("link {}: {error}", link.name)))
            })
            .collect::<Result<_, _>>()?;
        let flows = plan.flows.iter().map(|flow| flow.route);
        let probes = plan.probes.iter().map(|probe| probe.route);
        let others = probes.chain(Applications::routes(plan));
        let directions = links.iter_mut().flat_map(|link| {
            Direction::BOTH.map(|direction| LinkDirection {
                treatment: Treatment::of(link, direction),
                timer_ns: NEVER_NS,
            })
        });
        let gap = |_| Gap {
            packets: DelayLine::default(),
            event_ns: NEVER_NS,
        };
        Ok(Self {
            directions: directions.collect(),
            gaps: (0..2 * links.len()).map(gap).collect(),
            links,
            routes: flows.chain(others).collect(),
            passed: Passed::default(),
        })
    }

    /// Sets the route of a new owner, or of one that has taken another's place.
    pub(crate) fn take_in(&mut self, plan: &Plan, owner: usize, route: Route, new: Newcomer) {
        match self.routes.get_mut(owner) {
            Some(known) => *known = route,
            None => self.routes.push(route),
        }
        for (link, planned) in self.links.iter_mut().zip(&plan.links) {
            if let Some(station) = planned.station_of(new) {
                link.set_station(owner as u32, station);
            }
        }
    }

    /// Schedules a link's timer. One event is enough: it finds a timer that has been set later.
    #[inline(always)] // usually there is one
    fn arm_at(&mut self, agenda: &mut Agenda, index: usize, due_ns: u64) {
        let timer_ns = &mut self.directions[index].timer_ns;
        if due_ns < *timer_ns {
            *timer_ns = due_ns;
            agenda.schedule(due_ns, Event::Link(index as u32));
        }
    }

    fn arm(&mut self, agenda: &mut Agenda, link: usize, timer: usize) {
        if let Some(due_ns) = self.links[link].due_ns(timer) {
            self.arm_at(agenda, link * 2 + timer, due_ns);
        }
    }

    /// Schedules the first packet between two links.
    fn arm_gap(&mut self, agenda: &mut Agenda, index: usize) {
        let gap = &mut self.gaps[index];
        let due_ns = gap.packets.due_ns().unwrap_or(NEVER_NS);
        if due_ns < gap.event_ns {
            gap.event_ns = due_ns;
            agenda.schedule(due_ns, Event::Between(index as u32));
        }
    }

    /// The link where an owner's packets of this direction enter the row.
    pub(crate) fn first_link(&self, owner: u32, direction: Direction) -> usize {
        let route = self.routes[owner as usize];
        usize::from(match direction {
            Direction::Forward => route.enter,
            Direction::Reverse => route.leave,
        })
    }

    /// The link after this one; `None`: the packet leaves the row.
    #[inline(always)] // as `leave_row`
    fn next_link(&self, owner: u32, link: usize, direction: Direction) -> Option<usize> {
        let route = self.routes[owner as usize];
        match direction {
            Direction::Forward => (link < usize::from(route.leave)).then(|| link + 1),
            Direction::Reverse => (link > usize::from(route.enter)).then(|| link - 1),
        }
    }
}

impl Simulation<'_> {
    /// A packet enters the row.
    #[inline(always)] // as `offer`
    pub(crate) fn enter_row(&mut self, direction: Direction, packet: &InFlight) {
        let link = self.network.first_link(packet.owner, direction);
        self.offer(link, direction, packet);
    }

    /// A packet arrives at a link.
    #[inline(always)] // most ACKs are only delayed: once around `forward`
    fn offer(&mut self, link: usize, direction: Direction, packet: &InFlight) {
        let index = link * 2 + direction.index();
        match self.network.directions[index].treatment {
            Treatment::General {
                constant_delay_ns: Some(delay_ns),
            } => self.forward(link, self.now_ns + delay_ns, direction, packet),
            Treatment::Queued => self.offer_queued(index, packet, 1),
            Treatment::General { .. } => self.offer_general(link, direction, packet),
        }
    }

    /// A burst of `count` data packets arrives at a link ([`Packet::first_of_burst`]).
    pub(crate) fn offer_burst(
        &mut self,
        link: usize,
        direction: Direction,
        burst: &InFlight,
        count: u32,
    ) {
        let index = link * 2 + direction.index();
        if let Treatment::Queued = self.network.directions[index].treatment {
            return self.offer_queued(index, burst, count);
        }
        let mut burst = *burst;
        for others in (0..count).rev() {
            let packet = burst.split_first(others);
            self.offer(link, direction, &packet);
        }
    }

    #[inline(never)] // once a burst
    fn offer_queued(&mut self, index: usize, burst: &InFlight, count: u32) {
        let network = &mut self.network;
        let Some(queued) = network.links[index / 2].queued(index % 2) else {
            return;
        };
        let due_ns = queued.due_ns();
        if due_ns == NEVER_NS {
            return self.offer_idle(index, *burst, count);
        }
        queued.enqueue(self.now_ns, burst, count, &mut network.passed.dropped);
        self.lose_dropped();
        self.network.arm_at(&mut self.agenda, index, due_ns);
    }

    /// A burst arrives at a direction where nothing waits: its packets are sent one by one until one has
    /// to wait.
    #[inline(never)]
    fn offer_idle(&mut self, index: usize, mut burst: InFlight, count: u32) {
        for others in (0..count).rev() {
            let network = &mut self.network;
            let Some(queued) = network.links[index / 2].queued(index % 2) else {
                return;
            };
            if queued.due_ns() != NEVER_NS {
                return self.offer_queued(index, &burst, others + 1);
            }
            let packet = burst.split_first(others);
            if !queued.enqueue(self.now_ns, &packet, 1, &mut network.passed.dropped) {
                self.lose_dropped();
                continue;
            }
            let due_ns = self.send_one(index);
            self.network.arm_at(&mut self.agenda, index, due_ns);
        }
    }

    /// The event of a link's timer.
    pub(crate) fn link_timer(&mut self, index: usize) {
        if self.network.directions[index].timer_ns != self.now_ns {
            return; // an earlier event replaced this one
        }
        self.network.directions[index].timer_ns = NEVER_NS;
        match self.network.directions[index].treatment {
            Treatment::Queued => self.send_in_turn(index),
            Treatment::General { .. } => self.advance_general(index),
        }
    }

    /// Sends packets one after the other while no other event is due in between.
    #[inline(always)] // at nearly every link's timer
    fn send_in_turn(&mut self, index: usize) {
        loop {
            let due_ns = self.send_one(index);
            let is_armed = self.network.directions[index].timer_ns != NEVER_NS;
            if is_armed || !self.goes_on(due_ns) {
                return self.network.arm_at(&mut self.agenda, index, due_ns);
            }
        }
    }

    /// Sends the packet of a queued direction that may leave now. Returns when the caller has to arm the
    /// timer; [`NEVER_NS`]: not at all. Sending may offer further packets to the same direction: if it is
    /// busy they do not change its time, if it is idle they arm its timer.
    #[inline(always)] // into its two callers
    fn send_one(&mut self, index: usize) -> u64 {
        let (link, direction) = (index / 2, Direction::of_index(index));
        let now_ns = self.now_ns;
        let network = &mut self.network;
        let Some(queued) = network.links[link].queued(index % 2) else {
            return NEVER_NS;
        };
        let Some((burst, is_followed)) = queued.choose(now_ns, &mut network.passed.dropped) else {
            let due_ns = queued.due_ns();
            self.lose_dropped();
            return due_ns;
        };
        let Body::Data(data) = &burst.body else {
            let packet = *burst;
            let at_ns = queued.send(now_ns);
            return self.forward_sent(index, at_ns, &packet);
        };
        // Most packets are data, the smallest part of what a packet may be: only that is copied.
        let (owner, label) = (burst.owner, burst.label);
        let mut data = *data;
        if is_followed {
            data.clear_last_flags();
        }
        let at_ns = queued.send(now_ns);
        let due_ns = queued.due_ns();
        if at_ns <= now_ns && due_ns > now_ns && self.is_at_host(owner, direction, link) {
            self.lose_dropped();
            self.deliver_data(owner, &data);
            return due_ns;
        }
        self.forward_data(index, at_ns, owner, label, &data)
    }

    /// Forwards data that do not reach their host at once.
    #[inline(never)] // or every packet is written twice
    fn forward_data(
        &mut self,
        index: usize,
        at_ns: u64,
        owner: u32,
        label: Label,
        data: &Data,
    ) -> u64 {
        let body = Body::Data(*data);
        self.forward_sent(index, at_ns, &InFlight { owner, label, body })
    }

    /// Forwards a packet that a queued direction has sent, and the others that may leave now. Returns as
    /// `send_one`.
    #[inline(never)]
    fn forward_sent(&mut self, index: usize, at_ns: u64, packet: &InFlight) -> u64 {
        let queued = self.network.links[index / 2].queued(index % 2);
        let due_ns = queued.map_or(NEVER_NS, |queued| queued.due_ns());
        if due_ns <= self.now_ns {
            self.send_rest(index, at_ns, packet);
            return NEVER_NS;
        }
        self.lose_dropped();
        self.forward(index / 2, at_ns, Direction::of_index(index), packet);
        due_ns
    }

    /// Sends all packets that may leave now, behind one that was sent already.
    #[inline(never)]
    fn send_rest(&mut self, index: usize, first_at_ns: u64, first: &InFlight) {
        let (link, direction) = (index / 2, Direction::of_index(index));
        let network = &mut self.network;
        let begin = network.passed.out.len();
        if let Some(queued) = network.links[link].queued(index % 2) {
            queued.send_all(self.now_ns, &mut network.passed);
        }
        self.lose_dropped();
        self.forward(link, first_at_ns, direction, first);
        self.take_passed(link, index % 2, begin);
    }

    #[inline(never)]
    fn offer_general(&mut self, link: usize, direction: Direction, packet: &InFlight) {
        let network = &mut self.network;
        let begin = network.passed.out.len();
        network.links[link].offer(self.now_ns, direction, *packet, &mut network.passed);
        let timer = network.links[link].timer(direction);
        let passed = &network.passed;
        if passed.out.len() == begin && passed.dropped.is_empty() && passed.duplicated.is_empty() {
            network.arm(&mut self.agenda, link, timer); // usually it waits
        } else {
            self.take_passed(link, timer, begin);
        }
    }

    #[inline(never)]
    fn advance_general(&mut self, index: usize) {
        let (link, timer) = (index / 2, index % 2);
        let begin = self.network.passed.out.len();
        self.network.links[link].advance(self.now_ns, timer, &mut self.network.passed);
        self.take_passed(link, timer, begin);
    }

    /// Counts the packets that a call of a link dropped and copied, forwards those that left it, and arms
    /// the link's timer. Forwarding may call links again: those calls add to the same list behind `begin`
    /// and take what they added.
    fn take_passed(&mut self, link: usize, timer: usize, begin: usize) {
        while let Some(packet) = self.network.passed.duplicated.pop() {
            self.sent += u64::from(packet.body.is_data());
            self.control.sent += u64::from(packet.body.is_control());
            self.is_copied(&packet);
        }
        self.lose_dropped();
        let end = self.network.passed.out.len();
        for index in begin..end {
            let exit = self.network.passed.out[index];
            self.forward(link, exit.at_ns, exit.direction, &exit.packet);
        }
        self.network.passed.out.truncate(begin);
        self.network.arm(&mut self.agenda, link, timer);
    }

    /// Counts the packets that links have dropped.
    #[inline(always)] // usually there are none
    fn lose_dropped(&mut self) {
        if !self.network.passed.dropped.is_empty() {
            self.lose_all();
        }
    }

    #[inline(never)]
    fn lose_all(&mut self) {
        while let Some(packet) = self.network.passed.dropped.pop() {
            self.lost += u64::from(packet.body.is_data());
            self.control.lost += u64::from(packet.body.is_control());
            self.is_gone(&packet);
        }
    }

    /// A packet that reaches the end of a link at `at_ns` goes on to the next link, or leaves the row.
    #[inline(always)] // as `leave_row`, where most go
    fn forward(&mut self, link: usize, at_ns: u64, direction: Direction, packet: &InFlight) {
        match self.network.next_link(packet.owner, link, direction) {
            None => self.leave_row(at_ns, direction, packet),
            Some(next) => self.forward_to(next, link, at_ns, direction, packet),
        }
    }

    #[inline(never)]
    fn forward_to(
        &mut self,
        next: usize,
        link: usize,
        at_ns: u64,
        direction: Direction,
        packet: &InFlight,
    ) {
        let index = link * 2 + direction.index();
        let packets = &mut self.network.gaps[index].packets;
        if at_ns <= self.now_ns && packets.is_empty() {
            self.offer(next, direction, packet);
        } else if packets.push(at_ns, packet).is_some() {
            self.network.arm_gap(&mut self.agenda, index);
        }
    }

    /// Packets between two links reach the second one.
    pub(crate) fn between_links(&mut self, index: usize) {
        if self.network.gaps[index].event_ns != self.now_ns {
            return; // the event of a packet that overtook the first one replaced this one
        }
        self.network.gaps[index].event_ns = NEVER_NS;
        let direction = Direction::of_index(index);
        while let Some(&packet) = self.network.gaps[index].packets.ready(self.now_ns) {
            self.network.gaps[index].packets.leave();
            match self.network.next_link(packet.owner, index / 2, direction) {
                Some(next) => self.offer(next, direction, &packet),
                None => debug_assert!(false, "packets that leave the row are not in a gap"),
            }
        }
        self.network.arm_gap(&mut self.agenda, index);
    }
}
