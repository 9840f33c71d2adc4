//! Where packets go: a row of links, and each packet's way from where it enters to where it
//! leaves. Never who sent it, or why.

use fullpipe_net::{AnyLink, DelayLine, Direction, Link, Packet, Passed};
use fullpipe_plan::{Newcomer, Plan, Route};
use fullpipe_tcp::Data;

use crate::applications::Applications;
use crate::ends::NEVER_NS;
use crate::events::{Agenda, Event};
use crate::packet::{Body, InFlight, Label};
use crate::run::{BadPlan, Simulation};

/// How packets are put through one way of a link.
#[derive(Clone, Copy)]
enum Treatment {
    /// As [`fullpipe_net::QueuedWay`]: bursts as they are, without lists of what was passed and dropped.
    Queued,
    /// As [`Link`]. With a constant delay, which is all that can happen, the link need not be called.
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

/// A way of a link.
struct PlannedDirection {
    treatment: Treatment,
    /// When its timer, or the link's timer with its index, is on the agenda.
    timer_ns: u64,
}

/// The row.
pub(crate) struct Network {
    pub(crate) links: Vec<AnyLink<InFlight>>,
    /// Of each way of each link (position * 2 + way).
    directions: Vec<PlannedDirection>,
    /// What has left a link (position * 2 + way) and not reached the next one yet, and when an event
    /// for its head is on the agenda.
    between: Vec<(DelayLine<InFlight>, u64)>,
    /// By owner.
    routes: Vec<Route>,
    passed: Passed<InFlight>,
}

impl Network {
    pub(crate) fn new(plan: &Plan) -> Result<Self, BadPlan> {
        let mut links: Vec<_> = (0..)
            .zip(&plan.links)
            .map(|(index, link)| AnyLink::new(link, index, plan.seed, plan.ends.mtu_bytes))
            .collect::<Result<_, _>>()
            .map_err(BadPlan)?;
        let flows = plan.flows.iter().map(|flow| flow.route);
        let probes = plan.probes.iter().map(|probe| probe.route);
        let others = probes.chain(Applications::routes(plan));
        let directions = links.iter_mut().flat_map(|link| {
            Direction::BOTH.map(|direction| PlannedDirection {
                treatment: Treatment::of(link, direction),
                timer_ns: NEVER_NS,
            })
        });
        Ok(Self {
            directions: directions.collect(),
            between: (0..2 * links.len())
                .map(|_| (DelayLine::default(), NEVER_NS))
                .collect(),
            links,
            routes: flows.chain(others).collect(),
            passed: Passed::default(),
        })
    }

    /// The way of an owner: of a new one behind all others, or of one that took another's place.
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

    /// One event for a timer's earliest time; a later one is found when it comes.
    #[inline(always)] // mostly there is one
    fn arm_at(&mut self, agenda: &mut Agenda, index: usize, due_ns: u64) {
        let armed_ns = &mut self.directions[index].timer_ns;
        if due_ns < *armed_ns {
            *armed_ns = due_ns;
            agenda.schedule(due_ns, Event::Link(index as u32));
        }
    }

    fn arm(&mut self, agenda: &mut Agenda, link: usize, timer: usize) {
        if let Some(due_ns) = self.links[link].due_ns(timer) {
            self.arm_at(agenda, link * 2 + timer, due_ns);
        }
    }

    pub(crate) fn first_link(&self, owner: u32, direction: Direction) -> usize {
        let route = self.routes[owner as usize];
        usize::from(match direction {
            Direction::Forward => route.enter,
            Direction::Reverse => route.leave,
        })
    }

    /// The link after this one; `None` where the packet leaves the row.
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

    /// A link's timer.
    pub(crate) fn link_timer(&mut self, index: usize) {
        if self.network.directions[index].timer_ns != self.now_ns {
            return; // an earlier one took this one's place
        }
        self.network.directions[index].timer_ns = NEVER_NS;
        match self.network.directions[index].treatment {
            Treatment::Queued => self.pass_in_turn(index),
            Treatment::General { .. } => self.general_timer(index),
        }
    }

    /// A way lets packets pass, one after the other while nothing else happens in between.
    #[inline(always)] // at nearly every link's timer
    fn pass_in_turn(&mut self, index: usize) {
        loop {
            let due_ns = self.pass_directly(index);
            let is_armed = self.network.directions[index].timer_ns != NEVER_NS;
            if is_armed || !self.goes_on(due_ns) {
                return self.network.arm_at(&mut self.agenda, index, due_ns);
            }
        }
    }

    #[inline(never)]
    fn general_timer(&mut self, index: usize) {
        let (link, timer) = (index / 2, index % 2);
        let begin = self.network.passed.out.len();
        self.network.links[link].advance(self.now_ns, timer, &mut self.network.passed);
        self.settle(link, timer, begin);
    }

    /// Packets between two links have reached the second one.
    pub(crate) fn between_links(&mut self, index: usize) {
        if self.network.between[index].1 != self.now_ns {
            return; // a packet that overtook the head had an event of its own
        }
        self.network.between[index].1 = NEVER_NS;
        let direction = Direction::of_index(index);
        while let Some(&packet) = self.network.between[index].0.ready(self.now_ns) {
            self.network.between[index].0.leave();
            match self.network.next_link(packet.owner, index / 2, direction) {
                Some(next) => self.offer(next, direction, &packet),
                None => debug_assert!(false, "the last link's packets are not kept here"),
            }
        }
        self.await_between(index);
    }

    #[inline(always)] // most ACKs are only delayed: once around `take_on`
    fn offer(&mut self, link: usize, direction: Direction, packet: &InFlight) {
        let index = link * 2 + direction.index();
        match self.network.directions[index].treatment {
            Treatment::General {
                constant_delay_ns: Some(delay_ns),
            } => self.take_on(link, self.now_ns + delay_ns, direction, packet),
            Treatment::Queued => self.offer_directly(index, packet, 1),
            Treatment::General { .. } => self.offer_general(link, direction, packet),
        }
    }

    /// So many data packets of one burst enter here, by what stands for them ([`Packet::end_follows`]).
    pub(crate) fn offer_burst(
        &mut self,
        link: usize,
        direction: Direction,
        burst: &InFlight,
        count: u32,
    ) {
        let index = link * 2 + direction.index();
        if let Treatment::Queued = self.network.directions[index].treatment {
            return self.offer_directly(index, burst, count);
        }
        let mut burst = *burst;
        for others in (0..count).rev() {
            let packet = burst.split_first(others);
            self.offer(link, direction, &packet);
        }
    }

    #[inline(never)] // once a burst
    fn offer_directly(&mut self, index: usize, burst: &InFlight, count: u32) {
        let network = &mut self.network;
        let Some(direction) = network.links[index / 2].queued(index % 2) else {
            return;
        };
        let due_ns = direction.due_ns();
        if due_ns == NEVER_NS {
            return self.offer_to_idle(index, *burst, count);
        }
        direction.take(self.now_ns, burst, count, &mut network.passed.dropped);
        self.lose_dropped();
        self.network.arm_at(&mut self.agenda, index, due_ns);
    }

    /// Packets come to a way where nothing waits: one passes after the other, until one has to wait.
    #[inline(never)]
    fn offer_to_idle(&mut self, index: usize, mut burst: InFlight, count: u32) {
        for others in (0..count).rev() {
            let network = &mut self.network;
            let Some(direction) = network.links[index / 2].queued(index % 2) else {
                return;
            };
            if direction.due_ns() != NEVER_NS {
                return self.offer_directly(index, &burst, others + 1);
            }
            let packet = burst.split_first(others);
            if !direction.take(self.now_ns, &packet, 1, &mut network.passed.dropped) {
                self.lose_dropped();
                continue;
            }
            let due_ns = self.pass_directly(index);
            self.network.arm_at(&mut self.agenda, index, due_ns);
        }
    }

    /// What a way lets pass now is taken on. Returns when it wants to be called next: what this set off
    /// finds it busy and leaves its time alone, or idle and has planned it.
    #[inline(always)] // into the two that are called
    fn pass_directly(&mut self, index: usize) -> u64 {
        let (link, to) = (index / 2, Direction::of_index(index));
        let now_ns = self.now_ns;
        let network = &mut self.network;
        let Some(direction) = network.links[link].queued(index % 2) else {
            return NEVER_NS;
        };
        let Some((first, is_followed)) = direction.ready(now_ns, &mut network.passed.dropped)
        else {
            let due_ns = direction.due_ns();
            self.lose_dropped();
            return due_ns;
        };
        let Body::Data(data) = &first.body else {
            let packet = *first;
            let at_ns = direction.pass(now_ns);
            return self.pass_on(index, at_ns, &packet);
        };
        // Most are data, the smaller part of what a packet may be.
        let (owner, label) = (first.owner, first.label);
        let mut data = *data;
        if is_followed {
            data.end_follows();
        }
        let at_ns = direction.pass(now_ns);
        let due_ns = direction.due_ns();
        if at_ns <= now_ns && due_ns > now_ns && self.is_at_host(owner, to, link) {
            self.lose_dropped();
            self.deliver_data(owner, &data);
            return due_ns;
        }
        self.pass_data_on(index, at_ns, owner, label, &data)
    }

    /// The same of data that do not reach their host here and now.
    #[inline(never)] // or every packet is written twice
    fn pass_data_on(
        &mut self,
        index: usize,
        at_ns: u64,
        owner: u32,
        label: Label,
        data: &Data,
    ) -> u64 {
        let body = Body::Data(*data);
        self.pass_on(index, at_ns, &InFlight { owner, label, body })
    }

    /// A packet that has passed is taken on, and others that may pass now.
    #[inline(never)]
    fn pass_on(&mut self, index: usize, at_ns: u64, packet: &InFlight) -> u64 {
        let direction = self.network.links[index / 2].queued(index % 2);
        let due_ns = direction.map_or(NEVER_NS, |direction| direction.due_ns());
        if due_ns <= self.now_ns {
            self.pass_many(index, at_ns, packet);
            return NEVER_NS; // it is planned
        }
        self.lose_dropped();
        self.take_on(index / 2, at_ns, Direction::of_index(index), packet);
        due_ns
    }

    /// More than one may pass now, of which this is the first.
    #[inline(never)]
    fn pass_many(&mut self, index: usize, at_ns: u64, packet: &InFlight) {
        let (link, to) = (index / 2, Direction::of_index(index));
        let network = &mut self.network;
        let begin = network.passed.out.len();
        if let Some(direction) = network.links[link].queued(index % 2) {
            direction.pass_all(self.now_ns, &mut network.passed);
        }
        self.lose_dropped();
        self.take_on(link, at_ns, to, packet);
        self.settle(link, index % 2, begin);
    }

    #[inline(never)]
    fn offer_general(&mut self, link: usize, direction: Direction, packet: &InFlight) {
        let network = &mut self.network;
        let begin = network.passed.out.len();
        network.links[link].offer(self.now_ns, direction, *packet, &mut network.passed);
        let timer = network.links[link].timer(direction);
        let passed = &network.passed;
        if passed.out.len() == begin && passed.dropped.is_empty() && passed.duplicated.is_empty() {
            // It waits: the way of most.
            network.arm(&mut self.agenda, link, timer);
        } else {
            self.settle(link, timer, begin);
        }
    }

    /// Packets are gone that a link dropped.
    #[inline(always)] // mostly there are none
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

    /// Counts what a call of a link dropped, takes on what it passed, and plans its next one.
    /// What has passed may set off further calls, which add to the same list and clean up after
    /// themselves.
    fn settle(&mut self, link: usize, timer: usize, begin: usize) {
        while let Some(packet) = self.network.passed.duplicated.pop() {
            self.sent += u64::from(packet.body.is_data());
            self.control.sent += u64::from(packet.body.is_control());
            self.is_copied(&packet);
        }
        self.lose_dropped();
        let end = self.network.passed.out.len();
        for index in begin..end {
            let exit = self.network.passed.out[index];
            self.take_on(link, exit.at_ns, exit.direction, &exit.packet);
        }
        self.network.passed.out.truncate(begin);
        self.network.arm(&mut self.agenda, link, timer);
    }

    #[inline(always)] // as `leave_row`, where most go
    fn take_on(&mut self, link: usize, at_ns: u64, direction: Direction, packet: &InFlight) {
        let Some(next) = self.network.next_link(packet.owner, link, direction) else {
            self.leave_row(at_ns, direction, packet);
            return;
        };
        self.travel_on(link, next, at_ns, direction, packet);
    }

    /// To the next link.
    #[inline(never)]
    fn travel_on(
        &mut self,
        link: usize,
        next: usize,
        at_ns: u64,
        direction: Direction,
        packet: &InFlight,
    ) {
        let index = link * 2 + direction.index();
        let line = &mut self.network.between[index].0;
        if at_ns <= self.now_ns && line.is_empty() {
            self.offer(next, direction, packet);
        } else if line.push(at_ns, packet).is_some() {
            self.await_between(index);
        }
    }

    fn await_between(&mut self, index: usize) {
        let (line, awaited_ns) = &mut self.network.between[index];
        let due_ns = line.due_ns().unwrap_or(NEVER_NS);
        if due_ns < *awaited_ns {
            *awaited_ns = due_ns;
            self.agenda.schedule(due_ns, Event::Between(index as u32));
        }
    }
}
