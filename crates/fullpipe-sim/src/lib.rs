//! The discrete-event simulator: a [`Plan`] in, [`Tables`] out.
//!
//! Time is virtual, in integer ns; the same plan gives the same tables, on any machine and in any
//! build. Nothing grows with simulated time except the rows that the plan asks for.

mod events;
mod network;
mod packet;
mod pcap;
mod recorder;
mod run;

pub use pcap::PcapWriter;
pub use run::{run, BadPlan, Outcome};

pub use fullpipe_scenario::{Plan, Tables};
