//! A full-duplex wire: each way has its own chance of loss, queue, rate, delay and damage.

use fullpipe_plan::traces::DelayTrace;
use fullpipe_plan::Wire as Plan;

use crate::damage::Damage;
use crate::gilbert::GilbertElliott;
use crate::link::{Direction, DirectionState, Exit, Link, Passed};
use crate::loss::LossGate;
use crate::queued::QueuedDirection;
use crate::rng::{derive_seed, purpose};
use crate::schedule::Schedule;
use crate::shaped::{Shaped, NEVER_NS};
use crate::Packet;

/// Both ways.
#[derive(Debug)]
pub struct Wire<P> {
    directions: [WireDirection<P>; 2],
}

/// One way: what it is, is settled when it is made.
#[derive(Debug)]
enum WireDirection<P> {
    Queued(QueuedDirection<P>),
    General(Box<GeneralDirection<P>>),
}

macro_rules! each {
    ($direction:expr, $kind:ident => $call:expr) => {
        match $direction {
            WireDirection::Queued($kind) => $call,
            WireDirection::General($kind) => $call,
        }
    };
}

impl<P: Packet> Wire<P> {
    /// From the plan of its two ways; the error names what this engine lacks.
    pub fn new(plans: [&Plan; 2], index: u32, seed: u64, mtu_bytes: u32) -> Result<Self, String> {
        let direction = |plan, direction: Direction| {
            let index = 2 * index + direction as u32;
            if let Some(queued) = QueuedDirection::new(plan, direction, index, seed, mtu_bytes)? {
                return Ok(WireDirection::Queued(queued));
            }
            GeneralDirection::new(plan, direction, index, seed, mtu_bytes)
                .map(|general| WireDirection::General(Box::new(general)))
        };
        Ok(Self {
            directions: [
                direction(plans[0], Direction::Forward)?,
                direction(plans[1], Direction::Reverse)?,
            ],
        })
    }

    /// The way with this index, if it is a queue, a rate and a delay and not much else.
    #[inline]
    pub(crate) fn queued(&mut self, direction: usize) -> Option<&mut QueuedDirection<P>> {
        match &mut self.directions[direction] {
            WireDirection::Queued(queued) => Some(queued),
            _ => None,
        }
    }
}

impl<P: Packet> Link<P> for Wire<P> {
    fn timer(&self, direction: Direction) -> usize {
        direction.index()
    }

    fn offer(&mut self, now_ns: u64, direction: Direction, packet: P, passed: &mut Passed<P>) {
        each!(&mut self.directions[direction.index()], direction => direction.offer(now_ns, packet, passed));
    }

    fn advance(&mut self, now_ns: u64, timer: usize, passed: &mut Passed<P>) {
        each!(&mut self.directions[timer], direction => direction.advance(now_ns, passed));
    }

    fn due_ns(&self, timer: usize) -> Option<u64> {
        match &self.directions[timer] {
            WireDirection::Queued(queued) => some_time(queued.due_ns()),
            WireDirection::General(general) => general.due_ns(),
        }
    }

    fn constant_delay_ns(&self, direction: Direction) -> Option<u64> {
        match &self.directions[direction.index()] {
            WireDirection::Queued(_) => None,
            WireDirection::General(general) => general.constant_delay_ns(),
        }
    }

    fn state(&self, direction: Direction) -> Option<DirectionState> {
        match &self.directions[direction.index()] {
            WireDirection::Queued(queued) => Some(queued.state()),
            WireDirection::General(general) => general.state(),
        }
    }
}

#[derive(Debug)]
struct GeneralDirection<P> {
    direction: Direction,
    loss: Option<LossGate>,
    /// `None`: not limited, no queue.
    shaped: Option<Shaped<P>>,
    delay_ns: u64,
    /// `None`: the delay never changes.
    delays: Option<Schedule>,
    /// When the last packet comes out, where delays change: none overtakes it.
    last_exit_ns: u64,
    damage: Option<Box<Damage<P>>>,
}

impl<P: Packet> GeneralDirection<P> {
    fn new(
        plan: &Plan,
        direction: Direction,
        index: u32,
        seed: u64,
        mtu_bytes: u32,
    ) -> Result<Self, String> {
        if plan.rate_bps == Some(0) {
            return Err("rate_bps: must be above 0".into());
        }
        let queue_seed = derive_seed(seed, purpose::RED, index);
        let loss_seed = derive_seed(seed, purpose::LINK_LOSS, index);
        let damage = plan.damage.as_ref();
        let bursts = damage.and_then(|damage| damage.gemodel.as_ref());
        Ok(Self {
            direction,
            loss: match (&plan.loss, bursts) {
                (Some(_), Some(_)) => return Err("gemodel: and loss: one of them decides".into()),
                (Some(loss), None) => Some(LossGate::new(loss, loss_seed)),
                (None, Some(chain)) => {
                    Some(LossGate::in_bursts(GilbertElliott::new(chain, loss_seed)))
                }
                (None, None) => None,
            },
            shaped: plan
                .rate_bps
                .map(|rate_bps| Shaped::new(plan, rate_bps, queue_seed, mtu_bytes))
                .transpose()?,
            delay_ns: plan.delay_ns,
            delays: delays(plan)?,
            last_exit_ns: 0,
            damage: damage
                .map(|damage| Damage::new(damage, seed, index))
                .transpose()?
                .flatten()
                .map(Box::new),
        })
    }

    fn offer(&mut self, now_ns: u64, packet: P, passed: &mut Passed<P>) {
        if self
            .damage
            .as_mut()
            .is_some_and(|damage| damage.duplicates())
        {
            // Each may be lost by itself. (netem never loses both, netem_enqueue(): a difference of the
            // square of the loss.)
            passed.duplicated.push(packet);
            self.pass_by_chance(now_ns, packet, passed);
        }
        self.pass_by_chance(now_ns, packet, passed);
    }

    #[inline]
    fn pass_by_chance(&mut self, now_ns: u64, mut packet: P, passed: &mut Passed<P>) {
        if self.is_lost(&mut packet) {
            passed.dropped.push(packet);
        } else {
            self.enter(now_ns, packet, passed);
        }
    }

    fn is_lost(&mut self, packet: &mut P) -> bool {
        self.loss.as_mut().is_some_and(|loss| !loss.passes(packet))
    }

    /// A packet that was not lost comes to the policer, and then to the queue.
    #[inline]
    fn enter(&mut self, now_ns: u64, packet: P, passed: &mut Passed<P>) {
        let policer = self
            .damage
            .as_mut()
            .and_then(|damage| damage.policer.as_mut());
        if policer.is_some_and(|policer| !policer.passes(now_ns, packet.wire_bytes())) {
            passed.dropped.push(packet);
            return;
        }
        let Some(shaped) = &mut self.shaped else {
            self.exit(now_ns, packet, passed);
            return;
        };
        shaped.queue.enqueue(now_ns, packet, &mut passed.dropped);
        if shaped.due_ns == NEVER_NS {
            self.serve(now_ns, passed);
        }
    }

    fn advance(&mut self, now_ns: u64, passed: &mut Passed<P>) {
        if let Some(shaped) = &mut self.shaped {
            if shaped.due_ns <= now_ns {
                shaped.due_ns = NEVER_NS;
                self.serve(now_ns, passed);
            }
        }
        self.release(now_ns, passed);
    }

    fn due_ns(&self) -> Option<u64> {
        let shaped_ns = (self.shaped.as_ref()).and_then(|shaped| some_time(shaped.due_ns));
        let Some(damage) = &self.damage else {
            return shaped_ns;
        };
        let hold_ns = damage.hold.as_ref().and_then(|hold| hold.due_ns());
        shaped_ns.into_iter().chain(hold_ns).min()
    }

    /// Passes what the rate allows.
    fn serve(&mut self, now_ns: u64, passed: &mut Passed<P>) {
        while let Some(shaped) = &mut self.shaped {
            let Some(packet) = shaped.next(now_ns, &mut passed.dropped) else {
                return;
            };
            self.exit(now_ns, packet, passed);
        }
    }

    /// A packet leaves the queue: it waits for others, where they wait for one another.
    #[inline]
    fn exit(&mut self, now_ns: u64, packet: P, passed: &mut Passed<P>) {
        match self.damage.as_mut().and_then(|damage| damage.hold.as_mut()) {
            None => self.depart(now_ns, packet, passed),
            Some(hold) => {
                hold.put(now_ns, packet);
                self.release(now_ns, passed);
            }
        }
    }

    /// Lets those go that have waited for one another.
    fn release(&mut self, now_ns: u64, passed: &mut Passed<P>) {
        let Some(damage) = &mut self.damage else {
            return;
        };
        let Some(mut hold) = damage.hold.take() else {
            return;
        };
        for packet in hold.release(now_ns) {
            self.depart(now_ns, packet, passed);
        }
        if let Some(damage) = &mut self.damage {
            damage.hold = Some(hold);
        }
    }

    #[inline]
    fn depart(&mut self, now_ns: u64, packet: P, passed: &mut Passed<P>) {
        if let Some(delays) = &mut self.delays {
            self.delay_ns = delays.changed(now_ns).unwrap_or(self.delay_ns);
            self.last_exit_ns = self.last_exit_ns.max(now_ns + self.delay_ns);
        }
        let at_ns = self.last_exit_ns.max(now_ns + self.delay_ns);
        passed.out.push(Exit {
            at_ns: match &mut self.damage {
                None => at_ns,
                Some(damage) => damage.exit_ns(now_ns, at_ns),
            },
            direction: self.direction,
            packet,
        });
    }

    fn constant_delay_ns(&self) -> Option<u64> {
        let changes = self.loss.is_some()
            || self.shaped.is_some()
            || self.delays.is_some()
            || self.damage.is_some();
        (!changes).then_some(self.delay_ns)
    }

    fn state(&self) -> Option<DirectionState> {
        if self.shaped.is_none() && self.damage.is_none() {
            return None;
        }
        let (lost_packets, marked_packets) = self
            .loss
            .as_ref()
            .map_or((0, 0), |loss| (loss.lost(), loss.marked()));
        let mut state = DirectionState {
            lost_packets,
            marked_packets,
            ..self.shaped.as_ref().map(Shaped::state).unwrap_or_default()
        };
        let policer = self
            .damage
            .as_ref()
            .and_then(|damage| damage.policer.as_ref());
        state.counters.dropped_packets += policer.map_or(0, |policer| policer.dropped());
        Some(state)
    }
}

/// A time, where `u64::MAX` is none.
fn some_time(at_ns: u64) -> Option<u64> {
    (at_ns != u64::MAX).then_some(at_ns)
}

/// Delays that change; `None`: it never does.
fn delays(plan: &Plan) -> Result<Option<Schedule>, String> {
    let Some(file) = &plan.delay_trace else {
        return Schedule::of_steps("delay_steps", &plan.delay_steps);
    };
    if !plan.delay_steps.is_empty() {
        return Err("delay_steps: a trace says all of the delay".into());
    }
    DelayTrace::read(&file.path)
        .map(|trace| Some(Schedule::repeated(trace)))
        .map_err(|error| format!("delay_trace: {}: {error}", file.path))
}
