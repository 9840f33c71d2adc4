//! Workloads: when flows arrive, how much they send, and when they pause. They are state machines without
//! I/O, which the simulator runs over simulated TCP and the agent over sockets. Each draws from a random
//! stream of its own, so both engines see the same. Must never know what carries the bytes.

mod arrivals;
mod backbone;
mod datagrams;
mod draw;
mod on_off;
mod page;
mod sizes;
mod trace;
mod writer;

pub use arrivals::{Flows, NewFlow};
pub use backbone::backbone;
pub use datagrams::{Datagram, DatagramSource};
pub use page::{PageLoader, Step};
pub use trace::{Chunk, Trace, TraceFlow};
pub use writer::{Writer, Writing};
