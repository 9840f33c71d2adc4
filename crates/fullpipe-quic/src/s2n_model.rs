//! s2n-quic's BBR with a window to its model: the stack's own controller, whose text by `Debug` is kept at
//! each ACK, as its fields are private and its events do not tell them. Must never change what it does.

use std::fmt::Write;
use std::sync::{Arc, Mutex};

use fullpipe_quic_common::debug_us;
use fullpipe_transport::{Sample, NONE};
use s2n_quic_core::random;
use s2n_quic_core::recovery::bbr::BbrCongestionController;
use s2n_quic_core::recovery::congestion_controller::{
    CongestionController, Endpoint, PathInfo, Publisher,
};
use s2n_quic_core::recovery::{bbr, RttEstimator};
use s2n_quic_core::time::Timestamp;

/// What `Debug` made of the controller at the newest ACK.
pub(crate) type Text = Arc<Mutex<String>>;

/// Makes controllers that are watched.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    inner: bbr::Endpoint,
    text: Text,
}

impl Watching {
    pub(crate) fn new(text: Text) -> Self {
        Self {
            inner: bbr::Endpoint::default(),
            text,
        }
    }
}

impl Endpoint for Watching {
    type CongestionController = Watched;

    fn new_congestion_controller(&mut self, path_info: PathInfo) -> Watched {
        Watched {
            inner: self.inner.new_congestion_controller(path_info),
            text: Arc::clone(&self.text),
        }
    }
}

/// A controller that is watched.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    inner: BbrCongestionController,
    text: Text,
}

impl CongestionController for Watched {
    type PacketInfo = <BbrCongestionController as CongestionController>::PacketInfo;

    fn congestion_window(&self) -> u32 {
        self.inner.congestion_window()
    }

    fn bytes_in_flight(&self) -> u32 {
        self.inner.bytes_in_flight()
    }

    fn is_congestion_limited(&self) -> bool {
        self.inner.is_congestion_limited()
    }

    fn requires_fast_retransmission(&self) -> bool {
        self.inner.requires_fast_retransmission()
    }

    fn on_packet_sent<Pub: Publisher>(
        &mut self,
        time_sent: Timestamp,
        sent_bytes: usize,
        app_limited: Option<bool>,
        rtt_estimator: &RttEstimator,
        publisher: &mut Pub,
    ) -> Self::PacketInfo {
        self.inner
            .on_packet_sent(time_sent, sent_bytes, app_limited, rtt_estimator, publisher)
    }

    fn on_rtt_update<Pub: Publisher>(
        &mut self,
        time_sent: Timestamp,
        now: Timestamp,
        rtt_estimator: &RttEstimator,
        publisher: &mut Pub,
    ) {
        self.inner
            .on_rtt_update(time_sent, now, rtt_estimator, publisher);
    }

    fn on_ack<Pub: Publisher>(
        &mut self,
        newest_acked_time_sent: Timestamp,
        bytes_acknowledged: usize,
        newest_acked_packet_info: Self::PacketInfo,
        rtt_estimator: &RttEstimator,
        random_generator: &mut dyn random::Generator,
        ack_receive_time: Timestamp,
        publisher: &mut Pub,
    ) {
        self.inner.on_ack(
            newest_acked_time_sent,
            bytes_acknowledged,
            newest_acked_packet_info,
            rtt_estimator,
            random_generator,
            ack_receive_time,
            publisher,
        );
        if let Ok(mut text) = self.text.lock() {
            text.clear();
            let _ = write!(text, "{:?}", self.inner); // a string takes all
        }
    }

    fn on_packet_lost<Pub: Publisher>(
        &mut self,
        lost_bytes: u32,
        packet_info: Self::PacketInfo,
        persistent_congestion: bool,
        new_loss_burst: bool,
        random_generator: &mut dyn random::Generator,
        timestamp: Timestamp,
        publisher: &mut Pub,
    ) {
        self.inner.on_packet_lost(
            lost_bytes,
            packet_info,
            persistent_congestion,
            new_loss_burst,
            random_generator,
            timestamp,
            publisher,
        );
    }

    fn on_explicit_congestion<Pub: Publisher>(
        &mut self,
        ce_count: u64,
        event_time: Timestamp,
        publisher: &mut Pub,
    ) {
        self.inner
            .on_explicit_congestion(ce_count, event_time, publisher);
    }

    fn on_mtu_update<Pub: Publisher>(&mut self, max_data_size: u16, publisher: &mut Pub) {
        self.inner.on_mtu_update(max_data_size, publisher);
    }

    fn on_packet_discarded<Pub: Publisher>(&mut self, bytes_sent: usize, publisher: &mut Pub) {
        self.inner.on_packet_discarded(bytes_sent, publisher);
    }

    fn earliest_departure_time(&self) -> Option<Timestamp> {
        self.inner.earliest_departure_time()
    }

    fn send_quantum(&self) -> Option<usize> {
        self.inner.send_quantum()
    }
}

/// Adds the model to a sample. What is unset is the largest number, or takes no time.
pub(crate) fn add_model(sample: &mut Sample, text: &str) {
    let after = |name| text.split_once(name).map_or("", |(_, rest)| rest);
    let number = |text: &str| {
        let digits = text.split(|letter: char| !letter.is_ascii_digit()).next();
        digits
            .and_then(|digits| digits.parse().ok())
            .unwrap_or(NONE)
    };
    // A bandwidth is the time that 1024 bytes take (recovery/bandwidth/estimator.rs).
    let bps = |text: &str| {
        let kibibyte = text.split_once("nanos_per_kibibyte: ");
        match kibibyte.map_or(NONE, |(_, rest)| number(rest)) {
            0 | NONE => NONE,
            ns => 1024 * 8 * 1_000_000_000 / ns,
        }
    };
    let current = |text: &str| match text.split_once("current_value: Some(") {
        Some((_, rest)) => rest
            .split_once(')')
            .map_or("", |(value, _)| value)
            .to_owned(),
        None => String::new(),
    };
    sample.bw_bps = bps(after("max_bw_filter: "));
    sample.bw_shortterm_bps = bps(after("bw_lo: "));
    let min_rtt = current(after(" min_rtt: "));
    sample.min_rtt_us = if min_rtt.is_empty() {
        NONE
    } else {
        debug_us(&min_rtt)
    };
    sample.inflight_longterm_bytes = number(after("inflight_hi: "));
    sample.inflight_shortterm_bytes = number(after("inflight_lo: "));
    sample.extra_acked_bytes = number(&current(after("extra_acked_filter: ")));
    sample.round_count = number(after("round_count: "));
}
