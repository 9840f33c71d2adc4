//! The agenda: what happens next. Ties are broken by the order of scheduling.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What is due.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A link's timer.
    Link(u32),
    /// The head of what travels between two links has arrived.
    Between(u32),
    /// The head of a host's delay line has arrived.
    Line(u32),
    /// A sender's timer.
    Sender(u32),
    /// A receiver's timer.
    Receiver(u32),
    /// A burst leaves a sender's host (fq, access link).
    Departure(u32),
    /// The application of a flow writes.
    Write(u32),
    /// A flow connects.
    Start(u32),
    /// Its first SYN (when it was sent, whether it asks for ECN) knows where to go.
    Resolved(u32, u64, bool),
    /// A timer of its handshake.
    Handshake(u32),
    /// Its application stops.
    Stop(u32),
    /// A probe sends a request.
    Probe(u32),
    /// A page's timer.
    Page(u32),
    /// A stream of datagrams sends.
    Datagram(u32),
    /// A flow of a group of traffic comes.
    Arrive(u32),
    /// A host is done with a packet.
    Work(u32),
    /// Everything is sampled.
    Sample,
}

/// An event at its time; which of two at one time was scheduled first is known by its turn.
#[derive(Clone, Copy, Debug)]
struct Pending {
    at_ns: u64,
    turn: u64,
    event: Event,
}

impl Ord for Pending {
    /// What is due first is the greatest, for a heap that yields the greatest. Turns are unique, so
    /// the event itself need not be looked at.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at_ns, other.turn).cmp(&(self.at_ns, self.turn))
    }
}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pending {}

/// Pending events; a handful at a time, since delay lines show only their heads.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Pending>,
    scheduled: u64,
    handled: u64,
}

impl Agenda {
    pub(crate) fn schedule(&mut self, at_ns: u64, event: Event) {
        self.scheduled += 1;
        self.heap.push(Pending {
            at_ns,
            turn: self.scheduled,
            event,
        });
    }

    pub(crate) fn next(&mut self) -> Option<(u64, Event)> {
        let Pending { at_ns, event, .. } = self.heap.pop()?;
        self.handled += 1;
        Some((at_ns, event))
    }

    /// The next event, if it is due by then.
    pub(crate) fn next_until(&mut self, limit_ns: u64) -> Option<(u64, Event)> {
        let next = self.heap.peek()?;
        (next.at_ns <= limit_ns).then(|| self.next())?
    }

    pub(crate) fn handled(&self) -> u64 {
        self.handled
    }
}
