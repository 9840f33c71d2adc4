//! A rate that is a list of delivery opportunities: Mahimahi's link (ravinet/mahimahi, link_queue.cc).
//!
//! At each opportunity so many bytes pass. A packet that is larger takes what there is and the rest of
//! the next one; what nobody needs at that moment is lost. The list repeats.

use std::sync::Arc;

use fullpipe_plan::traces::{RateTrace, OPPORTUNITY_BYTES};

const NS_PER_MS: u64 = 1_000_000;
/// Steps on foot before the list is searched.
const NEAR: usize = 16;

/// Where in the list a link is, and which packet is half through.
#[derive(Clone, Debug)]
pub(crate) struct Opportunities<P> {
    times_ms: Arc<[u32]>,
    index: usize,
    /// When the present round of the list began.
    round_ms: u64,
    /// Of the present opportunity.
    left_bytes: u64,
    /// A packet that has begun, and how many of its bytes are missing.
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

    /// When something may pass: now or later.
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

    /// Whether so many bytes pass at the present opportunity.
    #[inline]
    pub(crate) fn holds(&self, bytes: u32) -> bool {
        u64::from(bytes) <= self.left_bytes
    }

    /// They do.
    #[inline]
    pub(crate) fn charge(&mut self, bytes: u32) {
        self.left_bytes -= u64::from(bytes);
    }

    /// A packet takes what is left of the present opportunity, and is not through.
    pub(crate) fn begin(&mut self, packet: P, bytes: u32) {
        self.partly = Some((packet, u64::from(bytes) - self.left_bytes));
        self.left_bytes = 0;
    }

    /// The packet that has begun.
    #[inline]
    pub(crate) fn begun(&self) -> Option<&P> {
        self.partly.as_ref().map(|(packet, _)| packet)
    }

    /// Whether the present opportunity is enough for what is missing of it; if not, that is used.
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

    /// The packet that has begun is through.
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
        // The end of a round may itself be asked for: it belongs to the round that ends.
        let rounds = (ms - self.round_ms).saturating_sub(1) / period_ms;
        self.round_ms += rounds * period_ms;
        let within = ms - self.round_ms;
        let from = if rounds > 0 { 0 } else { self.index };
        let rest = &self.times_ms[from..];
        self.index = from + rest.partition_point(|&at_ms| u64::from(at_ms) < within);
    }
}
