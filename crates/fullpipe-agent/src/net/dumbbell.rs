//! The dumbbell of a plan whose network is one link without delay and changes: senders' hosts, a router
//! with the forward bottleneck, if needed a second one with the reverse bottleneck and the forward
//! delays, and receivers' hosts. Other networks are in `row.rs`.
//!
//! ```text
//!  sender 0 -+                                        +- receiver 0
//!  sender 1 -+- router =forward=> ... far <=reverse= -+- receiver 1
//! ```
//!
//! | where | what |
//! |---|---|
//! | a sender's port | loss of whole bursts, own rate, fq |
//! | router to far side | loss of packets, forward rate and queue |
//! | far to router | loss of packets, reverse rate and queue |
//! | far to a receiver | forward delay |
//! | router to a sender | jitter, reverse delay |

use std::net::Ipv4Addr;

use fullpipe_net::{derive_seed, purpose, Medium, WireDirection};
use fullpipe_plan::{Link, Plan};

use super::groups::Groups;
use super::link::{self, Metrics, Port};
use super::topology::{
    rate_of, router, MarksSeen, Topology, MAX_HOSTS, RECEIVERS, ROUTER, SENDERS,
};

impl Topology {
    pub(super) fn build_dumbbell(plan: &Plan, groups: &Groups) -> Result<Self, String> {
        if groups.senders.len().max(groups.receivers.len()) > MAX_HOSTS {
            return Err(format!("flows: more than {MAX_HOSTS} different hosts"));
        }
        let mut topology = Self::of_nodes(vec![router("router")?], &plan.links);
        let far = topology.far_side(plan, groups)?;
        let mut sender_ends = Vec::new();
        for (index, side) in groups.senders.iter().enumerate() {
            sender_ends.push(topology.sender(plan, side, index, ROUTER)?);
        }
        let mut receiver_ends = Vec::new();
        let hub = far.map_or(ROUTER, |(node, _)| node);
        let mut hub_port = None;
        let first_receiver = topology.nodes.len();
        for (index, side) in groups.receivers.iter().enumerate() {
            let (end, port) = topology.receiver(plan, side, index, hub)?;
            receiver_ends.push(end);
            hub_port = Some(port);
        }
        if let Some(port) = far.map(|(_, port)| port).or(hub_port) {
            topology.forward_bottleneck(plan, port)?;
            let next = far.map_or(first_receiver, |(node, _)| node);
            let loss = plan.access.loss.as_ref().filter(|loss| loss.ecn);
            topology.directions[0].marks_seen = loss.map(|loss| match loss.per_burst {
                // In front of the forward queue, where packets from the reverse one arrive too.
                true => MarksSeen {
                    node: ROUTER,
                    with_queue_of: 1,
                },
                false => MarksSeen {
                    node: next,
                    with_queue_of: 0,
                },
            });
        }
        topology.set_ends(groups, &sender_ends, &receiver_ends);
        Ok(topology)
    }

    /// The second router and the first one's port to it, where the path needs it.
    fn far_side(&mut self, plan: &Plan, groups: &Groups) -> Result<Option<(usize, Port)>, String> {
        let (_, reverse) = only_link(plan)?;
        let delayed = groups
            .receivers
            .iter()
            .any(|side| side.forward_delay_ns > 0);
        if reverse.rate_bps.is_none() && !delayed && groups.receivers.len() == 1 {
            return Ok(None);
        }
        self.nodes.push(router("far router")?);
        let far = self.nodes.len() - 1;
        let addresses = [Ipv4Addr::new(172, 16, 0, 1), Ipv4Addr::new(172, 16, 0, 2)];
        let mtu = plan.access.mtu_bytes;
        let (near_port, far_port) = self.join(
            (ROUTER, "out", addresses[0]),
            (far, "in", addresses[1]),
            mtu,
        )?;
        let nothing = Metrics::default();
        link::route(
            &mut self.nodes[ROUTER],
            near_port,
            (RECEIVERS, 9),
            addresses[1],
            nothing,
        )?;
        link::route(
            &mut self.nodes[far],
            far_port,
            (SENDERS, 9),
            addresses[0],
            nothing,
        )?;
        let seed = derive_seed(plan.seed, purpose::REVERSE_LOSS, 0);
        self.bottleneck(
            (far, far_port, 1),
            plan.access.reverse_loss.as_ref().map(|loss| (loss, seed)),
            rate_of(reverse),
        )?;
        Ok(Some((far, near_port)))
    }

    fn forward_bottleneck(&mut self, plan: &Plan, port: Port) -> Result<(), String> {
        let (forward, _) = only_link(plan)?;
        let loss = plan.access.loss.as_ref().filter(|loss| !loss.per_burst);
        let seed = derive_seed(plan.seed, purpose::LOSS, 0);
        self.bottleneck(
            (ROUTER, port, 0),
            loss.map(|loss| (loss, seed)),
            rate_of(forward),
        )
    }
}

/// Whether the network is one wire and everything else is between the wire and the hosts.
pub(super) fn fits(plan: &Plan) -> bool {
    let is_plain = |direction: &WireDirection| {
        direction.delay_ns == 0
            && direction.loss.is_none()
            && direction.rate_steps.is_empty()
            && direction.delay_steps.is_empty()
            && direction.impairments.is_none()
    };
    only_link(plan).is_ok_and(|(forward, reverse)| is_plain(forward) && is_plain(reverse))
}

/// The two directions of a row of one wire.
fn only_link(plan: &Plan) -> Result<(&WireDirection, &WireDirection), String> {
    match plan.links.as_slice() {
        [Link {
            medium: Medium::Wire { forward, reverse },
            ..
        }] => Ok((forward, reverse)),
        _ => Err("links: a kernel's path is one wire".into()),
    }
}
