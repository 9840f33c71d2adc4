//! The contract: what an engine tells an endpoint, and what it learns of it. It must never know how the
//! contract crosses from one library to another.

/// Of a number: there is none.
pub const NONE: u64 = u64::MAX;

/// A connection that is to be made.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Seed of all its random numbers.
    pub seed: u64,
    /// Largest IP packet that its hosts send.
    pub mtu_bytes: u32,
    /// The server sends the data instead of the client.
    pub server_sends: bool,
    /// Its hosts negotiate ECN.
    pub ecn: bool,
    /// How much of what is written may wait unsent behind twice the window ([`NONE`]: as the stack likes).
    pub unsent_bytes: u64,
}

/// A datagram, or several of equal size that leave at once.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transmit {
    /// All bytes, from the beginning of the buffer.
    pub bytes: usize,
    /// Size of each datagram; only the last one may be smaller.
    pub datagram_bytes: usize,
    /// The two ECN bits of the IP header.
    pub ecn: u8,
}

/// What an engine has to know of an endpoint after each call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// When [`Endpoint::on_timer`] has to be called; [`NONE`]: never.
    pub timer_ns: u64,
    /// Bytes of the stream that its application has read in order.
    pub received_bytes: u64,
    /// The handshake is done.
    pub is_established: bool,
    /// All data were written, and acknowledged by the peer.
    pub is_finished: bool,
    /// The connection is over: closed, timed out or failed ([`Endpoint::failure`]).
    pub is_closed: bool,
}

/// Phases of congestion controls, by their names in recordings. [`Sample::phase`] is a position.
pub const PHASES: [&str; 9] = [
    "slow_start",
    "avoidance",
    "startup",
    "drain",
    "up",
    "down",
    "cruise",
    "refill",
    "probe_rtt",
];

/// The sender's state as the stack tells it. What it does not tell is [`NONE`], or NaN.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Slow-start threshold.
    pub ssthresh_bytes: u64,
    /// In flight as the congestion control counts it.
    pub inflight_bytes: u64,
    /// Payload of the largest datagram it sends at present.
    pub datagram_bytes: u64,
    /// Bytes of the stream in such a datagram.
    pub payload_bytes: u64,
    /// Smoothed RTT.
    pub srtt_us: u64,
    /// Minimum RTT of the connection.
    pub min_rtt_us: u64,
    /// Rate at which it paces.
    pub pacing_rate_bps: u64,
    /// Bandwidth that its model has measured; of BBRv2 and v3 the long-term one.
    pub bw_bps: u64,
    /// Short-term bound of the bandwidth.
    pub bw_shortterm_bps: u64,
    /// Long-term bound of what is in flight.
    pub inflight_longterm_bytes: u64,
    /// Short-term bound of what is in flight.
    pub inflight_shortterm_bytes: u64,
    /// ACK aggregation estimate.
    pub extra_acked_bytes: u64,
    /// Packet-timed rounds.
    pub round_count: u64,
    /// Packets that it declared lost.
    pub packets_lost: u64,
    /// Congestion events: losses or marks to which it responded.
    pub congestion_events: u64,
    /// How much the peer allows to be in flight.
    pub receive_window_bytes: u64,
    /// Position in [`PHASES`].
    pub phase: u64,
    /// Gain on the bandwidth.
    pub pacing_gain: f64,
    /// Gain on the BDP.
    pub cwnd_gain: f64,
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            cwnd_bytes: NONE,
            ssthresh_bytes: NONE,
            inflight_bytes: NONE,
            datagram_bytes: NONE,
            payload_bytes: NONE,
            srtt_us: NONE,
            min_rtt_us: NONE,
            pacing_rate_bps: NONE,
            bw_bps: NONE,
            bw_shortterm_bps: NONE,
            inflight_longterm_bytes: NONE,
            inflight_shortterm_bytes: NONE,
            extra_acked_bytes: NONE,
            round_count: NONE,
            packets_lost: NONE,
            congestion_events: NONE,
            receive_window_bytes: NONE,
            phase: NONE,
            pacing_gain: f64::NAN,
            cwnd_gain: f64::NAN,
        }
    }
}

/// One end of a connection, with one stream of data from one end to the other. Times are in ns since the
/// start of the run and never decrease.
///
/// After each call of another method the engine calls [`Self::transmit`] until it returns nothing, and
/// then [`Self::status`].
pub trait Endpoint {
    /// The client connects.
    fn start(&mut self, now_ns: u64);
    /// A datagram arrives, with the two ECN bits of its IP header.
    fn receive(&mut self, now_ns: u64, datagram: &[u8], ecn: u8);
    /// A timer may have expired.
    fn on_timer(&mut self, now_ns: u64);
    /// The application has this much to send; returns how much was taken.
    fn write(&mut self, now_ns: u64, bytes: u64) -> u64;
    /// The application has written all.
    fn finish(&mut self, now_ns: u64);
    /// Puts what is to be sent now into the buffer, which has room for 64 KiB.
    fn transmit(&mut self, now_ns: u64, buffer: &mut [u8]) -> Option<Transmit>;
    /// What has become of it.
    fn status(&mut self) -> Status;
    /// The sender's state.
    fn sample(&mut self) -> Sample;
    /// Why the connection ended, if it failed.
    fn failure(&self) -> Option<String>;
}

/// Makes connections.
pub trait Transport: Sync {
    /// Both ends of a connection with this congestion control, the client first. `None`: it has none of
    /// that name.
    ///
    /// # Errors
    /// If it cannot be made so.
    fn open(&self, cc: &str, setup: &Setup) -> Option<Result<[Box<dyn Endpoint>; 2], String>>;
}
