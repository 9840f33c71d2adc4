//! The packets that are out: which of them are SACKed, lost or retransmitted, and how many are in flight.
//! Must never know why one is sent, or what its loss causes.

use std::ops::Range;

use crate::packet::{Block, MAX_BLOCKS};

use super::scoreboard::{
    Scoreboard, Sent, APP_LIMITED, EVER_RETRANS, LOST, NIL, RETRANS, SACKED, TIMED_OUT,
};

/// A packet that has just been marked lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LostPacket {
    /// Packets in flight when it had been sent.
    pub(super) tx_inflight: u32,
    /// Packets lost since it was sent, itself included.
    pub(super) lost: u32,
    pub(super) is_app_limited: bool,
    /// How long ago it was sent.
    pub(super) age_us: u32,
}

/// Packets `una..next`.
#[derive(Debug)]
pub(super) struct Flight {
    /// The first packet that is not acknowledged (snd_una), and one past the last that was sent (snd_nxt).
    una: u32,
    next: u32,
    board: Scoreboard,
    /// Packets SACKed, marked lost, and retransmitted and in flight (sacked_out, lost_out, retrans_out).
    sacked: u32,
    lost: u32,
    retransmitted: u32,
    /// Packets marked lost so far (tp->lost); wraps.
    total_lost: u32,
    /// No lost packet below this one waits for its retransmission (retransmit_skb_hint).
    retransmit_from: u32,
    /// One past the highest packet that was marked lost.
    lost_end: u32,
    /// SACK blocks of the previous ACK (recv_sack_cache).
    seen_blocks: [Block; MAX_BLOCKS],
}

impl Flight {
    pub(super) fn new() -> Self {
        Self {
            una: 0,
            next: 0,
            board: Scoreboard::new(),
            sacked: 0,
            lost: 0,
            retransmitted: 0,
            total_lost: 0,
            retransmit_from: 0,
            lost_end: 0,
            seen_blocks: [Block::default(); MAX_BLOCKS],
        }
    }

    #[inline(always)] // as all that only read
    pub(super) fn una(&self) -> u32 {
        self.una
    }

    #[inline(always)]
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// Packets that are out (packets_out).
    #[inline(always)]
    pub(super) fn out(&self) -> u32 {
        self.next - self.una
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.next == self.una
    }

    /// Packets in flight (tcp_packets_in_flight()).
    #[inline(always)]
    pub(super) fn inflight(&self) -> u32 {
        self.out() + self.retransmitted - self.sacked - self.lost
    }

    #[inline(always)]
    pub(super) fn sacked(&self) -> u32 {
        self.sacked
    }

    #[inline(always)]
    pub(super) fn lost(&self) -> u32 {
        self.lost
    }

    #[inline(always)]
    pub(super) fn retransmitted(&self) -> u32 {
        self.retransmitted
    }

    /// Packets marked lost so far; wraps.
    #[inline(always)]
    pub(super) fn total_lost(&self) -> u32 {
        self.total_lost
    }

    /// Whether every packet that is out was sent once and nothing is known of it.
    #[inline(always)]
    pub(super) fn is_untouched(&self) -> bool {
        self.board.has_only_bursts(self.una)
    }

    /// When the first packet was last sent.
    #[inline]
    pub(super) fn first_sent_ns(&self) -> u64 {
        self.board.oldest_sent_ns(self.una)
    }

    /// tcp_rtx_queue_empty_or_single_skb().
    pub(super) fn has_one_buffer_at_most(&self) -> bool {
        self.is_empty() || self.board.buffer_end(self.una) >= self.next
    }

    /// Whether a packet was ever retransmitted.
    pub(super) fn was_retransmitted(&self, number: u32) -> bool {
        self.flags(number) & EVER_RETRANS != 0
    }

    /// A packet's flags, even if it shares its burst's record.
    #[inline]
    pub(super) fn flags(&self, number: u32) -> u8 {
        self.board.get(number).flags
    }

    /// Whether a packet is SACKed and was not sent again since it was marked lost.
    #[inline]
    pub(super) fn is_sacked_alone(&self, number: u32) -> bool {
        self.board.own(number).flags & (SACKED | LOST | RETRANS) == SACKED
    }

    /// tcp_any_retrans_done(): an unacknowledged packet was retransmitted.
    pub(super) fn is_any_retransmitted(&self) -> bool {
        self.retransmitted > 0 || !self.is_empty() && self.was_retransmitted(self.una)
    }

    /// Gives every packet a record of its own, before packets of a burst are treated differently.
    #[inline]
    pub(super) fn split_bursts(&mut self) {
        self.board.split_bursts(self.una);
    }

    /// The record of a packet, after [`Self::split_bursts`].
    #[inline]
    pub(super) fn record(&self, number: u32) -> &Sent {
        self.board.own(number)
    }

    /// As [`Self::record`], for a rate sample that is taken from it.
    #[inline]
    pub(super) fn record_mut(&mut self, number: u32) -> &mut Sent {
        self.board.get_mut(number)
    }

    /// The next burst of new data is sent; `record` is its first packet's.
    #[inline]
    pub(super) fn send(&mut self, count: u32, record: Sent) {
        self.board.sent_first(self.next, count, record);
        self.next += count;
    }

    /// Packets are sent again; `record` is the first one's. They count as in flight only once
    /// [`Self::count_retransmitted`] says so.
    pub(super) fn send_again(&mut self, first: u32, count: u32, record: Sent) {
        self.split_bursts();
        for place in 0..count {
            self.board.sent_again(first + place, record.later(place));
        }
    }

    /// Packets that were sent again are in flight.
    pub(super) fn count_retransmitted(&mut self, first: u32, count: u32) {
        for number in first..first + count {
            let record = self.board.get_mut(number);
            record.flags = record.flags & !TIMED_OUT | RETRANS;
        }
        self.retransmitted += count;
        if self.retransmit_from == first {
            self.retransmit_from += count;
        }
    }

    /// The first lost packet that waits for its retransmission.
    #[inline]
    pub(super) fn next_to_retransmit(&mut self) -> Option<u32> {
        let from = self.retransmit_from.max(self.una);
        let waits = |number: &u32| self.record(*number).flags & (LOST | SACKED | RETRANS) == LOST;
        let found = (from..self.lost_end).find(waits);
        self.retransmit_from = found.unwrap_or(from.max(self.lost_end));
        found
    }

    /// Packets in the buffer of a lost packet, from it on.
    #[inline]
    pub(super) fn buffered_from(&self, number: u32) -> u32 {
        u32::from(self.record(number).behind) + 1
    }

    /// Splits the buffer that contains packets on both sides of `number`; `from` is `una`, or a packet of
    /// that buffer. False if there is none.
    #[inline]
    pub(super) fn cut_before(&mut self, number: u32, from: u32) -> bool {
        self.board.cut_before(number, from)
    }

    /// Merges packets `first..end`, which are SACKed, with the SACKed buffer before them.
    pub(super) fn shift_before(&mut self, first: u32, end: u32) {
        self.board.shift_before(first, end);
    }

    /// SACKed packets in one buffer have one record of having been sent again.
    pub(super) fn share_retransmission(&mut self, packets: Range<u32>) {
        let flags = packets.clone().map(|number| self.record(number).flags);
        let shared = flags.fold(0, |all, flags| all | flags) & EVER_RETRANS;
        if shared > 0 {
            for number in packets {
                self.board.get_mut(number).flags |= shared;
            }
        }
    }

    /// Packets up to `next` are acknowledged: removes those of them that share the first burst's record.
    /// Returns their number and the last one's record; `None` if the first packet has its own record.
    #[inline(always)] // for every ACK
    pub(super) fn ack_burst(&mut self, next: u32) -> Option<(u32, Sent)> {
        let (count, last) = self.board.ack_burst(self.una, next)?;
        self.una += count;
        Some((count, last))
    }

    /// Acknowledges the first packet, which has its own record with `flags`.
    #[inline]
    pub(super) fn ack_packet(&mut self, flags: u8) {
        self.sacked -= u32::from(flags & SACKED != 0);
        self.retransmitted -= u32::from(flags & RETRANS != 0);
        self.lost -= u32::from(flags & LOST != 0);
        self.una += 1;
        if self.is_empty() {
            // What a timeout sent again while its retransmission was in flight counts twice until then
            // (tcp_clean_rtx_queue(), "Leak r").
            self.retransmitted = 0;
        }
    }

    /// A packet was delivered: nothing more can be learned from when it was sent.
    #[inline]
    pub(super) fn unlink(&mut self, number: u32) {
        self.board.unlink(number);
    }

    /// A packet is SACKed.
    #[inline]
    pub(super) fn sack(&mut self, number: u32) {
        let record = self.board.get_mut(number);
        if record.flags & LOST != 0 {
            self.lost -= 1;
            self.retransmitted -= u32::from(record.flags & RETRANS != 0);
            record.flags &= !(LOST | RETRANS);
        }
        record.flags |= SACKED;
        self.sacked += 1;
    }

    /// A packet's retransmission is in flight no longer: a DSACK reported it.
    pub(super) fn end_retransmission(&mut self, number: u32) {
        let record = self.board.get_mut(number);
        if record.flags & RETRANS != 0 {
            record.flags &= !RETRANS;
            self.retransmitted -= 1;
        }
    }

    /// The SACK blocks of the previous ACK.
    pub(super) fn seen_blocks(&self) -> [Block; MAX_BLOCKS] {
        self.seen_blocks
    }

    /// An ACK with these SACK blocks is processed.
    #[inline]
    pub(super) fn see_blocks(&mut self, blocks: &[Block]) {
        self.seen_blocks = [Block::default(); MAX_BLOCKS];
        self.seen_blocks[..blocks.len()].copy_from_slice(blocks);
    }

    /// Marks a packet lost. The result is `None` if it, or its retransmission, was lost before. A
    /// retransmission whose packet an undo has unmarked stays in flight, so it waits for the next mark, mostly
    /// a timeout's (tcp_mark_skb_lost() clears SACKED_RETRANS of LOST packets only).
    #[inline]
    pub(super) fn mark_lost(&mut self, number: u32, now_ns: u64) -> Option<LostPacket> {
        let record = self.board.get_mut(number);
        let flags = record.flags;
        let is_new = flags & (LOST | RETRANS) != LOST;
        if flags & LOST == 0 {
            record.flags |= LOST;
            self.lost += 1;
        } else if flags & RETRANS != 0 {
            record.flags &= !RETRANS;
            self.retransmitted -= 1;
        }
        self.total_lost = self.total_lost.wrapping_add(u32::from(is_new));
        let packet = LostPacket {
            tx_inflight: record.burst_inflight - u32::from(record.behind),
            lost: self.total_lost.wrapping_sub(record.lost),
            is_app_limited: flags & APP_LIMITED != 0,
            age_us: (now_ns.saturating_sub(record.at_ns) / 1000) as u32,
        };
        self.retransmit_from = self.retransmit_from.min(number);
        self.lost_end = self.lost_end.max(number + 1);
        is_new.then_some(packet)
    }

    /// Whether a timeout marks a packet lost: it is in flight, and older than an RTT or in the first buffer,
    /// which ends with `first_end` (tcp_timeout_mark_lost()).
    pub(super) fn times_out(&self, number: u32, first_end: u32, now_ns: u64, rtt_us: u64) -> bool {
        let record = self.record(number);
        let age_us = now_ns.saturating_sub(record.at_ns) / 1000;
        let is_recent = number > first_end && age_us < rtt_us;
        let is_in_flight = record.flags & SACKED == 0 && record.flags & (LOST | RETRANS) != LOST;
        is_in_flight && !is_recent
    }

    /// A packet that was marked lost by a timeout leaves the order of transmission, until an undo. One whose
    /// retransmission is in flight stays, as that may be lost.
    pub(super) fn note_timeout(&mut self, number: u32) {
        if self.record(number).flags & RETRANS != 0 {
            return;
        }
        self.board.unlink(number);
        self.board.get_mut(number).flags |= TIMED_OUT;
    }

    /// Clears all loss marks.
    pub(super) fn unmark_lost(&mut self) {
        self.split_bursts();
        for number in self.una..self.next {
            let record = self.board.get_mut(number);
            if record.flags & LOST != 0 {
                record.flags &= !LOST;
                self.lost -= 1;
            }
        }
        self.board.restore_timed_out(self.una, self.next);
    }

    /// The first packet in the order of transmission that is neither delivered nor marked lost.
    #[inline]
    pub(super) fn oldest(&self) -> Option<u32> {
        Some(self.board.oldest()).filter(|&number| number != NIL)
    }

    /// The last one in that order that was sent before transmission `order`, which never falls.
    #[inline]
    pub(super) fn newest_before(&mut self, order: u32) -> Option<u32> {
        Some(self.board.newest_before(order)).filter(|&number| number != NIL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten packets in bursts of two, sent at 0, 1, ... ms.
    fn ten() -> Flight {
        let mut flight = Flight::new();
        for at_ms in 0..5 {
            let inflight = flight.inflight() + 2;
            flight.send(2, Sent::first_of(2, at_ms * 1_000_000, inflight, 0));
        }
        flight
    }

    #[test]
    fn packets_in_flight_are_those_out_less_what_is_sacked_or_lost_plus_what_is_sent_again() {
        // tcp_packets_in_flight(), step by step.
        let mut flight = ten();
        assert!(flight.is_untouched());
        flight.split_bursts();
        flight.sack(5);
        flight.sack(6);
        assert_eq!((flight.sacked(), flight.inflight()), (2, 8));
        flight.mark_lost(0, 0);
        assert_eq!((flight.lost(), flight.inflight()), (1, 7));
        flight.send_again(0, 1, Sent::first_of(1, 9_000_000, 8, 1));
        assert_eq!(flight.inflight(), 7);
        flight.count_retransmitted(0, 1);
        assert_eq!((flight.retransmitted(), flight.inflight()), (1, 8));
        let flags = flight.record(0).flags;
        flight.ack_packet(flags);
        assert_eq!((flight.una(), flight.inflight()), (1, 7));
        assert_eq!((flight.lost(), flight.retransmitted()), (0, 0));
    }

    #[test]
    fn a_lost_packet_knows_what_was_in_flight_and_lost_since_it_was_sent() {
        let mut flight = ten();
        flight.split_bursts();
        for (number, tx_inflight, lost) in [(0, 1, 1), (1, 2, 2), (4, 5, 3)] {
            let packet = flight.mark_lost(number, 50_000_000).unwrap();
            assert_eq!((packet.tx_inflight, packet.lost), (tx_inflight, lost));
        }
        let late = flight.mark_lost(9, 50_000_000).unwrap();
        assert_eq!(late.age_us, 46_000);
        assert_eq!(flight.mark_lost(9, 60_000_000), None, "it is lost already");
        assert_eq!(flight.total_lost(), 4);
    }

    #[test]
    fn a_lost_retransmission_counts_as_another_loss() {
        let mut flight = ten();
        flight.split_bursts();
        flight.mark_lost(3, 0);
        flight.send_again(3, 1, Sent::first_of(1, 9_000_000, 8, 1));
        flight.count_retransmitted(3, 1);
        assert!(flight.mark_lost(3, 20_000_000).is_some());
        assert_eq!(
            (flight.total_lost(), flight.lost(), flight.retransmitted()),
            (2, 1, 0)
        );
    }

    #[test]
    fn lost_packets_are_sent_again_in_order_and_once() {
        let mut flight = ten();
        flight.split_bursts();
        for number in [7, 2, 3] {
            flight.mark_lost(number, 0);
        }
        let mut order = Vec::new();
        while let Some(number) = flight.next_to_retransmit() {
            flight.send_again(number, 1, Sent::first_of(1, 9_000_000, 8, 1));
            flight.count_retransmitted(number, 1);
            order.push(number);
        }
        assert_eq!(order, [2, 3, 7]);
        flight.mark_lost(1, 0);
        assert_eq!(flight.next_to_retransmit(), Some(1));
        flight.sack(1);
        assert_eq!(flight.next_to_retransmit(), None);
    }

    #[test]
    fn an_undo_puts_packets_back_into_flight() {
        let mut flight = ten();
        flight.split_bursts();
        let timed_out = |flight: &Flight, number| flight.times_out(number, 1, 4_500_000, 1_000);
        for number in 0..10 {
            // The last two are younger than an RTT.
            assert_eq!(timed_out(&flight, number), number < 8, "{number}");
            if timed_out(&flight, number) {
                flight.mark_lost(number, 4_500_000);
                flight.note_timeout(number);
            }
        }
        assert_eq!(flight.inflight(), 2);
        assert_eq!(flight.oldest(), Some(8));
        flight.unmark_lost();
        assert_eq!((flight.inflight(), flight.oldest()), (10, Some(0)));
    }
}
