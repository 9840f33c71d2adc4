//! What the stacks have in common: the clock, the certificate, flow control, and how a program would drive
//! them; in files of their own, how stacks become a module of Python, and what replaces the system's clock and
//! random numbers. Must never know a stack.

#[cfg(feature = "pem")]
pub mod pem;
pub mod seeded;
pub mod stacks;
#[cfg(feature = "boringssl")]
pub mod virtual_time;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use fullpipe_transport::{NONE, PHASES};

/// Most datagrams that leave by one call (quinn/src/connection.rs, `MAX_TRANSMIT_SEGMENTS`; noq has the
/// same).
pub const SEGMENTS: usize = 10;
/// Windows of flow control, large enough for 10 Gbit/s over 200 ms, so that none of them limits a flow.
pub const WINDOW_BYTES: u32 = 1 << 28;
/// Of a full datagram: the short header with a connection id of 8 bytes and a packet number of 2, a STREAM
/// frame's type, stream and offset without a length, and the tag (RFC 9000 sections 17.3 and 19.8).
pub const OVERHEAD_BYTES: u64 = 1 + 8 + 2 + 1 + 1 + 4 + 16;
/// What senders write: zeros, which are not copied.
pub static ZEROS: [u8; 1 << 20] = [0; 1 << 20];

/// A certificate for [`SERVER_NAME`], valid from 2020 to 2120, and its key. The key is public: it protects
/// nothing. Ed25519, as its signatures have one length.
pub const CERTIFICATE: &[u8] = include_bytes!("../certificate/certificate.der");
pub const KEY: &[u8] = include_bytes!("../certificate/key.der");
pub const SERVER_NAME: &str = "fullpipe.invalid";

/// Addresses of client and server.
pub fn addresses() -> [SocketAddr; 2] {
    [([10, 0, 0, 1], 1000).into(), ([10, 0, 0, 2], 443).into()]
}

fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

/// An `Instant`, which no number makes: all are counted from one.
pub fn instant(now_ns: u64) -> Instant {
    epoch() + Duration::from_nanos(now_ns)
}

/// The time of a timer.
pub fn timer_ns(at: Option<Instant>) -> u64 {
    at.map_or(NONE, |at| {
        at.saturating_duration_since(epoch()).as_nanos() as u64
    })
}

/// What a stack says of an error.
pub fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

pub fn micros(duration: Duration) -> u64 {
    duration.as_micros() as u64
}

/// What a stack passes to a congestion control and does not show itself.
#[derive(Clone, Debug, Default)]
pub struct Watch(Arc<[AtomicU64; 2]>);

impl Watch {
    pub fn sent(&self, bytes: u64) {
        self.0[0].fetch_add(bytes, Relaxed);
    }

    pub fn lost(&self, bytes: u64) {
        let _ = self.0[0].fetch_update(Relaxed, Relaxed, |now| Some(now.saturating_sub(bytes)));
    }

    /// Bytes in flight after an ACK.
    pub fn acked(&self, inflight_bytes: u64) {
        self.0[0].store(inflight_bytes, Relaxed);
    }

    pub fn min_rtt(&self, rtt: Duration) {
        self.0[1].store(micros(rtt), Relaxed);
    }

    pub fn inflight_bytes(&self) -> u64 {
        self.0[0].load(Relaxed)
    }

    /// [`NONE`] before the first sample.
    pub fn min_rtt_us(&self) -> u64 {
        match self.0[1].load(Relaxed) {
            0 => NONE,
            us => us,
        }
    }
}

/// The position of a phase in [`PHASES`].
pub fn phase(name: &str) -> u64 {
    let found = PHASES.iter().position(|known| *known == name);
    found.map_or(NONE, |position| position as u64)
}

/// The phase of a control that only has a slow-start threshold.
pub fn windowed_phase(cwnd_bytes: u64, ssthresh_bytes: u64) -> u64 {
    match cwnd_bytes < ssthresh_bytes {
        true => phase("slow_start"),
        false => phase("avoidance"),
    }
}

/// The value of a field in the text that `Debug` makes of a struct.
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut from = 0;
    while let Some(found) = text[from..].find(name) {
        let begin = from + found;
        let end = begin + name.len();
        let is_whole = text[..begin].ends_with(['{', ' ']);
        if let (true, Some(rest)) = (is_whole, text[end..].strip_prefix(": ")) {
            return rest.split([',', ' ', '}']).next();
        }
        from = end;
    }
    None
}

/// A duration as `Debug` writes it, in us; [`NONE`] for one that nothing lasts.
pub fn debug_us(text: &str) -> u64 {
    let split = text.find(|letter: char| letter != '.' && !letter.is_ascii_digit());
    let (number, unit) = text.split_at(split.unwrap_or(text.len()));
    let us = match unit {
        "ns" => 1e-3,
        "µs" => 1.0,
        "ms" => 1e3,
        _ => 1e6,
    };
    match number.parse::<f64>() {
        Ok(number) if number * us < 1e15 => (number * us).round() as u64,
        _ => NONE,
    }
}

/// A rate in bit/s: this many bytes an RTT.
pub fn rate_bps(bytes: f64, rtt: Duration) -> u64 {
    if rtt.is_zero() {
        return NONE;
    }
    (bytes * 8.0 / rtt.as_secs_f64()) as u64
}
