//! Controlled delay: RFC 8289 in the integer form of Linux's codel_impl.h. Times are in units of
//! 2^10 ns, as there (CODEL_SHIFT).

use std::collections::VecDeque;

use crate::Packet;

/// Below this backlog CoDel never drops: one full packet (codel_impl.h, `params->mtu`).
const MTU_BYTES: u64 = 1514;
const SHIFT: u32 = 10;
/// Bits of the reciprocal square root (REC_INV_SQRT_BITS).
const INV_SQRT_BITS: u32 = 16;

/// CoDel's parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Params {
    target: u32,
    interval: u32,
    pub(crate) ecn: bool,
}

impl Params {
    pub(crate) fn new(target_ns: u64, interval_ns: u64, ecn: bool) -> Self {
        Self {
            target: (target_ns >> SHIFT) as u32,
            interval: (interval_ns >> SHIFT) as u32,
            ecn,
        }
    }
}

/// CoDel's state of one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    count: u32,
    last_count: u32,
    dropping: bool,
    inv_sqrt: u16,
    first_above: u32,
    drop_next: u32,
    sojourn: u32,
}

/// A queue of packets with their times of arrival.
#[derive(Debug)]
pub(crate) struct TimedFifo<P> {
    packets: VecDeque<(u32, P)>,
    pub(crate) bytes: u64,
}

impl<P> Default for TimedFifo<P> {
    fn default() -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
        }
    }
}

impl<P: Packet> TimedFifo<P> {
    pub(crate) fn push(&mut self, now_ns: u64, packet: P) {
        self.bytes += u64::from(packet.wire_bytes());
        self.packets.push_back((time(now_ns), packet));
    }

    pub(crate) fn pop(&mut self) -> Option<(u32, P)> {
        let (arrived, packet) = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.wire_bytes());
        Some((arrived, packet))
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }
}

/// Takes the next packet out of a queue, dropping or marking on the way (codel_dequeue()).
/// `backlog_bytes` is what the whole qdisc holds beside this queue.
pub(crate) fn dequeue<P: Packet>(
    queue: &mut TimedFifo<P>,
    state: &mut State,
    params: Params,
    now_ns: u64,
    mut on_drop: impl FnMut(P),
    mut on_mark: impl FnMut(),
) -> Option<P> {
    let now = time(now_ns);
    let mut head = queue.pop();
    if head.is_none() {
        state.dropping = false;
        return None;
    }
    let mut drop = state.should_drop(head.as_ref().map(|(at, _)| *at), queue.bytes, params, now);
    if state.dropping {
        if !drop {
            state.dropping = false;
        } else if !before(now, state.drop_next) {
            while state.dropping && !before(now, state.drop_next) {
                state.count = state.count.saturating_add(1);
                state.newton_step();
                let (_, mut packet) = head?;
                if params.ecn && packet.ecn_capable() {
                    packet.mark_ce();
                    on_mark();
                    state.drop_next = state.control_law(state.drop_next, params);
                    return Some(packet);
                }
                on_drop(packet);
                head = queue.pop();
                let arrived = head.as_ref().map(|(at, _)| *at);
                if state.should_drop(arrived, queue.bytes, params, now) {
                    state.drop_next = state.control_law(state.drop_next, params);
                } else {
                    state.dropping = false;
                }
            }
        }
    } else if drop {
        if params.ecn
            && head
                .as_ref()
                .is_some_and(|(_, packet)| packet.ecn_capable())
        {
            if let Some((_, packet)) = head.as_mut() {
                packet.mark_ce();
                on_mark();
            }
        } else {
            if let Some((_, packet)) = head {
                on_drop(packet);
            }
            head = queue.pop();
            drop = state.should_drop(head.as_ref().map(|(at, _)| *at), queue.bytes, params, now);
            let _ = drop;
        }
        state.dropping = true;
        // A controller that dropped recently resumes near its last rate (RFC 8289 section 5.4).
        let delta = state.count.wrapping_sub(state.last_count);
        if delta > 1 && before(now.wrapping_sub(state.drop_next), 16 * params.interval) {
            state.count = delta;
            state.newton_step();
        } else {
            state.count = 1;
            state.inv_sqrt = u16::MAX;
        }
        state.last_count = state.count;
        state.drop_next = state.control_law(now, params);
    }
    head.map(|(_, packet)| packet)
}

impl State {
    /// Whether the sojourn time has been above the target for an interval (codel_should_drop()).
    fn should_drop(&mut self, arrived: Option<u32>, left: u64, params: Params, now: u32) -> bool {
        let Some(arrived) = arrived else {
            self.first_above = 0;
            return false;
        };
        self.sojourn = now.wrapping_sub(arrived);
        if before(self.sojourn, params.target) || left <= MTU_BYTES {
            self.first_above = 0;
            return false;
        }
        if self.first_above == 0 {
            self.first_above = now.wrapping_add(params.interval);
            return false;
        }
        before(self.first_above, now)
    }

    /// One step towards 1/sqrt(count) (codel_Newton_step()).
    fn newton_step(&mut self) {
        let inv_sqrt = u32::from(self.inv_sqrt) << (32 - INV_SQRT_BITS);
        let square = ((u64::from(inv_sqrt) * u64::from(inv_sqrt)) >> 32) as u32;
        let value = (3u64 << 32).wrapping_sub(u64::from(self.count) * u64::from(square));
        let value = ((value >> 2) * u64::from(inv_sqrt)) >> (32 - 2 + 1);
        self.inv_sqrt = (value >> (32 - INV_SQRT_BITS)) as u16;
    }

    /// interval / sqrt(count) after `from` (codel_control_law()).
    fn control_law(&self, from: u32, params: Params) -> u32 {
        let inv_sqrt = u64::from(self.inv_sqrt) << (32 - INV_SQRT_BITS);
        from.wrapping_add(((u64::from(params.interval) * inv_sqrt) >> 32) as u32)
    }
}

fn time(now_ns: u64) -> u32 {
    (now_ns >> SHIFT) as u32
}

fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
