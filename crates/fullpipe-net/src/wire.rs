//! A full-duplex wire: each way has its own chance of loss, queue, rate and delay.

use fullpipe_scenario::{Aqm, Wire as Plan};

use crate::link::{Exit, Link, Passed, Way, WayState};
use crate::loss::LossGate;
use crate::queue::Queue;
use crate::rng::{derive_seed, purpose};
use crate::schedule::Schedule;
use crate::shaper::Shaper;
use crate::Packet;

/// Bytes of credit that the testbeds give htb: one packet and a bit.
const BURST_BYTES: u32 = 1600;

/// Both ways.
#[derive(Debug)]
pub struct Wire<P> {
    ways: [WireWay<P>; 2],
}

impl<P: Packet> Wire<P> {
    /// From the plan of its two ways; the error names what this engine lacks.
    pub fn new(plans: [&Plan; 2], index: u32, seed: u64, mtu_bytes: u32) -> Result<Self, String> {
        let way = |plan, way| WireWay::new(plan, way, 2 * index + way as u32, seed, mtu_bytes);
        Ok(Self {
            ways: [way(plans[0], Way::Forward)?, way(plans[1], Way::Reverse)?],
        })
    }
}

impl<P: Packet> Link<P> for Wire<P> {
    fn timer(&self, way: Way) -> usize {
        way.index()
    }

    fn offer(&mut self, now_ns: u64, way: Way, packet: P, passed: &mut Passed<P>) {
        self.ways[way.index()].offer(now_ns, packet, passed);
    }

    fn advance(&mut self, now_ns: u64, timer: usize, passed: &mut Passed<P>) {
        self.ways[timer].advance(now_ns, passed);
    }

    fn due_ns(&self, timer: usize) -> Option<u64> {
        self.ways[timer].shaped.as_ref()?.due_ns
    }

    fn state(&self, way: Way) -> Option<WayState> {
        self.ways[way.index()].state()
    }

    fn waiting_ns(&self, _now_ns: u64, way: Way) -> u64 {
        let shaped = self.ways[way.index()].shaped.as_ref();
        shaped
            .filter(|shaped| shaped.is_shared)
            .map_or(0, |shaped| {
                shaped.queue.bytes() * 8_000_000_000 / shaped.rate_bps.max(1)
            })
    }
}

#[derive(Debug)]
struct WireWay<P> {
    way: Way,
    loss: Option<LossGate>,
    /// `None`: not limited, no queue.
    shaped: Option<Shaped<P>>,
    delay_ns: u64,
    /// `None`: the delay never changes.
    delays: Option<Schedule>,
    /// When the last packet comes out, where delays change: none overtakes it.
    last_exit_ns: u64,
}

/// A rate and its queue.
#[derive(Debug)]
struct Shaped<P> {
    queue: Queue<P>,
    /// `None`: the queue keeps the rate itself.
    shaper: Option<Shaper>,
    rate_bps: u64,
    /// `None`: the rate never changes.
    rates: Option<Schedule>,
    /// Packets wait: they will be asked for at this time, not before.
    due_ns: Option<u64>,
    /// All flows wait in one queue.
    is_shared: bool,
}

impl<P: Packet> Shaped<P> {
    fn new(wire: &Plan, rate_bps: u64, seed: u64, mtu_bytes: u32) -> Result<Self, String> {
        let plan = &wire.qdisc;
        if plan.shapes() && !wire.rate_steps.is_empty() {
            return Err("rate_steps: a qdisc that keeps the rate itself keeps one rate".into());
        }
        let has_own_queues = matches!(
            plan.aqm,
            Aqm::Fq { .. }
                | Aqm::FqCodel { .. }
                | Aqm::FqPie { .. }
                | Aqm::Sfq { .. }
                | Aqm::Cake { .. }
        );
        Ok(Self {
            queue: Queue::with_mtu(plan, rate_bps, seed, mtu_bytes),
            shaper: (!plan.shapes()).then(|| Shaper::new(rate_bps, BURST_BYTES)),
            rate_bps,
            rates: schedule("rate_steps", &wire.rate_steps)?,
            due_ns: None,
            is_shared: !has_own_queues,
        })
    }

    /// Takes the rate that holds now. Where that is none, nothing passes until the next step.
    fn is_open(&mut self, now_ns: u64) -> bool {
        let (Some(rates), Some(shaper)) = (&mut self.rates, &mut self.shaper) else {
            return true;
        };
        if let Some(rate_bps) = rates.changed(now_ns) {
            self.rate_bps = rate_bps;
            if rate_bps > 0 {
                shaper.set_rate(rate_bps, BURST_BYTES);
            }
        }
        if self.rate_bps == 0 {
            self.due_ns = rates.next_ns().filter(|_| self.queue.packets() > 0);
        }
        self.rate_bps > 0
    }

    /// The next packet that may pass; where there is none, when to ask again.
    fn next(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> Option<P> {
        if !self.is_open(now_ns) {
            return None;
        }
        if let Some(shaper) = &mut self.shaper {
            if shaper.ready_ns() > now_ns {
                self.due_ns = (self.queue.packets() > 0).then_some(shaper.ready_ns());
                return None;
            }
        }
        let packet = self.queue.dequeue(now_ns, dropped);
        match (&packet, &mut self.shaper) {
            (Some(packet), Some(shaper)) => shaper.charge(now_ns, packet.wire_bytes()),
            (None, _) => {
                let ready_ns = self.queue.next_ready_ns(now_ns);
                self.due_ns = ready_ns.filter(|&ready_ns| ready_ns > now_ns);
            }
            (Some(_), None) => {}
        }
        packet
    }
}

impl<P: Packet> WireWay<P> {
    fn new(plan: &Plan, way: Way, index: u32, seed: u64, mtu_bytes: u32) -> Result<Self, String> {
        if plan.rate_bps == Some(0) {
            return Err("rate_bps: must be above 0".into());
        }
        let queue_seed = derive_seed(seed, purpose::RED, index);
        let loss_seed = derive_seed(seed, purpose::LINK_LOSS, index);
        Ok(Self {
            way,
            loss: plan
                .loss
                .as_ref()
                .map(|loss| LossGate::new(loss, loss_seed)),
            shaped: plan
                .rate_bps
                .map(|rate_bps| Shaped::new(plan, rate_bps, queue_seed, mtu_bytes))
                .transpose()?,
            delay_ns: plan.delay_ns,
            delays: schedule("delay_steps", &plan.delay_steps)?,
            last_exit_ns: 0,
        })
    }

    fn offer(&mut self, now_ns: u64, mut packet: P, passed: &mut Passed<P>) {
        if let Some(loss) = &mut self.loss {
            if !loss.passes(&mut packet) {
                passed.dropped.push(packet);
                return;
            }
        }
        let Some(shaped) = &mut self.shaped else {
            self.exit(now_ns, packet, passed);
            return;
        };
        shaped.queue.enqueue(now_ns, packet, &mut passed.dropped);
        if shaped.due_ns.is_none() {
            self.serve(now_ns, passed);
        }
    }

    fn advance(&mut self, now_ns: u64, passed: &mut Passed<P>) {
        let Some(shaped) = &mut self.shaped else {
            return;
        };
        if shaped.due_ns.is_some_and(|due_ns| due_ns <= now_ns) {
            shaped.due_ns = None;
            self.serve(now_ns, passed);
        }
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

    fn exit(&mut self, now_ns: u64, packet: P, passed: &mut Passed<P>) {
        if let Some(delays) = &mut self.delays {
            self.delay_ns = delays.changed(now_ns).unwrap_or(self.delay_ns);
            self.last_exit_ns = self.last_exit_ns.max(now_ns + self.delay_ns);
        }
        passed.out.push(Exit {
            at_ns: self.last_exit_ns.max(now_ns + self.delay_ns),
            way: self.way,
            packet,
        });
    }

    fn state(&self) -> Option<WayState> {
        let shaped = self.shaped.as_ref()?;
        let (lost_packets, marked_packets) = self
            .loss
            .as_ref()
            .map_or((0, 0), |loss| (loss.lost(), loss.marked()));
        Some(WayState {
            queue_bytes: shaped.queue.bytes(),
            queue_packets: shaped.queue.packets() as u64,
            counters: shaped.queue.counters(),
            lost_packets,
            marked_packets,
        })
    }
}

/// The steps of a key; `None` where there are none.
fn schedule(key: &str, steps: &[(u64, u64)]) -> Result<Option<Schedule>, String> {
    if steps.is_empty() {
        return Ok(None);
    }
    let made = Schedule::new(steps).map_err(|error| format!("{key}: {error}"))?;
    Ok(Some(made))
}
