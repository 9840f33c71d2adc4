//! Two hosts and a real network between them: the near end has the scenario, the far end serves.
//! One port carries everything: connections for control and for the data of flows, each after a
//! handshake. Each end measures the flows that it sends. It must never know how a flow is measured.

mod arrivals;
mod far;
mod handshake;
mod messages;
mod near;

pub(crate) use arrivals::Meeting;
pub(crate) use far::serve;
pub(crate) use handshake::{FAR_BYTES, NEAR_BYTES};
pub(crate) use near::run;
