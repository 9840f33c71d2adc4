//! One run, from the plan to the last frame: load, build, start, sample, stop, sum up. This module has
//! the order; the modules that it calls know how each step is done.

use std::io;
use std::os::fd::AsFd;

use fullpipe_net::{derive_seed, purpose};
use fullpipe_plan::stream::Frame;
use fullpipe_plan::{EcnKind, EventRow, Flow, FlowDirection, FlowRow, Pacing, Plan};
use fullpipe_workload::{Writer, Writing};
use nix::sys::epoll::EpollFlags;
use nix::sys::signalfd::SignalFd;

use crate::agenda::{Agenda, Task};
use crate::check::check;
use crate::clock::{now_ns, Poller};
use crate::congestion::Congestion;
use crate::flows::{
    AnyPage, Connection, ConnectionEvent, Context, Control, FlowMeter, FlowPool, Pace, PageFlow,
    ProbeFlow, StreamFlow, WebFlow,
};
use crate::health::Health;
use crate::kernel_cc::{kernel_release, Loaded};
use crate::net::{self, Home, Topology};
use crate::peer::PeerLink;
use crate::request::Request;
use crate::sample::{counters, EcnMode, HostMeter, Processors, QueueMeter, HOST_INTERVAL_NS};
use crate::sink::Sink;
use crate::socket::Payload;

/// The run begins at a multiple of this, so that its phase against the kernel's tick is always the
/// same.
const START_GRID_NS: u64 = 100_000_000;
const PROGRESS_NS: u64 = 100_000_000;
/// The period of a script that sleeps 100 ms between two reads. It is no multiple of the kernel's tick,
/// so that the processes meet every phase of the tick.
const BACKGROUND_NS: u64 = 110_300_000;
/// Tokens of probes begin here; those below are connections'.
const PROBE_TOKENS: u64 = 1 << 32;
/// Tokens of pages: the page, its connection and which of its sockets.
const PAGE_TOKENS: u64 = 1 << 33;
const PAGE_SHIFT: u32 = 16;
/// Tokens of streams of datagrams.
const STREAM_TOKENS: u64 = 1 << 34;
/// Token of the event that connections have arrived.
const ARRIVAL_TOKEN: u64 = u64::MAX - 1;
/// Token of a request to end.
const END_TOKEN: u64 = u64::MAX;

/// Does a run in namespaces of this kernel. `ready` has the congestion controls that are loaded already.
pub(crate) fn run_here(
    request: &Request,
    processors: Processors,
    ready: &mut Vec<Loaded>,
    sink: &mut dyn Sink,
) -> Result<(), String> {
    check(&request.plan)?;
    let _home = Home::remember().map_err(|error| format!("network namespace: {error}"))?;
    let congestion = Congestion::load(request, ready, |_| true)?;
    let topology = net::build(&request.plan)?;
    sink.put(&Frame::Fact("qdiscs".into(), topology.lines.join("\n")));
    let mut session = Session::open(request, topology, congestion, processors, None)?;
    let start_ns = (now_ns() + START_GRID_NS / 10).next_multiple_of(START_GRID_NS);
    session.run_from(start_ns, sink)?;
    session.finish(sink)
}

/// The release of this kernel.
pub(crate) fn kernel_fact() -> Frame {
    Frame::Fact("kernel".into(), kernel_release())
}

/// One flow of the run.
struct FlowState {
    connection: Connection,
    meter: FlowMeter,
    completion_us: Option<u64>,
    /// Of an application with a rate, once its connection is established.
    pace: Option<Pace>,
}

/// A run on this kernel, or this end's part of a run between two hosts.
pub(crate) struct Session<'a> {
    request: &'a Request,
    plan: &'a Plan,
    topology: Topology,
    /// The connection to the other host, in a run between two hosts.
    peer_link: Option<PeerLink>,
    congestion: Congestion,
    flows: Vec<FlowState>,
    probes: Vec<ProbeFlow>,
    pages: Vec<AnyPage>,
    streams: Vec<StreamFlow>,
    flow_pool: FlowPool,
    writers: Vec<Option<Writer>>,
    queues: QueueMeter,
    host: HostMeter,
    poller: Poller,
    payload: Payload,
    agenda: Agenda,
    health: Health,
    start_ns: u64,
    _requests_to_end: SignalFd,
    end_requested: bool,
}

impl<'a> Session<'a> {
    /// This end's part of a run between two hosts.
    pub(crate) fn with_peer(request: &'a Request, peer_link: PeerLink) -> Result<Self, String> {
        let congestion = Congestion::load(request, &mut Vec::new(), |flow| peer_link.sends(flow))?;
        let topology = Topology::beyond_our_control(peer_link.address(), request.plan.probes.len());
        let processors = Processors::default();
        Self::open(request, topology, congestion, processors, Some(peer_link))
    }

    /// Creates everything and starts nothing.
    fn open(
        request: &'a Request,
        topology: Topology,
        congestion: Congestion,
        processors: Processors,
        peer_link: Option<PeerLink>,
    ) -> Result<Self, String> {
        let plan = &request.plan;
        let poller = Poller::new().map_err(|error| format!("epoll: {error}"))?;
        let payload = Payload::new().map_err(|error| format!("memory for payload: {error}"))?;
        let end_signals = poller
            .watch_end_signals(END_TOKEN)
            .map_err(|error| format!("signals: {error}"))?;
        let mut flows = Vec::with_capacity(plan.flows.len());
        for (index, flow) in plan.flows.iter().enumerate() {
            let unsent_most_bytes = plan.notsent_lowat_bytes(flow);
            let low_water_bytes = plan.receive_low_water_bytes(flow);
            // With accurate ECN the receiver counts marks, which replaces DCTCP's echo.
            let echoes_marks =
                congestion.is_at_both_ends(index) && flow.ecn_kind != EcnKind::Accecn;
            let connection = match &peer_link {
                None => Connection::open(
                    flow,
                    index,
                    (congestion.name(index), echoes_marks),
                    &topology.nodes,
                    topology.flow_ends[index],
                    low_water_bytes,
                    unsent_most_bytes,
                )?,
                Some(peer_link) => Connection::with_peer(
                    flow,
                    index,
                    peer_link.is_near(),
                    low_water_bytes,
                    unsent_most_bytes,
                ),
            };
            let is_paced = plan.host.pacing == Pacing::Fq || congestion.paces(index);
            flows.push(FlowState {
                connection,
                meter: FlowMeter::new(index as u64, is_paced),
                completion_us: None,
                pace: None,
            });
        }
        let mut probes = Vec::with_capacity(plan.probes.len());
        for (index, probe) in plan.probes.iter().enumerate() {
            // The far end of two hosts sends no probes.
            let Some(&ends) = topology.probe_ends.get(index) else {
                break;
            };
            let probe_flow = ProbeFlow::open(probe, index, &topology.nodes, ends)?;
            let token = PROBE_TOKENS + 2 * index as u64;
            probe_flow
                .watch(&poller, token)
                .map_err(|error| format!("probe {}: {error}", probe.name))?;
            probes.push(probe_flow);
        }
        let mut ends = topology.application_ends.iter();
        let (mut pages, mut streams) = (Vec::new(), Vec::new());
        for (index, page) in (0..).zip(&plan.pages) {
            let Some(&ends) = ends.next() else { break };
            let name = congestion.name(plan.flows.len() + index as usize);
            let token = PAGE_TOKENS | u64::from(index) << PAGE_SHIFT;
            let nodes = &topology.nodes;
            pages.push(match &request.web {
                None => AnyPage::Own(Box::new(PageFlow::open(
                    page, index, name, nodes, ends, &poller, token,
                )?)),
                Some(web) => AnyPage::Programs(Box::new(WebFlow::open(
                    page, index, web, name, nodes, ends, token,
                )?)),
            });
        }
        for (index, stream) in (0..).zip(&plan.datagrams) {
            let Some(&ends) = ends.next() else { break };
            let seed = derive_seed(plan.seed, purpose::DATAGRAMS, index);
            let token = STREAM_TOKENS | u64::from(index);
            let nodes = &topology.nodes;
            streams.push(StreamFlow::open(
                stream, index, seed, nodes, ends, &poller, token,
            )?);
        }
        if let Some(peer_link) = &peer_link {
            poller
                .watch(
                    peer_link.arrivals.ready(),
                    EpollFlags::EPOLLIN,
                    ARRIVAL_TOKEN,
                )
                .map_err(|error| format!("arrivals: {error}"))?;
        }
        let before = plan.flows.len() + plan.pages.len();
        let flow_pool = FlowPool::new(plan, &topology.traffic_ends, |group| {
            let group = before + group;
            Control {
                name: congestion.name(group).to_owned(),
                is_at_both_ends: congestion.is_at_both_ends(group),
                is_paced: plan.host.pacing == Pacing::Fq || congestion.paces(group),
            }
        })?;
        let queues = QueueMeter::new(&topology, plan.access.mtu_bytes)?;
        let machine = match &peer_link {
            None => "local",
            Some(peer_link) if peer_link.is_near() => "near",
            Some(_) => "far",
        };
        let host = HostMeter::new(machine, processors, &topology)?;
        Ok(Self {
            request,
            plan,
            topology,
            peer_link,
            congestion,
            flows,
            probes,
            pages,
            streams,
            flow_pool,
            writers: plan.flows.iter().map(|_| None).collect(),
            queues,
            host,
            poller,
            payload,
            agenda: Agenda::default(),
            health: Health::start(processors, now_ns(), plan.sample_interval_ns),
            start_ns: 0,
            _requests_to_end: end_signals,
            end_requested: false,
        })
    }

    /// Ends the run when `descriptor` becomes readable.
    pub(crate) fn end_with(&self, descriptor: &impl AsFd) -> io::Result<()> {
        self.poller
            .watch(descriptor.as_fd(), EpollFlags::EPOLLIN, END_TOKEN)
    }

    fn fill_agenda(&mut self) {
        let plan = self.plan;
        let mut add = |at_ns: u64, task| self.agenda.add(self.start_ns + at_ns, task);
        for (index, flow) in plan.flows.iter().enumerate() {
            add(flow.start_ns, Task::Start(index));
            if let Some(stop_ns) = flow.stop_ns {
                add(stop_ns, Task::Stop(index));
            }
        }
        for (index, probe) in plan.probes.iter().enumerate().take(self.probes.len()) {
            add(probe.start_ns, Task::Probe(index));
        }
        if let Some(change) = self.topology.changes.first() {
            add(change.at_ns, Task::Change(0));
        }
        for (index, page) in self.pages.iter_mut().enumerate() {
            if let Some(at_ns) = page.arm_ns() {
                add(at_ns, Task::Page(index));
            }
        }
        for (index, stream) in self.streams.iter().enumerate() {
            if let Some(at_ns) = stream.due_ns() {
                add(at_ns, Task::Datagram(index));
            }
        }
        for group in 0..self.flow_pool.groups() {
            if let Some(at_ns) = self.flow_pool.next_ns(group) {
                add(at_ns, Task::Arrive(group));
            }
        }
        if self.request.background_processes > 0 {
            add(BACKGROUND_NS, Task::Background);
        }
        add(plan.sample_interval_ns, Task::Sample);
        add(PROGRESS_NS, Task::Progress);
        add(self.health.cpu.due_ns() - self.start_ns, Task::Cpu);
        add(0, Task::Host);
        add(plan.duration_ns, Task::End);
    }

    /// Runs until the end of the plan's duration or a request to end.
    pub(crate) fn run_from(&mut self, start_ns: u64, sink: &mut dyn Sink) -> Result<(), String> {
        for flow in 0..self.flows.len() {
            if let Some(introduction) = self.congestion.introduction(flow) {
                sink.put(&introduction);
            }
        }
        self.start_ns = start_ns;
        self.health.cpu.begin(start_ns);
        self.fill_agenda();
        while let Some(next_ns) = self.agenda.next_ns() {
            let (count, is_due) = self
                .poller
                .wait_until(next_ns)
                .map_err(|error| format!("epoll: {error}"))?;
            for index in 0..count {
                self.handle(index, sink);
            }
            if self.end_requested {
                return Ok(());
            }
            // In User Mode Linux even the clock is a system call, and those are most of what a packet costs.
            if !is_due {
                continue;
            }
            while let Some((due_ns, task)) = self.agenda.take(now_ns()) {
                if task == Task::End {
                    return Ok(());
                }
                self.perform(task, due_ns, sink)?;
            }
        }
        Ok(())
    }

    fn handle(&mut self, index: usize, sink: &mut dyn Sink) {
        let (token, flags) = self.poller.event(index);
        if token == END_TOKEN {
            self.end_requested = true;
            return;
        }
        if token == ARRIVAL_TOKEN {
            self.adopt(sink);
            return;
        }
        if token >= STREAM_TOKENS {
            let (index, t_ns) = ((token - STREAM_TOKENS) as usize, now_ns() - self.start_ns);
            if let Err(error) = self.streams[index].receive(t_ns) {
                let name = &self.plan.datagrams[index].name;
                self.health.add_problem(format!("udp {name}: {error}"));
            }
            return;
        }
        if let Some(token) = token.checked_sub(PAGE_TOKENS) {
            let below = token & ((1 << PAGE_SHIFT) - 1);
            self.with_page((token >> PAGE_SHIFT) as usize, |page, context| {
                page.handle(below, flags, context)
            });
            return;
        }
        if let Some(token) = token.checked_sub(PROBE_TOKENS) {
            let probe = &mut self.probes[(token / 2) as usize];
            let done = if token % 2 == 0 {
                probe.answers(now_ns())
            } else {
                probe.answer()
            };
            if let Err(error) = done {
                let name = &self.plan.probes[(token / 2) as usize].name;
                self.health.add_problem(format!("probe {name}: {error}"));
            }
            return;
        }
        let (flow, role) = Connection::of_token(token);
        if flow >= self.flows.len() {
            let context = context_of((&self.poller, &self.payload), &self.topology, self.start_ns);
            if let Some(row) = self.flow_pool.handle(flow, role, flags, &context) {
                sink.put(&Frame::Traffic(row));
            }
            for (at_ns, place, came) in self.flow_pool.take_due() {
                self.agenda
                    .add(self.start_ns + at_ns, Task::Chunk(place, came));
            }
            return;
        }
        let is_woken = flags.contains(EpollFlags::EPOLLOUT) && self.owe(flow);
        let connection = &mut self.flows[flow].connection;
        let event = connection.handle(role, flags, &self.poller, &self.payload);
        if let Some(event) = event {
            self.note(flow, event, sink);
        }
        if is_woken {
            self.write_on(flow);
        }
    }

    /// Runs `work` on a page and puts the page's next deadline on the agenda.
    fn with_page(
        &mut self,
        index: usize,
        work: impl FnOnce(&mut AnyPage, &Context) -> io::Result<()>,
    ) {
        let context = context_of((&self.poller, &self.payload), &self.topology, self.start_ns);
        let page = &mut self.pages[index];
        if let Err(error) = work(page, &context) {
            let name = &self.plan.pages[index].name;
            self.health.add_problem(format!("page {name}: {error}"));
        }
        if let Some(at_ns) = page.arm_ns() {
            self.agenda.add(self.start_ns + at_ns, Task::Page(index));
        }
    }

    /// Hands connections that have arrived to their flows.
    fn adopt(&mut self, sink: &mut dyn Sink) {
        let arrived = self
            .peer_link
            .as_ref()
            .map(|peer_link| peer_link.arrivals.take());
        for (flow, socket) in arrived.unwrap_or_default() {
            // The other end may name a flow that does not exist.
            let Some(state) = self.flows.get_mut(flow) else {
                continue;
            };
            let name = self.congestion.name(flow);
            let adopted = socket.and_then(|socket| {
                state
                    .connection
                    .adopt(socket, name, &self.poller, &self.payload)
            });
            match adopted {
                Ok(Some(event)) => self.note(flow, event, sink),
                Ok(None) => {}
                Err(error) => self.broken(flow, Err(error)),
            }
        }
    }

    /// Whether this end measures the flow.
    fn measures(&self, flow: usize) -> bool {
        let flow = &self.plan.flows[flow];
        self.peer_link
            .as_ref()
            .is_none_or(|peer_link| peer_link.sends(flow))
    }

    fn note(&mut self, flow: usize, event: ConnectionEvent, sink: &mut dyn Sink) {
        let t_us = self.t_us(now_ns());
        if let ConnectionEvent::Broken(error) = &event {
            self.add_flow_problem(flow, error);
        }
        if !self.measures(flow) {
            return;
        }
        let planned = &self.plan.flows[flow];
        let first_write = matches!(event, ConnectionEvent::Established)
            && (planned.app_rate_bps.is_some() || planned.pattern.is_some());
        if let (true, Some(pattern)) = (first_write, planned.pattern) {
            let seed = derive_seed(self.plan.seed, purpose::PATTERN, flow as u32);
            self.writers[flow] = Some(Writer::new(pattern, now_ns(), seed));
        }
        if first_write {
            let now = now_ns();
            let packet_bytes = u64::from(self.plan.access.mss_bytes());
            self.flows[flow].pace = Pace::new(planned, packet_bytes, now);
            self.agenda.add(now, Task::Write(flow));
        }
        self.look(flow, t_us, sink);
        let state = &mut self.flows[flow];
        let (event, value) = match event {
            ConnectionEvent::Established => {
                ("established", u64::from(state.meter.sender().snd_cwnd))
            }
            ConnectionEvent::Finished => {
                state.completion_us = Some(t_us);
                ("finish", state.meter.acked_bytes(&state.connection))
            }
            ConnectionEvent::Broken(_) | ConnectionEvent::Drained => return,
        };
        put_event(sink, t_us, flow, event, value);
    }

    /// Applies a change of the network and schedules the next one.
    fn change(&mut self, index: usize) -> Result<(), String> {
        self.topology.changes[index].apply(&mut self.topology.nodes)?;
        if let Some(next) = self.topology.changes.get(index + 1) {
            let at_ns = self.start_ns + next.at_ns;
            self.agenda.add(at_ns, Task::Change(index + 1));
        }
        Ok(())
    }

    fn perform(&mut self, task: Task, due_ns: u64, sink: &mut dyn Sink) -> Result<(), String> {
        let now = now_ns();
        match task {
            Task::Change(index) => self.change(index)?,
            Task::Sample => {
                self.health.note_sample(due_ns, now);
                self.sample(self.t_us(now), sink)?;
                let next_ns = due_ns + self.plan.sample_interval_ns;
                self.agenda.add(next_ns, Task::Sample);
            }
            Task::Cpu => {
                self.health.cpu.look(now);
                self.agenda.add(self.health.cpu.due_ns(), Task::Cpu);
            }
            Task::Progress => {
                sink.put(&Frame::Progress(now - self.start_ns));
                self.agenda.add(due_ns + PROGRESS_NS, Task::Progress);
            }
            Task::Background => {
                start_processes(self.request.background_processes);
                self.agenda.add(due_ns + BACKGROUND_NS, Task::Background);
            }
            Task::Start(flow) => self.start(flow, sink),
            Task::Stop(flow) => {
                let stopped = self.flows[flow].connection.stop();
                self.broken(flow, stopped);
            }
            Task::Write(flow) => self.write(flow, due_ns),
            Task::Probe(probe) => {
                if let Err(error) = self.probes[probe].request(now) {
                    let name = &self.plan.probes[probe].name;
                    self.health.add_problem(format!("probe {name}: {error}"));
                }
                let next_ns = due_ns + self.plan.probes[probe].interval_ns;
                self.agenda.add(next_ns, Task::Probe(probe));
            }
            Task::Page(page) => self.with_page(page, |page, context| page.on_timer(context)),
            Task::Datagram(index) => {
                let t_ns = now - self.start_ns;
                if let Err(error) = self.streams[index].send(t_ns) {
                    let name = &self.plan.datagrams[index].name;
                    self.health.add_problem(format!("udp {name}: {error}"));
                }
                if let Some(at_ns) = self.streams[index].due_ns() {
                    self.agenda
                        .add(self.start_ns + at_ns, Task::Datagram(index));
                }
            }
            Task::Arrive(group) => {
                let context =
                    context_of((&self.poller, &self.payload), &self.topology, self.start_ns);
                self.flow_pool.arrive(group, &context)?;
                if let Some(at_ns) = self.flow_pool.next_ns(group) {
                    self.agenda.add(self.start_ns + at_ns, Task::Arrive(group));
                }
            }
            Task::Chunk(place, came) => {
                let context =
                    context_of((&self.poller, &self.payload), &self.topology, self.start_ns);
                self.flow_pool.write_chunk(place, came, &context);
            }
            Task::Host => {
                if due_ns == self.start_ns {
                    self.host.begin();
                } else {
                    self.host.rows(self.t_us(now), |frame| sink.put(&frame));
                }
                self.agenda.add(due_ns + HOST_INTERVAL_NS, Task::Host);
            }
            Task::End => {}
        }
        Ok(())
    }

    fn start(&mut self, flow: usize, sink: &mut dyn Sink) {
        let connection = &mut self.flows[flow].connection;
        let started = match &self.peer_link {
            None => connection.start(&self.poller),
            Some(peer_link) => {
                connection.is_started = true;
                let name = self.congestion.name(flow);
                peer_link.start(flow, &self.plan.flows[flow], name)
            }
        };
        if self.measures(flow) {
            put_event(sink, self.t_us(now_ns()), flow, "start", 0);
        }
        self.broken(flow, started);
    }

    /// Lets the application of a flow write: by its pattern, or one full packet by its rate.
    fn write(&mut self, flow: usize, due_ns: u64) {
        if let Some(writer) = &mut self.writers[flow] {
            let (writing, at_ns) = writer.step();
            let connection = &mut self.flows[flow].connection;
            let written = match writing {
                Writing::Bytes(bytes) => connection.add_credit(bytes, &self.payload),
                Writing::Unlimited => connection.set_endless(true, &self.payload),
                Writing::Nothing => connection.set_endless(false, &self.payload),
            };
            match written {
                Ok(true) => self.agenda.add(at_ns, Task::Write(flow)),
                Ok(false) => {}
                Err(error) => self.broken(flow, Err(error)),
            }
            return;
        }
        let state = &mut self.flows[flow];
        let Some(pace) = &mut state.pace else {
            return;
        };
        let bytes = pace.write(due_ns);
        match state.connection.add_credit(bytes, &self.payload) {
            Ok(true) => self.write_on(flow),
            Ok(false) => state.pace = None,
            Err(error) => self.broken(flow, Err(error)),
        }
    }

    /// What a blocked application with a rate would have written by now is added to what it writes next;
    /// false if there is none.
    fn owe(&mut self, flow: usize) -> bool {
        let state = &mut self.flows[flow];
        let Some(pace) = &mut state.pace else {
            return false;
        };
        if !state.connection.is_blocked {
            return false;
        }
        state.connection.owe(pace.write(now_ns()));
        true
    }

    /// Plans the next write of an application with a rate. A blocked one plans none: to be woken for each
    /// packet that its socket does not take costs the run minutes at 1 Gbit/s.
    fn write_on(&mut self, flow: usize) {
        let state = &self.flows[flow];
        if let (Some(pace), false) = (&state.pace, state.connection.is_blocked) {
            self.agenda.add(pace.next_ns, Task::Write(flow));
        }
    }

    fn sample(&mut self, t_us: u64, sink: &mut dyn Sink) -> Result<(), String> {
        for flow in 0..self.flows.len() {
            if !self.flows[flow].connection.is_started || !self.measures(flow) {
                continue;
            }
            self.look(flow, t_us, sink);
            let state = &mut self.flows[flow];
            let socket = state.connection.sender();
            if let (Some(socket), true) = (socket, state.connection.is_established) {
                let row = self.congestion.ask(flow, socket, &state.meter, t_us)?;
                sink.put(&row);
            }
            let row = state.meter.sample(&state.connection, t_us);
            sink.put(&Frame::FlowSample(row));
        }
        self.flow_pool.sample(t_us);
        self.put_traffic_samples(sink);
        self.queues.rows(&mut self.topology.nodes, t_us, |row| {
            sink.put(&Frame::Queue(row));
        })?;
        self.put_probes(false, sink);
        Ok(())
    }

    /// Reads a flow's counters and emits events for what changed.
    fn look(&mut self, flow: usize, t_us: u64, sink: &mut dyn Sink) {
        let state = &mut self.flows[flow];
        let looked = state
            .meter
            .look(&state.connection, t_us, |row| sink.put(&Frame::Event(row)));
        self.broken(flow, looked);
    }

    fn put_traffic_samples(&mut self, sink: &mut dyn Sink) {
        for row in self.flow_pool.take_samples() {
            sink.put(&Frame::TrafficSample(row));
        }
    }

    fn put_probes(&mut self, is_end: bool, sink: &mut dyn Sink) {
        let now = now_ns();
        for page in &mut self.pages {
            page.rows(is_end, |frame| sink.put(&frame));
        }
        let t_ns = now.saturating_sub(self.start_ns);
        for stream in &mut self.streams {
            stream.rows(t_ns, is_end, |row| sink.put(&Frame::Datagram(row)));
        }
        for probe in &mut self.probes {
            probe.rows(self.start_ns, now, is_end, |row| {
                sink.put(&Frame::Ping(row))
            });
        }
    }

    /// Emits the totals and the problems of the run.
    pub(crate) fn finish(mut self, sink: &mut dyn Sink) -> Result<(), String> {
        let now = now_ns();
        let t_us = self.t_us(now);
        self.health.cpu.look(now);
        for flow in 0..self.flows.len() {
            if !self.measures(flow) {
                continue;
            }
            self.look(flow, t_us, sink);
            let state = &self.flows[flow];
            let row = describe(self.plan, flow, state.completion_us);
            let row = state.meter.total(&state.connection, row);
            sink.put(&Frame::Flow(row));
        }
        self.put_probes(true, sink);
        for place in std::mem::take(&mut self.topology.delays) {
            let dropped = counters(&mut self.topology.nodes, place)?.dropped_packets;
            if dropped > 0 {
                self.health.add_problem(format!(
                    "a delay line (netem) was full and dropped {dropped} packets"
                ));
            }
        }
        self.put_traffic_samples(sink);
        for row in self.flow_pool.end() {
            sink.put(&Frame::Traffic(row));
        }
        for problem in self.flow_pool.problems() {
            self.health.add_problem(problem);
        }
        self.put_negotiated(sink);
        self.flows.clear();
        self.pages.clear();
        self.congestion.finish()?;
        if let Some(cost) = self.congestion.cost() {
            sink.put(&cost);
        }
        sink.put(&Frame::Progress(now - self.start_ns));
        self.health.report(self.request.clock, sink);
        Ok(())
    }

    /// Reports which flows negotiated accurate ECN. A flow that requested it and lacks it is a problem,
    /// except with L4S on kernels without accurate ECN.
    fn put_negotiated(&mut self, sink: &mut dyn Sink) {
        let mut lines = Vec::new();
        for (index, flow) in self.plan.flows.iter().enumerate() {
            let is_asked = flow.ecn && flow.ecn_kind != EcnKind::Classic && self.measures(index);
            let meter = &self.flows[index].meter;
            let (modes, marks) = (meter.ecn_modes(), meter.received_ce());
            let known: Vec<EcnMode> = modes.into_iter().flatten().collect();
            // A flow that never connected negotiated nothing.
            if !is_asked || known.is_empty() {
                continue;
            }
            let may_do_without = flow.ecn_kind == EcnKind::L4s;
            if known.iter().all(|mode| *mode == EcnMode::Accurate) {
                lines.push(format!("{} {marks}", flow.name));
            } else if !(may_do_without && known.iter().all(|mode| *mode == EcnMode::None)) {
                let [sender, receiver] = modes.map(|mode| mode.map_or("unknown", EcnMode::words));
                self.add_flow_problem(
                    index,
                    &format!(
                        "accurate ECN was requested, and its ends have: sender {sender}, receiver \
                         {receiver}"
                    ),
                );
            }
        }
        if !lines.is_empty() {
            // Each line has a flow and the marked packets that its receiver counted.
            sink.put(&Frame::Fact("accurate_ecn".into(), lines.join("\n")));
        }
    }

    fn broken(&mut self, flow: usize, done: std::io::Result<()>) {
        if let Err(error) = done {
            self.add_flow_problem(flow, &error.to_string());
        }
    }

    fn add_flow_problem(&mut self, flow: usize, error: &str) {
        let name = &self.plan.flows[flow].name;
        self.health.add_problem(format!("flow {name}: {error}"));
    }

    fn t_us(&self, at_ns: u64) -> u64 {
        // A connection of the other end may arrive before this end starts.
        at_ns.saturating_sub(self.start_ns) / 1000
    }
}

/// The context for work on sockets.
fn context_of<'a>(
    (poller, payload): (&'a Poller, &'a Payload),
    topology: &'a Topology,
    start_ns: u64,
) -> Context<'a> {
    Context {
        poller,
        payload,
        nodes: &topology.nodes,
        t_ns: now_ns().saturating_sub(start_ns),
    }
}

/// Starts processes that exit at once. Creating, loading and reaping them is the load.
fn start_processes(count: u32) {
    use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
    use std::process::{Command, Stdio};
    // Reaps those of the last period.
    while let Ok(WaitStatus::Exited(..)) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {}
    for _ in 0..count {
        // Failing to start one is no error of the run.
        let _ = Command::new("/proc/self/exe")
            .arg("version")
            .stdout(Stdio::null())
            .spawn();
    }
}

fn put_event(sink: &mut dyn Sink, t_us: u64, flow: usize, event: &'static str, value: u64) {
    sink.put(&Frame::Event(EventRow {
        t_us,
        flow_id: Some(flow as u64),
        event: event.into(),
        value,
    }));
}

/// The part of a flow's row that the plan decides.
fn describe(plan: &Plan, index: usize, completion_us: Option<u64>) -> FlowRow {
    let flow: &Flow = &plan.flows[index];
    let direction = match flow.direction {
        FlowDirection::Up => "up",
        FlowDirection::Down => "down",
    };
    FlowRow {
        flow_id: index as u64,
        flow: flow.name.clone().into(),
        cc: flow.cc.name.clone().into(),
        direction: direction.into(),
        start_us: flow.start_ns / 1000,
        completion_us,
        base_rtt_us: plan.base_rtt_ns(flow) / 1000,
        mss_bytes: u64::from(plan.access.mss_bytes()),
        ..FlowRow::default()
    }
}
