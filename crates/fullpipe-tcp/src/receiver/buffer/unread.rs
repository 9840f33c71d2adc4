//! The buffers of the kernel that hold unread data, and the memory that they take: tcp_try_coalesce(),
//! tcp_data_queue_ofo() and tcp_ofo_queue() of tcp_input.c. Must never know the window.

use crate::skb::{MAX_PAGES, PAGE_BYTES};

/// truesize of a packet less its payload: struct sk_buff and the headers. A packet of 1448 bytes from a
/// virtual device has a truesize of 2344.
pub(super) const OVERHEAD_BYTES: u64 = 896;

/// A buffer of the kernel (struct sk_buff) with packets `start..end`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Skb {
    pub(super) start: u32,
    pub(super) end: u32,
    /// Page fragments; 0 until a second packet is coalesced.
    pages: u64,
}

impl Skb {
    #[inline(always)]
    pub(super) fn of_packet(number: u32) -> Self {
        Self {
            start: number,
            end: number + 1,
            pages: 0,
        }
    }

    #[inline(always)]
    fn is_empty(self) -> bool {
        self.end == 0
    }
}

/// Unread data.
#[derive(Debug)]
pub(super) struct Unread {
    mss_bytes: u64,
    /// sk_rmem_alloc.
    memory_bytes: u64,
    /// Data in order: the last buffer, mostly the only one, and those before it.
    last: Skb,
    earlier: Vec<Skb>,
    /// Buffers beyond a hole, ascending.
    beyond: Vec<Skb>,
}

impl Unread {
    pub(super) fn new(mss_bytes: u64) -> Self {
        Self {
            mss_bytes,
            memory_bytes: 0,
            last: Skb::default(),
            earlier: Vec::new(),
            beyond: Vec::new(),
        }
    }

    #[inline(always)]
    pub(super) fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Whether data in order are unread.
    pub(super) fn has_data(&self) -> bool {
        !self.last.is_empty()
    }

    /// Packets between `next` and the highest that has arrived.
    pub(super) fn beyond_packets(&self, next: u32) -> u32 {
        self.beyond.last().map_or(0, |last| last.end - next)
    }

    /// Adds the next packet in order.
    #[inline(always)]
    pub(super) fn add(&mut self, number: u32) {
        self.memory_bytes += match self.coalesce(Skb::of_packet(number)) {
            true => self.mss_bytes,
            false => self.mss_bytes + OVERHEAD_BYTES,
        };
    }

    /// Coalesces the next buffer in order with the last one; false if it becomes the last one itself.
    #[inline]
    fn coalesce(&mut self, next: Skb) -> bool {
        if self.last.is_empty() {
            self.last = next;
            return false;
        }
        let pages = self.pages(self.last) + self.pages(next);
        if pages > MAX_PAGES {
            self.earlier.push(self.last);
            self.last = next;
            return false;
        }
        self.last.end = next.end;
        self.last.pages = pages;
        true
    }

    /// Coalesces a packet beyond a hole with the buffer before it, if that is possible.
    pub(super) fn coalesce_beyond(&mut self, number: u32) -> bool {
        let packet = Skb::of_packet(number);
        let at = self.place_beyond(number);
        let Some(&before) = at.checked_sub(1).and_then(|at| self.beyond.get(at)) else {
            return false;
        };
        let pages = self.pages(before) + self.pages(packet);
        let fits = before.end == packet.start && pages <= MAX_PAGES;
        if fits {
            self.beyond[at - 1].end = packet.end;
            self.beyond[at - 1].pages = pages;
            self.memory_bytes += self.mss_bytes;
        }
        fits
    }

    /// Adds a packet beyond a hole as a buffer of its own.
    pub(super) fn add_beyond(&mut self, number: u32) {
        let at = self.place_beyond(number);
        self.beyond.insert(at, Skb::of_packet(number));
        self.memory_bytes += self.mss_bytes + OVERHEAD_BYTES;
    }

    fn place_beyond(&self, number: u32) -> usize {
        match self.beyond.last() {
            Some(last) if last.end <= number => self.beyond.len(),
            _ => self.beyond.partition_point(|skb| skb.end <= number),
        }
    }

    /// Holes below `next` are filled: their buffers are in order now.
    #[inline(never)]
    pub(super) fn merge_beyond(&mut self, next: u32) {
        let count = self.beyond.partition_point(|skb| skb.start < next);
        for at in 0..count {
            if self.coalesce(self.beyond[at]) {
                self.memory_bytes -= OVERHEAD_BYTES;
            }
        }
        self.beyond.drain(..count);
    }

    /// Buffers before the last one.
    #[inline(always)]
    pub(super) fn earlier(&self) -> &[Skb] {
        &self.earlier
    }

    /// All of them were read.
    pub(super) fn clear_earlier(&mut self) {
        self.earlier.clear();
    }

    /// The last one is about to be read; `None`: there is none.
    #[inline(always)]
    pub(super) fn take_last(&mut self) -> Option<Skb> {
        let last = self.last;
        self.last.end = 0;
        (!last.is_empty()).then_some(last)
    }

    /// A buffer was read.
    #[inline(always)]
    pub(super) fn free(&mut self, skb: Skb) {
        let bytes = u64::from(skb.end - skb.start) * self.mss_bytes;
        self.memory_bytes -= bytes + OVERHEAD_BYTES;
    }

    fn pages(&self, skb: Skb) -> u64 {
        if skb.pages > 0 {
            return skb.pages;
        }
        let first_byte = u64::from(skb.start) * self.mss_bytes;
        let last_byte = first_byte % PAGE_BYTES + self.mss_bytes - 1;
        last_byte / PAGE_BYTES + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1448;

    /// Buffers that the memory must consist of, as a packet's payload is counted once.
    fn buffers(unread: &Unread, packets: u64) -> u64 {
        let overhead = unread.memory_bytes() - packets * MSS;
        assert_eq!(overhead % OVERHEAD_BYTES, 0);
        overhead / OVERHEAD_BYTES
    }

    #[test]
    fn packets_in_order_share_a_buffer_of_seventeen_page_fragments() {
        // MAX_SKB_FRAGS: a packet of 1448 bytes takes one page or two.
        let mut unread = Unread::new(MSS);
        let full = (1..).find(|&count| {
            unread.add(count - 1);
            buffers(&unread, count.into()) == 2
        });
        // 12 packets fit: 3 in 4 lie within a page.
        let pages = |count: u64| -> u64 {
            (0..count)
                .map(|n| (n * MSS % PAGE_BYTES + MSS - 1) / PAGE_BYTES + 1)
                .sum()
        };
        let most = (1..).take_while(|&count| pages(count) <= MAX_PAGES).count();
        assert_eq!(full, Some(most as u32 + 1));
    }

    #[test]
    fn a_filled_hole_merges_buffers_and_reading_frees_everything() {
        let mut unread = Unread::new(MSS);
        for number in [5, 3, 2] {
            assert!(!unread.coalesce_beyond(number));
            unread.add_beyond(number);
        }
        assert!(unread.coalesce_beyond(6));
        assert_eq!((buffers(&unread, 4), unread.beyond_packets(1)), (3, 6));
        unread.add(1);
        unread.merge_beyond(4);
        assert_eq!(
            buffers(&unread, 5),
            2,
            "1 to 3, and beyond the hole 5 and 6"
        );
        unread.add(4);
        unread.merge_beyond(7);
        assert_eq!(buffers(&unread, 6), 1);
        let last = unread.take_last().expect("unread data");
        unread.free(last);
        assert_eq!((unread.memory_bytes(), unread.has_data()), (0, false));
    }
}
