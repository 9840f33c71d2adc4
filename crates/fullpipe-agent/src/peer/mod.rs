//! The link to the agent of another host: one port carries the control connection and the connections
//! of flows, each after a handshake. This module must not know what a run is.

mod arrivals;
mod handshake;
mod timed;

pub(crate) use arrivals::{accept_peer, connect_peer, ArrivalSender, Arrivals, Dial, PeerLink};
pub(crate) use handshake::{Purpose, FAR_BYTES, NEAR_BYTES};
