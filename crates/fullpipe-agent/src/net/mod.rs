//! The path of a plan, made of namespaces, links and queue disciplines of this kernel.

mod change;
mod dumbbell;
mod filler;
mod groups;
mod link;
mod major;
mod namespace;
pub(crate) mod netlink;
pub(crate) mod qdisc;
mod row;
mod topology;

use fullpipe_plan::Plan;

use groups::Groups;
pub(crate) use link::{join, know_neighbour, set_gso_max_segments, End, Port};
pub(crate) use namespace::{Home, Node};
pub(crate) use topology::{DirectionQueue, LossPlace, Place, Topology};

/// Builds the plan's network: a dumbbell if it is one plain wire, else a row of links.
pub(crate) fn build(plan: &Plan) -> Result<Topology, String> {
    let groups = Groups::of(plan);
    if dumbbell::fits(plan) {
        Topology::build_dumbbell(plan, &groups)
    } else {
        Topology::build_row(plan, &groups)
    }
}
