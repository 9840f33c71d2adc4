//! The hosts at both ends of the network: connections, and what lies between them and the row of links.
//! Must never know where a packet goes once it has entered the row.

mod access;
mod connection;
mod departures;
mod handshake;
mod pcap;
mod ports;
mod processor;

pub(crate) use connection::{connection, Application, Connection, Seeds};
pub(crate) use departures::{AccessLink, Next};
pub(crate) use handshake::{Reaction, Retries};
pub(crate) use pcap::{AckEdges, Capture, Exchange};

pub(crate) use pcap::Captured;
pub use pcap::PcapWriter;

use access::{egress_loss, lines, Line};
use ports::Ports;
use processor::Processors;

use fullpipe_net::{Direction, EgressLoss, LinkDirection};
use fullpipe_plan::{Flow, Hosts as HostNumbers, Plan, Route};
use fullpipe_tcp::{Burst, Data};

use crate::agenda::Agenda;
use crate::packet::{Body, InFlight, IpHeader};

/// The numbers by which the network knows flows: connections of the plan's flows first, then probes, pages
/// and streams of datagrams, then all other connections.
#[derive(Clone, Copy)]
pub(crate) struct FlowIds {
    flows: usize,
    probes: usize,
    pages: usize,
    streams: usize,
}

impl FlowIds {
    fn new(plan: &Plan) -> Self {
        Self {
            flows: plan.flows.len(),
            probes: plan.probes.len(),
            pages: plan.pages.len(),
            streams: plan.datagrams.len(),
        }
    }

    fn others(self) -> usize {
        self.probes + self.pages + self.streams
    }

    /// Of a connection.
    #[inline]
    pub(crate) fn of_connection(self, connection: usize) -> usize {
        match connection < self.flows {
            true => connection,
            false => connection + self.others(),
        }
    }

    /// The connection of a flow id that is one's.
    #[inline]
    pub(crate) fn connection(self, flow_id: u32) -> usize {
        let flow_id = flow_id as usize;
        match flow_id < self.flows {
            true => flow_id,
            false => flow_id - self.others(),
        }
    }

    pub(crate) fn of_probe(self, probe: usize) -> usize {
        self.flows + probe
    }

    /// The probe of a flow id that is one's.
    pub(crate) fn probe(self, flow_id: u32) -> usize {
        flow_id as usize - self.flows
    }

    pub(crate) fn of_page(self, page: u32) -> usize {
        self.flows + self.probes + page as usize
    }

    /// The stream of a flow id that is one's.
    pub(crate) fn stream(self, flow_id: u32) -> u32 {
        flow_id - (self.flows + self.probes + self.pages) as u32
    }

    pub(crate) fn of_stream(self, stream: u32) -> usize {
        self.flows + self.probes + self.pages + stream as usize
    }
}

/// Routes of the flow ids that a plan begins with.
pub(crate) fn routes(plan: &Plan) -> impl Iterator<Item = Route> + '_ {
    let flows = plan.flows.iter().map(|flow| flow.route);
    let probes = plan.probes.iter().map(|probe| probe.route);
    let pages = plan.pages.iter().map(|page| page.route);
    let streams = plan.datagrams.iter().map(|stream| stream.route);
    flows.chain(probes).chain(pages).chain(streams)
}

/// The hosts.
pub(crate) struct Hosts {
    pub(crate) connections: Vec<Connection>,
    pub(crate) ids: FlowIds,
    /// By flow id * 2 + direction.
    lines: Vec<Line>,
    /// By flow id.
    headers: Vec<IpHeader>,
    ports: Ports,
    pub(crate) loss: EgressLoss,
    /// `None`: packets cost nothing.
    pub(crate) processors: Option<Processors>,
    sending_costs: bool,
    pub(crate) capture: Capture,
    /// Bursts that TCP handed down last.
    pub(crate) outgoing: Vec<Burst>,
}

impl Hosts {
    /// The hosts of a plan; the connections of its flows are added by [`Self::add`].
    pub(crate) fn new(plan: &Plan, connections: Vec<Connection>, pcap: Option<PcapWriter>) -> Self {
        let mut hosts = Self {
            connections,
            ids: FlowIds::new(plan),
            lines: Vec::new(),
            headers: Vec::new(),
            ports: Ports::default(),
            loss: egress_loss(plan),
            processors: Processors::new(plan),
            sending_costs: plan.host.work.as_ref().is_some_and(|work| work.send_ns > 0),
            capture: Capture::new(pcap),
            outgoing: Vec::with_capacity(64),
        };
        for flow in &plan.flows {
            hosts.add_lines(plan, Some(flow), flow.hosts, flow.dscp);
        }
        let probes = plan.probes.iter().map(|probe| (probe.hosts, probe.dscp));
        let pages = plan.pages.iter().map(|page| (page.hosts, page.dscp));
        let streams = plan
            .datagrams
            .iter()
            .map(|stream| (stream.hosts, stream.dscp));
        for (numbers, dscp) in probes.chain(pages).chain(streams) {
            hosts.add_lines(plan, None, numbers, dscp);
        }
        hosts
    }

    fn add_lines(&mut self, plan: &Plan, flow: Option<&Flow>, numbers: HostNumbers, dscp: u8) {
        let flow_id = self.headers.len() as u32;
        self.lines.extend(lines(plan, flow, flow_id));
        let ports = self.ports.open();
        self.headers.push(IpHeader::new(numbers, dscp, ports));
    }

    /// Adds a connection that opens during the run; returns its flow id.
    pub(crate) fn add(&mut self, plan: &Plan, flow: &Flow, connection: Connection) -> usize {
        let flow_id = self.headers.len();
        self.add_lines(plan, Some(flow), flow.hosts, flow.dscp);
        self.connections.push(connection);
        flow_id
    }

    /// Puts a connection in the place of one that is over; returns its flow id. It has ports of its own.
    pub(crate) fn replace(
        &mut self,
        plan: &Plan,
        flow: &Flow,
        at: usize,
        connection: Connection,
    ) -> usize {
        let flow_id = self.ids.of_connection(at);
        let [forward, reverse] = lines(plan, Some(flow), flow_id as u32);
        self.lines[flow_id * 2] = forward;
        self.lines[flow_id * 2 + 1] = reverse;
        self.ports.close(self.headers[flow_id].ports());
        let ports = self.ports.open();
        self.headers[flow_id] = IpHeader::new(flow.hosts, flow.dscp, ports);
        self.connections[at] = connection;
        flow_id
    }

    /// The last flow id shares the addresses and ports of the one before it.
    pub(crate) fn share_ports(&mut self) {
        if let [.., before, last] = &mut self.headers[..] {
            *last = last.with_ports(before.ports());
        }
    }

    /// The number of a flow's addresses and ports.
    pub(crate) fn ports(&self, flow_id: usize) -> u32 {
        self.headers[flow_id].ports()
    }

    /// The header of a flow's packets in this direction.
    #[inline]
    pub(crate) fn header(&self, flow_id: usize, direction: Direction) -> IpHeader {
        self.headers[flow_id].with_direction(direction)
    }

    /// A packet of a flow id.
    #[inline]
    pub(crate) fn packet(&self, flow_id: usize, direction: Direction, body: Body) -> InFlight {
        InFlight {
            flow_id: flow_id as u32,
            header: self.header(flow_id, direction),
            body,
        }
    }

    /// A packet of a connection leaves its host; false if it is lost at the egress.
    #[inline(always)] // for every ACK
    pub(crate) fn sends(
        &mut self,
        connection: usize,
        direction: Direction,
        packet: &mut InFlight,
    ) -> bool {
        let passes = self.loss.passes(direction, packet);
        self.connections[connection].packets_in_flight += u32::from(passes);
        passes
    }

    /// The network has made a copy of a packet.
    pub(crate) fn packet_added(&mut self, packet: &InFlight) {
        if packet.body.is_of_connection() {
            let connection = self.ids.connection(packet.flow_id);
            self.connections[connection].packets_in_flight += 1;
        }
    }

    /// Whether packets that leave this link in this direction are at their host at once.
    #[inline(always)] // for every data packet
    pub(crate) fn is_open_behind(&self, flow_id: u32, last: LinkDirection) -> bool {
        self.lines[flow_id as usize * 2 + last.direction().index()].is_open_behind(last)
    }

    /// A packet leaves the row for its flow's access line. True if it reaches its host now.
    #[inline(always)] // for every ACK
    pub(crate) fn enter_line(
        &mut self,
        agenda: &mut Agenda,
        at_ns: u64,
        direction: Direction,
        packet: &InFlight,
    ) -> bool {
        let enters_ns = match packet.body {
            Body::Ack(_) => {
                let connection = self.ids.connection(packet.flow_id);
                let host = &self.connections[connection].receiver_host;
                host.free_ns().max(at_ns)
            }
            _ => at_ns,
        };
        let index = packet.flow_id as usize * 2 + direction.index();
        self.lines[index].carries_now(agenda, index, enters_ns, packet)
    }

    /// The access line with this index.
    #[inline(always)] // for every ACK
    pub(crate) fn line(&mut self, index: usize) -> &mut Line {
        &mut self.lines[index]
    }

    /// Whether sending takes processor time.
    pub(crate) fn sending_costs(&self) -> bool {
        self.sending_costs
    }

    /// A connection's sender makes a burst; returns when it is done.
    pub(crate) fn make_burst(&mut self, now_ns: u64, connection: usize, packets: u32) -> u64 {
        let direction = self.connections[connection].data_direction;
        let flow_id = self.ids.of_connection(connection);
        let index = self.headers[flow_id].host_at_end(direction.back());
        self.processors.as_mut().map_or(now_ns, |processors| {
            processors.make_burst(now_ns, index, packets)
        })
    }

    /// A receiver makes an ACK. True if it leaves now, else its host holds it until it is made, or it is
    /// lost.
    #[inline(never)] // in most runs ACKs take no time
    pub(crate) fn make_ack(
        &mut self,
        agenda: &mut Agenda,
        connection: usize,
        direction: Direction,
        packet: &mut InFlight,
    ) -> bool {
        let now_ns = agenda.now_ns();
        let index = packet.header.host_at_end(direction.back());
        let made_ns = self
            .processors
            .as_mut()
            .map_or(now_ns, |processors| processors.make_ack(now_ns, index));
        if !self.sends(connection, direction, packet) {
            return false;
        }
        match &mut self.processors {
            Some(processors) if made_ns > now_ns || processors.holds_acks(index) => {
                processors.hold_ack(agenda, made_ns, index, *packet);
                false
            }
            _ => true,
        }
    }

    /// A connection's sender sends what it may; the bursts are in [`Self::outgoing`].
    #[inline(always)] // behind every ACK
    pub(crate) fn transmit(&mut self, now_ns: u64, connection: usize) {
        let sender = &mut self.connections[connection].sender;
        sender.transmit(now_ns, &mut self.outgoing);
    }

    /// Captures data that leave a sender's host.
    pub(crate) fn capture_data(&mut self, connection: usize, data: &Data) {
        let sender = &self.connections[connection].sender;
        let begin = sender.sequence_of(data);
        let of = self.captured(connection);
        self.capture.write(|pcap| pcap.data(of, begin, data));
    }

    /// What a capture says of a connection.
    pub(crate) fn captured(&self, connection: usize) -> Captured {
        Captured {
            flow: connection as u32,
            dscp: self.headers[self.ids.of_connection(connection)].dscp(),
        }
    }
}
