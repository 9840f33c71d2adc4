//! Runs a plan: flows, probes and samples on one agenda.

use std::collections::VecDeque;
use std::fmt;
use std::io;

use fullpipe_cc::{algorithm, Controller};
use fullpipe_net::{derive_seed, purpose, Host, Packet};
use fullpipe_scenario::{CcRow, Direction, Flow, Pacing, PingRow, Plan, Tables};
use fullpipe_tcp::{Data, Receiver, ReceiverConfig, Sender, SenderConfig};

use crate::events::{Agenda, Event};
use crate::network::{bottlenecks, lines, Bottleneck, Line};
use crate::packet::{Body, Travelling, HEADER_BYTES};
use crate::pcap::PcapWriter;
use crate::recorder;

const FORWARD: usize = 0;
const REVERSE: usize = 1;
/// Events between two calls of `progress`.
const PROGRESS_EVERY: u64 = 1 << 16;

/// A plan that cannot be run; the message names key and value.
#[derive(Debug, PartialEq, Eq)]
pub struct BadPlan(pub String);

impl fmt::Display for BadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadPlan {}

/// What a run left.
#[derive(Debug)]
pub struct Outcome {
    /// The recording.
    pub tables: Tables,
    /// `progress` asked to stop before the end.
    pub interrupted: bool,
    /// Events handled.
    pub events: u64,
    /// Data packets that reached receivers.
    pub packets_delivered: u64,
    /// Data packets lost on the way, by queues and by chance.
    pub packets_lost: u64,
    /// Data packets still on their way when the run ended.
    pub packets_travelling: u64,
    /// The capture could not be written.
    pub pcap_error: Option<io::Error>,
}

/// Runs a plan to its end, or until `progress` (given the simulated ns now and then) returns false.
pub fn run(
    plan: &Plan,
    pcap: Option<PcapWriter>,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Outcome, BadPlan> {
    let mut simulation = Simulation::new(plan, pcap)?;
    let interrupted = simulation.run(progress);
    Ok(simulation.finish(interrupted))
}

/// One connection.
struct Connection {
    sender: Sender,
    receiver: Receiver,
    receiver_host: Host,
    /// Packets handed down by TCP, with the times at which they enter the network.
    leaving: VecDeque<(u64, Data)>,
    access_free_ns: u64,
    sender_timer_ns: Option<u64>,
    receiver_timer_ns: Option<u64>,
    started: bool,
    stopped: bool,
    completion_us: Option<u64>,
    write_interval_ns: u64,
    data_way: usize,
}

struct Simulation<'a> {
    plan: &'a Plan,
    now_ns: u64,
    agenda: Agenda,
    connections: Vec<Connection>,
    ways: [Bottleneck; 2],
    lines: Vec<Line>,
    tables: Tables,
    probe_counts: Vec<u64>,
    outgoing: Vec<Data>,
    dropped: Vec<Travelling>,
    pcap: Option<PcapWriter>,
    pcap_error: Option<io::Error>,
    delivered: u64,
    lost: u64,
    sent: u64,
}

impl<'a> Simulation<'a> {
    fn new(plan: &'a Plan, pcap: Option<PcapWriter>) -> Result<Self, BadPlan> {
        check(plan)?;
        let ways = bottlenecks(&plan.path, plan.seed)
            .ok_or_else(|| BadPlan("path.qdisc: cake is only in the kernel engines".into()))?;
        let mut connections = Vec::with_capacity(plan.flows.len());
        let mut all_lines = Vec::new();
        let mut agenda = Agenda::default();
        for (index, flow) in plan.flows.iter().enumerate() {
            connections.push(connection(plan, flow, index as u32)?);
            all_lines.extend(lines(&plan.path, Some(flow), index as u32, plan.seed));
            agenda.schedule(flow.start_ns, Event::Start(index as u32));
            if let Some(stop_ns) = flow.stop_ns {
                agenda.schedule(stop_ns, Event::Stop(index as u32));
            }
        }
        for (index, probe) in plan.probes.iter().enumerate() {
            let owner = (plan.flows.len() + index) as u32;
            all_lines.extend(lines(&plan.path, None, owner, plan.seed));
            agenda.schedule(probe.start_ns, Event::Probe(index as u32));
        }
        agenda.schedule(plan.sample_interval_ns, Event::Sample);
        Ok(Self {
            plan,
            now_ns: 0,
            agenda,
            connections,
            ways,
            lines: all_lines,
            tables: Tables::default(),
            probe_counts: vec![0; plan.probes.len()],
            outgoing: Vec::with_capacity(64),
            dropped: Vec::with_capacity(64),
            pcap,
            pcap_error: None,
            delivered: 0,
            lost: 0,
            sent: 0,
        })
    }

    /// True if it was asked to stop early.
    fn run(&mut self, progress: &mut dyn FnMut(u64) -> bool) -> bool {
        while let Some((at_ns, event)) = self.agenda.next() {
            if at_ns > self.plan.duration_ns {
                break;
            }
            self.now_ns = at_ns;
            self.handle(event);
            if self.agenda.handled() % PROGRESS_EVERY == 0 && !progress(at_ns) {
                return true;
            }
        }
        progress(self.plan.duration_ns);
        false
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Link(way) => {
                if let Some(shaped) = &mut self.ways[usize::from(way)].shaped {
                    shaped.waiting = false;
                }
                self.serve(usize::from(way));
            }
            Event::Line(line) => self.arrivals(line as usize),
            Event::Sender(flow) => self.sender_timer(flow as usize),
            Event::Receiver(flow) => self.receiver_timer(flow as usize),
            Event::Departure(flow) => self.depart(flow as usize),
            Event::Write(flow) => self.write(flow as usize),
            Event::Start(flow) => self.start(flow as usize),
            Event::Established(flow) => self.established(flow as usize),
            Event::Stop(flow) => {
                let connection = &mut self.connections[flow as usize];
                connection.sender.stop();
                connection.stopped = true;
            }
            Event::Probe(probe) => self.probe(probe as usize),
            Event::Sample => self.sample(),
        }
    }

    fn start(&mut self, flow: usize) {
        let base_ns = self.base_rtt_ns(flow);
        let connection = &mut self.connections[flow];
        connection.started = true;
        let way = connection.data_way;
        self.tables
            .events
            .push(recorder::event_row(self.now_ns, flow, "start", 0));
        // The handshake's packets wait in the queue as it is now; where each flow has its own
        // queue, they do not.
        let aqm = if way == FORWARD {
            &self.plan.path.qdisc.aqm
        } else {
            &self.plan.path.reverse_qdisc.aqm
        };
        let shared = !matches!(
            aqm,
            fullpipe_scenario::Aqm::Fq { .. } | fullpipe_scenario::Aqm::FqCodel { .. }
        );
        let waiting = self.ways[way].shaped.as_ref().filter(|_| shared);
        let queued_bytes = waiting.map_or(0, |shaped| shaped.queue.bytes());
        let rate_bps = self.rate_bps(way);
        let queue_ns = queued_bytes * 8_000_000_000 / rate_bps.max(1);
        // Neighbours are resolved once, by the first exchange.
        let arp_ns = if self.plan.host.arp && self.now_ns < base_ns {
            base_ns
        } else {
            0
        };
        self.agenda.schedule(
            self.now_ns + base_ns + queue_ns + arp_ns,
            Event::Established(flow as u32),
        );
    }

    fn established(&mut self, flow: usize) {
        let connection = &mut self.connections[flow];
        let rtt_ns = self.now_ns - self.plan.flows[flow].start_ns;
        connection
            .sender
            .establish(self.now_ns, rtt_ns, connection.receiver.window_bytes());
        let value = u64::from(connection.sender.cwnd());
        self.tables
            .events
            .push(recorder::event_row(self.now_ns, flow, "established", value));
        if connection.write_interval_ns > 0 {
            self.agenda.schedule(self.now_ns, Event::Write(flow as u32));
        }
        let (mss, ecn) = (connection.sender.mss_bytes(), self.plan.flows[flow].ecn);
        let at_ns = self.now_ns;
        self.capture(|pcap| pcap.handshake(at_ns, rtt_ns, flow as u32, mss, ecn));
        self.transmit(flow);
    }

    fn write(&mut self, flow: usize) {
        let connection = &mut self.connections[flow];
        if connection.stopped {
            return;
        }
        connection.sender.write(1);
        let next_ns = self.now_ns + connection.write_interval_ns;
        self.agenda.schedule(next_ns, Event::Write(flow as u32));
        self.transmit(flow);
    }

    fn transmit(&mut self, flow: usize) {
        let mut outgoing = std::mem::take(&mut self.outgoing);
        self.connections[flow]
            .sender
            .transmit(self.now_ns, &mut outgoing);
        self.send_out(flow, &mut outgoing);
        self.outgoing = outgoing;
    }

    fn sender_timer(&mut self, flow: usize) {
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
        let mut outgoing = std::mem::take(&mut self.outgoing);
        self.connections[flow]
            .sender
            .on_timer(self.now_ns, &mut outgoing);
        self.send_out(flow, &mut outgoing);
        self.outgoing = outgoing;
    }

    /// Hands what TCP sent to the network, now or when it departs. What leaves at once makes room
    /// below TCP (tcp_wfree()), so that it may send more.
    fn send_out(&mut self, flow: usize, outgoing: &mut Vec<Data>) {
        while self.hand_down(flow, outgoing) {
            self.connections[flow]
                .sender
                .transmit(self.now_ns, outgoing);
        }
        self.note_events(flow);
        self.arm(flow);
    }

    /// True if something left through fq at once.
    fn hand_down(&mut self, flow: usize, outgoing: &mut Vec<Data>) -> bool {
        let mut made_room = false;
        let access_bps = self.plan.host.access_rate_bps;
        let direct = self.plan.host.pacing == Pacing::Internal && access_bps == 0;
        self.sent += outgoing.len() as u64;
        for data in outgoing.drain(..) {
            if self.pcap.is_some() {
                let mss = self.connections[flow].sender.mss_bytes();
                self.capture(|pcap| pcap.data(flow as u32, mss, &data));
            }
            if direct {
                self.enter(flow, data);
                continue;
            }
            let connection = &mut self.connections[flow];
            let mut enters_ns = data.departs_ns;
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
                self.enter(flow, data);
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

    /// Bursts whose time has come leave the sender's host.
    fn depart(&mut self, flow: usize) {
        while let Some(&(enters_ns, data)) = self.connections[flow].leaving.front() {
            if enters_ns > self.now_ns {
                self.agenda
                    .schedule(enters_ns, Event::Departure(flow as u32));
                break;
            }
            let connection = &mut self.connections[flow];
            connection.leaving.pop_front();
            connection.sender.departed(u64::from(data.payload_bytes));
            self.enter(flow, data);
        }
        self.transmit(flow);
    }

    /// A data packet enters the network at its sender.
    fn enter(&mut self, flow: usize, data: Data) {
        let way = self.connections[flow].data_way;
        let mut packet = Travelling {
            owner: flow as u32,
            body: Body::Data(data),
        };
        if self.ways[way].survives(&mut packet) {
            self.offer(way, packet);
        } else {
            self.lost += 1;
        }
    }

    /// A packet reaches a bottleneck.
    fn offer(&mut self, way: usize, packet: Travelling) {
        let Some(shaped) = &mut self.ways[way].shaped else {
            self.pass(way, packet);
            return;
        };
        shaped.queue.enqueue(self.now_ns, packet, &mut self.dropped);
        let waiting = shaped.waiting;
        self.count_dropped();
        if !waiting {
            self.serve(way);
        }
    }

    /// Passes what the rate allows, and plans the next packet.
    fn serve(&mut self, way: usize) {
        loop {
            let Some(shaped) = &mut self.ways[way].shaped else {
                return;
            };
            let ready_ns = shaped.shaper.ready_ns();
            if ready_ns > self.now_ns {
                if shaped.queue.packets() > 0 && !shaped.waiting {
                    shaped.waiting = true;
                    self.agenda.schedule(ready_ns, Event::Link(way as u8));
                }
                return;
            }
            let next = shaped.queue.dequeue(self.now_ns, &mut self.dropped);
            if let Some(packet) = &next {
                shaped.shaper.charge(self.now_ns, packet.wire_bytes());
            }
            self.count_dropped();
            let Some(packet) = next else { return };
            self.pass(way, packet);
        }
    }

    fn count_dropped(&mut self) {
        for packet in self.dropped.drain(..) {
            self.lost += u64::from(matches!(packet.body, Body::Data(_)));
        }
    }

    /// A packet leaves a bottleneck for its delay line.
    fn pass(&mut self, way: usize, packet: Travelling) {
        let index = packet.owner as usize * 2 + way;
        let enters_ns = match packet.body {
            Body::Ack(_) => {
                let host = &self.connections[packet.owner as usize].receiver_host;
                host.free_ns().max(self.now_ns)
            }
            _ => self.now_ns,
        };
        let line = &mut self.lines[index];
        let due_ns = line.due_ns(enters_ns);
        if due_ns <= self.now_ns && line.packets.is_empty() {
            self.deliver(way, packet);
        } else if line.packets.push(due_ns, packet).is_some() {
            self.await_head(index);
        }
    }

    fn arrivals(&mut self, index: usize) {
        self.lines[index].is_awaited = false;
        while let Some(packet) = self.lines[index].packets.pop(self.now_ns) {
            // Whatever this sets off may come back to this very line.
            self.deliver(index % 2, packet);
        }
        self.await_head(index);
    }

    fn await_head(&mut self, index: usize) {
        let line = &mut self.lines[index];
        if let (Some(due_ns), false) = (line.packets.due_ns(), line.is_awaited) {
            line.is_awaited = true;
            self.agenda.schedule(due_ns, Event::Line(index as u32));
        }
    }

    /// A packet arrives at the end of its way.
    fn deliver(&mut self, way: usize, packet: Travelling) {
        let owner = packet.owner as usize;
        match packet.body {
            Body::Data(data) => {
                self.delivered += 1;
                let connection = &mut self.connections[owner];
                connection.receiver_host.handle(self.now_ns);
                let answer = connection.receiver.on_data(self.now_ns, &data);
                if let Some(ack) = answer {
                    self.send_ack(owner, ack);
                }
                self.arm_receiver(owner);
            }
            Body::Ack(ack) => {
                let connection = &mut self.connections[owner];
                connection.sender.on_ack(self.now_ns, &ack);
                if self.pcap.is_some() {
                    let mss = connection.sender.mss_bytes();
                    let bytes = if ack.next == connection.sender.snd_una() {
                        connection.sender.acked_bytes()
                    } else {
                        u64::from(ack.next) * u64::from(mss)
                    };
                    let at_ns = self.now_ns;
                    self.capture(|pcap| pcap.ack(at_ns, owner as u32, mss, bytes, &ack));
                }
                self.transmit(owner);
                self.complete(owner);
            }
            Body::Probe { row } if way == FORWARD => {
                let answer = Travelling {
                    owner: packet.owner,
                    body: Body::Probe { row },
                };
                self.offer(REVERSE, answer);
            }
            Body::Probe { row } => {
                let row = &mut self.tables.ping_samples[row as usize];
                row.rtt_us = Some(self.now_ns / 1000 - row.t_us);
            }
        }
    }

    fn send_ack(&mut self, flow: usize, ack: fullpipe_tcp::Ack) {
        let way = 1 - self.connections[flow].data_way;
        let mut packet = Travelling {
            owner: flow as u32,
            body: Body::Ack(ack),
        };
        if self.ways[way].survives(&mut packet) {
            self.offer(way, packet);
        }
    }

    fn receiver_timer(&mut self, flow: usize) {
        if self.connections[flow].receiver_timer_ns != Some(self.now_ns) {
            return; // an earlier deadline took this one's place
        }
        self.connections[flow].receiver_timer_ns = None;
        let answer = self.connections[flow].receiver.on_timer(self.now_ns);
        if let Some(ack) = answer {
            self.send_ack(flow, ack);
        }
        self.arm_receiver(flow);
    }

    fn complete(&mut self, flow: usize) {
        let connection = &mut self.connections[flow];
        if connection.completion_us.is_some() || !connection.sender.is_finished() {
            return;
        }
        connection.completion_us = Some(self.now_ns / 1000);
        let bytes = connection.sender.acked_bytes();
        self.tables
            .events
            .push(recorder::event_row(self.now_ns, flow, "finish", bytes));
        let at_ns = self.now_ns;
        self.capture(|pcap| pcap.fin(at_ns, flow as u32, bytes));
    }

    fn probe(&mut self, probe: usize) {
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
        let owner = (self.plan.flows.len() + probe) as u32;
        self.offer(
            FORWARD,
            Travelling {
                owner,
                body: Body::Probe { row },
            },
        );
    }

    fn sample(&mut self) {
        let t_us = self.now_ns / 1000;
        for (id, connection) in self.connections.iter().enumerate() {
            if connection.started {
                let (sender, receiver) = (&connection.sender, &connection.receiver);
                let row = recorder::flow_sample(t_us, id as u64, sender, receiver);
                self.tables.flow_samples.push(row);
                if sender.is_established() {
                    let row = CcRow::of(t_us, id as u64, &sender.cc_info());
                    self.tables.cc_samples.push(row);
                }
            }
        }
        for (name, way) in ["forward", "reverse"].iter().zip(&self.ways) {
            self.tables
                .queue_samples
                .extend(recorder::queue_sample(t_us, name, way));
        }
        self.agenda
            .schedule(self.now_ns + self.plan.sample_interval_ns, Event::Sample);
    }

    /// One event for the sender's earliest timer; a later deadline is found when it comes.
    fn arm(&mut self, flow: usize) {
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

    fn arm_receiver(&mut self, flow: usize) {
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

    fn note_events(&mut self, flow: usize) {
        let sender = &mut self.connections[flow].sender;
        if !sender.has_events() {
            return;
        }
        let cwnd = u64::from(sender.cwnd());
        let rows = sender
            .take_events()
            .map(|event| recorder::event_row(self.now_ns, flow, event.name(), cwnd));
        self.tables.events.extend(rows);
    }

    fn capture(&mut self, write: impl FnOnce(&mut PcapWriter) -> io::Result<()>) {
        if let Some(pcap) = &mut self.pcap {
            if let Err(error) = write(pcap) {
                self.pcap_error = Some(error);
                self.pcap = None;
            }
        }
    }

    fn base_rtt_ns(&self, flow: usize) -> u64 {
        self.lines[flow * 2].delay_ns + self.lines[flow * 2 + 1].delay_ns
    }

    fn rate_bps(&self, way: usize) -> u64 {
        let path = &self.plan.path;
        if way == FORWARD {
            path.rate_bps
        } else {
            path.reverse_rate_bps.unwrap_or(u64::MAX)
        }
    }

    fn finish(mut self, interrupted: bool) -> Outcome {
        for flow in 0..self.connections.len() {
            let connection = &self.connections[flow];
            let row = recorder::flow_row(
                flow as u64,
                &self.plan.flows[flow],
                self.base_rtt_ns(flow) / 1000,
                connection.completion_us,
                &connection.sender,
                &connection.receiver,
            );
            self.tables.flows.push(row);
        }
        if let Some(pcap) = &mut self.pcap {
            self.pcap_error = pcap.finish().err();
        }
        Outcome {
            tables: self.tables,
            interrupted,
            events: self.agenda.handled(),
            packets_delivered: self.delivered,
            packets_lost: self.lost,
            packets_travelling: self.sent - self.delivered - self.lost,
            pcap_error: self.pcap_error,
        }
    }
}

/// What the simulator relies on; the front end has checked the rest.
fn check(plan: &Plan) -> Result<(), BadPlan> {
    let bad = |text: &str| Err(BadPlan(text.to_owned()));
    if plan.duration_ns == 0 || plan.sample_interval_ns == 0 {
        return bad("duration_ns and sample_interval_ns: must be above 0");
    }
    if plan.path.rate_bps == 0 || plan.path.reverse_rate_bps == Some(0) {
        return bad("path.rate_bps: must be above 0");
    }
    if !(128..=65_000).contains(&plan.path.mtu_bytes) {
        return bad("path.mtu_bytes: must be from 128 to 65000");
    }
    if plan.flows.is_empty() {
        return bad("flows: there must be at least one");
    }
    if plan.probes.iter().any(|probe| probe.interval_ns == 0) {
        return bad("probes.interval_ns: must be above 0");
    }
    if plan.host.initial_cwnd_packets == 0 || plan.host.gso_max_segments == 0 {
        return bad("host.initial_cwnd_packets, host.gso_max_segments: must be above 0");
    }
    Ok(())
}

fn connection(plan: &Plan, flow: &Flow, index: u32) -> Result<Connection, BadPlan> {
    let name = flow.cc.algorithm.as_deref().unwrap_or(&flow.cc.name);
    let known = algorithm(name)
        .ok_or_else(|| BadPlan(format!("flows.{index}.cc: {name} is not in the simulator")))?;
    let cc = Controller::new(known, &flow.cc.params)
        .map_err(|error| BadPlan(format!("flows.{index}.cc: {error}")))?;
    let mss_bytes = plan.path.mtu_bytes - 52;
    let host = &plan.host;
    let write_interval_ns = flow.app_rate_bps.map_or(0, |rate_bps| {
        (u64::from(mss_bytes) * 8_000_000_000 / rate_bps.max(1)).max(1)
    });
    let sender = SenderConfig {
        mss_bytes,
        pacing: host.pacing,
        pacing_shift: host.pacing_shift,
        gso_max_segments: host.gso_max_segments,
        initial_cwnd: host.initial_cwnd_packets,
        wmem_max_bytes: host.wmem_max_bytes,
        ecn: flow.ecn,
        seed: derive_seed(plan.seed, purpose::CC, index) as u32,
        amount_bytes: flow.amount_bytes,
        written_by_application: flow.app_rate_bps.is_some(),
    };
    let receiver = ReceiverConfig {
        mss_bytes,
        ack_policy: host.ack_policy,
        window_bytes: flow.receive_window_bytes,
        rmem_max_bytes: host.rmem_max_bytes,
        low_water_bytes: plan.low_water_bytes(flow),
        aggregation_ns: host.receive_aggregation_ns,
    };
    let packet_ns = u64::from(plan.path.mtu_bytes) * 8_000_000_000 / plan.path.rate_bps.max(1);
    Ok(Connection {
        sender: Sender::new(sender, cc),
        receiver: Receiver::new(receiver),
        receiver_host: Host::new(packet_ns, derive_seed(plan.seed, purpose::HOST, index)),
        leaving: VecDeque::new(),
        access_free_ns: 0,
        sender_timer_ns: None,
        receiver_timer_ns: None,
        started: false,
        stopped: false,
        completion_us: None,
        write_interval_ns,
        data_way: if flow.direction == Direction::Up {
            FORWARD
        } else {
            REVERSE
        },
    })
}
