//! quinn-proto.
//!
//! Its pacer spreads 1.25 windows over an RTT whatever the congestion control (connection/pacing.rs); what a
//! control calls its pacing rate goes into qlog only (congestion.rs). That is why `pacing_rate_bps` is made
//! of the window here. Phases of BBR come from the text that `Debug` makes of it, as its fields are private.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use fullpipe_transport::Sample;
use quinn_proto as proto;
use quinn_proto::congestion::{Bbr, BbrConfig, Controller, CubicConfig, NewRenoConfig};
use quinn_proto::{
    Connection, DatagramEvent, EcnCodepoint, EndpointConfig, RttEstimator, SendStream,
    ServerConfig, Transmit,
};

use fullpipe_quic_common::stacks::Stack;
use fullpipe_quic_common::{field, phase, Watch, SEGMENTS};

use self::end::{calls_alike, common_sample, open, Control, Watched};

#[allow(clippy::duplicate_mod)] // of another library (noq.rs)
#[path = "quinn_like.rs"]
mod end;

pub(crate) const STACK: Stack = Stack {
    name: "quinn",
    version: "quinn-proto 0.11.19",
    controls: &["cubic", "newreno", "bbr"],
    open,
};

fn controls(name: &str) -> Control {
    match name {
        "cubic" => Arc::new(CubicConfig::default()),
        "newreno" => Arc::new(NewRenoConfig::default()),
        _ => Arc::new(BbrConfig::default()),
    }
}

fn new_endpoint(
    config: Arc<EndpointConfig>,
    server_config: Option<Arc<ServerConfig>>,
) -> proto::Endpoint {
    proto::Endpoint::new(config, server_config, true, None)
}

fn handle(
    endpoint: &mut proto::Endpoint,
    now: Instant,
    peer: SocketAddr,
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
    answer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, peer, None, ecn, data, answer)
}

fn window_bytes(connection: &Connection) -> u64 {
    connection.congestion_state().window()
}

fn write_chunk(mut stream: SendStream<'_>, chunk: Bytes) -> usize {
    let written = stream.write_chunks(&mut [chunk]);
    written.map_or(0, |written| written.bytes)
}

fn poll_transmit(
    connection: &mut Connection,
    now: Instant,
    buffer: &mut Vec<u8>,
) -> Option<Transmit> {
    connection.poll_transmit(now, SEGMENTS, buffer)
}

fn sample(connection: &mut Connection, watch: &Watch) -> Option<Sample> {
    let control = connection.congestion_state();
    let metrics = control.metrics();
    let mut sample = common_sample(&metrics, &connection.stats().path, connection.rtt(), watch);
    let watched = control.clone_box().into_any().downcast::<Watched>();
    let inner = watched.map(|watched| watched.inner.clone_box().into_any());
    if let Ok(Ok(bbr)) = inner.map(|inner| inner.downcast::<Bbr>()) {
        add_bbr(&mut sample, &format!("{bbr:?}"), metrics.pacing_rate);
    }
    Some(sample)
}

/// Adds what BBR shows of itself.
fn add_bbr(sample: &mut Sample, text: &str, rate_bps: Option<u64>) {
    let number = |name| field(text, name).and_then(|value| value.parse::<f64>().ok());
    let gain = number("pacing_gain").unwrap_or(f64::NAN);
    sample.phase = phase(match field(text, "mode") {
        Some("Startup") => "startup",
        Some("Drain") => "drain",
        Some("ProbeRtt") => "probe_rtt",
        _ if gain > 1.0 => "up",
        _ if gain < 1.0 => "down",
        _ => "cruise",
    });
    sample.pacing_gain = gain;
    sample.cwnd_gain = number("cwnd_gain").unwrap_or(f64::NAN);
    if let Some(rate_bps) = rate_bps.filter(|_| gain > 0.0) {
        sample.bw_bps = (rate_bps as f64 / gain) as u64;
    }
}

impl Controller for Watched {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.watch.sent(bytes);
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.watch.min_rtt(rtt.min());
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.watch.lost(lost_bytes);
        self.inner
            .on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    calls_alike!();
}
