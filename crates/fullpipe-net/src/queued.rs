//! The way of a wire that is a queue of any discipline, a rate of any kind and one delay, with a chance
//! of loss before the queue or without, and nothing else: no damage, no delay that changes. What a plan
//! asks for beyond it is never its affair.

use fullpipe_plan::Wire as Plan;

use crate::link::{Direction, DirectionState, Exit, Passed};
use crate::loss::LossGate;
use crate::rng::{derive_seed, purpose};
use crate::shaped::{Shaped, NEVER_NS};
use crate::Packet;

/// A queue and its rate, a delay.
#[derive(Debug)]
pub struct QueuedDirection<P> {
    direction: Direction,
    loss: Option<LossGate>,
    shaped: Shaped<P>,
    delay_ns: u64,
}

impl<P: Packet> QueuedDirection<P> {
    /// `None` where the plan asks for more, or for less; `index` is that of the way among all. The error
    /// names what this engine lacks.
    pub(crate) fn new(
        plan: &Plan,
        direction: Direction,
        index: u32,
        seed: u64,
        mtu_bytes: u32,
    ) -> Result<Option<Self>, String> {
        let asks_for_more =
            plan.damage.is_some() || plan.delay_trace.is_some() || !plan.delay_steps.is_empty();
        let rate_bps = plan.rate_bps.filter(|&rate_bps| rate_bps > 0);
        let Some(rate_bps) = rate_bps.filter(|_| !asks_for_more) else {
            return Ok(None);
        };
        let queue_seed = derive_seed(seed, purpose::RED, index);
        let loss_seed = derive_seed(seed, purpose::LINK_LOSS, index);
        Ok(Some(Self {
            direction,
            loss: (plan.loss.as_ref()).map(|loss| LossGate::new(loss, loss_seed)),
            shaped: Shaped::new(plan, rate_bps, queue_seed, mtu_bytes)?,
            delay_ns: plan.delay_ns,
        }))
    }

    pub(crate) fn offer(&mut self, now_ns: u64, packet: P, passed: &mut Passed<P>) {
        let is_idle = self.shaped.due_ns == NEVER_NS;
        if self.take(now_ns, &packet, 1, &mut passed.dropped) && is_idle {
            self.pass_all(now_ns, passed);
        }
    }

    pub(crate) fn advance(&mut self, now_ns: u64, passed: &mut Passed<P>) {
        if self.due_ns() <= now_ns {
            self.pass_all(now_ns, passed);
        }
    }

    pub(crate) fn state(&self) -> DirectionState {
        DirectionState {
            lost_packets: self.loss.as_ref().map_or(0, LossGate::lost),
            marked_packets: self.loss.as_ref().map_or(0, LossGate::marked),
            ..self.shaped.state()
        }
    }

    /// Each packet of a run comes to the queue by chance; false: none did.
    #[inline(never)]
    fn take_by_chance(&mut self, now_ns: u64, burst: &P, count: u32, dropped: &mut Vec<P>) -> bool {
        let (mut burst, mut comes_any) = (*burst, false);
        for others in (0..count).rev() {
            let mut packet = burst.split_first(others);
            if (self.loss.as_mut()).is_none_or(|loss| loss.passes(&mut packet)) {
                self.shaped.queue.enqueue(now_ns, packet, dropped);
                comes_any = true;
            } else {
                dropped.push(packet);
            }
        }
        comes_any
    }

    /// When [`Self::ready`] is to be called next; `u64::MAX`: not before a packet has come.
    #[inline]
    pub fn due_ns(&self) -> u64 {
        self.shaped.due_ns
    }

    /// A burst of `count` packets arrives at the queue, represented by its first packet
    /// ([`Packet::end_follows`]). Dropped packets are added to the list. False: none reached the
    /// queue. If nothing waited, `count` is 1 and the caller calls [`Self::ready`] next.
    #[inline]
    pub fn take(&mut self, now_ns: u64, burst: &P, count: u32, dropped: &mut Vec<P>) -> bool {
        if self.loss.is_some() {
            return self.take_by_chance(now_ns, burst, count, dropped);
        }
        self.shaped
            .queue
            .enqueue_burst(now_ns, burst, count, dropped);
        true
    }

    /// The burst whose first packet leaves now, and whether more of its packets follow. A reference,
    /// because a returned packet would be copied twice. The packet leaves by [`Self::pass`], which the
    /// caller calls next. `None`: nothing may leave, and [`Self::due_ns`] is up to date.
    #[inline(always)]
    pub fn ready(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> Option<(&P, bool)> {
        match self.shaped.chooses(now_ns, dropped) {
            true => self.shaped.front(),
            false => None,
        }
    }

    /// The packet that was [`Self::ready`] leaves. Returns when it reaches the far end. If another
    /// packet may leave now, [`Self::due_ns`] is not later than now.
    #[inline(always)] // between two calls that match on the same discipline
    pub fn pass(&mut self, now_ns: u64) -> u64 {
        self.shaped.leave(now_ns);
        now_ns + self.delay_ns
    }

    /// All packets that may leave now are added to the list.
    #[inline(never)]
    pub fn pass_all(&mut self, now_ns: u64, passed: &mut Passed<P>) {
        while let Some(packet) = self.shaped.next(now_ns, &mut passed.dropped) {
            passed.out.push(Exit {
                at_ns: now_ns + self.delay_ns,
                direction: self.direction,
                packet,
            });
        }
    }
}
