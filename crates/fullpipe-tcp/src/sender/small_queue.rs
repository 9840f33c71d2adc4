//! TCP small queues: how much of a connection may wait below TCP (tcp_small_queue_check() of
//! tcp_output.c). Must never know why something is sent.

use crate::packet::Data;
use crate::rules::Rules;

/// What waits below TCP. fq holds packets back there. Without it packets leave at once, but what the arrival of
/// an ACK or a timer sends only once that is handled (both are softirqs, as is what takes packets further).
#[derive(Debug)]
pub(super) struct SmallQueue {
    is_fq: bool,
    is_in_softirq: bool,
    /// Something was not sent because of the limit (TSQ_THROTTLED).
    is_throttled: bool,
    /// sk_pacing_shift.
    shift: u8,
    /// Limit of `queued_bytes`, whatever the pacing rate.
    limit_bytes: u64,
    /// Memory of an empty buffer.
    buffer_bytes: u64,
    /// Memory of the buffers (sk_wmem_alloc_get()).
    queued_bytes: u64,
}

impl SmallQueue {
    pub(super) fn new(is_fq: bool, shift: u8, rules: Rules) -> Self {
        Self {
            is_fq,
            is_in_softirq: false,
            is_throttled: false,
            shift,
            limit_bytes: rules.paced_output_limit_bytes(),
            buffer_bytes: rules.buffer_bytes(),
            queued_bytes: 0,
        }
    }

    /// Whether too much waits for a burst with this payload; retransmissions may queue twice as much.
    #[inline]
    pub(super) fn is_full(&self, payload_bytes: u64, again: bool, rate_bytes_per_s: u64) -> bool {
        let two_bursts = 2 * (payload_bytes + self.buffer_bytes);
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

    /// The arrival of an ACK, or a timer, begins to be handled.
    #[inline]
    pub(super) fn begin_softirq(&mut self) {
        self.is_in_softirq = true;
    }

    /// It was handled: without fq everything leaves.
    #[inline]
    pub(super) fn end_softirq(&mut self) {
        self.is_in_softirq = false;
        if !self.is_fq {
            self.queued_bytes = 0;
        }
    }

    /// The limit held something back.
    pub(super) fn throttle(&mut self) {
        self.is_throttled = true;
    }

    /// What has left lets the rest follow, if the limit held something back and a packet that leaves says so
    /// (tcp_wfree()). With fq [`Self::leave`] does.
    #[inline]
    pub(super) fn take_throttled(&mut self) -> bool {
        let goes_on = std::mem::take(&mut self.is_throttled) && !self.is_fq;
        if goes_on {
            self.queued_bytes = 0;
        }
        goes_on
    }

    /// A burst is handed down. fq keeps its buffer; a device without segmentation gets one for each packet
    /// (tcp_gso_segment()).
    #[inline]
    pub(super) fn enter(&mut self, payload_bytes: u64, packets: u32) {
        if self.is_fq {
            self.queued_bytes += payload_bytes + self.buffer_bytes;
        } else if self.is_in_softirq {
            self.queued_bytes += payload_bytes + u64::from(packets) * self.buffer_bytes;
        }
    }

    /// A packet has left the queue discipline; the first of a burst frees its buffer.
    pub(super) fn leave(&mut self, packet: &Data) {
        let buffer_bytes = match packet.leads_burst {
            true => self.buffer_bytes,
            false => 0,
        };
        let left_bytes = u64::from(packet.payload_bytes) + buffer_bytes;
        self.queued_bytes = self.queued_bytes.saturating_sub(left_bytes);
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_plan::Kernel;

    use super::*;
    use crate::skb::{BUFFER_BYTES, ROUNDED_BUFFER_BYTES};

    const MSS: u32 = 1448;

    fn small_queue(is_fq: bool, limit_bytes: u64) -> SmallQueue {
        SmallQueue {
            limit_bytes,
            ..SmallQueue::new(is_fq, 10, Rules::default())
        }
    }

    fn fq(limit_bytes: u64) -> SmallQueue {
        small_queue(true, limit_bytes)
    }

    #[test]
    fn a_burst_of_6_1_weighs_more() {
        // skb->truesize: heads of 6.1 are rounded up to 1024 bytes. Of 64 KiB per 1/1024 s, bursts of two packets.
        for (kernel, buffer_bytes) in [
            (Kernel::Linux6_1, ROUNDED_BUFFER_BYTES),
            (Kernel::Linux6_12, BUFFER_BYTES),
        ] {
            let mut queue = SmallQueue::new(true, 10, kernel.into());
            let (burst_bytes, mut bursts) = (u64::from(2 * MSS), 0);
            while !queue.is_full(burst_bytes, false, 64 << 20) {
                queue.enter(burst_bytes, 2);
                bursts += 1;
            }
            let weight = burst_bytes + buffer_bytes;
            assert_eq!(bursts, 65_536_u64.div_ceil(weight), "{kernel:?}");
        }
    }

    #[test]
    fn two_bursts_may_wait_at_a_low_rate_and_four_retransmissions() {
        let mut queue = fq(u64::MAX);
        let burst_bytes = u64::from(2 * MSS);
        queue.enter(burst_bytes, 2);
        assert!(!queue.is_full(burst_bytes, false, 1000));
        queue.enter(burst_bytes, 2);
        assert!(queue.is_full(burst_bytes, false, 1000));
        assert!(!queue.is_full(burst_bytes, true, 1000));
        queue.enter(burst_bytes, 2);
        queue.enter(burst_bytes, 2);
        assert!(queue.is_full(burst_bytes, true, 1000));
    }

    #[test]
    fn what_a_millisecond_carries_may_wait_up_to_the_limit() {
        // A shift of 10 allows 1/1024 s of the rate.
        let rate = 1 << 30;
        let mut queue = fq(1 << 19);
        queue.enter((1 << 19) - BUFFER_BYTES - 1, 2);
        assert!(!queue.is_full(u64::from(MSS), false, rate));
        queue.enter(0, 2);
        assert!(queue.is_full(u64::from(MSS), false, rate));
        let mut unlimited = fq(u64::MAX);
        unlimited.enter((1 << 20) - BUFFER_BYTES - 1, 2);
        assert!(!unlimited.is_full(u64::from(MSS), false, rate));
    }

    #[test]
    fn a_burst_that_has_left_leaves_nothing() {
        let mut queue = fq(u64::MAX);
        queue.enter(u64::from(2 * MSS), 2);
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
    fn without_fq_nothing_waits_of_what_an_application_sends() {
        let mut queue = small_queue(false, 0);
        queue.enter(1 << 30, 2);
        assert!(queue.is_empty());
    }

    #[test]
    fn without_fq_what_an_ack_sends_waits_until_it_is_handled_with_a_buffer_for_each_packet() {
        // Script 9001-130 of the differential test: a third packet behind a burst of two came later.
        let packet_bytes = u64::from(MSS);
        let mut queue = small_queue(false, u64::MAX);
        queue.begin_softirq();
        queue.enter(packet_bytes, 1);
        assert!(!queue.is_full(packet_bytes, false, 1000));
        queue.enter(packet_bytes, 1);
        assert!(queue.is_full(packet_bytes, false, 1000));
        queue.throttle();
        assert!(queue.take_throttled() && queue.is_empty());
        assert!(!queue.take_throttled());
        queue.enter(2 * packet_bytes, 2);
        assert!(queue.is_full(packet_bytes, false, 1000));
        queue.end_softirq();
        assert!(queue.is_empty());
    }
}
