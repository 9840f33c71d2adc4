//! The application that reads: when other processes keep it from the processor. Never what it reads.

use std::sync::Arc;

/// When a reader is away: again and again, at even distances.
#[derive(Clone, Debug)]
pub struct Absences {
    /// From the beginning of one to that of the next.
    pub every_ns: u64,
    /// When one begins; the others follow and precede it.
    pub one_begins_ns: u64,
    /// How long each is, one after the other and then again from the first. Never empty.
    pub lengths_ns: Arc<[u64]>,
}

impl Absences {
    /// When a reader that is away at this time is back; `None`: it is there.
    pub fn back_ns(&self, now_ns: u64) -> Option<u64> {
        let first_ns = self.one_begins_ns % self.every_ns;
        // The one before the first is still on, or over.
        let passed_ns = now_ns + self.every_ns - first_ns;
        let (count, since_ns) = (passed_ns / self.every_ns, passed_ns % self.every_ns);
        let for_ns = self.lengths_ns[count as usize % self.lengths_ns.len()];
        (since_ns < for_ns).then(|| now_ns - since_ns + for_ns)
    }
}
