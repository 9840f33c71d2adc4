//! A simulation in progress: its parts, and what an event does with them. `egress.rs` sends what hosts have
//! to send, `forward.rs` moves it through the network, `ingress.rs` delivers it, `applications.rs` does what
//! workloads want done, `transports.rs` calls endpoints of transports other than TCP.

mod applications;
mod egress;
mod forward;
mod ingress;
mod transports;

use std::io;

use fullpipe_cc::trace::CallLog;
use fullpipe_net::{derive_seed, purpose};
use fullpipe_plan::{CcChoice, Flow, Plan, Table, Tables};
use fullpipe_transport::Transport;

use crate::agenda::{Agenda, Event};
use crate::check::{check, BadPlan};
use crate::endpoints::Endpoints;
use crate::hosts::{connection, routes, Hosts, PcapWriter, Seeds};
use crate::network::Network;
use crate::record::{Counts, Record};
use crate::workloads::{Traces, Workloads};

/// What a run leaves.
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
    /// Data packets dropped by queues or lost by chance.
    pub packets_lost: u64,
    /// Data packets in flight at the end of the run.
    pub packets_in_flight: u64,
    /// Packets that open or close connections: neither data nor ACKs.
    pub control: Counts,
    /// Flows of traffic groups that arrived.
    pub traffic_flows: u64,
    /// Connections that were made for them: the most at once.
    pub traffic_connections: u64,
    /// Why the capture could not be written.
    pub pcap_error: Option<io::Error>,
    /// Why the trace of calls could not be written.
    pub cc_trace_error: Option<io::Error>,
    /// Why connections of other transports than TCP failed, each with its flow.
    pub transport_failures: Vec<(usize, String)>,
}

/// What a run may be given besides its plan.
#[derive(Default)]
pub struct Inputs<'a> {
    /// Where packets are captured.
    pub pcap: Option<PcapWriter>,
    /// Where every call of the flows' congestion controls is written.
    pub cc_trace: Option<Box<dyn io::Write + Send>>,
    /// Flows of the plan's files, by their SHA-256.
    pub traces: Traces,
    /// Takes rows of samples, events and `traffic` during the run, some ten thousand of a table at a
    /// time; the rest is in the outcome's tables.
    pub rows: Option<&'a mut (dyn FnMut(Table) + Send)>,
    /// Other transports than TCP, for flows whose congestion control is one of theirs.
    pub transports: &'a [&'a dyn Transport],
}

/// Runs a plan to its end, or until `progress`, which is given the simulated ns from time to time, returns
/// false.
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
    plan: &'a Plan,
    pub(crate) agenda: Agenda,
    pub(crate) network: Network,
    pub(crate) hosts: Hosts,
    workloads: Workloads,
    endpoints: Endpoints,
    record: Record<'a>,
    /// The trace of calls of congestion controls, or why it could not be begun.
    cc_trace: Option<io::Result<CallLog>>,
}

impl<'a> Simulation<'a> {
    pub(crate) fn new(plan: &'a Plan, inputs: Inputs<'a>) -> Result<Self, BadPlan> {
        check(plan)?;
        let mut workloads = Workloads::new(plan, &inputs.traces)?;
        check_templates(plan, &workloads)?;
        let network = Network::new(plan, routes(plan).collect())?;
        let cc_trace = inputs.cc_trace.map(CallLog::new);
        let mut agenda = Agenda::default();
        let mut endpoints = Endpoints::new(plan);
        let mut connections = Vec::with_capacity(plan.flows.len());
        for (index, flow) in (0..).zip(&plan.flows) {
            let seeds = Seeds {
                cc: derive_seed(plan.seed, purpose::CC, index),
                host: derive_seed(plan.seed, purpose::HOST, index),
            };
            let is_opaque = flow.cc.algorithm.is_none()
                && endpoints.add(plan, index as usize, inputs.transports)?;
            let unused;
            let of_tcp = match is_opaque {
                true => {
                    unused = never_started(flow);
                    &unused
                }
                false => flow,
            };
            let mut made = connection(plan, of_tcp, &seeds, flow.pattern.is_some())
                .map_err(|BadPlan(text)| BadPlan(format!("flows.{index}.{text}")))?;
            if let (Some(Ok(log)), false) = (&cc_trace, is_opaque) {
                made.sender.trace_calls(log, &flow.cc.name);
            }
            connections.push(made);
            agenda.schedule(flow.start_ns, Event::Start(index));
            if let Some(stop_ns) = flow.stop_ns {
                agenda.schedule(stop_ns, Event::Stop(index));
            }
        }
        for (index, probe) in (0..).zip(&plan.probes) {
            agenda.schedule(probe.start_ns, Event::Probe(index));
        }
        agenda.schedule(plan.sample_interval_ns, Event::Sample);
        workloads.schedule(&mut agenda);
        Ok(Self {
            plan,
            agenda,
            network,
            hosts: Hosts::new(plan, connections, inputs.pcap),
            workloads,
            endpoints,
            record: Record::new(plan, inputs.rows),
            cc_trace,
        })
    }

    /// True if `progress` asked to stop early.
    fn run(&mut self, progress: &mut dyn FnMut(u64) -> bool) -> bool {
        let end_ns = self.plan.duration_ns;
        self.agenda.continue_until(end_ns);
        while let Some((at_ns, event)) = self.agenda.next() {
            if at_ns > end_ns {
                break;
            }
            self.step(event);
            if self.agenda.is_pausing() && !progress(at_ns) {
                return true;
            }
        }
        progress(end_ns);
        false
    }

    /// Handles an event, and does what workloads want done then.
    #[inline(always)] // into the loop of a run
    pub(crate) fn step(&mut self, event: Event) {
        self.handle(event);
        if self.workloads.pages.is_notified() {
            self.do_page_steps();
        }
    }

    /// The simulated time.
    #[inline(always)] // a field
    pub(crate) fn now_ns(&self) -> u64 {
        self.agenda.now_ns()
    }

    /// Whether an event at this time would be the next thing to happen. Then the time moves to it, and the
    /// caller handles it at once.
    #[inline(always)] // at the end of most events
    fn continues(&mut self, at_ns: u64) -> bool {
        // Steps of pages are done between events.
        !self.workloads.pages.is_notified() && self.agenda.continues(at_ns)
    }

    #[inline(always)] // as `step`
    fn handle(&mut self, event: Event) {
        match event {
            Event::Link(timer) => self.link_timer(timer),
            Event::Access(line) => self.access_line_due(line as usize),
            rare => self.handle_rare(rare),
        }
    }

    #[inline(never)]
    fn handle_rare(&mut self, event: Event) {
        match event {
            Event::Link(_) | Event::Access(_) => {}
            Event::NextLink(direction) => self.next_link_reached(direction),
            Event::Sender(connection) => self.sender_timer(connection as usize),
            Event::Receiver(connection) => self.receiver_timer(connection as usize),
            Event::Departure(connection) => self.depart(connection as usize),
            Event::Write(connection) => self.write(connection as usize),
            Event::Start(connection) => self.start(connection as usize),
            Event::Resolved(connection) => self.resolved(connection as usize),
            Event::Handshake(connection) => self.handshake_timer(connection as usize),
            Event::Stop(connection) => self.stop(connection as usize),
            Event::Probe(probe) => self.probe(probe as usize),
            Event::Page(page) => self.workloads.pages.on_timer(page, self.agenda.now_ns()),
            Event::Datagram(stream) => self.send_datagrams(stream),
            Event::Arrival(group) => self.flow_arrives(group as usize),
            Event::Processed(host) => self.processed(host as usize),
            Event::AckMade(host) => self.ack_made(host as usize),
            Event::Endpoint(index) => self.endpoint_timer(index as usize),
            Event::Sample => self.sample(),
        }
    }

    fn sample(&mut self) {
        let now_ns = self.now_ns();
        let own = &self.hosts.connections[..self.plan.flows.len()];
        for (id, connection) in own.iter().enumerate() {
            if let Some((row, cc)) = self.endpoints.sample_started(id, now_ns) {
                self.record.opaque_sample(row, cc);
            } else if connection.is_started {
                let (sender, receiver) = (&connection.sender, &connection.receiver);
                self.record.flow_sample(now_ns, id, sender, receiver);
            }
        }
        self.sample_pool();
        let at_hosts = self.hosts.loss.totals();
        self.record
            .queue_samples(now_ns, self.network.row.links(), at_hosts);
        let next_ns = now_ns + self.plan.sample_interval_ns;
        self.agenda.schedule(next_ns, Event::Sample);
    }

    pub(crate) fn finish(mut self, interrupted: bool) -> Outcome {
        self.record_pages(true);
        let own = &self.hosts.connections[..self.plan.flows.len()];
        for (id, connection) in own.iter().enumerate() {
            if let Some(row) = self.endpoints.flow_row(self.plan, id) {
                self.record.opaque_row(row);
                continue;
            }
            self.record.flow_row(
                id,
                connection.completion_us,
                &connection.sender,
                &connection.receiver,
            );
        }
        self.record_unfinished_flows();
        let cc_trace = self.cc_trace.map(|log| log.and_then(CallLog::finish));
        let data = self.record.data;
        let gone = data.delivered + data.lost;
        debug_assert!(gone <= data.sent, "{gone} of {} packets ended", data.sent);
        Outcome {
            interrupted,
            events: self.agenda.handled(),
            packets_delivered: data.delivered,
            packets_lost: data.lost,
            packets_in_flight: data.sent.saturating_sub(gone),
            control: self.record.control,
            traffic_flows: self.workloads.pool.flows(),
            traffic_connections: self.workloads.pool.connections(),
            pcap_error: self.hosts.capture.finish(),
            cc_trace_error: cc_trace.and_then(io::Result::err),
            transport_failures: self.endpoints.failures().collect(),
            tables: self.record.into_tables(),
        }
    }
}

/// The flow of the TCP connection that has the number of a flow of another transport, so that connections
/// and flows have the same numbers. It is never started.
fn never_started(flow: &Flow) -> Flow {
    let algorithm = &fullpipe_cc::algorithms()[0];
    Flow {
        cc: CcChoice {
            name: flow.cc.name.clone(),
            algorithm: Some(algorithm.name.to_owned()),
            params: algorithm.params.iter().map(|param| param.default).collect(),
        },
        ..flow.clone()
    }
}

/// Finds at the start what would go wrong with every connection of a workload.
fn check_templates(plan: &Plan, workloads: &Workloads) -> Result<(), BadPlan> {
    let check = |of: &str, flow, is_written| {
        connection(plan, flow, &Seeds::default(), is_written)
            .map(|_| ())
            .map_err(|BadPlan(text)| BadPlan(format!("{of}: {text}")))
    };
    for (index, flow) in workloads.pool.templates().enumerate() {
        check(&format!("traffic.{index}"), flow, false)?;
    }
    for (index, [requests, _]) in workloads.pages.templates().enumerate() {
        check(&format!("pages.{index}"), requests, true)?;
    }
    Ok(())
}
