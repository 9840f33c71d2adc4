//! Which packets of a stream were sent with less than a full payload, and how much their payloads lack. Must
//! never know why.

/// So many are remembered: half of them are forgotten when they are more and acknowledged. Where an older
/// packet begins is then only estimated; a capture would show that in a D-SACK of it.
const KEPT_MOST: usize = 4096;

/// The packets that were sent short, in their order.
#[derive(Debug, Default)]
pub(super) struct ShortPackets {
    /// Each with the payload that it and all before lack.
    kept: Vec<(u32, u64)>,
    /// What those before `kept` lack.
    forgotten: u64,
}

impl ShortPackets {
    /// A packet was sent that lacks `bytes`; the first that is not acknowledged is `una`.
    pub(super) fn push(&mut self, number: u32, bytes: u64, una: u32) {
        let missing = self.missing() + bytes;
        let half = KEPT_MOST / 2;
        if self.kept.len() >= KEPT_MOST && self.kept[half].0 < una {
            self.forgotten = self.kept[half - 1].1;
            self.kept.drain(..half);
        }
        self.kept.push((number, missing));
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// What all packets lack.
    #[inline]
    pub(super) fn missing(&self) -> u64 {
        self.kept.last().map_or(0, |&(_, missing)| missing)
    }

    /// What the packets before `number` lack, at most all their payload.
    #[inline]
    pub(super) fn missing_before(&self, number: u32, mss_bytes: u32) -> u64 {
        match self.kept.last() {
            Some(&(short, missing)) if short < number => missing,
            Some(_) => self.older_before(number, mss_bytes),
            None => 0,
        }
    }

    #[inline(never)] // most packets follow the last short one
    fn older_before(&self, number: u32, mss_bytes: u32) -> u64 {
        let count = self.kept.partition_point(|&(short, _)| short < number);
        let most = u64::from(number) * u64::from(mss_bytes);
        self.missing_in(count).min(most)
    }

    /// What the packets lack that end by a byte of the stream.
    #[inline]
    pub(super) fn missing_by(&self, byte: u64, mss_bytes: u32) -> u64 {
        let ends_by = |&(short, missing): &(u32, u64)| {
            (u64::from(short) + 1) * u64::from(mss_bytes) - missing <= byte
        };
        match self.kept.last() {
            Some(last) if ends_by(last) => last.1,
            Some(_) => self.missing_in(self.kept.partition_point(ends_by)),
            None => 0,
        }
    }

    /// What the first `count` lack, and those before.
    fn missing_in(&self, count: usize) -> u64 {
        let last = count.checked_sub(1);
        last.map_or(self.forgotten, |last| self.kept[last].1)
    }

    /// Whether none of these packets is among them.
    #[inline]
    pub(super) fn are_none_of(&self, first: u32, end: u32) -> bool {
        match self.kept.last() {
            Some(&(short, _)) if short >= first => self.next_short(first) >= end,
            _ => true,
        }
    }

    #[inline(never)] // as `older_before`
    fn next_short(&self, first: u32) -> u32 {
        self.kept[self.kept.partition_point(|&(short, _)| short < first)].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_acknowledged_is_forgotten_and_what_is_in_flight_is_not() {
        let mut shorts = ShortPackets::default();
        // Every second packet lacks a byte, and 5,000 of them are in flight.
        for index in 0..20_000_u32 {
            shorts.push(2 * index, 1, (2 * index).saturating_sub(10_000));
            assert!(shorts.kept.len() <= 5_000 + KEPT_MOST / 2 + 1);
        }
        assert_eq!(shorts.missing(), 20_000);
        for number in 30_000..40_000_u32 {
            let before = u64::from(number.div_ceil(2));
            assert_eq!(shorts.missing_before(number, 1448), before, "{number}");
            assert_eq!(shorts.are_none_of(number, number + 1), number % 2 == 1);
            let begins = u64::from(number) * 1448 - before;
            assert_eq!(shorts.missing_by(begins, 1448), before, "{number}");
        }
    }
}
