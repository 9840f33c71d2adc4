//! The network: a row of links. Each packet passes the links of its flow's route one after the other;
//! `sim/forward.rs` moves it from link to link. Must never know what sends or receives.

use fullpipe_net::{AnyLink, DelayLine, Direction, Exit, Link, Passed};
use fullpipe_plan::{ConnectionOrigin, Plan, Route};
use fullpipe_tcp::Data;

use crate::agenda::{Agenda, Alarm, Event, NEVER_NS};
use crate::check::BadPlan;
use crate::packet::{Body, InFlight, IpHeader};

/// How packets pass one direction of a link.
#[derive(Clone, Copy)]
pub(crate) enum Treatment {
    /// By [`fullpipe_net::QueuedDirection`]: whole bursts, without lists of passed packets.
    Queued,
    /// By [`Link`].
    General {
        /// Set if all that the link does is to delay packets: it need not be called.
        constant_delay_ns: Option<u64>,
    },
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
    /// The link's timer with this direction's index.
    timer: Alarm,
    /// Packets on their way to the next link, and the event for the first of them.
    onward: DelayLine<InFlight>,
    arrival: Alarm,
}

/// What leaves a queue ([`Treatment::Queued`]).
pub(crate) enum Departure {
    /// Nothing may leave now.
    Nothing {
        /// When the queue has to be called next.
        due_ns: u64,
    },
    /// Data, without the rest of a packet, which is mostly not needed.
    Data {
        flow_id: u32,
        header: IpHeader,
        data: Data,
        /// When they reach the far end.
        at_ns: u64,
        /// When the queue has to be called next.
        due_ns: u64,
    },
    /// Another packet.
    Packet {
        packet: InFlight,
        /// When it reaches the far end.
        at_ns: u64,
    },
}

/// Packets that a call of a link passed: entries of [`Network::exit`] from `begin` on.
pub(crate) struct Batch {
    pub(crate) link: usize,
    timer: usize,
    begin: usize,
}

/// The row of links. The directions of links are numbered link * 2 + direction.
pub(crate) struct Network {
    links: Vec<AnyLink<InFlight>>,
    directions: Vec<LinkDirection>,
    /// By flow id.
    routes: Vec<Route>,
    /// What links passed, dropped and duplicated. Batches are nested: what a passed packet causes adds to
    /// the lists and removes it again.
    passed: Passed<InFlight>,
}

impl Network {
    /// The network of a plan, with the routes of its flow ids.
    pub(crate) fn new(plan: &Plan, routes: Vec<Route>) -> Result<Self, BadPlan> {
        let mut links: Vec<_> = (0..)
            .zip(&plan.links)
            .map(|(index, link)| {
                AnyLink::new(&link.medium, index, plan.seed, plan.access.mtu_bytes)
                    .map_err(|error| BadPlan(format!("link {}: {error}", link.name)))
            })
            .collect::<Result<_, _>>()?;
        let directions = links.iter_mut().flat_map(|link| {
            Direction::BOTH.map(|direction| LinkDirection {
                treatment: Treatment::of(link, direction),
                timer: Alarm::default(),
                onward: DelayLine::default(),
                arrival: Alarm::default(),
            })
        });
        Ok(Self {
            directions: directions.collect(),
            links,
            routes,
            passed: Passed::default(),
        })
    }

    /// All links, for samples of their queues.
    pub(crate) fn links(&self) -> &[AnyLink<InFlight>] {
        &self.links
    }

    /// Sets the route of a flow id, which is the next unused one or was used before.
    pub(crate) fn set_route(
        &mut self,
        plan: &Plan,
        flow_id: usize,
        route: Route,
        origin: ConnectionOrigin,
    ) {
        match self.routes.get_mut(flow_id) {
            Some(known) => *known = route,
            None => self.routes.push(route),
        }
        for (link, planned) in self.links.iter_mut().zip(&plan.links) {
            if let Some(station) = planned.station_of(origin) {
                link.set_station(flow_id as u32, station);
            }
        }
    }

    /// The first link of a flow's route.
    pub(crate) fn first_link(&self, flow_id: u32, direction: Direction) -> usize {
        let route = self.routes[flow_id as usize];
        usize::from(match direction {
            Direction::Forward => route.enter,
            Direction::Reverse => route.leave,
        })
    }

    /// The link after this one; `None` at the end of the route.
    #[inline(always)] // for every packet that leaves a link
    pub(crate) fn next_link(
        &self,
        flow_id: u32,
        link: usize,
        direction: Direction,
    ) -> Option<usize> {
        let route = self.routes[flow_id as usize];
        match direction {
            Direction::Forward => (link < usize::from(route.leave)).then(|| link + 1),
            Direction::Reverse => (link > usize::from(route.enter)).then(|| link - 1),
        }
    }

    #[inline(always)] // for every packet that enters a link
    pub(crate) fn treatment(&self, index: usize) -> Treatment {
        self.directions[index].treatment
    }

    /// Whether a timer's event is the one that is meant.
    #[inline(always)] // once an event
    pub(crate) fn timer_rings(&mut self, index: usize, now_ns: u64) -> bool {
        self.directions[index].timer.rings(now_ns)
    }

    #[inline(always)] // once an event
    pub(crate) fn is_timer_set(&self, index: usize) -> bool {
        self.directions[index].timer.is_set()
    }

    #[inline(always)] // once an event
    pub(crate) fn set_timer(&mut self, agenda: &mut Agenda, index: usize, due_ns: u64) {
        let event = Event::Link(index as u32);
        self.directions[index].timer.set(agenda, due_ns, event);
    }

    fn set_due_timer(&mut self, agenda: &mut Agenda, link: usize, timer: usize) {
        if let Some(due_ns) = self.links[link].due_ns(timer) {
            self.set_timer(agenda, link * 2 + timer, due_ns);
        }
    }

    /// Queues a burst, represented by its first packet. False if the queue is idle: packets then enter it
    /// one by one ([`Self::enqueue_one`]).
    #[inline(always)] // once a burst
    pub(crate) fn enqueue(
        &mut self,
        agenda: &mut Agenda,
        index: usize,
        burst: &InFlight,
        count: u32,
    ) -> bool {
        let Some(queue) = self.links[index / 2].queued(index % 2) else {
            return true;
        };
        let due_ns = queue.due_ns();
        if due_ns == NEVER_NS {
            return false;
        }
        queue.enqueue(agenda.now_ns(), burst, count, &mut self.passed.dropped);
        self.set_timer(agenda, index, due_ns);
        true
    }

    /// Whether a queue has nothing to do before a packet arrives.
    #[inline(always)] // as `enqueue_one`
    pub(crate) fn is_idle(&mut self, index: usize) -> bool {
        let queue = self.links[index / 2].queued(index % 2);
        queue.is_some_and(|queue| queue.due_ns() == NEVER_NS)
    }

    /// Queues a packet in an idle queue; false if it was dropped.
    #[inline(always)] // into the loop over a burst
    pub(crate) fn enqueue_one(&mut self, now_ns: u64, index: usize, packet: &InFlight) -> bool {
        let queue = self.links[index / 2].queued(index % 2);
        queue.is_some_and(|queue| queue.enqueue(now_ns, packet, 1, &mut self.passed.dropped))
    }

    /// The packet that leaves a queue now.
    #[inline(always)] // keeps the packet out of memory
    pub(crate) fn depart(&mut self, now_ns: u64, index: usize) -> Departure {
        let Some(queue) = self.links[index / 2].queued(index % 2) else {
            return Departure::Nothing { due_ns: NEVER_NS };
        };
        let Some((first, is_followed)) = queue.choose(now_ns, &mut self.passed.dropped) else {
            let due_ns = queue.due_ns();
            return Departure::Nothing { due_ns };
        };
        let Body::Data(data) = &first.body else {
            let packet = *first;
            let at_ns = queue.send(now_ns);
            return Departure::Packet { packet, at_ns };
        };
        let (flow_id, header, mut data) = (first.flow_id, first.header, *data);
        if is_followed {
            data.clear_last_flags();
        }
        let at_ns = queue.send(now_ns);
        let due_ns = queue.due_ns();
        Departure::Data {
            flow_id,
            header,
            data,
            at_ns,
            due_ns,
        }
    }

    /// When a queue has to be called next.
    pub(crate) fn due_ns(&mut self, index: usize) -> u64 {
        let queue = self.links[index / 2].queued(index % 2);
        queue.map_or(NEVER_NS, |queue| queue.due_ns())
    }

    /// All further packets that leave a queue now.
    pub(crate) fn depart_all(&mut self, now_ns: u64, index: usize) -> Batch {
        let begin = self.passed.out.len();
        if let Some(queue) = self.links[index / 2].queued(index % 2) {
            queue.send_all(now_ns, &mut self.passed);
        }
        Batch {
            link: index / 2,
            timer: index % 2,
            begin,
        }
    }

    /// A packet enters a link with [`Treatment::General`]. `None`: it waits, and nothing else happens.
    pub(crate) fn offer(
        &mut self,
        agenda: &mut Agenda,
        link: usize,
        direction: Direction,
        packet: &InFlight,
    ) -> Option<Batch> {
        let begin = self.passed.out.len();
        self.links[link].offer(agenda.now_ns(), direction, *packet, &mut self.passed);
        let timer = self.links[link].timer(direction);
        let passed = &self.passed;
        if passed.out.len() == begin && passed.dropped.is_empty() && passed.duplicated.is_empty() {
            self.set_due_timer(agenda, link, timer);
            return None;
        }
        Some(Batch { link, timer, begin })
    }

    /// The timer of a link with [`Treatment::General`] expired.
    pub(crate) fn advance(&mut self, now_ns: u64, index: usize) -> Batch {
        let (link, timer) = (index / 2, index % 2);
        let begin = self.passed.out.len();
        self.links[link].advance(now_ns, timer, &mut self.passed);
        Batch { link, timer, begin }
    }

    /// Positions of a batch's packets, each for [`Self::exit`].
    pub(crate) fn exits(&self, batch: &Batch) -> std::ops::Range<usize> {
        batch.begin..self.passed.out.len()
    }

    /// A packet that a link passed.
    pub(crate) fn exit(&self, position: usize) -> Exit<InFlight> {
        self.passed.out[position]
    }

    /// All packets of a batch were moved on: removes them and sets the link's timer.
    pub(crate) fn end_batch(&mut self, agenda: &mut Agenda, batch: &Batch) {
        self.passed.out.truncate(batch.begin);
        self.set_due_timer(agenda, batch.link, batch.timer);
    }

    #[inline(always)] // mostly there are none
    pub(crate) fn has_dropped(&self) -> bool {
        !self.passed.dropped.is_empty()
    }

    /// A packet that a link dropped or lost.
    pub(crate) fn pop_dropped(&mut self) -> Option<InFlight> {
        self.passed.dropped.pop()
    }

    /// A copy of a packet that a link made.
    pub(crate) fn pop_duplicated(&mut self) -> Option<InFlight> {
        self.passed.duplicated.pop()
    }

    /// A packet left a link for the next one, which it reaches at `at_ns`. True if that is now and no
    /// other packet is ahead of it.
    pub(crate) fn carries_now(
        &mut self,
        agenda: &mut Agenda,
        index: usize,
        at_ns: u64,
        packet: &InFlight,
    ) -> bool {
        let onward = &mut self.directions[index].onward;
        if at_ns <= agenda.now_ns() && onward.is_empty() {
            return true;
        }
        if onward.push(at_ns, packet).is_some() {
            self.await_arrival(agenda, index);
        }
        false
    }

    /// Whether the event of [`Self::arrived`] is the one that is meant.
    pub(crate) fn arrival_rings(&mut self, index: usize, now_ns: u64) -> bool {
        self.directions[index].arrival.rings(now_ns)
    }

    /// A packet that has reached the next link.
    pub(crate) fn arrived(&mut self, index: usize, now_ns: u64) -> Option<InFlight> {
        let onward = &mut self.directions[index].onward;
        let packet = *onward.ready(now_ns)?;
        onward.leave();
        Some(packet)
    }

    /// Schedules the arrival of the next packet at the next link.
    pub(crate) fn await_arrival(&mut self, agenda: &mut Agenda, index: usize) {
        let line = &mut self.directions[index];
        if let Some(due_ns) = line.onward.due_ns() {
            let event = Event::NextLink(index as u32);
            line.arrival.set(agenda, due_ns, event);
        }
    }
}
