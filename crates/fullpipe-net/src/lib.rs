//! Path elements: links with their queues, AQMs and impairments, a row of links, and what packets cost the
//! host at the end.
//! Each element owns its parameters as plans have them.
//!
//! Every element takes the time as an argument, in integer ns, and knows nothing of events, TCP or
//! engines; so it can be tested alone and driven by any clock. Dropped packets are handed to the
//! caller through a list that it owns, so that none is lost without being counted.

mod access;
mod host;
pub mod impair;
mod kernel;
mod link;
mod medium;
mod packet;
pub mod queue;
mod rng;
mod row;
#[cfg(test)]
mod testing;
pub mod trace;
pub mod wifi;

pub use access::{AccessLine, EgressLoss};
pub use host::Host;
pub use kernel::Kernel;
pub use link::delay::{Carried, DelayLine};
pub use link::framing::{Framing, Overhead};
pub use link::shaper::Shaper;
pub use link::wire::Wire;
pub use link::{
    Direction, DirectionState, Exit, Link, Passage, Passed, QueuedDirection, WireDirection,
};
pub use medium::{AnyLink, Medium};
pub use packet::{Ecn, HostPair, Packet, PureAck, LINK_HEADER_BYTES};
pub use queue::{Aqm, Counters, Qdisc, Queue};
pub use rng::{derive_seed, purpose, Rng};
pub use row::{Batch, LinkDirection, Route, Row};
