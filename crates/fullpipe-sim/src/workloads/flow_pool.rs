//! Flows of traffic groups, which arrive and leave. A connection is used again once its flow is over and
//! all its packets have left the network, so memory follows the number of flows at once. When flows arrive
//! and what they write is fullpipe-workload's.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use fullpipe_net::{derive_seed, purpose};
use fullpipe_plan::{Flow, Plan, Traffic, TrafficRow, TrafficSource};
use fullpipe_tcp::Sender;
use fullpipe_workload::{backbone, Flows, NewFlow, Trace};

use crate::agenda::{Agenda, Event};
use crate::check::BadPlan;

/// Traces by the SHA-256 of their files.
pub type Traces = HashMap<String, Arc<Trace>>;

/// A flow of a traffic group on its connection.
pub(crate) struct PooledFlow {
    group: u32,
    number: u64,
    sender: u32,
    bytes: u64,
    /// Chunks of the group's trace that are not written yet.
    chunks: Range<usize>,
    chunk_count: u64,
    /// The application's pauses so far.
    pause_ns: u64,
    is_pausing: bool,
    ended: Option<Ended>,
}

/// How a flow ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// Everything was acknowledged.
    Finished,
    /// The handshake timed out.
    Failed,
}

/// What a flow does when data are acknowledged.
pub(crate) enum Progress {
    /// It goes on.
    Continues,
    /// Its application writes its next chunk at this time.
    WritesAt(u64),
    /// Everything was acknowledged.
    Ends,
}

impl PooledFlow {
    /// Group, and number in that.
    pub(crate) fn id(&self) -> (u32, u64) {
        (self.group, self.number)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// The flow ended: everything was acknowledged, or the handshake timed out.
    pub(crate) fn end(&mut self, is_finished: bool) {
        self.ended = Some(match is_finished {
            true => Ended::Finished,
            false => Ended::Failed,
        });
    }

    /// Whether its connection is over: the flow ended, and both FINs are acknowledged. A handshake that
    /// timed out needs no FIN.
    pub(crate) fn is_over(&self, is_closed: bool) -> bool {
        match self.ended {
            None => false,
            Some(Ended::Finished) => is_closed,
            Some(Ended::Failed) => true,
        }
    }

    /// Its row in the recording.
    pub(crate) fn row(
        &self,
        start_ns: u64,
        base_rtt_ns: u64,
        completion_ns: Option<u64>,
        sender: &Sender,
    ) -> TrafficRow {
        let totals = sender.totals();
        TrafficRow {
            group_id: u64::from(self.group),
            number: self.number,
            sender: u64::from(self.sender),
            size_bytes: self.bytes,
            chunks: self.chunk_count,
            pause_us: self.pause_ns / 1000,
            start_us: start_ns / 1000,
            base_rtt_us: base_rtt_ns / 1000,
            completion_us: completion_ns.map(|ns| ns / 1000),
            bytes_acked: sender.acked_bytes(),
            packets_sent: totals.packets_sent,
            packets_retransmitted: totals.packets_retransmitted,
            timeouts: totals.timeouts,
        }
    }
}

/// A flow that arrived, to be given a connection.
pub(crate) struct Arrived<'a> {
    pub(crate) flow: &'a Flow,
    pub(crate) pooled: PooledFlow,
    /// Its application writes chunk by chunk.
    pub(crate) writes_chunks: bool,
    /// It is to be sampled.
    pub(crate) is_sampled: bool,
    /// Its serial number among all groups' flows.
    pub(crate) serial: u32,
}

/// All traffic groups of a plan.
pub(crate) struct FlowPool {
    groups: Vec<Group>,
    /// Connections without a flow.
    free: Vec<u32>,
    /// Connections whose flows are sampled.
    sampled: Vec<u32>,
    /// Connections made for flows.
    made: u64,
}

struct Group {
    flows: Flows,
    trace: Option<Arc<Trace>>,
    next: Option<NewFlow>,
    arrived: u64,
    start_ns: u64,
    stop_ns: u64,
    /// A flow of each sender.
    templates: Vec<Flow>,
    /// Numbers of flows that are sampled.
    samples: HashSet<u64>,
}

impl FlowPool {
    pub(crate) fn new(plan: &Plan, traces: &Traces) -> Result<Self, BadPlan> {
        let groups = (0..)
            .zip(&plan.traffic)
            .map(|(index, traffic)| {
                Group::new(plan, traffic, index, traces)
                    .map_err(|BadPlan(text)| BadPlan(format!("traffic.{index}: {text}")))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            groups,
            free: Vec::new(),
            sampled: Vec::new(),
            made: 0,
        })
    }

    /// A flow of each group's first sender.
    pub(crate) fn templates(&self) -> impl Iterator<Item = &Flow> {
        self.groups.iter().map(|group| &group.templates[0])
    }

    /// Schedules the first flow of each group.
    pub(crate) fn schedule(&self, agenda: &mut Agenda) {
        for (index, group) in (0..).zip(&self.groups) {
            group.schedule(agenda, index);
        }
    }

    /// Connections made so far.
    pub(crate) fn connections(&self) -> u64 {
        self.made
    }

    /// Flows that arrived.
    pub(crate) fn flows(&self) -> u64 {
        self.groups.iter().map(|group| group.arrived).sum()
    }

    /// The next flow of a group arrives; schedules the one after it.
    pub(crate) fn arrive(&mut self, agenda: &mut Agenda, index: usize) -> Option<Arrived<'_>> {
        let serial = self.flows() as u32;
        let group = &mut self.groups[index];
        let new = group.next.take()?;
        let (number, writes_chunks) = (group.arrived, new.chunks.is_some());
        let chunks = new.chunks.unwrap_or(0..0);
        group.arrived += 1;
        group.next = group.flows.next();
        group.schedule(agenda, index as u32);
        let sender = (number % group.templates.len() as u64) as usize;
        let flow = &mut group.templates[sender];
        flow.start_ns = agenda.now_ns();
        flow.amount_bytes = Some(new.bytes);
        Some(Arrived {
            flow,
            pooled: PooledFlow {
                group: index as u32,
                number,
                sender: sender as u32,
                bytes: new.bytes,
                chunk_count: chunks.len().max(1) as u64,
                chunks,
                pause_ns: 0,
                is_pausing: false,
                ended: None,
            },
            writes_chunks,
            is_sampled: group.samples.contains(&number),
            serial,
        })
    }

    /// A connection to use again; `None`: a new one has to be made, which is counted.
    pub(crate) fn reuse(&mut self) -> Option<usize> {
        let free = self.free.pop();
        self.made += u64::from(free.is_none());
        free.map(|connection| connection as usize)
    }

    /// A connection may be used again.
    pub(crate) fn release(&mut self, connection: usize) {
        self.free.push(connection as u32);
    }

    /// The flow on this connection is to be sampled.
    pub(crate) fn sample(&mut self, connection: usize) {
        self.sampled.push(connection as u32);
    }

    /// Connections whose flows are sampled.
    pub(crate) fn sampled(&self) -> &[u32] {
        &self.sampled
    }

    /// The flow on this connection ended; returns whether it was sampled.
    pub(crate) fn end_samples(&mut self, connection: usize) -> bool {
        let is_it = |&sampled: &u32| sampled as usize == connection;
        let position = self.sampled.iter().position(is_it);
        position
            .map(|position| self.sampled.remove(position))
            .is_some()
    }

    /// The application of a flow writes its next chunk.
    pub(crate) fn write_chunk(&self, flow: &mut PooledFlow, sender: &mut Sender) {
        flow.is_pausing = false;
        let trace = &self.groups[flow.group as usize].trace;
        let (Some(trace), Some(position)) = (trace, flow.chunks.next()) else {
            return; // everything was written at the start
        };
        let bytes = trace.chunk(position).bytes;
        match flow.chunks.is_empty() {
            true => sender.write_last(bytes),
            false => sender.write_bytes(bytes),
        }
    }

    /// Data of a flow were acknowledged.
    pub(crate) fn on_acked(&self, now_ns: u64, flow: &mut PooledFlow, sender: &Sender) -> Progress {
        if flow.is_pausing || flow.has_ended() {
            return Progress::Continues;
        }
        if sender.is_finished() {
            return Progress::Ends;
        }
        let trace = &self.groups[flow.group as usize].trace;
        let Some(trace) = trace.as_ref().filter(|_| sender.is_drained()) else {
            return Progress::Continues;
        };
        flow.is_pausing = true;
        let pause_ns = trace.chunk(flow.chunks.start).pause_ns;
        flow.pause_ns += pause_ns;
        Progress::WritesAt(now_ns + pause_ns)
    }
}

impl Group {
    fn new(plan: &Plan, traffic: &Traffic, index: u32, traces: &Traces) -> Result<Self, BadPlan> {
        let trace = match &traffic.source {
            TrafficSource::Drawn { .. } => None,
            list @ TrafficSource::Listed { .. } => {
                Trace::of_list(list).map_err(BadPlan)?.map(Arc::new)
            }
            TrafficSource::File { sha256, .. } => traces.get(sha256).cloned(),
            &TrafficSource::Backbone {
                seed,
                duration_ns,
                rate_bps,
                ..
            } => Some(Arc::new(
                backbone(seed, duration_ns, rate_bps).map_err(BadPlan)?,
            )),
        };
        let seed = derive_seed(plan.seed, purpose::TRAFFIC, index);
        let mut flows = Flows::new(&traffic.source, trace.clone(), seed).map_err(BadPlan)?;
        if traffic.senders.is_empty() {
            return Err(BadPlan("senders: there must be at least one".to_owned()));
        }
        let templates = (0..traffic.senders.len()).map(|sender| traffic.member(sender));
        Ok(Self {
            next: flows.next(),
            flows,
            trace,
            arrived: 0,
            start_ns: traffic.start_ns,
            stop_ns: traffic.stop_ns.unwrap_or(u64::MAX),
            templates: templates.collect(),
            samples: traffic.samples.iter().copied().collect(),
        })
    }

    /// Schedules the next flow's arrival.
    fn schedule(&self, agenda: &mut Agenda, index: u32) {
        let Some(next) = &self.next else {
            return;
        };
        let at_ns = next.at_ns.saturating_add(self.start_ns);
        if at_ns < self.stop_ns {
            agenda.schedule(at_ns, Event::Arrival(index));
        }
    }
}
