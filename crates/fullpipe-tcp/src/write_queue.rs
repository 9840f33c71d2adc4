//! The send buffer of a socket: what its application has written and the peer has not acknowledged, in
//! the kernel's buffers (sk_write_queue, tcp_rtx_queue), and how much memory they may take. Must never
//! know when something is sent.

use std::collections::VecDeque;

/// Room for headers in front of a buffer's payload (MAX_TCP_HEADER of a kernel without drivers of
/// wireless networks, as the virtual machine's; 320 with them).
const HEADER_ROOM_BYTES: u64 = 256;
/// SKB_DATA_ALIGN() of struct skb_shared_info and of struct sk_buff.
const SHARED_INFO_BYTES: u64 = 320;
const SK_BUFF_BYTES: u64 = 256;
/// What a buffer takes besides its payload (tcp_stream_alloc_skb(), as 6.12 counts it in `truesize`:
/// both structures and a head of 320 bytes).
const BUFFER_BYTES: u64 = 896;
/// First value of sk_sndbuf (second value of sysctl tcp_wmem).
const FIRST_LIMIT_BYTES: u64 = 16_384;
/// TCP_INIT_CWND: a send buffer has room for no smaller window.
const LEAST_WINDOW: u32 = 10;
/// mss_clamp beside the payload of a packet: the timestamp option.
const OPTION_BYTES: u64 = 12;
/// Largest payload of a buffer: sk_gso_max_size, which leaves room for headers.
pub(crate) const GSO_MAX_BYTES: u64 = 65_536 - HEADER_ROOM_BYTES - 1;

/// Pages whose parts a buffer refers to (MAX_SKB_FRAGS).
pub(crate) const MAX_PAGES: u64 = 17;
/// What an application hands over without a copy (sendfile()) lies in pages, of each call from the
/// beginning of one on.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// Buffers of one connection. Positions are packet numbers; volumes are bytes of payload, every packet
/// but the one that is being written counting as full.
pub(crate) struct WriteQueue {
    mss_bytes: u64,
    gso_max_segments: u32,
    /// Ceiling of the limit (third value of sysctl tcp_wmem).
    most_bytes: u64,
    /// No new buffer is begun where so much is not sent (TCP_NOTSENT_LOWAT).
    unsent_most_bytes: u64,
    /// One past the last packet that is written in full.
    pub(crate) end: u32,
    /// The application was refused and waits for room (SOCK_NOSPACE).
    pub(crate) is_refusing: bool,
    /// Where the buffers end that wait to be sent, but for the last, which may still grow.
    ends: VecDeque<u32>,
    /// Where the bursts end that are not acknowledged, each a buffer of its own.
    sent: VecDeque<u32>,
    /// write_seq and pushed_seq.
    written_bytes: u64,
    pushed_bytes: u64,
    /// Where buffers end whose last packet has PSH.
    marks: VecDeque<u32>,
    /// Where the pages of the last buffer end, and where those of the last call began.
    pages: VecDeque<u64>,
    call_from: u64,
    /// Largest window that the peer has offered.
    max_window_bytes: u64,
    /// What a buffer is filled up to (tp->gso_segs).
    goal_packets: u32,
    /// sk_sndbuf, and the congestion window for which it has room.
    limit_bytes: u64,
    limit_window: u32,
    /// There is not enough room before so much is acknowledged.
    look_at: u32,
}

impl WriteQueue {
    pub(crate) fn new(mss_bytes: u32, gso_max_segments: u32, most_bytes: u64) -> Self {
        Self {
            mss_bytes: mss_bytes.into(),
            gso_max_segments,
            most_bytes,
            unsent_most_bytes: u64::MAX,
            end: 0,
            is_refusing: false,
            ends: VecDeque::new(),
            sent: VecDeque::new(),
            written_bytes: 0,
            pushed_bytes: 0,
            marks: VecDeque::new(),
            pages: VecDeque::new(),
            call_from: 0,
            max_window_bytes: 0,
            goal_packets: 0,
            limit_bytes: FIRST_LIMIT_BYTES.min(most_bytes),
            limit_window: 0,
            look_at: 0,
        }
    }

    /// The application wants no more than this unsent.
    pub(crate) fn limit_unsent(&mut self, bytes: u64) {
        self.unsent_most_bytes = bytes;
    }

    /// What the application has written (write_seq).
    pub(crate) fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// tcp_send_mss(): how much the next buffer shall hold, half a window at most
    /// (tcp_bound_to_half_wnd()).
    pub(crate) fn set_goal(&mut self, window_bytes: u64) {
        self.max_window_bytes = self.max_window_bytes.max(window_bytes);
        let bytes = GSO_MAX_BYTES.min(self.max_window_bytes / 2);
        let now_bytes = u64::from(self.goal_packets) * self.mss_bytes;
        // Less than a packet more is not worth a division (tcp_xmit_size_goal()).
        if bytes < now_bytes || bytes >= now_bytes + self.mss_bytes {
            let packets = (bytes / self.mss_bytes).max(1) as u32;
            self.goal_packets = packets.min(self.gso_max_segments);
        }
    }

    /// The application hands over up to `bytes`, of which as much is taken as the last buffer has room
    /// for, or else a new one; 0: there is no memory for one. `next` is the next packet to be sent.
    pub(crate) fn take(&mut self, bytes: u64, next: u32, una: u32) -> u64 {
        let goal_bytes = u64::from(self.goal_packets) * self.mss_bytes;
        let is_empty = self.written_bytes <= u64::from(next) * self.mss_bytes;
        let goal_room = goal_bytes.saturating_sub(self.last_bytes(next));
        let mut room = goal_room.min(self.page_room(next));
        let memory_bytes = self.memory_bytes(next, una);
        // What is left of a buffer whose first part is pushed at once may be filled again and again; in
        // the kernel what waits below TCP ends that (tcp_small_queue_check()).
        if memory_bytes >= self.limit_bytes + goal_bytes + BUFFER_BYTES {
            return 0;
        }
        if is_empty || room == 0 {
            if memory_bytes >= self.limit_bytes || self.unsent_bytes(next) >= self.unsent_most_bytes
            {
                return 0;
            }
            if !is_empty {
                if goal_room > 0 {
                    // Its pages are full.
                    self.mark();
                }
                self.ends.push_back(self.marked_end());
            }
            self.pages.clear();
            room = goal_bytes.min(self.page_room(next));
        } else if self.marks.back() == Some(&self.marked_end()) {
            // It grows again, as the goal has grown since.
            self.marks.pop_back();
        }
        let taken = room.min(bytes);
        self.take_pages(taken);
        self.written_bytes += taken;
        self.end = (self.written_bytes / self.mss_bytes) as u32;
        taken
    }

    /// The application hands over pages from their beginning on.
    pub(crate) fn begin_call(&mut self) {
        self.call_from = self.written_bytes;
    }

    /// What the last buffer has room for by its pages (MAX_SKB_FRAGS), of which those sent are split off.
    fn page_room(&mut self, next: u32) -> u64 {
        let sent_bytes = u64::from(next) * self.mss_bytes;
        while self.pages.front().is_some_and(|&end| end <= sent_bytes) {
            self.pages.pop_front();
        }
        let free = MAX_PAGES.saturating_sub(self.pages.len() as u64);
        (free * PAGE_BYTES).saturating_sub((self.written_bytes - self.call_from) % PAGE_BYTES)
    }

    fn take_pages(&mut self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let end = self.written_bytes + bytes;
        let used_bytes = (self.written_bytes - self.call_from) % PAGE_BYTES;
        let first_end = self.written_bytes - used_bytes + PAGE_BYTES;
        let full = (first_end..end).step_by(PAGE_BYTES as usize);
        self.pages.extend(full.chain(std::iter::once(end)));
    }

    /// The buffer that is being written is full.
    pub(crate) fn is_last_full(&self, next: u32) -> bool {
        self.last_bytes(next) >= u64::from(self.goal_packets) * self.mss_bytes
    }

    /// It is the next to be sent.
    pub(crate) fn has_one(&self) -> bool {
        self.ends.is_empty()
    }

    /// forced_push(): half a window was written since the last push.
    pub(crate) fn must_push(&self) -> bool {
        self.written_bytes > self.pushed_bytes + self.max_window_bytes / 2
    }

    /// What is written is pushed; a mark on a buffer that still grows is taken back by the next write.
    pub(crate) fn pushed(&mut self) {
        self.pushed_bytes = self.written_bytes;
    }

    /// tcp_mark_push() of a buffer that is full for now: its last packet has PSH.
    pub(crate) fn mark(&mut self) {
        self.pushed();
        let end = self.marked_end();
        if self.marks.back() != Some(&end) {
            self.marks.push_back(end);
        }
    }

    /// One past the packet in which what is written ends.
    fn marked_end(&self) -> u32 {
        self.written_bytes.div_ceil(self.mss_bytes) as u32
    }

    /// Whether a burst up to `end` has the end of a marked buffer, which is told once.
    #[inline]
    pub(crate) fn takes_mark(&mut self, end: u32) -> bool {
        let count = self.marks.iter().take_while(|&&mark| mark <= end).count();
        self.marks.drain(..count);
        count > 0
    }

    /// Packets of the first buffer, which takes from the second what it lacks of `wanted`
    /// (tcp_grow_skb()); and whether it is the last, which may still grow.
    #[inline]
    pub(crate) fn first_packets(&mut self, next: u32, wanted: u32, grows: bool) -> (u32, bool) {
        let Some(&end) = self.ends.front() else {
            return (self.end - next, true);
        };
        let upto = next.saturating_add(wanted);
        if !grows || end >= upto {
            return (end - next, false);
        }
        let second = self.ends.get(1).copied();
        let is_whole = match second {
            Some(second) => second <= upto,
            None => self.written_bytes <= u64::from(upto) * self.mss_bytes,
        };
        if is_whole {
            self.ends.pop_front();
        } else {
            self.ends[0] = upto;
        }
        (
            upto.min(second.unwrap_or(self.end)) - next,
            is_whole && second.is_none(),
        )
    }

    /// Packets up to `end` are sent for the first time as one buffer; those before `una` are
    /// acknowledged.
    #[inline]
    pub(crate) fn sends(&mut self, end: u32, una: u32) {
        while self.ends.front().is_some_and(|&first| first <= end) {
            self.ends.pop_front();
        }
        self.forget_before(una);
        self.sent.push_back(end);
    }

    /// The application writes no more; returns one past the last packet, all in full: what it has begun of a
    /// further one is forgotten.
    pub(crate) fn finish(&mut self, next: u32) -> u32 {
        self.end = self.end.max(next);
        let end = self.end;
        self.ends.retain(|&buffer_end| buffer_end < end);
        self.marks.retain(|&mark| mark <= end);
        self.written_bytes = u64::from(end) * self.mss_bytes;
        self.pushed_bytes = self.pushed_bytes.min(self.written_bytes);
        self.pages.clear();
        self.call_from = self.call_from.min(self.written_bytes);
        self.is_refusing = false;
        end
    }

    /// tcp_sndbuf_expand(): room for `factor` windows of packets in the worst case, each in a buffer of
    /// its own whose size is a power of two. True: there is more room than before.
    pub(crate) fn expand(&mut self, window: u32, factor: u32) -> bool {
        let window = window.max(LEAST_WINDOW);
        if window <= self.limit_window {
            return false;
        }
        self.limit_window = window;
        let payload_bytes = self.mss_bytes + OPTION_BYTES;
        let head_bytes = payload_bytes + HEADER_ROOM_BYTES + SHARED_INFO_BYTES;
        let packet_bytes = head_bytes.next_power_of_two() + SK_BUFF_BYTES;
        let bytes = u64::from(window) * u64::from(factor) * packet_bytes;
        self.limit_bytes = self.limit_bytes.max(bytes.min(self.most_bytes));
        true
    }

    /// An application waits, and may have room by now or be given some for a larger window.
    #[inline(always)]
    pub(crate) fn may_wake(&self, una: u32, window: u32) -> bool {
        self.is_refusing && (una >= self.look_at || window > self.limit_window)
    }

    /// Whether an application that waits is woken: when a third of the limit is free, and less than half of
    /// what it wants unsent is (sk_stream_write_space()).
    pub(crate) fn wakes(&mut self, next: u32, una: u32, has_grown: bool) -> bool {
        if una < self.look_at && !has_grown {
            return false;
        }
        let memory_bytes = self.memory_bytes(next, una);
        if memory_bytes + memory_bytes / 2 <= self.limit_bytes {
            self.is_refusing = self.unsent_bytes(next) >= self.unsent_most_bytes / 2;
            return !self.is_refusing;
        }
        // No packet frees more than itself and a buffer.
        let beyond_bytes = memory_bytes - self.limit_bytes / 3 * 2;
        let packets = beyond_bytes.saturating_sub(3) / (self.mss_bytes + BUFFER_BYTES);
        self.look_at = una.saturating_add(u32::try_from(packets).unwrap_or(u32::MAX));
        false
    }

    /// Unsent payload of the last buffer.
    fn last_bytes(&self, next: u32) -> u64 {
        let begin = self.ends.back().map_or(next, |&end| end.max(next));
        self.written_bytes
            .saturating_sub(u64::from(begin) * self.mss_bytes)
    }

    fn unsent_bytes(&self, next: u32) -> u64 {
        self.written_bytes
            .saturating_sub(u64::from(next) * self.mss_bytes)
    }

    /// sk_wmem_queued.
    fn memory_bytes(&mut self, next: u32, una: u32) -> u64 {
        self.forget_before(una);
        let is_empty = self.written_bytes <= u64::from(next) * self.mss_bytes;
        let buffers = self.sent.len() + self.ends.len() + usize::from(!is_empty);
        let payload_bytes = self
            .written_bytes
            .saturating_sub(u64::from(una) * self.mss_bytes);
        payload_bytes + buffers as u64 * BUFFER_BYTES
    }

    fn forget_before(&mut self, una: u32) {
        while self.sent.front().is_some_and(|&end| end <= una) {
            self.sent.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1448;

    /// Hands over `bytes` as one call; what is taken of them.
    fn written(queue: &mut WriteQueue, bytes: u64, next: u32, una: u32) -> u64 {
        let mut left = bytes;
        while left > 0 {
            match queue.take(left, next, una) {
                0 => break,
                taken => left -= taken,
            }
        }
        bytes - left
    }

    /// As on Linux 6.12.117 with BBR: established with a window of 10 and room for three of them, the
    /// first call of sendfile() takes a pipe of 64 KiB while 10 packets leave two by two.
    fn begun() -> WriteQueue {
        let mut queue = WriteQueue::new(MSS as u32, 65_535, 64 << 20);
        queue.expand(10, 3);
        queue.set_goal(65_160);
        // A buffer of half a window; two packets leave, and what is left is filled up again.
        assert_eq!(queue.take(65_536, 0, 0), 22 * MSS);
        queue.sends(2, 0);
        assert_eq!(queue.take(65_536 - 22 * MSS, 2, 0), 2 * MSS);
        for end in [4, 6, 8, 10] {
            queue.sends(end, 0);
        }
        assert_eq!(queue.memory_bytes(10, 0), 40_128);
        let left = 65_536 - 24 * MSS;
        assert_eq!(written(&mut queue, left, 10, 0), left);
        queue
    }

    #[test]
    fn memory_is_counted_as_the_kernel_counts_it() {
        let mut queue = begun();
        assert_eq!(queue.memory_bytes(10, 0), 71_808);
        // The next call fills the last buffer, for which no memory is asked.
        assert_eq!(written(&mut queue, 65_536, 10, 0), 12_656);
        assert_eq!((queue.memory_bytes(10, 0), queue.end), (84_464, 54));
        // An ACK of half a burst frees its payload, of all of it the buffer too.
        assert_eq!(queue.memory_bytes(10, 1), 83_016);
        queue.sends(12, 1);
        assert_eq!(queue.memory_bytes(12, 2), 81_568);
    }

    #[test]
    fn an_application_that_was_refused_is_woken_where_a_third_of_the_limit_is_free() {
        // Of the same run: 66,672 bytes of 82,944 do not wake it, of 172,800, with a window of 25, they do.
        let mut queue = begun();
        written(&mut queue, 65_536, 10, 0);
        queue.is_refusing = true;
        assert!(queue.expand(12, 3));
        assert_eq!(queue.limit_bytes, 82_944);
        for end in (12..=40).step_by(2) {
            queue.sends(end, (end - 8) / 2);
            assert!(!queue.wakes(end, (end - 8) / 2, false));
        }
        assert_eq!(queue.memory_bytes(40, 16), 66_672);
        assert!(queue.may_wake(16, 25) && queue.expand(25, 3));
        assert_eq!(queue.limit_bytes, 172_800);
        assert!(queue.wakes(40, 16, true));
        assert!(!queue.is_refusing);
    }

    /// One with room for much, whose buffers are to hold so many packets.
    fn roomy(goal_packets: u64) -> WriteQueue {
        let mut queue = WriteQueue::new(MSS as u32, 65_535, 64 << 20);
        queue.expand(100, 3);
        queue.set_goal(2 * goal_packets * MSS);
        queue
    }

    #[test]
    fn a_buffer_of_many_small_calls_ends_with_its_seventeenth_page_and_is_pushed() {
        // skb_splice_from_iter() says -EMSGSIZE, and tcp_sendmsg_locked() marks it. Seen in the machine,
        // whose calls are refused every 60 packets: buffers end within packets there.
        let mut queue = roomy(44);
        for _ in 0..18 {
            queue.begin_call();
            assert_eq!(written(&mut queue, 2 * MSS, 0, 0), 2 * MSS);
        }
        assert_eq!(queue.ends, [34]);
        assert!(!queue.takes_mark(33) && queue.takes_mark(34) && !queue.takes_mark(36));
    }

    #[test]
    fn a_mark_is_taken_back_where_its_buffer_grows_again() {
        // tcp_sendmsg_locked() clears PSH of a buffer to which a new call adds.
        for (later_goal, is_marked) in [(27, true), (44, false)] {
            let mut queue = roomy(27);
            written(&mut queue, 27 * MSS, 0, 0);
            queue.mark();
            queue.set_goal(2 * later_goal * MSS);
            written(&mut queue, 4 * MSS, 0, 0);
            assert_eq!(queue.takes_mark(31), is_marked, "{later_goal}");
        }
    }

    #[test]
    fn what_is_pushed_at_once_takes_no_more_memory_than_one_buffer_beyond_the_limit() {
        // A window that never limits: of each buffer that is full a burst of four leaves.
        let mut queue = roomy(44);
        queue.limit_bytes = 100_000;
        let mut next = 0;
        while queue.take(1 << 20, next, 0) > 0 {
            next += 4;
            queue.sends(next, 0);
        }
        let most_bytes = 100_000 + 2 * (44 * MSS + BUFFER_BYTES);
        let bytes = queue.memory_bytes(next, 0);
        assert!((100_000..most_bytes).contains(&bytes), "{bytes}");
    }

    #[test]
    fn an_application_is_woken_no_later_for_being_asked_less_often() {
        // `look_at` leaves out ACKs that cannot matter: with it and without it, the same ACK wakes.
        for window in [10, 25, 200] {
            let mut queue = WriteQueue::new(MSS as u32, 64, 64 << 20);
            queue.expand(window, 2);
            queue.set_goal(1 << 20);
            while queue.take(1 << 20, 0, 0) > 0 {}
            queue.is_refusing = true;
            let mut una = 0;
            while !(queue.may_wake(una, window) && queue.wakes(una + 1, una, false)) {
                let bytes = queue.memory_bytes(una + 1, una);
                assert!(bytes + bytes / 2 > queue.limit_bytes, "{window} {una}");
                queue.sends(una + 1, una);
                una += 1;
            }
        }
    }

    #[test]
    fn a_first_buffer_takes_from_the_second_what_it_lacks_of_a_burst() {
        // tcp_grow_skb(): from the second only, and what is taken whole is a buffer no more.
        let mut queue = WriteQueue::new(MSS as u32, 4, 64 << 20);
        queue.expand(100, 2);
        queue.set_goal(1 << 20);
        assert_eq!(written(&mut queue, 10 * MSS, 0, 0), 10 * MSS);
        assert_eq!(queue.first_packets(0, 3, true), (4, false));
        assert_eq!(queue.first_packets(0, 6, false), (4, false));
        assert_eq!(queue.first_packets(0, 6, true), (6, false));
        assert_eq!(queue.first_packets(0, 9, true), (8, false));
        assert_eq!(queue.first_packets(0, 9, true), (9, false));
        assert_eq!(queue.first_packets(0, 20, true), (10, true));
        assert_eq!(queue.memory_bytes(0, 0), 10 * MSS + BUFFER_BYTES);
    }

    #[test]
    fn no_more_than_the_limit_waits_unsent_and_a_write_goes_on_at_half_of_it() {
        // tcp_stream_memory_free(): looked at where a buffer begins, so the last may exceed it.
        let mut queue = WriteQueue::new(MSS as u32, 45, 64 << 20);
        queue.expand(1000, 2);
        queue.set_goal(1 << 20);
        queue.limit_unsent(131_072);
        let buffer = 45 * MSS;
        assert_eq!(written(&mut queue, 1 << 20, 0, 0), 3 * buffer);
        queue.is_refusing = true;
        queue.sends(89, 0);
        assert!(!queue.wakes(89, 0, true) && queue.is_refusing);
        queue.sends(90, 0);
        assert!(queue.wakes(90, 0, true));
    }

    #[test]
    fn an_application_that_ends_leaves_the_packets_that_it_has_written_in_full() {
        let mut queue = WriteQueue::new(MSS as u32, 45, 64 << 20);
        queue.expand(1000, 2);
        queue.set_goal(1 << 20);
        written(&mut queue, 100 * MSS + 7, 0, 0);
        queue.sends(10, 0);
        assert_eq!(queue.finish(10), 100);
        assert_eq!(queue.written_bytes(), 100 * MSS);
        assert_eq!(queue.finish(120), 120);
    }
}
