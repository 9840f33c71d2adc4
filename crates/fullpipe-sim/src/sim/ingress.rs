//! What reaches the hosts: packets that have left the row of links come through the flow's access line, TCP
//! processes them, and its answer is sent. Must never know how packets came.

use fullpipe_net::{derive_seed, purpose, Direction};
use fullpipe_tcp::{Ack, Data, Established, HandshakePacket};
use fullpipe_workload::Writer;

use super::Simulation;
use crate::agenda::Event;
use crate::hosts::{AckEdges, Application, Reaction};
use crate::packet::{Body, InFlight};

impl Simulation<'_> {
    /// A packet leaves the row of links.
    #[inline(always)] // for every packet: link, line, host
    pub(super) fn leave_row(&mut self, at_ns: u64, direction: Direction, packet: &InFlight) {
        let agenda = &mut self.agenda;
        if self.hosts.enter_line(agenda, at_ns, direction, packet) {
            self.reach(direction, packet);
        }
    }

    /// Packets on an access line reach their host.
    pub(super) fn access_line_due(&mut self, index: usize) {
        if !self.hosts.line(index).rings(self.agenda.now_ns()) {
            return;
        }
        loop {
            while let Some(packet) = self.hosts.line(index).ready(self.agenda.now_ns()) {
                let packet = *packet;
                // First, as what the packet causes may come back to this line.
                self.hosts.line(index).leave();
                self.reach(Direction::of_index(index), &packet);
            }
            let next_ns = self.hosts.line(index).unscheduled_ns();
            if !self.continues(next_ns) {
                let agenda = &mut self.agenda;
                return self.hosts.line(index).await_next(agenda, index);
            }
        }
    }

    /// A packet reaches its host, whose processor may be busy.
    #[inline(always)] // in most runs one comparison
    fn reach(&mut self, direction: Direction, packet: &InFlight) {
        match self.hosts.processors {
            None => self.deliver(direction, packet),
            Some(_) => self.receive(direction, packet),
        }
    }

    #[inline(never)]
    fn receive(&mut self, direction: Direction, packet: &InFlight) {
        let agenda = &mut self.agenda;
        let processors = &mut self.hosts.processors;
        let waits = processors
            .as_mut()
            .is_some_and(|processors| processors.receive(agenda, direction, packet));
        if !waits {
            self.deliver(direction, packet);
        }
    }

    /// A host's processor is done with a received packet.
    pub(super) fn processed(&mut self, host: usize) {
        let processors = self.hosts.processors.as_mut();
        let Some(packet) = processors.and_then(|processors| processors.processed(host)) else {
            return;
        };
        self.deliver(Direction::of_index(host), &packet);
        if let Some(processors) = &mut self.hosts.processors {
            processors.finish(&mut self.agenda, host);
        }
    }

    /// A host's processor has made an ACK.
    pub(super) fn ack_made(&mut self, host: usize) {
        let agenda = &mut self.agenda;
        let processors = self.hosts.processors.as_mut();
        let ack = processors.and_then(|processors| processors.ack_made(agenda, host));
        if let Some(packet) = ack {
            self.enter_row(Direction::of_index(host).back(), &packet);
        }
    }

    /// A host processes a packet.
    #[inline(always)] // as `reach`
    fn deliver(&mut self, direction: Direction, packet: &InFlight) {
        match &packet.body {
            Body::Data(data) => self.deliver_data(packet.flow_id, data),
            Body::Ack(ack) => self.deliver_ack(packet.flow_id, ack),
            _ => self.deliver_other(direction, packet),
        }
    }

    /// TCP's receiver processes data.
    #[inline(never)]
    pub(super) fn deliver_data(&mut self, flow_id: u32, data: &Data) {
        let now_ns = self.now_ns();
        let connection = self.hosts.ids.connection(flow_id);
        self.record.data.delivered += 1;
        if data.payload_bytes == 0 {
            self.record.recount_lone_fin();
        }
        let receiving = &mut self.hosts.connections[connection];
        receiving.handshake.on_data();
        receiving.receiver_host.handle(now_ns);
        let answer = receiving.receiver.on_data(now_ns, data);
        let preceding = receiving.receiver.take_preceding_ack();
        // After an ACK no timer runs, except that of its FIN.
        let may_set_timer = answer.as_ref().is_none_or(|ack| ack.fin);
        let sets_timer = may_set_timer && receiving.receiver_may_expire_sooner();
        let is_of_page = matches!(receiving.application, Application::Page(_));
        if let Some(ack) = preceding {
            self.send_ack(connection, flow_id, &ack);
        }
        if let Some(ack) = answer {
            self.send_ack(connection, flow_id, &ack);
        }
        if sets_timer {
            self.set_receiver_timer(connection);
        }
        if is_of_page {
            self.read_page_data(connection);
        }
        self.packet_left(connection);
    }

    /// TCP's sender processes an ACK.
    #[inline(never)]
    fn deliver_ack(&mut self, flow_id: u32, ack: &Ack) {
        let now_ns = self.now_ns();
        let connection = self.hosts.ids.connection(flow_id);
        let sending = &mut self.hosts.connections[connection];
        sending.sender.on_ack(now_ns, ack);
        if self.hosts.capture.is_on() {
            self.capture_ack(connection, ack);
        }
        if ack.fin {
            self.send_last_ack(connection);
        }
        self.transmit_inline(connection);
        if self.hosts.connections[connection].awaits_acks() {
            self.acked(connection);
        }
        self.packet_left(connection);
    }

    #[inline(never)]
    fn capture_ack(&mut self, connection: usize, ack: &Ack) {
        let now_ns = self.now_ns();
        let sender = &self.hosts.connections[connection].sender;
        let edges = AckEdges::new(ack, |number| sender.sequence_bytes(number));
        let is_accurate = sender.has_accurate_ecn();
        let of = self.hosts.captured(connection);
        self.hosts
            .capture
            .write(|pcap| pcap.ack(now_ns, of, &edges, ack, is_accurate));
    }

    #[inline(never)]
    fn deliver_other(&mut self, direction: Direction, packet: &InFlight) {
        let flow_id = packet.flow_id as usize;
        let now_ns = self.now_ns();
        let is_reply = matches!(packet.body, Body::Dns { .. } | Body::Probe { .. });
        if is_reply && direction == Direction::Reverse && self.hosts.capture.is_on() {
            self.capture_exchange(direction, packet);
        }
        match &packet.body {
            Body::Data(_) | Body::Ack(_) => {}
            Body::Handshake(handshake) => {
                let connection = self.hosts.ids.connection(packet.flow_id);
                self.deliver_handshake(connection, direction, handshake);
                self.packet_left(connection);
            }
            Body::LastAck => {
                self.record.control.delivered += 1;
                let connection = self.hosts.ids.connection(packet.flow_id);
                self.hosts.connections[connection].receiver.on_last_ack();
                self.packet_left(connection);
            }
            &Body::Dns { page, number, .. } => self.deliver_dns(direction, page, number),
            &Body::Datagram { row, .. } => self.record.datagram_delivered(now_ns, row),
            &Body::Opaque { payload, ecn, .. } => {
                self.deliver_opaque(direction, packet, payload, ecn);
            }
            &Body::Probe { row } if direction == Direction::Forward => {
                self.send_unlost(flow_id, Direction::Reverse, Body::Probe { row });
            }
            &Body::Probe { row } => self.record.probe_reply(now_ns, row),
        }
    }

    /// A receiver sends an ACK.
    #[inline(always)] // into what handles data
    fn send_ack(&mut self, connection: usize, flow_id: u32, ack: &Ack) {
        let direction = self.hosts.connections[connection].data_direction.back();
        let body = Body::Ack(*ack);
        let mut packet = self.hosts.packet(flow_id as usize, direction, body);
        let leaves = match self.hosts.processors {
            None => self.hosts.sends(connection, direction, &mut packet),
            Some(_) => {
                let agenda = &mut self.agenda;
                self.hosts
                    .make_ack(agenda, connection, direction, &mut packet)
            }
        };
        if leaves {
            self.enter_row(direction, &packet);
        }
    }

    /// A sender acknowledges the receiver's FIN.
    fn send_last_ack(&mut self, connection: usize) {
        let now_ns = self.now_ns();
        let closing = &self.hosts.connections[connection];
        let sender = &closing.sender;
        let (direction, end) = (
            closing.data_direction,
            sender.sequence_bytes(sender.snd_una()),
        );
        let of = self.hosts.captured(connection);
        self.hosts
            .capture
            .write(|pcap| pcap.last_ack(now_ns, of, end));
        self.send_control(connection, direction, Body::LastAck);
    }

    /// A timer of a receiver may have expired.
    pub(super) fn receiver_timer(&mut self, connection: usize) {
        let now_ns = self.now_ns();
        let timed = &mut self.hosts.connections[connection];
        if !timed.receiver_alarm.rings(now_ns) {
            return;
        }
        if let Some(ack) = timed.receiver.on_timer(now_ns) {
            let flow_id = self.hosts.ids.of_connection(connection) as u32;
            self.send_ack(connection, flow_id, &ack);
        }
        self.set_receiver_timer(connection);
    }

    #[inline(never)] // the event of the first delayed ACK is late enough for many
    fn set_receiver_timer(&mut self, connection: usize) {
        let now_ns = self.now_ns();
        let timed = &mut self.hosts.connections[connection];
        if let Some(at_ns) = timed.receiver.timer_ns() {
            let event = Event::Receiver(connection as u32);
            let at_ns = at_ns.max(now_ns);
            timed.receiver_alarm.set(&mut self.agenda, at_ns, event);
        }
    }

    /// A packet of a handshake arrives at the host at the end of this direction.
    fn deliver_handshake(
        &mut self,
        connection: usize,
        direction: Direction,
        packet: &HandshakePacket,
    ) {
        self.capture_handshake(connection, direction, packet, false);
        self.record.control.delivered += 1;
        let now_ns = self.now_ns();
        let opening = &mut self.hosts.connections[connection];
        let window_bytes = opening.window_bytes_at(direction);
        let reaches_sender = opening.data_direction != direction;
        let Reaction { reply, established } =
            opening.handshake.on_packet(now_ns, packet, window_bytes);
        if let Some((direction, reply)) = reply {
            if direction == Direction::Reverse {
                self.set_handshake_timer(connection); // of the SYN-ACK
            }
            self.send_handshake(connection, direction, reply);
        }
        match established {
            Some(established) if reaches_sender => self.established(connection, &established),
            Some(established) => self.expects_data(connection, direction, &established),
            None => {}
        }
    }

    /// The receiver of the data is established. An RTT with retransmissions is not used
    /// (tcp_synack_rtt_meas()).
    fn expects_data(&mut self, connection: usize, direction: Direction, established: &Established) {
        let now_ns = self.now_ns();
        let rtt_ns = (established.retransmissions == 0).then_some(established.rtt_ns);
        let receiver = &mut self.hosts.connections[connection].receiver;
        receiver.establish(now_ns, rtt_ns);
        if direction == Direction::Forward {
            self.page_accepted(connection, established);
        }
    }

    /// The sender of the data is established: its application begins.
    fn established(&mut self, connection: usize, established: &Established) {
        let now_ns = self.now_ns();
        let begun = &mut self.hosts.connections[connection];
        begun.sender.establish(now_ns, established);
        let cwnd = u64::from(begun.sender.cwnd());
        let writes = match &mut begun.application {
            Application::Pattern { pattern, writer } => {
                let seed = derive_seed(self.plan.seed, purpose::PATTERN, connection as u32);
                *writer = Some(Writer::new(*pattern, now_ns, seed));
                true
            }
            Application::Paced { .. } => true,
            Application::Pool(Some(flow)) => {
                self.workloads.pool.write_chunk(flow, &mut begun.sender);
                false
            }
            _ => false,
        };
        self.record.event(now_ns, connection, "established", cwnd);
        if writes {
            self.agenda
                .schedule(now_ns, Event::Write(connection as u32));
        }
        self.transmit(connection);
        self.page_opened(connection);
    }

    /// An ACK may concern the application, or complete the flow.
    #[inline(never)] // rare, except for pages and traffic groups
    fn acked(&mut self, connection: usize) {
        let now_ns = self.now_ns();
        let acked = &mut self.hosts.connections[connection];
        match acked.application {
            Application::Pool(Some(_)) => self.pooled_flow_acked(connection),
            Application::Page(_) => self.serve_page(connection),
            _ => {
                acked.completion_us = Some(now_ns / 1000);
                let bytes = acked.sender.acked_bytes();
                self.record.event(now_ns, connection, "finish", bytes);
            }
        }
    }
}
