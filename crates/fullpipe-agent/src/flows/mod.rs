//! The connections and probes of a plan.

mod application;
mod connection;
mod crowd;
mod probe;
pub(crate) mod socket;
mod web;

pub(crate) use application::{Means, PageFlow, StreamFlow};
pub(crate) use connection::{Connection, Happening};
pub(crate) use crowd::{Control, Crowd};
pub(crate) use probe::ProbeFlow;
pub(crate) use socket::Payload;
pub(crate) use web::{AnyPage, WebFlow};
