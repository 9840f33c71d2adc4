//! Path elements: queues, AQMs, loss, jitter, links, and what packets cost the host at the end.
//!
//! Every element takes the time as an argument, in integer ns, and knows nothing of events, TCP or
//! engines; so it can be tested alone and driven by any clock. Dropped packets are handed to the
//! caller through a list that it owns, so that nothing is lost without being counted.

mod cake;
mod chance;
mod codel;
mod damage;
mod delay;
mod discipline;
mod dualpi2;
mod fifo;
mod fq;
mod fq_codel;
mod fq_pie;
mod gilbert;
mod hold;
mod host;
mod jitter;
mod link;
mod loss;
mod opportunities;
mod packet;
mod pie;
mod policer;
mod prio;
mod queue;
mod queued;
mod red;
mod reorder;
mod rng;
mod schedule;
mod sfq;
mod shaped;
mod shaper;
mod store;
mod tbf;
mod turns;
pub mod wifi;
mod wifi_jitter;
mod wire;

pub use delay::DelayLine;
pub use gilbert::GilbertElliott;
pub use hold::Hold;
pub use host::Host;
pub use jitter::JitterSource;
pub use link::{AnyLink, Direction, DirectionState, Exit, Link, Passed};
pub use loss::{LossGate, LossSource, Verdict};
pub use packet::{Ecn, HostPair, Packet, PureAck};
pub use policer::Policer;
pub use queue::{Counters, Queue};
pub use queued::QueuedDirection;
pub use reorder::Reorder;
pub use rng::{derive_seed, purpose, Rng};
pub use shaper::Shaper;
pub use wifi_jitter::WifiJitter;
pub use wire::Wire;
