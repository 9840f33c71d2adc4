//! The discrete-event simulator: a [`Plan`] in, [`Tables`] out.
//!
//! Time is virtual, in integer ns; the same plan gives the same tables, on any machine and in any
//! build. Nothing grows with simulated time except the rows that the plan asks for.

mod agenda;
mod check;
mod endpoints;
mod hosts;
mod network;
mod packet;
mod record;
mod sim;
mod stepper;
mod workloads;

pub use check::BadPlan;
pub use hosts::PcapWriter;
pub use record::Counts;
pub use sim::{run, Inputs, Outcome};
pub use stepper::{Seen, Stepper, AGENT};
pub use workloads::Traces;

pub use fullpipe_plan::{Plan, Tables};
pub use fullpipe_transport as transport;

/// Reads a plan as Python writes it. Here, so that serde's code for it is compiled once.
///
/// # Errors
/// If it is not JSON, or not a plan.
pub fn read_plan(json: &str) -> Result<Plan, serde_json::Error> {
    serde_json::from_str(json)
}

/// The parts of the simulator and the SHA-256 of their sources: `core`, `cc:NAME`, `net:KIND`. Two builds
/// give equal tables for plans that use only parts which are equal in both.
#[must_use]
pub fn components() -> &'static [(&'static str, &'static str)] {
    include!(concat!(env!("OUT_DIR"), "/components.rs"))
}
