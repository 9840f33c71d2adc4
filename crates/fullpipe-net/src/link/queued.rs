//! A direction of a wire that is a queue of any discipline, a rate of any kind and one delay, with random
//! loss before the queue or without. It has no impairments and no delay that changes.
//!
//! Besides [`super::Link`]'s calls, which use lists, it offers steps that hand over one packet at a time,
//! by reference. Bursts stay whole until their packets leave.

use super::params::WireDirection as Params;
use super::passed::{Direction, DirectionState, Exit, Passed};
use super::shaped::{Shaped, NEVER_NS};
use crate::impair::loss::LossGate;
use crate::packet::Packet;
use crate::rng::{derive_seed, purpose};

/// A queue, its rate, a delay.
#[derive(Debug)]
pub struct QueuedDirection<P> {
    direction: Direction,
    loss: Option<LossGate>,
    shaped: Shaped<P>,
    delay_ns: u64,
}

impl<P: Packet> QueuedDirection<P> {
    /// `None`: the plan asks for more than this has, or for no rate. `index` is the direction's among
    /// those of all links. The error names a key.
    pub(super) fn new(
        params: &Params,
        direction: Direction,
        index: u32,
        seed: u64,
        mtu_bytes: u32,
    ) -> Result<Option<Self>, String> {
        let is_general = params.impairments.is_some()
            || params.delay_trace.is_some()
            || !params.delay_steps.is_empty();
        let rate_bps = params.rate_bps.filter(|&rate_bps| rate_bps > 0);
        let Some(rate_bps) = rate_bps.filter(|_| !is_general) else {
            return Ok(None);
        };
        let queue_seed = derive_seed(seed, purpose::QUEUE, index);
        let loss_seed = derive_seed(seed, purpose::LINK_LOSS, index);
        Ok(Some(Self {
            direction,
            loss: (params.loss.as_ref()).map(|loss| LossGate::new(loss, loss_seed)),
            shaped: Shaped::new(params, rate_bps, queue_seed, mtu_bytes)?,
            delay_ns: params.delay_ns,
        }))
    }

    pub(super) fn offer(&mut self, now_ns: u64, packet: P, passed: &mut Passed<P>) {
        let is_idle = self.shaped.due_ns == NEVER_NS;
        if self.enqueue(now_ns, &packet, 1, &mut passed.dropped) && is_idle {
            self.send_all(now_ns, passed);
        }
    }

    pub(super) fn advance(&mut self, now_ns: u64, passed: &mut Passed<P>) {
        if self.due_ns() <= now_ns {
            self.send_all(now_ns, passed);
        }
    }

    pub(super) fn state(&self) -> DirectionState {
        DirectionState {
            lost_packets: self.loss.as_ref().map_or(0, LossGate::lost),
            marked_packets: self.loss.as_ref().map_or(0, LossGate::marked),
            ..self.shaped.state()
        }
    }

    /// When [`Self::choose`] must be called next; `u64::MAX`: not before a packet has arrived.
    #[inline]
    pub fn due_ns(&self) -> u64 {
        self.shaped.due_ns
    }

    /// A burst of `count` packets arrives ([`Packet::first_of_burst`]). Lost and dropped packets are added
    /// to the list. False: none reached the queue. If no packet waits, the caller splits the burst, and
    /// calls [`Self::choose`] after every packet that reached the queue.
    #[inline]
    pub fn enqueue(&mut self, now_ns: u64, burst: &P, count: u32, dropped: &mut Vec<P>) -> bool {
        if self.loss.is_some() {
            return self.enqueue_after_loss(now_ns, burst, count, dropped);
        }
        self.shaped
            .queue
            .enqueue_burst(now_ns, burst, count, dropped);
        true
    }

    #[inline(never)]
    fn enqueue_after_loss(
        &mut self,
        now_ns: u64,
        burst: &P,
        count: u32,
        dropped: &mut Vec<P>,
    ) -> bool {
        let (mut burst, mut is_any) = (*burst, false);
        for others in (0..count).rev() {
            let mut packet = burst.split_first(others);
            if (self.loss.as_mut()).is_none_or(|loss| loss.passes(&mut packet)) {
                self.shaped.queue.enqueue(now_ns, packet, dropped);
                is_any = true;
            } else {
                dropped.push(packet);
            }
        }
        is_any
    }

    /// The burst whose first packet may leave now, and whether more of its packets follow. A reference,
    /// because a returned packet would be copied twice. The caller sends the packet by [`Self::send`]
    /// next. `None`: no packet may leave, and [`Self::due_ns`] is up to date.
    #[inline(always)] // the compiler then joins the matches of this and of `send`
    pub fn choose(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> Option<(&P, bool)> {
        match self.shaped.choose(now_ns, dropped) {
            true => self.shaped.front(),
            false => None,
        }
    }

    /// The chosen packet leaves. Returns when it reaches the far end. If another packet may leave now,
    /// [`Self::due_ns`] is not later than now.
    #[inline(always)]
    pub fn send(&mut self, now_ns: u64) -> u64 {
        self.shaped.leave(now_ns);
        now_ns + self.delay_ns
    }

    /// All packets that may leave now are added to the list.
    #[inline(never)]
    pub fn send_all(&mut self, now_ns: u64, passed: &mut Passed<P>) {
        while let Some(packet) = self.shaped.next(now_ns, &mut passed.dropped) {
            passed.out.push(Exit {
                at_ns: now_ns + self.delay_ns,
                direction: self.direction,
                packet,
            });
        }
    }
}

#[cfg(test)]
mod tests;
