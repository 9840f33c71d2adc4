//! The discrete-event simulator: a [`Plan`] in, [`Tables`] out.
//!
//! Time is virtual, in integer ns; the same plan gives the same tables, on any machine and in any
//! build. Nothing grows with simulated time except the rows that the plan asks for.

mod applications;
mod ends;
mod events;
mod hosts;
mod network;
mod opening;
mod packet;
mod pcap;
mod recorder;
mod run;
mod stepping;
mod traffic;
mod work;

pub use pcap::PcapWriter;
pub use run::{run, BadPlan, Counts, Inputs, Outcome};
pub use stepping::{Seen, Stepper, AGENT};
pub use traffic::Traces;

pub use fullpipe_scenario::{Plan, Tables};

/// What each part of the simulator was compiled from: (`core`, `cc:NAME` or `net:KIND`, SHA-256 of
/// its sources). Two builds whose parts are equal give equal tables for plans that use only these.
#[must_use]
pub fn components() -> &'static [(&'static str, &'static str)] {
    include!(concat!(env!("OUT_DIR"), "/components.rs"))
}
