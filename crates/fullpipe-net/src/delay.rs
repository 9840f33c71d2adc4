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

impl<P> DelayLine<P> {
    /// Puts a packet in, behind all that are due no later. Returns the time at which the head is due
    /// if the packet is the head.
    pub fn push(&mut self, due_ns: u64, packet: P) -> Option<u64> {
        let overtakes = self
            .packets
            .back()
            .is_some_and(|&(last_ns, _)| due_ns < last_ns);
        if overtakes {
            let place = self.packets.partition_point(|&(at_ns, _)| at_ns <= due_ns);
            self.packets.insert(place, (due_ns, packet));
            return (place == 0).then_some(due_ns);
        }
        self.packets.push_back((due_ns, packet));
        (self.packets.len() == 1).then_some(due_ns)
    }

    /// The head, if it is due.
    pub fn pop(&mut self, now_ns: u64) -> Option<P> {
        let &(due_ns, _) = self.packets.front()?;
        if due_ns > now_ns {
            return None;
        }
        self.packets.pop_front().map(|(_, packet)| packet)
    }

    /// When the head is due.
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
