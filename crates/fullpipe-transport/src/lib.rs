//! A transport other than TCP: endpoints that are given the time and datagrams, and return datagrams and
//! the time of their next timer. An engine has their datagrams carried.
//!
//! [`Transport`] and [`Endpoint`] are the contract; [`Module`] carries it between two libraries that were
//! built apart, so that the simulator need not be built with a stack's dependencies. This crate must never
//! know which transports there are, nor what carries their datagrams.

mod contract;
mod module;

pub use contract::{Endpoint, Sample, Setup, Status, Transmit, Transport, NONE, PHASES};
pub use module::{Loaded, Module, CAPSULE};
