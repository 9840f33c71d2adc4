//! A rate and what waits for it: constant, in steps, or a trace of delivery opportunities.

use fullpipe_scenario::traces::RateTrace;
use fullpipe_scenario::Wire as Plan;

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

    /// The next packet that may pass; where there is none, when to ask again.
    pub(crate) fn next(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> Option<P> {
        let ready_ns = match &mut self.pace {
            Pace::Queue => now_ns,
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
                        return None;
                    }
                }
                shaper.ready_ns()
            }
            Pace::Trace(trace) => {
                return Self::next_of_trace(
                    trace,
                    &mut self.queue,
                    &mut self.due_ns,
                    now_ns,
                    dropped,
                )
            }
        };
        if ready_ns > now_ns {
            self.due_ns = (self.queue.packets() > 0).then_some(ready_ns);
            return None;
        }
        let packet = self.queue.dequeue(now_ns, dropped);
        match (&packet, &mut self.pace) {
            (Some(packet), Pace::Shaper(shaper, _)) => shaper.charge(now_ns, packet.wire_bytes()),
            (None, _) => self.due_ns = later(self.queue.next_ready_ns(now_ns), now_ns),
            (Some(_), _) => {}
        }
        packet
    }

    fn next_of_trace(
        trace: &mut Opportunities<P>,
        queue: &mut Queue<P>,
        due_ns: &mut Option<u64>,
        now_ns: u64,
        dropped: &mut Vec<P>,
    ) -> Option<P> {
        loop {
            let ready_ns = trace.ready_ns(now_ns);
            if ready_ns > now_ns {
                *due_ns = (queue.packets() > 0 || trace.has_begun()).then_some(ready_ns);
                return None;
            }
            let begun = trace.take_begun().or_else(|| {
                let packet = queue.dequeue(now_ns, dropped)?;
                Some((packet, u64::from(packet.wire_bytes())))
            });
            let Some((packet, bytes)) = begun else {
                *due_ns = later(queue.next_ready_ns(now_ns), now_ns);
                return None;
            };
            if let Some(packet) = trace.pass(packet, bytes) {
                return Some(packet);
            }
        }
    }
}

fn later(at_ns: Option<u64>, now_ns: u64) -> Option<u64> {
    at_ns.filter(|&at_ns| at_ns > now_ns)
}
