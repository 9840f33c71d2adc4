//! The parts that every network of namespaces is made of: routers, hosts, bottlenecks and the qdiscs on
//! their ports. This module must not know how the parts are joined.

use std::net::Ipv4Addr;

use fullpipe_net::impair::{jitter, loss, policer};
use fullpipe_net::{derive_seed, purpose, Qdisc, WireDirection};
use fullpipe_plan::{AckPolicy, EcnKind, Flow, FlowDirection, Link, Pacing, Plan, Text};

use super::change::Change;
use super::groups::{Groups, ReceiverSide, SenderSide};
use super::link::{self, End, Metrics, Port};
use super::major;
use super::namespace::Node;
use super::qdisc::{self, handle, inside, Netem, Shape, Spec, ROOT};

/// Index of the first router.
pub(super) const ROUTER: usize = 0;
pub(super) const SENDERS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);
pub(super) const RECEIVERS: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 0);
/// Linux's first value of tcp_rmem and of tcp_wmem.
const LEAST_BUFFER: u64 = 4096;
/// Networks on either side.
pub(super) const MAX_HOSTS: usize = 1 << 15;

/// A qdisc of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) node: usize,
    pub(crate) port_index: u32,
    pub(crate) handle: u32,
}

/// Where random loss happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossPlace {
    pub(crate) netem: Place,
    /// netem also counts what is dropped below it.
    pub(crate) below: Option<Place>,
    /// At the port of a host that sends bursts: netem counts a burst as one.
    pub(crate) is_of_bursts: bool,
}

/// Where random marks are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarksSeen {
    /// The node whose IP input sees them: it counts the packets that bursts were cut into.
    pub(crate) node: usize,
    /// The direction whose queue's marks it sees too.
    pub(crate) with_queue_of: usize,
}

/// What is sampled of one direction of a link.
#[derive(Clone, Debug, Default)]
pub(crate) struct DirectionQueue {
    /// The queue's name in recordings.
    pub(crate) name: Text,
    /// `None`: that direction has no bottleneck.
    pub(crate) queue: Option<Place>,
    pub(crate) losses: Vec<LossPlace>,
    /// The policer before the queue, which counts the queue's drops too.
    pub(crate) policed: Option<Place>,
    /// The delay behind it, if that drops what it has no room for.
    pub(crate) limited: Option<Place>,
    /// `None`: random loss marks nothing.
    pub(crate) marks_seen: Option<MarksSeen>,
}

/// A path, ready for use.
#[derive(Default)]
pub(crate) struct Topology {
    pub(crate) nodes: Vec<Node>,
    /// (node, address) of the two ends of each flow: on the senders' side, on the receivers' side.
    pub(crate) flow_ends: Vec<[(usize, Ipv4Addr); 2]>,
    /// The same for each probe; empty where this end sends none.
    pub(crate) probe_ends: Vec<[(usize, Ipv4Addr); 2]>,
    /// Forward and reverse of each link.
    pub(crate) directions: Vec<DirectionQueue>,
    /// Changes during the run, in the order of time.
    pub(crate) changes: Vec<Change>,
    /// The ends of the pages, and then the streams of datagrams.
    pub(crate) application_ends: Vec<[(usize, Ipv4Addr); 2]>,
    /// The ends of the senders of all groups of traffic.
    pub(crate) traffic_ends: Vec<[(usize, Ipv4Addr); 2]>,
    /// netem that only delays: it must never drop.
    pub(crate) delays: Vec<Place>,
    /// What was attached where, in tc's words.
    pub(crate) lines: Vec<String>,
}

impl Topology {
    /// Sets node and address of the members of each group, from those of senders and receivers.
    pub(super) fn set_ends(
        &mut self,
        groups: &Groups,
        senders: &[(usize, Ipv4Addr)],
        receivers: &[(usize, Ipv4Addr)],
    ) {
        let ends = |pairs: &[(usize, usize)]| {
            let of = |&(sender, receiver): &(usize, usize)| [senders[sender], receivers[receiver]];
            pairs.iter().map(of).collect()
        };
        self.flow_ends = ends(&groups.flows);
        self.probe_ends = ends(&groups.probes);
        self.application_ends = ends(&groups.applications);
        self.traffic_ends = ends(&groups.traffic);
    }

    pub(super) fn of_nodes(nodes: Vec<Node>, links: &[Link]) -> Self {
        let queue = |name| DirectionQueue {
            name,
            ..DirectionQueue::default()
        };
        Self {
            nodes,
            directions: links
                .iter()
                .flat_map(Link::queue_names)
                .map(queue)
                .collect(),
            ..Self::default()
        }
    }

    /// An existing path towards `far`, of which nothing is configured here.
    pub(crate) fn beyond_our_control(far: Option<Ipv4Addr>, probes: usize) -> Self {
        let ends = |far| [(0, Ipv4Addr::UNSPECIFIED), (0, far)];
        Self {
            probe_ends: far.map_or_else(Vec::new, |far| vec![ends(far); probes]),
            ..Self::of_nodes(Vec::new(), &[])
        }
    }

    /// A sender's host, joined to the router `hub`.
    pub(super) fn sender(
        &mut self,
        plan: &Plan,
        side: &SenderSide,
        index: usize,
        hub: usize,
    ) -> Result<(usize, Ipv4Addr), String> {
        let node = Node::create(format!("sender {index}"))?;
        configure_host(&node, plan, side.ecn)?;
        self.nodes.push(node);
        let at = self.nodes.len() - 1;
        let (gateway, address) = network(SENDERS, index);
        let name = format!("s{index}");
        let (port, router_port) = self.join(
            (at, "eth0", address),
            (hub, &name, gateway),
            plan.access.mtu_bytes,
        )?;
        self.host_route(at, port, gateway, plan)?;
        link::know_neighbour(&mut self.nodes[hub], router_port, port)?;
        if !plan.host.arp {
            link::know_neighbour(&mut self.nodes[at], port, router_port)?;
        }
        let loss = plan.access.loss.as_ref().filter(|loss| loss.per_burst);
        let seed = derive_seed(plan.seed, purpose::LOSS, index as u32);
        self.egress(
            plan,
            (at, port, 0),
            loss.map(|loss| (loss, seed)),
            FlowDirection::Up,
        )?;
        self.way_back(plan, side, index, (hub, router_port))?;
        Ok((at, address))
    }

    /// Jitter and delay from the router to a sender. A slot's time is drawn when its first packet
    /// comes, so the slots have a netem of their own before the delay: netem_dequeue() draws a new
    /// slot whenever the last one is over at the time the head packet is due.
    fn way_back(
        &mut self,
        plan: &Plan,
        side: &SenderSide,
        index: usize,
        (hub, port): (usize, Port),
    ) -> Result<(), String> {
        let mut delay = Netem {
            delay_ns: side.reverse_delay_ns,
            seed: derive_seed(plan.seed, purpose::JITTER, index as u32),
            ..Netem::default()
        };
        let mut parent = ROOT;
        if let Some(jitter) = &side.jitter {
            match jitter.shape {
                jitter::Shape::PerPacket => delay.jitter_ns = jitter.max_ns,
                jitter::Shape::Slotted => {
                    let slots = Netem {
                        slot_ns: Some((0, jitter.max_ns)),
                        seed: delay.seed,
                        ..Netem::default()
                    };
                    let slots = qdisc::netem(&slots);
                    let place = self.attach(hub, port, parent, major::JITTER, &slots)?;
                    self.delays.push(place);
                    parent = inside(handle(major::JITTER));
                }
            }
        }
        if delay.delay_ns > 0 || delay.jitter_ns > 0 {
            let place = self.attach(hub, port, parent, major::DELAY, &qdisc::netem(&delay))?;
            self.delays.push(place);
        }
        Ok(())
    }

    /// A receiver's host, and the port of `hub` to it.
    pub(super) fn receiver(
        &mut self,
        plan: &Plan,
        side: &ReceiverSide,
        index: usize,
        hub: usize,
    ) -> Result<((usize, Ipv4Addr), Port), String> {
        let node = Node::create(format!("receiver {index}"))?;
        configure_host(&node, plan, None)?;
        // With ECN switched off a host would refuse it to every connection.
        answer_ecn(&node, plan)?;
        node.set("icmp_ratelimit", "0")?;
        self.nodes.push(node);
        let at = self.nodes.len() - 1;
        let (gateway, address) = network(RECEIVERS, index);
        let name = format!("d{index}");
        let (port, hub_port) = self.join(
            (at, "eth0", address),
            (hub, &name, gateway),
            plan.access.mtu_bytes,
        )?;
        self.host_route(at, port, gateway, plan)?;
        link::know_neighbour(&mut self.nodes[at], port, hub_port)?;
        link::know_neighbour(&mut self.nodes[hub], hub_port, port)?;
        let alone = (hub == ROUTER).then_some(plan.access.reverse_loss.as_ref());
        let seed = derive_seed(plan.seed, purpose::REVERSE_LOSS, index as u32);
        let loss = alone.flatten().map(|loss| (loss, seed));
        self.egress(plan, (at, port, 1), loss, FlowDirection::Down)?;
        if side.forward_delay_ns > 0 {
            let delay = qdisc::netem(&Netem {
                delay_ns: side.forward_delay_ns,
                ..Netem::default()
            });
            let place = self.attach(hub, hub_port, ROOT, major::DELAY, &delay)?;
            self.delays.push(place);
        }
        Ok(((at, address), hub_port))
    }

    /// What a host's own port does to packets: loss, its own rate, pacing.
    fn egress(
        &mut self,
        plan: &Plan,
        (at, port, index): (usize, Port, usize),
        loss: Option<(&loss::Params, u64)>,
        direction: FlowDirection,
    ) -> Result<(), String> {
        let flows = plan.flows.iter().map(|flow| flow.direction);
        let sends = flows
            .chain(plan.traffic.iter().map(|traffic| traffic.direction))
            .any(|own| own == direction);
        let mut parent = ROOT;
        let mut loss_place = None;
        if let Some((loss, seed)) = loss {
            let place = self.attach(at, port, parent, major::LOSS, &loss_spec(loss, seed))?;
            loss_place = Some((place, loss.per_burst));
            parent = inside(place.handle);
        }
        let mut child = None;
        if sends && plan.host.access_rate_bps > 0 {
            let link = qdisc::link_rate(plan.host.access_rate_bps, plan.access.mtu_bytes);
            let place = self.attach(at, port, parent, major::ACCESS, &link)?;
            child = Some(place);
            parent = inside(place.handle);
        }
        if sends && plan.host.pacing == Pacing::Fq {
            let place = self.attach(at, port, parent, major::PACING, &qdisc::pacing_fq())?;
            child = child.or(Some(place));
        }
        let losses = loss_place.map(|(netem, is_of_bursts)| LossPlace {
            netem,
            below: child,
            is_of_bursts,
        });
        self.directions[index].losses.extend(losses);
        Ok(())
    }

    /// Loss, rate and queue of one direction.
    pub(super) fn bottleneck(
        &mut self,
        place: (usize, Port, usize),
        loss: Option<(&loss::Params, u64)>,
        rate: Option<(Shape, &Qdisc)>,
    ) -> Result<(), String> {
        let loss = loss.map(|(loss, seed)| loss_spec(loss, seed));
        self.impaired_bottleneck(place, (loss, None), rate)
    }

    /// The same with any qdisc in the place of loss, and a policer behind it.
    pub(super) fn impaired_bottleneck(
        &mut self,
        (at, port, index): (usize, Port, usize),
        (loss, policer): (Option<Spec>, Option<&policer::Params>),
        rate: Option<(Shape, &Qdisc)>,
    ) -> Result<(), String> {
        let mut parent = ROOT;
        let mut loss_place = None;
        if let Some(loss) = loss {
            let place = self.attach(at, port, parent, major::LOSS, &loss)?;
            loss_place = Some(place);
            parent = inside(place.handle);
        }
        let mut policed = None;
        if let Some(params) = policer {
            let place = self.attach(at, port, parent, major::POLICER, &qdisc::policed())?;
            let node = &mut self.nodes[at];
            let line = qdisc::police(node, port.index, place.handle, params)?;
            self.lines.push(format!("{}: {line}", self.nodes[at].name));
            policed = Some(place);
            parent = inside(place.handle);
        }
        let mut queue = None;
        if let Some((shape @ Shape::Rate(rate_bps, _), wanted)) = rate {
            let spec = qdisc::queue(wanted, rate_bps)?;
            if !wanted.shapes() {
                self.attach(at, port, parent, major::HTB, &qdisc::htb())?;
                qdisc::put_htb_class(&mut self.nodes[at], port.index, shape, true)?;
                let class = qdisc::class_line(shape);
                let line = format!("{}: class {class}", self.nodes[at].name);
                self.lines.push(line);
                parent = qdisc::HTB_CLASS;
            }
            queue = Some(self.attach(at, port, parent, major::QUEUE, &spec)?);
        }
        let losses = loss_place.map(|netem| LossPlace {
            netem,
            below: policed.or(queue),
            is_of_bursts: false,
        });
        self.directions[index].queue = queue.or(policed);
        self.directions[index].policed = policed;
        self.directions[index].losses.extend(losses);
        Ok(())
    }

    pub(super) fn attach(
        &mut self,
        node: usize,
        port: Port,
        parent: u32,
        major: u32,
        spec: &Spec,
    ) -> Result<Place, String> {
        qdisc::attach(
            &mut self.nodes[node],
            port.index,
            parent,
            handle(major),
            spec,
        )?;
        self.lines
            .push(format!("{}: {}", self.nodes[node].name, spec.line));
        Ok(Place {
            node,
            port_index: port.index,
            handle: handle(major),
        })
    }

    fn host_route(
        &mut self,
        at: usize,
        port: Port,
        gateway: Ipv4Addr,
        plan: &Plan,
    ) -> Result<(), String> {
        let node = &mut self.nodes[at];
        node.enter()?;
        link::set_up(node, 1)?;
        let metrics = Metrics {
            initial_cwnd_packets: plan.host.initial_cwnd_packets,
            quick_ack: plan.host.ack_policy == AckPolicy::EveryPacket,
        };
        let everything = (Ipv4Addr::UNSPECIFIED, 0);
        link::route(node, port, everything, gateway, metrics)?;
        link::set_gso_max_segments(node, port, plan.host.gso_max_segments)
    }

    pub(super) fn join(
        &mut self,
        one: (usize, &str, Ipv4Addr),
        other: (usize, &str, Ipv4Addr),
        mtu_bytes: u32,
    ) -> Result<(Port, Port), String> {
        let ports = {
            let [first, second] = self
                .nodes
                .get_disjoint_mut([one.0, other.0])
                .map_err(|_| "a link joins two different nodes".to_owned())?;
            let end = |node, (_, name, address): (usize, &str, Ipv4Addr)| End {
                node,
                name: name.to_owned(),
                address,
            };
            link::join(end(first, one), end(second, other), mtu_bytes)?
        };
        Ok(ports)
    }
}

/// The rate and the queue of a direction that has a rate.
pub(super) fn rate_of(wire: &WireDirection) -> Option<(Shape, &Qdisc)> {
    let shape = |rate_bps| (Shape::Rate(rate_bps, wire.overhead), &wire.qdisc);
    wire.rate_bps.map(shape)
}

fn loss_spec(loss: &loss::Params, seed: u64) -> Spec {
    qdisc::netem(&Netem {
        loss: Some(loss.clone()),
        seed,
        ..Netem::default()
    })
}

/// Gateway and host of the `index`th network of a side.
fn network(side: Ipv4Addr, index: usize) -> (Ipv4Addr, Ipv4Addr) {
    let base = u32::from(side) + ((index as u32) << 8);
    (Ipv4Addr::from(base + 1), Ipv4Addr::from(base + 2))
}

pub(super) fn router(name: &str) -> Result<Node, String> {
    let node = Node::create(name.to_owned())?;
    node.set("ip_forward", "1")?;
    for scope in ["all", "default"] {
        node.set(&format!("conf/{scope}/rp_filter"), "0")?;
    }
    Ok(node)
}

/// TCP of a host, in the namespace that the thread is in.
fn configure_host(node: &Node, plan: &Plan, ecn: Option<EcnKind>) -> Result<(), String> {
    let host = &plan.host;
    let sizes = |first: u64, most: u64| {
        let most = most.min(i32::MAX as u64);
        format!("{} {} {most}", LEAST_BUFFER.min(most), first.min(most))
    };
    node.set("tcp_rmem", &sizes(131_072, host.rmem_max_bytes))?;
    node.set("tcp_wmem", &sizes(16_384, host.wmem_max_bytes))?;
    node.set("tcp_no_metrics_save", "1")?;
    if !plan.traffic.is_empty() {
        // The ports of a finished flow are reused at once.
        node.set("tcp_max_tw_buckets", "0")?;
    }
    for (name, value) in host.sysctl.named() {
        node.set(name, &value.to_string())
            .map_err(|error| format!("host.sysctl: {error}"))?;
    }
    ask_for_ecn(node, ecn)?;
    node.set("ping_group_range", "0 2147483647")
}

/// The ECN that connections from a host request (enum tcp_ecn_mode of include/net/tcp_ecn.h). Kernels before
/// 7.0 take no value above 2.
fn ask_for_ecn(node: &Node, ecn: Option<EcnKind>) -> Result<(), String> {
    const ACCURATE: &str = "3";
    let set = |value| node.set("tcp_ecn", value);
    match ecn {
        None => set("0"),
        Some(EcnKind::Classic) => set("1"),
        Some(EcnKind::Accecn) => set(ACCURATE).map_err(|error| {
            format!(
                "ecn: accecn needs a kernel that negotiates accurate ECN, Linux 7.0 or later \
                 ({error})"
            )
        }),
        // Without it the marks come by DCTCP's echo of each packet.
        Some(EcnKind::L4s) => set(ACCURATE).or_else(|_| set("1")),
    }
}

/// The ECN that connections to a host get: the most that they request and the kernel supports.
fn answer_ecn(node: &Node, plan: &Plan) -> Result<(), String> {
    let set = |value| node.set("tcp_ecn", value);
    let is_accurate = |flow: &Flow| flow.ecn && flow.ecn_kind != EcnKind::Classic;
    match plan.flows.iter().any(is_accurate) {
        true => set("5").or_else(|_| set("2")),
        false => set("2"),
    }
}
