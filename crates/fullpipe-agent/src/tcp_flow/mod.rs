//! One TCP flow: its connection, what its application has to write, and its measurement.

mod connection;
mod meter;
mod options;
mod supply;

pub(crate) use connection::{Connection, ConnectionEvent, Place, MAX_FLOWS};
pub(crate) use meter::FlowMeter;
pub(crate) use options::Options;
