//! When a receiving application stalls because other processes run.

use std::sync::Arc;

/// Periodic stalls of an application that reads.
#[derive(Clone, Debug)]
pub struct ReaderStalls {
    /// Interval between the starts of two stalls.
    pub every_ns: u64,
    /// When one of them starts; the others precede and follow it.
    pub phase_ns: u64,
    /// Their durations in order, repeated. Never empty.
    pub durations_ns: Arc<[u64]>,
}

impl ReaderStalls {
    /// When the stall at this time ends; `None` outside stalls.
    pub fn end_ns(&self, now_ns: u64) -> Option<u64> {
        let first_ns = self.phase_ns % self.every_ns;
        // The stall before the first one may still last at time 0.
        let passed_ns = now_ns + self.every_ns - first_ns;
        let (count, since_ns) = (passed_ns / self.every_ns, passed_ns % self.every_ns);
        let duration_ns = self.durations_ns[count as usize % self.durations_ns.len()];
        (since_ns < duration_ns).then(|| now_ns - since_ns + duration_ns)
    }
}
