//! s2n-quic.
//!
//! It has no sans-I/O crate: an I/O provider of our own takes its endpoint, and the simulator drives that as
//! s2n's own event loop would. What it tells of congestion comes from its events, of BBR's model from
//! s2n_model.rs. Pacing is its own: a datagram may carry a delay, which its I/O providers ignore, as this one
//! does.

use core::task::{Context, Poll};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use fullpipe_transport::{Endpoint, Sample, Setup, Status, Transmit, NONE};
use s2n_quic::client::{Client, Connect, ConnectionAttempt};
use s2n_quic::connection::Connection;
use s2n_quic::provider::event::{events, ConnectionInfo, ConnectionMeta, Subscriber};
use s2n_quic::provider::tls::rustls;
use s2n_quic::provider::{congestion_controller as cc, io, limits::Limits, random};
use s2n_quic::server::Server;
use s2n_quic::stream::{ReceiveStream, SendStream};
use s2n_quic_core::endpoint::Endpoint as Machine;
use s2n_quic_core::inet::{datagram, ExplicitCongestionNotification as Ecn, SocketAddress};
use s2n_quic_core::io::{rx, tx};
use s2n_quic_core::path::{mtu, LocalAddress, RemoteAddress, Tuple};
use s2n_quic_core::time::{Clock, Timestamp};

use crate::s2n_model::{add_model, Text, Watching};
use fullpipe_quic_common::stacks::{Ends, Stack};
use fullpipe_quic_common::{
    addresses, micros, pem, phase, text, OVERHEAD_BYTES, SERVER_NAME, WINDOW_BYTES, ZEROS,
};

pub(crate) const STACK: Stack = Stack {
    name: "s2n",
    version: "s2n-quic 1.91.0",
    controls: &["cubic", "bbr"],
    open,
};

/// Ethernet's MTU without the headers of IPv4 and UDP.
const PAYLOAD_BYTES: u64 = 1472;
/// Timestamps count from 1 s, since 0 is none.
const BEGIN_NS: u64 = 1_000_000_000;
/// How often application and endpoint may wake each other at one time.
const ROUNDS: usize = 8;
/// Unsent data of a stream.
const SEND_BUFFER_BYTES: u32 = 1 << 24;

fn open(control: &str, setup: &Setup) -> Result<Ends, String> {
    let near = End::new(control, setup, 0)?;
    let far = End::new(control, setup, 1)?;
    Ok([Box::new(near), Box::new(far)])
}

#[derive(Clone, Copy)]
struct At(u64);

impl Clock for At {
    fn get_time(&self) -> Timestamp {
        // SAFETY: it is not zero.
        unsafe { Timestamp::from_duration(Duration::from_nanos(self.0 + BEGIN_NS)) }
    }
}

fn time_ns(at: Timestamp) -> u64 {
    // SAFETY: it came from a duration.
    let since = unsafe { at.as_duration() };
    (since.as_nanos() as u64).saturating_sub(BEGIN_NS)
}

struct Arrived(Option<(Tuple, Ecn, Vec<u8>)>);

impl rx::Queue for Arrived {
    type Handle = Tuple;

    fn for_each<F: FnMut(datagram::Header<Tuple>, &mut [u8])>(&mut self, mut on_packet: F) {
        if let Some((path, ecn, mut payload)) = self.0.take() {
            on_packet(datagram::Header { path, ecn }, &mut payload);
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// Datagrams and their ECN bits.
#[derive(Default)]
struct Outbox(VecDeque<(Vec<u8>, u8)>);

impl tx::Queue for Outbox {
    type Handle = Tuple;
    const SUPPORTS_ECN: bool = true;

    fn push<M: tx::Message<Handle = Tuple>>(
        &mut self,
        mut message: M,
    ) -> Result<tx::Outcome, tx::Error> {
        let mut payload = vec![0; 1 << 16];
        let len = message.write_payload(tx::PayloadBuffer::new(&mut payload), 0)?;
        payload.truncate(len);
        self.0.push_back((payload, message.ecn() as u8));
        Ok(tx::Outcome { len, index: 0 })
    }

    fn capacity(&self) -> usize {
        1024_usize.saturating_sub(self.0.len())
    }
}

/// An endpoint of any type.
trait Steps: Send {
    fn receive(&mut self, datagram: (Tuple, Ecn, Vec<u8>), now_ns: u64);
    fn transmit(&mut self, outbox: &mut Outbox, now_ns: u64);
    fn timeout_ns(&self) -> Option<u64>;
    /// Whether the application had woken it.
    fn wakes(&mut self, context: &mut Context, now_ns: u64) -> bool;
}

impl<E: Machine<PathHandle = Tuple>> Steps for E {
    fn receive(&mut self, datagram: (Tuple, Ecn, Vec<u8>), now_ns: u64) {
        Machine::receive(self, &mut Arrived(Some(datagram)), &At(now_ns));
    }

    fn transmit(&mut self, outbox: &mut Outbox, now_ns: u64) {
        Machine::transmit(self, outbox, &At(now_ns));
    }

    fn timeout_ns(&self) -> Option<u64> {
        self.timeout().map(time_ns)
    }

    fn wakes(&mut self, context: &mut Context, now_ns: u64) -> bool {
        matches!(self.poll_wakeups(context, &At(now_ns)), Poll::Ready(Ok(count)) if count > 0)
    }
}

type Slot = Arc<Mutex<Option<Box<dyn Steps>>>>;

/// Takes the endpoint out of the builder.
struct Io {
    slot: Slot,
    own: SocketAddress,
    mtu_bytes: u16,
}

impl io::Provider for Io {
    type PathHandle = Tuple;
    type Error = String;

    fn start<E: Machine<PathHandle = Tuple>>(
        self,
        mut machine: E,
    ) -> Result<SocketAddress, String> {
        let config = mtu::Config::builder()
            .with_max_mtu(self.mtu_bytes)
            .map_err(text)?;
        machine.set_mtu_config(config.build().map_err(text)?);
        let mut slot = self.slot.lock().map_err(text)?;
        *slot = Some(Box::new(machine));
        Ok(self.own)
    }
}

/// Knuth's MMIX generator, whose numbers make connection ids and the jitter of timers.
struct Random(u64);

impl s2n_quic_core::random::Generator for Random {
    fn public_random_fill(&mut self, destination: &mut [u8]) {
        for byte in destination {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
            self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
            *byte = (self.0 >> 56) as u8;
        }
    }

    fn private_random_fill(&mut self, destination: &mut [u8]) {
        self.public_random_fill(destination);
    }
}

impl random::Provider for Random {
    type Generator = Self;
    type Error = core::convert::Infallible;

    fn start(self) -> Result<Self, Self::Error> {
        Ok(self)
    }
}

/// What the events told last.
struct Told {
    cwnd_bytes: AtomicU64,
    inflight_bytes: AtomicU64,
    srtt_us: AtomicU64,
    min_rtt_us: AtomicU64,
    pacing_rate_bps: AtomicU64,
    pacing_gain_milli: AtomicU64,
    datagram_bytes: AtomicU64,
    packets_lost: AtomicU64,
    congestion_events: AtomicU64,
    phase: AtomicU64,
}

impl Told {
    fn new(phase_name: &str) -> Self {
        let none = || AtomicU64::new(NONE);
        Self {
            cwnd_bytes: none(),
            inflight_bytes: none(),
            srtt_us: none(),
            min_rtt_us: none(),
            pacing_rate_bps: none(),
            pacing_gain_milli: none(),
            datagram_bytes: none(),
            packets_lost: AtomicU64::new(0),
            congestion_events: AtomicU64::new(0),
            phase: AtomicU64::new(phase(phase_name)),
        }
    }
}

struct Ears(Arc<Told>);

impl Subscriber for Ears {
    type ConnectionContext = ();

    fn create_connection_context(&mut self, _: &ConnectionMeta, _: &ConnectionInfo) {}

    fn on_recovery_metrics(
        &mut self,
        (): &mut (),
        _: &ConnectionMeta,
        event: &events::RecoveryMetrics,
    ) {
        self.0
            .cwnd_bytes
            .store(event.congestion_window.into(), Relaxed);
        self.0
            .inflight_bytes
            .store(event.bytes_in_flight.into(), Relaxed);
        self.0.srtt_us.store(micros(event.smoothed_rtt), Relaxed);
        self.0.min_rtt_us.store(micros(event.min_rtt), Relaxed);
    }

    fn on_packet_lost(&mut self, (): &mut (), _: &ConnectionMeta, event: &events::PacketLost) {
        if !event.is_mtu_probe {
            self.0.packets_lost.fetch_add(1, Relaxed);
        }
    }

    fn on_congestion(&mut self, (): &mut (), _: &ConnectionMeta, _: &events::Congestion) {
        self.0.congestion_events.fetch_add(1, Relaxed);
    }

    fn on_mtu_updated(&mut self, (): &mut (), _: &ConnectionMeta, event: &events::MtuUpdated) {
        self.0.datagram_bytes.store(event.mtu.into(), Relaxed);
    }

    fn on_slow_start_exited(
        &mut self,
        (): &mut (),
        _: &ConnectionMeta,
        _: &events::SlowStartExited,
    ) {
        if self.0.phase.load(Relaxed) == phase("slow_start") {
            self.0.phase.store(phase("avoidance"), Relaxed);
        }
    }

    fn on_pacing_rate_updated(
        &mut self,
        (): &mut (),
        _: &ConnectionMeta,
        event: &events::PacingRateUpdated,
    ) {
        self.0
            .pacing_rate_bps
            .store(event.bytes_per_second * 8, Relaxed);
        self.0
            .pacing_gain_milli
            .store((event.pacing_gain * 1e3) as u64, Relaxed);
    }

    fn on_bbr_state_changed(
        &mut self,
        (): &mut (),
        _: &ConnectionMeta,
        event: &events::BbrStateChanged,
    ) {
        use events::BbrState as State;
        let name = match event.state {
            State::Startup { .. } => "startup",
            State::Drain { .. } => "drain",
            State::ProbeBwDown { .. } => "down",
            State::ProbeBwCruise { .. } => "cruise",
            State::ProbeBwRefill { .. } => "refill",
            State::ProbeBwUp { .. } => "up",
            _ => "probe_rtt",
        };
        self.0.phase.store(phase(name), Relaxed);
    }
}

/// What keeps an endpoint alive.
enum Handle {
    Client(Client),
    Server(Server),
}

struct End {
    slot: Slot,
    told: Arc<Told>,
    model: Text,
    handle: Handle,
    attempt: Option<ConnectionAttempt>,
    connection: Option<Connection>,
    sends: bool,
    sending: Option<SendStream>,
    receiving: Option<ReceiveStream>,
    /// The stream's window is full; data wait for [`End::poll`].
    unsent: Bytes,
    arriving: Tuple,
    outbox: Outbox,
    received_bytes: u64,
    is_finishing: bool,
    is_finished: bool,
    failure: Option<String>,
    now_ns: u64,
}

fn address(end: usize) -> SocketAddress {
    addresses()[end].into()
}

impl End {
    fn new(control: &str, setup: &Setup, end: usize) -> Result<Self, String> {
        let slot = Slot::default();
        let told = Arc::new(Told::new(if control == "bbr" {
            "startup"
        } else {
            "slow_start"
        }));
        let io = Io {
            slot: Arc::clone(&slot),
            own: address(end),
            mtu_bytes: setup.mtu_bytes.min(9000) as u16,
        };
        let limits = Limits::new()
            .with_data_window(2 * u64::from(WINDOW_BYTES))
            .and_then(|limits| limits.with_unidirectional_data_window(WINDOW_BYTES.into()))
            .and_then(|limits| limits.with_max_send_buffer_size(SEND_BUFFER_BYTES))
            .map_err(text)?;
        let random = Random(setup.seed.wrapping_add(end as u64));
        let model = Text::default();
        macro_rules! started {
            ($builder:expr) => {{
                let builder = $builder
                    .with_io(io)
                    .and_then(|builder| builder.with_limits(limits))
                    .and_then(|builder| builder.with_random(random))
                    .and_then(|builder| builder.with_event(Ears(Arc::clone(&told))))
                    .map_err(text)?;
                match control {
                    "cubic" => builder
                        .with_congestion_controller(cc::Cubic::default())
                        .map_err(text)?
                        .start()
                        .map_err(text)?,
                    _ => builder
                        .with_congestion_controller(Watching::new(Arc::clone(&model)))
                        .map_err(text)?
                        .start()
                        .map_err(text)?,
                }
            }};
        }
        let handle = if end == 1 {
            let tls = rustls::Server::builder().with_certificate(pem::CERTIFICATE, pem::KEY);
            let tls = tls.and_then(|builder| builder.build()).map_err(text)?;
            Handle::Server(started!(Server::builder().with_tls(tls).map_err(text)?))
        } else {
            let tls = rustls::Client::builder().with_certificate(pem::CERTIFICATE);
            let tls = tls.and_then(|builder| builder.build()).map_err(text)?;
            Handle::Client(started!(Client::builder().with_tls(tls).map_err(text)?))
        };
        Ok(Self {
            slot,
            told,
            model,
            handle,
            attempt: None,
            connection: None,
            sends: setup.server_sends == (end == 1),
            sending: None,
            receiving: None,
            unsent: Bytes::new(),
            arriving: Tuple {
                remote_address: RemoteAddress::from(address(1 - end)),
                local_address: LocalAddress::from(address(end)),
            },
            outbox: Outbox::default(),
            received_bytes: 0,
            is_finishing: false,
            is_finished: false,
            failure: None,
            now_ns: 0,
        })
    }

    fn machine<T>(&self, call: impl FnOnce(&mut dyn Steps) -> T) -> Option<T> {
        let mut slot = self.slot.lock().ok()?;
        slot.as_mut().map(|machine| call(machine.as_mut()))
    }

    fn fail(&mut self, error: impl std::fmt::Display) {
        self.failure.get_or_insert_with(|| error.to_string());
    }

    /// What a program would do that is woken: connects, opens or accepts the stream, reads, writes.
    fn poll(&mut self, context: &mut Context) {
        self.poll_connection(context);
        let Some(connection) = &mut self.connection else {
            return;
        };
        if self.sends && self.sending.is_none() {
            match connection.poll_open_send_stream(context) {
                Poll::Ready(Ok(stream)) => self.sending = Some(stream),
                Poll::Ready(Err(error)) => self.fail(error),
                Poll::Pending => {}
            }
        } else if !self.sends && self.receiving.is_none() {
            match connection.poll_accept_receive_stream(context) {
                Poll::Ready(Ok(stream)) => self.receiving = stream,
                Poll::Ready(Err(error)) => self.fail(error),
                Poll::Pending => {}
            }
        }
        self.poll_streams(context);
    }

    fn poll_connection(&mut self, context: &mut Context) {
        if self.connection.is_some() {
            return;
        }
        match &mut self.handle {
            Handle::Server(server) => {
                if let Poll::Ready(accepted) = server.poll_accept(context) {
                    self.connection = accepted;
                }
            }
            Handle::Client(_) => {
                let Some(attempt) = &mut self.attempt else {
                    return;
                };
                match Pin::new(attempt).poll(context) {
                    Poll::Ready(Ok(connection)) => self.connection = Some(connection),
                    Poll::Ready(Err(error)) => self.fail(error),
                    Poll::Pending => return,
                }
                self.attempt = None;
            }
        }
    }

    fn poll_streams(&mut self, context: &mut Context) {
        if let Some(stream) = &mut self.receiving {
            loop {
                match stream.poll_receive(context) {
                    Poll::Ready(Ok(Some(data))) => self.received_bytes += data.len() as u64,
                    Poll::Ready(Ok(None)) | Poll::Pending => break,
                    Poll::Ready(Err(error)) => {
                        self.failure.get_or_insert_with(|| error.to_string());
                        break;
                    }
                }
            }
        }
        if let Some(stream) = &mut self.sending {
            if !self.unsent.is_empty() {
                if let Poll::Ready(Err(error)) = stream.poll_send(&mut self.unsent, context) {
                    self.failure.get_or_insert_with(|| error.to_string());
                }
            }
            if self.is_finishing && self.unsent.is_empty() && !self.is_finished {
                match stream.poll_close(context) {
                    Poll::Ready(Ok(())) => self.is_finished = true,
                    Poll::Ready(Err(error)) => {
                        self.failure.get_or_insert_with(|| error.to_string());
                    }
                    Poll::Pending => {}
                }
            }
        }
    }

    /// Program and endpoint wake each other until both rest.
    fn run(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        let now_ns = self.now_ns;
        for _ in 0..ROUNDS {
            self.poll(&mut context);
            let before = self.outbox.0.len();
            let mut outbox = std::mem::take(&mut self.outbox);
            let woke = self.machine(|machine| {
                let woke = machine.wakes(&mut context, now_ns);
                machine.transmit(&mut outbox, now_ns);
                woke
            });
            self.outbox = outbox;
            if woke != Some(true) && self.outbox.0.len() == before {
                break;
            }
        }
    }
}

impl Endpoint for End {
    fn start(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        if let Handle::Client(client) = &self.handle {
            let server = Connect::new(addresses()[1]).with_server_name(SERVER_NAME);
            self.attempt = Some(client.connect(server));
        }
    }

    fn receive(&mut self, now_ns: u64, datagram: &[u8], ecn: u8) {
        self.now_ns = now_ns;
        let arrived = (self.arriving, Ecn::new(ecn), datagram.to_vec());
        self.machine(|machine| machine.receive(arrived, now_ns));
    }

    fn on_timer(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    fn write(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.now_ns = now_ns;
        if self.sending.is_none() || !self.unsent.is_empty() {
            return 0;
        }
        let length = bytes.min(ZEROS.len() as u64) as usize;
        self.unsent = Bytes::from_static(&ZEROS[..length]);
        self.poll_streams(&mut Context::from_waker(Waker::noop()));
        length as u64
    }

    fn finish(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.is_finishing = true;
    }

    fn transmit(&mut self, now_ns: u64, buffer: &mut [u8]) -> Option<Transmit> {
        self.now_ns = now_ns;
        if self.outbox.0.is_empty() {
            self.run();
        }
        let (datagram, ecn) = self.outbox.0.pop_front()?;
        buffer[..datagram.len()].copy_from_slice(&datagram);
        Some(Transmit {
            bytes: datagram.len(),
            datagram_bytes: datagram.len(),
            ecn,
        })
    }

    fn status(&mut self) -> Status {
        let now_ns = self.now_ns;
        let timer_ns = self.machine(|machine| machine.timeout_ns()).flatten();
        Status {
            timer_ns: timer_ns.map_or(NONE, |at_ns| at_ns.max(now_ns + 1)),
            received_bytes: self.received_bytes,
            is_established: match self.sends {
                true => self.sending.is_some(),
                false => self.connection.is_some(),
            },
            is_finished: self.is_finished,
            is_closed: self.failure.is_some(),
        }
    }

    fn sample(&mut self) -> Sample {
        let told = &self.told;
        let datagram_bytes = match told.datagram_bytes.load(Relaxed) {
            NONE => PAYLOAD_BYTES,
            bytes => bytes,
        };
        let gain_milli = told.pacing_gain_milli.load(Relaxed);
        let mut sample = Sample {
            cwnd_bytes: told.cwnd_bytes.load(Relaxed),
            inflight_bytes: told.inflight_bytes.load(Relaxed),
            datagram_bytes,
            payload_bytes: datagram_bytes.saturating_sub(OVERHEAD_BYTES),
            srtt_us: told.srtt_us.load(Relaxed),
            min_rtt_us: told.min_rtt_us.load(Relaxed),
            pacing_rate_bps: told.pacing_rate_bps.load(Relaxed),
            packets_lost: told.packets_lost.load(Relaxed),
            congestion_events: told.congestion_events.load(Relaxed),
            receive_window_bytes: WINDOW_BYTES.into(),
            phase: told.phase.load(Relaxed),
            pacing_gain: match gain_milli {
                NONE => f64::NAN,
                milli => milli as f64 / 1e3,
            },
            ..Sample::default()
        };
        if let Some(text) = self.model.lock().ok().filter(|text| !text.is_empty()) {
            add_model(&mut sample, &text);
        }
        sample
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }
}
