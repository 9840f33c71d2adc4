//! The application that reads: when other processes keep it from the processor. Never what it reads.

use fullpipe_scenario::ReaderPauses;

/// When a reader is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absences {
    /// How often and how long.
    pub pauses: ReaderPauses,
    /// When one begins; the others follow and precede it.
    pub one_begins_ns: u64,
}

impl Absences {
    /// When a reader that is away at this time is back; `None`: it is there.
    pub fn back_ns(&self, now_ns: u64) -> Option<u64> {
        let ReaderPauses { every_ns, for_ns } = self.pauses;
        let since_ns = (now_ns + every_ns - self.one_begins_ns % every_ns) % every_ns;
        (since_ns < for_ns).then(|| now_ns - since_ns + for_ns)
    }
}
