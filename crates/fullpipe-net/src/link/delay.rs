//! A delay line: packets leave in order of their times. Only the head is ever due.

use std::collections::VecDeque;

/// No packet.
const NEVER_NS: u64 = u64::MAX;

/// Where a packet is that entered a delay line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// At its end now, with no other ahead of it.
    Through,
    /// In the line, at its head until this time.
    First(u64),
    /// In the line, behind others.
    Behind,
}

/// Packets in order of their times; those with equal times in order of arrival.
#[derive(Debug)]
pub struct DelayLine<P> {
    packets: VecDeque<(u64, P)>,
    /// Times of the head and of the last packet. Copies, because they are read more often than packets
    /// enter and leave.
    head_ns: u64,
    last_ns: u64,
}

impl<P> Default for DelayLine<P> {
    fn default() -> Self {
        Self {
            packets: VecDeque::new(),
            head_ns: NEVER_NS,
            last_ns: 0,
        }
    }
}

impl<P: Copy> DelayLine<P> {
    /// Inserts a packet behind all that are due no later. Returns its time if it is the head.
    #[inline]
    pub fn push(&mut self, due_ns: u64, packet: &P) -> Option<u64> {
        let is_alone = self.head_ns == NEVER_NS;
        if due_ns < self.last_ns && !is_alone {
            return self.push_before(due_ns, packet);
        }
        self.packets.push_back((due_ns, *packet));
        self.last_ns = due_ns;
        if is_alone {
            self.head_ns = due_ns;
        }
        is_alone.then_some(due_ns)
    }

    /// Carries a packet that is due at a time, now or later.
    #[inline(always)] // for every ACK
    pub fn carry(&mut self, now_ns: u64, due_ns: u64, packet: &P) -> Carried {
        if due_ns <= now_ns && self.is_empty() {
            return Carried::Through;
        }
        match self.push(due_ns, packet) {
            Some(due_ns) => Carried::First(due_ns),
            None => Carried::Behind,
        }
    }

    /// Inserts a packet that overtakes the last one.
    #[inline(never)]
    fn push_before(&mut self, due_ns: u64, packet: &P) -> Option<u64> {
        let place = self.packets.partition_point(|&(at_ns, _)| at_ns <= due_ns);
        self.packets.insert(place, (due_ns, *packet));
        self.head_ns = self.head_ns.min(due_ns);
        (place == 0).then_some(due_ns)
    }

    /// The head, if it is due. A reference, because a returned packet would be copied twice.
    #[inline]
    pub fn ready(&self, now_ns: u64) -> Option<&P> {
        if self.head_ns > now_ns {
            return None;
        }
        self.packets.front().map(|(_, packet)| packet)
    }

    /// Removes the head.
    #[inline]
    pub fn leave(&mut self) {
        self.packets.pop_front();
        self.head_ns = self.packets.front().map_or(NEVER_NS, |&(due_ns, _)| due_ns);
    }

    /// When the head is due.
    #[inline]
    pub fn due_ns(&self) -> Option<u64> {
        (self.head_ns != NEVER_NS).then_some(self.head_ns)
    }

    /// Packets in the line.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether it has no packets.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head_ns == NEVER_NS
    }
}

#[cfg(test)]
mod tests;
