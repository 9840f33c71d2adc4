//! Controlled delay: RFC 8289 in the integer form of Linux's codel_impl.h, and the queue that
//! sch_codel.c puts it on. Times are in units of 2^10 ns, as there (CODEL_SHIFT).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::discipline::{Discipline, Environment, Outcome, Parameters};
use super::rules::Rules;
use crate::kernel::Kernel;
use crate::packet::Packet;

const SHIFT: u32 = 10;
/// Bits of the reciprocal square root (REC_INV_SQRT_BITS).
const INV_SQRT_BITS: u32 = 16;
/// CODEL_DISABLED_THRESHOLD
const DISABLED_THRESHOLD: u32 = i32::MAX as u32;

/// Parameters of sch_codel.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Acceptable standing delay (tc: 5 ms).
    pub target_ns: u64,
    /// How long the delay must exceed the target before packets are dropped (tc: 100 ms).
    pub interval_ns: u64,
    /// Marks packets that can carry a mark instead of dropping them.
    pub ecn: bool,
    /// Packets that waited longer are marked if they can carry a mark, whatever `ecn` says (tc:
    /// none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ce_threshold_ns: Option<u64>,
    /// Whose rules it has; `None`: the newest kernel's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Kernel>,
}

impl Parameters for Params {
    fn kernel(&self) -> Option<Kernel> {
        self.kernel
    }
}

/// The parameters as the algorithm needs them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law {
    target: u32,
    interval: u32,
    /// Nothing is dropped from a smaller backlog: one full packet (`params->mtu`).
    frame_bytes: u64,
    ecn: bool,
    ce_threshold: u32,
    forgets_when_empty: bool,
}

impl Law {
    pub(crate) fn new(params: &Params, frame_bytes: u32) -> Self {
        let ce_threshold = params.ce_threshold_ns.map(|ns| (ns >> SHIFT) as u32);
        Self {
            target: (params.target_ns >> SHIFT) as u32,
            interval: (params.interval_ns >> SHIFT) as u32,
            frame_bytes: u64::from(frame_bytes),
            ecn: params.ecn,
            ce_threshold: ce_threshold.unwrap_or(DISABLED_THRESHOLD),
            forgets_when_empty: Rules::of(params.kernel).codel_forgets_when_empty(),
        }
    }
}

/// A queue that CoDel controls. Packets stay in it until they leave, so that none is copied.
pub(crate) trait Source<P> {
    /// The head with the time of its arrival.
    fn head(&self) -> Option<(u32, &P)>;
    fn head_mut(&mut self) -> Option<&mut P>;
    /// Drops the head.
    fn drop_head(&mut self, outcome: &mut Outcome<P>);
    /// Bytes in the qdisc, those of the head included; for fq_codel, in all of its queues.
    fn backlog_bytes(&self) -> u64;
}

/// CoDel's state of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State {
    /// Drops since dropping began; fq_codel adds those made for its limits.
    pub(crate) count: u32,
    last_count: u32,
    dropping: bool,
    inv_sqrt: u16,
    first_above: u32,
    drop_next: u32,
    /// How long the last packet waited (ldelay).
    waited: u32,
}

impl State {
    /// Drops and marks packets at a queue's head until the head is the packet that leaves next
    /// (codel_dequeue()). False: none leaves.
    #[inline]
    pub(crate) fn choose<P: Packet>(
        &mut self,
        source: &mut impl Source<P>,
        law: &Law,
        now_ns: u64,
        outcome: &mut Outcome<P>,
    ) -> bool {
        let now = time(now_ns);
        let Some(above) = self.is_head_above(source, law, now) else {
            if law.forgets_when_empty {
                self.first_above = 0;
            }
            self.dropping = false;
            return false;
        };
        let marked = outcome.marks;
        if !above {
            self.dropping = false;
        } else if !self.signal(source, law, now, outcome) {
            return false;
        }
        let is_late = before(law.ce_threshold, self.waited);
        if is_late && outcome.marks == marked {
            mark_head(source, outcome);
        }
        true
    }

    /// Drops or marks packets at the head of a queue that has been above the target for an interval. False:
    /// none is left.
    #[inline(never)]
    fn signal<P: Packet>(
        &mut self,
        source: &mut impl Source<P>,
        law: &Law,
        now: u32,
        outcome: &mut Outcome<P>,
    ) -> bool {
        if !self.dropping {
            let is_any = law.ecn && mark_head(source, outcome)
                || self.drop_head(source, law, now, outcome).is_some();
            self.start_dropping(law, now);
            return is_any;
        }
        while self.dropping && !before(now, self.drop_next) {
            self.count = self.count.wrapping_add(1);
            self.newton_step();
            if law.ecn && mark_head(source, outcome) {
                self.drop_next = self.control_law(self.drop_next, law);
                break;
            }
            let Some(still_above) = self.drop_head(source, law, now, outcome) else {
                self.dropping = false;
                return false;
            };
            self.dropping = still_above;
            if still_above {
                self.drop_next = self.control_law(self.drop_next, law);
            }
        }
        true
    }

    /// Drops the head. Returns whether the next one is above the target; `None`: there is none.
    fn drop_head<P: Packet>(
        &mut self,
        source: &mut impl Source<P>,
        law: &Law,
        now: u32,
        outcome: &mut Outcome<P>,
    ) -> Option<bool> {
        source.drop_head(outcome);
        let above = self.is_head_above(source, law, now);
        if above.is_none() {
            self.first_above = 0;
        }
        above
    }

    /// Enters the dropping state, near the last drop rate if that was recent (RFC 8289 section 5.4).
    fn start_dropping(&mut self, law: &Law, now: u32) {
        self.dropping = true;
        let delta = self.count.wrapping_sub(self.last_count);
        let recent = law.interval.wrapping_mul(16);
        if delta > 1 && before(now.wrapping_sub(self.drop_next), recent) {
            self.count = delta;
            self.newton_step();
        } else {
            self.count = 1;
            self.inv_sqrt = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = self.control_law(now, law);
    }

    /// Whether the sojourn time of the head has been above the target for an interval
    /// (codel_should_drop()); `None`: there is no packet.
    fn is_head_above<P: Packet>(
        &mut self,
        source: &impl Source<P>,
        law: &Law,
        now: u32,
    ) -> Option<bool> {
        let (arrived, packet) = source.head()?;
        self.waited = now.wrapping_sub(arrived);
        // Linux has taken the packet out of its queue by now.
        let others_bytes = source.backlog_bytes() - u64::from(packet.wire_bytes());
        if before(self.waited, law.target) || others_bytes <= law.frame_bytes {
            self.first_above = 0;
            return Some(false);
        }
        if self.first_above == 0 {
            self.first_above = now.wrapping_add(law.interval);
            return Some(false);
        }
        Some(before(self.first_above, now))
    }

    /// One Newton step towards 1/sqrt(count) (codel_Newton_step()). Products wrap as they do there: after
    /// a jump of `count` the estimate is wrong for a few steps.
    fn newton_step(&mut self) {
        let inv_sqrt = u64::from(self.inv_sqrt) << (32 - INV_SQRT_BITS);
        let square = (inv_sqrt * inv_sqrt) >> 32;
        let value = (3u64 << 32).wrapping_sub(u64::from(self.count) * square) >> 2;
        let value = value.wrapping_mul(inv_sqrt) >> (32 - 2 + 1);
        self.inv_sqrt = (value >> (32 - INV_SQRT_BITS)) as u16;
    }

    /// interval / sqrt(count) after `from` (codel_control_law()).
    fn control_law(&self, from: u32, law: &Law) -> u32 {
        let inv_sqrt = u64::from(self.inv_sqrt) << (32 - INV_SQRT_BITS);
        from.wrapping_add(((u64::from(law.interval) * inv_sqrt) >> 32) as u32)
    }
}

/// A time in CoDel's units.
pub(crate) fn time(now_ns: u64) -> u32 {
    (now_ns >> SHIFT) as u32
}

/// Marks the head, if it can carry a mark.
fn mark_head<P: Packet>(source: &mut impl Source<P>, outcome: &mut Outcome<P>) -> bool {
    match source.head_mut() {
        Some(packet) if packet.ecn_capable() => {
            outcome.mark(packet);
            true
        }
        _ => false,
    }
}

fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// One FIFO under CoDel (sch_codel.c).
#[derive(Debug)]
pub(crate) struct Codel<P> {
    queue: TimedFifo<P>,
    state: State,
    law: Law,
    limit_packets: usize,
}

#[derive(Debug)]
struct TimedFifo<P> {
    packets: VecDeque<(u32, P)>,
    bytes: u64,
}

impl<P: Packet> Discipline<P> for Codel<P> {
    type Params = Params;

    fn new(params: &Params, environment: &Environment) -> Self {
        Self {
            queue: TimedFifo {
                packets: VecDeque::new(),
                bytes: 0,
            },
            state: State::default(),
            law: Law::new(params, environment.frame_bytes),
            limit_packets: environment.most_packets(),
        }
    }

    fn enqueue(&mut self, now_ns: u64, packet: P, outcome: &mut Outcome<P>) {
        if self.queue.packets.len() >= self.limit_packets {
            outcome.drop(packet);
            return;
        }
        self.queue.bytes += u64::from(packet.wire_bytes());
        self.queue.packets.push_back((time(now_ns), packet));
    }

    #[inline]
    fn choose(&mut self, now_ns: u64, _taken: &mut Option<P>, outcome: &mut Outcome<P>) -> bool {
        self.state
            .choose(&mut self.queue, &self.law, now_ns, outcome)
    }

    #[inline]
    fn front<'a>(&'a self, _taken: &'a Option<P>) -> Option<(&'a P, bool)> {
        let (_, packet) = self.queue.packets.front()?;
        Some((packet, false))
    }

    #[inline]
    fn leave(&mut self, _taken: &mut Option<P>) -> u32 {
        self.queue
            .pop()
            .map_or(0, |(_, packet)| packet.wire_bytes())
    }
}

impl<P: Packet> TimedFifo<P> {
    #[inline]
    fn pop(&mut self) -> Option<(u32, P)> {
        let head = self.packets.pop_front()?;
        self.bytes -= u64::from(head.1.wire_bytes());
        Some(head)
    }
}

impl<P: Packet> Source<P> for TimedFifo<P> {
    fn head(&self) -> Option<(u32, &P)> {
        let (arrived, packet) = self.packets.front()?;
        Some((*arrived, packet))
    }

    fn head_mut(&mut self) -> Option<&mut P> {
        self.packets.front_mut().map(|(_, packet)| packet)
    }

    fn drop_head(&mut self, outcome: &mut Outcome<P>) {
        if let Some((_, packet)) = self.pop() {
            outcome.drop(packet);
        }
    }

    fn backlog_bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
pub(super) mod tests;
