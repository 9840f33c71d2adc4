//! A queue and the rate at which its packets leave: constant, in steps, or a trace of delivery
//! opportunities.

use super::params::WireDirection as Params;
use super::passed::DirectionState;
use super::shaper::Shaper;
use crate::packet::Packet;
use crate::queue::Queue;
use crate::trace::opportunities::Opportunities;
use crate::trace::schedule::Schedule;
use crate::trace::RateTrace;

/// Credit that the testbeds give htb: one packet and a bit.
const BURST_BYTES: u32 = 1600;

/// No time.
pub(super) const NEVER_NS: u64 = u64::MAX;

/// What decides when the next packet may leave the queue.
#[derive(Debug)]
enum Pace<P> {
    /// A rate that never changes.
    Constant(Shaper),
    /// A rate that changes at the times of a schedule.
    Steps(Shaper, Schedule),
    /// Delivery opportunities.
    Trace(Opportunities<P>),
    /// The queue discipline itself.
    Queue,
}

/// A queue and its rate.
#[derive(Debug)]
pub(super) struct Shaped<P> {
    pub(super) queue: Queue<P>,
    pace: Pace<P>,
    rate_bps: u64,
    /// When a waiting packet may leave; [`NEVER_NS`]: none waits.
    pub(super) due_ns: u64,
}

impl<P: Packet> Shaped<P> {
    pub(super) fn new(
        params: &Params,
        rate_bps: u64,
        seed: u64,
        mtu_bytes: u32,
    ) -> Result<Self, String> {
        Ok(Self {
            queue: Queue::new(&params.qdisc, rate_bps, mtu_bytes, seed),
            pace: Self::pace(params, rate_bps)?,
            rate_bps,
            due_ns: NEVER_NS,
        })
    }

    fn pace(params: &Params, rate_bps: u64) -> Result<Pace<P>, String> {
        let has_steps = !params.rate_steps.is_empty();
        if params.qdisc.shapes() {
            let key = match &params.rate_trace {
                _ if has_steps => "rate_steps",
                Some(_) => "rate_trace",
                None => return Ok(Pace::Queue),
            };
            return Err(format!(
                "{key}: a qdisc that shapes itself has a constant rate"
            ));
        }
        if let Some(file) = &params.rate_trace {
            if has_steps {
                return Err("rate_steps: rate_trace defines all of the rate".into());
            }
            let trace = RateTrace::read(&file.path)
                .map_err(|error| format!("rate_trace: {}: {error}", file.path))?;
            return Ok(Pace::Trace(Opportunities::new(trace)));
        }
        let shaper = Shaper::new(rate_bps, BURST_BYTES).with_overhead(params.overhead);
        Ok(
            match Schedule::of_steps("rate_steps", &params.rate_steps)? {
                None => Pace::Constant(shaper),
                Some(rates) => Pace::Steps(shaper, rates),
            },
        )
    }

    /// Takes the next packet that may leave. `None`: none may, and `due_ns` is up to date.
    pub(super) fn next(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> Option<P> {
        if !self.choose(now_ns, dropped) {
            return None;
        }
        let (burst, is_followed) = self.front()?;
        let packet = burst.first_of_burst(is_followed);
        self.leave(now_ns);
        Some(packet)
    }

    /// The first of three steps that take a packet without copying it, as [`Queue::choose`].
    #[inline(always)] // the compiler then joins the matches of the three steps
    pub(super) fn choose(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> bool {
        match &self.pace {
            Pace::Constant(shaper) if shaper.ready_ns() <= now_ns => {
                self.choose_in_queue(now_ns, dropped)
            }
            Pace::Constant(shaper) => {
                self.due_ns = self.if_any_waits(shaper.ready_ns());
                false
            }
            _ => self.choose_at_pace(now_ns, dropped),
        }
    }

    /// An empty discipline is not asked: htb_dequeue_tree() only asks classes that hold packets, so
    /// that RED begins no idle period and fair queues keep a flow that is empty.
    #[inline(always)]
    fn choose_in_queue(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> bool {
        if self.queue.is_empty() {
            self.due_ns = NEVER_NS;
            return false;
        }
        let is_any = self.queue.choose(now_ns, dropped);
        if !is_any {
            let ready_ns = self.queue.next_ready_ns(now_ns);
            self.due_ns = ready_ns.filter(|&at_ns| at_ns > now_ns).unwrap_or(NEVER_NS);
        }
        is_any
    }

    #[inline(never)]
    fn choose_at_pace(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> bool {
        // A discipline that shapes hands out nothing before its time.
        while matches!(self.pace, Pace::Queue) || self.may_leave(now_ns) {
            if let Pace::Trace(trace) = &mut self.pace {
                if trace.begun().is_some() {
                    match trace.completes() {
                        true => return true,
                        false => continue,
                    }
                }
            }
            if !self.choose_in_queue(now_ns, dropped) {
                return false;
            }
            let Pace::Trace(trace) = &mut self.pace else {
                return true;
            };
            match self.queue.front() {
                Some((burst, is_followed)) if !trace.holds(burst.wire_bytes()) => {
                    let packet = burst.first_of_burst(is_followed);
                    trace.begin(packet, self.queue.leave());
                }
                _ => return true,
            }
        }
        false
    }

    /// The second step, as [`Queue::front`].
    #[inline(always)]
    pub(super) fn front(&self) -> Option<(&P, bool)> {
        match &self.pace {
            Pace::Trace(trace) => match trace.begun() {
                Some(packet) => Some((packet, false)),
                None => self.queue.front(),
            },
            _ => self.queue.front(),
        }
    }

    /// The third step: the chosen packet leaves, and `due_ns` is up to date.
    #[inline(always)]
    pub(super) fn leave(&mut self, now_ns: u64) {
        if let Pace::Constant(shaper) = &mut self.pace {
            shaper.charge(now_ns, self.queue.leave());
            let ready_ns = shaper.ready_ns();
            // htb asks even an empty queue for a packet while it has tokens: RED, CoDel and PIE take
            // note of that.
            self.due_ns = match ready_ns <= now_ns {
                true => now_ns,
                false => self.if_any_waits(ready_ns),
            };
        } else {
            self.leave_at_pace(now_ns);
        }
    }

    #[inline(never)]
    fn leave_at_pace(&mut self, now_ns: u64) {
        match &mut self.pace {
            Pace::Trace(trace) if trace.begun().is_some() => trace.end(),
            Pace::Trace(trace) => trace.charge(self.queue.leave()),
            Pace::Constant(shaper) | Pace::Steps(shaper, _) => {
                shaper.charge(now_ns, self.queue.leave());
            }
            Pace::Queue => {
                self.queue.leave();
            }
        }
        if self.may_leave(now_ns) {
            self.due_ns = now_ns;
        }
    }

    #[inline(always)]
    fn if_any_waits(&self, at_ns: u64) -> u64 {
        match self.queue.is_empty() {
            true => NEVER_NS,
            false => at_ns,
        }
    }

    /// Whether the rate lets a packet leave now. If not, `due_ns` is up to date.
    fn may_leave(&mut self, now_ns: u64) -> bool {
        let ready_ns = match &mut self.pace {
            Pace::Queue => match self.queue.next_ready_ns(now_ns) {
                Some(ready_ns) => ready_ns,
                None => {
                    self.due_ns = NEVER_NS;
                    return false;
                }
            },
            Pace::Constant(shaper) => shaper.ready_ns(),
            Pace::Steps(shaper, rates) => {
                if let Some(rate_bps) = rates.changed(now_ns) {
                    self.rate_bps = rate_bps;
                    if rate_bps > 0 {
                        shaper.set_rate(rate_bps, BURST_BYTES);
                    }
                }
                if self.rate_bps == 0 {
                    // An outage, until the next step.
                    let next_ns = rates.next_ns().unwrap_or(NEVER_NS);
                    self.due_ns = self.if_any_waits(next_ns);
                    return false;
                }
                shaper.ready_ns()
            }
            Pace::Trace(trace) => {
                let ready_ns = trace.ready_ns(now_ns);
                if ready_ns > now_ns {
                    let any_waits = trace.begun().is_some() || !self.queue.is_empty();
                    self.due_ns = if any_waits { ready_ns } else { NEVER_NS };
                    return false;
                }
                ready_ns
            }
        };
        if ready_ns > now_ns {
            self.due_ns = self.if_any_waits(ready_ns);
            return false;
        }
        true
    }

    /// A sample of the queue.
    pub(super) fn state(&self) -> DirectionState {
        DirectionState {
            queue_bytes: self.queue.bytes(),
            queue_packets: self.queue.packets() as u64,
            counters: self.queue.counters(),
            ..DirectionState::default()
        }
    }
}
