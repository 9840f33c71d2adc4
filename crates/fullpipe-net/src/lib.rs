//! Path elements: queues, AQMs, loss, jitter, links, and what packets cost the host at the end.
//!
//! Every element takes the time as an argument, in integer ns, and knows nothing of events, TCP or
//! engines; so it can be tested alone and driven by any clock. Dropped packets are handed to the
//! caller through a list that it owns, so that nothing is lost without being counted.

mod codel;
mod delay;
mod discipline;
mod fifo;
mod fq;
mod fq_codel;
mod host;
mod jitter;
mod link;
mod loss;
mod queue;
mod red;
mod rng;
mod store;

pub use delay::DelayLine;
pub use host::Host;
pub use jitter::JitterSource;
pub use link::Shaper;
pub use loss::{LossSource, Verdict};
pub use queue::{Counters, Queue};
pub use rng::{derive_seed, purpose, Rng};

/// What elements need to know of a packet.
pub trait Packet: Copy {
    /// Bytes on the wire, link header included.
    fn wire_bytes(&self) -> u32;
    /// Identifies the packet's connection; equal for all its packets in one direction.
    fn flow_key(&self) -> u32;
    /// Whether it may be marked instead of dropped (ECT or CE).
    fn ecn_capable(&self) -> bool;
    /// Marks it: congestion experienced.
    fn mark_ce(&mut self);
    /// Earliest departure time stamped by the sender, for fq; 0: none.
    fn pacing_time_ns(&self) -> u64 {
        0
    }
    /// Memory that it takes in a kernel (an skb's truesize), for fq_codel's memory limit.
    fn memory_bytes(&self) -> u32 {
        self.wire_bytes()
    }
}
