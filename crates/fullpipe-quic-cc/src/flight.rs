//! Bursts in flight, for a stack that does not give back what was kept of a packet, only when it was sent.
//! Must not know a stack or an algorithm.

use std::collections::VecDeque;

use crate::host::Sent;

/// Above this the oldest bursts are forgotten, whose packets then give no rate samples. It bounds the
/// memory of a connection that only acknowledges: 80 bytes a burst.
const MAX_BURSTS: usize = 16_384;

/// Bursts in the order of sending.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flight {
    bursts: VecDeque<Burst>,
    left_bytes: u64,
}

#[derive(Clone, Debug)]
struct Burst {
    sent: Sent,
    /// Neither acknowledged nor lost.
    left_bytes: u64,
}

impl Flight {
    /// A burst was sent. Those of the same time are one.
    pub(crate) fn sent(&mut self, sent: Sent, bytes: u64) {
        self.left_bytes += bytes;
        match self.bursts.back_mut() {
            Some(last) if last.sent.at_ns == sent.at_ns => {
                last.sent.inflight_bytes = sent.inflight_bytes;
                last.left_bytes += bytes;
            }
            _ => self.bursts.push_back(Burst {
                sent,
                left_bytes: bytes,
            }),
        }
        if self.bursts.len() > MAX_BURSTS {
            self.forget_oldest();
        }
    }

    /// A packet was acknowledged. What is known of it; within a burst, packets are taken to be
    /// acknowledged in the order of sending.
    pub(crate) fn acked(&mut self, sent_ns: u64, bytes: u64) -> Option<Sent> {
        let at = self.find(sent_ns)?;
        let burst = &mut self.bursts[at];
        let taken = bytes.min(burst.left_bytes);
        burst.left_bytes -= taken;
        self.left_bytes -= taken;
        let mut sent = burst.sent;
        sent.inflight_bytes = sent.inflight_bytes.saturating_sub(burst.left_bytes);
        self.drop_settled();
        Some(sent)
    }

    /// Packets of together `bytes` were lost, the newest of them sent at `sent_ns`, of which this is what
    /// is known.
    pub(crate) fn lost(&mut self, sent_ns: u64, bytes: u64) -> Option<Sent> {
        let newest = self.find(sent_ns).map(|at| self.bursts[at].sent);
        let mut left = bytes;
        for burst in &mut self.bursts {
            if left == 0 || burst.sent.at_ns > sent_ns {
                break;
            }
            let taken = left.min(burst.left_bytes);
            burst.left_bytes -= taken;
            self.left_bytes -= taken;
            left -= taken;
        }
        self.drop_settled();
        newest
    }

    /// The stack has no more than this in flight: the oldest of what is left has left unseen.
    pub(crate) fn limit(&mut self, inflight_bytes: u64) {
        while self.left_bytes > inflight_bytes {
            let Some(oldest) = self.bursts.front_mut() else {
                return;
            };
            let taken = (self.left_bytes - inflight_bytes).min(oldest.left_bytes);
            oldest.left_bytes -= taken;
            self.left_bytes -= taken;
            self.drop_settled();
        }
    }

    fn find(&self, sent_ns: u64) -> Option<usize> {
        let found = self.bursts.binary_search_by_key(&sent_ns, |b| b.sent.at_ns);
        found.ok()
    }

    fn drop_settled(&mut self) {
        while self.bursts.front().is_some_and(|b| b.left_bytes == 0) {
            self.bursts.pop_front();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.bursts.pop_front() {
            self.left_bytes -= oldest.left_bytes;
        }
        self.drop_settled();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{host::Start, Settings};

    const PACKET_BYTES: u64 = 1200;

    /// Three bursts of 2, 3 and 1 packets, a millisecond apart.
    fn three() -> Flight {
        let start = Start {
            now_ns: 1_000_000_000,
            datagram_bytes: PACKET_BYTES as u32,
            burst_datagrams: 10,
        };
        let mut host = Settings::new("reno").expect("built in").host(0, &start);
        let mut flight = Flight::default();
        for (burst, packets) in [2, 3, 1].into_iter().enumerate() {
            let bytes = packets * PACKET_BYTES;
            let sent = host.sent(start.now_ns + burst as u64 * 1_000_000, bytes);
            flight.sent(sent, bytes);
        }
        flight
    }

    #[test]
    fn packets_of_a_burst_have_the_flight_at_their_own_sending() {
        let mut flight = three();
        let second_ns = 1_001_000_000;
        let inflights: Vec<u64> = (0..3)
            .filter_map(|_| flight.acked(second_ns, PACKET_BYTES))
            .map(|sent| sent.inflight_bytes / PACKET_BYTES)
            .collect();
        assert_eq!(inflights, [3, 4, 5]);
        assert!(flight.acked(1_000_500_000, PACKET_BYTES).is_none());
    }

    #[test]
    fn losses_leave_from_the_oldest_burst_on() {
        let mut flight = three();
        let newest = flight.lost(1_001_000_000, 3 * PACKET_BYTES);
        assert_eq!(newest.map(|sent| sent.at_ns), Some(1_001_000_000));
        assert_eq!(flight.bursts.len(), 2);
        assert_eq!(flight.left_bytes, 3 * PACKET_BYTES);
        flight.limit(PACKET_BYTES);
        assert_eq!(flight.bursts.len(), 1);
        flight.limit(0);
        assert!(flight.bursts.is_empty());
    }

    #[test]
    fn a_connection_that_only_acknowledges_keeps_a_bounded_record() {
        let mut flight = three();
        let first = flight.bursts[0].sent;
        for number in 1..3 * MAX_BURSTS as u64 {
            let at_ns = 2_000_000_000 + number;
            let mut sent = first;
            sent.at_ns = at_ns;
            flight.sent(sent, 50);
        }
        assert_eq!(flight.bursts.len(), MAX_BURSTS);
        assert_eq!(flight.left_bytes, 50 * MAX_BURSTS as u64);
    }
}
