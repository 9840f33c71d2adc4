//! The agenda: what happens next. Ties are broken by the order of scheduling.

use std::cmp::Ordering;

use crate::wheel::Wheel;

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
    /// Its first SYN knows where to go.
    Resolved(u32),
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
pub(crate) struct Pending {
    pub(crate) at_ns: u64,
    turn: u64,
    event: Event,
}

impl Pending {
    /// Turns are unique, so the event itself need not be looked at.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.at_ns) << 64 | u128::from(self.turn)
    }
}

impl Ord for Pending {
    /// What is due first is the greatest, for heaps and lists that yield the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    /// What sorting asks for, in one comparison.
    #[inline]
    fn lt(&self, other: &Self) -> bool {
        other.key() < self.key()
    }

    /// What a heap asks for.
    #[inline]
    fn le(&self, other: &Self) -> bool {
        other.key() <= self.key()
    }
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pending {}

/// So many of the events that are due first are kept apart from the others. A power of two: a place
/// modulo that is below it for the compiler too.
const FRONT: usize = 8;

/// Pending events. Delay lines show only their heads, so that there is a handful in most runs, and
/// most of what happens sets off something that is due before nearly all the others: a short sorted
/// list takes that for less than anything that holds them all.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// What is due first, the next one last; `count` of them are meant.
    front: [Pending; FRONT],
    count: usize,
    /// The others: none of them comes before one of the front.
    later: Wheel,
    /// From this time on an event belongs to the others, of which none is due before.
    later_ns: u64,
    /// When the last event was due that has been handled.
    now_ns: u64,
    scheduled: u64,
    handled: u64,
}

impl Default for Agenda {
    fn default() -> Self {
        let none = Pending {
            at_ns: u64::MAX,
            turn: 0,
            event: Event::Sample,
        };
        Self {
            front: [none; FRONT],
            count: 0,
            later: Wheel::default(),
            later_ns: u64::MAX,
            now_ns: 0,
            scheduled: 0,
            handled: 0,
        }
    }
}

impl Agenda {
    #[inline]
    pub(crate) fn schedule(&mut self, at_ns: u64, event: Event) {
        self.scheduled += 1;
        let pending = Pending {
            at_ns,
            turn: self.scheduled,
            event,
        };
        // Of what is due at the same time this comes last: it was scheduled last.
        if self.later_ns <= at_ns || self.count == FRONT {
            return self.schedule_later(pending);
        }
        self.insert(pending);
    }

    #[inline]
    fn insert(&mut self, pending: Pending) {
        let mut place = self.count;
        self.count += 1;
        while place > 0 && self.front[(place - 1) % FRONT].at_ns <= pending.at_ns {
            self.front[place % FRONT] = self.front[(place - 1) % FRONT];
            place -= 1;
        }
        self.front[place % FRONT] = pending;
    }

    /// The front is full, or this is due behind what the others have.
    #[inline(never)]
    fn schedule_later(&mut self, pending: Pending) {
        let mut last = pending;
        if self.later_ns > pending.at_ns && self.front[0].at_ns > pending.at_ns {
            last = self.front[0];
            self.front.copy_within(1.., 0);
            self.count -= 1;
            self.insert(pending);
        }
        self.later_ns = self.later_ns.min(last.at_ns);
        self.later.push(self.now_ns, last);
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<(u64, Event)> {
        if self.count == 0 && !self.advance_front() {
            return None;
        }
        self.count -= 1;
        let Pending { at_ns, event, .. } = self.front[self.count % FRONT];
        self.handled += 1;
        self.now_ns = at_ns;
        Some((at_ns, event))
    }

    /// Takes half a front out of the others: room is left for what these will set off. False if there is
    /// nothing.
    #[inline(never)]
    fn advance_front(&mut self) -> bool {
        while self.count < FRONT / 2 {
            let Some(first) = self.later.pop(self.now_ns) else {
                break;
            };
            self.front[self.count] = first;
            self.count += 1;
        }
        self.front[..self.count].reverse();
        self.later_ns = self.later.none_before_ns(self.now_ns);
        self.count > 0
    }

    /// The next event, if it is due by then.
    pub(crate) fn next_until(&mut self, limit_ns: u64) -> Option<(u64, Event)> {
        if self.count == 0 && !self.advance_front() {
            return None;
        }
        let next_ns = self.front[self.count - 1].at_ns;
        (next_ns <= limit_ns).then(|| self.next())?
    }

    pub(crate) fn handled(&self) -> u64 {
        self.handled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_at_one_time_in_the_order_of_scheduling() {
        // Times that collide, more at once than the front holds, and some taken in between; soon, within
        // the wheel's ring and beyond it.
        let mut agenda = Agenda::default();
        let (mut waiting, mut number, mut now_ns) = (Vec::new(), 0, 0);
        for step in 0..6000_u64 {
            if step % 5 < 3 && step < 4000 {
                let reach_ns = [9, 200, 9, 50_000, 3_000_000, 9, 300_000_000][step as usize % 7];
                let at_ns = now_ns + step * 62_710_561 % reach_ns;
                agenda.schedule(at_ns, Event::Page(number));
                waiting.push((at_ns, number));
                number += 1;
            } else {
                waiting.sort_unstable();
                if waiting.is_empty() {
                    break;
                }
                let next = agenda.next().map(|(at_ns, event)| match event {
                    Event::Page(number) => (at_ns, number),
                    _ => unreachable!("only pages are scheduled"),
                });
                assert_eq!(next, Some(waiting.remove(0)));
                now_ns = next.map_or(now_ns, |(at_ns, _)| at_ns);
            }
        }
    }
}
