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
