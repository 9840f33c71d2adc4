//! Runs between two hosts: the near end has the scenario, the far end serves. One port carries the
//! control connection and the connections of flows, each after a handshake. Each end measures the
//! flows that it sends. This module must not know how a flow is measured.

mod arrivals;
mod far;
mod handshake;
mod messages;
mod near;
mod timed;
mod unauthenticated;

pub(crate) use arrivals::PeerLink;
pub(crate) use far::serve;
pub(crate) use handshake::{FAR_BYTES, NEAR_BYTES};
pub(crate) use near::run;
