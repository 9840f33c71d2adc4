//! What reaches a host: packets that have left the row come through the host's own delay, TCP takes them,
//! and what it answers is sent. Never which way they came.

use fullpipe_net::Direction;
use fullpipe_tcp::{Ack, Data};

use crate::ends::NEVER_NS;
use crate::events::Event;
use crate::packet::{Body, InFlight};
use crate::pcap::AckEdges;
use crate::run::Simulation;

impl Simulation<'_> {
    /// A packet leaves the row for the delay line of its owner's host.
    #[inline(always)] // the way of every packet: link, line, host
    pub(crate) fn leave_row(&mut self, at_ns: u64, direction: Direction, packet: &InFlight) {
        let index = packet.owner as usize * 2 + direction.index();
        let enters_ns = match packet.body {
            Body::Ack(_) => {
                let host = &self.connections[self.place(packet.owner)].receiver_host;
                host.free_ns().max(at_ns)
            }
            _ => at_ns,
        };
        let line = &mut self.lines[index];
        let due_ns = line.due_ns(enters_ns);
        if due_ns <= self.now_ns && line.packets.is_empty() {
            self.reach(direction, packet);
        } else if line.packets.push(due_ns, packet).is_some() {
            self.await_head(index);
        }
    }

    /// What an owner sends this way is at its host where it leaves this link.
    #[inline(always)] // as `leave_row`
    pub(crate) fn is_at_host(&self, owner: u32, direction: Direction, link: usize) -> bool {
        self.lines[owner as usize * 2 + direction.index()].is_open_behind(link)
    }

    pub(crate) fn arrivals(&mut self, index: usize) {
        if self.lines[index].awaited_ns != self.now_ns {
            return; // a packet that overtook the head had an event of its own
        }
        self.lines[index].awaited_ns = NEVER_NS;
        loop {
            while let Some(packet) = self.lines[index].packets.ready(self.now_ns) {
                // Whatever this sets off may come back to this very line.
                let packet = *packet;
                self.lines[index].packets.leave();
                self.reach(Direction::of_index(index), &packet);
            }
            let line = &self.lines[index];
            match line.packets.due_ns() {
                Some(due_ns) if line.awaited_ns == NEVER_NS && self.goes_on(due_ns) => {}
                _ => return self.await_head_here(index),
            }
        }
    }

    #[inline(never)]
    fn await_head(&mut self, index: usize) {
        self.await_head_here(index);
    }

    #[inline(always)] // behind every ACK
    fn await_head_here(&mut self, index: usize) {
        let line = &mut self.lines[index];
        let due_ns = line.packets.due_ns().unwrap_or(NEVER_NS);
        if due_ns < line.awaited_ns {
            line.awaited_ns = due_ns;
            self.agenda.schedule(due_ns, Event::Line(index as u32));
        }
    }

    /// A host handles a packet that has reached it.
    #[inline(always)] // as what leads here
    pub(crate) fn deliver(&mut self, direction: Direction, packet: &InFlight) {
        match &packet.body {
            Body::Data(data) => self.deliver_data(packet.owner, data),
            Body::Ack(ack) => self.deliver_ack(packet.owner, ack),
            _ => self.deliver_other(direction, packet),
        }
    }

    #[inline(never)]
    pub(crate) fn deliver_data(&mut self, owner: u32, data: &Data) {
        let flow = self.place(owner);
        self.delivered += 1;
        if data.payload_bytes == 0 {
            self.recount_lone_fin();
        }
        let connection = &mut self.connections[flow];
        connection.handshake.on_data();
        connection.receiver_host.handle(self.now_ns);
        let answer = connection.receiver.on_data(self.now_ns, data);
        let earlier = connection.receiver.take_preceding_ack();
        // An ACK leaves no timer running, but for the one of its FIN.
        let may_arm = answer.as_ref().is_none_or(|ack| ack.fin);
        let arms = may_arm && connection.receiver_may_expire_sooner();
        let is_of_page = connection.page.is_some();
        if let Some(ack) = earlier {
            self.send_ack(flow, owner, &ack);
        }
        if let Some(ack) = answer {
            self.send_ack(flow, owner, &ack);
        }
        if arms {
            self.arm_receiver(flow);
        }
        if is_of_page {
            self.page_data(flow);
        }
        self.has_left(flow);
    }

    /// It is no data packet.
    #[inline(never)] // one a connection
    fn recount_lone_fin(&mut self) {
        self.delivered -= 1;
        self.control.delivered += 1;
    }

    #[inline(never)]
    fn deliver_ack(&mut self, owner: u32, ack: &Ack) {
        let flow = self.place(owner);
        let connection = &mut self.connections[flow];
        connection.sender.on_ack(self.now_ns, ack);
        if self.pcap.is_some() {
            let edges = AckEdges::new(ack, |number| connection.sender.sequence_bytes(number));
            let at_ns = self.now_ns;
            let is_accurate = connection.sender.has_accurate_ecn();
            self.capture(|pcap| pcap.ack(at_ns, flow as u32, &edges, ack, is_accurate));
        }
        if ack.fin {
            self.send_last_ack(flow);
        }
        self.transmit_here(flow);
        if self.connections[flow].is_waited_for() {
            self.complete(flow);
        }
        self.has_left(flow);
    }

    #[inline(never)]
    fn deliver_other(&mut self, direction: Direction, packet: &InFlight) {
        match &packet.body {
            Body::Data(_) | Body::Ack(_) => {}
            Body::Handshake(opening) => {
                self.on_opening(self.place(packet.owner), direction, opening);
                self.is_gone(packet);
            }
            Body::LastAck => {
                self.control.delivered += 1;
                let flow = self.place(packet.owner);
                self.connections[flow].receiver.on_last_ack();
                self.is_gone(packet);
            }
            &Body::Name { page, number, .. } => {
                self.on_name(packet.owner as usize, direction, page, number);
            }
            &Body::Datagram { row, .. } => self.on_datagram(row),
            &Body::Probe { row } if direction == Direction::Forward => {
                let owner = packet.owner as usize;
                let answer = self.packet_of(owner, Direction::Reverse, Body::Probe { row });
                self.enter_row(Direction::Reverse, &answer);
            }
            &Body::Probe { row } => {
                let row = &mut self.tables.ping_samples[row as usize];
                row.rtt_us = Some(self.now_ns / 1000 - row.t_us);
            }
        }
    }

    #[inline(always)] // into what handles data
    fn send_ack(&mut self, flow: usize, owner: u32, ack: &Ack) {
        let direction = self.connections[flow].data_direction.back();
        let mut packet = self.packet_of(owner as usize, direction, Body::Ack(*ack));
        if self.processors.is_some() {
            return self.make_ack(flow, direction, packet);
        }
        if self.egress.passes(direction, &mut packet) {
            self.connections[flow].under_way += 1;
            self.enter_row(direction, &packet);
        }
    }

    /// Both FINs have arrived.
    fn send_last_ack(&mut self, flow: usize) {
        let connection = &self.connections[flow];
        let sender = &connection.sender;
        let (direction, end) = (
            connection.data_direction,
            sender.sequence_bytes(sender.snd_una()),
        );
        let at_ns = self.now_ns;
        self.capture(|pcap| pcap.last_ack(at_ns, flow as u32, end));
        self.send_control(flow, direction, Body::LastAck);
    }

    pub(crate) fn receiver_timer(&mut self, flow: usize) {
        if self.connections[flow].receiver_timer_ns != self.now_ns {
            return; // an earlier deadline took this one's place
        }
        self.connections[flow].receiver_timer_ns = NEVER_NS;
        let answer = self.connections[flow].receiver.on_timer(self.now_ns);
        if let Some(ack) = answer {
            let owner = self.owner(flow) as u32;
            self.send_ack(flow, owner, &ack);
        }
        self.arm_receiver(flow);
    }

    /// A timer expires before the event that is on the agenda, where it may.
    #[inline(never)] // the first ACK that waits has an event that is late enough for many
    fn arm_receiver(&mut self, flow: usize) {
        let connection = &mut self.connections[flow];
        let Some(at_ns) = connection.receiver.timer_ns() else {
            return;
        };
        let at_ns = at_ns.max(self.now_ns);
        if at_ns < connection.receiver_timer_ns {
            connection.receiver_timer_ns = at_ns;
            self.agenda.schedule(at_ns, Event::Receiver(flow as u32));
        }
    }

    #[inline(never)] // rare, but for pages and traffic
    fn complete(&mut self, flow: usize) {
        if self.connections[flow].visit.is_some() {
            self.continue_visit(flow);
            return;
        }
        if self.connections[flow].page.is_some() {
            self.serve(flow);
            return;
        }
        let connection = &mut self.connections[flow];
        connection.completion_us = Some(self.now_ns / 1000);
        let bytes = connection.sender.acked_bytes();
        self.note(flow, "finish", bytes);
    }
}
