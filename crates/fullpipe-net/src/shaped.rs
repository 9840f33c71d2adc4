//! A rate and what waits for it: constant, in steps, or a trace of delivery opportunities.

use fullpipe_plan::traces::RateTrace;
use fullpipe_plan::Wire as Plan;

use crate::link::DirectionState;
use crate::opportunities::Opportunities;
use crate::queue::Queue;
use crate::schedule::Schedule;
use crate::shaper::Shaper;
use crate::Packet;

/// Bytes of credit that the testbeds give htb: one packet and a bit.
pub(crate) const BURST_BYTES: u32 = 1600;

/// No time.
pub(crate) const NEVER_NS: u64 = u64::MAX;

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

/// A queue behind which packets pass at a rate.
#[derive(Debug)]
pub(crate) struct Shaped<P> {
    pub(crate) queue: Queue<P>,
    pace: Pace<P>,
    pub(crate) rate_bps: u64,
    /// When waiting packets may leave; [`NEVER_NS`]: none wait.
    pub(crate) due_ns: u64,
}

impl<P: Packet> Shaped<P> {
    pub(crate) fn new(
        wire: &Plan,
        rate_bps: u64,
        seed: u64,
        mtu_bytes: u32,
    ) -> Result<Self, String> {
        let plan = &wire.qdisc;
        Ok(Self {
            queue: Queue::with_mtu(plan, rate_bps, seed, mtu_bytes),
            pace: Self::pace(wire, rate_bps)?,
            rate_bps,
            due_ns: NEVER_NS,
        })
    }

    fn pace(wire: &Plan, rate_bps: u64) -> Result<Pace<P>, String> {
        if wire.qdisc.shapes() {
            return match (wire.rate_steps.is_empty(), &wire.rate_trace) {
                (true, None) => Ok(Pace::Queue),
                (false, _) => {
                    Err("rate_steps: a qdisc that keeps the rate itself keeps one rate".into())
                }
                (_, Some(_)) => {
                    Err("rate_trace: a qdisc that keeps the rate itself keeps one rate".into())
                }
            };
        }
        if let Some(file) = &wire.rate_trace {
            if !wire.rate_steps.is_empty() {
                return Err("rate_steps: a trace says all of the rate".into());
            }
            let trace = RateTrace::read(&file.path)
                .map_err(|error| format!("rate_trace: {}: {error}", file.path))?;
            return Ok(Pace::Trace(Opportunities::new(trace)));
        }
        let shaper = Shaper::new(rate_bps, BURST_BYTES);
        Ok(match Schedule::of_steps("rate_steps", &wire.rate_steps)? {
            None => Pace::Constant(shaper),
            Some(rates) => Pace::Steps(shaper, rates),
        })
    }

    /// The next packet that may pass; where there is none, when to ask again is known.
    pub(crate) fn next(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> Option<P> {
        if !self.chooses(now_ns, dropped) {
            return None;
        }
        let (burst, is_followed) = self.front()?;
        let packet = burst.first(is_followed);
        self.leave(now_ns);
        Some(packet)
    }

    /// The same in three steps, as the queue's ([`Queue::chooses`]).
    #[inline(always)]
    pub(crate) fn chooses(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> bool {
        match &self.pace {
            Pace::Constant(shaper) if shaper.ready_ns() <= now_ns => {
                self.queue_chooses(now_ns, dropped)
            }
            Pace::Constant(shaper) => {
                self.due_ns = self.if_any_wait(shaper.ready_ns());
                false
            }
            _ => self.chooses_otherwise(now_ns, dropped),
        }
    }

    #[inline(always)]
    fn queue_chooses(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> bool {
        let has_chosen = self.queue.chooses(now_ns, dropped);
        if !has_chosen {
            let ready_ns = self.queue.next_ready_ns(now_ns);
            self.due_ns = ready_ns.filter(|&at_ns| at_ns > now_ns).unwrap_or(NEVER_NS);
        }
        has_chosen
    }

    #[inline(never)]
    fn chooses_otherwise(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> bool {
        // A queue that keeps the rate itself has nothing to hand out before its time.
        while matches!(self.pace, Pace::Queue) || self.may_pass(now_ns) {
            if let Pace::Trace(trace) = &mut self.pace {
                if trace.begun().is_some() {
                    match trace.completes() {
                        true => return true,
                        false => continue,
                    }
                }
            }
            if !self.queue_chooses(now_ns, dropped) {
                return false;
            }
            let Pace::Trace(trace) = &mut self.pace else {
                return true;
            };
            match self.queue.front() {
                Some((burst, is_followed)) if !trace.holds(burst.wire_bytes()) => {
                    let packet = burst.first(is_followed);
                    trace.begin(packet, self.queue.leave());
                }
                _ => return true,
            }
        }
        false
    }

    #[inline(always)]
    pub(crate) fn front(&self) -> Option<(&P, bool)> {
        match &self.pace {
            Pace::Trace(trace) => match trace.begun() {
                Some(packet) => Some((packet, false)),
                None => self.queue.front(),
            },
            _ => self.queue.front(),
        }
    }

    /// The packet leaves; when the next one may is known.
    #[inline(always)]
    pub(crate) fn leave(&mut self, now_ns: u64) {
        if let Pace::Constant(shaper) = &mut self.pace {
            shaper.charge(now_ns, self.queue.leave());
            let ready_ns = shaper.ready_ns();
            // A queue that may hand out a packet is asked for one even if it is empty: RED, CoDel and PIE
            // take note of that.
            self.due_ns = match ready_ns <= now_ns {
                true => now_ns,
                false => self.if_any_wait(ready_ns),
            };
        } else {
            self.leave_otherwise(now_ns);
        }
    }

    #[inline(never)]
    fn leave_otherwise(&mut self, now_ns: u64) {
        match &mut self.pace {
            Pace::Trace(trace) if trace.begun().is_some() => trace.end(),
            Pace::Trace(trace) => trace.charge(self.queue.leave()),
            Pace::Constant(shaper) | Pace::Steps(shaper, _) => {
                shaper.charge(now_ns, self.queue.leave())
            }
            Pace::Queue => {
                self.queue.leave();
            }
        }
        if self.may_pass(now_ns) {
            self.due_ns = now_ns;
        }
    }

    #[inline(always)]
    fn if_any_wait(&self, at_ns: u64) -> u64 {
        match self.queue.is_empty() {
            true => NEVER_NS,
            false => at_ns,
        }
    }

    /// Whether the rate lets a packet pass now; if not, when to ask again is known.
    fn may_pass(&mut self, now_ns: u64) -> bool {
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
                    // Nothing passes until the next step.
                    let next_ns = rates.next_ns().unwrap_or(NEVER_NS);
                    self.due_ns = self.if_any_wait(next_ns);
                    return false;
                }
                shaper.ready_ns()
            }
            Pace::Trace(trace) => {
                let ready_ns = trace.ready_ns(now_ns);
                if ready_ns > now_ns {
                    let waits = trace.begun().is_some() || !self.queue.is_empty();
                    self.due_ns = if waits { ready_ns } else { NEVER_NS };
                    return false;
                }
                ready_ns
            }
        };
        if ready_ns > now_ns {
            self.due_ns = self.if_any_wait(ready_ns);
            return false;
        }
        true
    }

    /// What can be sampled.
    pub(crate) fn state(&self) -> DirectionState {
        DirectionState {
            queue_bytes: self.queue.bytes(),
            queue_packets: self.queue.packets() as u64,
            counters: self.queue.counters(),
            ..DirectionState::default()
        }
    }
}
