//! TCP small queues: how much of a connection may wait below TCP (tcp_small_queue_check() of
//! tcp_output.c). Must never know why something is sent.

use crate::packet::Data;
use crate::skb::BUFFER_BYTES;

/// What waits below TCP. Only fq holds packets back there.
#[derive(Debug)]
pub(super) struct SmallQueue {
    is_used: bool,
    mss_bytes: u64,
    /// sk_pacing_shift.
    shift: u8,
    /// Limit of `queued_bytes`, whatever the pacing rate.
    limit_bytes: u64,
    /// Memory of the buffers (sk_wmem_alloc_get()).
    queued_bytes: u64,
}

impl SmallQueue {
    pub(super) fn new(is_used: bool, mss_bytes: u32, shift: u8, limit_bytes: u64) -> Self {
        Self {
            is_used,
            mss_bytes: mss_bytes.into(),
            shift,
            limit_bytes,
            queued_bytes: 0,
        }
    }

    /// Whether too much waits for a burst of `packets`; retransmissions may queue twice as much.
    #[inline]
    pub(super) fn is_full(&self, packets: u32, again: bool, rate_bytes_per_s: u64) -> bool {
        if !self.is_used {
            return false;
        }
        let payload_bytes = u64::from(packets) * self.mss_bytes;
        let two_bursts = 2 * (payload_bytes + BUFFER_BYTES);
        let allowed = (rate_bytes_per_s >> self.shift).max(two_bursts);
        let allowed = allowed.min(self.limit_bytes);
        // sk_wmem_alloc counts the socket itself as one byte (sk_alloc()), so two equal bursts that wait
        // are already too much for a third.
        let allocated = self.queued_bytes + 1;
        allocated > allowed << u32::from(again)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queued_bytes == 0
    }

    /// A burst is handed down.
    #[inline]
    pub(super) fn enter(&mut self, payload_bytes: u64) {
        if self.is_used {
            self.queued_bytes += payload_bytes + BUFFER_BYTES;
        }
    }

    /// A packet has left the queue discipline; the first of a burst frees its buffer.
    pub(super) fn leave(&mut self, packet: &Data) {
        let buffer_bytes = if packet.leads_burst { BUFFER_BYTES } else { 0 };
        let left_bytes = u64::from(packet.payload_bytes) + buffer_bytes;
        self.queued_bytes = self.queued_bytes.saturating_sub(left_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1448;

    fn fq(limit_bytes: u64) -> SmallQueue {
        SmallQueue::new(true, MSS, 10, limit_bytes)
    }

    #[test]
    fn two_bursts_may_wait_at_a_low_rate_and_four_retransmissions() {
        let mut queue = fq(u64::MAX);
        let burst_bytes = u64::from(2 * MSS);
        queue.enter(burst_bytes);
        assert!(!queue.is_full(2, false, 1000));
        queue.enter(burst_bytes);
        assert!(queue.is_full(2, false, 1000));
        assert!(!queue.is_full(2, true, 1000));
        queue.enter(burst_bytes);
        queue.enter(burst_bytes);
        assert!(queue.is_full(2, true, 1000));
    }

    #[test]
    fn what_a_millisecond_carries_may_wait_up_to_the_limit() {
        // A shift of 10 allows 1/1024 s of the rate.
        let rate = 1 << 30;
        let mut queue = fq(1 << 19);
        queue.enter((1 << 19) - BUFFER_BYTES - 1);
        assert!(!queue.is_full(1, false, rate));
        queue.enter(0);
        assert!(queue.is_full(1, false, rate));
        let mut unlimited = fq(u64::MAX);
        unlimited.enter((1 << 20) - BUFFER_BYTES - 1);
        assert!(!unlimited.is_full(1, false, rate));
    }

    #[test]
    fn a_burst_that_has_left_leaves_nothing() {
        let mut queue = fq(u64::MAX);
        queue.enter(u64::from(2 * MSS));
        let first = Data {
            payload_bytes: MSS,
            leads_burst: true,
            ..Data::default()
        };
        queue.leave(&first);
        assert!(!queue.is_empty());
        queue.leave(&Data {
            leads_burst: false,
            ..first
        });
        assert!(queue.is_empty());
    }

    #[test]
    fn without_fq_nothing_waits() {
        let mut queue = SmallQueue::new(false, MSS, 10, 0);
        queue.enter(1 << 30);
        assert!(queue.is_empty() && !queue.is_full(1, false, 0));
    }
}
