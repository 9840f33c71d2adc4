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

use fullpipe_net::{derive_seed, purpose, Overhead, WireDirection};
use fullpipe_plan::{Link, Plan};

use super::change::{Change, What};
use super::groups::Groups;
use super::link::{self, Metrics, Port};
use super::major;
use super::qdisc::{self, inside, Netem, Shape, ROOT};
use super::topology::{rate_of, router, Place, Topology, MAX_HOSTS, RECEIVERS, SENDERS};

/// The most that htb lets a class owe (`mbuffer`): in a longer outage a packet passes now and then.
const LONGEST_DEBT_NS: u64 = 60_000_000_000;
/// How long before the end of an outage the next rate is set.
const OUTAGE_LEAD_NS: u64 = 10_000_000;

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
        let rate = rate_of(wire);
        let policer = impairments.and_then(|impairments| impairments.policer.as_ref());
        self.impaired_bottleneck((node, port, direction), (loss, policer), rate)?;
        for (at_ns, shape) in shapes(&wire.rate_steps, wire.overhead, plan.duration_ns) {
            self.changes.push(Change {
                at_ns,
                node,
                port_index: port.index,
                what: What::Shape(shape),
            });
        }
        match hop.delays {
            Some((between, ports)) => {
                let limited =
                    self.delay(wire, between, ports[direction % 2], seed(purpose::JITTER))?;
                self.directions[direction].limited = limited;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Returns the netem that may drop packets.
    fn delay(
        &mut self,
        wire: &WireDirection,
        node: usize,
        port: Port,
        seed: u64,
    ) -> Result<Option<Place>, String> {
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
        let limit = impairments.and_then(|impairments| impairments.delay_limit_packets);
        let line = |delay_ns| {
            qdisc::netem(&Netem {
                delay_ns,
                keeps_order: !wire.delay_steps.is_empty(),
                reorder: impairments.and_then(|impairments| impairments.reorder.clone()),
                limit,
                spread: impairments.and_then(|impairments| impairments.netem_jitter.clone()),
                seed,
                ..Netem::default()
            })
        };
        if wire.delay_ns == 0 && wire.delay_steps.is_empty() {
            return Ok(None);
        }
        let place = self.attach(node, port, parent, major::DELAY, &line(wire.delay_ns))?;
        if limit.is_none() {
            self.delays.push(place);
        }
        let steps = wire.delay_steps.iter().map(|&(at_ns, delay_ns)| Change {
            at_ns,
            node,
            port_index: port.index,
            what: What::Delay(parent, line(delay_ns)),
        });
        self.changes.extend(steps);
        Ok(limit.map(|_| place))
    }
}

/// The shapes of a direction's rate and their times. The rate behind an outage is set before its end: what
/// the outage's packet owes stays owed until then, while a change that came too late would let another
/// packet of the outage pass.
fn shapes(
    rate_steps: &[(u64, u64)],
    overhead: Option<Overhead>,
    duration_ns: u64,
) -> Vec<(u64, Shape)> {
    let mut shapes = Vec::new();
    let mut lead_ns = 0;
    for (index, &(at_ns, rate_bps)) in rate_steps.iter().enumerate() {
        let next_ns = rate_steps.get(index + 1).map(|step| step.0);
        let length_ns = next_ns.unwrap_or(duration_ns).max(at_ns + 1) - at_ns;
        let shape = match rate_bps {
            0 => Shape::Outage(length_ns / length_ns.div_ceil(LONGEST_DEBT_NS)),
            _ => Shape::Rate(rate_bps, overhead),
        };
        shapes.push((at_ns - lead_ns, shape));
        lead_ns = match rate_bps {
            0 => (length_ns / 2).min(OUTAGE_LEAD_NS),
            _ => 0,
        };
    }
    shapes
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

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn an_outage_lasts_as_one_packet_and_its_end_is_told_in_advance() {
        let steps = [(0, 8_000_000), (4 * S, 0), (7 * S, 8_000_000)];
        let rate = Shape::Rate(8_000_000, None);
        assert_eq!(
            shapes(&steps, None, 12 * S),
            [
                (0, rate),
                (4 * S, Shape::Outage(3 * S)),
                (7 * S - OUTAGE_LEAD_NS, rate)
            ]
        );
        // Shorter than twice the lead, longer than htb remembers, and to the end of the run.
        let short = shapes(&[(S, 0), (S + 1000, 8000)], None, 2 * S);
        assert_eq!(short[1], (S + 500, Shape::Rate(8000, None)));
        assert_eq!(
            shapes(&[(S, 0)], None, 151 * S),
            [(S, Shape::Outage(50 * S))]
        );
    }
}
