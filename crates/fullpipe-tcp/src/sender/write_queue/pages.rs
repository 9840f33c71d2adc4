//! The page fragments that hold what was written. Must never know the buffers' limits.

use std::collections::VecDeque;

use crate::skb::{MAX_PAGES, PAGE_BYTES};

/// The page fragments of a send buffer. Each write begins at the beginning of a page.
pub(super) struct Pages {
    /// Ends of those of the last buffer.
    ends: VecDeque<u64>,
    /// Where the last write began.
    write_start_bytes: u64,
    /// Where writes began whose data are not acknowledged.
    write_starts: VecDeque<u64>,
}

impl Default for Pages {
    fn default() -> Self {
        Self {
            ends: VecDeque::new(),
            write_start_bytes: 0,
            write_starts: VecDeque::from([0]),
        }
    }
}

impl Pages {
    pub(super) fn begin_write(&mut self, written_bytes: u64) {
        self.write_start_bytes = written_bytes;
        if self.write_starts.back() != Some(&written_bytes) {
            self.write_starts.push_back(written_bytes);
        }
    }

    pub(super) fn begin_buffer(&mut self) {
        self.ends.clear();
    }

    /// What of the last page is used.
    fn used_bytes(&self, written_bytes: u64) -> u64 {
        (written_bytes - self.write_start_bytes) % PAGE_BYTES
    }

    /// Room in the last buffer's page fragments (MAX_SKB_FRAGS); sent fragments do not count.
    pub(super) fn room(&mut self, written_bytes: u64, next: u64) -> u64 {
        while self.ends.front().is_some_and(|&end| end <= next) {
            self.ends.pop_front();
        }
        let free = MAX_PAGES.saturating_sub(self.ends.len() as u64);
        (free * PAGE_BYTES).saturating_sub(self.used_bytes(written_bytes))
    }

    /// Whether a page begins within the next `bytes`.
    pub(super) fn begin_within(&self, written_bytes: u64, bytes: u64) -> bool {
        let used_bytes = self.used_bytes(written_bytes);
        used_bytes == 0 || used_bytes + bytes > PAGE_BYTES
    }

    pub(super) fn append(&mut self, written_bytes: u64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let end = written_bytes + bytes;
        let first_end = written_bytes - self.used_bytes(written_bytes) + PAGE_BYTES;
        let full = (first_end..end).step_by(PAGE_BYTES as usize);
        self.ends.extend(full.chain(std::iter::once(end)));
    }

    /// Page fragments that some data are.
    pub(super) fn between(&self, first_byte: u64, end_byte: u64) -> u64 {
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

    /// What is before `una` is acknowledged.
    pub(super) fn free_before(&mut self, una: u64) {
        while self.write_starts.get(1).is_some_and(|&next| next <= una) {
            self.write_starts.pop_front();
        }
    }
}
