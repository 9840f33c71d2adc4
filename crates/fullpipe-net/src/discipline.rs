//! The contract between a queue and its discipline.

use crate::Packet;

/// What a queue discipline does. Limits, drops and marks are its own affair; whatever it drops or
/// marks it reports to the outcome.
pub(crate) trait Discipline<P> {
    fn enqueue(&mut self, now_ns: u64, packet: P, outcome: &mut Outcome<P>);
    fn dequeue(&mut self, now_ns: u64, outcome: &mut Outcome<P>) -> Option<P>;
    fn bytes(&self) -> u64;
    fn packets(&self) -> usize;

    fn next_ready_ns(&self, now_ns: u64) -> Option<u64> {
        (self.packets() > 0).then_some(now_ns)
    }
}

/// What one call dropped and marked.
#[derive(Debug)]
pub(crate) struct Outcome<'a, P> {
    dropped: &'a mut Vec<P>,
    pub(crate) drops: u64,
    pub(crate) marks: u64,
}

impl<'a, P: Packet> Outcome<'a, P> {
    pub(crate) fn new(dropped: &'a mut Vec<P>) -> Self {
        Self {
            dropped,
            drops: 0,
            marks: 0,
        }
    }

    pub(crate) fn drop(&mut self, packet: P) {
        self.drops += 1;
        self.dropped.push(packet);
    }

    pub(crate) fn mark(&mut self, packet: &mut P) {
        self.marks += 1;
        packet.mark_ce();
    }
}
