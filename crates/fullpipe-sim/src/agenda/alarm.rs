//! Timers that need one event on the agenda: an earlier deadline gets an event of its own, a later one is
//! found when the event of the earlier one comes.

use super::event::Event;
use super::front::Agenda;

/// No time.
pub(crate) const NEVER_NS: u64 = u64::MAX;

/// The event that is on the agenda for a timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alarm {
    /// When; [`NEVER_NS`]: there is none.
    at_ns: u64,
}

impl Default for Alarm {
    fn default() -> Self {
        Self { at_ns: NEVER_NS }
    }
}

impl Alarm {
    /// When the event is due; [`NEVER_NS`]: there is none.
    #[inline]
    pub(crate) fn at_ns(self) -> u64 {
        self.at_ns
    }

    #[inline]
    pub(crate) fn is_set(self) -> bool {
        self.at_ns != NEVER_NS
    }

    /// Schedules the timer's event, unless one that is not later is on the agenda.
    #[inline(always)] // mostly there is one
    pub(crate) fn set(&mut self, agenda: &mut Agenda, at_ns: u64, event: Event) {
        if at_ns < self.at_ns {
            self.at_ns = at_ns;
            agenda.schedule(at_ns, event);
        }
    }

    /// Whether the event at this time is the timer's, and not that of a deadline that was replaced.
    #[inline]
    pub(crate) fn rings(&mut self, now_ns: u64) -> bool {
        let rings = self.at_ns == now_ns;
        if rings {
            self.at_ns = NEVER_NS;
        }
        rings
    }

    /// Forgets the event: it will mean nothing.
    pub(crate) fn forget(&mut self) {
        self.at_ns = NEVER_NS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_deadline_gets_an_event_of_its_own_and_a_later_one_none() {
        let (mut alarm, mut agenda) = (Alarm::default(), Agenda::default());
        assert!(!alarm.is_set());
        for at_ns in [50, 60, 50, 40] {
            alarm.set(&mut agenda, at_ns, Event::Page(1));
        }
        assert!(alarm.is_set() && alarm.at_ns() == 40);
        let mut rings = Vec::new();
        while let Some((at_ns, _)) = agenda.next() {
            rings.push((at_ns, alarm.rings(at_ns)));
        }
        // That of 50 was replaced.
        assert_eq!(rings, [(40, true), (50, false)]);
        assert!(!alarm.is_set());
        alarm.set(&mut agenda, 70, Event::Page(1));
        alarm.forget();
        assert!(!alarm.rings(70) && !alarm.is_set());
    }
}
