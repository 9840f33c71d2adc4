//! The `CC_...` flags of cc/cc.h: what an algorithm asks of its host.

/// The algorithm owns cwnd and pacing in every state.
pub const OWNS_CWND: u32 = 1;
/// The host keeps a snapshot ring.
pub const WANTS_RING: u32 = 2;
/// Negotiate ECN even where the system does not.
pub const WANTS_ECN: u32 = 4;
/// Send [`crate::EventKind::Rtt`].
pub const WANTS_RTT: u32 = 8;
/// Send [`crate::EventKind::Ack`].
pub const WANTS_ACKS: u32 = 16;
/// The receiver echoes the mark of each packet (RFC 8257 section 3.2).
pub const ECHOES_CE: u32 = 32;
/// [`crate::EventKind::Send`] sets the burst size and changes nothing else.
pub const SEND_IS_PURE: u32 = 64;
/// Send [`crate::EventKind::Timer`].
pub const WANTS_TIMER: u32 = 128;
/// Fill the second part of [`crate::Conn`].
pub const WANTS_DETAILS: u32 = 256;
/// The contract's PRR sets the window in CWR and Recovery.
pub const HOST_RECOVERS: u32 = 512;
/// With `WANTS_RTT`: also at ACKs without an RTT sample.
pub const WANTS_EVERY_RTT: u32 = 1024;
