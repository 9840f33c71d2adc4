//! The path of a plan out of namespaces, links and queue disciplines of this kernel.

mod groups;
mod link;
mod namespace;
pub(crate) mod netlink;
pub(crate) mod qdisc;
mod row;
mod topology;

pub(crate) use namespace::{Home, Node};
pub(crate) use topology::{DirectionQueue, Place, Topology};
