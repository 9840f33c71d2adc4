//! A row of links. Each packet passes the links of its flow's route one after the other. Time is an argument:
//! the driver calls the row at the times that it names, by any clock. Must never know what sends or receives.

use serde::{Deserialize, Serialize};

use crate::link::delay::{Carried, DelayLine};
use crate::link::{Direction, Exit, Link, Passage, Passed, QueuedDirection};
use crate::medium::{AnyLink, Medium};
use crate::packet::Packet;

/// The links that a flow passes: positions in the row, `enter <= leave`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// The first link that its "up" direction passes.
    pub enter: u16,
    /// The last one.
    pub leave: u16,
}

impl Route {
    /// Positions of its links.
    pub fn range(self) -> std::ops::RangeInclusive<usize> {
        usize::from(self.enter)..=usize::from(self.leave)
    }
}

/// A direction of a link of a row. It also names the link's timer with its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkDirection(u32);

impl LinkDirection {
    /// Of the link at this position.
    #[inline]
    pub fn new(link: usize, direction: Direction) -> Self {
        Self((link as u32) << 1 | direction as u32)
    }

    /// The link's position.
    #[inline]
    pub fn link(self) -> usize {
        (self.0 >> 1) as usize
    }

    /// The direction.
    #[inline]
    pub fn direction(self) -> Direction {
        Direction::of_index(self.index())
    }

    /// Its position among those of all links.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Its position among those of its link, which is the number of a timer.
    #[inline]
    fn timer(self) -> usize {
        (self.0 & 1) as usize
    }
}

/// Packets that a call of a link passed ([`Row::exits`]).
#[derive(Debug)]
pub struct Batch {
    /// The link's timer, which may have to be set.
    pub timer: LinkDirection,
    /// Its packets are from here on in the list of passed packets.
    begin: usize,
}

/// One direction of a link.
#[derive(Debug)]
struct Step<P> {
    passage: Passage,
    /// Packets on their way to the next link.
    onward: DelayLine<P>,
}

/// The links, and the packets between them.
#[derive(Debug)]
pub struct Row<P> {
    links: Vec<AnyLink<P>>,
    /// By [`LinkDirection::index`].
    steps: Vec<Step<P>>,
    /// By flow.
    routes: Vec<Route>,
    /// What links passed, dropped and duplicated. Batches are nested: what a passed packet causes adds to
    /// the lists and removes it again.
    passed: Passed<P>,
}

impl<P: Packet> Row<P> {
    /// A row of links, with the routes of flows. The error names a link's position and a key.
    pub fn new<'a>(
        media: impl IntoIterator<Item = &'a Medium>,
        routes: Vec<Route>,
        seed: u64,
        mtu_bytes: u32,
    ) -> Result<Self, (usize, String)> {
        let mut links = Vec::new();
        for (index, medium) in media.into_iter().enumerate() {
            let link = AnyLink::new(medium, index as u32, seed, mtu_bytes);
            links.push(link.map_err(|error| (index, error))?);
        }
        let steps = links.iter().flat_map(|link: &AnyLink<P>| {
            Direction::BOTH.map(|direction| Step {
                passage: link.passage(direction),
                onward: DelayLine::default(),
            })
        });
        Ok(Self {
            steps: steps.collect(),
            links,
            routes,
            passed: Passed::default(),
        })
    }

    /// All links, for samples of their queues.
    pub fn links(&self) -> &[AnyLink<P>] {
        &self.links
    }

    /// Sets the route of a flow, which is the next unused one or was used before.
    pub fn set_route(&mut self, flow: usize, route: Route) {
        match self.routes.get_mut(flow) {
            Some(known) => *known = route,
            None => self.routes.push(route),
        }
    }

    /// Sets the station of a flow at a link ([`Link::set_station`]).
    pub fn set_station(&mut self, link: usize, flow_key: u32, station: u16) {
        self.links[link].set_station(flow_key, station);
    }

    /// Where a flow's packets enter the row.
    #[inline]
    pub fn first_link(&self, flow: u32, direction: Direction) -> LinkDirection {
        let route = self.routes[flow as usize];
        let link = usize::from(match direction {
            Direction::Forward => route.enter,
            Direction::Reverse => route.leave,
        });
        LinkDirection::new(link, direction)
    }

    /// The link after this one; `None` at the end of the route.
    #[inline(always)] // for every packet that leaves a link
    pub fn next_link(&self, flow: u32, at: LinkDirection) -> Option<LinkDirection> {
        let route = self.routes[flow as usize];
        match at.direction() {
            Direction::Forward => {
                (at.link() < usize::from(route.leave)).then(|| LinkDirection(at.0 + 2))
            }
            Direction::Reverse => {
                (at.link() > usize::from(route.enter)).then(|| LinkDirection(at.0 - 2))
            }
        }
    }

    /// How packets pass a direction of a link.
    #[inline(always)] // for every packet that enters a link
    pub fn passage(&self, at: LinkDirection) -> Passage {
        self.steps[at.index()].passage
    }

    /// A direction with [`Passage::Queued`], and the lists for its calls.
    #[inline(always)] // for every packet of a queue
    pub fn queued(
        &mut self,
        at: LinkDirection,
    ) -> Option<(&mut QueuedDirection<P>, &mut Passed<P>)> {
        let queue = self.links[at.link()].queued(at.timer())?;
        Some((queue, &mut self.passed))
    }

    /// All packets that may leave such a direction now.
    pub fn send_all(&mut self, now_ns: u64, at: LinkDirection) -> Batch {
        let begin = self.passed.out.len();
        if let Some((queue, passed)) = self.queued(at) {
            queue.send_all(now_ns, passed);
        }
        Batch { timer: at, begin }
    }

    /// A packet enters a link with [`Passage::Offered`].
    pub fn offer(&mut self, now_ns: u64, at: LinkDirection, packet: &P) -> Batch {
        let begin = self.passed.out.len();
        let link = &mut self.links[at.link()];
        link.offer(now_ns, at.direction(), *packet, &mut self.passed);
        let timer = Direction::of_index(link.timer(at.direction()));
        Batch {
            timer: LinkDirection::new(at.link(), timer),
            begin,
        }
    }

    /// The timer of a link with [`Passage::Offered`] expired.
    pub fn advance(&mut self, now_ns: u64, timer: LinkDirection) -> Batch {
        let begin = self.passed.out.len();
        self.links[timer.link()].advance(now_ns, timer.timer(), &mut self.passed);
        Batch { timer, begin }
    }

    /// When a link's timer is due; `None`: not before another packet arrives.
    pub fn due_ns(&self, timer: LinkDirection) -> Option<u64> {
        self.links[timer.link()].due_ns(timer.timer())
    }

    /// Whether nothing happened to any packet: the one that was offered waits.
    pub fn is_unchanged(&self, batch: &Batch) -> bool {
        let passed = &self.passed;
        passed.out.len() == batch.begin && passed.dropped.is_empty() && passed.duplicated.is_empty()
    }

    /// Positions of a batch's packets, each for [`Self::exit`].
    pub fn exits(&self, batch: &Batch) -> std::ops::Range<usize> {
        batch.begin..self.passed.out.len()
    }

    /// A packet that a link passed.
    pub fn exit(&self, position: usize) -> Exit<P> {
        self.passed.out[position]
    }

    /// All packets of a batch were moved on: removes them.
    pub fn end_batch(&mut self, batch: &Batch) {
        self.passed.out.truncate(batch.begin);
    }

    /// Whether links have dropped packets that were not taken by [`Self::pop_dropped`].
    #[inline(always)] // mostly there are none
    pub fn has_dropped(&self) -> bool {
        !self.passed.dropped.is_empty()
    }

    /// A packet that a link dropped or lost.
    pub fn pop_dropped(&mut self) -> Option<P> {
        self.passed.dropped.pop()
    }

    /// A copy of a packet that a link made.
    pub fn pop_duplicated(&mut self) -> Option<P> {
        self.passed.duplicated.pop()
    }

    /// A packet left a link for the next one, which it reaches at `at_ns`.
    pub fn carry(&mut self, now_ns: u64, at: LinkDirection, at_ns: u64, packet: &P) -> Carried {
        self.steps[at.index()].onward.carry(now_ns, at_ns, packet)
    }

    /// A packet that has reached the next link.
    pub fn arrived(&mut self, now_ns: u64, at: LinkDirection) -> Option<P> {
        let onward = &mut self.steps[at.index()].onward;
        let packet = *onward.ready(now_ns)?;
        onward.leave();
        Some(packet)
    }

    /// When the first packet on its way from this link reaches the next one.
    pub fn arrival_ns(&self, at: LinkDirection) -> Option<u64> {
        self.steps[at.index()].onward.due_ns()
    }
}

#[cfg(test)]
mod tests;
