//! Between the row of links and a host: loss at the senders' egress, and a delay line with jitter for each
//! flow and direction. Must never know what a packet carries.

use fullpipe_net::impair::jitter::JitterSource;
use fullpipe_net::impair::loss::LossGate;
use fullpipe_net::{derive_seed, purpose, DelayLine, Direction};
use fullpipe_plan::{Flow, Plan};

use crate::agenda::{Agenda, Alarm, Event, NEVER_NS};
use crate::packet::InFlight;

/// Loss at the egress of all hosts, in each direction.
pub(crate) struct EgressLoss([Option<LossGate>; 2]);

impl EgressLoss {
    pub(super) fn new(plan: &Plan) -> Self {
        let gate = |loss: &Option<_>, purpose| {
            loss.as_ref()
                .map(|loss| LossGate::new(loss, derive_seed(plan.seed, purpose, 0)))
        };
        Self([
            gate(&plan.access.loss, purpose::LOSS),
            gate(&plan.access.reverse_loss, purpose::REVERSE_LOSS),
        ])
    }

    /// Whether packets are neither lost nor marked in this direction.
    pub(crate) fn is_none(&self, direction: Direction) -> bool {
        self.0[direction.index()].is_none()
    }

    /// False if the packet is lost; it may be marked.
    pub(crate) fn passes(&mut self, direction: Direction, packet: &mut InFlight) -> bool {
        self.0[direction.index()]
            .as_mut()
            .is_none_or(|gate| gate.passes(packet))
    }

    /// Packets lost and marked so far, in each direction.
    pub(crate) fn totals(&self) -> [(u64, u64); 2] {
        let totals = |gate: &LossGate| (gate.lost(), gate.marked());
        self.0
            .each_ref()
            .map(|gate| gate.as_ref().map_or((0, 0), totals))
    }
}

/// No link.
const NO_LINK: usize = usize::MAX;

/// The delay line of a flow in one direction.
pub(crate) struct AccessLine {
    packets: DelayLine<InFlight>,
    delay_ns: u64,
    /// The event for the first packet.
    alarm: Alarm,
    jitter: Option<JitterSource>,
    /// The last link of the route if packets reach the host without delay behind it; else [`NO_LINK`].
    open_behind: usize,
}

impl AccessLine {
    /// `last_link`: the last link of the route, if the host takes packets at no cost.
    fn new(delay_ns: u64, jitter: Option<JitterSource>, last_link: Option<u16>) -> Self {
        let is_open = delay_ns == 0 && jitter.is_none();
        Self {
            packets: DelayLine::default(),
            delay_ns,
            alarm: Alarm::default(),
            jitter,
            open_behind: last_link.filter(|_| is_open).map_or(NO_LINK, usize::from),
        }
    }

    /// Whether packets that leave this link are at their host at once.
    #[inline]
    pub(super) fn is_open_behind(&self, link: usize) -> bool {
        self.open_behind == link && self.packets.is_empty()
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
        let released_ns = match &mut self.jitter {
            Some(jitter) => jitter.release_ns(at_ns),
            None => at_ns,
        };
        let due_ns = released_ns + self.delay_ns;
        if due_ns <= agenda.now_ns() && self.packets.is_empty() {
            return true;
        }
        if self.packets.push(due_ns, packet).is_some() {
            self.await_first(agenda, index);
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
        self.packets.ready(now_ns)
    }

    /// Removes the first packet.
    #[inline(always)] // for every ACK
    pub(crate) fn leave(&mut self) {
        self.packets.leave();
    }

    /// When the next packet reaches its host, unless an event is scheduled already; [`NEVER_NS`] then, and
    /// without packets.
    #[inline(always)] // for every ACK
    pub(crate) fn unscheduled_ns(&self) -> u64 {
        match self.packets.due_ns() {
            Some(due_ns) if !self.alarm.is_set() => due_ns,
            _ => NEVER_NS,
        }
    }

    #[inline(never)]
    fn await_first(&mut self, agenda: &mut Agenda, index: usize) {
        self.await_next(agenda, index);
    }

    /// Schedules the event for the first packet.
    #[inline(always)] // behind every ACK
    pub(crate) fn await_next(&mut self, agenda: &mut Agenda, index: usize) {
        if let Some(due_ns) = self.packets.due_ns() {
            let event = Event::Access(index as u32);
            self.alarm.set(agenda, due_ns, event);
        }
    }
}

/// The lines of a flow id: behind the row forward, and behind it in reverse, where jitter is.
pub(crate) fn access_lines(plan: &Plan, flow: Option<&Flow>, flow_id: u32) -> [AccessLine; 2] {
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
    [
        AccessLine::new(forward_ns, None, route.map(|route| route.leave)),
        AccessLine::new(reverse_ns, source, route.map(|route| route.enter)),
    ]
}
