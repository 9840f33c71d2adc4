//! Safe Rust binding to the congestion controls of `cc/`.
//!
//! [`algorithms`] and [`sets`] list what is built in; a [`Controller`] is one connection's instance.
//! This crate must not know what carries the packets.

#![warn(clippy::undocumented_unsafe_blocks)]

mod abi;
mod controller;
mod dynamic;
#[cfg(feature = "external")]
pub mod external;
pub mod flags;
mod layout;
#[cfg(feature = "external")]
pub mod log;
mod native;
mod pacing;
mod registry;
pub mod replay;
pub mod trace;

pub use abi::{Ack, CaState, Conn, Ctl, Event, EventKind, Info, INFINITE, ONE};
pub use controller::{BadParams, Controller};
pub use dynamic::{DynAlgorithm, Maker};
pub use native::NativeController;
pub use pacing::PacingRatios;
pub use registry::{
    algorithm, algorithms, register, set, sets, Algorithm, Param, Phase, Set, Variable,
};

/// Its example is run with the others.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
