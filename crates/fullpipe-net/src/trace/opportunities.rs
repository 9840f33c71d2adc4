//! A rate that is a list of delivery opportunities: Mahimahi's link (ravinet/mahimahi, link_queue.cc).
//!
//! At each opportunity so many bytes pass. A larger packet takes what is left of it and the rest from
//! the next one; what is not used at its time is lost. The list repeats.

use std::sync::Arc;

use super::files::{RateTrace, OPPORTUNITY_BYTES};

const NS_PER_MS: u64 = 1_000_000;
/// Linear steps before a binary search.
const NEAR: usize = 16;

/// The position in the list, and the packet that has passed in part.
#[derive(Clone, Debug)]
pub(crate) struct Opportunities<P> {
    times_ms: Arc<[u32]>,
    index: usize,
    /// When the current round of the list began.
    round_ms: u64,
    /// Bytes left of the current opportunity.
    left_bytes: u64,
    /// A packet that has passed in part, and how many of its bytes have not.
    partly: Option<(P, u64)>,
}

impl<P> Opportunities<P> {
    pub(crate) fn new(trace: RateTrace) -> Self {
        Self {
            times_ms: trace.times_ms.into(),
            index: 0,
            round_ms: 0,
            left_bytes: OPPORTUNITY_BYTES,
            partly: None,
        }
    }

    /// When bytes may pass: now or later.
    pub(crate) fn ready_ns(&mut self, now_ns: u64) -> u64 {
        if self.left_bytes == 0 {
            self.step();
        }
        let mut at_ns = self.at_ns();
        for _ in 0..NEAR {
            if at_ns >= now_ns {
                return at_ns;
            }
            self.step();
            at_ns = self.at_ns();
        }
        if at_ns < now_ns {
            self.search(now_ns.div_ceil(NS_PER_MS));
        }
        self.at_ns()
    }

    /// Whether so many bytes pass at the current opportunity.
    #[inline]
    pub(crate) fn holds(&self, bytes: u32) -> bool {
        u64::from(bytes) <= self.left_bytes
    }

    /// So many bytes pass.
    #[inline]
    pub(crate) fn charge(&mut self, bytes: u32) {
        self.left_bytes -= u64::from(bytes);
    }

    /// A packet takes what is left of the current opportunity, and needs more.
    pub(crate) fn begin(&mut self, packet: P, bytes: u32) {
        self.partly = Some((packet, u64::from(bytes) - self.left_bytes));
        self.left_bytes = 0;
    }

    /// The packet that has passed in part.
    #[inline]
    pub(crate) fn begun(&self) -> Option<&P> {
        self.partly.as_ref().map(|(packet, _)| packet)
    }

    /// Whether the current opportunity is enough for the rest of that packet; if not, it is used up.
    pub(crate) fn completes(&mut self) -> bool {
        let Some((_, missing_bytes)) = &mut self.partly else {
            return false;
        };
        if *missing_bytes <= self.left_bytes {
            return true;
        }
        *missing_bytes -= self.left_bytes;
        self.left_bytes = 0;
        false
    }

    /// All of that packet has passed.
    pub(crate) fn end(&mut self) {
        if let Some((_, missing_bytes)) = self.partly.take() {
            self.left_bytes -= missing_bytes;
        }
    }

    fn at_ns(&self) -> u64 {
        (self.round_ms + u64::from(self.times_ms[self.index])) * NS_PER_MS
    }

    fn step(&mut self) {
        self.left_bytes = OPPORTUNITY_BYTES;
        self.index += 1;
        if self.index == self.times_ms.len() {
            self.round_ms += u64::from(self.times_ms[self.index - 1]);
            self.index = 0;
        }
    }

    /// The first opportunity at `ms` or after.
    fn search(&mut self, ms: u64) {
        self.left_bytes = OPPORTUNITY_BYTES;
        let period_ms = u64::from(self.times_ms[self.times_ms.len() - 1]);
        // The end of a round belongs to the round that ends.
        let rounds = (ms - self.round_ms).saturating_sub(1) / period_ms;
        self.round_ms += rounds * period_ms;
        let within = ms - self.round_ms;
        let from = if rounds > 0 { 0 } else { self.index };
        let rest = &self.times_ms[from..];
        self.index = from + rest.partition_point(|&at_ms| u64::from(at_ms) < within);
    }
}
