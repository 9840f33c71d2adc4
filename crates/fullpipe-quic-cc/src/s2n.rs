//! s2n-quic (s2n-quic-core 0.91, feature `unstable-congestion-controller`). What it tells and what it reads
//! is in the crate's documentation. It gives back what was kept of a packet, and it leaves pacing to the
//! controller: it sends from the earliest departure time on.

use std::fmt;
use std::time::Duration;

use s2n_quic_core::random;
use s2n_quic_core::recovery::congestion_controller::{self, PathInfo, Publisher};
use s2n_quic_core::recovery::RttEstimator;
use s2n_quic_core::time::Timestamp;

use crate::host::{Congestion, Host, Sent, Start};
use crate::Settings;

/// `MAX_BURST_PACKETS` of s2n-quic-core's recovery/mod.rs.
const BURST_DATAGRAMS: u32 = 10;
/// What the host's clock shows at the beginning; to an algorithm, zero would mean "never".
const START_NS: u64 = 1_000_000_000;

/// Makes the controllers of an endpoint: for `with_congestion_controller`.
pub struct Endpoint {
    settings: Settings,
    connections: u64,
}

impl Endpoint {
    /// All connections run the same algorithm.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            connections: 0,
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

impl congestion_controller::Endpoint for Endpoint {
    type CongestionController = Controller;

    fn new_congestion_controller(&mut self, path_info: PathInfo) -> Controller {
        let start = Start {
            now_ns: START_NS,
            datagram_bytes: path_info.max_datagram_size.into(),
            burst_datagrams: BURST_DATAGRAMS,
        };
        let number = self.connections;
        self.connections += 1;
        Controller {
            host: self.settings.host(number, &start),
            begin: None,
            is_app_limited: false,
            newest_acked_ns: START_NS,
            next_ns: START_NS,
            burst_ns: 0,
        }
    }
}

/// The controller of one path.
#[derive(Clone, Debug)]
pub struct Controller {
    host: Host,
    /// When the first packet was sent: times count from there.
    begin: Option<Timestamp>,
    /// After the last packet there was nothing to send.
    is_app_limited: bool,
    newest_acked_ns: u64,
    /// What was sent will have left at the pacing rate by then.
    next_ns: u64,
    /// How long a burst takes at that rate.
    burst_ns: u64,
}

impl Controller {
    /// Its state.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// `Timestamp::saturating_duration_since` makes 1 us of 0.
    fn ns(&self, time: Timestamp) -> u64 {
        let begin = self.begin.filter(|&begin| time > begin);
        START_NS + begin.map_or(0, |begin| (time - begin).as_nanos() as u64)
    }

    /// A token bucket of one burst, at the algorithm's rate, or at 1.25 windows an RTT (RFC 9002 section
    /// 7.7).
    fn pace(&mut self, now_ns: u64, bytes: u64) {
        let Some(rate) = self.host.paced_rate_bytes_per_s() else {
            return;
        };
        let takes_ns = |bytes: u64| {
            (u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1))).min(1 << 62) as u64
        };
        let window_burst = u64::from(BURST_DATAGRAMS) * self.host.datagram_bytes();
        self.burst_ns = takes_ns(self.host.burst_bytes().unwrap_or(window_burst));
        self.next_ns = self.next_ns.max(now_ns) + takes_ns(bytes);
    }
}

impl congestion_controller::CongestionController for Controller {
    type PacketInfo = Option<Sent>;

    fn congestion_window(&self) -> u32 {
        self.host.window_bytes().min(u32::MAX.into()) as u32
    }

    fn bytes_in_flight(&self) -> u32 {
        self.host.inflight_bytes().min(u32::MAX.into()) as u32
    }

    fn is_congestion_limited(&self) -> bool {
        self.host.inflight_bytes() + self.host.datagram_bytes() > self.host.window_bytes()
    }

    /// RFC 9002 section 7.3.2 allows one packet more; the algorithms do not ask for it.
    fn requires_fast_retransmission(&self) -> bool {
        false
    }

    fn on_packet_sent<Pub: Publisher>(
        &mut self,
        time_sent: Timestamp,
        sent_bytes: usize,
        app_limited: Option<bool>,
        _rtt_estimator: &RttEstimator,
        _publisher: &mut Pub,
    ) -> Option<Sent> {
        if sent_bytes == 0 {
            return None; // a bare ACK
        }
        self.begin.get_or_insert(time_sent);
        let (now_ns, bytes) = (self.ns(time_sent), sent_bytes as u64);
        let sent = self.host.sent(now_ns, bytes);
        self.is_app_limited = app_limited.unwrap_or(self.is_app_limited);
        if self.is_app_limited {
            self.host.limited_by_application();
        }
        self.pace(now_ns, bytes);
        Some(sent)
    }

    fn on_rtt_update<Pub: Publisher>(
        &mut self,
        time_sent: Timestamp,
        _now: Timestamp,
        _rtt_estimator: &RttEstimator,
        _publisher: &mut Pub,
    ) {
        self.newest_acked_ns = self.ns(time_sent);
    }

    fn on_ack<Pub: Publisher>(
        &mut self,
        newest_acked_time_sent: Timestamp,
        bytes_acknowledged: usize,
        newest_acked_packet_info: Option<Sent>,
        _rtt_estimator: &RttEstimator,
        _random_generator: &mut dyn random::Generator,
        ack_receive_time: Timestamp,
        _publisher: &mut Pub,
    ) {
        let (now_ns, sent_ns) = (self.ns(ack_receive_time), self.ns(newest_acked_time_sent));
        let bytes = bytes_acknowledged as u64;
        self.host
            .acked(now_ns, sent_ns, newest_acked_packet_info, bytes);
        self.host.acks_end(now_ns, None, self.is_app_limited);
    }

    fn on_packet_lost<Pub: Publisher>(
        &mut self,
        lost_bytes: u32,
        packet_info: Option<Sent>,
        persistent_congestion: bool,
        _new_loss_burst: bool,
        _random_generator: &mut dyn random::Generator,
        timestamp: Timestamp,
        _publisher: &mut Pub,
    ) {
        let now_ns = self.ns(timestamp);
        let congestion = match persistent_congestion {
            true => Congestion::Persistent,
            false => Congestion::Loss,
        };
        self.host.lost(now_ns, packet_info, lost_bytes.into());
        if let Some(sent) = packet_info {
            self.host.congested(now_ns, sent.at_ns, congestion);
        }
    }

    fn on_explicit_congestion<Pub: Publisher>(
        &mut self,
        ce_count: u64,
        event_time: Timestamp,
        _publisher: &mut Pub,
    ) {
        self.host.marked(ce_count.min(u32::MAX.into()) as u32);
        let now_ns = self.ns(event_time);
        self.host
            .congested(now_ns, self.newest_acked_ns, Congestion::Marks);
    }

    fn on_mtu_update<Pub: Publisher>(&mut self, max_data_size: u16, _publisher: &mut Pub) {
        self.host.datagram_size(max_data_size.into());
    }

    fn on_packet_discarded<Pub: Publisher>(&mut self, bytes_sent: usize, _publisher: &mut Pub) {
        self.host.forgotten(bytes_sent as u64);
    }

    fn earliest_departure_time(&self) -> Option<Timestamp> {
        let wait_ns = self.next_ns.saturating_sub(START_NS + self.burst_ns);
        self.begin
            .map(|begin| begin + Duration::from_nanos(wait_ns))
    }

    fn send_quantum(&self) -> Option<usize> {
        self.host.burst_bytes().map(|bytes| bytes as usize)
    }
}

#[cfg(test)]
mod tests {
    use num_rational::Ratio;
    use s2n_quic_core::event::builder::{BbrState, SlowStartExitCause};
    use s2n_quic_core::recovery::bandwidth::{Bandwidth, RateSample};
    use s2n_quic_core::recovery::congestion_controller::{CongestionController, Endpoint as _};
    use s2n_quic_core::{inet::SocketAddress, path::Config};

    use super::*;

    struct Silent;

    impl Publisher for Silent {
        fn on_slow_start_exited(&mut self, _: SlowStartExitCause, _: u32) {}
        fn on_delivery_rate_sampled(&mut self, _: RateSample) {}
        fn on_pacing_rate_updated(&mut self, _: Bandwidth, _: u32, _: Ratio<u64>) {}
        fn on_bbr_state_changed(&mut self, _: BbrState) {}
    }

    struct Zeros;

    impl random::Generator for Zeros {
        fn public_random_fill(&mut self, destination: &mut [u8]) {
            destination.fill(0);
        }

        fn private_random_fill(&mut self, destination: &mut [u8]) {
            destination.fill(0);
        }
    }

    fn at(us: u64) -> Timestamp {
        // SAFETY: the test is the source of its times.
        unsafe { Timestamp::from_duration(Duration::from_micros(us)) }
    }

    fn send(controller: &mut Controller, us: u64) -> Option<Sent> {
        let rtt = RttEstimator::default();
        controller.on_packet_sent(at(us), 1200, Some(false), &rtt, &mut Silent)
    }

    #[test]
    fn packets_leave_at_a_window_and_a_quarter_in_an_rtt_after_a_burst() {
        // RFC 9002 section 7.7. Ten packets, acknowledged after 10 ms, make 20 in slow start: 2.5 packets
        // a millisecond.
        let settings = Settings::new("reno").expect("built in");
        let config = Config::default();
        let to = SocketAddress::default();
        let path = PathInfo::new(&config, &to);
        let mut reno = Endpoint::new(settings).new_congestion_controller(path);
        assert_eq!(reno.earliest_departure_time(), None);
        assert_eq!(reno.congestion_window(), 12_000);
        let begin_us = 5_000_000;
        let sent: Vec<Option<Sent>> = (0..10).map(|_| send(&mut reno, begin_us)).collect();
        assert_eq!(reno.bytes_in_flight(), 12_000);
        assert!(reno.is_congestion_limited());
        let rtt = RttEstimator::default();
        let now_us = begin_us + 10_000;
        reno.on_ack(
            at(begin_us),
            12_000,
            sent[9],
            &rtt,
            &mut Zeros,
            at(now_us),
            &mut Silent,
        );
        assert_eq!(
            (reno.congestion_window(), reno.bytes_in_flight()),
            (24_000, 0)
        );
        let departures: Vec<u64> = (0..20)
            .map(|_| {
                send(&mut reno, now_us);
                let departure = reno.earliest_departure_time().expect("paced");
                (departure.max(at(now_us)) - at(now_us)).as_micros() as u64
            })
            .collect();
        // A packet takes 400 us; ten may leave at once.
        let expected: Vec<u64> = (1..=20u64).map(|n| n.saturating_sub(10) * 400).collect();
        assert_eq!(departures, expected);
    }

    #[test]
    fn marks_and_losses_reduce_the_window_once_a_round_trip() {
        // RFC 9002 sections 7.1 and 7.3.2.
        let settings = Settings::new("reno").expect("built in");
        let config = Config::default();
        let to = SocketAddress::default();
        let path = PathInfo::new(&config, &to);
        let mut reno = Endpoint::new(settings).new_congestion_controller(path);
        let sent: Vec<Option<Sent>> = (0..10).map(|n| send(&mut reno, 1000 + n)).collect();
        let rtt = RttEstimator::default();
        for sent in &sent[..2] {
            let now = at(20_000);
            reno.on_packet_lost(1200, *sent, false, true, &mut Zeros, now, &mut Silent);
        }
        assert_eq!(
            (reno.congestion_window(), reno.bytes_in_flight()),
            (6000, 9600)
        );
        reno.on_rtt_update(at(1009), at(20_001), &rtt, &mut Silent);
        reno.on_explicit_congestion(1, at(20_001), &mut Silent);
        assert_eq!(reno.congestion_window(), 6000);
        reno.on_packet_discarded(1200, &mut Silent);
        assert_eq!(reno.bytes_in_flight(), 8400);
    }
}
