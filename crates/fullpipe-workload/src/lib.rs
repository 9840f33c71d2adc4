//! What opens connections and writes into them: when flows come, how much they send, where they
//! pause. State machines without I/O, which the simulator runs over simulated TCP and the agent
//! over sockets; they draw from random streams of their own, so both see the same. Must never know
//! what carries the bytes.

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
