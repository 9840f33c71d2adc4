//! What a receiver has beyond a hole, and what its ACKs report of it: tcp_data_queue_ofo(),
//! tcp_sack_new_ofo_skb() and tcp_sack_maybe_coalesce() of tcp_input.c. Must never know when ACKs are sent.

use crate::packet::{Ack, Block, MAX_BLOCKS};

/// SACK blocks that a receiver remembers (TCP_NUM_SACKS), and those of which an ACK that compression holds
/// back is not expected to forget any (TCP_SACK_BLOCKS_EXPECTED).
const KEPT_BLOCKS: usize = 4;
const EXPECTED_BLOCKS: usize = 2;

/// Packets beyond a hole.
#[derive(Debug)]
pub(super) struct SackList {
    /// All of them, ascending.
    beyond: Vec<Block>,
    /// The blocks that ACKs report, newest first (selective_acks); with more holes than these some are
    /// forgotten.
    reported: Vec<Block>,
    /// DSACK to report; the next packet clears it.
    duplicate: Option<Block>,
}

/// The block that a packet belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touched {
    at: usize,
    block: Block,
}

impl Touched {
    /// Whether moving it to the front may hide a block that no ACK has reported.
    pub(super) fn hides_others(self) -> bool {
        self.at >= EXPECTED_BLOCKS
    }
}

impl SackList {
    pub(super) fn new() -> Self {
        Self {
            beyond: Vec::with_capacity(64),
            reported: Vec::with_capacity(KEPT_BLOCKS + 1),
            duplicate: None,
        }
    }

    /// Whether nothing lies beyond a hole.
    #[inline(always)] // for every packet, as below
    pub(super) fn is_empty(&self) -> bool {
        self.beyond.is_empty()
    }

    /// Whether there are packets beyond a hole, or were before the last packet.
    #[inline(always)]
    pub(super) fn has_holes(&self) -> bool {
        !self.reported.is_empty() || !self.beyond.is_empty()
    }

    /// A packet arrived.
    #[inline(always)]
    pub(super) fn forget_duplicate(&mut self) {
        self.duplicate = None;
    }

    /// A packet arrived that was there before.
    pub(super) fn report_duplicate(&mut self, number: u32) {
        self.duplicate = Some(Block::of(number));
    }

    /// Packets before `next` are in order: packets beyond the hole that this filled are too. Returns the next
    /// one expected, and forgets what is below it.
    #[inline(never)]
    pub(super) fn fill_hole(&mut self, mut next: u32) -> u32 {
        if self.beyond.first().is_some_and(|block| block.start == next) {
            next = self.beyond.remove(0).end;
        }
        self.reported.retain(|block| block.start > next);
        next
    }

    /// Adds a packet; false if it arrived before.
    pub(super) fn insert(&mut self, number: u32) -> bool {
        // Mostly it extends the highest block.
        if let Some(last) = self.beyond.last_mut().filter(|last| last.end == number) {
            last.end += 1;
            return true;
        }
        let at = self.beyond.partition_point(|block| block.end < number);
        match self.beyond.get_mut(at) {
            Some(block) if block.start <= number && number < block.end => return false,
            Some(block) if block.end == number => {
                block.end += 1;
                let following = self.beyond.get(at + 1).copied();
                if let Some(next) = following.filter(|next| next.start == number + 1) {
                    self.beyond[at].end = next.end;
                    self.beyond.remove(at + 1);
                }
            }
            Some(block) if block.start == number + 1 => block.start = number,
            _ => self.beyond.insert(at, Block::of(number)),
        }
        true
    }

    /// Extends the reported block that a packet touches; of a block that was forgotten only the packet is
    /// reported. [`Self::report_first`] is to follow.
    pub(super) fn touch(&mut self, number: u32) -> Touched {
        let touches = |block: &Block| block.start <= number + 1 && number <= block.end;
        match self.reported.iter().position(touches) {
            Some(at) => {
                let block = &mut self.reported[at];
                block.start = block.start.min(number);
                block.end = block.end.max(number + 1);
                Touched { at, block: *block }
            }
            None => Touched {
                at: self.reported.len(),
                block: Block::of(number),
            },
        }
    }

    /// Puts a block first, and forgets the oldest one if there are too many. The packet may have closed the
    /// hole between two blocks.
    pub(super) fn report_first(&mut self, touched: Touched) {
        if touched.at == 0 && self.reported.len() == 1 {
            return;
        }
        let mut block = touched.block;
        self.reported.retain(|known| {
            let is_apart = known.end < block.start || known.start > block.end;
            if !is_apart {
                block.start = block.start.min(known.start);
                block.end = block.end.max(known.end);
            }
            is_apart
        });
        self.reported.truncate(KEPT_BLOCKS - 1);
        self.reported.insert(0, block);
    }

    /// Writes what there is to report into an ACK.
    #[inline(always)]
    pub(super) fn report(&mut self, ack: &mut Ack) {
        if let Some(block) = self.duplicate {
            self.duplicate = None;
            ack.dsack = true;
            ack.blocks[0] = block;
            ack.count = 1;
        }
        for block in &self.reported {
            if usize::from(ack.count) == MAX_BLOCKS {
                break;
            }
            ack.blocks[usize::from(ack.count)] = *block;
            ack.count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn ranges(blocks: &[Block]) -> Vec<(u32, u32)> {
        blocks
            .iter()
            .map(|block| (block.start, block.end))
            .collect()
    }

    fn arrive(list: &mut SackList, number: u32) {
        list.insert(number);
        let touched = list.touch(number);
        list.report_first(touched);
    }

    fn reported(list: &mut SackList) -> Vec<(u32, u32)> {
        let mut ack = Ack::default();
        list.report(&mut ack);
        ranges(&ack.blocks[..ack.count.into()])
    }

    #[test]
    fn the_newest_block_comes_first_and_three_are_reported() {
        // RFC 2018 section 4, with its figures in packets: every second packet is lost.
        let mut list = SackList::new();
        for number in [2, 4, 6, 8] {
            arrive(&mut list, number);
        }
        assert_eq!(reported(&mut list), [(8, 9), (6, 7), (4, 5)]);
        // 3 joins two blocks, of which one is not reported any more.
        arrive(&mut list, 3);
        assert_eq!(reported(&mut list), [(2, 5), (8, 9), (6, 7)]);
    }

    #[test]
    fn of_a_forgotten_block_only_the_new_packet_is_reported() {
        let mut list = SackList::new();
        for number in [2, 4, 6, 8, 10] {
            arrive(&mut list, number);
        }
        arrive(&mut list, 3);
        assert_eq!(reported(&mut list)[0], (3, 5));
        assert_eq!(ranges(&list.beyond)[0], (2, 5));
    }

    #[test]
    fn a_duplicate_is_reported_once_and_before_the_blocks() {
        // RFC 2883 section 4.
        let mut list = SackList::new();
        arrive(&mut list, 5);
        list.report_duplicate(1);
        assert_eq!(reported(&mut list), [(1, 2), (5, 6)]);
        assert_eq!(reported(&mut list), [(5, 6)]);
    }

    #[test]
    fn a_filled_hole_forgets_what_is_in_order() {
        let mut list = SackList::new();
        for number in [3, 4, 8] {
            arrive(&mut list, number);
        }
        assert_eq!(list.fill_hole(2), 2);
        assert_eq!(list.fill_hole(3), 5);
        assert_eq!(reported(&mut list), [(8, 9)]);
        assert_eq!(list.fill_hole(8), 9);
        assert!(list.is_empty() && !list.has_holes());
    }

    #[test]
    fn packets_in_any_order_are_the_same_set() {
        let mut random = 88_172_645_463_325_252_u64;
        for _ in 0..100 {
            let (mut list, mut set) = (SackList::new(), BTreeSet::new());
            for _ in 0..60 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let number = (random % 50) as u32;
                assert_eq!(list.insert(number), set.insert(number));
                let numbers = list.beyond.iter().flat_map(|block| block.start..block.end);
                assert!(numbers.eq(set.iter().copied()));
                let is_apart = |pair: &[Block]| pair[0].end < pair[1].start;
                assert!(list.beyond.windows(2).all(is_apart));
            }
        }
    }

    #[test]
    fn a_third_block_that_is_pushed_down_hides_others() {
        let mut list = SackList::new();
        for (number, hides) in [(2, false), (4, false), (6, true), (7, false), (2, true)] {
            let touched = list.touch(number);
            assert_eq!(touched.hides_others(), hides, "{number}");
            list.report_first(touched);
        }
    }
}
