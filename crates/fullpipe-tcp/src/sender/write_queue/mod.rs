//! The send buffer of a socket: unsent and unacknowledged data in the kernel's buffers (sk_write_queue,
//! tcp_rtx_queue), and their memory limit. Must never know when something is sent.

use std::collections::VecDeque;
use std::ops::Range;

mod limit;
mod pages;
mod push_marks;

use crate::skb::{BUFFER_BYTES, GSO_MAX_BYTES, MAX_PAGES};

use self::limit::Limit;
use self::pages::Pages;
use self::push_marks::PushMarks;
use super::config::SenderConfig;

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
    psh: PushMarks,
    pages: Pages,
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
    limit: Limit,
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
            notsent_lowat_bytes: u64::MAX,
            goal_packets: 1,
            limit: Limit::new(most_bytes),
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
        let mut room = goal_room.min(self.pages.room(self.written_bytes, next));
        let memory_bytes = self.memory_bytes(next, una);
        // A buffer whose first part is always sent at once could be refilled without end; in the kernel
        // TCP small queues stop that (tcp_small_queue_check()).
        if memory_bytes >= self.limit.bytes() + goal_bytes + self.buffer_bytes {
            return 0;
        }
        if self.was_full_at_call {
            let appended_bytes = self.written_bytes - self.last_start_bytes;
            room = room.min(goal_bytes.saturating_sub(appended_bytes));
        }
        if is_empty || room == 0 {
            if memory_bytes >= self.limit.bytes()
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
            self.pages.begin_buffer();
            self.last_start_bytes = self.written_bytes;
            room = goal_bytes.min(self.pages.room(self.written_bytes, next));
        }
        let extends = !is_empty && self.psh.last() == Some(self.written_bytes);
        let taken = room.min(bytes);
        self.pages.append(self.written_bytes, taken);
        let begins_call = self.begins_call_within(taken);
        self.written_bytes += taken;
        if extends && self.ends.back().copied() != self.psh.last() {
            // The buffer of a marked packet grows. Only the first bytes of a call clear the mark.
            self.psh.take_last();
            if !begins_call {
                self.psh.mark_last(self.written_bytes);
            }
        }
        taken
    }

    /// Whether a call begins within the next `bytes`.
    fn begins_call_within(&self, bytes: u64) -> bool {
        if !self.sends_page_by_page {
            return self.written_bytes == self.call_start_bytes;
        }
        self.pages.begin_within(self.written_bytes, bytes)
    }

    /// A write begins, at the beginning of a page. What was sent before has left the last buffer.
    pub(super) fn begin_write(&mut self, next: u64) {
        self.last_start_bytes = self.last_start_bytes.max(next);
        self.pages.begin_write(self.written_bytes);
    }

    /// A call of tcp_sendmsg() begins.
    pub(super) fn begin_call(&mut self, next: u64, una: u64) {
        self.call_start_bytes = self.written_bytes;
        self.was_full_at_call = self.memory_bytes(next, una) >= self.limit.bytes();
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
        self.psh.mark_last(end);
    }

    /// tcp_write_wakeup(): what is sent next, up to `end`, has PSH, and all of its buffer counts as pushed.
    pub(super) fn mark_psh_at(&mut self, end: u64) {
        self.pushed_bytes = self.pushed_bytes.max(self.head_end());
        self.psh.mark_first(end);
    }

    /// Whether a burst up to `end` contains a packet with PSH, which its buffer keeps.
    #[inline]
    pub(super) fn take_psh(&mut self, end: u64) -> bool {
        self.psh.take(end)
    }

    /// Whether the buffer that ends at `end` was sent with PSH: a retransmission has it again
    /// (__tcp_retransmit_skb()).
    pub(super) fn had_psh(&self, end: u64) -> bool {
        self.psh.had(end)
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
        self.psh.move_first(end, grown);
        (grown - next, is_whole && second.is_none())
    }

    /// The first buffer is split in two at `end` (tso_fragment()), and nothing of it is sent yet.
    pub(super) fn cut_first(&mut self, end: u64) {
        if self.has_one_buffer() {
            self.last_start_bytes = end;
        }
        self.ends.push_front(end);
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
        let fits = first_end == byte && self.pages.between(start, second_end) <= MAX_PAGES;
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

    /// The application stops writing. Returns how many bytes it has written.
    pub(super) fn finish(&mut self) -> u64 {
        self.is_blocking = false;
        self.written_bytes
    }

    /// The congestion control asks for a send buffer of `factor` windows. True if the limit has grown.
    pub(super) fn expand(&mut self, window: u32, factor: u32) -> bool {
        self.limit.expand(window, factor, self.mss_bytes)
    }

    /// Whether [`Self::wakes`] or [`Self::expand`] may unblock the application; `una` is a packet.
    #[inline(always)]
    pub(super) fn may_wake(&self, una: u32, window: u32) -> bool {
        self.is_blocking && (una >= self.wake_una || window > self.limit.window())
    }

    /// Whether a blocked application is woken: a third of the limit is free, and less than half of
    /// TCP_NOTSENT_LOWAT is unsent (sk_stream_write_space()).
    pub(super) fn wakes(&mut self, at: Progress, has_grown: bool) -> bool {
        if at.una_packet < self.wake_una && !has_grown {
            return false;
        }
        let memory_bytes = self.memory_bytes(at.next, at.una);
        if memory_bytes + memory_bytes / 2 <= self.limit.bytes() {
            self.is_blocking = self.unsent_bytes(at.next) >= self.notsent_lowat_bytes / 2;
            self.was_woken = !self.is_blocking;
            return self.was_woken;
        }
        // An acknowledged packet frees at most itself and a buffer.
        let beyond_bytes = memory_bytes - self.limit.bytes() / 3 * 2;
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
        self.psh.free_before(una);
        self.pages.free_before(una);
    }
}

#[cfg(test)]
mod tests;
