//! What lies between the row of links and a host: loss at its egress, own delay and jitter. Never
//! which host it is, or what it sends.

use fullpipe_net::impair::jitter::JitterSource;
use fullpipe_net::impair::loss::LossGate;
use fullpipe_net::{derive_seed, purpose, DelayLine, Direction};
use fullpipe_plan::{Flow, Plan};

use crate::packet::InFlight;

/// No event.
pub(crate) const NEVER_NS: u64 = u64::MAX;

/// Loss of what the hosts send in one direction or the other.
pub(crate) struct Egress([Option<LossGate>; 2]);

impl Egress {
    pub(crate) fn new(plan: &Plan) -> Self {
        let gate = |loss: &Option<_>, purpose| {
            loss.as_ref()
                .map(|loss| LossGate::new(loss, derive_seed(plan.seed, purpose, 0)))
        };
        Self([
            gate(&plan.ends.loss, purpose::LOSS),
            gate(&plan.ends.reverse_loss, purpose::REVERSE_LOSS),
        ])
    }

    /// Nothing is lost on this way, nor marked.
    pub(crate) fn is_open(&self, direction: Direction) -> bool {
        self.0[direction.index()].is_none()
    }

    /// False if the packet is gone.
    pub(crate) fn passes(&mut self, direction: Direction, packet: &mut InFlight) -> bool {
        self.0[direction.index()]
            .as_mut()
            .is_none_or(|gate| gate.passes(packet))
    }

    /// Packets lost and marked so far.
    pub(crate) fn totals(&self, direction: Direction) -> (u64, u64) {
        self.0[direction.index()]
            .as_ref()
            .map_or((0, 0), |gate| (gate.lost(), gate.marked()))
    }
}

/// A delay line, with jitter where there is any.
pub(crate) struct Line {
    pub(crate) packets: DelayLine<InFlight>,
    delay_ns: u64,
    /// When an event for the head is on the agenda; [`NEVER_NS`]: none is. One at another time is not for this line any
    /// more: it would live, and be put back, as long as the line holds packets.
    pub(crate) awaited_ns: u64,
    jitter: Option<JitterSource>,
    /// Between this link and the host there is nothing; [`NO_LINK`]: something is behind any.
    open_behind: usize,
}

/// No link.
const NO_LINK: usize = usize::MAX;

impl Line {
    /// `leaves`: behind which link packets leave the row for a host that takes them at once.
    fn new(delay_ns: u64, jitter: Option<JitterSource>, leaves: Option<u16>) -> Self {
        let is_open = delay_ns == 0 && jitter.is_none();
        Self {
            packets: DelayLine::default(),
            delay_ns,
            awaited_ns: NEVER_NS,
            jitter,
            open_behind: leaves.filter(|_| is_open).map_or(NO_LINK, usize::from),
        }
    }

    /// What comes from this link is at its host at once.
    #[inline]
    pub(crate) fn is_open_behind(&self, link: usize) -> bool {
        self.open_behind == link && self.packets.is_empty()
    }

    /// When a packet that enters at `at_ns` comes out.
    pub(crate) fn due_ns(&mut self, at_ns: u64) -> u64 {
        let released_ns = self
            .jitter
            .as_mut()
            .map_or(at_ns, |jitter| jitter.release_ns(at_ns));
        released_ns + self.delay_ns
    }
}

/// The lines of one owner: behind the row forward, and behind it on the way back, where jitter is.
pub(crate) fn lines(plan: &Plan, flow: Option<&Flow>, owner: u32) -> [Line; 2] {
    let (forward_ns, reverse_ns) = plan.end_delays_ns(flow);
    let jitter = flow
        .and_then(|flow| flow.jitter.as_ref())
        .or(plan.ends.jitter.as_ref());
    let source = jitter
        .filter(|jitter| jitter.max_ns > 0)
        .map(|jitter| JitterSource::new(jitter, derive_seed(plan.seed, purpose::JITTER, owner)));
    let route = flow
        .map(|flow| flow.route)
        .filter(|_| plan.host.work.is_none());
    [
        Line::new(forward_ns, None, route.map(|route| route.leave)),
        Line::new(reverse_ns, source, route.map(|route| route.enter)),
    ]
}
