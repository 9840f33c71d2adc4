//! noq-proto.
//!
//! Its pacer obeys a control's pacing rate and else spreads 1.25 windows over an RTT (connection/pacing.rs).
//! Phases and model of BBRv3 come from the text that `Debug` makes of it, as its fields are private.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use fullpipe_transport::{Sample, NONE};
use noq_proto as proto;
use noq_proto::congestion::{Bbr3Config, Controller, CubicConfig, NewRenoConfig};
use noq_proto::{
    Connection, DatagramEvent, EcnCodepoint, EndpointConfig, FourTuple, PathId, RttEstimator,
    SendStream, ServerConfig, Transmit,
};

use fullpipe_quic_common::stacks::Stack;
use fullpipe_quic_common::{debug_us, field, phase, Watch, SEGMENTS};

use self::end::{calls_alike, common_sample, open, Control, Watched};

#[allow(clippy::duplicate_mod)] // of another library (quinn.rs)
#[path = "quinn_like.rs"]
mod end;

pub(crate) const STACK: Stack = Stack {
    name: "noq",
    version: "noq-proto 1.4.0",
    controls: &["cubic", "newreno", "bbr3"],
    open,
};

fn controls(name: &str) -> Control {
    match name {
        "cubic" => Arc::new(CubicConfig::default()),
        "newreno" => Arc::new(NewRenoConfig::default()),
        _ => Arc::new(Bbr3Config::default()),
    }
}

fn new_endpoint(
    config: Arc<EndpointConfig>,
    server_config: Option<Arc<ServerConfig>>,
) -> proto::Endpoint {
    proto::Endpoint::new(config, server_config, true)
}

fn handle(
    endpoint: &mut proto::Endpoint,
    now: Instant,
    peer: SocketAddr,
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
    answer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, FourTuple::new(peer, None), ecn, data, answer)
}

fn window_bytes(connection: &Connection) -> u64 {
    let control = connection.congestion_state(PathId::ZERO);
    control.map_or(0, Controller::window)
}

fn write_chunk(mut stream: SendStream<'_>, chunk: Bytes) -> usize {
    let mut chunks = &mut [chunk][..];
    stream.write_chunks(&mut chunks).unwrap_or(0)
}

fn poll_transmit(
    connection: &mut Connection,
    now: Instant,
    buffer: &mut Vec<u8>,
) -> Option<Transmit> {
    connection.poll_transmit(now, NonZeroUsize::new(SEGMENTS)?, buffer)
}

fn sample(connection: &mut Connection, watch: &Watch) -> Option<Sample> {
    let stats = connection.path_stats(PathId::ZERO)?;
    let control = connection.congestion_state(PathId::ZERO)?;
    let metrics = control.metrics();
    let mut sample = common_sample(&metrics, &stats, stats.rtt, watch);
    if let Some(rate) = metrics.pacing_rate {
        sample.pacing_rate_bps = rate * 8;
    }
    sample.bw_bps = metrics.bandwidth_estimate.unwrap_or(NONE);
    let text = format!("{control:?}");
    if text.contains("Bbr3 {") {
        add_bbr(&mut sample, &text);
    }
    Some(sample)
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

/// As the control itself.
impl fmt::Debug for Watched {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(formatter)
    }
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

    calls_alike!();
}
