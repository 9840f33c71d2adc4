//! A rate and what waits for it: constant, in steps, or a trace of delivery opportunities.

use fullpipe_plan::traces::RateTrace;
use fullpipe_plan::Wire as Plan;

use crate::link::WayState;
use crate::opportunities::Opportunities;
use crate::queue::Queue;
use crate::schedule::Schedule;
use crate::shaper::Shaper;
use crate::Packet;

/// Bytes of credit that the testbeds give htb: one packet and a bit.
pub(crate) const BURST_BYTES: u32 = 1600;

/// Who keeps the rate.
#[derive(Debug)]
enum Pace<P> {
    /// The queue itself.
    Queue,
    /// A shaper, whose rate may change.
    Shaper(Shaper, Option<Schedule>),
    /// A trace.
    Trace(Opportunities<P>),
}

/// A queue behind which packets pass at a rate.
#[derive(Debug)]
pub(crate) struct Shaped<P> {
    pub(crate) queue: Queue<P>,
    pace: Pace<P>,
    pub(crate) rate_bps: u64,
    /// Packets wait: they will be asked for at this time, not before.
    pub(crate) due_ns: Option<u64>,
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
            due_ns: None,
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
        let rates = Schedule::of_steps("rate_steps", &wire.rate_steps)?;
        Ok(Pace::Shaper(Shaper::new(rate_bps, BURST_BYTES), rates))
    }

    /// The next packet that may pass; where there is none, when to ask again is known.
    pub(crate) fn next(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> Option<P> {
        if !self.chooses(now_ns, dropped) {
            return None;
        }
        let (run, is_followed) = self.front()?;
        let packet = run.first(is_followed);
        self.leave(now_ns);
        Some(packet)
    }

    /// The same in three steps, as the queue's ([`Queue::chooses`]).
    #[inline]
    pub(crate) fn chooses(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> bool {
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
            if !self.queue.chooses(now_ns, dropped) {
                self.due_ns = later(self.queue.next_ready_ns(now_ns), now_ns);
                return false;
            }
            let Pace::Trace(trace) = &mut self.pace else {
                return true;
            };
            match self.queue.front() {
                Some((run, is_followed)) if !trace.holds(run.wire_bytes()) => {
                    let packet = run.first(is_followed);
                    trace.begin(packet, self.queue.leave());
                }
                _ => return true,
            }
        }
        false
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<(&P, bool)> {
        match &self.pace {
            Pace::Trace(trace) => match trace.begun() {
                Some(packet) => Some((packet, false)),
                None => self.queue.front(),
            },
            _ => self.queue.front(),
        }
    }

    #[inline]
    pub(crate) fn leave(&mut self, now_ns: u64) {
        match &mut self.pace {
            Pace::Trace(trace) if trace.begun().is_some() => trace.end(),
            Pace::Trace(trace) => trace.charge(self.queue.leave()),
            Pace::Shaper(shaper, _) => shaper.charge(now_ns, self.queue.leave()),
            Pace::Queue => {
                self.queue.leave();
            }
        }
    }

    /// Whether the rate lets a packet pass now; if not, when to ask again is known.
    #[inline]
    pub(crate) fn may_pass(&mut self, now_ns: u64) -> bool {
        let ready_ns = match &mut self.pace {
            Pace::Queue => match self.queue.next_ready_ns(now_ns) {
                Some(ready_ns) => ready_ns,
                None => {
                    self.due_ns = None;
                    return false;
                }
            },
            Pace::Shaper(shaper, rates) => {
                if let Some(rates) = rates {
                    if let Some(rate_bps) = rates.changed(now_ns) {
                        self.rate_bps = rate_bps;
                        if rate_bps > 0 {
                            shaper.set_rate(rate_bps, BURST_BYTES);
                        }
                    }
                    if self.rate_bps == 0 {
                        // Nothing passes until the next step.
                        self.due_ns = rates.next_ns().filter(|_| self.queue.packets() > 0);
                        return false;
                    }
                }
                shaper.ready_ns()
            }
            Pace::Trace(trace) => {
                let ready_ns = trace.ready_ns(now_ns);
                if ready_ns > now_ns {
                    let waits = trace.begun().is_some() || self.queue.packets() > 0;
                    self.due_ns = waits.then_some(ready_ns);
                    return false;
                }
                ready_ns
            }
        };
        if ready_ns > now_ns {
            self.due_ns = (self.queue.packets() > 0).then_some(ready_ns);
            return false;
        }
        true
    }

    /// What can be sampled.
    pub(crate) fn state(&self) -> WayState {
        WayState {
            queue_bytes: self.queue.bytes(),
            queue_packets: self.queue.packets() as u64,
            counters: self.queue.counters(),
            ..WayState::default()
        }
    }
}

fn later(at_ns: Option<u64>, now_ns: u64) -> Option<u64> {
    at_ns.filter(|&at_ns| at_ns > now_ns)
}
