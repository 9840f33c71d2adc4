//! Congestion controls of `bpf/` and `module/` in the running kernel: loads an object or the module
//! with a set of constants, registers it under a name, reads the algorithm's state of a socket, pins,
//! lists and removes it. It must never know a scenario, nor what any constant means.

mod cost;
mod features;
mod load;
mod module;
mod pins;
mod programs;
mod settings;
mod sockets;
mod trace;
mod users;
mod verifier;

pub(crate) use cost::{costs, count};
pub(crate) use features::kernel_release;
pub(crate) use load::{available, load, Code, Loaded, Wanted};
pub(crate) use module::{insert, insert_other};
pub(crate) use pins::{ensure_mounted, list, unload};
pub(crate) use programs::register_object;
pub(crate) use sockets::{ca_priv, watch_sockets, Episodes};
pub(crate) use trace::Tracer;
pub(crate) use users::{users, User};
