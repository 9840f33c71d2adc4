//! An end of a connection of quinn-proto, or of noq-proto, which is its fork. The file is a module of each
//! (`quinn.rs`, `noq.rs`), which has the library as `proto` and what differs: `new_endpoint`, `handle`,
//! `window_bytes`, `write_chunk`, `poll_transmit`, `sample` and what its trait `Controller` tells of packets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use fullpipe_transport::{Endpoint, Sample, Setup, Status, Transmit, NONE};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::RootCertStore;

use fullpipe_quic_common::seeded::{self, with_seed};
use fullpipe_quic_common::stacks::Ends;
use fullpipe_quic_common::{
    addresses, instant, micros, rate_bps, text, timer_ns, windowed_phase, Watch, CERTIFICATE, KEY,
    OVERHEAD_BYTES, SERVER_NAME, WINDOW_BYTES, ZEROS,
};

use super::proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use super::proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint,
    EndpointConfig, Event, PathStats, ServerConfig, StreamEvent, StreamId, TransportConfig, VarInt,
};
use super::{controls, handle, new_endpoint, poll_transmit, sample, window_bytes, write_chunk};

/// The control as the stack makes it.
pub(super) type Control = Arc<dyn ControllerFactory + Send + Sync>;

pub(super) fn open(control: &str, setup: &Setup) -> Result<Ends, String> {
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
    let mut config = TransportConfig::default();
    config
        .congestion_controller_factory(Arc::new(Factory(controls(control), watch.clone())))
        .stream_receive_window(VarInt::from_u32(WINDOW_BYTES))
        .receive_window(VarInt::from_u32(2 * WINDOW_BYTES))
        .send_window(u64::from(WINDOW_BYTES))
        .max_idle_timeout(None);
    Arc::new(config)
}

struct End {
    endpoint: super::proto::Endpoint,
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
        Self {
            endpoint: new_endpoint(Arc::new(config), server_config),
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
        let event = handle(&mut self.endpoint, now, self.peer, ecn, data, answer);
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
            connection.set_send_window(2 * window_bytes(connection) + self.unsent_bytes);
        }
        let length = bytes.min(ZEROS.len() as u64) as usize;
        let chunk = Bytes::from_static(&ZEROS[..length]);
        write_chunk(connection.send_stream(stream), chunk) as u64
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
        let sent = poll_transmit(connection, instant(now_ns), &mut self.scratch)?;
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
        let connection = self.connection.as_mut();
        let sampled = connection.and_then(|(_, connection)| sample(connection, &self.watch));
        sampled.unwrap_or_default()
    }

    fn failure(&self) -> Option<String> {
        self.lost.as_ref().map(ToString::to_string)
    }
}

/// What both tell of a connection. Without a pacing rate of the control's own, the pacer spreads 1.25 windows
/// over an RTT (connection/pacing.rs).
pub(super) fn common_sample(
    metrics: &ControllerMetrics,
    stats: &PathStats,
    rtt: Duration,
    watch: &Watch,
) -> Sample {
    let (cwnd, ssthresh) = (metrics.congestion_window, metrics.ssthresh);
    Sample {
        cwnd_bytes: cwnd,
        ssthresh_bytes: ssthresh.unwrap_or(NONE),
        inflight_bytes: watch.inflight_bytes(),
        datagram_bytes: u64::from(stats.current_mtu),
        payload_bytes: u64::from(stats.current_mtu).saturating_sub(OVERHEAD_BYTES),
        srtt_us: micros(rtt),
        min_rtt_us: watch.min_rtt_us(),
        pacing_rate_bps: rate_bps(cwnd as f64 * 1.25, rtt),
        packets_lost: stats.lost_packets,
        congestion_events: stats.congestion_events,
        receive_window_bytes: u64::from(WINDOW_BYTES),
        phase: ssthresh.map_or(NONE, |ssthresh| windowed_phase(cwnd, ssthresh)),
        ..Sample::default()
    }
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
pub(super) struct Watched {
    pub(super) inner: Box<dyn Controller>,
    pub(super) watch: Watch,
}

/// The calls of `Controller` that are the same in both.
macro_rules! calls_alike {
    () => {
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

        fn on_mtu_update(&mut self, new_mtu: u16) {
            self.inner.on_mtu_update(new_mtu);
        }

        fn window(&self) -> u64 {
            self.inner.window()
        }

        fn metrics(&self) -> proto::congestion::ControllerMetrics {
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

        fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
            self
        }
    };
}
pub(super) use calls_alike;
