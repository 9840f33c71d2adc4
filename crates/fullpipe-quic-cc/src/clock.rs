//! A connection's clock: from a stack's `Instant` to the host's ns. It is never read, only converted.

use std::time::Instant;

/// What the host's clock shows at the beginning; to an algorithm, zero would mean "never".
pub(crate) const START_NS: u64 = 1_000_000_000;

/// Counts from when the connection began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn new(begin: Instant) -> Self {
        Self(begin)
    }

    /// Times before the beginning are the beginning.
    pub(crate) fn ns(self, time: Instant) -> u64 {
        START_NS + time.saturating_duration_since(self.0).as_nanos() as u64
    }
}
