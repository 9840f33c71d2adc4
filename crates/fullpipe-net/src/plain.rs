//! The way of a wire that most runs are about: one rate, a FIFO with tail drop, one delay, and nothing
//! that chance, a schedule or another discipline decides. It gives what `wire.rs` would give for the
//! same plan, by less work; what a plan asks for beyond it is never its affair.

use fullpipe_plan::{Aqm, Wire as Plan};

use crate::direct::DirectWay;
use crate::fifo::{behind, Fifo};
use crate::link::{AnyLink, Exit, Passed, Way, WayState};
use crate::queue::Counters;
use crate::shaped::BURST_BYTES;
use crate::shaper::Shaper;
use crate::Packet;

/// Never.
const NEVER_NS: u64 = u64::MAX;

/// A queue, a rate, a delay.
#[derive(Debug)]
pub struct PlainWay<P> {
    way: Way,
    queue: Fifo<P>,
    /// What has come, and what of it was dropped: what has left is the rest without what waits, which
    /// saves counting packet by packet.
    offered_packets: u64,
    dropped_packets: u64,
    taken_bytes: u64,
    shaper: Shaper,
    delay_ns: u64,
    due_ns: u64,
}

impl<P: Packet> PlainWay<P> {
    /// `None` where the plan asks for more, or for less.
    pub(crate) fn new(plan: &Plan, way: Way) -> Option<Self> {
        let changes = plan.loss.is_some()
            || plan.damage.is_some()
            || plan.rate_trace.is_some()
            || plan.delay_trace.is_some()
            || !plan.rate_steps.is_empty()
            || !plan.delay_steps.is_empty();
        let rate_bps = plan.rate_bps.filter(|&rate_bps| rate_bps > 0)?;
        if changes || !matches!(plan.qdisc.aqm, Aqm::Fifo) {
            return None;
        }
        Some(Self {
            way,
            queue: Fifo::new(plan.qdisc.limit_bytes, plan.qdisc.limit_packets),
            offered_packets: 0,
            dropped_packets: 0,
            taken_bytes: 0,
            shaper: Shaper::new(rate_bps, BURST_BYTES),
            delay_ns: plan.delay_ns,
            due_ns: NEVER_NS,
        })
    }

    #[inline]
    fn set_due(&mut self) {
        self.due_ns = match self.queue.is_empty() {
            true => NEVER_NS,
            false => self.shaper.ready_ns(),
        };
    }

    pub(crate) fn offer(&mut self, now_ns: u64, packet: P, passed: &mut Passed<P>) {
        self.take(now_ns, &packet, 1, &mut passed.dropped);
        if self.due_ns == NEVER_NS {
            self.pass_all(now_ns, passed);
        }
    }

    pub(crate) fn advance(&mut self, now_ns: u64, passed: &mut Passed<P>) {
        if self.due_ns <= now_ns {
            self.pass_all(now_ns, passed);
        }
    }

    pub(crate) fn state(&self) -> WayState {
        let (queue_packets, queue_bytes) = (self.queue.len(), self.queue.waiting_bytes());
        WayState {
            queue_bytes,
            queue_packets,
            counters: Counters {
                offered_packets: self.offered_packets,
                dropped_packets: self.dropped_packets,
                sent_packets: self.offered_packets - self.dropped_packets - queue_packets,
                sent_bytes: self.taken_bytes - queue_bytes,
                ..Counters::default()
            },
            ..WayState::default()
        }
    }
}

impl<P: Packet> DirectWay<P> for PlainWay<P> {
    const DROPS_LATE: bool = false;

    #[inline]
    fn of(link: &mut AnyLink<P>, way: usize) -> Option<&mut Self> {
        link.wire()?.plain(way)
    }

    #[inline]
    fn due_ns(&self) -> u64 {
        self.due_ns
    }

    #[inline]
    fn take(&mut self, _now_ns: u64, run: &P, count: u32, dropped: &mut Vec<P>) -> bool {
        let taken = self.queue.push(run, count);
        self.offered_packets += u64::from(count);
        self.taken_bytes += u64::from(taken) * u64::from(run.wire_bytes());
        if taken < count {
            self.dropped_packets += u64::from(count - taken);
            behind(taken, run, count, |packet| dropped.push(packet));
        }
        true
    }

    #[inline]
    fn ready(&mut self, now_ns: u64, _dropped: &mut Vec<P>) -> Option<(&P, bool)> {
        if self.shaper.ready_ns() > now_ns {
            self.set_due();
            return None;
        }
        self.queue.front()
    }

    #[inline(always)] // between two questions that ask for the same
    fn pass(&mut self, now_ns: u64) -> u64 {
        let wire_bytes = self.queue.leave();
        self.shaper.charge(now_ns, wire_bytes);
        self.set_due();
        now_ns + self.delay_ns
    }

    #[inline(never)]
    fn pass_all(&mut self, now_ns: u64, passed: &mut Passed<P>) {
        while let Some((run, is_followed)) = self.ready(now_ns, &mut passed.dropped) {
            let packet = run.first(is_followed);
            let at_ns = self.pass(now_ns);
            passed.out.push(Exit {
                at_ns,
                way: self.way,
                packet,
            });
        }
    }
}
