//! A row of links as namespaces in a row: routers, and between two routers a node that delays packets.
//!
//! ```text
//!  sender - router 0 =queue=> delays 0 ... <=queue= router 1 =queue=> delays 1 ... - receiver
//! ```
//!
//! | where | what |
//! |---|---|
//! | a router to the next one | loss and copies, rate and queue |
//! | the node between them, in each direction | hold, delay, reordering |
//!
//! Changes are a list of times and netlink requests; the session executes them.

use std::net::Ipv4Addr;

use fullpipe_net::{derive_seed, purpose, WireDirection};
use fullpipe_plan::{Link, Plan};

use super::change::{Change, What};
use super::groups::Groups;
use super::link::{self, Metrics, Port};
use super::major;
use super::qdisc::{self, inside, Netem, ROOT};
use super::topology::{router, Topology, MAX_HOSTS, RECEIVERS, SENDERS};

/// Bits of a full packet, for outages.
const PACKET_BITS: u64 = 1514 * 8;
const NS_PER_S: u64 = 1_000_000_000;
/// htb's least rate, in bit/s.
const LEAST_BPS: u64 = 8;

/// Ports of one link: those of its two routers, and of the node between them.
struct Hop {
    /// Router and its port, forward and reverse: where queues are.
    queues: [(usize, Port); 2],
    /// The node between, and its ports forward and reverse; `None`: nothing is delayed.
    delays: Option<(usize, [Port; 2])>,
}

impl Topology {
    pub(super) fn build_row(plan: &Plan, groups: &Groups) -> Result<Self, String> {
        if groups.senders.len().max(groups.receivers.len()) > MAX_HOSTS {
            return Err(format!("flows: more than {MAX_HOSTS} different hosts"));
        }
        let mut topology = Self::of_nodes(Vec::new(), &plan.links);
        let mut routers = Vec::new();
        for index in 0..=plan.links.len() {
            topology.nodes.push(router(&format!("router {index}"))?);
            routers.push(topology.nodes.len() - 1);
        }
        for (index, link) in plan.links.iter().enumerate() {
            let [forward, reverse] = wires(link)?;
            let joined = [routers[index], routers[index + 1]];
            let hop = topology.hop(plan, index, joined, delays(forward) || delays(reverse))?;
            for (direction, wire) in [forward, reverse].into_iter().enumerate() {
                topology.direction(plan, 2 * index + direction, wire, &hop)?;
            }
        }
        let mut sender_ends = Vec::new();
        for (index, side) in groups.senders.iter().enumerate() {
            let hub = routers[usize::from(side.enter)];
            sender_ends.push(topology.sender(plan, side, index, hub)?);
        }
        let mut receiver_ends = Vec::new();
        for (index, side) in groups.receivers.iter().enumerate() {
            let hub = routers[usize::from(side.leave) + 1];
            receiver_ends.push(topology.receiver(plan, side, index, hub)?.0);
        }
        topology.set_ends(groups, &sender_ends, &receiver_ends);
        topology.changes.sort_by_key(|change| change.at_ns);
        Ok(topology)
    }

    /// Joins two routers, through a delaying node if one is needed, with routes in both directions.
    fn hop(
        &mut self,
        plan: &Plan,
        index: usize,
        [near, far]: [usize; 2],
        is_delayed: bool,
    ) -> Result<Hop, String> {
        if !is_delayed {
            let [near_port, far_port] = self.lay(plan, 2 * index, [near, far])?;
            return Ok(Hop {
                queues: [(near, near_port), (far, far_port)],
                delays: None,
            });
        }
        self.nodes.push(router(&format!("delays {index}"))?);
        let between = self.nodes.len() - 1;
        let [near_port, back] = self.lay(plan, 2 * index, [near, between])?;
        let [onwards, far_port] = self.lay(plan, 2 * index + 1, [between, far])?;
        Ok(Hop {
            queues: [(near, near_port), (far, far_port)],
            delays: Some((between, [onwards, back])),
        })
    }

    /// A pair of ports between two nodes; senders are reached through the first, receivers through
    /// the second.
    fn lay(
        &mut self,
        plan: &Plan,
        number: usize,
        [left, right]: [usize; 2],
    ) -> Result<[Port; 2], String> {
        let address = |host| Ipv4Addr::new(172, 16, number as u8, host);
        let names = [format!("f{number}"), format!("r{number}")];
        let (left_port, right_port) = self.join(
            (left, &names[0], address(1)),
            (right, &names[1], address(2)),
            plan.access.mtu_bytes,
        )?;
        let nothing = Metrics::default();
        let node = &mut self.nodes[left];
        link::route(node, left_port, (RECEIVERS, 9), address(2), nothing)?;
        link::know_neighbour(node, left_port, right_port)?;
        let node = &mut self.nodes[right];
        link::route(node, right_port, (SENDERS, 9), address(1), nothing)?;
        link::know_neighbour(node, right_port, left_port)?;
        Ok([left_port, right_port])
    }

    /// The qdiscs of one direction of a link, and their changes.
    fn direction(
        &mut self,
        plan: &Plan,
        direction: usize,
        wire: &WireDirection,
        hop: &Hop,
    ) -> Result<(), String> {
        let (node, port) = hop.queues[direction % 2];
        let seed = |purpose| derive_seed(plan.seed, purpose, direction as u32);
        let impairments = wire.impairments.as_ref();
        let gemodel = impairments.and_then(|impairments| impairments.gemodel.clone());
        let duplicate = impairments.and_then(|impairments| impairments.duplicate.clone());
        let loses = wire.loss.is_some() || gemodel.is_some() || duplicate.is_some();
        let loss = loses.then(|| {
            qdisc::netem(&Netem {
                loss: wire.loss.clone(),
                gemodel,
                duplicate,
                seed: seed(purpose::LINK_LOSS),
                ..Netem::default()
            })
        });
        let rate = wire.rate_bps.map(|rate_bps| (rate_bps, &wire.qdisc));
        self.impaired_bottleneck((node, port, direction), loss, rate)?;
        for (index, &(at_ns, rate_bps)) in wire.rate_steps.iter().enumerate() {
            let next_ns = wire.rate_steps.get(index + 1).map(|step| step.0);
            let until_ns = next_ns.unwrap_or(plan.duration_ns).max(at_ns + 1);
            self.changes.push(Change {
                at_ns,
                node,
                port_index: port.index,
                what: What::Rate(carried(rate_bps, until_ns - at_ns)),
            });
        }
        match hop.delays {
            Some((between, ports)) => {
                self.delay(wire, between, ports[direction % 2], seed(purpose::JITTER))
            }
            None => Ok(()),
        }
    }

    fn delay(
        &mut self,
        wire: &WireDirection,
        node: usize,
        port: Port,
        seed: u64,
    ) -> Result<(), String> {
        let impairments = wire.impairments.as_ref();
        let mut parent = ROOT;
        if let Some(hold) = impairments.and_then(|impairments| impairments.hold.as_ref()) {
            let slots = qdisc::netem(&Netem {
                slot_ns: Some((hold.time_ns, hold.time_ns)),
                seed,
                ..Netem::default()
            });
            let place = self.attach(node, port, parent, major::JITTER, &slots)?;
            self.delays.push(place);
            parent = inside(place.handle);
        }
        let line = |delay_ns| {
            qdisc::netem(&Netem {
                delay_ns,
                keeps_order: !wire.delay_steps.is_empty(),
                reorder: impairments.and_then(|impairments| impairments.reorder.clone()),
                seed,
                ..Netem::default()
            })
        };
        if wire.delay_ns == 0 && wire.delay_steps.is_empty() {
            return Ok(());
        }
        let place = self.attach(node, port, parent, major::DELAY, &line(wire.delay_ns))?;
        self.delays.push(place);
        let steps = wire.delay_steps.iter().map(|&(at_ns, delay_ns)| Change {
            at_ns,
            node,
            port_index: port.index,
            what: What::Delay(parent, line(delay_ns)),
        });
        self.changes.extend(steps);
        Ok(())
    }
}

/// htb has no rate of 0. During an outage it has the rate at which one packet lasts as long as the
/// outage: that packet passes, and those behind it wait until the end.
fn carried(rate_bps: u64, length_ns: u64) -> u64 {
    match rate_bps {
        0 => (PACKET_BITS * NS_PER_S / length_ns).max(LEAST_BPS),
        _ => rate_bps,
    }
}

/// Whether a direction needs a delaying node.
fn delays(wire: &WireDirection) -> bool {
    let holds = wire
        .impairments
        .as_ref()
        .is_some_and(|impairments| impairments.hold.is_some());
    wire.delay_ns > 0 || !wire.delay_steps.is_empty() || holds
}

fn wires(link: &Link) -> Result<[&WireDirection; 2], String> {
    let wire = link.medium.wire();
    wire.ok_or_else(|| "links: a kernel's links are wires".into())
}
