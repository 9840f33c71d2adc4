//! The scoreboard: which packets between `snd_una` and `snd_nxt` are SACKed, lost or retransmitted, and
//! their order of transmission (Linux's retransmission queue and its tsorted list).
//!
//! Most bursts are acknowledged whole and in order. A burst therefore has one record until its packets
//! have to be treated differently; then each gets its own ([`Scoreboard::split_bursts`]).

use std::collections::VecDeque;

/// No packet.
pub(super) const NIL: u32 = u32::MAX;

pub(super) const SACKED: u8 = 1;
pub(super) const LOST: u8 = 2;
/// The retransmission is in flight.
pub(super) const RETRANS: u8 = 4;
pub(super) const EVER_RETRANS: u8 = 8;
/// Sent while application-limited.
pub(super) const APP_LIMITED: u8 = 16;
const LISTED: u8 = 32;
/// Marked lost by a timeout; Linux leaves such packets in the order of transmission.
pub(super) const TIMED_OUT: u8 = 64;

/// A packet's record (tcp_skb_cb.tx and sk_buff.skb_mstamp_ns).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    /// When it was last sent.
    pub(super) at_ns: u64,
    /// Send time of the packet that starts its rate sample.
    pub(super) first_tx_us: u64,
    /// When `delivered` last grew before it was sent; 0: its rate sample was taken.
    pub(super) delivered_us: u64,
    pub(super) delivered: u32,
    pub(super) delivered_ce: u32,
    /// Serial number of its last transmission; wraps. Linux compares send times, but simulated packets
    /// may be sent at the same time.
    pub(super) order: u32,
    /// Packets in flight once its whole buffer was sent (Google's tx.in_flight).
    pub(super) burst_inflight: u32,
    /// Packets lost before it was sent (Google's tx.lost).
    pub(super) lost: u32,
    prev: u32,
    next: u32,
    /// Packets after it in its buffer (sk_buff), which is its burst until that is split.
    pub(super) behind: u16,
    pub(super) flags: u8,
    /// Which reading of the clock `at_ns` is; wraps. In a kernel each takes some time.
    pub(super) reading: u8,
}

impl Sent {
    /// The record of the first packet of a burst of `count`.
    pub(super) fn first_of(count: u32, at_ns: u64, burst_inflight: u32, lost: u32) -> Self {
        Self {
            at_ns,
            burst_inflight,
            lost,
            behind: (count - 1) as u16,
            ..Self::default()
        }
    }

    /// The record of the packet that follows after `places` in the same burst.
    pub(super) fn later(&self, places: u32) -> Self {
        Self {
            order: self.order.wrapping_add(places),
            behind: self.behind - places as u16,
            ..*self
        }
    }
}

/// A burst with one record for all its packets.
#[derive(Clone, Copy, Debug)]
struct SentBurst {
    first: u32,
    count: u32,
    /// The first packet's record.
    sent: Sent,
}

/// A ring of packets indexed by number, with a list through it in the order of transmission, and the
/// bursts that were sent after all packets of the ring.
#[derive(Debug)]
pub(super) struct Scoreboard {
    ring: Vec<Sent>,
    bursts: VecDeque<SentBurst>,
    head: u32,
    tail: u32,
    /// The newest packet of that order which [`Self::newest_before`] has passed, or `NIL`.
    passed: u32,
    transmissions: u32,
    /// One past the last packet that has a record of its own.
    own_end: u32,
}

impl Scoreboard {
    pub(super) fn new() -> Self {
        Self {
            ring: vec![Sent::default(); 1],
            bursts: VecDeque::new(),
            head: NIL,
            tail: NIL,
            passed: NIL,
            transmissions: 0,
            own_end: 0,
        }
    }

    /// Gives every packet a record of its own; `from` is `snd_una`. To be called before packets of a
    /// burst are treated differently.
    #[inline]
    pub(super) fn split_bursts(&mut self, from: u32) {
        if !self.bursts.is_empty() {
            self.split_all_bursts(from);
        }
    }

    #[inline(never)]
    fn split_all_bursts(&mut self, from: u32) {
        while let Some(burst) = self.bursts.pop_front() {
            let need = (burst.first + burst.count - from) as usize;
            if need > self.ring.len() {
                self.grow(from, burst.first, need);
            }
            for place in 0..burst.count {
                *self.get_mut(burst.first + place) = burst.sent.later(place);
                self.append(burst.first + place);
            }
            self.own_end = burst.first + burst.count;
        }
    }

    #[inline(never)]
    fn grow(&mut self, from: u32, first: u32, need: usize) {
        let old = std::mem::take(&mut self.ring);
        let mask = old.len() - 1;
        self.ring = vec![Sent::default(); need.next_power_of_two()];
        let new_mask = self.ring.len() - 1;
        for number in from..first {
            self.ring[number as usize & new_mask] = old[number as usize & mask];
        }
    }

    /// Whether all packets from `from` on, which is `snd_una`, are in bursts.
    #[inline]
    pub(super) fn has_only_bursts(&self, from: u32) -> bool {
        from >= self.own_end
    }

    /// When packet `number`, which is `snd_una`, was last sent.
    #[inline]
    pub(super) fn oldest_sent_ns(&self, number: u32) -> u64 {
        match self.bursts.front() {
            Some(burst) if burst.first <= number => burst.sent.at_ns,
            _ => self.own(number).at_ns,
        }
    }

    /// A packet's record. That of its burst differs in `order` and `behind`.
    #[inline]
    pub(super) fn get(&self, number: u32) -> &Sent {
        match self.bursts.front() {
            Some(burst) if burst.first <= number => self.burst_of(burst, number),
            _ => self.own(number),
        }
    }

    /// One past the last packet of the buffer that holds packet `number`.
    pub(super) fn buffer_end(&self, number: u32) -> u32 {
        let behind = self.bursts.partition_point(|burst| burst.first <= number);
        match behind.checked_sub(1) {
            Some(index) => self.bursts[index].first + self.bursts[index].count,
            None => number + u32::from(self.own(number).behind) + 1,
        }
    }

    #[inline]
    fn burst_of<'a>(&'a self, oldest: &'a SentBurst, number: u32) -> &'a Sent {
        if number - oldest.first < oldest.count {
            return &oldest.sent;
        }
        let behind = self.bursts.partition_point(|burst| burst.first <= number);
        &self.bursts[behind - 1].sent
    }

    /// The record of a packet that has its own, after [`Self::split_bursts`].
    #[inline]
    pub(super) fn own(&self, number: u32) -> &Sent {
        &self.ring[number as usize & (self.ring.len() - 1)]
    }

    /// As [`Self::own`], mutable.
    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> &mut Sent {
        let mask = self.ring.len() - 1;
        &mut self.ring[number as usize & mask]
    }

    /// Splits the buffer that contains packets on both sides of `number` (tcp_fragment()); `from` is
    /// `snd_una`. False if there is none.
    #[inline]
    pub(super) fn cut_before(&mut self, number: u32, from: u32) -> bool {
        let is_inside = number > from && self.own(number - 1).behind > 0;
        if is_inside {
            self.cut_inside(number, from);
        }
        is_inside
    }

    fn cut_inside(&mut self, number: u32, from: u32) {
        let second = self.own(number - 1).behind;
        let mut place = number - 1;
        loop {
            let record = self.get_mut(place);
            record.behind -= second;
            record.burst_inflight -= u32::from(second);
            if place == from || self.own(place - 1).behind == 0 {
                return;
            }
            place -= 1;
        }
    }

    /// Merges packets `first..end`, which are SACKed, with the SACKed buffer before them
    /// (tcp_shifted_skb()).
    pub(super) fn shift_before(&mut self, first: u32, end: u32) {
        let left = u32::from(self.own(end - 1).behind);
        self.cut_before(end, first);
        for place in end..end + left {
            self.get_mut(place).burst_inflight -= end - first;
        }
    }

    /// The first packet in the order of transmission that is neither delivered nor marked lost.
    #[inline]
    pub(super) fn oldest(&self) -> u32 {
        self.head
    }

    /// The last one in that order that was sent before transmission `order`, which never falls. Each call
    /// goes on where the one before ended, so that all together pass each transmission once.
    #[inline]
    pub(super) fn newest_before(&mut self, order: u32) -> u32 {
        loop {
            let next = match self.passed {
                NIL => self.head,
                passed => self.own(passed).next,
            };
            if next == NIL || !is_later(order, self.own(next).order) {
                return self.passed;
            }
            self.passed = next;
        }
    }

    /// A burst is sent for the first time; `sent` is its first packet's record without `order`.
    #[inline]
    pub(super) fn sent_first(&mut self, first: u32, count: u32, mut sent: Sent) {
        sent.order = self.transmissions.wrapping_add(1);
        self.transmissions = self.transmissions.wrapping_add(count);
        self.bursts.push_back(SentBurst { first, count, sent });
    }

    /// Packets `from..end` are acknowledged: removes those of them that share the first burst's record.
    /// Returns their number and the last one's record; `None` if the first packet has its own record.
    #[inline]
    pub(super) fn ack_burst(&mut self, from: u32, end: u32) -> Option<(u32, Sent)> {
        let burst = self
            .bursts
            .front_mut()
            .filter(|burst| burst.first == from)?;
        let taken = burst.count.min(end - from);
        let last = burst.sent.later(taken - 1);
        if taken == burst.count {
            self.bursts.pop_front();
        } else {
            burst.first += taken;
            burst.count -= taken;
            burst.sent.order = last.order.wrapping_add(1);
            burst.sent.behind = last.behind - 1;
        }
        Some((taken, last))
    }

    /// A packet is retransmitted, and becomes the newest transmission.
    pub(super) fn sent_again(&mut self, number: u32, sent: Sent) {
        self.unlink(number);
        self.transmissions = self.transmissions.wrapping_add(1);
        let flags = self.own(number).flags & !APP_LIMITED;
        *self.get_mut(number) = Sent {
            order: self.transmissions,
            flags: flags | EVER_RETRANS | sent.flags,
            ..sent
        };
        self.append(number);
    }

    fn append(&mut self, number: u32) {
        let tail = self.tail;
        let record = self.get_mut(number);
        record.flags |= LISTED;
        record.prev = tail;
        record.next = NIL;
        if tail == NIL {
            self.head = number;
        } else {
            self.get_mut(tail).next = number;
        }
        self.tail = number;
    }

    /// Restores the place of packets in the order of transmission that timeouts had removed.
    pub(super) fn restore_timed_out(&mut self, from: u32, to: u32) {
        if (from..to).all(|number| self.own(number).flags & TIMED_OUT == 0) {
            return;
        }
        let is_out = |flags: u8| flags & (LISTED | TIMED_OUT) != 0 && flags & SACKED == 0;
        let mut out: Vec<u32> = (from..to)
            .filter(|&number| is_out(self.own(number).flags))
            .collect();
        let newest = self.transmissions;
        out.sort_by_key(|&number| std::cmp::Reverse(newest.wrapping_sub(self.own(number).order)));
        for number in out {
            self.get_mut(number).flags &= !TIMED_OUT;
            self.unlink(number);
            self.append(number);
        }
    }

    /// Removes a packet from the order of transmission.
    #[inline]
    pub(super) fn unlink(&mut self, number: u32) {
        let record = self.get_mut(number);
        if record.flags & LISTED == 0 {
            return;
        }
        record.flags &= !LISTED;
        let (prev, next) = (record.prev, record.next);
        if self.passed == number {
            self.passed = prev;
        }
        if prev == NIL {
            self.head = next;
        } else {
            self.get_mut(prev).next = next;
        }
        if next == NIL {
            self.tail = prev;
        } else {
            self.get_mut(next).prev = prev;
        }
    }
}

/// Whether transmission `a` came after `b`.
pub(super) fn is_later(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_packet_before_a_transmission_is_the_one_that_a_walk_of_all_finds() {
        let mut random = 88_172_645_463_325_252_u64;
        let mut below = move |end: u32| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % u64::from(end)) as u32
        };
        for _ in 0..50 {
            let mut board = Scoreboard::new();
            let (mut sent, mut delivered) = (0, 0);
            for _ in 0..200 {
                match below(6) {
                    0 => {
                        board.sent_first(sent, 2, Sent::first_of(2, 0, 0, 0));
                        sent += 2;
                        board.split_bursts(0);
                    }
                    1 if sent > 0 => board.sent_again(below(sent), Sent::default()),
                    2 if sent > 0 => board.unlink(below(sent)),
                    3 if sent > 0 => {
                        let number = below(sent);
                        board.unlink(number);
                        board.get_mut(number).flags |= TIMED_OUT;
                    }
                    4 => board.restore_timed_out(0, sent),
                    _ => delivered += below(board.transmissions - delivered + 1),
                }
                let is_before = |number: &u32| {
                    let record = board.own(*number);
                    record.flags & LISTED != 0 && record.order < delivered
                };
                let newest = (0..sent)
                    .filter(is_before)
                    .max_by_key(|&number| board.own(number).order);
                assert_eq!(board.newest_before(delivered), newest.unwrap_or(NIL));
            }
        }
    }
}
