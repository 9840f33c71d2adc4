//! Metrics of one run: of the run, its flows, groups of flows, and its queues. Every road takes them
//! from here: `fullpipe run`, reports, sweeps. `definitions.rs` lists them all.
//!
//! A number that does not exist is NaN. Must never know an engine, a file or a store.

mod capacity;
mod definitions;
mod facts;
mod measured;
mod packet_cost;
mod samples;
mod settle;
mod stored;
mod totals;
mod values;
mod window;

pub use capacity::Capacity;
pub use definitions::{tables, About, VERSION};
pub use facts::{Facts, QueueFacts};
pub use measured::Measured;
pub use packet_cost::PacketCost;
pub use samples::{FlowSamples, Flows, PingSamples, QueueSamples, Samples};
pub use settle::{Drift, Quantity, Settling};
pub use stored::Measures;
pub use values::jain;
pub use window::Window;
