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
//! The window is binding everywhere, and never below two datagrams (RFC 9002 section 7.2). `cubic` and
//! `reno` set no pacing rate; they are paced at 1.25 windows an RTT (section 7.7).
//!
//! | stack | pacing rate | burst |
//! |---|---|---|
//! | quinn-proto 0.11.19 | **advice only**: its pacer spreads 1.25 windows over an RTT, whatever the algorithm | not read |
//! | noq-proto 1.4.0 | obeyed | obeyed, as the datagrams of one call |
//! | s2n-quic-core 0.91.0 | obeyed: it sends from the controller's departure time on | obeyed |
//!
//! quinn takes a rate in the form of a window: it gets the smaller of the algorithm's window and of what
//! the rate sends in a smoothed RTT ([`host::Host::window_of_rate_bytes`]). The mean rate is then the
//! algorithm's; packets leave up to a quarter faster for parts of an RTT, and a phase that is to send
//! below the bandwidth (BBR's Drain and Down) pauses first.
//!
//! # What a stack does not tell
//!
//! | fact | quinn | noq | s2n-quic | who misses it |
//! |---|---|---|---|---|
//! | which packets are lost | when the newest was sent, and their bytes | yes | yes | `bbr2`, `bbr3`, `bbrnplus`: all count as sent with the newest one's flight |
//! | flight when a packet was sent | once a burst of up to 10; counted within it in the order of ACKs | yes | yes | the same |
//! | whether a packet sent is in flight | no: up to 100 bytes are taken for a bare ACK | yes | yes | small messages give no rate samples |
//! | when the application ran dry | at the next ACK | at the next ACK | at once | BBRs: what was sent in between counts as not limited |
//! | how many packets were marked CE | one a report | one a report | yes | `bbr3-ecn` sees too few |
//! | that a loss was spurious | no | yes | no | all: no reduction is undone |
//! | losses together with their ACK | a call later | a call later | a call later | BBRs, by one ACK |
//! | when a datagram arrived | when the endpoint began to read | the same | not looked into | RTTs are short by microseconds, which matters on a loopback |
//! | timeouts, the peer's ACK delay | no | no | no | RTTs contain the delay |
//!
//! When MTU discovery finds a larger datagram, what the algorithm counted in packets stays and is read in
//! larger ones: a bandwidth measured before is up to a fifth too high until BBR's filter forgets it. On a
//! path of 1,500 bytes quinn's discovery takes four probes (1326, 1389, 1420 and 1452 bytes), at most one a
//! round trip. Where the MTU is known, set `initial_mtu` and turn discovery off.

#[cfg(any(feature = "quinn", feature = "noq"))]
mod clock;
#[cfg(feature = "quinn")]
mod flight;
pub mod host;
#[cfg(feature = "noq")]
pub mod noq;
#[cfg(feature = "noq")]
mod packets;
#[cfg(feature = "quinn")]
pub mod quinn;
pub mod rate;
#[cfg(feature = "s2n")]
pub mod s2n;
mod settings;

pub use settings::{BadSettings, Settings};

/// Its example is compiled with the others.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
