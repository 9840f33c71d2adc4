//! The hosts at the ends: who sends what, and when. Connections, probes, what lies between a host
//! and the row of links (its own loss, delay and jitter), and what arrives. Never where a packet
//! goes once it has entered the row.

use std::collections::VecDeque;
use std::io;

use fullpipe_cc::{algorithm, flags, Controller};
use fullpipe_net::{derive_seed, purpose, Host, Way};
use fullpipe_scenario::{Direction, EcnKind, Flow, Pacing, PingRow, Plan};
use fullpipe_tcp::{
    Absences, Ack, Data, Feedback, Receiver, ReceiverConfig, Run, Sender, SenderConfig,
};
use fullpipe_workload::{Writer, Writing};

use crate::applications::PageEnd;
use crate::ends::is_sooner;
use crate::events::Event;
use crate::opening::Handshake;
use crate::packet::{Body, Label, Travelling, HEADER_BYTES};
use crate::pcap::{AckEdges, PcapWriter};
use crate::recorder;
use crate::run::{BadPlan, Simulation};
use crate::traffic::Visit;

/// One connection.
pub(crate) struct Connection {
    pub(crate) handshake: Handshake,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    receiver_host: Host,
    /// Packets handed down by TCP, with the times at which they enter the network.
    leaving: VecDeque<(u64, Data)>,
    access_free_ns: u64,
    sender_timer_ns: Option<u64>,
    receiver_timer_ns: Option<u64>,
    pub(crate) started: bool,
    stopped: bool,
    pub(crate) completion_us: Option<u64>,
    pub(crate) write_interval_ns: u64,
    pub(crate) data_way: Way,
    pub(crate) base_rtt_ns: u64,
    /// When its application writes, where that follows a pattern.
    pub(crate) writer: Option<Writer>,
    /// What it is to a page, if it is not one of the plan's own flows.
    pub(crate) page: Option<PageEnd>,
    pub(crate) start_ns: u64,
    /// Its packets between the two ends.
    pub(crate) under_way: u32,
    /// The flow of traffic that uses it now, if it is not one of the plan's own flows.
    pub(crate) visit: Option<Box<Visit>>,
}

/// Where a flow's data enter the row, and as whose.
struct Road {
    flow: usize,
    owner: u32,
    label: Label,
    way: Way,
    link: usize,
}

impl Connection {
    /// Nothing of it is left below TCP.
    pub(crate) fn has_left(&self) -> bool {
        self.under_way == 0 && self.leaving.is_empty()
    }

    /// Its timers are forgotten: events that are still on the agenda for them mean nothing.
    pub(crate) fn forget_timers(&mut self) {
        self.sender_timer_ns = None;
        self.receiver_timer_ns = None;
    }
}

impl Simulation<'_> {
    pub(crate) fn stop(&mut self, flow: usize) {
        let connection = &mut self.connections[flow];
        connection.sender.stop();
        connection.stopped = true;
        self.transmit(flow); // its FIN
    }

    pub(crate) fn write(&mut self, flow: usize) {
        if self.connections[flow].visit.is_some() {
            self.write_chunk(flow);
            self.transmit(flow);
            return;
        }
        let connection = &mut self.connections[flow];
        if connection.stopped {
            return;
        }
        if let Some(writer) = &mut connection.writer {
            let (writing, at_ns) = writer.turn();
            match writing {
                Writing::Write(bytes) => connection.sender.write_bytes(bytes),
                Writing::Always => connection.sender.set_endless(true),
                Writing::Never => connection.sender.set_endless(false),
            }
            self.agenda.schedule(at_ns, Event::Write(flow as u32));
            self.transmit(flow);
            return;
        }
        let amount_bytes = self.plan.flows.get(flow).and_then(|flow| flow.amount_bytes);
        let left_bytes = amount_bytes.map(|amount| amount - connection.sender.written_bytes());
        if let Some(last) = left_bytes.filter(|&left| left <= connection.sender.mss_bytes().into())
        {
            connection.sender.write_last(last);
            self.transmit(flow);
            return;
        }
        connection.sender.write(1);
        let next_ns = self.now_ns + connection.write_interval_ns;
        self.agenda.schedule(next_ns, Event::Write(flow as u32));
        self.transmit(flow);
    }

    pub(crate) fn transmit(&mut self, flow: usize) {
        let sender = &mut self.connections[flow].sender;
        sender.transmit(self.now_ns, &mut self.outgoing);
        self.send_out(flow);
    }

    pub(crate) fn sender_timer(&mut self, flow: usize) {
        let connection = &mut self.connections[flow];
        if connection.sender_timer_ns != Some(self.now_ns) {
            return; // an earlier deadline took this one's place
        }
        connection.sender_timer_ns = None;
        if connection
            .sender
            .timer_ns()
            .is_none_or(|at_ns| at_ns > self.now_ns)
        {
            self.arm(flow);
            return;
        }
        let sender = &mut connection.sender;
        sender.on_timer(self.now_ns, &mut self.outgoing);
        self.send_out(flow);
    }

    /// Hands what TCP sent to the network, now or when it departs. What leaves at once makes room
    /// below TCP (tcp_wfree()), so that it may send more.
    fn send_out(&mut self, flow: usize) {
        while !self.outgoing.is_empty() {
            // What leaves may set off something that sends too.
            let mut outgoing = std::mem::take(&mut self.outgoing);
            let made_room = self.hand_down(flow, &mut outgoing);
            self.outgoing = outgoing;
            if made_room {
                let sender = &mut self.connections[flow].sender;
                sender.transmit(self.now_ns, &mut self.outgoing);
            }
        }
        if self.connections[flow].sender.has_events() {
            self.note_events(flow);
        }
        self.arm(flow);
    }

    /// True if something left through fq at once.
    fn hand_down(&mut self, flow: usize, outgoing: &mut Vec<Run>) -> bool {
        let mut made_room = false;
        let access_bps = self.plan.host.access_rate_bps;
        if !self.leaves_later() && !self.sending_costs() {
            self.enter_all(flow, outgoing);
            return false;
        }
        let (owner, way) = (self.owner(flow), self.connections[flow].data_way);
        let packets = outgoing.drain(..).flat_map(|run| {
            let made = std::iter::once(run.count).chain(std::iter::repeat(0));
            made.zip(run.packets())
        });
        let mut ready_ns = self.now_ns;
        for (made, data) in packets {
            if made > 0 {
                ready_ns = self.makes_burst(owner, way, made);
            }
            self.note_sent(flow, &data);
            let connection = &mut self.connections[flow];
            let mut enters_ns = data.departs_ns.max(ready_ns);
            let wire_bits = u64::from(HEADER_BYTES + data.payload_bytes) * 8;
            if let Some(serialized_ns) = (wire_bits * 1_000_000_000).checked_div(access_bps) {
                enters_ns = connection.access_free_ns.max(enters_ns) + serialized_ns;
                connection.access_free_ns = enters_ns;
            }
            if enters_ns <= self.now_ns && connection.leaving.is_empty() {
                if self.plan.host.pacing == Pacing::Fq {
                    connection.sender.departed(u64::from(data.payload_bytes));
                    made_room = true;
                }
                let road = self.road(flow);
                self.enter(&road, data);
                continue;
            }
            if connection.leaving.is_empty() {
                self.agenda
                    .schedule(enters_ns, Event::Departure(flow as u32));
            }
            connection.leaving.push_back((enters_ns, data));
        }
        made_room
    }

    /// What TCP hands down may wait for its time, or for a link.
    fn leaves_later(&self) -> bool {
        let host = &self.plan.host;
        host.pacing == Pacing::Fq || host.access_rate_bps > 0
    }

    /// Bursts whose time has come leave the sender's host.
    pub(crate) fn depart(&mut self, flow: usize) {
        while let Some(&(enters_ns, data)) = self.connections[flow].leaving.front() {
            if enters_ns > self.now_ns {
                self.agenda
                    .schedule(enters_ns, Event::Departure(flow as u32));
                break;
            }
            let connection = &mut self.connections[flow];
            connection.leaving.pop_front();
            connection.sender.departed(u64::from(data.payload_bytes));
            let road = self.road(flow);
            self.enter(&road, data);
        }
        if self.leaves_later() {
            self.transmit(flow);
        }
    }

    /// Nothing lies between TCP and the network.
    fn enter_all(&mut self, flow: usize, outgoing: &mut Vec<Run>) {
        let road = self.road(flow);
        for run in outgoing.drain(..) {
            self.enter_run(&road, &run);
        }
    }

    /// What all data packets of a flow have in common.
    fn road(&self, flow: usize) -> Road {
        let owner = self.owner(flow);
        let way = self.connections[flow].data_way;
        Road {
            flow,
            owner: owner as u32,
            label: self.labels[owner].towards(way),
            way,
            link: self.network.first_link(owner as u32, way),
        }
    }

    /// TCP hands packets down, and they leave their sender's host: together where nothing happens to
    /// one that does not to the others.
    fn enter_run(&mut self, road: &Road, run: &Run) {
        if self.pcap.is_some() || !self.egress.is_open(road.way) {
            for data in run.packets() {
                self.note_sent(road.flow, &data);
                self.enter(road, data);
            }
            return;
        }
        match run.data.payload_bytes {
            0 => self.control.sent += u64::from(run.count),
            _ => self.sent += u64::from(run.count),
        }
        self.connections[road.flow].under_way += run.count;
        let first = Travelling {
            owner: road.owner,
            label: road.label,
            body: Body::Data(run.data),
        };
        self.offer_run(road.link, road.way, &first, run.count);
    }

    /// A data packet leaves its sender's host.
    fn enter(&mut self, road: &Road, data: Data) {
        let mut packet = Travelling {
            owner: road.owner,
            label: road.label,
            body: Body::Data(data),
        };
        if self.egress.passes(road.way, &mut packet) {
            self.connections[road.flow].under_way += 1;
            self.offer_run(road.link, road.way, &packet, 1);
        } else {
            self.lost += u64::from(packet.body.is_data());
            self.control.lost += u64::from(packet.body.is_control());
        }
    }

    /// TCP hands a packet down.
    fn note_sent(&mut self, flow: usize, data: &Data) {
        match data.payload_bytes {
            0 => self.control.sent += 1,
            _ => self.sent += 1,
        }
        if self.pcap.is_some() {
            let begin = self.connections[flow].sender.sequence_bytes(data.number);
            self.capture(|pcap| pcap.data(flow as u32, begin, data));
        }
    }

    /// Number by which the network knows a connection: the plan's flows, all that are none, and
    /// behind them the connections that are opened later.
    pub(crate) fn owner(&self, flow: usize) -> usize {
        if flow < self.plan.flows.len() {
            flow
        } else {
            flow + self.others()
        }
    }

    /// The connection of an owner that is one.
    pub(crate) fn place(&self, owner: u32) -> usize {
        let owner = owner as usize;
        if owner < self.plan.flows.len() {
            owner
        } else {
            owner - self.others()
        }
    }

    /// Owners that are no connections.
    fn others(&self) -> usize {
        self.plan.probes.len() + self.plan.pages.len() + self.plan.datagrams.len()
    }

    pub(crate) fn packet(&self, flow: usize, way: Way, body: Body) -> Travelling {
        self.packet_of(self.owner(flow), way, body)
    }

    pub(crate) fn packet_of(&self, owner: usize, way: Way, body: Body) -> Travelling {
        Travelling {
            owner: owner as u32,
            label: self.labels[owner].towards(way),
            body,
        }
    }

    /// A packet leaves the row for the delay line of its owner's host.
    #[inline(always)] // the way of every packet: link, line, host
    pub(crate) fn leave_row(&mut self, at_ns: u64, way: Way, packet: &Travelling) {
        let index = packet.owner as usize * 2 + way.index();
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
            self.reach(way, packet);
        } else if line.packets.push(due_ns, packet).is_some() {
            self.await_head(index);
        }
    }

    /// Nothing lies between the row's end and the host that handles an owner's packets on this way.
    #[inline(always)] // as `leave_row`
    pub(crate) fn is_at_host(&self, owner: u32, way: Way) -> bool {
        self.processors.is_none() && self.lines[owner as usize * 2 + way.index()].is_open()
    }

    pub(crate) fn arrivals(&mut self, index: usize) {
        if self.lines[index].awaited_ns != Some(self.now_ns) {
            return; // a packet that overtook the head had an event of its own
        }
        self.lines[index].awaited_ns = None;
        loop {
            while let Some(packet) = self.lines[index].packets.ready(self.now_ns) {
                // Whatever this sets off may come back to this very line.
                let packet = *packet;
                self.lines[index].packets.leave();
                self.reach(Way::BOTH[index % 2], &packet);
            }
            let line = &self.lines[index];
            match line.packets.due_ns() {
                Some(due_ns) if line.awaited_ns.is_none() && self.goes_on(due_ns) => {}
                _ => return self.await_head(index),
            }
        }
    }

    fn await_head(&mut self, index: usize) {
        let line = &mut self.lines[index];
        let due_ns = line.packets.due_ns();
        if let Some(due_ns) = due_ns.filter(|&due_ns| is_sooner(due_ns, line.awaited_ns)) {
            line.awaited_ns = Some(due_ns);
            self.agenda.schedule(due_ns, Event::Line(index as u32));
        }
    }

    /// A host handles a packet that has reached it.
    #[inline(always)] // as what leads here
    pub(crate) fn deliver(&mut self, way: Way, packet: &Travelling) {
        match &packet.body {
            Body::Data(data) => self.deliver_data(packet.owner, data),
            Body::Ack(ack) => self.deliver_ack(packet.owner, ack),
            _ => self.deliver_other(way, packet),
        }
    }

    #[inline(never)]
    pub(crate) fn deliver_data(&mut self, owner: u32, data: &Data) {
        let flow = self.place(owner);
        match data.payload_bytes {
            0 => self.control.delivered += 1,
            _ => self.delivered += 1,
        }
        let connection = &mut self.connections[flow];
        connection.handshake.on_data();
        connection.receiver_host.handle(self.now_ns);
        let answer = connection.receiver.on_data(self.now_ns, data);
        if let Some(ack) = connection.receiver.take_earlier() {
            self.send_ack(flow, owner, &ack);
        }
        // An ACK leaves no timer running, but for the one of its FIN.
        let arms = answer.as_ref().is_none_or(|ack| ack.fin);
        if let Some(ack) = answer {
            self.send_ack(flow, owner, &ack);
        }
        if arms {
            self.arm_receiver(flow);
        }
        if self.connections[flow].page.is_some() {
            self.page_data(flow);
        }
        self.has_left(flow);
    }

    #[inline(never)]
    fn deliver_ack(&mut self, owner: u32, ack: &Ack) {
        let flow = self.place(owner);
        let connection = &mut self.connections[flow];
        connection.sender.on_ack(self.now_ns, ack);
        if self.pcap.is_some() {
            let edges = AckEdges::new(ack, |number| connection.sender.sequence_bytes(number));
            let at_ns = self.now_ns;
            let is_accurate = connection.sender.is_accurate();
            self.capture(|pcap| pcap.ack(at_ns, flow as u32, &edges, ack, is_accurate));
        }
        if ack.fin {
            self.send_last_ack(flow);
        }
        self.transmit(flow);
        self.complete(flow);
        self.has_left(flow);
    }

    #[inline(never)]
    fn deliver_other(&mut self, way: Way, packet: &Travelling) {
        match &packet.body {
            Body::Data(_) | Body::Ack(_) => {}
            Body::Opening(opening) => {
                self.on_opening(self.place(packet.owner), way, opening);
                self.is_gone(packet);
            }
            Body::LastAck => {
                self.control.delivered += 1;
                let flow = self.place(packet.owner);
                self.connections[flow].receiver.on_last_ack();
                self.is_gone(packet);
            }
            &Body::Name { page, number, .. } => {
                self.on_name(packet.owner as usize, way, page, number);
            }
            &Body::Datagram { row, .. } => self.on_datagram(row),
            &Body::Probe { row } if way == Way::Forward => {
                let owner = packet.owner as usize;
                let answer = self.packet_of(owner, Way::Reverse, Body::Probe { row });
                self.enter_row(Way::Reverse, &answer);
            }
            &Body::Probe { row } => {
                let row = &mut self.tables.ping_samples[row as usize];
                row.rtt_us = Some(self.now_ns / 1000 - row.t_us);
            }
        }
    }

    #[inline(always)] // into what handles data
    fn send_ack(&mut self, flow: usize, owner: u32, ack: &Ack) {
        let way = self.connections[flow].data_way.back();
        self.makes_ack(owner as usize, way.back());
        let mut packet = self.packet_of(owner as usize, way, Body::Ack(*ack));
        if self.egress.passes(way, &mut packet) {
            self.connections[flow].under_way += 1;
            self.enter_row(way, &packet);
        }
    }

    /// Both FINs have arrived.
    fn send_last_ack(&mut self, flow: usize) {
        let connection = &self.connections[flow];
        let sender = &connection.sender;
        let (way, end) = (connection.data_way, sender.sequence_bytes(sender.snd_una()));
        let at_ns = self.now_ns;
        self.capture(|pcap| pcap.last_ack(at_ns, flow as u32, end));
        self.send_control(flow, way, Body::LastAck);
    }

    pub(crate) fn receiver_timer(&mut self, flow: usize) {
        if self.connections[flow].receiver_timer_ns != Some(self.now_ns) {
            return; // an earlier deadline took this one's place
        }
        self.connections[flow].receiver_timer_ns = None;
        let answer = self.connections[flow].receiver.on_timer(self.now_ns);
        if let Some(ack) = answer {
            let owner = self.owner(flow) as u32;
            self.send_ack(flow, owner, &ack);
        }
        self.arm_receiver(flow);
    }

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
        if connection.completion_us.is_some() || !connection.sender.is_finished() {
            return;
        }
        connection.completion_us = Some(self.now_ns / 1000);
        let bytes = connection.sender.acked_bytes();
        self.note(flow, "finish", bytes);
    }

    pub(crate) fn probe(&mut self, probe: usize) {
        let plan = &self.plan.probes[probe];
        let row = self.tables.ping_samples.len() as u32;
        self.tables.ping_samples.push(PingRow {
            t_us: self.now_ns / 1000,
            probe: plan.name.clone(),
            seq: self.probe_counts[probe],
            rtt_us: None,
        });
        self.probe_counts[probe] += 1;
        self.agenda
            .schedule(self.now_ns + plan.interval_ns, Event::Probe(probe as u32));
        let owner = self.plan.flows.len() + probe;
        let request = self.packet_of(owner, Way::Forward, Body::Probe { row });
        self.enter_row(Way::Forward, &request);
    }

    /// One event for the sender's earliest timer; a later deadline is found when it comes.
    #[inline]
    fn arm(&mut self, flow: usize) {
        let connection = &self.connections[flow];
        let pending_ns = connection.sender_timer_ns.unwrap_or(u64::MAX);
        if pending_ns > connection.sender.no_timer_before_ns() {
            self.arm_sooner(flow);
        }
    }

    /// A timer may expire before the event that is on the agenda.
    #[inline(never)] // few ACKs leave one
    fn arm_sooner(&mut self, flow: usize) {
        let connection = &mut self.connections[flow];
        let Some(at_ns) = connection.sender.timer_ns() else {
            return;
        };
        let at_ns = at_ns.max(self.now_ns);
        if connection
            .sender_timer_ns
            .is_none_or(|pending_ns| at_ns < pending_ns)
        {
            connection.sender_timer_ns = Some(at_ns);
            self.agenda.schedule(at_ns, Event::Sender(flow as u32));
        }
    }

    #[inline]
    fn arm_receiver(&mut self, flow: usize) {
        let connection = &self.connections[flow];
        let pending_ns = connection.receiver_timer_ns.unwrap_or(u64::MAX);
        if pending_ns > connection.receiver.no_timer_before_ns() {
            self.arm_receiver_sooner(flow);
        }
    }

    /// A timer may expire before the event that is on the agenda.
    #[inline(never)] // the first ACK that waits has an event that is late enough for many
    fn arm_receiver_sooner(&mut self, flow: usize) {
        let connection = &mut self.connections[flow];
        let Some(at_ns) = connection.receiver.timer_ns() else {
            return;
        };
        let at_ns = at_ns.max(self.now_ns);
        if connection
            .receiver_timer_ns
            .is_none_or(|pending_ns| at_ns < pending_ns)
        {
            connection.receiver_timer_ns = Some(at_ns);
            self.agenda.schedule(at_ns, Event::Receiver(flow as u32));
        }
    }

    /// Something of one of the plan's own flows is noted.
    pub(crate) fn note(&mut self, flow: usize, event: &str, value: u64) {
        if flow < self.plan.flows.len() {
            let row = recorder::event_row(self.now_ns, flow, event, value);
            self.tables.events.push(row);
        }
    }

    #[inline(never)] // rare
    fn note_events(&mut self, flow: usize) {
        let is_of_plan = flow < self.plan.flows.len();
        let sender = &mut self.connections[flow].sender;
        if !is_of_plan {
            drop(sender.take_events());
            return;
        }
        let cwnd = u64::from(sender.cwnd());
        let rows = sender
            .take_events()
            .map(|event| recorder::event_row(self.now_ns, flow, event.name(), cwnd));
        self.tables.events.extend(rows);
    }

    pub(crate) fn capture(&mut self, write: impl FnOnce(&mut PcapWriter) -> io::Result<()>) {
        if let Some(pcap) = &mut self.pcap {
            if let Err(error) = write(pcap) {
                self.pcap_error = Some(error);
                self.pcap = None;
            }
        }
    }
}

/// Seeds of a connection's own random numbers: its congestion control's, and what its packets cost.
#[derive(Default)]
pub(crate) struct Seeds {
    pub(crate) cc: u64,
    pub(crate) host: u64,
}

/// When those who read are away, of a run all at once: it is one machine that is busy.
fn absences(plan: &Plan) -> Option<Absences> {
    let pauses = plan.host.reader_pauses?;
    let one_begins_ns = derive_seed(plan.seed, purpose::READER, 0) % pauses.every_ns;
    Some(Absences {
        pauses,
        one_begins_ns,
    })
}

/// A flow, not connected yet; `is_written`: its application writes when it likes. `Err` says why its
/// congestion control cannot run.
pub(crate) fn connection(
    plan: &Plan,
    flow: &Flow,
    seeds: &Seeds,
    is_written: bool,
) -> Result<Connection, BadPlan> {
    let name = flow.cc.algorithm.as_deref().unwrap_or(&flow.cc.name);
    let known =
        algorithm(name).ok_or_else(|| BadPlan(format!("cc: {name} is not in the simulator")))?;
    let cc =
        Controller::new(known, &flow.cc.params).map_err(|error| BadPlan(format!("cc: {error}")))?;
    let mss_bytes = plan.ends.mtu_bytes - 52;
    let host = &plan.host;
    let write_interval_ns = flow.app_rate_bps.map_or(0, |rate_bps| {
        (u64::from(mss_bytes) * 8_000_000_000 / rate_bps.max(1)).max(1)
    });
    let ecn = flow.ecn || cc.wants(flags::WANTS_ECN);
    let feedback = match flow.ecn_kind {
        EcnKind::Accecn | EcnKind::L4s => Feedback::Accurate,
        EcnKind::Classic if cc.wants(flags::ECHOES_CE) => Feedback::EachPacket,
        EcnKind::Classic => Feedback::Latched,
    };
    let sender = SenderConfig {
        mss_bytes,
        pacing: host.pacing,
        pacing_shift: host.pacing_shift,
        gso_max_segments: host.gso_max_segments,
        rules: host.tcp,
        facts: host.cc_facts,
        initial_cwnd: host.initial_cwnd_packets,
        wmem_max_bytes: host.wmem_max_bytes,
        ecn,
        feedback,
        l4s: flow.ecn_kind == EcnKind::L4s,
        seed: seeds.cc as u32,
        amount_bytes: flow.amount_bytes,
        written_by_application: flow.app_rate_bps.is_some() || is_written,
    };
    let receiver = ReceiverConfig {
        mss_bytes,
        ack_policy: host.ack_policy,
        rules: host.tcp,
        window_bytes: flow.receive_window_bytes,
        rmem_max_bytes: host.rmem_max_bytes,
        low_water_bytes: plan.low_water_bytes(flow),
        absences: absences(plan),
        aggregation_ns: host.receive_aggregation_ns,
        feedback,
    };
    let rates_bps = plan.links[flow.route.range()]
        .iter()
        .filter_map(|link| link.rates_bps()[0]);
    let packet_bits = u64::from(plan.ends.mtu_bytes) * 8;
    let packet_ns = packet_bits * 1_000_000_000 / rates_bps.min().unwrap_or(u64::MAX).max(1);
    Ok(Connection {
        handshake: Handshake::new(ecn),
        sender: Sender::new(sender, cc),
        receiver: Receiver::new(receiver),
        receiver_host: Host::new(packet_ns, seeds.host),
        leaving: VecDeque::new(),
        access_free_ns: 0,
        sender_timer_ns: None,
        receiver_timer_ns: None,
        started: false,
        stopped: false,
        completion_us: None,
        write_interval_ns,
        data_way: if flow.direction == Direction::Up {
            Way::Forward
        } else {
            Way::Reverse
        },
        base_rtt_ns: plan.base_rtt_ns(flow),
        writer: None,
        page: None,
        start_ns: flow.start_ns,
        under_way: 0,
        visit: None,
    })
}
