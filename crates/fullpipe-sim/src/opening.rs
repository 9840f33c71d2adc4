//! How connections of a simulation open and close: which end connects, and its packets' way through
//! the network. What the packets say and when they are repeated is fullpipe-tcp's.
//!
//! The near host connects, whichever way the data go, as the agent's does: the sender of an "up"
//! flow is the client, that of a "down" flow the server.

use fullpipe_net::{derive_seed, purpose, Direction};
use fullpipe_tcp::{Client, Established, HandshakePacket, SenderEvent, Server};
use fullpipe_workload::Writer;

use crate::events::Event;
use crate::packet::Body;
use crate::run::Simulation;

/// Both ends of a handshake.
pub(crate) struct Handshake {
    client: Client,
    server: Server,
    /// The first SYN, until it is known where to send it.
    unresolved: Option<HandshakePacket>,
}

impl Handshake {
    pub(crate) fn new(ecn: bool) -> Self {
        Self {
            client: Client::new(ecn),
            server: Server::default(),
            unresolved: None,
        }
    }

    /// Data arrived at their receiver.
    pub(crate) fn on_data(&mut self) {
        self.server.on_data();
    }
}

impl Simulation<'_> {
    pub(crate) fn start(&mut self, flow: usize) {
        self.connections[flow].started = true;
        self.note(flow, "start", 0);
        let syn = self.connections[flow].handshake.client.connect(self.now_ns);
        self.arm_handshake(flow);
        // Neighbours are resolved once, by the first exchange.
        let base_ns = self.connections[flow].base_rtt_ns;
        if self.plan.host.arp && self.now_ns < base_ns {
            self.connections[flow].handshake.unresolved = Some(syn);
            self.agenda
                .schedule(self.now_ns + base_ns, Event::Resolved(flow as u32));
        } else {
            self.send_opening(flow, Direction::Forward, syn);
        }
    }

    /// The first SYN knows where to go.
    pub(crate) fn resolved(&mut self, flow: usize) {
        if let Some(syn) = self.connections[flow].handshake.unresolved.take() {
            self.send_opening(flow, Direction::Forward, syn);
        }
    }

    /// A packet of the handshake leaves its host.
    pub(crate) fn send_opening(
        &mut self,
        flow: usize,
        direction: Direction,
        opening: HandshakePacket,
    ) {
        self.note_opening(flow, direction, &opening, true);
        self.send_control(flow, direction, Body::Handshake(opening));
    }

    /// A packet without data leaves its host.
    pub(crate) fn send_control(&mut self, flow: usize, direction: Direction, body: Body) {
        self.control.sent += 1;
        let mut packet = self.packet(flow, direction, body);
        if self.egress.passes(direction, &mut packet) {
            self.connections[flow].under_way += 1;
            self.enter_row(direction, &packet);
        } else {
            self.control.lost += 1;
        }
    }

    /// A timer of a handshake may have expired; what is due later has an event of its own.
    pub(crate) fn handshake_timer(&mut self, flow: usize) {
        let connection = &mut self.connections[flow];
        let (handshake, sends) = (&mut connection.handshake, connection.data_direction);
        let had_failed = handshake.client.has_failed();
        let syn = handshake.client.on_timer(self.now_ns);
        let syn_ack = handshake.server.on_timer(self.now_ns);
        if handshake.client.has_failed() && !had_failed {
            self.note(flow, "connect_timeout", 0);
            self.end_visit(flow, None);
        }
        if syn.is_some() && sends == Direction::Forward {
            // tcp_enter_loss() leaves the SYN a window of one packet.
            self.connections[flow].sender.syn_timed_out();
            self.note(flow, SenderEvent::Timeout.name(), 1);
        }
        for (direction, due) in [(Direction::Forward, syn), (Direction::Reverse, syn_ack)] {
            if let Some(opening) = due {
                self.send_opening(flow, direction, opening);
            }
        }
        self.arm_handshake(flow);
    }

    fn arm_handshake(&mut self, flow: usize) {
        let handshake = &self.connections[flow].handshake;
        let timers = [handshake.client.timer_ns(), handshake.server.timer_ns()];
        if let Some(at_ns) = timers.into_iter().flatten().min() {
            self.agenda.schedule(at_ns, Event::Handshake(flow as u32));
        }
    }

    /// A packet of a handshake arrives.
    pub(crate) fn on_opening(
        &mut self,
        flow: usize,
        direction: Direction,
        opening: &HandshakePacket,
    ) {
        self.note_opening(flow, direction, opening, false);
        self.control.delivered += 1;
        let now_ns = self.now_ns;
        let window_bytes = self.near_or_far_window(flow, direction);
        let connection = &mut self.connections[flow];
        let (handshake, sends) = (&mut connection.handshake, connection.data_direction);
        match opening {
            HandshakePacket::Syn { .. } => {
                let answer = handshake.server.on_syn(now_ns, opening, window_bytes);
                if let Some(syn_ack) = answer {
                    self.arm_handshake(flow);
                    self.send_opening(flow, Direction::Reverse, syn_ack);
                }
            }
            HandshakePacket::SynAck { .. } => {
                let opened = handshake.client.on_syn_ack(now_ns, opening);
                let ack = Client::answer(now_ns, opening, window_bytes);
                self.send_opening(flow, Direction::Forward, ack);
                match (opened, sends) {
                    (Some(opened), Direction::Forward) => self.established(flow, &opened),
                    (Some(opened), Direction::Reverse) => self.accepts_data(flow, &opened),
                    (None, _) => {}
                }
            }
            HandshakePacket::Ack { .. } => {
                let opened = handshake.server.on_ack(now_ns, opening);
                match (opened, sends) {
                    (Some(opened), Direction::Reverse) => self.established(flow, &opened),
                    (Some(opened), Direction::Forward) => {
                        self.accepts_data(flow, &opened);
                        self.page_accepted(flow, &opened);
                    }
                    (None, _) => {}
                }
            }
        }
    }

    /// What the host at the end of this way offers: its window where it receives the data.
    fn near_or_far_window(&self, flow: usize, direction: Direction) -> u64 {
        let connection = &self.connections[flow];
        match direction == connection.data_direction {
            true => connection.receiver.window_bytes(),
            false => SENDERS_WINDOW_BYTES,
        }
    }

    /// The end that receives the data knows that the connection is open; of what was sent again there
    /// is no RTT (tcp_synack_rtt_meas()).
    fn accepts_data(&mut self, flow: usize, opened: &Established) {
        let rtt_ns = (opened.retransmissions == 0).then_some(opened.rtt_ns);
        self.connections[flow]
            .receiver
            .establish(self.now_ns, rtt_ns);
    }

    fn established(&mut self, flow: usize, opened: &Established) {
        let connection = &mut self.connections[flow];
        connection.sender.establish(self.now_ns, opened);
        let value = u64::from(connection.sender.cwnd());
        let writes_by_clock = connection.write_interval_ns > 0;
        self.note(flow, "established", value);
        let pattern = self.plan.flows.get(flow).and_then(|flow| flow.pattern);
        if let Some(pattern) = pattern {
            let seed = derive_seed(self.plan.seed, purpose::PATTERN, flow as u32);
            self.connections[flow].writer = Some(Writer::new(pattern, self.now_ns, seed));
        }
        if writes_by_clock || pattern.is_some() {
            self.agenda.schedule(self.now_ns, Event::Write(flow as u32));
        }
        self.write_chunk(flow);
        self.transmit(flow);
        self.page_opened(flow);
    }

    /// Captures are taken at the sender's host: its own packets as they leave, others as they come.
    fn note_opening(
        &mut self,
        flow: usize,
        direction: Direction,
        opening: &HandshakePacket,
        leaves: bool,
    ) {
        if self.pcap.is_none() {
            return;
        }
        let from_sender = direction == self.connections[flow].data_direction;
        if from_sender != leaves {
            return;
        }
        let (at_ns, mss) = (self.now_ns, self.connections[flow].sender.mss_bytes());
        self.capture(|pcap| pcap.opening(at_ns, flow as u32, from_sender, mss, opening));
    }
}

/// What the end offers that only sends: Linux's first window.
const SENDERS_WINDOW_BYTES: u64 = 65_536;
