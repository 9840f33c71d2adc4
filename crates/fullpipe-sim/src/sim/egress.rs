//! What leaves the hosts: handshakes, what applications write and TCP sends, probes. Must never know where
//! packets go in the network, nor what comes back.

use fullpipe_net::{Direction, LinkDirection, Packet};
use fullpipe_plan::{Pacing, ProbeKind};
use fullpipe_tcp::{Burst, Data, HandshakePacket, SenderEvent};
use fullpipe_workload::Writing;

use super::Simulation;
use crate::agenda::Event;
use crate::hosts::{AccessLink, Application, Exchange, Next, Retries};
use crate::packet::{Body, InFlight, IpHeader};

/// What all data packets of a connection have in common.
struct DataPath {
    connection: usize,
    flow_id: u32,
    header: IpHeader,
    /// Of its first link.
    enters: LinkDirection,
}

impl Simulation<'_> {
    /// A connection starts: its client sends a SYN.
    pub(super) fn start(&mut self, connection: usize) {
        if self.endpoints.has(connection) {
            return self.start_endpoints(connection);
        }
        let now_ns = self.now_ns();
        let started = &mut self.hosts.connections[connection];
        started.is_started = true;
        let syn = started.handshake.connect(now_ns);
        let base_rtt_ns = started.base_rtt_ns;
        self.record.event(now_ns, connection, "start", 0);
        self.set_handshake_timer(connection);
        // Neighbours are resolved once, by the first exchange.
        if self.plan.host.arp && now_ns < base_rtt_ns {
            self.hosts.connections[connection].handshake.hold(syn);
            let event = Event::Resolved(connection as u32);
            self.agenda.schedule(now_ns + base_rtt_ns, event);
        } else {
            self.send_handshake(connection, Direction::Forward, syn);
        }
    }

    /// The destination of the first SYN is resolved.
    pub(super) fn resolved(&mut self, connection: usize) {
        if let Some(syn) = self.hosts.connections[connection].handshake.release() {
            self.send_handshake(connection, Direction::Forward, syn);
        }
    }

    /// Sends a packet of a handshake.
    pub(super) fn send_handshake(
        &mut self,
        connection: usize,
        direction: Direction,
        packet: HandshakePacket,
    ) {
        self.capture_handshake(connection, direction, &packet, true);
        self.send_control(connection, direction, Body::Handshake(packet));
    }

    /// Sends a packet without data.
    pub(super) fn send_control(&mut self, connection: usize, direction: Direction, body: Body) {
        self.record.count_sent(&body);
        let flow_id = self.hosts.ids.of_connection(connection);
        let mut packet = self.hosts.packet(flow_id, direction, body);
        if self.hosts.sends(connection, direction, &mut packet) {
            self.enter_row(direction, &packet);
        } else {
            self.record.count_lost(&packet.body);
        }
    }

    /// A timer of a handshake may have expired; a later deadline has an event of its own.
    pub(super) fn handshake_timer(&mut self, connection: usize) {
        let now_ns = self.now_ns();
        let opening = &mut self.hosts.connections[connection];
        let Retries {
            has_failed,
            syn,
            syn_ack,
        } = opening.handshake.on_timer(now_ns);
        let client_sends = opening.data_direction == Direction::Forward;
        if has_failed {
            self.record.event(now_ns, connection, "connect_timeout", 0);
            self.end_pooled_flow(connection, None);
        }
        if syn.is_some() && client_sends {
            // tcp_enter_loss() leaves the SYN a window of one packet.
            self.hosts.connections[connection].sender.syn_timed_out();
            let name = SenderEvent::Timeout.name();
            self.record.event(now_ns, connection, name, 1);
        }
        for (direction, packet) in [(Direction::Forward, syn), (Direction::Reverse, syn_ack)] {
            if let Some(packet) = packet {
                self.send_handshake(connection, direction, packet);
            }
        }
        self.set_handshake_timer(connection);
    }

    pub(super) fn set_handshake_timer(&mut self, connection: usize) {
        let handshake = &self.hosts.connections[connection].handshake;
        if let Some(at_ns) = handshake.timer_ns() {
            let event = Event::Handshake(connection as u32);
            self.agenda.schedule(at_ns, event);
        }
    }

    /// Captures are taken at the sender's host: its own packets as they leave, others as they arrive.
    pub(super) fn capture_handshake(
        &mut self,
        connection: usize,
        direction: Direction,
        packet: &HandshakePacket,
        leaves: bool,
    ) {
        let now_ns = self.now_ns();
        let captured = &self.hosts.connections[connection];
        let (from_sender, mss) = (
            direction == captured.data_direction,
            captured.sender.mss_bytes(),
        );
        if from_sender == leaves {
            let of = self.hosts.captured(connection);
            self.hosts
                .capture
                .write(|pcap| pcap.handshake(now_ns, of, from_sender, mss, packet));
        }
    }

    /// An application stops writing and closes.
    pub(super) fn stop(&mut self, connection: usize) {
        if self.endpoints.has(connection) {
            return self.stop_endpoints(connection);
        }
        let stopped = &mut self.hosts.connections[connection];
        stopped.sender.stop();
        stopped.is_stopped = true;
        self.transmit(connection); // its FIN
    }

    /// An application writes.
    pub(super) fn write(&mut self, connection: usize) {
        let now_ns = self.now_ns();
        let flow = self.plan.flows.get(connection);
        let writing = &mut self.hosts.connections[connection];
        let sender = &mut writing.sender;
        let next_ns = match &mut writing.application {
            Application::Pool(Some(flow)) => {
                self.workloads.pool.write_chunk(flow, sender);
                None
            }
            _ if writing.is_stopped => return,
            Application::Pattern {
                writer: Some(writer),
                ..
            } => {
                let (amount, next_ns) = writer.step();
                match amount {
                    Writing::Bytes(bytes) => sender.write_bytes(bytes),
                    Writing::Unlimited => sender.set_unlimited(true),
                    Writing::Nothing => sender.set_unlimited(false),
                }
                Some(next_ns)
            }
            Application::Paced { interval_ns } => {
                let amount_bytes = flow.and_then(|flow| flow.amount_bytes);
                let left_bytes = amount_bytes.map(|amount| amount - sender.written_bytes());
                match left_bytes {
                    Some(last) if last <= u64::from(sender.mss_bytes()) => {
                        sender.write_last(last);
                        None
                    }
                    _ => {
                        sender.write(1);
                        Some(now_ns + *interval_ns)
                    }
                }
            }
            _ => return,
        };
        if let Some(at_ns) = next_ns {
            self.agenda.schedule(at_ns, Event::Write(connection as u32));
        }
        self.transmit(connection);
    }

    /// A sender sends what it may.
    #[inline(never)]
    pub(crate) fn transmit(&mut self, connection: usize) {
        self.transmit_inline(connection);
    }

    #[inline(always)] // behind every ACK
    pub(super) fn transmit_inline(&mut self, connection: usize) {
        self.hosts.transmit(self.agenda.now_ns(), connection);
        self.send_out(connection);
    }

    /// A timer of a sender may have expired.
    pub(super) fn sender_timer(&mut self, connection: usize) {
        let now_ns = self.now_ns();
        let hosts = &mut self.hosts;
        let timed = &mut hosts.connections[connection];
        if !timed.sender_alarm.rings(now_ns) {
            return;
        }
        let timer_ns = timed.sender.timer_ns();
        if timer_ns.is_none_or(|at_ns| at_ns > now_ns) {
            self.set_sender_timer(connection);
            return;
        }
        timed.sender.on_timer(now_ns, &mut hosts.outgoing);
        self.send_out(connection);
    }

    /// Sends what TCP handed down, records its events, and sets its timer.
    #[inline(always)] // most ACKs send nothing
    fn send_out(&mut self, connection: usize) {
        if !self.hosts.outgoing.is_empty() {
            self.send_all(connection);
        }
        let sending = &self.hosts.connections[connection];
        let has_events = sending.sender.has_events();
        let sets_timer = sending.sender_may_expire_sooner();
        if has_events {
            self.record_events(connection);
        }
        if sets_timer {
            self.set_sender_timer(connection);
        }
    }

    #[inline(never)]
    fn send_all(&mut self, connection: usize) {
        while !self.hosts.outgoing.is_empty() {
            // What leaves may cause something else to be sent.
            let mut outgoing = std::mem::take(&mut self.hosts.outgoing);
            let made_room = self.hand_down(connection, &mut outgoing);
            self.hosts.outgoing = outgoing;
            if made_room {
                self.hosts.transmit(self.agenda.now_ns(), connection);
            }
        }
    }

    /// Passes bursts to the network, or to what holds them back. True if packets left through fq at once,
    /// which makes room below TCP for more (tcp_wfree()).
    fn hand_down(&mut self, connection: usize, outgoing: &mut Vec<Burst>) -> bool {
        let host = &self.plan.host;
        let access = AccessLink::new(host.access_rate_bps, self.plan.access.mtu_bytes);
        let is_fq = host.pacing == Pacing::Fq;
        let sending_costs = self.hosts.sending_costs();
        let path = self.data_path(connection);
        if !is_fq && !access.is_limited() && !sending_costs {
            for burst in outgoing.drain(..) {
                self.enter_burst(&path, &burst);
            }
            return false;
        }
        let now_ns = self.now_ns();
        let (mut made_room, mut ready_ns) = (false, now_ns);
        for burst in outgoing.drain(..) {
            let mut unmade = if sending_costs { burst.count } else { 0 };
            for data in burst.packets() {
                // fq makes a burst that it holds back when it releases it (validate_xmit_skb()).
                if unmade > 0 && data.departs_ns <= now_ns {
                    ready_ns = self.hosts.make_burst(now_ns, connection, unmade);
                    unmade = 0;
                }
                self.count_and_capture(connection, &data);
                let (agenda, unmade) = (&mut self.agenda, std::mem::take(&mut unmade));
                let sending = &mut self.hosts.connections[connection];
                let departures = &mut sending.departures;
                if departures.hold(agenda, connection, ready_ns, access, data, unmade) {
                    if is_fq {
                        sending.sender.departed(&data);
                        made_room = true;
                    }
                    self.enter(&path, data);
                }
            }
        }
        made_room
    }

    /// Packets that a sender's host held back leave; with fq that makes room for more.
    pub(super) fn depart(&mut self, connection: usize) {
        let now_ns = self.now_ns();
        let path = self.data_path(connection);
        loop {
            let sending = &mut self.hosts.connections[connection];
            match sending.departures.next(now_ns) {
                Next::Nothing => break,
                Next::Waits(until_ns) => {
                    let event = Event::Departure(connection as u32);
                    self.agenda.schedule(until_ns, event);
                    break;
                }
                Next::Makes(packets) => {
                    let ready_ns = self.hosts.make_burst(now_ns, connection, packets);
                    let sending = &mut self.hosts.connections[connection];
                    sending.departures.make_first(ready_ns);
                }
                Next::Leaves(data) => {
                    sending.sender.departed(&data);
                    self.enter(&path, data);
                }
            }
        }
        if self.plan.host.pacing == Pacing::Fq {
            self.transmit(connection);
        }
    }

    fn data_path(&self, connection: usize) -> DataPath {
        let flow_id = self.hosts.ids.of_connection(connection);
        let direction = self.hosts.connections[connection].data_direction;
        DataPath {
            connection,
            flow_id: flow_id as u32,
            header: self.hosts.header(flow_id, direction),
            enters: self.network.row.first_link(flow_id as u32, direction),
        }
    }

    /// A burst leaves its host; as a whole, unless packets are captured or may be lost one by one.
    fn enter_burst(&mut self, path: &DataPath, burst: &Burst) {
        if self.hosts.capture.is_on() || !self.hosts.loss.is_none(path.enters.direction()) {
            for data in burst.packets() {
                self.count_and_capture(path.connection, &data);
                self.enter(path, data);
            }
            return;
        }
        self.record.count_burst(burst);
        self.hosts.connections[path.connection].packets_in_flight += burst.count;
        let first = InFlight {
            flow_id: path.flow_id,
            header: path.header,
            body: Body::Data(burst.data),
        };
        self.offer_burst(path.enters, &first, burst.count);
    }

    /// A data packet leaves its host.
    fn enter(&mut self, path: &DataPath, data: Data) {
        let mut packet = InFlight {
            flow_id: path.flow_id,
            header: path.header,
            body: Body::Data(data),
        };
        if self
            .hosts
            .sends(path.connection, path.enters.direction(), &mut packet)
        {
            self.offer_burst(path.enters, &packet, 1);
        } else {
            self.record.count_lost(&packet.body);
        }
    }

    /// TCP hands a packet down.
    fn count_and_capture(&mut self, connection: usize, data: &Data) {
        self.record.count_sent(&Body::Data(*data));
        if self.hosts.capture.is_on() {
            self.hosts.capture_data(connection, data);
        }
    }

    #[inline(never)] // few ACKs need an earlier event
    fn set_sender_timer(&mut self, connection: usize) {
        let now_ns = self.now_ns();
        let timed = &mut self.hosts.connections[connection];
        if let Some(at_ns) = timed.sender.timer_ns() {
            let event = Event::Sender(connection as u32);
            let at_ns = at_ns.max(now_ns);
            timed.sender_alarm.set(&mut self.agenda, at_ns, event);
        }
    }

    #[inline(never)] // rare
    fn record_events(&mut self, connection: usize) {
        let now_ns = self.now_ns();
        let sender = &mut self.hosts.connections[connection].sender;
        let cwnd = sender.cwnd();
        let events = sender.take_events();
        self.record.sender_events(now_ns, connection, cwnd, events);
    }

    /// A probe sends a request.
    pub(super) fn probe(&mut self, probe: usize) {
        let now_ns = self.now_ns();
        let row = self.record.probe_request(now_ns, probe);
        let next_ns = now_ns + self.plan.probes[probe].interval_ns;
        self.agenda.schedule(next_ns, Event::Probe(probe as u32));
        let flow_id = self.hosts.ids.of_probe(probe);
        self.send_unlost(flow_id, Direction::Forward, Body::Probe { row });
    }

    /// Sends a packet to which the loss at the hosts does not apply.
    pub(super) fn send_unlost(&mut self, flow_id: usize, direction: Direction, body: Body) {
        let packet = self.hosts.packet(flow_id, direction, body);
        if direction == Direction::Forward && self.hosts.capture.is_on() {
            self.capture_exchange(direction, &packet);
        }
        self.enter_row(direction, &packet);
    }

    /// Captures a packet without a connection: a stream's as it leaves, others as they leave or reach
    /// the host that asked.
    pub(super) fn capture_exchange(&mut self, direction: Direction, packet: &InFlight) {
        let ids = self.hosts.ids;
        let exchange = match packet.body {
            Body::Datagram { .. } => Exchange::Stream(ids.stream(packet.flow_id)),
            Body::Dns { page, .. } => Exchange::Dns(page),
            Body::Probe { row } => {
                let probe = ids.probe(packet.flow_id);
                match self.plan.probes[probe].kind {
                    ProbeKind::Ping => Exchange::Ping(probe as u32, row as u16),
                    ProbeKind::Udp => Exchange::UdpProbe(probe as u32),
                }
            }
            _ => return,
        };
        let now_ns = self.now_ns();
        let (from_near, dscp) = (direction == Direction::Forward, packet.header.dscp());
        let wire_bytes = packet.wire_bytes();
        self.hosts
            .capture
            .write(|pcap| pcap.exchange(now_ns, exchange, from_near, dscp, wire_bytes));
    }
}
