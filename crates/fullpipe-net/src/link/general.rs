//! A direction of a wire that may have all that a plan can ask for: loss, impairments, a queue with its
//! rate or none, a delay that changes.

use super::contract::Passage;
use super::params::WireDirection as Params;
use super::passed::{Direction, DirectionState, Exit, Passed};
use super::shaped::{Shaped, NEVER_NS};
use crate::impair::delay_limit::DelayLimit;
use crate::impair::gilbert::GilbertElliott;
use crate::impair::loss::LossGate;
use crate::impair::policer::Policer;
use crate::impair::Impairments;
use crate::packet::Packet;
use crate::rng::{derive_seed, purpose};
use crate::trace::schedule::Schedule;
use crate::trace::DelayTrace;

#[derive(Debug)]
pub(super) struct GeneralDirection<P> {
    direction: Direction,
    loss: Option<LossGate>,
    /// `None`: not limited, no queue.
    shaped: Option<Shaped<P>>,
    delay_ns: u64,
    /// `None`: the delay never changes.
    delays: Option<Schedule>,
    /// When the last packet reaches the far end, if delays change: none overtakes it.
    last_exit_ns: u64,
    impairments: Option<Box<Impairments<P>>>,
}

impl<P: Packet> GeneralDirection<P> {
    /// `index` is the direction's among those of all links. The error names a key.
    pub(super) fn new(
        params: &Params,
        direction: Direction,
        index: u32,
        seed: u64,
        mtu_bytes: u32,
    ) -> Result<Self, String> {
        if params.rate_bps == Some(0) {
            return Err("rate_bps: must be above 0".into());
        }
        let queue_seed = derive_seed(seed, purpose::QUEUE, index);
        let impairments = match &params.impairments {
            Some(impairments) => Impairments::new(impairments, seed, index)?,
            None => None,
        };
        Ok(Self {
            direction,
            loss: loss(params, derive_seed(seed, purpose::LINK_LOSS, index))?,
            shaped: params
                .rate_bps
                .map(|rate_bps| Shaped::new(params, rate_bps, queue_seed, mtu_bytes))
                .transpose()?,
            delay_ns: params.delay_ns,
            delays: delays(params)?,
            last_exit_ns: 0,
            impairments: impairments.map(Box::new),
        })
    }

    pub(super) fn offer(&mut self, now_ns: u64, packet: P, passed: &mut Passed<P>) {
        let impairments = self.impairments.as_mut();
        if impairments.is_some_and(|impairments| impairments.duplicates()) {
            // Both copies may be lost. (netem never loses both, netem_enqueue(): a difference of the
            // square of the loss.)
            passed.duplicated.push(packet);
            self.lose_or_enqueue(now_ns, packet, passed);
        }
        self.lose_or_enqueue(now_ns, packet, passed);
    }

    #[inline]
    fn lose_or_enqueue(&mut self, now_ns: u64, mut packet: P, passed: &mut Passed<P>) {
        let passes = (self.loss.as_mut()).is_none_or(|loss| {
            loss.advance(now_ns);
            loss.passes(&mut packet)
        });
        if passes && self.conforms(now_ns, &packet) {
            self.enqueue(now_ns, packet, passed);
        } else {
            passed.dropped.push(packet);
        }
    }

    /// Whether the policer lets a packet pass.
    fn conforms(&mut self, now_ns: u64, packet: &P) -> bool {
        let impairments = self.impairments.as_mut();
        let policer = impairments.and_then(|impairments| impairments.policer.as_mut());
        policer.is_none_or(|policer| policer.passes(now_ns, packet.wire_bytes()))
    }

    #[inline]
    fn enqueue(&mut self, now_ns: u64, packet: P, passed: &mut Passed<P>) {
        let Some(shaped) = &mut self.shaped else {
            self.hold_or_send(now_ns, packet, passed);
            return;
        };
        shaped.queue.enqueue(now_ns, packet, &mut passed.dropped);
        if shaped.due_ns == NEVER_NS {
            self.serve(now_ns, passed);
        }
    }

    pub(super) fn advance(&mut self, now_ns: u64, passed: &mut Passed<P>) {
        if let Some(shaped) = &mut self.shaped {
            if shaped.due_ns <= now_ns {
                shaped.due_ns = NEVER_NS;
                self.serve(now_ns, passed);
            }
        }
        self.release_held(now_ns, passed);
    }

    /// When [`Self::advance`] must be called next; [`NEVER_NS`]: not before a packet has arrived.
    pub(super) fn due_ns(&self) -> u64 {
        let shaped_ns = self
            .shaped
            .as_ref()
            .map_or(NEVER_NS, |shaped| shaped.due_ns);
        let impairments = self.impairments.as_ref();
        let hold = impairments.and_then(|impairments| impairments.hold.as_ref());
        let hold_ns = hold.and_then(|hold| hold.due_ns()).unwrap_or(NEVER_NS);
        shaped_ns.min(hold_ns)
    }

    /// Takes the packets from the queue that the rate lets leave now.
    fn serve(&mut self, now_ns: u64, passed: &mut Passed<P>) {
        while let Some(shaped) = &mut self.shaped {
            let Some(packet) = shaped.next(now_ns, &mut passed.dropped) else {
                return;
            };
            self.hold_or_send(now_ns, packet, passed);
        }
    }

    #[inline]
    fn hold_or_send(&mut self, now_ns: u64, packet: P, passed: &mut Passed<P>) {
        let impairments = self.impairments.as_mut();
        match impairments.and_then(|impairments| impairments.hold.as_mut()) {
            None => self.send(now_ns, packet, passed),
            Some(hold) => {
                hold.put(now_ns, packet);
                self.release_held(now_ns, passed);
            }
        }
    }

    /// Sends the group of held packets if it is due.
    fn release_held(&mut self, now_ns: u64, passed: &mut Passed<P>) {
        let Some(impairments) = &mut self.impairments else {
            return;
        };
        let Some(mut hold) = impairments.hold.take() else {
            return;
        };
        for packet in hold.release(now_ns) {
            self.send(now_ns, packet, passed);
        }
        if let Some(impairments) = &mut self.impairments {
            impairments.hold = Some(hold);
        }
    }

    #[inline]
    fn send(&mut self, now_ns: u64, packet: P, passed: &mut Passed<P>) {
        if let Some(delays) = &mut self.delays {
            self.delay_ns = delays.changed(now_ns).unwrap_or(self.delay_ns);
            self.last_exit_ns = self.last_exit_ns.max(now_ns + self.delay_ns);
        }
        let at_ns = self.last_exit_ns.max(now_ns + self.delay_ns);
        let exit_ns = match &mut self.impairments {
            None => Some(at_ns),
            Some(impairments) => impairments.exit_ns(now_ns, at_ns),
        };
        let Some(at_ns) = exit_ns else {
            passed.dropped.push(packet);
            return;
        };
        passed.out.push(Exit {
            at_ns,
            direction: self.direction,
            packet,
        });
    }

    /// A delay without anything else needs no calls.
    pub(super) fn passage(&self) -> Passage {
        let is_more = self.loss.is_some()
            || self.shaped.is_some()
            || self.delays.is_some()
            || self.impairments.is_some();
        match is_more {
            true => Passage::Offered,
            false => Passage::Delayed(self.delay_ns),
        }
    }

    pub(super) fn state(&self) -> Option<DirectionState> {
        if self.shaped.is_none() && self.impairments.is_none() {
            return None;
        }
        let mut state = DirectionState {
            lost_packets: self.loss.as_ref().map_or(0, LossGate::lost),
            marked_packets: self.loss.as_ref().map_or(0, LossGate::marked),
            ..self.shaped.as_ref().map(Shaped::state).unwrap_or_default()
        };
        let impairments = self.impairments.as_ref();
        let policer = impairments.and_then(|impairments| impairments.policer.as_ref());
        state.counters.dropped_packets += policer.map_or(0, Policer::dropped);
        let limit = impairments.and_then(|impairments| impairments.delay_limit.as_ref());
        state.counters.dropped_packets += limit.map_or(0, DelayLimit::dropped);
        Some(state)
    }
}

/// Random loss, independent or by a Gilbert-Elliott chain.
fn loss(params: &Params, seed: u64) -> Result<Option<LossGate>, String> {
    let impairments = params.impairments.as_ref();
    let chain = impairments.and_then(|impairments| impairments.gemodel.as_ref());
    match (&params.loss, chain) {
        (Some(_), Some(_)) => Err("gemodel: excludes loss".into()),
        (Some(loss), None) => Ok(Some(LossGate::new(loss, seed))),
        (None, Some(chain)) => Ok(Some(LossGate::in_bursts(GilbertElliott::new(chain, seed)))),
        (None, None) => Ok(None),
    }
}

/// Delays that change; `None`: the delay is constant.
fn delays(params: &Params) -> Result<Option<Schedule>, String> {
    let Some(file) = &params.delay_trace else {
        return Schedule::of_steps("delay_steps", &params.delay_steps);
    };
    if !params.delay_steps.is_empty() {
        return Err("delay_steps: delay_trace defines all of the delay".into());
    }
    DelayTrace::read(&file.path)
        .map(|trace| Some(Schedule::repeated(trace)))
        .map_err(|error| format!("delay_trace: {}: {error}", file.path))
}
