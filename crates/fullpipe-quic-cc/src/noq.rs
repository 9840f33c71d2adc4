//! noq (noq-proto 1). What it tells and what it reads is in the crate's documentation; line by line:
//! connection/mod.rs and packet_builder.rs of noq-proto 1.4.0 call `on_packet_sent` for each packet that
//! is in flight and asks for an ACK, `on_end_acks` before the RTT is updated and before losses are looked
//! for, and read rate and quantum from `metrics()` at each call that sends.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Instant;

use noq_proto::congestion::{self, ControllerFactory, ControllerMetrics};
use noq_proto::RttEstimator;

use crate::clock::{Clock, START_NS};
use crate::host::{Congestion, Host, Start};
use crate::packets::Packets;
use crate::Settings;

/// `MAX_TRANSMIT_DATAGRAMS` of noq's connection.rs.
const BURST_DATAGRAMS: u32 = 10;

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
            packets: Packets::default(),
            clock: Clock::new(now),
        })
    }
}

/// The controller of one connection.
#[derive(Clone, Debug)]
pub struct Controller {
    host: Host,
    packets: Packets,
    clock: Clock,
    initial_window_bytes: u64,
}

impl Controller {
    /// What a connection runs, as `congestion_state()` of noq or noq-proto returns it; `None`: it is
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
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        let sent = self.host.sent(self.clock.ns(now), bytes.into());
        self.packets.sent(pn, sent, bytes.into());
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        let sent_ns = self.clock.ns(sent);
        let known = self.packets.acked(pn, sent_ns);
        self.host.acked(self.clock.ns(now), sent_ns, known, bytes);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.packets.limit(in_flight);
        self.host
            .acks_end(self.clock.ns(now), Some(in_flight), app_limited);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        let congestion = match (is_persistent_congestion, is_ecn) {
            (true, _) => Congestion::Persistent,
            (false, true) => Congestion::Marks,
            (false, false) => Congestion::Loss,
        };
        if is_ecn {
            self.host.marked(1);
        }
        let sent_ns = self.clock.ns(sent);
        self.host.congested(self.clock.ns(now), sent_ns, congestion);
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        let known = self.packets.lost(pn);
        self.host.lost(self.clock.ns(now), known, lost_bytes.into());
    }

    fn on_spurious_congestion_event(&mut self) {
        self.host.spurious();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.host.datagram_size(u32::from(new_mtu));
    }

    fn window(&self) -> u64 {
        self.host.window_bytes()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.host.window_bytes();
        metrics.ssthresh = self.host.ssthresh_bytes();
        metrics.pacing_rate = self.host.pacing_rate_bytes_per_s();
        metrics.send_quantum = self.host.burst_bytes();
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
