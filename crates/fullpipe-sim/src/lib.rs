//! The discrete-event simulator: a [`Plan`] in, [`Tables`] out.
//!
//! Time is virtual, in integer ns; the same plan gives the same tables, on any machine and in any
//! build. Nothing grows with simulated time except the rows that the plan asks for.

mod applications;
mod arriving;
mod connection;
mod ends;
mod events;
mod hosts;
mod network;
mod opening;
mod packet;
mod pcap;
mod recorder;
mod run;
mod sending;
mod stepping;
mod traffic;
mod wheel;
mod work;

pub use pcap::PcapWriter;
pub use run::{run, BadPlan, Counts, Inputs, Outcome};
pub use stepping::{Seen, Stepper, AGENT};
pub use traffic::Traces;

pub use fullpipe_plan::{Plan, Tables};

/// A plan as Python wrote it. Whoever reads plans asks here: what serde makes of so many structures
/// takes seconds to compile, once.
///
/// # Errors
/// When it is no JSON, or lacks something.
pub fn read_plan(json: &str) -> Result<Plan, serde_json::Error> {
    serde_json::from_str(json)
}

/// What each part of the simulator was compiled from: (`core`, `cc:NAME` or `net:KIND`, SHA-256 of
/// its sources). Two builds whose parts are equal give equal tables for plans that use only these.
#[must_use]
pub fn components() -> &'static [(&'static str, &'static str)] {
    include!(concat!(env!("OUT_DIR"), "/components.rs"))
}
