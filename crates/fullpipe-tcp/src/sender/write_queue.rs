//! The send buffer of a socket: unsent and unacknowledged data in the kernel's buffers (sk_write_queue,
//! tcp_rtx_queue), and their memory limit. Must never know when something is sent.

use std::collections::VecDeque;
use std::ops::Range;

use crate::skb::{BUFFER_BYTES, GSO_MAX_BYTES, HEADER_ROOM_BYTES, MAX_PAGES, PAGE_BYTES};

use super::config::SenderConfig;

/// SKB_DATA_ALIGN() of struct skb_shared_info and of struct sk_buff.
const SHARED_INFO_BYTES: u64 = 320;
const SK_BUFF_BYTES: u64 = 256;
/// Initial sk_sndbuf (second value of sysctl tcp_wmem).
const FIRST_LIMIT_BYTES: u64 = 16_384;
/// TCP_INIT_CWND: a send buffer has room for at least this window.
const LEAST_WINDOW: u32 = 10;
/// The timestamp option, which mss_clamp includes.
const OPTION_BYTES: u64 = 12;

/// How far the stream is sent and acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// `snd_nxt` and `snd_una`, in bytes.
    pub(super) next: u64,
    pub(super) una: u64,
    /// The first packet that is not acknowledged.
    pub(super) una_packet: u32,
}

/// The send buffer of one connection. Positions are bytes of the stream.
#[derive(Default)]
pub(super) struct WriteQueue {
    mss_bytes: u64,
    gso_max_segments: u32,
    /// Memory of an empty buffer.
    buffer_bytes: u64,
    /// Ceiling of the limit (third value of sysctl tcp_wmem).
    most_bytes: u64,
    /// No buffer is started while this much is unsent (TCP_NOTSENT_LOWAT).
    notsent_lowat_bytes: u64,
    /// The application is blocked (SOCK_NOSPACE).
    is_blocking: bool,
    /// Ends of unsent buffers, without the last one, which may still grow.
    ends: VecDeque<u64>,
    /// Ends of sent, unacknowledged bursts, each of which is a buffer.
    sent: VecDeque<u64>,
    /// write_seq and pushed_seq.
    written_bytes: u64,
    pushed_bytes: u64,
    /// Ends of unsent buffers that have PSH, and of sent ones.
    psh_ends: VecDeque<u64>,
    sent_psh_ends: VecDeque<u64>,
    /// Ends of the last buffer's page fragments, and where the last write began.
    pages: VecDeque<u64>,
    write_start_bytes: u64,
    /// Where writes began whose data are not acknowledged.
    write_starts: VecDeque<u64>,
    /// Where the last call of tcp_sendmsg() began, and whether each page is a call of its own.
    call_start_bytes: u64,
    /// The last call began with more memory than the limit: it may complete a buffer, but not refill one.
    was_full_at_call: bool,
    /// Where the last buffer was started.
    last_start_bytes: u64,
    sends_page_by_page: bool,
    /// Largest window that the peer has offered.
    max_window_bytes: u64,
    /// Target size of a buffer (tp->gso_segs), a packet at least.
    goal_packets: u32,
    /// sk_sndbuf, and the congestion window it was sized for.
    limit_bytes: u64,
    limit_window: u32,
    /// There is not enough space before this packet is acknowledged.
    wake_una: u32,
    /// A blocked application was woken, and has not looked yet whether there is space.
    was_woken: bool,
}

impl WriteQueue {
    /// The send buffer of a sender.
    pub(super) fn of(config: &SenderConfig) -> Self {
        Self {
            notsent_lowat_bytes: config.notsent_lowat_bytes.unwrap_or(u64::MAX),
            buffer_bytes: config.rules.buffer_bytes(),
            sends_page_by_page: config.rules.sends_page_by_page(),
            ..Self::new(
                config.mss_bytes,
                config.gso_max_segments,
                config.wmem_max_bytes,
            )
        }
    }

    pub(super) fn new(mss_bytes: u32, gso_max_segments: u32, most_bytes: u64) -> Self {
        Self {
            mss_bytes: mss_bytes.into(),
            gso_max_segments,
            buffer_bytes: BUFFER_BYTES,
            most_bytes,
            notsent_lowat_bytes: u64::MAX,
            goal_packets: 1,
            limit_bytes: FIRST_LIMIT_BYTES.min(most_bytes),
            write_starts: VecDeque::from([0]),
            ..Self::default()
        }
    }

    /// The application is blocked.
    #[inline(always)]
    pub(super) fn is_blocking(&self) -> bool {
        self.is_blocking
    }

    /// Each page is a call of its own.
    pub(super) fn sends_page_by_page(&self) -> bool {
        self.sends_page_by_page
    }

    /// A write found no space: blocks the application.
    pub(super) fn block(&mut self) {
        self.is_blocking = true;
    }

    /// Bytes written (write_seq).
    #[inline(always)]
    pub(super) fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// tcp_send_mss(): sets the target size of buffers, at most half a window (tcp_bound_to_half_wnd()).
    pub(super) fn set_goal(&mut self, window_bytes: u64) {
        self.max_window_bytes = self.max_window_bytes.max(window_bytes);
        let bytes = GSO_MAX_BYTES.min(self.max_window_bytes / 2);
        let now_bytes = u64::from(self.goal_packets) * self.mss_bytes;
        // Avoids the division while the packet count stays the same (tcp_xmit_size_goal()).
        if bytes < now_bytes || bytes >= now_bytes + self.mss_bytes {
            let packets = (bytes / self.mss_bytes).max(1) as u32;
            self.goal_packets = packets.min(self.gso_max_segments);
        }
    }

    /// Appends up to `bytes` to the last buffer, or to a new one if that is full. Returns how much was
    /// appended; 0: no memory. `next` is `snd_nxt`, `una` is `snd_una`.
    pub(super) fn append(&mut self, bytes: u64, next: u64, una: u64) -> u64 {
        let goal_bytes = u64::from(self.goal_packets) * self.mss_bytes;
        let is_empty = self.written_bytes <= next;
        let goal_room = goal_bytes.saturating_sub(self.last_bytes(next));
        let mut room = goal_room.min(self.page_room(next));
        let memory_bytes = self.memory_bytes(next, una);
        // A buffer whose first part is always sent at once could be refilled without end; in the kernel
        // TCP small queues stop that (tcp_small_queue_check()).
        if memory_bytes >= self.limit_bytes + goal_bytes + self.buffer_bytes {
            return 0;
        }
        if self.was_full_at_call {
            let appended_bytes = self.written_bytes - self.last_start_bytes;
            room = room.min(goal_bytes.saturating_sub(appended_bytes));
        }
        if is_empty || room == 0 {
            if memory_bytes >= self.limit_bytes
                || self.unsent_bytes(next) >= self.notsent_lowat_bytes
            {
                return 0;
            }
            if !is_empty {
                if goal_room > 0 {
                    // All its page fragments are used.
                    self.mark_push(next);
                }
                self.ends.push_back(self.written_bytes);
            }
            self.pages.clear();
            self.last_start_bytes = self.written_bytes;
            room = goal_bytes.min(self.page_room(next));
        }
        let extends = !is_empty && self.psh_ends.back() == Some(&self.written_bytes);
        let taken = room.min(bytes);
        self.append_pages(taken);
        let begins_call = self.begins_call_within(taken);
        self.written_bytes += taken;
        if extends && self.ends.back() != self.psh_ends.back() {
            // The buffer of a marked packet grows. Only the first bytes of a call clear the mark.
            self.psh_ends.pop_back();
            if !begins_call {
                self.psh_ends.push_back(self.written_bytes);
            }
        }
        taken
    }

    /// Whether a call begins within the next `bytes`.
    fn begins_call_within(&self, bytes: u64) -> bool {
        if !self.sends_page_by_page {
            return self.written_bytes == self.call_start_bytes;
        }
        let used_bytes = (self.written_bytes - self.write_start_bytes) % PAGE_BYTES;
        used_bytes == 0 || used_bytes + bytes > PAGE_BYTES
    }

    /// A write begins, at the beginning of a page. What was sent before has left the last buffer.
    pub(super) fn begin_write(&mut self, next: u64) {
        self.last_start_bytes = self.last_start_bytes.max(next);
        self.write_start_bytes = self.written_bytes;
        if self.write_starts.back() != Some(&self.written_bytes) {
            self.write_starts.push_back(self.written_bytes);
        }
    }

    /// A call of tcp_sendmsg() begins.
    pub(super) fn begin_call(&mut self, next: u64, una: u64) {
        self.call_start_bytes = self.written_bytes;
        self.was_full_at_call = self.memory_bytes(next, una) >= self.limit_bytes;
    }

    /// Room in the last buffer's page fragments (MAX_SKB_FRAGS); sent fragments do not count.
    fn page_room(&mut self, next: u64) -> u64 {
        while self.pages.front().is_some_and(|&end| end <= next) {
            self.pages.pop_front();
        }
        let free = MAX_PAGES.saturating_sub(self.pages.len() as u64);
        (free * PAGE_BYTES)
            .saturating_sub((self.written_bytes - self.write_start_bytes) % PAGE_BYTES)
    }

    fn append_pages(&mut self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let end = self.written_bytes + bytes;
        let used_bytes = (self.written_bytes - self.write_start_bytes) % PAGE_BYTES;
        let first_end = self.written_bytes - used_bytes + PAGE_BYTES;
        let full = (first_end..end).step_by(PAGE_BYTES as usize);
        self.pages.extend(full.chain(std::iter::once(end)));
    }

    /// Whether the last buffer is full.
    pub(super) fn is_last_full(&self, next: u64) -> bool {
        self.last_bytes(next) >= u64::from(self.goal_packets) * self.mss_bytes
    }

    /// Whether what is written next begins a buffer.
    pub(super) fn begins_buffer(&self, next: u64) -> bool {
        self.written_bytes <= next || self.is_last_full(next)
    }

    /// Whether there is only one unsent buffer.
    pub(super) fn has_one_buffer(&self) -> bool {
        self.ends.is_empty()
    }

    /// forced_push(): more than half a window was written since the last push.
    pub(super) fn must_push(&self) -> bool {
        self.written_bytes > self.pushed_bytes + self.max_window_bytes / 2
    }

    /// tcp_mark_push(): the last packet gets PSH if bytes up to `next` are sent and it is not, unless a
    /// later write extends its buffer.
    pub(super) fn mark_push(&mut self, next: u64) {
        let end = self.written_bytes;
        if end <= next {
            return;
        }
        self.pushed_bytes = self.written_bytes;
        if self.psh_ends.back() != Some(&end) {
            self.psh_ends.push_back(end);
        }
    }

    /// tcp_write_wakeup(): what is sent next, up to `end`, has PSH, and all of its buffer counts as pushed.
    pub(super) fn mark_psh_at(&mut self, end: u64) {
        self.pushed_bytes = self.pushed_bytes.max(self.head_end());
        if self.psh_ends.front() != Some(&end) {
            self.psh_ends.push_front(end);
        }
    }

    /// Whether a burst up to `end` contains a packet with PSH, which its buffer keeps.
    #[inline]
    pub(super) fn take_psh(&mut self, end: u64) -> bool {
        let count = self
            .psh_ends
            .iter()
            .take_while(|&&mark| mark <= end)
            .count();
        self.psh_ends.drain(..count);
        if count > 0 {
            self.sent_psh_ends.push_back(end);
        }
        count > 0
    }

    /// Whether the buffer that ends at `end` was sent with PSH: a retransmission has it again
    /// (__tcp_retransmit_skb()).
    pub(super) fn had_psh(&self, end: u64) -> bool {
        self.sent_psh_ends.binary_search(&end).is_ok()
    }

    /// Where the first unsent buffer ends.
    fn head_end(&self) -> u64 {
        self.ends.front().copied().unwrap_or(self.written_bytes)
    }

    /// Bytes of the first unsent buffer.
    pub(super) fn head_bytes(&self, next: u64) -> u64 {
        self.head_end() - next
    }

    /// Bytes of the first buffer, and whether it is the last. If `grows` it is extended from the second up to
    /// `wanted` bytes (tcp_grow_skb()).
    #[inline]
    pub(super) fn first_bytes(&mut self, next: u64, wanted: u64, grows: bool) -> (u64, bool) {
        let Some(&end) = self.ends.front() else {
            return (self.written_bytes - next, true);
        };
        let upto = next + wanted;
        if !grows || end >= upto {
            return (end - next, false);
        }
        let second = self.ends.get(1).copied();
        let second_end = second.unwrap_or(self.written_bytes);
        let is_whole = second_end <= upto;
        if is_whole {
            self.ends.pop_front();
        } else {
            self.ends[0] = upto;
            if second.is_none() {
                self.last_start_bytes = upto;
            }
        }
        let grown = upto.min(second_end);
        self.move_psh(end, grown);
        (grown - next, is_whole && second.is_none())
    }

    /// The first buffer is split in two at `end` (tso_fragment()), and nothing of it is sent yet.
    pub(super) fn cut_first(&mut self, end: u64) {
        if self.has_one_buffer() {
            self.last_start_bytes = end;
        }
        self.ends.push_front(end);
    }

    /// PSH is a flag of the buffer, so it moves to the end of one that is extended (tcp_grow_skb()).
    fn move_psh(&mut self, from: u64, to: u64) {
        if self.psh_ends.front() == Some(&from) {
            self.psh_ends.pop_front();
            if self.psh_ends.front() != Some(&to) {
                self.psh_ends.push_front(to);
            }
        }
    }

    /// Bytes up to `end` are sent as one buffer; those before `una` are acknowledged.
    #[inline]
    pub(super) fn send(&mut self, end: u64, una: u64) {
        while self.ends.front().is_some_and(|&first| first <= end) {
            self.ends.pop_front();
        }
        self.free_before(una);
        self.sent.push_back(end);
    }

    /// A sent buffer is split in two at `byte` (tcp_fragment()).
    pub(super) fn cut_before(&mut self, byte: u64, una: u64) {
        self.free_before(una);
        let place = self.sent.partition_point(|&end| end < byte);
        if byte > una && self.sent.get(place).is_some_and(|&end| end != byte) {
            self.sent.insert(place, byte);
        }
    }

    /// Whether the sent buffers that meet at `byte` have segments of one size.
    pub(super) fn have_equal_segments(&mut self, byte: u64, una: u64) -> bool {
        self.free_before(una);
        let place = self.sent.partition_point(|&end| end < byte);
        let following = (self.sent.get(place), self.sent.get(place + 1));
        let (Some(&end), Some(&following_end)) = following else {
            return false;
        };
        if end != byte {
            return true; // They are one already.
        }
        let segment = |bytes: u64| bytes.min(self.mss_bytes);
        let first_bytes = byte - self.buffer_start(place, una);
        segment(first_bytes) == segment(following_end - byte)
    }

    /// Of two SACKed buffers that meet at `byte` the second one's data are moved into the first, and it is freed,
    /// if the first has page fragments left for all of them (tcp_shift_skb_data(), skb_shift()). Returns the
    /// bytes that share a buffer then.
    pub(super) fn merge_before(&mut self, byte: u64, una: u64) -> Option<Range<u64>> {
        self.free_before(una);
        let place = self.sent.partition_point(|&end| end < byte);
        let (&first_end, &second_end) = (self.sent.get(place)?, self.sent.get(place + 1)?);
        let start = self.buffer_start(place, una);
        let fits = first_end == byte && self.pages_between(start, second_end) <= MAX_PAGES;
        fits.then(|| {
            self.sent.remove(place);
            self.wake_una = 0;
            start..second_end
        })
    }

    /// The first bytes of a SACKed buffer, up to `to`, are moved into the SACKed one before them, which ends at
    /// `from` (tcp_shift_skb_data()). Returns the bytes that share it then.
    pub(super) fn move_boundary(&mut self, from: u64, to: u64, una: u64) -> Option<Range<u64>> {
        self.free_before(una);
        let place = self.sent.partition_point(|&end| end < from);
        let is_boundary = self.sent.get(place) == Some(&from);
        is_boundary.then(|| {
            self.sent[place] = to;
            self.buffer_start(place, una)..to
        })
    }

    /// The first byte of a sent buffer that is not acknowledged.
    fn buffer_start(&self, place: usize, una: u64) -> u64 {
        place.checked_sub(1).map_or(una, |before| self.sent[before])
    }

    /// Page fragments that some data are, as each write begins at the beginning of a page.
    fn pages_between(&self, first_byte: u64, end_byte: u64) -> u64 {
        let begun = self
            .write_starts
            .partition_point(|&start| start <= first_byte);
        let mut pages = 0;
        let mut from = first_byte;
        for place in begun.saturating_sub(1)..self.write_starts.len() {
            let start = self.write_starts[place].min(from);
            let following = self.write_starts.get(place + 1);
            let to = following.map_or(end_byte, |&following| following.min(end_byte));
            if to > from {
                pages += (to - start).div_ceil(PAGE_BYTES) - (from - start) / PAGE_BYTES;
                from = to;
            }
        }
        pages
    }

    /// The application stops writing. Returns how many bytes it has written.
    pub(super) fn finish(&mut self) -> u64 {
        self.is_blocking = false;
        self.written_bytes
    }

    /// tcp_sndbuf_expand(): space for `factor` windows of packets, each in a buffer of its own whose size
    /// is a power of two. True if the limit has grown.
    pub(super) fn expand(&mut self, window: u32, factor: u32) -> bool {
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

    /// Whether [`Self::wakes`] or [`Self::expand`] may unblock the application; `una` is a packet.
    #[inline(always)]
    pub(super) fn may_wake(&self, una: u32, window: u32) -> bool {
        self.is_blocking && (una >= self.wake_una || window > self.limit_window)
    }

    /// Whether a blocked application is woken: a third of the limit is free, and less than half of
    /// TCP_NOTSENT_LOWAT is unsent (sk_stream_write_space()).
    pub(super) fn wakes(&mut self, at: Progress, has_grown: bool) -> bool {
        if at.una_packet < self.wake_una && !has_grown {
            return false;
        }
        let memory_bytes = self.memory_bytes(at.next, at.una);
        if memory_bytes + memory_bytes / 2 <= self.limit_bytes {
            self.is_blocking = self.unsent_bytes(at.next) >= self.notsent_lowat_bytes / 2;
            self.was_woken = !self.is_blocking;
            return self.was_woken;
        }
        // An acknowledged packet frees at most itself and a buffer.
        let beyond_bytes = memory_bytes - self.limit_bytes / 3 * 2;
        let packets = beyond_bytes.saturating_sub(3) / (self.mss_bytes + self.buffer_bytes);
        let packets = u32::try_from(packets).unwrap_or(u32::MAX);
        self.wake_una = at.una_packet.saturating_add(packets);
        false
    }

    /// An application is about to write. If it was woken it looks first whether there still is space, as
    /// poll() does, and waits on otherwise: what was sent meanwhile has taken memory for its buffers (tcp_poll()).
    pub(super) fn has_space(&mut self, at: Progress) -> bool {
        if !std::mem::take(&mut self.was_woken) || self.wakes(at, true) {
            self.was_woken = false;
            return true;
        }
        self.is_blocking = true;
        false
    }

    /// Unsent payload of the last buffer.
    fn last_bytes(&self, next: u64) -> u64 {
        let begin = self.ends.back().map_or(next, |&end| end.max(next));
        self.written_bytes.saturating_sub(begin)
    }

    /// Payload that is not sent.
    #[inline]
    pub(super) fn unsent_bytes(&self, next: u64) -> u64 {
        self.written_bytes.saturating_sub(next)
    }

    /// sk_wmem_queued.
    fn memory_bytes(&mut self, next: u64, una: u64) -> u64 {
        self.free_before(una);
        let is_empty = self.written_bytes <= next;
        let buffers = self.sent.len() + self.ends.len() + usize::from(!is_empty);
        let payload_bytes = self.written_bytes.saturating_sub(una);
        payload_bytes + buffers as u64 * self.buffer_bytes
    }

    fn free_before(&mut self, una: u64) {
        while self.sent.front().is_some_and(|&end| end <= una) {
            self.sent.pop_front();
        }
        while self.sent_psh_ends.front().is_some_and(|&end| end <= una) {
            self.sent_psh_ends.pop_front();
        }
        while self.write_starts.get(1).is_some_and(|&next| next <= una) {
            self.write_starts.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_plan::Kernel;

    use super::*;
    use crate::sender::testing::config;

    const MSS: u64 = 1448;

    /// Appends `bytes` until the queue is full; returns how much was appended.
    fn append_all(queue: &mut WriteQueue, bytes: u64, next: u64, una: u64) -> u64 {
        let mut left = bytes;
        while left > 0 {
            match queue.append(left, next, una) {
                0 => break,
                taken => left -= taken,
            }
        }
        bytes - left
    }

    /// Packets up to `next` are sent, those before `una` acknowledged.
    fn at(next: u64, una: u64) -> Progress {
        Progress {
            next: next * MSS,
            una: una * MSS,
            una_packet: una as u32,
        }
    }

    /// As seen on Linux 6.12.117 with BBR, established with a window of 10 and space for three of them:
    /// the first sendfile() appends a pipe of 64 KiB while 10 packets are sent in pairs.
    fn after_first_write() -> WriteQueue {
        let mut queue = WriteQueue::new(MSS as u32, 65_535, 64 << 20);
        queue.expand(10, 3);
        queue.set_goal(65_160);
        // A buffer of half a window; two packets are sent, and the rest of the buffer is filled up.
        assert_eq!(queue.append(65_536, 0, 0), 22 * MSS);
        queue.send(2 * MSS, 0);
        assert_eq!(queue.append(65_536 - 22 * MSS, 2 * MSS, 0), 2 * MSS);
        for end in [4, 6, 8, 10] {
            queue.send(end * MSS, 0);
        }
        assert_eq!(queue.memory_bytes(10 * MSS, 0), 40_128);
        let left = 65_536 - 24 * MSS;
        assert_eq!(append_all(&mut queue, left, 10 * MSS, 0), left);
        queue
    }

    #[test]
    fn memory_is_counted_as_the_kernel_counts_it() {
        let mut queue = after_first_write();
        assert_eq!(queue.memory_bytes(10 * MSS, 0), 71_808);
        // The next write fills the last buffer, which needs no memory check.
        assert_eq!(append_all(&mut queue, 65_536, 10 * MSS, 0), 12_656);
        assert_eq!(queue.memory_bytes(10 * MSS, 0), 84_464);
        assert_eq!(queue.written_bytes, 54 * MSS);
        // An ACK of half a burst frees payload; an ACK of all of it also frees the buffer.
        assert_eq!(queue.memory_bytes(10 * MSS, MSS), 83_016);
        queue.send(12 * MSS, MSS);
        assert_eq!(queue.memory_bytes(12 * MSS, 2 * MSS), 81_568);
    }

    #[test]
    fn an_empty_buffer_of_6_1_has_a_head_of_1024_bytes() {
        // Of 640 bytes kmalloc() makes 1024, and struct sk_buff has 256: script 9161-2 of the differential test.
        for (kernel, bytes) in [(Kernel::Linux6_1, 1_280), (Kernel::Linux6_12, 896)] {
            let mut queue = WriteQueue::of(&SenderConfig {
                rules: kernel.into(),
                ..config()
            });
            queue.append(1, 0, 0);
            assert_eq!(queue.memory_bytes(0, 0), 1 + bytes, "{kernel:?}");
        }
    }

    #[test]
    fn buffers_hold_a_packet_where_half_the_window_is_less() {
        // tcp_xmit_size_goal(): max(size_goal, mss_now).
        for window_bytes in [1, 2 * MSS - 1, 2 * MSS, 4 * MSS - 1] {
            let mut queue = roomy(1);
            queue.max_window_bytes = 0;
            queue.set_goal(window_bytes);
            assert_eq!(queue.append(10 * MSS, 0, 0), MSS, "{window_bytes}");
        }
        let mut queue = WriteQueue::new(MSS as u32, 44, 64 << 20);
        queue.set_goal(2_048);
        assert_eq!(queue.append(10 * MSS, 0, 0), MSS);
    }

    #[test]
    fn sacked_buffers_become_one_as_far_as_17_page_fragments_go() {
        // MAX_SKB_FRAGS pages of 4096 bytes hold 48 packets of 1448 bytes from a page's beginning, and
        // 44 whole bursts from the 69,504th byte on.
        let mut queue = roomy(100);
        assert_eq!(append_all(&mut queue, 100 * MSS, 0, 0), 100 * MSS);
        for end in (2..=100).step_by(2) {
            queue.send(end * MSS, 0);
        }
        let buffers = |queue: &mut WriteQueue| {
            let bytes = queue.memory_bytes(100 * MSS, 0) - 100 * MSS;
            assert_eq!(bytes % BUFFER_BYTES, 0);
            bytes / BUFFER_BYTES
        };
        assert_eq!(buffers(&mut queue), 50);
        for number in (2..100).step_by(2) {
            queue.merge_before(number * MSS, 0);
        }
        assert_eq!(buffers(&mut queue), 3);
        assert_eq!(queue.sent, [48, 92, 100].map(|end| end * MSS));
        // Nothing meets there any more; a split buffer is two again.
        queue.merge_before(10 * MSS, 0);
        queue.cut_before(51 * MSS, 0);
        queue.cut_before(51 * MSS, 0);
        queue.cut_before(100 * MSS, 0);
        assert_eq!(queue.sent, [48, 51, 92, 100].map(|end| end * MSS));
    }

    #[test]
    fn an_application_is_woken_by_memory_that_sacks_free() {
        let mut queue = WriteQueue::new(MSS as u32, 64, 64 << 20);
        queue.expand(20, 2);
        queue.set_goal(1 << 20);
        while queue.append(MSS, queue.written_bytes, 0) > 0 {
            queue.send(queue.written_bytes, 0);
        }
        queue.is_blocking = true;
        let end = queue.written_bytes / MSS;
        let has_space =
            |queue: &mut WriteQueue| queue.may_wake(1, 20) && queue.wakes(at(end, 1), false);
        let mut freed = 0;
        while !has_space(&mut queue) {
            queue.merge_before((2 + freed) * MSS, MSS);
            freed += 1;
            assert!(freed < end, "woken while memory is there");
        }
        let memory_bytes = queue.memory_bytes(end * MSS, MSS);
        assert!(memory_bytes * 3 / 2 <= queue.limit_bytes);
        assert!((memory_bytes + BUFFER_BYTES) * 3 / 2 > queue.limit_bytes);
    }

    #[test]
    fn a_blocked_application_is_woken_when_a_third_of_the_limit_is_free() {
        // In the same run 66,672 bytes of 82,944 do not wake it, but of 172,800, with a window of 25, do.
        let mut queue = after_first_write();
        append_all(&mut queue, 65_536, 10 * MSS, 0);
        queue.is_blocking = true;
        assert!(queue.expand(12, 3));
        assert_eq!(queue.limit_bytes, 82_944);
        for end in (12..=40).step_by(2) {
            let una = (end - 8) / 2;
            queue.send(end * MSS, una * MSS);
            assert!(!queue.wakes(at(end, una), false));
        }
        assert_eq!(queue.memory_bytes(40 * MSS, 16 * MSS), 66_672);
        assert!(queue.may_wake(16, 25) && queue.expand(25, 3));
        assert_eq!(queue.limit_bytes, 172_800);
        assert!(queue.wakes(at(40, 16), true));
        assert!(!queue.is_blocking);
    }

    #[test]
    fn an_application_that_was_woken_waits_on_if_what_was_sent_meanwhile_took_the_space() {
        // Script 9001-34 of the differential test: each burst has a buffer of its own.
        let mut queue = roomy(44);
        queue.limit_bytes = 64_512;
        let bytes = 38 * MSS;
        assert_eq!(append_all(&mut queue, bytes, 0, 0), bytes);
        let just_enough = (64_512 - 2 * BUFFER_BYTES) * 2 / 3 / MSS;
        let una = 38 - just_enough;
        queue.send((una + 1) * MSS, una * MSS);
        queue.is_blocking = true;
        assert!(queue.wakes(at(una + 1, una), true));
        let mut with_more_buffers = una + 1;
        for end in una + 2..una + 8 {
            queue.send(end * MSS, una * MSS);
            with_more_buffers = end;
        }
        assert!(!queue.has_space(at(with_more_buffers, una)) && queue.is_blocking);
        // One that was not woken does not look.
        assert!(queue.has_space(at(with_more_buffers, una)));
    }

    /// A queue with much space, whose buffers should hold `goal_packets`.
    fn roomy(goal_packets: u64) -> WriteQueue {
        let mut queue = WriteQueue::new(MSS as u32, 65_535, 64 << 20);
        queue.expand(100, 3);
        queue.set_goal(2 * goal_packets * MSS);
        queue
    }

    #[test]
    fn a_buffer_of_many_small_calls_ends_with_its_seventeenth_page_and_is_pushed() {
        // skb_splice_from_iter() returns -EMSGSIZE, and tcp_sendmsg_locked() sets PSH. Seen in the virtual
        // machine, whose writes block every 60 packets: buffers end within packets there.
        let mut queue = roomy(44);
        for _ in 0..18 {
            queue.begin_write(0);
            assert_eq!(append_all(&mut queue, 2 * MSS, 0, 0), 2 * MSS);
        }
        assert_eq!(queue.ends, [34 * MSS]);
        assert!(!queue.take_psh(34 * MSS - 1) && queue.take_psh(34 * MSS));
        assert!(!queue.take_psh(36 * MSS));
    }

    #[test]
    fn psh_is_cleared_when_its_buffer_grows_again() {
        // tcp_sendmsg_locked() clears PSH of a buffer that it extends.
        for (later_goal, has_psh) in [(27, true), (44, false)] {
            let mut queue = roomy(27);
            append_all(&mut queue, 27 * MSS, 0, 0);
            queue.mark_push(0);
            queue.set_goal(2 * later_goal * MSS);
            queue.begin_call(0, 0);
            append_all(&mut queue, 4 * MSS, 0, 0);
            assert_eq!(queue.take_psh(31 * MSS), has_psh, "{later_goal}");
        }
    }

    #[test]
    fn psh_moves_to_the_end_of_a_buffer_that_the_same_call_extends() {
        // tcp_sendmsg_locked() clears PSH of what a call finds, not of what it has marked itself: of a write of
        // 57 packets with a window of 30 the kernel marked the 25th (script 50-11 of the differential test).
        let mut queue = roomy(15);
        queue.begin_call(0, 0);
        append_all(&mut queue, 15 * MSS, 0, 0);
        queue.send(10 * MSS, 0);
        queue.mark_push(10 * MSS);
        queue.append(10 * MSS, 10 * MSS, 0);
        assert!(!queue.take_psh(24 * MSS) && queue.take_psh(25 * MSS));
        let mut queue = roomy(15);
        append_all(&mut queue, 15 * MSS, 0, 0);
        queue.send(10 * MSS, 0);
        queue.mark_push(10 * MSS);
        queue.begin_call(0, 0);
        queue.append(10 * MSS, 10 * MSS, 0);
        assert!(!queue.take_psh(25 * MSS));
    }

    #[test]
    fn where_each_page_is_a_call_of_its_own_every_page_clears_psh() {
        // tcp_sendpage() of Linux 6.1: scripts 61-32, 61-84 and 9061-78 of the differential test. The 15 packets
        // end in the sixth page, which has 2,856 bytes left.
        for (sent, is_kept) in [(10, false), (2, false), (1, true)] {
            let mut queue = roomy(15);
            queue.sends_page_by_page = true;
            queue.begin_call(0, 0);
            append_all(&mut queue, 15 * MSS, 0, 0);
            queue.send(sent * MSS, 0);
            queue.mark_push(sent * MSS);
            assert_eq!(queue.append(sent * MSS, sent * MSS, 0), sent * MSS);
            assert_eq!(queue.take_psh((15 + sent) * MSS), is_kept, "{sent}");
        }
    }

    #[test]
    fn psh_moves_with_the_end_of_a_buffer_that_takes_packets_of_the_next_one() {
        // Seen in script 73-108 of the differential test, where the window then cut the buffer.
        let mut queue = roomy(5);
        append_all(&mut queue, 5 * MSS, 0, 0);
        queue.mark_push(0);
        queue.begin_call(0, 0);
        append_all(&mut queue, 5 * MSS, 0, 0);
        assert_eq!(queue.first_bytes(0, 7 * MSS, true), (7 * MSS, false));
        assert!(!queue.take_psh(6 * MSS) && queue.take_psh(7 * MSS));
    }

    #[test]
    fn memory_stays_within_one_buffer_of_the_limit_while_bursts_are_sent_at_once() {
        // The window never limits: a burst of four is sent from each full buffer.
        let mut queue = roomy(44);
        queue.limit_bytes = 100_000;
        let mut next = 0;
        while queue.append(1 << 20, next, 0) > 0 {
            next += 4 * MSS;
            queue.send(next, 0);
        }
        let most_bytes = 100_000 + 2 * (44 * MSS + BUFFER_BYTES);
        let bytes = queue.memory_bytes(next, 0);
        assert!((100_000..most_bytes).contains(&bytes), "{bytes}");
    }

    #[test]
    fn writes_that_end_within_a_packet_stop_at_the_limit() {
        // 65,536 bytes are 45 packets and a part, which stays behind: the next call finds a last buffer with
        // room, from which all else was sent at once. It holds what a buffer may, so it takes no more.
        let mut queue = roomy(45);
        queue.limit_bytes = 240_000;
        let mut next = 0;
        for bytes in [87 * MSS, 65_536, 65_536, 65_536] {
            queue.begin_call(next, 0);
            append_all(&mut queue, bytes, next, 0);
            next = queue.written_bytes / MSS * MSS;
            queue.send(next, 0);
        }
        let packets = next / MSS;
        assert!((87 + 88..=87 + 90).contains(&packets), "{packets}");
    }

    #[test]
    fn a_write_beyond_the_limit_completes_the_last_buffer() {
        // tcp_sendmsg_locked() looks at the limit where it starts a buffer: script 20261130-124 of the differential
        // test. 25 packets of the first buffer were sent before.
        let mut queue = roomy(32);
        let next = 25 * MSS;
        append_all(&mut queue, 32 * MSS, 0, 0);
        queue.send(next, 0);
        append_all(&mut queue, 17 * MSS, next, 0);
        queue.limit_bytes = 40 * MSS;
        queue.begin_write(next);
        queue.begin_call(next, 0);
        assert_eq!(append_all(&mut queue, 20 * MSS, next, 0), 8 * MSS);
    }

    #[test]
    fn a_blocked_application_is_woken_by_the_first_ack_that_frees_enough() {
        // `wake_una` only skips ACKs that cannot wake it.
        for window in [10, 25, 200] {
            let mut queue = WriteQueue::new(MSS as u32, 64, 64 << 20);
            queue.expand(window, 2);
            queue.set_goal(1 << 20);
            while queue.append(1 << 20, 0, 0) > 0 {}
            queue.is_blocking = true;
            let mut una = 0;
            while !(queue.may_wake(una as u32, window) && queue.wakes(at(una + 1, una), false)) {
                let bytes = queue.memory_bytes((una + 1) * MSS, una * MSS);
                assert!(bytes + bytes / 2 > queue.limit_bytes, "{window} {una}");
                queue.send((una + 1) * MSS, una * MSS);
                una += 1;
            }
        }
    }

    #[test]
    fn a_first_buffer_is_extended_from_the_second_up_to_a_burst() {
        // tcp_grow_skb() takes from the second buffer only, and frees it once it is empty.
        let mut queue = WriteQueue::new(MSS as u32, 4, 64 << 20);
        queue.expand(100, 2);
        queue.set_goal(1 << 20);
        assert_eq!(append_all(&mut queue, 10 * MSS, 0, 0), 10 * MSS);
        for (wanted, grows, expected) in [
            (3, true, (4, false)),
            (6, false, (4, false)),
            (6, true, (6, false)),
            (9, true, (8, false)),
            (9, true, (9, false)),
            (20, true, (10, true)),
        ] {
            let (bytes, is_last) = queue.first_bytes(0, wanted * MSS, grows);
            assert_eq!((bytes, is_last), (expected.0 * MSS, expected.1), "{wanted}");
        }
        assert_eq!(queue.memory_bytes(0, 0), 10 * MSS + BUFFER_BYTES);
    }

    #[test]
    fn writes_block_at_notsent_lowat_and_go_on_at_half_of_it() {
        // tcp_stream_memory_free() is checked when a buffer is started, so the last one may exceed it.
        let mut queue = WriteQueue::new(MSS as u32, 45, 64 << 20);
        queue.expand(1000, 2);
        queue.set_goal(1 << 20);
        queue.notsent_lowat_bytes = 131_072;
        let buffer = 45 * MSS;
        assert_eq!(append_all(&mut queue, 1 << 20, 0, 0), 3 * buffer);
        queue.is_blocking = true;
        queue.send(89 * MSS, 0);
        assert!(!queue.wakes(at(89, 0), true) && queue.is_blocking);
        queue.send(90 * MSS, 0);
        assert!(queue.wakes(at(90, 0), true));
    }
}
