//! The congestion controls of [fullpipe](https://docs.rs/fullpipe-cc) for QUIC stacks: the same C that the
//! simulator and the kernel run, so that a QUIC server can run `bbr3`.
//!
//! ```
//! # #[cfg(feature = "quinn")] {
//! use std::sync::Arc;
//! use fullpipe_quic_cc::{quinn::Factory, Settings};
//!
//! let bbr3 = Settings::new("bbr3").unwrap().seed(1);
//! let mut transport = quinn_proto::TransportConfig::default();
//! transport.congestion_controller_factory(Arc::new(Factory::new(bbr3)));
//! # }
//! ```
//!
//! [`Settings::names`] lists what can be run. `dctcp` and `prague` are not among it: they need the mark of
//! each packet, which the stacks do not tell, and Prague sends ECT(1), which none of them does.
//!
//! # What a stack does with a decision
//!
//! The window is binding everywhere, and never below two datagrams (RFC 9002 section 7.2).
//!
//! | stack | pacing rate | burst |
//! |---|---|---|
//! | quinn-proto 0.11 | **not read**: its pacer spreads 1.25 windows over an RTT, whatever the algorithm | not read: at most 10 datagrams, about 2 ms |
//!
//! quinn thus only takes a rate as advice in the form of a window: it gets the smaller of the window and
//! what the rate sends in a smoothed RTT ([`host::Host::window_of_rate_bytes`]). The mean rate is the
//! algorithm's; packets leave up to a quarter faster for parts of an RTT, and a phase that is to send at
//! less than the bandwidth (BBR's Drain and Down) pauses first. `cubic` and `reno` set no rate; for them
//! the stack's own pacing is what they expect.
//!
//! # What a stack does not tell
//!
//! | fact | quinn-proto 0.11 | who misses it |
//! |---|---|---|
//! | which packet is acknowledged or lost | when it was sent, for ACKs; only the newest one's time and a sum of bytes, for losses | `bbr2`, `bbr3`, `bbrnplus`: lost packets count as sent with the newest one's flight |
//! | flight at the sending | one call for a burst of up to 10: the host counts within it in the order of ACKs | the same |
//! | losses with the ACK that shows them | a call later: the next ACK reports them | BBRs, by one ACK |
//! | whether a sent packet is in flight | no: up to 100 bytes are taken for a bare ACK | small messages give no rate samples |
//! | how many packets were marked CE | no: one a report | `bbr3-ecn` sees too few |
//! | MTU probes | acknowledged, not sent | nobody: they give no rate sample |
//! | application-limited | at ACKs, not when it begins | BBRs: packets sent in between count as not limited |
//! | a spurious loss, a retransmission timeout, the peer's ACK delay | no | no reduction is undone; RTTs contain the delay |
//!
//! When MTU discovery finds a larger datagram, what the algorithm counted in packets stays and is read in
//! larger ones. Discovery ends after some ten round trips, in slow start or Startup, where all counts grow
//! anyway. Where the MTU is known, set `initial_mtu` and turn discovery off.

#[cfg(feature = "quinn")]
mod flight;
pub mod host;
#[cfg(feature = "quinn")]
pub mod quinn;
pub mod rate;
mod settings;

pub use settings::{BadSettings, Settings};
