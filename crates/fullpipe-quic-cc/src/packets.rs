//! Packets in flight, for a stack that names the packet which is acknowledged or lost. Must not know a
//! stack or an algorithm.

use std::collections::VecDeque;

use crate::host::Sent;

/// Packets in the order of sending.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packets {
    packets: VecDeque<Packet>,
    left_bytes: u64,
}

#[derive(Clone, Debug)]
struct Packet {
    number: u64,
    sent: Sent,
    /// 0: acknowledged or lost.
    bytes: u64,
}

impl Packets {
    /// A packet was sent. Numbers may occur once in each packet number space.
    pub(crate) fn sent(&mut self, number: u64, sent: Sent, bytes: u64) {
        self.left_bytes += bytes;
        self.packets.push_back(Packet {
            number,
            sent,
            bytes,
        });
    }

    /// What is known of the packet of that number that was sent at `sent_ns` and is acknowledged.
    pub(crate) fn acked(&mut self, number: u64, sent_ns: u64) -> Option<Sent> {
        let from = self.packets.partition_point(|p| p.sent.at_ns < sent_ns);
        let same_time = self.packets.range(from..);
        let of_time = same_time.take_while(|packet| packet.sent.at_ns == sent_ns);
        let found = of_time
            .zip(from..)
            .find(|(p, _)| p.number == number && p.bytes > 0);
        found.map(|(_, at)| at).map(|at| self.settle(at))
    }

    /// What is known of the packet of that number that is lost. Where numbers of two spaces agree, which
    /// happens only at the beginning, it is taken to be the older one.
    pub(crate) fn lost(&mut self, number: u64) -> Option<Sent> {
        let is_it = |packet: &Packet| packet.number == number && packet.bytes > 0;
        let found = self.packets.iter().position(is_it);
        found.map(|at| self.settle(at))
    }

    /// The stack has no more than this in flight: the oldest of what is left has left unseen, as the
    /// packets of a discarded number space do, and lost MTU probes.
    pub(crate) fn limit(&mut self, inflight_bytes: u64) {
        while self.left_bytes > inflight_bytes && !self.packets.is_empty() {
            self.settle(0);
        }
    }

    fn settle(&mut self, at: usize) -> Sent {
        let packet = &mut self.packets[at];
        let sent = packet.sent;
        self.left_bytes -= std::mem::take(&mut packet.bytes);
        while self.packets.front().is_some_and(|p| p.bytes == 0) {
            self.packets.pop_front();
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{host::Start, Settings};

    #[test]
    fn a_packet_is_found_by_number_and_time_until_it_is_settled() {
        let start = Start {
            now_ns: 1_000_000_000,
            datagram_bytes: 1200,
            burst_datagrams: 10,
        };
        let mut host = Settings::new("reno").expect("built in").host(0, &start);
        let mut packets = Packets::default();
        // Two spaces, which leave in one burst, and two later packets.
        for (number, at_ns) in [(0, 1), (0, 1), (1, 1), (2, 2), (3, 3)] {
            let sent = host.sent(start.now_ns + at_ns, 1200);
            packets.sent(number, sent, 1200);
        }
        let at_ns = |sent: Option<Sent>| sent.map(|sent| sent.at_ns - start.now_ns);
        assert_eq!(at_ns(packets.acked(2, start.now_ns + 2)), Some(2));
        assert_eq!(at_ns(packets.acked(2, start.now_ns + 2)), None);
        assert_eq!(at_ns(packets.acked(3, start.now_ns + 2)), None);
        assert_eq!(at_ns(packets.lost(0)), Some(1));
        assert_eq!(at_ns(packets.acked(0, start.now_ns + 1)), Some(1));
        assert_eq!(at_ns(packets.lost(0)), None);
        assert_eq!(packets.packets.len(), 3); // 1, the settled 2, and 3
        packets.limit(1200);
        assert_eq!(packets.packets.len(), 1);
        assert_eq!(at_ns(packets.lost(3)), Some(3));
        assert_eq!(packets.left_bytes, 0);
    }
}
