//! The connections and probes of a plan.

mod application;
mod connection;
mod flow_pool;
mod meter;
mod pace;
mod probe;
mod web;

pub(crate) use application::{Context, PageFlow, StreamFlow};
pub(crate) use connection::{Connection, ConnectionEvent};
pub(crate) use flow_pool::{Control, FlowPool};
pub(crate) use meter::FlowMeter;
pub(crate) use pace::Pace;
pub(crate) use probe::ProbeFlow;
pub(crate) use web::{AnyPage, WebFlow};
