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

/// A queue that CoDel controls.
pub(crate) trait Source<P> {
    /// The head with the time of its arrival.
    fn pop(&mut self) -> Option<(u32, P)>;
    /// Bytes in the qdisc; for fq_codel, in all of its queues.
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
    /// Takes the next packet out of a queue, dropping or marking on the way (codel_dequeue()).
    pub(crate) fn dequeue<P: Packet>(
        &mut self,
        source: &mut impl Source<P>,
        law: &Law,
        now_ns: u64,
        outcome: &mut Outcome<P>,
    ) -> Option<P> {
        let marked = outcome.marks;
        let mut packet = self.take(source, law, time(now_ns), outcome)?;
        let is_late = before(law.ce_threshold, self.waited);
        if is_late && outcome.marks == marked && packet.ecn_capable() {
            outcome.mark(&mut packet);
        }
        Some(packet)
    }

    fn take<P: Packet>(
        &mut self,
        source: &mut impl Source<P>,
        law: &Law,
        now: u32,
        outcome: &mut Outcome<P>,
    ) -> Option<P> {
        let Some((arrived, mut packet)) = source.pop() else {
            if law.forgets_when_empty {
                self.first_above = 0;
            }
            self.dropping = false;
            return None;
        };
        let above = self.above_target(arrived, source.backlog_bytes(), law, now);
        if !above {
            self.dropping = false;
            return Some(packet);
        }
        if self.dropping {
            while self.dropping && !before(now, self.drop_next) {
                self.count = self.count.wrapping_add(1);
                self.newton_step();
                if law.ecn && packet.ecn_capable() {
                    outcome.mark(&mut packet);
                    self.drop_next = self.control_law(self.drop_next, law);
                    break;
                }
                outcome.drop(packet);
                packet = match self.pop_again(source, law, now) {
                    None => {
                        self.dropping = false;
                        return None;
                    }
                    Some((next, still_above)) => {
                        self.dropping = still_above;
                        next
                    }
                };
                if self.dropping {
                    self.drop_next = self.control_law(self.drop_next, law);
                }
            }
            return Some(packet);
        }
        let taken = if law.ecn && packet.ecn_capable() {
            outcome.mark(&mut packet);
            Some(packet)
        } else {
            outcome.drop(packet);
            self.pop_again(source, law, now).map(|(next, _)| next)
        };
        self.start_dropping(law, now);
        taken
    }

    fn pop_again<P>(
        &mut self,
        source: &mut impl Source<P>,
        law: &Law,
        now: u32,
    ) -> Option<(P, bool)> {
        let Some((arrived, packet)) = source.pop() else {
            self.first_above = 0;
            return None;
        };
        let above = self.above_target(arrived, source.backlog_bytes(), law, now);
        Some((packet, above))
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

    /// Whether the sojourn time has been above the target for an interval (codel_should_drop()).
    fn above_target(&mut self, arrived: u32, backlog: u64, law: &Law, now: u32) -> bool {
        self.waited = now.wrapping_sub(arrived);
        if before(self.waited, law.target) || backlog <= law.frame_bytes {
            self.first_above = 0;
            return false;
        }
        if self.first_above == 0 {
            self.first_above = now.wrapping_add(law.interval);
            return false;
        }
        before(self.first_above, now)
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

    fn dequeue(&mut self, now_ns: u64, outcome: &mut Outcome<P>) -> Option<P> {
        self.state
            .dequeue(&mut self.queue, &self.law, now_ns, outcome)
    }
}

impl<P: Packet> Source<P> for TimedFifo<P> {
    fn pop(&mut self) -> Option<(u32, P)> {
        let head = self.packets.pop_front()?;
        self.bytes -= u64::from(head.1.wire_bytes());
        Some(head)
    }

    fn backlog_bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
pub(super) mod tests;
