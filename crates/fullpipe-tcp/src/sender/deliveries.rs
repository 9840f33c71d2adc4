//! What the numbers of an ACK change: packets that it acknowledges or SACKs. tcp_clean_rtx_queue() and
//! tcp_sacktag_write_queue() of tcp_input.c. Must never know the congestion control.

use std::ops::Range;

use crate::packet::{Ack, Block, MAX_BLOCKS};

use super::ack_info::{AckInfo, SendTimes};
use super::flight::Flight;
use super::rate::RateState;
use super::recovery::{echoes_before, Recovery};
use super::scoreboard::{Sent, EVER_RETRANS, LOST, RETRANS, SACKED};
use super::stream::Stream;
use super::write_queue::WriteQueue;

/// The parts of a sender that see each delivered packet.
pub(super) struct Deliveries<'a> {
    pub(super) now_ns: u64,
    pub(super) min_rtt_us: u32,
    /// Packets that the connection has sent again.
    pub(super) retransmissions: u64,
    pub(super) flight: &'a mut Flight,
    pub(super) stream: &'a Stream,
    pub(super) queue: &'a mut WriteQueue,
    pub(super) rate: &'a mut RateState,
    pub(super) recovery: &'a mut Recovery,
}

impl Deliveries<'_> {
    /// Processes SACK blocks; walks only ranges that the previous ACK did not carry.
    #[inline(never)] // only after loss or reordering
    pub(super) fn sack(&mut self, ack: &Ack, info: &mut AckInfo) {
        self.flight.split_bursts();
        let mut blocks = &ack.blocks[..usize::from(ack.count).min(MAX_BLOCKS)];
        let mut duplicate = None;
        if let (true, Some((first, others))) = (ack.dsack, blocks.split_first()) {
            duplicate = self.take_dsack(first, info).then_some(*first);
            blocks = others;
        }
        let seen = self.flight.seen_blocks();
        let next = self.flight.next();
        // tcp_sacktag_write_queue() sorts them, so the last packet walked is the highest.
        let mut ascending = [Block::default(); MAX_BLOCKS];
        let ascending = &mut ascending[..blocks.len()];
        ascending.copy_from_slice(blocks);
        ascending.sort_unstable_by_key(|block| block.start);
        // Whether the walk has ended with the last packet, before the DSACK's turn.
        let mut has_ended = false;
        let before = duplicate.map_or(0, |duplicate| {
            ascending.partition_point(|block| block.end <= duplicate.start)
        });
        for (place, block) in ascending.iter().enumerate() {
            if let (true, Some(duplicate)) = (place == before, duplicate) {
                self.walk_duplicate(&duplicate, ack.next, info);
            }
            let mut number = block.start.max(self.flight.una());
            let end = block.end.min(next);
            let comes_first = duplicate.is_some_and(|duplicate| block.start < duplicate.start);
            while number < end {
                number = match seen.iter().find(|b| b.start <= number && number < b.end) {
                    Some(seen) => seen.end,
                    None => {
                        let following = self.sack_buffer(number, end, info);
                        has_ended |= comes_first && following == next;
                        following
                    }
                };
            }
        }
        if let (true, Some(duplicate)) = (before == ascending.len(), duplicate) {
            self.walk_duplicate(&duplicate, ack.next, info);
        }
        // It then starts over at the DSACK, and finds SACKed what the block before has covered
        // (tcp_sacktag_skip()).
        if let Some(duplicate) = duplicate.filter(|_| has_ended) {
            self.walk_duplicate(&duplicate, ack.next, info);
            if duplicate.start >= ack.next {
                self.recovery.count_needless(&duplicate, self.flight);
            }
        }
        let ends = blocks.iter().map(|block| block.end.min(next));
        info.sacked_end = ends.max().unwrap_or(0);
        self.flight.see_blocks(blocks);
    }

    /// What a DSACK says of the packets that it reports; those before `next` are acknowledged.
    #[inline(never)] // rare
    fn walk_duplicate(&mut self, duplicate: &Block, next: u32, info: &mut AckInfo) {
        self.look_for_late_originals(duplicate, next, info);
        self.sack_duplicate(duplicate, next, info);
    }

    /// A DSACK arrived; false if it says nothing of retransmissions.
    fn take_dsack(&mut self, duplicate: &Block, info: &mut AckInfo) -> bool {
        let counts = self
            .recovery
            .duplicate_reported(duplicate, self.flight, self.retransmissions);
        if counts {
            info.is_dsack = true;
            // The retransmission was delivered as well.
            self.rate.count_delivered(duplicate.end - duplicate.start);
        }
        counts
    }

    /// tcp_sacktag_one() for a DSACK of packets that the same ACK acknowledges, up to `next`: one that is SACKed
    /// was sent again because it came late. Such a block is valid while the episode may be undone
    /// (tcp_is_sackblock_valid()).
    fn look_for_late_originals(&self, duplicate: &Block, next: u32, info: &mut AckInfo) {
        if !self.recovery.may_undo_before(duplicate.end) {
            return;
        }
        for number in duplicate.start.max(self.flight.una())..duplicate.end.min(next) {
            if self.is_late_original(number) {
                info.note_reordered(number);
            }
        }
    }

    /// Whether a packet is SACKed and was sent again: of one that a DSACK reports the original came late.
    fn is_late_original(&self, number: u32) -> bool {
        let flags = self.flight.record(number).flags;
        flags & (SACKED | EVER_RETRANS) == SACKED | EVER_RETRANS
    }

    /// tcp_sacktag_one() for a DSACK beyond `next`: the packets are SACKed even if no block has named them,
    /// and one that is SACKed already was sent again because it came late.
    fn sack_duplicate(&mut self, duplicate: &Block, next: u32, info: &mut AckInfo) {
        let mut number = duplicate.start.max(next);
        let end = duplicate.end.min(self.flight.next());
        while number < end {
            let flags = self.flight.record(number).flags;
            if self.is_late_original(number) {
                info.note_reordered(number);
            }
            let following = self.sack_buffer(number, end, info);
            if flags & RETRANS != 0 {
                self.flight.end_retransmission(number);
            }
            number = following;
        }
        self.part_behind(end);
    }

    /// Of a SACKed buffer in which a DSACK ends before packet `end`, the rest becomes a buffer of its own: what was
    /// split for the walk is merged again with the data before it only (tcp_match_skb_to_sack(),
    /// tcp_shift_skb_data()).
    fn part_behind(&mut self, end: u32) {
        let (una, next) = (self.flight.una(), self.flight.next());
        let is_within = una < end && end < next;
        if is_within && self.flight.is_sacked_alone(end - 1) && self.flight.is_sacked_alone(end) {
            self.cut_buffer(end);
        }
    }

    /// tcp_sacktag_walk(): applies a SACK block that ends at `end` to the buffer from `number` on; returns
    /// one past the last packet processed. A partly covered buffer is split (tcp_match_skb_to_sack()). If
    /// the packet before is SACKed, the covered part is merged with it instead, and the rate sample is the
    /// whole buffer's (tcp_shift_skb_data()).
    #[inline(always)] // keeps the references of `self` in registers
    fn sack_buffer(&mut self, number: u32, end: u32, info: &mut AckInfo) -> u32 {
        let record = self.flight.record(number);
        let (flags, next) = (record.flags, number + 1 + u32::from(record.behind));
        if flags & SACKED != 0 {
            return number + 1;
        }
        let una = self.flight.una();
        self.cut_before(number, una);
        let taken = next.min(end);
        let merges = number > una
            && self.flight.is_sacked_alone(number - 1)
            && flags & (LOST | RETRANS) != RETRANS
            && self.have_equal_segments(number);
        let is_shifted = merges && taken < next;
        if !is_shifted {
            self.cut_before(taken, number);
        }
        for number in number..taken {
            self.sack_packet(number, info);
        }
        if is_shifted {
            self.flight.shift_before(number, taken);
            let (from, to) = (self.byte(number), self.byte(taken));
            let shared = self.queue.move_boundary(from, to, self.byte(una));
            self.share_record(shared);
        } else if merges {
            self.merge_before(number);
            let has_next = taken < self.flight.next() && self.flight.is_sacked_alone(taken);
            if has_next && self.have_equal_segments(taken) {
                self.merge_before(taken);
            }
        }
        taken
    }

    /// Whether the buffers that meet before a packet have segments of one size, as they must to be merged
    /// (tcp_skb_seglen()): a short packet in a buffer of its own stays there.
    #[inline]
    fn have_equal_segments(&mut self, number: u32) -> bool {
        let una = self.flight.una();
        !self.stream.has_short()
            || self
                .queue
                .have_equal_segments(self.byte(number), self.byte(una))
    }

    /// Merges the SACKed buffers that meet before a packet.
    fn merge_before(&mut self, number: u32) {
        let una = self.byte(self.flight.una());
        let shared = self.queue.merge_before(self.byte(number), una);
        self.share_record(shared);
    }

    /// Where a packet begins.
    #[inline]
    fn byte(&self, number: u32) -> u64 {
        self.stream.bytes_before(number)
    }

    /// Packets that share a buffer count as sent again if one of them was (tcp_shifted_skb()).
    #[inline]
    fn share_record(&mut self, shared: Option<Range<u64>>) {
        if let (Some(bytes), true) = (shared, self.retransmissions > 0) {
            let first = self.stream.packet_of(bytes.start);
            let end = self.stream.packet_of(bytes.end);
            self.flight.share_retransmission(first..end);
        }
    }

    /// Splits the buffer that contains packets on both sides of `number`; `from` is the first packet that is
    /// out, or a packet of that buffer (tcp_fragment()).
    #[inline(always)] // as `sack_buffer`
    fn cut_before(&mut self, number: u32, from: u32) {
        if self.flight.cut_before(number, from) {
            self.cut_buffer(number);
        }
    }

    fn cut_buffer(&mut self, number: u32) {
        let una = self.byte(self.flight.una());
        self.queue.cut_before(self.byte(number), una);
    }

    #[inline(always)] // as `sack_buffer`
    fn sack_packet(&mut self, number: u32, info: &mut AckInfo) {
        let sent = *self.flight.record(number);
        let Sent { flags, at_ns, .. } = sent;
        self.advance_rack(&sent);
        self.deliver(number, info);
        self.flight.sack(number);
        info.sacked = true;
        if flags & EVER_RETRANS == 0 {
            SendTimes::add(&mut info.newly_sacked, at_ns);
            self.recovery.note_original_sack(number, info);
        }
    }

    /// Acknowledges all packets before `next`. With `PREDICTED` all records are bursts.
    #[inline(always)] // keeps `AckInfo` in registers
    pub(super) fn acknowledge<const PREDICTED: bool>(&mut self, next: u32, info: &mut AckInfo) {
        let before = self.flight.una();
        while self.flight.una() < next {
            let first = self.flight.una();
            match self.flight.ack_burst(next) {
                Some((count, last)) => self.ack_burst(first, count, last, info),
                None if PREDICTED => break, // unreachable
                None => self.ack_packet(info),
            }
        }
        info.acked_packets = next - before;
    }

    /// The first `count` packets of a burst that still has one record were acknowledged; `last` is the last
    /// packet's, which stands for all.
    #[inline(always)] // as `acknowledge`
    fn ack_burst(&mut self, first: u32, count: u32, mut last: Sent, info: &mut AckInfo) {
        self.note_original_ack(first, last.at_ns, info);
        self.advance_rack(&last);
        self.rate.count_delivered(count);
        self.rate
            .packet_delivered(&mut info.sample, &mut last, first + count - 1);
    }

    /// Acknowledges the first packet, which has a record of its own.
    #[inline(always)] // as `acknowledge`
    fn ack_packet(&mut self, info: &mut AckInfo) {
        let number = self.flight.una();
        let sent = *self.flight.record(number);
        let Sent { flags, at_ns, .. } = sent;
        if flags & EVER_RETRANS != 0 {
            info.acked_retransmission = true;
        } else if flags & SACKED == 0 {
            self.note_original_ack(number, at_ns, info);
        }
        if flags & SACKED == 0 {
            // tcp_skb_spurious_retrans(): the timestamp echo is older than the retransmission, so the
            // original was delivered.
            let is_spurious = flags & EVER_RETRANS != 0 && echoes_before(info.echo_ns, at_ns);
            if !is_spurious {
                self.advance_rack(&sent);
            }
            self.deliver(number, info);
        }
        self.flight.ack_packet(flags);
    }

    /// A packet that was sent once and not SACKed is acknowledged.
    #[inline(always)] // as `acknowledge`
    fn note_original_ack(&self, number: u32, at_ns: u64, info: &mut AckInfo) {
        SendTimes::add(&mut info.acked, at_ns);
        self.recovery.note_original_ack(number, info);
    }

    #[inline(always)] // as `sack_buffer`
    fn deliver(&mut self, number: u32, info: &mut AckInfo) {
        self.rate.count_delivered(1);
        let record = self.flight.record_mut(number);
        self.rate.packet_delivered(&mut info.sample, record, number);
        self.flight.unlink(number);
    }

    #[inline(always)] // as `acknowledge`
    fn advance_rack(&mut self, sent: &Sent) {
        self.recovery.delivered(sent, self.now_ns, self.min_rtt_us);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender::stream::Stream;
    use crate::sender::testing::config;

    const MS: u64 = 1_000_000;

    /// Ten packets in bursts of two, sent at 10, 11, ... ms, and what sees their delivery.
    struct Parts {
        flight: Flight,
        queue: WriteQueue,
        rate: RateState,
        recovery: Recovery,
        stream: Stream,
        retransmissions: u64,
    }

    impl Parts {
        fn new() -> Self {
            Self::with_short(1448)
        }

        /// The same with this payload in packet 4.
        fn with_short(bytes: u64) -> Self {
            let mut parts = Self {
                flight: Flight::new(),
                queue: WriteQueue::new(1448, 44, 1 << 20),
                rate: RateState::default(),
                recovery: Recovery::new(),
                stream: Stream::new(&config()),
                retransmissions: 0,
            };
            parts.stream.send(4, bytes, 0);
            for at_ms in 10..15 {
                let mut record = Sent::first_of(2, at_ms * MS, parts.flight.inflight() + 2, 0);
                parts.rate.sent(&mut record, at_ms * 1000, at_ms == 10);
                parts.flight.send(2, record);
                let end = parts.stream.bytes_before(parts.flight.next());
                parts.queue.send(end, 0);
            }
            parts
        }

        /// Sends packets again at 20 ms.
        fn send_again(&mut self, first: u32, count: u32) {
            let record = Sent::first_of(count, 20 * MS, 10, 0);
            self.flight.split_bursts();
            for number in [first, first + count] {
                self.flight.cut_before(number, 0);
                self.queue.cut_before(self.stream.bytes_before(number), 0);
            }
            self.flight.send_again(first, count, record);
            self.retransmissions += u64::from(count);
        }

        /// Processes an ACK at 50 ms.
        fn take(&mut self, ack: &Ack) -> AckInfo {
            let mut info = AckInfo::default();
            let mut deliveries = Deliveries {
                now_ns: 50 * MS,
                min_rtt_us: 30_000,
                retransmissions: self.retransmissions,
                flight: &mut self.flight,
                stream: &self.stream,
                queue: &mut self.queue,
                rate: &mut self.rate,
                recovery: &mut self.recovery,
            };
            if ack.count > 0 {
                deliveries.sack(ack, &mut info);
            }
            deliveries.acknowledge::<false>(ack.next, &mut info);
            info
        }
    }

    fn ack(next: u32, blocks: &[(u32, u32)]) -> Ack {
        let mut ack = Ack {
            next,
            count: blocks.len() as u8,
            ..Ack::default()
        };
        for (slot, &(start, end)) in ack.blocks.iter_mut().zip(blocks) {
            *slot = Block { start, end };
        }
        ack
    }

    #[test]
    fn each_packet_is_delivered_once_whatever_acknowledges_it() {
        let mut parts = Parts::new();
        for (ack, delivered) in [
            (ack(1, &[]), 1),
            (ack(1, &[(4, 6)]), 3),
            (ack(1, &[(4, 8)]), 5),
            (ack(1, &[(4, 8)]), 5),
            (ack(3, &[(4, 8)]), 7),
            (ack(10, &[]), 10),
        ] {
            parts.take(&ack);
            assert_eq!(parts.rate.delivered(), delivered);
        }
        assert_eq!((parts.flight.inflight(), parts.flight.sacked()), (0, 0));
    }

    #[test]
    fn rtts_are_those_of_the_first_and_the_last_packet_that_an_ack_covers() {
        let mut parts = Parts::new();
        let info = parts.take(&ack(4, &[(8, 10)]));
        assert_eq!(info.acked.unwrap().rtts_us(50 * MS), (40_000, 39_000));
        assert_eq!(
            info.newly_sacked.unwrap().rtts_us(50 * MS),
            (36_000, 36_000)
        );
        assert_eq!((info.acked_packets, info.sacked_end), (4, 10));
    }

    #[test]
    fn a_packet_that_is_acknowledged_below_one_sacked_before_was_reordered() {
        let mut parts = Parts::new();
        let info = parts.take(&ack(0, &[(6, 7)]));
        parts.recovery.learn_reordering(
            &info,
            (&parts.flight, &parts.stream),
            parts.rate.delivered(),
        );
        let info = parts.take(&ack(0, &[(3, 4), (6, 7)]));
        assert_eq!(info.reordered, Some(3));
    }

    #[test]
    fn reordering_reaches_up_to_the_ack_that_leaves_nothing_sacked() {
        // tcp_highest_sack_seq() is snd_una without SACKed packets. The kernel's answer to script 50-109 of
        // the differential test: an ACK of seven packets after a SACK of the third.
        for (next, threshold) in [(7, 6), (4, 3)] {
            let mut parts = Parts::new();
            for ack in [ack(1, &[(2, 3)]), ack(next, &[])] {
                let info = parts.take(&ack);
                parts.recovery.learn_reordering(
                    &info,
                    (&parts.flight, &parts.stream),
                    parts.rate.delivered(),
                );
            }
            assert_eq!(parts.recovery.dupthresh(), threshold, "{next}");
            assert_eq!(parts.recovery.reorderings(), 1);
        }
    }

    #[test]
    fn one_ack_may_show_reordering_by_its_blocks_and_by_its_number() {
        // tcp_sacktag_write_queue() and tcp_clean_rtx_queue() each call tcp_check_sack_reordering().
        let mut parts = Parts::new();
        for ack in [ack(0, &[(8, 9)]), ack(2, &[(4, 5), (8, 9)])] {
            let info = parts.take(&ack);
            parts.recovery.learn_reordering(
                &info,
                (&parts.flight, &parts.stream),
                parts.rate.delivered(),
            );
        }
        assert_eq!(
            (parts.recovery.dupthresh(), parts.recovery.reorderings()),
            (9, 2)
        );
    }

    #[test]
    fn a_dsack_shows_reordering_by_what_a_block_up_to_the_last_packet_has_just_sacked() {
        // tcp_sacktag_skip(): behind the last packet the walk starts over (script 9001-436 of the differential
        // test).
        for (end, reorderings) in [(10, 1), (9, 0)] {
            let mut parts = Parts::new();
            parts.send_again(8, 1);
            let mut answer = ack(5, &[(8, 9), (7, end)]);
            answer.dsack = true;
            let info = parts.take(&answer);
            parts.recovery.learn_reordering(
                &info,
                (&parts.flight, &parts.stream),
                parts.rate.delivered(),
            );
            assert_eq!(parts.recovery.reorderings(), reorderings, "{end}");
        }
    }

    #[test]
    fn sacked_packets_that_share_a_buffer_were_sent_again_if_one_was() {
        // tcp_shifted_skb(); script 9001-376 of the differential test.
        let mut parts = Parts::new();
        parts.send_again(6, 2);
        parts.take(&ack(3, &[(4, 8)]));
        let sent_again: Vec<bool> = (3..10).map(|n| parts.flight.was_retransmitted(n)).collect();
        assert_eq!(sent_again, [false, true, true, true, true, false, false]);
    }

    #[test]
    fn what_lies_behind_a_dsack_within_a_sacked_buffer_is_a_buffer_of_its_own() {
        // tcp_shift_skb_data() takes what was split back from the left only. Packet 4 was sent again, fills the hole
        // between 3 and 5, and shares its record with both, not with 6 and 7 (script 9012-66 of the differential
        // test).
        for (has_dsack, sent_again) in [
            (true, [true, true, true, false, false]),
            (false, [true, true, true, true, true]),
        ] {
            let mut parts = Parts::new();
            parts.take(&ack(1, &[(3, 4)]));
            parts.take(&ack(1, &[(3, 4), (5, 8)]));
            parts.send_again(4, 1);
            if has_dsack {
                let mut answer = ack(1, &[(5, 6), (5, 8), (3, 4)]);
                answer.dsack = true;
                parts.take(&answer);
            }
            parts.take(&ack(1, &[(3, 8)]));
            let flags: Vec<bool> = (3..8).map(|n| parts.flight.was_retransmitted(n)).collect();
            assert_eq!(flags, sent_again, "{has_dsack}");
        }
    }

    #[test]
    fn blocks_before_a_dsack_are_walked_before_it() {
        // tcp_sacktag_write_queue() sorts all blocks, so the first packet SACKed is the one for the RTT
        // (first_sackt): script 9161-150 of the differential test.
        let cases: [(&[(u32, u32)], u64); 3] = [
            (&[(8, 9), (8, 9), (4, 6)], 12),
            (&[(0, 1), (8, 9), (4, 6)], 12),
            (&[(8, 9), (8, 10)], 14),
        ];
        for (blocks, first_ms) in cases {
            let mut parts = Parts::new();
            parts.send_again(1, 1);
            let mut answer = ack(1, blocks);
            answer.dsack = true;
            let sacked = parts.take(&answer).newly_sacked.expect("some are SACKed");
            let (first_rtt_us, _) = sacked.rtts_us(50 * MS);
            assert_eq!(first_rtt_us, (50 - first_ms) * 1000, "{blocks:?}");
        }
    }

    #[test]
    fn a_short_packet_keeps_its_buffer_among_sacked_full_ones() {
        // tcp_shift_skb_data() compares tcp_skb_seglen(): script 9161-28 of the differential test.
        for (short_bytes, shared) in [(1448, [true, true, true]), (700, [false, true, false])] {
            let mut parts = Parts::with_short(short_bytes);
            parts.take(&ack(1, &[(3, 4), (5, 6)]));
            parts.send_again(4, 1);
            parts.take(&ack(1, &[(3, 6)]));
            let flags = [3, 4, 5].map(|number| parts.flight.was_retransmitted(number));
            assert_eq!(flags, shared, "{short_bytes}");
        }
    }

    #[test]
    fn the_rate_sample_is_the_newest_packets() {
        // draft-ietf-ccwg-bbr section 4.1.2.3.
        let mut parts = Parts::new();
        let mut info = parts.take(&ack(2, &[(4, 6)]));
        parts.rate.generate(&mut info.sample, true, 50_000, 30_000);
        assert_eq!((info.sample.delivered, info.sample.tx_inflight), (4, 6));
        assert_eq!(info.sample.interval_us, 40_000);
    }
}
