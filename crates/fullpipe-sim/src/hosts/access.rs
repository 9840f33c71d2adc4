//! Between the row of links and a host, with its events: a delay line for each flow and direction, and loss at
//! the senders' egress. Must never know what a packet carries.

use fullpipe_net::impair::jitter::JitterSource;
use fullpipe_net::{derive_seed, purpose, AccessLine, Carried, EgressLoss, LinkDirection};
use fullpipe_plan::{Flow, Plan};

use crate::agenda::{Agenda, Alarm, Event, NEVER_NS};
use crate::packet::InFlight;

/// Loss at the egress of all hosts of a plan.
pub(super) fn egress_loss(plan: &Plan) -> EgressLoss {
    let access = &plan.access;
    EgressLoss::new(
        access.loss.as_ref(),
        access.reverse_loss.as_ref(),
        plan.seed,
    )
}

/// No link.
const NO_LINK: usize = usize::MAX;

/// The access line of a flow in one direction, and the event for its first packet.
pub(crate) struct Line {
    line: AccessLine<InFlight>,
    alarm: Alarm,
    /// The last link of the route if packets reach the host without delay behind it; else [`NO_LINK`].
    open_behind: usize,
}

impl Line {
    /// `last_link`: the last link of the route, if the host takes packets at no cost.
    fn new(line: AccessLine<InFlight>, last_link: Option<u16>) -> Self {
        let open_behind = last_link.filter(|_| line.is_direct());
        Self {
            line,
            alarm: Alarm::default(),
            open_behind: open_behind.map_or(NO_LINK, usize::from),
        }
    }

    /// Whether packets that leave this link are at their host at once.
    #[inline]
    pub(super) fn is_open_behind(&self, last: LinkDirection) -> bool {
        self.open_behind == last.link() && self.line.is_empty()
    }

    /// A packet enters at `at_ns`. True if it reaches its host now and no other is ahead of it.
    #[inline(always)] // for every ACK
    pub(super) fn carries_now(
        &mut self,
        agenda: &mut Agenda,
        index: usize,
        at_ns: u64,
        packet: &InFlight,
    ) -> bool {
        match self.line.carry(agenda.now_ns(), at_ns, packet) {
            Carried::Through => return true,
            Carried::First(due_ns) => self.await_first(agenda, index, due_ns),
            Carried::Behind => {}
        }
        false
    }

    /// Whether the event of this line is the one that is meant.
    #[inline]
    pub(crate) fn rings(&mut self, now_ns: u64) -> bool {
        self.alarm.rings(now_ns)
    }

    /// The first packet, if it has reached its host.
    #[inline(always)] // a reference, as a returned packet would be copied twice
    pub(crate) fn ready(&self, now_ns: u64) -> Option<&InFlight> {
        self.line.ready(now_ns)
    }

    /// Removes the first packet.
    #[inline(always)] // for every ACK
    pub(crate) fn leave(&mut self) {
        self.line.leave();
    }

    /// When the next packet reaches its host, unless an event is scheduled already; [`NEVER_NS`] then, and
    /// without packets.
    #[inline(always)] // for every ACK
    pub(crate) fn unscheduled_ns(&self) -> u64 {
        match self.line.due_ns() {
            Some(due_ns) if !self.alarm.is_set() => due_ns,
            _ => NEVER_NS,
        }
    }

    #[inline(never)]
    fn await_first(&mut self, agenda: &mut Agenda, index: usize, due_ns: u64) {
        let event = Event::Access(index as u32);
        self.alarm.set(agenda, due_ns, event);
    }

    /// Schedules the event for the first packet.
    #[inline(always)] // behind every ACK
    pub(crate) fn await_next(&mut self, agenda: &mut Agenda, index: usize) {
        if let Some(due_ns) = self.line.due_ns() {
            let event = Event::Access(index as u32);
            self.alarm.set(agenda, due_ns, event);
        }
    }
}

/// The lines of a flow id: behind the row forward, and behind it in reverse, where jitter is.
pub(super) fn lines(plan: &Plan, flow: Option<&Flow>, flow_id: u32) -> [Line; 2] {
    let (forward_ns, reverse_ns) = plan.end_delays_ns(flow);
    let jitter = flow
        .and_then(|flow| flow.jitter.as_ref())
        .or(plan.access.jitter.as_ref());
    let source = jitter
        .filter(|jitter| jitter.max_ns > 0)
        .map(|jitter| JitterSource::new(jitter, derive_seed(plan.seed, purpose::JITTER, flow_id)));
    let route = flow
        .map(|flow| flow.route)
        .filter(|_| plan.host.work.is_none());
    let (forward, reverse) = (
        AccessLine::new(forward_ns, None),
        AccessLine::new(reverse_ns, source),
    );
    [
        Line::new(forward, route.map(|route| route.leave)),
        Line::new(reverse, route.map(|route| route.enter)),
    ]
}
