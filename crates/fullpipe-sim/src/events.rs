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
    /// A host has made an ACK.
    Made(u32),
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

/// So many of the events that are due first are kept apart from the others.
const FRONT: usize = 16;
/// Places for them, and one: a power of two, so that a place modulo that is below it for the compiler
/// too.
const PLACES: usize = 32;

/// Events between two looks up.
const PAUSE_EVERY: u64 = 1 << 16;

/// Pending events. Delay lines show only their heads, so that there is a handful in most runs, and
/// most of what happens sets off something that is due before nearly all the others: a short sorted
/// list takes that for less than anything that holds them all.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// When what is due first is due, from the place `count`, where the next one is, down to the first.
    /// Before them is when the others are: from that time on an event belongs to those, of which none is
    /// due before.
    front_ns: [u64; PLACES],
    /// Turns and events, at the same places.
    front: [(u64, Event); PLACES],
    count: usize,
    /// The others: none of them comes before one of the front.
    later: Wheel,
    /// When the last event was due that has been handled.
    now_ns: u64,
    scheduled: u64,
    handled: u64,
    /// Until then [`Self::goes_on`] may say so.
    goes_on_until_ns: u64,
}

impl Default for Agenda {
    fn default() -> Self {
        Self {
            front_ns: [u64::MAX; PLACES],
            front: [(0, Event::Sample); PLACES],
            count: 0,
            later: Wheel::default(),
            now_ns: 0,
            scheduled: 0,
            handled: 0,
            goes_on_until_ns: 0,
        }
    }
}

impl Agenda {
    #[inline]
    pub(crate) fn schedule(&mut self, at_ns: u64, event: Event) {
        let turn = self.scheduled + 1;
        self.scheduled = turn;
        // Of what is due at the same time this comes last: it was scheduled last.
        if self.front_ns[0] > at_ns && self.count < FRONT {
            self.insert(at_ns, turn, event);
        } else {
            self.schedule_later(at_ns, turn, event);
        }
    }

    /// It is due before the others.
    #[inline]
    fn insert(&mut self, at_ns: u64, turn: u64, event: Event) {
        let mut place = self.count % FRONT;
        self.count = place + 1;
        while self.front_ns[place % PLACES] <= at_ns {
            self.front_ns[(place + 1) % PLACES] = self.front_ns[place % PLACES];
            self.front[(place + 1) % PLACES] = self.front[place % PLACES];
            place -= 1;
        }
        self.front_ns[(place + 1) % PLACES] = at_ns;
        self.front[(place + 1) % PLACES] = (turn, event);
    }

    /// The front is full, or this is due behind what the others have.
    #[inline(never)]
    fn schedule_later(&mut self, at_ns: u64, turn: u64, event: Event) {
        let mut last = Pending { at_ns, turn, event };
        if self.front_ns[0] > at_ns && self.front_ns[1] > at_ns {
            (last.turn, last.event) = self.front[1];
            last.at_ns = self.front_ns[1];
            self.front_ns.copy_within(2.., 1);
            self.front.copy_within(2.., 1);
            self.count -= 1;
            self.insert(at_ns, turn, event);
        }
        self.front_ns[0] = self.front_ns[0].min(last.at_ns);
        self.later.push(self.now_ns, last);
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<(u64, Event)> {
        if self.count == 0 && !self.advance_front() {
            return None;
        }
        let at_ns = self.next_ns();
        let (_, event) = self.front[self.count % PLACES];
        self.count -= 1;
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
            self.count += 1;
            self.front_ns[self.count] = first.at_ns;
            self.front[self.count] = (first.turn, first.event);
        }
        self.front_ns[1..=self.count].reverse();
        self.front[1..=self.count].reverse();
        self.front_ns[0] = self.later.none_before_ns(self.now_ns);
        self.count > 0
    }

    /// When the next event is due; nothing is due before if there is none in front.
    #[inline]
    fn next_ns(&self) -> u64 {
        self.front_ns[self.count % PLACES]
    }

    /// The next event, if it is due by then.
    pub(crate) fn next_until(&mut self, limit_ns: u64) -> Option<(u64, Event)> {
        if self.count == 0 && !self.advance_front() {
            return None;
        }
        (self.next_ns() <= limit_ns).then(|| self.next())?
    }

    /// Whoever is at work may say what it would do next ([`Self::goes_on`]) up to this time.
    pub(crate) fn allow_until(&mut self, until_ns: u64) {
        self.goes_on_until_ns = until_ns;
    }

    /// Whether an event at this time, if it were scheduled now, would be the next one: then it counts as
    /// handled, and the caller does at once what it is about. Not where [`Self::is_pausing`] will be true.
    #[inline]
    pub(crate) fn goes_on(&mut self, at_ns: u64) -> bool {
        // Of two at one time the one that was scheduled before comes first.
        if at_ns >= self.next_ns() || at_ns > self.goes_on_until_ns {
            return false;
        }
        if (self.handled + 1) % PAUSE_EVERY == 0 {
            return false;
        }
        self.handled += 1;
        self.now_ns = at_ns;
        true
    }

    /// Now and then whoever handles events looks up.
    #[inline]
    pub(crate) fn is_pausing(&self) -> bool {
        self.handled % PAUSE_EVERY == 0
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

    /// Who was at work when, of sources that work again and again; `goes_on`: at once where nothing comes
    /// between.
    fn work(goes_on: bool) -> (Vec<(u64, u32)>, u64) {
        const UNTIL_NS: u64 = 3_000_000;
        let mut agenda = Agenda::default();
        agenda.allow_until(UNTIL_NS);
        for source in 0..24 {
            agenda.schedule(u64::from(source) % 5, Event::Page(source));
        }
        let mut done = Vec::new();
        while let Some((mut at_ns, Event::Page(source))) = agenda.next_until(UNTIL_NS) {
            loop {
                done.push((at_ns, source));
                // Intervals of a ns and of a hundred us, so that many are due at one time.
                let step = (at_ns * 31 + u64::from(source)) * 62_710_561;
                let next_ns = at_ns + [1, 7, 40, 1000, 100_000][(step / 128) as usize % 5];
                if !goes_on || !agenda.goes_on(next_ns) {
                    agenda.schedule(next_ns, Event::Page(source));
                    break;
                }
                at_ns = next_ns;
            }
        }
        (done, agenda.handled())
    }

    #[test]
    fn what_goes_on_at_once_is_done_when_an_event_would_have_come_for_it() {
        let (done, handled) = work(true);
        assert!(done.len() > 1000);
        assert_eq!((done, handled), work(false));
    }
}
