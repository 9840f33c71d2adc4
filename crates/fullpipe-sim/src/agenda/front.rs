//! The agenda itself: a sorted list of the events that are due first, in front of a wheel of the others.

use super::event::{Event, Pending};
use super::wheel::Wheel;

/// Events in the sorted list of those that are due first.
const FRONT: usize = 16;
/// Its places: `FRONT` and one more, rounded up to a power of two so that the compiler needs no bounds
/// checks.
const PLACES: usize = 32;

/// Events between two pauses.
const PAUSE_EVERY: u64 = 1 << 16;

/// Pending events. Delay lines schedule only their heads, so most runs have a handful, and most events
/// cause another that is due before nearly all others. A short sorted list of those that are due first
/// is therefore cheaper than any structure for all.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// Times of the front's events, descending: the next one is at place `count`, the last one at place 1.
    /// Place 0 is a lower bound for the others: an event that is not before it belongs to them.
    front_ns: [u64; PLACES],
    /// Serial numbers and events, at the same places.
    front: [(u64, Event); PLACES],
    count: usize,
    /// The others, all of which come after the front.
    later: Wheel,
    /// The simulated time.
    now_ns: u64,
    scheduled: u64,
    handled: u64,
    /// [`Self::continues`] is false after this time.
    continues_until_ns: u64,
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
            continues_until_ns: 0,
        }
    }
}

impl Agenda {
    /// The simulated time.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    #[inline]
    pub(crate) fn schedule(&mut self, at_ns: u64, event: Event) {
        let serial = self.scheduled + 1;
        self.scheduled = serial;
        // It comes after all events at the same time, as it was scheduled last.
        if self.front_ns[0] > at_ns && self.count < FRONT {
            self.insert(at_ns, serial, event);
        } else {
            self.schedule_later(at_ns, serial, event);
        }
    }

    /// Inserts an event into the front.
    #[inline]
    fn insert(&mut self, at_ns: u64, serial: u64, event: Event) {
        let mut place = self.count % FRONT;
        self.count = place + 1;
        while self.front_ns[place % PLACES] <= at_ns {
            self.front_ns[(place + 1) % PLACES] = self.front_ns[place % PLACES];
            self.front[(place + 1) % PLACES] = self.front[place % PLACES];
            place -= 1;
        }
        self.front_ns[(place + 1) % PLACES] = at_ns;
        self.front[(place + 1) % PLACES] = (serial, event);
    }

    /// The front is full, or the event belongs to the others.
    #[inline(never)]
    fn schedule_later(&mut self, at_ns: u64, serial: u64, event: Event) {
        let mut last = Pending {
            at_ns,
            serial,
            event,
        };
        if self.front_ns[0] > at_ns && self.front_ns[1] > at_ns {
            (last.serial, last.event) = self.front[1];
            last.at_ns = self.front_ns[1];
            self.front_ns.copy_within(2.., 1);
            self.front.copy_within(2.., 1);
            self.count -= 1;
            self.insert(at_ns, serial, event);
        }
        self.front_ns[0] = self.front_ns[0].min(last.at_ns);
        self.later.push(self.now_ns, last);
    }

    /// Takes the next event and moves the time to it.
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

    /// Fills half of the front from the others, which leaves room for events that these will cause. False
    /// if there are none.
    #[inline(never)]
    fn advance_front(&mut self) -> bool {
        while self.count < FRONT / 2 {
            let Some(first) = self.later.pop(self.now_ns) else {
                break;
            };
            self.count += 1;
            self.front_ns[self.count] = first.at_ns;
            self.front[self.count] = (first.serial, first.event);
        }
        self.front_ns[1..=self.count].reverse();
        self.front[1..=self.count].reverse();
        self.front_ns[0] = self.later.none_before_ns(self.now_ns);
        self.count > 0
    }

    /// When the next event is due; with an empty front a lower bound.
    #[inline]
    fn next_ns(&self) -> u64 {
        self.front_ns[self.count % PLACES]
    }

    /// The next event, if it is due by `limit_ns`; else the time moves to that.
    pub(crate) fn next_until(&mut self, limit_ns: u64) -> Option<(u64, Event)> {
        let is_empty = self.count == 0 && !self.advance_front();
        if is_empty || self.next_ns() > limit_ns {
            self.now_ns = self.now_ns.max(limit_ns);
            return None;
        }
        self.next()
    }

    /// Lets [`Self::continues`] be true up to this time.
    pub(crate) fn continue_until(&mut self, until_ns: u64) {
        self.continues_until_ns = until_ns;
    }

    /// Whether an event at this time, if it were scheduled now, would be the next one. Then the time moves
    /// to it, it counts as handled, and the caller handles it at once. False before a pause
    /// ([`Self::is_pausing`]).
    #[inline]
    pub(crate) fn continues(&mut self, at_ns: u64) -> bool {
        // Of two events at one time the one that was scheduled first comes first.
        if at_ns >= self.next_ns() || at_ns > self.continues_until_ns {
            return false;
        }
        if (self.handled + 1) % PAUSE_EVERY == 0 {
            return false;
        }
        self.handled += 1;
        self.now_ns = at_ns;
        true
    }

    /// Whether to report progress now.
    #[inline]
    pub(crate) fn is_pausing(&self) -> bool {
        self.handled % PAUSE_EVERY == 0
    }

    /// Events handled so far.
    pub(crate) fn handled(&self) -> u64 {
        self.handled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_at_one_time_in_the_order_of_scheduling() {
        // Times collide, more events are pending than the front holds, and some are taken in between. They
        // are due soon, within the wheel's ring and beyond it.
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

    #[test]
    fn events_at_one_time_far_ahead_come_in_the_order_of_scheduling() {
        // 1 s is beyond the wheel's ring, 50 ms within it; more events than a slot inserts one by one.
        for at_ns in [1_000_000_000, 50_000_000, 10] {
            let mut agenda = Agenda::default();
            for number in 0..200 {
                agenda.schedule(at_ns, Event::Page(number));
            }
            for number in 0..200 {
                let next = agenda.next();
                let is_next =
                    matches!(next, Some((at, Event::Page(page))) if (at, page) == (at_ns, number));
                assert!(is_next, "{number}: {next:?}");
            }
        }
    }

    /// When which of several sources that repeat acted; with `continues` at once if possible.
    fn act(continues: bool) -> (Vec<(u64, u32)>, u64) {
        const UNTIL_NS: u64 = 3_000_000;
        let mut agenda = Agenda::default();
        agenda.continue_until(UNTIL_NS);
        for source in 0..24 {
            agenda.schedule(u64::from(source) % 5, Event::Page(source));
        }
        let mut done = Vec::new();
        while let Some((mut at_ns, Event::Page(source))) = agenda.next_until(UNTIL_NS) {
            loop {
                done.push((at_ns, source));
                // Intervals from 1 ns to 100 us, so that many are due at one time.
                let step = (at_ns * 31 + u64::from(source)) * 62_710_561;
                let next_ns = at_ns + [1, 7, 40, 1000, 100_000][(step / 128) as usize % 5];
                if !continues || !agenda.continues(next_ns) {
                    agenda.schedule(next_ns, Event::Page(source));
                    break;
                }
                at_ns = next_ns;
            }
        }
        (done, agenda.handled())
    }

    #[test]
    fn continuing_at_once_is_the_same_as_scheduling_an_event() {
        let (done, handled) = act(true);
        assert!(done.len() > 1000);
        assert_eq!((done, handled), act(false));
    }
}
