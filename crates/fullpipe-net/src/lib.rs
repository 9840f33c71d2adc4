//! Path elements: queues, AQMs, loss, jitter, links, and what packets cost the host at the end.
//!
//! Every element takes the time as an argument, in integer ns, and knows nothing of events, TCP or
//! engines; so it can be tested alone and driven by any clock. Dropped packets are handed to the
//! caller through a list that it owns, so that nothing is lost without being counted.

mod cake;
mod codel;
mod delay;
mod discipline;
mod dualpi2;
mod fifo;
mod fq;
mod fq_codel;
mod fq_pie;
mod host;
mod jitter;
mod link;
mod loss;
mod packet;
mod pie;
mod prio;
mod queue;
mod red;
mod rng;
mod schedule;
mod sfq;
mod shaper;
mod store;
mod tbf;
pub mod wifi;
mod wire;

pub use delay::DelayLine;
pub use host::Host;
pub use jitter::JitterSource;
pub use link::{AnyLink, Exit, Link, Passed, Way, WayState};
pub use loss::{LossGate, LossSource, Verdict};
pub use packet::{Ecn, HostPair, Packet, PureAck};
pub use queue::{Counters, Queue};
pub use rng::{derive_seed, purpose, Rng};
pub use shaper::Shaper;
pub use wire::Wire;
