//! Packets of one connection that TCP has handed down and its host has not sent yet: fq, a slow access link
//! or a busy processor holds them back. Must never know where they go.

use std::collections::VecDeque;

use fullpipe_tcp::Data;

use crate::agenda::{Agenda, Event};
use crate::packet::HEADER_BYTES;

/// The queue of a sender's host.
#[derive(Default)]
pub(crate) struct Departures {
    packets: VecDeque<Held>,
    /// When the access link is free.
    access_free_ns: u64,
}

/// A packet that its host holds back.
#[derive(Clone, Copy)]
struct Held {
    /// When it enters the network.
    enters_ns: u64,
    /// Packets of the burst that it begins, while that is not made yet; else 0.
    unmade: u32,
    data: Data,
}

/// What happens next.
pub(crate) enum Next {
    /// Nothing is held.
    Nothing,
    /// Nothing before this time.
    Waits(u64),
    /// A burst of this many packets has to be made first.
    Makes(u32),
    /// A packet leaves.
    Leaves(Data),
}

impl Departures {
    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// TCP hands a packet down, which may leave at `ready_ns`; `unmade` is the size of the burst that it
    /// begins, if that is not made yet. True if it leaves now.
    pub(crate) fn hold(
        &mut self,
        agenda: &mut Agenda,
        connection: usize,
        ready_ns: u64,
        access_bps: u64,
        data: Data,
        unmade: u32,
    ) -> bool {
        let mut enters_ns = data.departs_ns.max(ready_ns);
        let wire_bits = u64::from(HEADER_BYTES + data.payload_bytes) * 8;
        if let Some(serialized_ns) = (wire_bits * 1_000_000_000).checked_div(access_bps) {
            enters_ns = self.access_free_ns.max(enters_ns) + serialized_ns;
            self.access_free_ns = enters_ns;
        }
        if self.packets.is_empty() {
            if enters_ns <= agenda.now_ns() {
                return true;
            }
            agenda.schedule(enters_ns, Event::Departure(connection as u32));
        }
        self.packets.push_back(Held {
            enters_ns,
            unmade,
            data,
        });
        false
    }

    /// What happens at this time; a packet that leaves is removed.
    pub(crate) fn next(&mut self, now_ns: u64) -> Next {
        let Some(&first) = self.packets.front() else {
            return Next::Nothing;
        };
        if first.enters_ns > now_ns {
            return Next::Waits(first.enters_ns);
        }
        if first.unmade > 0 {
            return Next::Makes(first.unmade);
        }
        self.packets.pop_front();
        Next::Leaves(first.data)
    }

    /// The first burst is made at `ready_ns`; none of its packets leaves before.
    pub(crate) fn make_first(&mut self, ready_ns: u64) {
        for (position, packet) in self.packets.iter_mut().enumerate() {
            if position > 0 && packet.unmade > 0 {
                break; // the next burst
            }
            packet.unmade = 0;
            packet.enters_ns = packet.enters_ns.max(ready_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(number: u32, departs_ns: u64) -> Data {
        Data {
            number,
            payload_bytes: 1448,
            departs_ns,
            echo_ns: 0,
            is_retransmission: false,
            leads_burst: true,
            cwr: false,
            push: false,
            fin: false,
            ect: false,
            l4s: false,
            ce: false,
        }
    }

    /// What a queue does at a time: 0 nothing, else when it goes on, how much it makes, or what leaves.
    fn next(held: &mut Departures, now_ns: u64) -> (char, u64) {
        match held.next(now_ns) {
            Next::Nothing => ('-', 0),
            Next::Waits(until_ns) => ('w', until_ns),
            Next::Makes(packets) => ('m', packets.into()),
            Next::Leaves(data) => ('l', data.number.into()),
        }
    }

    #[test]
    fn a_packet_leaves_at_once_if_it_may_and_none_is_ahead_of_it() {
        let (mut held, mut agenda) = (Departures::default(), Agenda::default());
        assert!(held.hold(&mut agenda, 3, 0, 0, data(1, 0), 0));
        assert!(!held.hold(&mut agenda, 3, 0, 0, data(2, 5), 0));
        assert!(
            !held.hold(&mut agenda, 3, 0, 0, data(3, 0), 0),
            "behind the second"
        );
        let event = agenda.next();
        assert!(matches!(event, Some((5, Event::Departure(3)))), "{event:?}");
        assert!(agenda.next().is_none(), "only the head has an event");
        assert_eq!(next(&mut held, 4), ('w', 5));
        assert_eq!(next(&mut held, 5), ('l', 2));
        assert_eq!(next(&mut held, 5), ('l', 3));
        assert_eq!(next(&mut held, 5), ('-', 0));
        assert!(held.is_empty());
    }

    #[test]
    fn an_access_link_sends_one_after_the_other() {
        // 1514 bytes at 8 Mbit/s: 1,514,000 ns.
        let (mut held, mut agenda) = (Departures::default(), Agenda::default());
        for (number, departs_ns) in [(1, 0), (2, 0), (3, 9_000_000)] {
            assert!(!held.hold(&mut agenda, 0, 1000, 8_000_000, data(number, departs_ns), 0));
        }
        assert_eq!(next(&mut held, 1_514_999), ('w', 1_515_000));
        assert_eq!(next(&mut held, 1_515_000), ('l', 1));
        assert_eq!(next(&mut held, 1_515_000), ('w', 3_029_000));
        assert_eq!(next(&mut held, 3_029_000), ('l', 2));
        assert_eq!(next(&mut held, 9_000_000), ('w', 10_514_000));
    }

    #[test]
    fn a_burst_is_made_before_any_of_it_leaves_and_the_next_one_later() {
        let (mut held, mut agenda) = (Departures::default(), Agenda::default());
        for (number, unmade) in [(1, 2), (2, 0), (3, 1)] {
            assert!(!held.hold(&mut agenda, 0, 0, 0, data(number, 10), unmade));
        }
        assert_eq!(next(&mut held, 10), ('m', 2));
        held.make_first(30);
        assert_eq!(next(&mut held, 10), ('w', 30));
        assert_eq!(next(&mut held, 30), ('l', 1));
        assert_eq!(next(&mut held, 30), ('l', 2));
        assert_eq!(next(&mut held, 30), ('m', 1));
        held.make_first(5);
        assert_eq!(next(&mut held, 9), ('w', 10), "not before its own time");
    }
}
