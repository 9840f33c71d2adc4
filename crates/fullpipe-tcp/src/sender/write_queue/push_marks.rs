//! Which buffers have PSH. Must never know why.

use std::collections::VecDeque;

/// Ends of the buffers that have PSH.
#[derive(Default)]
pub(super) struct PushMarks {
    unsent: VecDeque<u64>,
    sent: VecDeque<u64>,
}

impl PushMarks {
    /// The last one of those that are not sent.
    pub(super) fn last(&self) -> Option<u64> {
        self.unsent.back().copied()
    }

    pub(super) fn take_last(&mut self) {
        self.unsent.pop_back();
    }

    pub(super) fn mark_last(&mut self, end: u64) {
        if self.unsent.back() != Some(&end) {
            self.unsent.push_back(end);
        }
    }

    pub(super) fn mark_first(&mut self, end: u64) {
        if self.unsent.front() != Some(&end) {
            self.unsent.push_front(end);
        }
    }

    /// PSH is a flag of the buffer, so it moves to the end of one that is extended (tcp_grow_skb()).
    pub(super) fn move_first(&mut self, from: u64, to: u64) {
        if self.unsent.front() == Some(&from) {
            self.unsent.pop_front();
            self.mark_first(to);
        }
    }

    /// Whether a burst up to `end` contains a packet with PSH, which its buffer keeps.
    #[inline]
    pub(super) fn take(&mut self, end: u64) -> bool {
        let marks = self.unsent.iter();
        let count = marks.take_while(|&&mark| mark <= end).count();
        self.unsent.drain(..count);
        if count > 0 {
            self.sent.push_back(end);
        }
        count > 0
    }

    /// Whether the buffer that ends at `end` was sent with PSH.
    pub(super) fn had(&self, end: u64) -> bool {
        self.sent.binary_search(&end).is_ok()
    }

    /// What is before `una` is acknowledged.
    pub(super) fn free_before(&mut self, una: u64) {
        while self.sent.front().is_some_and(|&end| end <= una) {
            self.sent.pop_front();
        }
    }
}
