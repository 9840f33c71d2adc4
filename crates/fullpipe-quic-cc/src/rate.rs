//! Delivery-rate samples in packets: draft-ietf-ccwg-bbr section 4.1. The one place that decides what a
//! sample is. It must not know an algorithm, a stack or bytes.

/// What is kept of a packet until it is acknowledged or lost (`P.` in the draft).
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// When it was sent.
    pub sent_us: u64,
    /// When the newest packet delivered by then had been sent, or when the flight began
    /// (`first_send_time`).
    pub first_sent_us: u64,
    /// When `delivered` had last grown.
    pub delivered_us: u64,
    /// Packets delivered by then.
    pub delivered: u32,
    /// Of those, marked CE.
    pub delivered_ce: u32,
    /// The application did not keep the pipe full.
    pub is_app_limited: bool,
}

/// A sample (`RS.` in the draft).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Packets delivered over the interval.
    pub delivered: u32,
    /// Of those, marked CE.
    pub delivered_ce: u32,
    /// The longer of the time in which they were sent and the time in which they were acknowledged. `None`:
    /// shorter than the least RTT, so the ACKs were compressed.
    pub interval_us: Option<u64>,
}

/// A connection's counters (`C.` in the draft).
#[derive(Clone, Debug)]
pub struct Sampler {
    delivered: u32,
    delivered_ce: u32,
    delivered_us: u64,
    first_sent_us: u64,
    /// The application-limited time ends when `delivered` passes this; 0: there is none.
    app_limited: u32,
}

impl Sampler {
    /// A connection that begins now.
    pub fn new(now_us: u64) -> Self {
        Self {
            delivered: 0,
            delivered_ce: 0,
            delivered_us: now_us,
            first_sent_us: now_us,
            app_limited: 0,
        }
    }

    /// A packet is sent (section 4.1.2.2).
    pub fn sent(&mut self, now_us: u64, is_first_of_flight: bool) -> Snapshot {
        if is_first_of_flight {
            self.first_sent_us = now_us;
            self.delivered_us = now_us;
        }
        Snapshot {
            sent_us: now_us,
            first_sent_us: self.first_sent_us,
            delivered_us: self.delivered_us,
            delivered: self.delivered,
            delivered_ce: self.delivered_ce,
            is_app_limited: self.app_limited != 0,
        }
    }

    /// An ACK delivered so many packets.
    pub fn acked(&mut self, now_us: u64, packets: u32) {
        self.delivered = self.delivered.wrapping_add(packets);
        self.delivered_us = now_us;
        if self.app_limited != 0 && (self.delivered.wrapping_sub(self.app_limited) as i32) > 0 {
            self.app_limited = 0;
        }
    }

    /// Packets delivered were reported as marked CE.
    pub fn marked(&mut self, packets: u32) {
        self.delivered_ce = self.delivered_ce.wrapping_add(packets);
    }

    /// The sample of an ACK whose most recently sent packet is `newest` (section 4.1.2.3), after
    /// [`Self::acked`].
    pub fn sample(&mut self, newest: &Snapshot, min_rtt_us: u64) -> Rate {
        let send_us = newest.sent_us.saturating_sub(newest.first_sent_us);
        let ack_us = self.delivered_us.saturating_sub(newest.delivered_us);
        let interval_us = send_us.max(ack_us);
        self.first_sent_us = newest.sent_us;
        Rate {
            delivered: self.delivered.wrapping_sub(newest.delivered),
            delivered_ce: self.delivered_ce.wrapping_sub(newest.delivered_ce),
            interval_us: (interval_us >= min_rtt_us).then_some(interval_us),
        }
    }

    /// The application has nothing to send, and so many packets are in flight (section 4.1.2.4).
    pub fn limited_by_application(&mut self, inflight: u32) {
        self.app_limited = self.delivered.wrapping_add(inflight).max(1);
    }

    /// Packets delivered; of those, marked CE; when the first last grew; the end of the
    /// application-limited time.
    pub fn counters(&self) -> (u32, u32, u64, u32) {
        (
            self.delivered,
            self.delivered_ce,
            self.delivered_us,
            self.app_limited,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_ack_clock_gives_its_own_rate() {
        // Packets leave every `gap_us` and are acknowledged n gaps later, just before the packet leaves that
        // is due then. Closed formula: from the sending of a packet to its ACK n packets are delivered, in n
        // gaps.
        for (gap_us, packets_in_flight) in [(1_200, 10), (500, 40), (97, 3)] {
            let rtt_us = gap_us * packets_in_flight;
            let start_us = 1_000_000;
            let mut sampler = Sampler::new(start_us);
            let mut flight = std::collections::VecDeque::new();
            for number in 0..200 {
                let now_us = start_us + number * gap_us;
                if number >= packets_in_flight {
                    let newest = flight.pop_front().expect("in flight");
                    sampler.acked(now_us, 1);
                    let rate = sampler.sample(&newest, rtt_us);
                    if number >= 2 * packets_in_flight {
                        let delivered = packets_in_flight;
                        assert_eq!(u64::from(rate.delivered), delivered);
                        assert_eq!(rate.interval_us, Some(delivered * gap_us));
                    }
                }
                flight.push_back(sampler.sent(now_us, flight.is_empty()));
            }
        }
    }

    #[test]
    fn compressed_acks_give_the_rate_of_sending_or_none() {
        // Ten packets leave a millisecond apart; their ACKs come together. The rate is that of sending.
        let mut sampler = Sampler::new(0);
        let sent: Vec<Snapshot> = (0..11)
            .map(|number| sampler.sent(1_000_000 + number * 1000, number == 0))
            .collect();
        sampler.acked(1_020_000, 1);
        sampler.sample(&sent[0], 1);
        sampler.acked(1_020_001, 10);
        let rate = sampler.sample(&sent[10], 1);
        assert_eq!(
            (rate.delivered, rate.interval_us),
            (11, Some(20_001)) // from the beginning of the flight, by ACKs
        );
        let next = sampler.sent(1_020_001, false);
        sampler.acked(1_020_002, 1);
        assert_eq!(sampler.sample(&next, 20_000).interval_us, None);
    }

    #[test]
    fn packets_sent_without_more_data_are_marked_until_they_are_delivered() {
        let mut sampler = Sampler::new(0);
        sampler.sent(1000, true);
        sampler.limited_by_application(1);
        let second = sampler.sent(2000, false);
        assert!(second.is_app_limited);
        sampler.acked(3000, 1);
        assert!(sampler.sent(3000, false).is_app_limited);
        sampler.acked(4000, 1);
        assert!(!sampler.sent(4000, false).is_app_limited);
    }
}
