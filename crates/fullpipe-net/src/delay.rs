//! A line of packets that leave at their times: in order of arrival, unless one is due before those
//! ahead of it.

use std::collections::VecDeque;

/// Packets on their way, in the order in which they are due; only the head is ever due.
#[derive(Debug)]
pub struct DelayLine<P> {
    packets: VecDeque<(u64, P)>,
}

impl<P> Default for DelayLine<P> {
    fn default() -> Self {
        Self {
            packets: VecDeque::new(),
        }
    }
}

impl<P: Copy> DelayLine<P> {
    /// Puts a packet in, behind all that are due no later. Returns the time at which the head is due
    /// if the packet is the head.
    #[inline]
    pub fn push(&mut self, due_ns: u64, packet: &P) -> Option<u64> {
        let last_ns = self.packets.back().map_or(0, |&(last_ns, _)| last_ns);
        if due_ns < last_ns {
            return self.push_before(due_ns, packet);
        }
        self.packets.push_back((due_ns, *packet));
        (self.packets.len() == 1).then_some(due_ns)
    }

    /// It overtakes the last one.
    #[inline(never)]
    fn push_before(&mut self, due_ns: u64, packet: &P) -> Option<u64> {
        let place = self.packets.partition_point(|&(at_ns, _)| at_ns <= due_ns);
        self.packets.insert(place, (due_ns, *packet));
        (place == 0).then_some(due_ns)
    }

    /// The head, if it is due: a caller copies it, for a copy that is returned is copied again.
    #[inline]
    pub fn ready(&self, now_ns: u64) -> Option<&P> {
        let (due_ns, packet) = self.packets.front()?;
        (*due_ns <= now_ns).then_some(packet)
    }

    /// The head leaves.
    #[inline]
    pub fn leave(&mut self) {
        self.packets.pop_front();
    }

    /// When the head is due.
    #[inline]
    pub fn due_ns(&self) -> Option<u64> {
        self.packets.front().map(|&(due_ns, _)| due_ns)
    }

    /// Packets on their way.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}
