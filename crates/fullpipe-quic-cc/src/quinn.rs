//! quinn (quinn-proto 0.11). What it tells and what it reads is in the crate's documentation; line by line:
//! connection/mod.rs of quinn-proto 0.11.19 calls `on_sent` once a burst, `on_ack` for each packet,
//! `on_end_acks` before the RTT is updated and before losses are looked for, and sends while the flight and
//! the next datagram together are below `window()`.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::congestion::{self, ControllerFactory, ControllerMetrics};
use quinn_proto::RttEstimator;

use crate::clock::{Clock, START_NS};
use crate::flight::Flight;
use crate::host::{Congestion, Host, Start};
use crate::Settings;

/// `MAX_TRANSMIT_SEGMENTS` of quinn's connection.rs.
const BURST_DATAGRAMS: u32 = 10;
/// A burst of at most this is taken for a bare ACK, which quinn reports as sent but does not count as in
/// flight: header 11, ACK frame of few ranges with ECN counts up to 70, tag 16 bytes.
const BARE_ACK_BYTES: u64 = 100;

/// Makes the controllers of an endpoint: for `TransportConfig::congestion_controller_factory`.
pub struct Factory {
    settings: Settings,
    connections: AtomicU64,
}

impl Factory {
    /// All connections run the same algorithm.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            connections: AtomicU64::new(0),
        }
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        let start = Start {
            now_ns: START_NS,
            datagram_bytes: u32::from(current_mtu),
            burst_datagrams: BURST_DATAGRAMS,
        };
        let number = self.connections.fetch_add(1, Relaxed);
        let host = self.settings.host(number, &start);
        Box::new(Controller {
            initial_window_bytes: host.window_bytes(),
            host,
            flight: Flight::default(),
            clock: Clock::new(now),
        })
    }
}

/// The controller of one connection.
#[derive(Clone)]
pub struct Controller {
    host: Host,
    flight: Flight,
    clock: Clock,
    initial_window_bytes: u64,
}

impl Controller {
    /// What a connection runs, as `congestion_state()` of quinn or quinn-proto returns it; `None`: it is
    /// not one of ours.
    pub fn of(state: &dyn congestion::Controller) -> Option<Self> {
        let copy = state.clone_box().into_any().downcast::<Self>();
        copy.ok().map(|copy| *copy)
    }

    /// Its state.
    pub fn host(&self) -> &Host {
        &self.host
    }
}

impl congestion::Controller for Controller {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        if bytes > BARE_ACK_BYTES {
            let sent = self.host.sent(self.clock.ns(now), bytes);
            self.flight.sent(sent, bytes);
        }
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        let sent_ns = self.clock.ns(sent);
        let known = self.flight.acked(sent_ns, bytes);
        self.host.acked(self.clock.ns(now), sent_ns, known, bytes);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.flight.limit(in_flight);
        self.host
            .acks_end(self.clock.ns(now), Some(in_flight), app_limited);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let (now_ns, sent_ns) = (self.clock.ns(now), self.clock.ns(sent));
        let congestion = match (is_persistent_congestion, lost_bytes) {
            (true, _) => Congestion::Persistent,
            (false, 0) => Congestion::Marks,
            (false, _) => Congestion::Loss,
        };
        if lost_bytes > 0 {
            let newest = self.flight.lost(sent_ns, lost_bytes);
            self.host.lost(now_ns, newest, lost_bytes);
        }
        if congestion == Congestion::Marks {
            self.host.marked(1);
        }
        self.host.congested(now_ns, sent_ns, congestion);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.host.datagram_size(u32::from(new_mtu));
    }

    /// One byte more than the window, as quinn sends below it only.
    fn window(&self) -> u64 {
        self.host.window_of_rate_bytes() + 1
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.host.window_bytes();
        metrics.ssthresh = self.host.ssthresh_bytes();
        metrics.pacing_rate = self.host.pacing_rate_bytes_per_s().map(|rate| 8 * rate);
        metrics
    }

    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.initial_window_bytes
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
