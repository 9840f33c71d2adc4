//! Packets of one connection that TCP has handed down and its host has not sent yet: fq, a slow access link
//! or a busy processor holds them back. Must never know where they go.

use std::collections::VecDeque;

use fullpipe_tcp::Data;

use crate::agenda::{Agenda, Event};
use crate::packet::HEADER_BYTES;

/// Linux's tbf as the link of a sender: a packet leaves at once where the bucket has enough for it.
#[derive(Clone, Copy)]
pub(crate) struct AccessLink {
    /// 0: there is none.
    rate_bps: u64,
    bucket_bytes: u64,
}

/// The least bucket, as that of links (the agent's `link_rate()`), and an Ethernet header.
const BUCKET_BYTES: u64 = 1600;
const ETHERNET_BYTES: u64 = 14;

impl AccessLink {
    pub(crate) fn new(rate_bps: u64, mtu_bytes: u32) -> Self {
        let frame_bytes = u64::from(mtu_bytes) + ETHERNET_BYTES;
        Self {
            rate_bps,
            bucket_bytes: frame_bytes.max(BUCKET_BYTES),
        }
    }

    pub(crate) fn is_limited(self) -> bool {
        self.rate_bps > 0
    }

    /// How long a volume takes, if the link has a rate.
    fn time_ns(self, bytes: u64) -> Option<u64> {
        (bytes * 8 * 1_000_000_000).checked_div(self.rate_bps)
    }
}

/// The queue of a sender's host.
#[derive(Default)]
pub(crate) struct Departures {
    packets: VecDeque<Held>,
    /// When the access link's bucket is full again.
    access_full_ns: u64,
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
        access: AccessLink,
        data: Data,
        unmade: u32,
    ) -> bool {
        let mut enters_ns = data.departs_ns.max(ready_ns);
        let wire_bytes = u64::from(HEADER_BYTES + data.payload_bytes);
        if let Some(serialized_ns) = access.time_ns(wire_bytes) {
            let bucket_ns = access.time_ns(access.bucket_bytes).unwrap_or(0);
            let has_tokens_ns = (self.access_full_ns + serialized_ns).saturating_sub(bucket_ns);
            enters_ns = enters_ns.max(has_tokens_ns);
            self.access_full_ns = self.access_full_ns.max(enters_ns) + serialized_ns;
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

    const NO_LINK: AccessLink = AccessLink {
        rate_bps: 0,
        bucket_bytes: 0,
    };

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
        assert!(held.hold(&mut agenda, 3, 0, NO_LINK, data(1, 0), 0));
        assert!(!held.hold(&mut agenda, 3, 0, NO_LINK, data(2, 5), 0));
        assert!(
            !held.hold(&mut agenda, 3, 0, NO_LINK, data(3, 0), 0),
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
    fn an_access_link_sends_a_packet_at_once_and_the_next_when_its_bucket_has_enough() {
        // Linux's tbf: 1514 bytes at 8 Mbit/s take 1,514,000 ns, and 86 of the bucket's 1600 bytes are left.
        let (mut held, mut agenda) = (Departures::default(), Agenda::default());
        let link = AccessLink::new(8_000_000, 1500);
        assert!(held.hold(&mut agenda, 0, 0, link, data(1, 0), 0));
        for (number, departs_ns) in [(2, 0), (3, 0), (4, 9_000_000)] {
            assert!(!held.hold(&mut agenda, 0, 0, link, data(number, departs_ns), 0));
        }
        assert_eq!(next(&mut held, 0), ('w', 1_428_000));
        assert_eq!(next(&mut held, 1_428_000), ('l', 2));
        assert_eq!(next(&mut held, 1_428_000), ('w', 2_942_000));
        assert_eq!(next(&mut held, 2_942_000), ('l', 3));
        assert_eq!(next(&mut held, 9_000_000), ('l', 4));
    }

    #[test]
    fn a_burst_is_made_before_any_of_it_leaves_and_the_next_one_later() {
        let (mut held, mut agenda) = (Departures::default(), Agenda::default());
        for (number, unmade) in [(1, 2), (2, 0), (3, 1)] {
            assert!(!held.hold(&mut agenda, 0, 0, NO_LINK, data(number, 10), unmade));
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
