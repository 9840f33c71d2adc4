//! When things happen: one agenda of everything that is due. What hosts send is in `sending.rs`, what
//! reaches them in `arriving.rs`, the way between in `network.rs`; here they are called at their times,
//! and sampled.

use std::fmt;
use std::io;

use fullpipe_cc::trace::CallLog;
use fullpipe_net::{derive_seed, purpose};
use fullpipe_plan::{CcRow, Plan, Tables, Text, TrafficRow};
use fullpipe_tcp::Burst;

use crate::applications::Applications;
use crate::connection::{connection, Connection, Seeds};
use crate::ends::{lines, Egress, Line};
use crate::events::{Agenda, Event};
use crate::network::Network;
use crate::packet::{Label, MAX_HOSTS};
use crate::pcap::PcapWriter;
use crate::recorder;
use crate::traffic::{Crowd, Traces};
use crate::work::Processors;

/// Most links in a row.
const MAX_LINKS: usize = 64;

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
    pub packets_in_flight: u64,
    /// Packets of handshakes and of ends: neither data nor ACKs.
    pub control: Counts,
    /// Flows of traffic that came.
    pub traffic_flows: u64,
    /// Most connections of traffic at once: what the run kept memory for.
    pub traffic_connections: u64,
    /// The capture could not be written.
    pub pcap_error: Option<io::Error>,
    /// The trace of calls could not be written.
    pub cc_trace_error: Option<io::Error>,
}

/// Packets that were sent, and what became of them; the others are on their way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// By hosts.
    pub sent: u64,
    /// To hosts.
    pub delivered: u64,
    /// By queues and by chance.
    pub lost: u64,
}

/// What a run may be given beside its plan.
#[derive(Default)]
pub struct Inputs<'a> {
    /// Where packets are written.
    pub pcap: Option<PcapWriter>,
    /// Where every call of the flows' congestion controls is written.
    pub cc_trace: Option<Box<dyn io::Write + Send>>,
    /// Flows of the plan's files, by their SHA-256.
    pub traces: Traces,
    /// Takes rows of `traffic` while they come, some ten thousand at a time; those that it did not
    /// get are in the outcome's tables.
    pub rows: Option<&'a mut (dyn FnMut(Vec<TrafficRow>) + Send)>,
}

/// Runs a plan to its end, or until `progress` (given the simulated ns now and then) returns false.
pub fn run<'a>(
    plan: &'a Plan,
    inputs: Inputs<'a>,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Outcome, BadPlan> {
    let mut simulation = Simulation::new(plan, inputs)?;
    let interrupted = simulation.run(progress);
    Ok(simulation.finish(interrupted))
}

/// A run in progress.
pub(crate) struct Simulation<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) now_ns: u64,
    pub(crate) agenda: Agenda,
    pub(crate) connections: Vec<Connection>,
    pub(crate) network: Network,
    pub(crate) egress: Egress,
    /// Where packets cost the hosts something.
    pub(crate) processors: Option<Processors>,
    /// By owner * 2 + way.
    pub(crate) lines: Vec<Line>,
    /// By owner.
    pub(crate) labels: Vec<Label>,
    pub(crate) tables: Tables,
    pub(crate) probe_counts: Vec<u64>,
    pub(crate) outgoing: Vec<Burst>,
    pub(crate) pcap: Option<PcapWriter>,
    pub(crate) pcap_error: Option<io::Error>,
    cc_trace: Option<CallLog>,
    cc_trace_error: Option<io::Error>,
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    pub(crate) sent: u64,
    pub(crate) control: Counts,
    pub(crate) applications: Applications,
    pub(crate) crowd: Crowd,
    pub(crate) rows: Option<&'a mut (dyn FnMut(Vec<TrafficRow>) + Send)>,
    /// Names of each link's queues.
    queue_names: Vec<[Text; 2]>,
}

impl<'a> Simulation<'a> {
    pub(crate) fn new(plan: &'a Plan, inputs: Inputs<'a>) -> Result<Self, BadPlan> {
        check(plan)?;
        let crowd = Crowd::new(plan, &inputs.traces)?;
        let applications = Applications::new(plan)?;
        let network = Network::new(plan)?;
        let mut connections = Vec::with_capacity(plan.flows.len());
        let mut all_lines = Vec::new();
        let mut labels = Vec::new();
        let mut agenda = Agenda::default();
        let (cc_trace, cc_trace_error) = match inputs.cc_trace.map(CallLog::new) {
            Some(Ok(log)) => (Some(log), None),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        for (index, flow) in plan.flows.iter().enumerate() {
            let seeds = Seeds {
                cc: derive_seed(plan.seed, purpose::CC, index as u32),
                host: derive_seed(plan.seed, purpose::HOST, index as u32),
            };
            let mut made = connection(plan, flow, &seeds, flow.pattern.is_some())
                .map_err(|BadPlan(text)| BadPlan(format!("flows.{index}.{text}")))?;
            if let Some(log) = &cc_trace {
                made.sender.trace_calls(log, &flow.cc.name);
            }
            connections.push(made);
            all_lines.extend(lines(plan, Some(flow), index as u32));
            labels.push(Label::new(flow.hosts, flow.dscp));
            agenda.schedule(flow.start_ns, Event::Start(index as u32));
            if let Some(stop_ns) = flow.stop_ns {
                agenda.schedule(stop_ns, Event::Stop(index as u32));
            }
        }
        for (index, probe) in plan.probes.iter().enumerate() {
            let owner = (plan.flows.len() + index) as u32;
            all_lines.extend(lines(plan, None, owner));
            labels.push(Label::new(probe.hosts, probe.dscp));
            agenda.schedule(probe.start_ns, Event::Probe(index as u32));
        }
        for label in Applications::labels(plan) {
            all_lines.extend(lines(plan, None, labels.len() as u32));
            labels.push(label);
        }
        agenda.schedule(plan.sample_interval_ns, Event::Sample);
        for (group, at_ns) in crowd.first_ns() {
            agenda.schedule(at_ns, Event::Arrive(group));
        }
        let tables = Tables {
            traffic: (!plan.traffic.is_empty()).then(Vec::new),
            traffic_samples: (plan.traffic.iter().any(|group| !group.samples.is_empty()))
                .then(Vec::new),
            ..Tables::default()
        };
        let mut made = Self {
            plan,
            now_ns: 0,
            agenda,
            connections,
            network,
            egress: Egress::new(plan),
            processors: Processors::new(plan),
            lines: all_lines,
            labels,
            tables,
            probe_counts: vec![0; plan.probes.len()],
            outgoing: Vec::with_capacity(64),
            pcap: inputs.pcap,
            pcap_error: None,
            cc_trace,
            cc_trace_error,
            delivered: 0,
            lost: 0,
            sent: 0,
            control: Counts::default(),
            applications,
            crowd,
            rows: inputs.rows,
            queue_names: plan.links.iter().map(|link| link.queue_names()).collect(),
        };
        made.begin_applications();
        Ok(made)
    }

    /// True if it was asked to stop early.
    fn run(&mut self, progress: &mut dyn FnMut(u64) -> bool) -> bool {
        let end_ns = self.plan.duration_ns;
        self.agenda.allow_until(end_ns);
        while let Some((at_ns, event)) = self.agenda.next() {
            if at_ns > end_ns {
                break;
            }
            self.now_ns = at_ns;
            self.handle(event);
            if self.applications.were_told {
                self.do_steps();
            }
            if self.agenda.is_pausing() && !progress(at_ns) {
                return true;
            }
        }
        progress(end_ns);
        false
    }

    /// Whether what would be done next is to be done at once, at this time: nothing else comes before.
    #[inline(always)] // at the end of what most events are about
    pub(crate) fn goes_on(&mut self, at_ns: u64) -> bool {
        // What applications were told is answered between events.
        let goes_on = !self.applications.were_told && self.agenda.goes_on(at_ns);
        if goes_on {
            self.now_ns = at_ns;
        }
        goes_on
    }

    #[inline(always)] // into the loop of a run, and of a step
    pub(crate) fn handle(&mut self, event: Event) {
        match event {
            Event::Link(timer) => self.link_timer(timer as usize),
            Event::Line(line) => self.arrivals(line as usize),
            rarer => self.handle_rarer(rarer),
        }
    }

    #[inline(never)]
    fn handle_rarer(&mut self, event: Event) {
        match event {
            Event::Link(_) | Event::Line(_) => {}
            Event::Between(line) => self.between_links(line as usize),
            Event::Sender(flow) => self.sender_timer(flow as usize),
            Event::Receiver(flow) => self.receiver_timer(flow as usize),
            Event::Departure(flow) => self.depart(flow as usize),
            Event::Write(flow) => self.write(flow as usize),
            Event::Start(flow) => self.start(flow as usize),
            Event::Resolved(flow) => self.resolved(flow as usize),
            Event::Handshake(flow) => self.handshake_timer(flow as usize),
            Event::Stop(flow) => self.stop(flow as usize),
            Event::Probe(probe) => self.probe(probe as usize),
            Event::Page(page) => self.page_timer(page),
            Event::Datagram(stream) => self.datagram(stream),
            Event::Arrive(group) => self.arrive(group as usize),
            Event::Work(host) => self.work(host as usize),
            Event::Made(host) => self.made(host as usize),
            Event::Sample => self.sample(),
        }
    }

    fn sample(&mut self) {
        let t_us = self.now_ns / 1000;
        let own = &self.connections[..self.plan.flows.len()];
        for (id, connection) in own.iter().enumerate() {
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
        self.sample_visits();
        let mut egress = Some(&self.egress);
        for (names, link) in self.queue_names.iter().zip(&self.network.links) {
            let rows = recorder::queue_samples(t_us, names, link, egress.take());
            self.tables.queue_samples.extend(rows);
        }
        self.agenda
            .schedule(self.now_ns + self.plan.sample_interval_ns, Event::Sample);
    }

    pub(crate) fn finish(mut self, interrupted: bool) -> Outcome {
        self.keep_loads(true);
        for flow in 0..self.plan.flows.len() {
            let connection = &self.connections[flow];
            let row = recorder::flow_row(
                flow as u64,
                &self.plan.flows[flow],
                self.plan.base_rtt_ns(&self.plan.flows[flow]) / 1000,
                connection.completion_us,
                &connection.sender,
                &connection.receiver,
            );
            self.tables.flows.push(row);
        }
        self.end_visits();
        if let Some(pcap) = &mut self.pcap {
            self.pcap_error = pcap.finish().err();
        }
        if let Some(log) = self.cc_trace {
            self.cc_trace_error = log.finish().err();
        }
        let gone = self.delivered + self.lost;
        debug_assert!(gone <= self.sent, "{gone} packets of {} ended", self.sent);
        Outcome {
            tables: self.tables,
            interrupted,
            events: self.agenda.handled(),
            packets_delivered: self.delivered,
            packets_lost: self.lost,
            packets_in_flight: self.sent.saturating_sub(gone),
            control: self.control,
            traffic_flows: self.crowd.flows(),
            traffic_connections: self.crowd.connections(),
            pcap_error: self.pcap_error,
            cc_trace_error: self.cc_trace_error,
        }
    }
}

/// What the simulator relies on; the front end has checked the rest.
fn check(plan: &Plan) -> Result<(), BadPlan> {
    let bad = |text: &str| Err(BadPlan(text.to_owned()));
    if plan.duration_ns == 0 || plan.sample_interval_ns == 0 {
        return bad("duration_ns and sample_interval_ns: must be above 0");
    }
    if plan.links.is_empty() || plan.links.len() > MAX_LINKS {
        return Err(BadPlan(format!("links: from 1 to {MAX_LINKS}")));
    }
    if !(128..=65_000).contains(&plan.ends.mtu_bytes) {
        return bad("ends.mtu_bytes: must be from 128 to 65000");
    }
    let flows = plan.flows.iter().map(|flow| (flow.route, flow.hosts));
    let probes = plan.probes.iter().map(|probe| (probe.route, probe.hosts));
    let pages = plan.pages.iter().map(|page| (page.route, page.hosts));
    let datagrams = plan.datagrams.iter().map(|one| (one.route, one.hosts));
    let traffic = plan.traffic.iter().flat_map(|group| {
        let hosts = group.senders.iter().map(|sender| sender.hosts);
        hosts.map(|hosts| (group.route, hosts))
    });
    let everyone = flows.chain(probes).chain(pages).chain(datagrams);
    for (route, hosts) in everyone.chain(traffic) {
        if route.enter > route.leave || usize::from(route.leave) >= plan.links.len() {
            return bad("route: enter must not be after leave, and leave must be a link");
        }
        if hosts.near.max(hosts.far) >= MAX_HOSTS {
            return Err(BadPlan(format!(
                "hosts: at most {MAX_HOSTS} on either side"
            )));
        }
    }
    let has_applications = !plan.pages.is_empty() || !plan.datagrams.is_empty();
    if plan.flows.is_empty() && plan.traffic.is_empty() && !has_applications {
        return bad(
            "flows: there must be at least one, or traffic, a page or a stream of datagrams",
        );
    }
    if plan.probes.iter().any(|probe| probe.interval_ns == 0) {
        return bad("probes.interval_ns: must be above 0");
    }
    if plan.host.initial_cwnd_packets == 0 || plan.host.gso_max_segments == 0 {
        return bad("host.initial_cwnd_packets, host.gso_max_segments: must be above 0");
    }
    if let Some(pauses) = &plan.host.reader_pauses {
        if pauses.for_ns.saturating_add(pauses.spread_ns) >= pauses.every_ns {
            return bad("host.reader_pauses: for_ns and spread_ns must be less than every_ns");
        }
        if pauses.spread_ns > pauses.for_ns {
            return bad("host.reader_pauses: spread_ns must be at most for_ns");
        }
    }
    Ok(())
}
