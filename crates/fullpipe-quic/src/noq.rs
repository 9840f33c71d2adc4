//! noq-proto.
//!
//! Its pacer obeys a control's pacing rate and else spreads 1.25 windows over an RTT (connection/pacing.rs).
//! Phases and model of BBRv3 come from the text that `Debug` makes of it, as its fields are private.

use std::any::Any;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use fullpipe_transport::{Endpoint, Sample, Setup, Status, Transmit, NONE};
use noq_proto::congestion::{
    Bbr3Config, Controller, ControllerFactory, ControllerMetrics, CubicConfig, NewRenoConfig,
};
use noq_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint,
    EndpointConfig, Event, FourTuple, PathId, RttEstimator, ServerConfig, StreamEvent, StreamId,
    TransportConfig, VarInt,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::RootCertStore;

use fullpipe_quic_common::seeded::{self, with_seed};
use fullpipe_quic_common::stacks::{Ends, Stack};
use fullpipe_quic_common::{
    addresses, debug_us, field, instant, micros, phase, rate_bps, text, timer_ns, windowed_phase,
    Watch, CERTIFICATE, KEY, OVERHEAD_BYTES, SEGMENTS, SERVER_NAME, WINDOW_BYTES, ZEROS,
};

pub(crate) const STACK: Stack = Stack {
    name: "noq",
    version: "noq-proto 1.4.0",
    controls: &["cubic", "newreno", "bbr3"],
    open,
};

fn open(control: &str, setup: &Setup) -> Result<Ends, String> {
    let make = || -> Result<[End; 2], String> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let watches = [Watch::default(), Watch::default()];
        let [client, server] = watches.each_ref().map(|watch| transport(control, watch));
        let certificate = CertificateDer::from(CERTIFICATE);
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(KEY));
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).map_err(text)?;
        let mut client_config =
            ClientConfig::with_root_certificates(Arc::new(roots)).map_err(text)?;
        client_config.transport_config(client);
        let mut server_config =
            ServerConfig::with_single_cert(vec![certificate], key).map_err(text)?;
        server_config.transport_config(server);
        let [watch, other] = watches;
        Ok([
            End::new(setup, 0, watch, None, Some(client_config)),
            End::new(setup, 1, other, Some(Arc::new(server_config)), None),
        ])
    };
    let ends = with_seed(setup.seed, make)?;
    Ok(ends.map(|end| Box::new(end) as Box<dyn Endpoint>))
}

/// All else is as released: MTU discovery up to 1,452 bytes, GSO, ACKs of every second packet, no idle
/// timeout that a pause of the application could reach.
fn transport(control: &str, watch: &Watch) -> Arc<TransportConfig> {
    let inner: Arc<dyn ControllerFactory + Send + Sync> = match control {
        "cubic" => Arc::new(CubicConfig::default()),
        "newreno" => Arc::new(NewRenoConfig::default()),
        _ => Arc::new(Bbr3Config::default()),
    };
    let mut config = TransportConfig::default();
    config
        .congestion_controller_factory(Arc::new(Factory(inner, watch.clone())))
        .stream_receive_window(VarInt::from_u32(WINDOW_BYTES))
        .receive_window(VarInt::from_u32(2 * WINDOW_BYTES))
        .send_window(u64::from(WINDOW_BYTES))
        .max_idle_timeout(None);
    Arc::new(config)
}

struct End {
    endpoint: noq_proto::Endpoint,
    peer: SocketAddr,
    client_config: Option<ClientConfig>,
    connection: Option<(ConnectionHandle, Connection)>,
    watch: Watch,
    sends: bool,
    seed: u64,
    unsent_bytes: u64,
    stream: Option<StreamId>,
    /// What the endpoint itself answered to a datagram.
    answers: Vec<Vec<u8>>,
    scratch: Vec<u8>,
    received_bytes: u64,
    is_established: bool,
    is_finished: bool,
    lost: Option<ConnectionError>,
}

impl End {
    fn new(
        setup: &Setup,
        end: u64,
        watch: Watch,
        server_config: Option<Arc<ServerConfig>>,
        client_config: Option<ClientConfig>,
    ) -> Self {
        let mut config = EndpointConfig::default();
        config.rng_seed(Some(seeded::bytes(setup.seed, end)));
        let endpoint = noq_proto::Endpoint::new(Arc::new(config), server_config, true);
        Self {
            endpoint,
            peer: addresses()[1 - end as usize],
            client_config,
            connection: None,
            watch,
            sends: setup.server_sends == (end == 1),
            seed: setup.seed ^ (end + 1),
            unsent_bytes: setup.unsent_bytes,
            stream: None,
            answers: Vec::new(),
            scratch: Vec::new(),
            received_bytes: 0,
            is_established: false,
            is_finished: false,
            lost: None,
        }
    }

    /// Handles what the connection has to tell.
    fn poll(&mut self) {
        let Some((handle, connection)) = &mut self.connection else {
            return;
        };
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.is_established = true,
                Event::ConnectionLost { reason } => self.lost = Some(reason),
                Event::Stream(StreamEvent::Opened { .. }) => {
                    self.stream = connection.streams().accept(Dir::Uni).or(self.stream);
                }
                Event::Stream(StreamEvent::Finished { .. }) => self.is_finished = true,
                _ => {}
            }
        }
        if !self.sends {
            self.received_bytes += read(connection, self.stream);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(answer);
            }
        }
    }

    /// The stream of the data.
    fn open_stream(&mut self) -> Option<StreamId> {
        let (_, connection) = self.connection.as_mut()?;
        if self.stream.is_none() && self.is_established {
            self.stream = connection.streams().open(Dir::Uni);
        }
        self.stream
    }
}

/// Reads all that is in order.
fn read(connection: &mut Connection, stream: Option<StreamId>) -> u64 {
    let Some(stream) = stream else {
        return 0;
    };
    let mut received = connection.recv_stream(stream);
    let Ok(mut chunks) = received.read(true) else {
        return 0;
    };
    let mut bytes = 0;
    while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
        bytes += chunk.bytes.len() as u64;
    }
    let _ = chunks.finalize(); // what is due is sent with the next call
    bytes
}

impl Endpoint for End {
    fn start(&mut self, now_ns: u64) {
        let Some(config) = self.client_config.take() else {
            return;
        };
        let (endpoint, peer) = (&mut self.endpoint, self.peer);
        let connect = move || endpoint.connect(instant(now_ns), config, peer, SERVER_NAME);
        self.connection = with_seed(self.seed, connect).ok();
    }

    fn receive(&mut self, now_ns: u64, datagram: &[u8], ecn: u8) {
        let now = instant(now_ns);
        let (data, ecn) = (BytesMut::from(datagram), EcnCodepoint::from_bits(ecn));
        self.scratch.clear();
        let answer = &mut self.scratch;
        let path = FourTuple::new(self.peer, None);
        let event = self.endpoint.handle(now, path, ecn, data, answer);
        match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let endpoint = &mut self.endpoint;
                let accept = move || {
                    let made = endpoint.accept(incoming, now, answer, None);
                    made.map_err(|error| error.cause)
                };
                match with_seed(self.seed, accept) {
                    Ok(made) => self.connection = Some(made),
                    Err(cause) => self.lost = Some(cause),
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                self.answers.push(self.scratch[..transmit.size].to_vec());
            }
            None => {}
        }
        self.poll();
    }

    fn on_timer(&mut self, now_ns: u64) {
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(instant(now_ns));
        }
        self.poll();
    }

    fn write(&mut self, _now_ns: u64, bytes: u64) -> u64 {
        let Some(stream) = self.open_stream() else {
            return 0;
        };
        let Some((_, connection)) = &mut self.connection else {
            return 0;
        };
        if self.unsent_bytes != NONE {
            let control = connection.congestion_state(PathId::ZERO);
            let window = 2 * control.map_or(0, Controller::window);
            connection.set_send_window(window + self.unsent_bytes);
        }
        let length = bytes.min(ZEROS.len() as u64) as usize;
        let mut chunks = &mut [Bytes::from_static(&ZEROS[..length])][..];
        let written = connection.send_stream(stream).write_chunks(&mut chunks);
        written.unwrap_or(0) as u64
    }

    fn finish(&mut self, _now_ns: u64) {
        if let (Some(stream), Some((_, connection))) = (self.open_stream(), &mut self.connection) {
            let _ = connection.send_stream(stream).finish(); // fails if it was finished
        }
    }

    fn transmit(&mut self, now_ns: u64, buffer: &mut [u8]) -> Option<Transmit> {
        if let Some(answer) = self.answers.pop() {
            buffer[..answer.len()].copy_from_slice(&answer);
            return Some(Transmit {
                bytes: answer.len(),
                datagram_bytes: answer.len(),
                ecn: 0,
            });
        }
        let (_, connection) = self.connection.as_mut()?;
        self.scratch.clear();
        let segments = NonZeroUsize::new(SEGMENTS)?;
        let sent = connection.poll_transmit(instant(now_ns), segments, &mut self.scratch)?;
        buffer[..sent.size].copy_from_slice(&self.scratch[..sent.size]);
        Some(Transmit {
            bytes: sent.size,
            datagram_bytes: sent.segment_size.unwrap_or(sent.size),
            ecn: sent.ecn.map_or(0, |ecn| ecn as u8),
        })
    }

    fn status(&mut self) -> Status {
        self.poll();
        let timer = self
            .connection
            .as_mut()
            .and_then(|(_, connection)| connection.poll_timeout());
        Status {
            timer_ns: timer_ns(timer),
            received_bytes: self.received_bytes,
            is_established: self.is_established,
            is_finished: self.is_finished,
            is_closed: self.lost.is_some(),
        }
    }

    fn sample(&mut self) -> Sample {
        let Some((_, connection)) = &mut self.connection else {
            return Sample::default();
        };
        let stats = connection.path_stats(PathId::ZERO);
        let control = connection.congestion_state(PathId::ZERO);
        let (Some(stats), Some(control)) = (stats, control) else {
            return Sample::default();
        };
        let metrics = control.metrics();
        let (cwnd, ssthresh) = (metrics.congestion_window, metrics.ssthresh);
        let spread_bps = rate_bps(cwnd as f64 * 1.25, stats.rtt);
        let mut sample = Sample {
            cwnd_bytes: cwnd,
            ssthresh_bytes: ssthresh.unwrap_or(NONE),
            inflight_bytes: self.watch.inflight_bytes(),
            datagram_bytes: u64::from(stats.current_mtu),
            payload_bytes: u64::from(stats.current_mtu).saturating_sub(OVERHEAD_BYTES),
            srtt_us: micros(stats.rtt),
            min_rtt_us: self.watch.min_rtt_us(),
            pacing_rate_bps: metrics.pacing_rate.map_or(spread_bps, |rate| rate * 8),
            bw_bps: metrics.bandwidth_estimate.unwrap_or(NONE),
            packets_lost: stats.lost_packets,
            congestion_events: stats.congestion_events,
            receive_window_bytes: u64::from(WINDOW_BYTES),
            phase: ssthresh.map_or(NONE, |ssthresh| windowed_phase(cwnd, ssthresh)),
            ..Sample::default()
        };
        let text = format!("{control:?}");
        if text.contains("Bbr3 {") {
            add_bbr(&mut sample, &text);
        }
        sample
    }

    fn failure(&self) -> Option<String> {
        self.lost.as_ref().map(ToString::to_string)
    }
}

/// Adds what BBRv3 shows of itself.
fn add_bbr(sample: &mut Sample, text: &str) {
    let number = |name| field(text, name).and_then(|value| value.parse().ok());
    sample.phase = phase(match field(text, "state") {
        Some("Startup") => "startup",
        Some("Drain") => "drain",
        Some("ProbeRtt") => "probe_rtt",
        Some("ProbeBw(Down)") => "down",
        Some("ProbeBw(Refill)") => "refill",
        Some("ProbeBw(Up)") => "up",
        _ => "cruise",
    });
    sample.pacing_gain = number("pacing_gain").unwrap_or(f64::NAN);
    sample.cwnd_gain = number("cwnd_gain").unwrap_or(f64::NAN);
    // What is unset is the largest number, or infinite.
    let count = |name| field(text, name).and_then(|value| value.parse().ok());
    let bw_shortterm = number("bw_shortterm").filter(|bytes: &f64| *bytes < 1e15);
    sample.bw_shortterm_bps = bw_shortterm.map_or(NONE, |bytes| (bytes * 8.0) as u64);
    sample.min_rtt_us = field(text, "min_rtt").map_or(NONE, debug_us);
    sample.inflight_longterm_bytes = count("inflight_longterm").unwrap_or(NONE);
    sample.inflight_shortterm_bytes = count("inflight_shortterm").unwrap_or(NONE);
    sample.extra_acked_bytes = count("extra_acked").unwrap_or(NONE);
    sample.round_count = count("round_count").unwrap_or(NONE);
}

/// Makes congestion controls that are watched.
struct Factory(Arc<dyn ControllerFactory + Send + Sync>, Watch);

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Watched {
            inner: Arc::clone(&self.0).build(now, mtu),
            watch: self.1.clone(),
        })
    }
}

/// A congestion control, unchanged, and a record of what the stack passes to it.
#[derive(Debug)]
struct Watched {
    inner: Box<dyn Controller>,
    watch: Watch,
}

impl Controller for Watched {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest_pn: u64) {
        self.inner.on_sent(now, bytes, largest_pn);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.watch.sent(bytes.into());
        self.inner.on_packet_sent(now, bytes, pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.inner.on_cwnd_limited();
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.watch.min_rtt(rtt.min());
        self.inner.on_ack(now, sent, bytes, pn, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.watch.acked(in_flight);
        self.inner
            .on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        self.inner.on_congestion_event(
            now,
            sent,
            is_persistent_congestion,
            is_ecn,
            lost_bytes,
            largest_lost_pn,
        );
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        self.watch.lost(lost_bytes.into());
        self.inner.on_packet_lost(lost_bytes, pn, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.inner.on_spurious_congestion_event();
    }

    fn on_ack_frequency_update(&mut self, ack_eliciting_threshold: u64, max_ack_delay: Duration) {
        self.inner
            .on_ack_frequency_update(ack_eliciting_threshold, max_ack_delay);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            inner: self.inner.clone_box(),
            watch: self.watch.clone(),
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
