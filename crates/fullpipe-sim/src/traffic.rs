//! Flows of traffic that come and go: a connection whose flow is over, and whose packets have all
//! left the network, is used again, so memory follows the flows that live at once. Who sends what
//! and when is the workload's; here are its flows' connections.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use fullpipe_net::{derive_seed, purpose};
use fullpipe_plan::{Flow, Newcomer, Plan, Traffic, TrafficRow, TrafficSampleRow, TrafficSource};
use fullpipe_workload::{backbone, Flows, NewFlow, Trace};

use crate::connection::{connection, Connection, Seeds};
use crate::ends::lines;
use crate::events::Event;
use crate::packet::{InFlight, Label};
use crate::recorder::flow_sample;
use crate::run::{BadPlan, Simulation};

/// Rows that are handed over at a time.
const ROWS_AT_ONCE: usize = 1 << 14;

/// Traces by the SHA-256 of their files.
pub type Traces = HashMap<String, Arc<Trace>>;

/// A flow's stay on a connection.
pub(crate) struct Visit {
    group: u32,
    number: u64,
    sender: u32,
    bytes: u64,
    /// Chunks of the group's trace that are not written yet.
    chunks: Range<usize>,
    chunk_count: u64,
    pause_ns: u64,
    /// The application pauses.
    is_waiting: bool,
    /// All is acknowledged, or nobody answers; only packets may be left.
    is_over: bool,
    /// Nobody answers.
    has_failed: bool,
}

/// All groups of a plan.
pub(crate) struct Crowd {
    groups: Vec<Group>,
    /// Connections without a flow.
    free: Vec<u32>,
    /// Connections whose flows are sampled.
    watched: Vec<u32>,
    made: u64,
}

struct Group {
    flows: Flows,
    trace: Option<Arc<Trace>>,
    next: Option<NewFlow>,
    came: u64,
    start_ns: u64,
    stop_ns: u64,
    /// A flow of each sender.
    members: Vec<Flow>,
    /// Numbers of flows that are sampled.
    samples: HashSet<u64>,
}

impl Crowd {
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
            watched: Vec::new(),
            made: 0,
        })
    }

    /// Groups, and when the first flow of each comes.
    pub(crate) fn first_ns(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        (0..)
            .zip(&self.groups)
            .filter_map(|(index, group)| Some((index, group.next_ns()?)))
    }

    /// Connections that were made for them.
    pub(crate) fn connections(&self) -> u64 {
        self.made
    }

    /// Flows that came.
    pub(crate) fn flows(&self) -> u64 {
        self.groups.iter().map(|group| group.came).sum()
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
        let members: Vec<Flow> = (0..traffic.senders.len())
            .map(|sender| traffic.member(sender))
            .collect();
        let Some(member) = members.first() else {
            return Err(BadPlan("senders: there must be at least one".to_owned()));
        };
        // What would go wrong with every flow goes wrong now.
        connection(plan, member, &Seeds { cc: 0, host: 0 }, false)?;
        Ok(Self {
            next: flows.next(),
            flows,
            trace,
            came: 0,
            start_ns: traffic.start_ns,
            stop_ns: traffic.stop_ns.unwrap_or(u64::MAX),
            members,
            samples: traffic.samples.iter().copied().collect(),
        })
    }

    fn next_ns(&self) -> Option<u64> {
        let at_ns = self.next.as_ref()?.at_ns.saturating_add(self.start_ns);
        (at_ns < self.stop_ns).then_some(at_ns)
    }
}

impl Simulation<'_> {
    /// The next flow of a group comes.
    pub(crate) fn arrive(&mut self, index: usize) {
        let seeds = Seeds {
            cc: self.crowd_seed(purpose::TRAFFIC_CC),
            host: self.crowd_seed(purpose::TRAFFIC_HOST),
        };
        let group = &mut self.crowd.groups[index];
        let Some(new) = group.next.take() else {
            return;
        };
        let sender = (group.came % group.members.len() as u64) as usize;
        let member = &mut group.members[sender];
        member.start_ns = self.now_ns;
        member.amount_bytes = Some(new.bytes);
        let made = connection(self.plan, member, &seeds, new.chunks.is_some());
        let Ok(mut made) = made else {
            debug_assert!(false, "one like it was made at the start");
            return;
        };
        let chunks = new.chunks.unwrap_or(0..0);
        made.visit = Some(Box::new(Visit {
            group: index as u32,
            number: group.came,
            sender: sender as u32,
            bytes: new.bytes,
            chunk_count: chunks.len().max(1) as u64,
            chunks,
            pause_ns: 0,
            is_waiting: false,
            is_over: false,
            has_failed: false,
        }));
        let is_watched = group.samples.contains(&group.came);
        group.came += 1;
        group.next = group.flows.next();
        if let Some(at_ns) = group.next_ns() {
            self.agenda.schedule(at_ns, Event::Arrive(index as u32));
        }
        let flow = self.take_in(made, index, sender);
        if is_watched {
            self.crowd.watched.push(flow as u32);
        }
        self.start(flow);
    }

    fn crowd_seed(&self, purpose: u32) -> u64 {
        derive_seed(self.plan.seed, purpose, self.crowd.flows() as u32)
    }

    /// Puts a connection where one is free, or behind all others.
    fn take_in(&mut self, made: Connection, group: usize, sender: usize) -> usize {
        let free = self.crowd.free.pop();
        let flow = free.map_or(self.connections.len(), |flow| flow as usize);
        let owner = self.owner(flow);
        let member = &self.crowd.groups[group].members[sender];
        let own_lines = lines(self.plan, Some(member), owner as u32);
        let label = Label::new(member.hosts, member.dscp);
        let new = Newcomer::Traffic(group);
        self.network.take_in(self.plan, owner, member.route, new);
        if free.is_some() {
            let [forward, reverse] = own_lines;
            self.lines[owner * 2] = forward;
            self.lines[owner * 2 + 1] = reverse;
            self.labels[owner] = label;
            self.connections[flow] = made;
        } else {
            self.crowd.made += 1;
            self.lines.extend(own_lines);
            self.labels.push(label);
            self.connections.push(made);
        }
        flow
    }

    /// The application writes its next chunk.
    pub(crate) fn write_chunk(&mut self, flow: usize) {
        let connection = &mut self.connections[flow];
        let Some(visit) = &mut connection.visit else {
            return;
        };
        visit.is_waiting = false;
        let trace = &self.crowd.groups[visit.group as usize].trace;
        let (Some(trace), Some(position)) = (trace, visit.chunks.next()) else {
            return; // all was written at the start
        };
        let bytes = trace.chunk(position).bytes;
        match visit.chunks.is_empty() {
            true => connection.sender.write_last(bytes),
            false => connection.sender.write_bytes(bytes),
        }
    }

    /// All that was written may have been acknowledged: the application pauses, or is done.
    pub(crate) fn continue_visit(&mut self, flow: usize) {
        let connection = &mut self.connections[flow];
        let Some(visit) = &mut connection.visit else {
            return;
        };
        if visit.is_waiting || visit.is_over {
            return;
        }
        if connection.sender.is_finished() {
            self.end_visit(flow, Some(self.now_ns));
            return;
        }
        if !connection.sender.is_drained() {
            return;
        }
        let trace = &self.crowd.groups[visit.group as usize].trace;
        if let Some(trace) = trace {
            visit.is_waiting = true;
            let pause_ns = trace.chunk(visit.chunks.start).pause_ns;
            visit.pause_ns += pause_ns;
            let at_ns = self.now_ns + pause_ns;
            self.agenda.schedule(at_ns, Event::Write(flow as u32));
        }
    }

    /// A flow of traffic ends: all its bytes were acknowledged, or nobody answers. Its connection may
    /// have its FIN and the last ACKs to send yet.
    pub(crate) fn end_visit(&mut self, flow: usize, completion_ns: Option<u64>) {
        let connection = &mut self.connections[flow];
        let Some(visit) = &mut connection.visit else {
            return;
        };
        visit.is_over = true;
        visit.has_failed = completion_ns.is_none();
        let row = row(connection, completion_ns);
        self.keep(row);
        let place = |&watched: &u32| watched as usize == flow;
        if let Some(place) = self.crowd.watched.iter().position(place) {
            self.crowd.watched.remove(place);
            self.sample_visit(flow);
        }
    }

    /// Samples the flows of which that was asked for.
    pub(crate) fn sample_visits(&mut self) {
        for place in 0..self.crowd.watched.len() {
            self.sample_visit(self.crowd.watched[place] as usize);
        }
    }

    fn sample_visit(&mut self, flow: usize) {
        let connection = &self.connections[flow];
        let Some(visit) = &connection.visit else {
            return;
        };
        let (sender, receiver) = (&connection.sender, &connection.receiver);
        let sample = flow_sample(self.now_ns / 1000, 0, sender, receiver);
        let row = TrafficSampleRow::of(u64::from(visit.group), visit.number, &sample);
        let rows = &mut self.tables.traffic_samples;
        rows.get_or_insert_with(Vec::new).push(row);
    }

    fn keep(&mut self, row: TrafficRow) {
        let rows = self.tables.traffic.get_or_insert_with(Vec::new);
        rows.push(row);
        if rows.len() >= ROWS_AT_ONCE {
            if let Some(take) = &mut self.rows {
                take(std::mem::take(rows));
            }
        }
    }

    /// The network made a second packet of one.
    pub(crate) fn is_copied(&mut self, packet: &InFlight) {
        if packet.body.is_of_connection() {
            let flow = self.place(packet.owner);
            self.connections[flow].under_way += 1;
        }
    }

    /// A packet has left the network: its connection may be free now.
    pub(crate) fn is_gone(&mut self, packet: &InFlight) {
        if !packet.body.is_of_connection() {
            return;
        }
        self.has_left(self.place(packet.owner));
    }

    /// One that was a connection's.
    #[inline]
    pub(crate) fn has_left(&mut self, flow: usize) {
        let connection = &mut self.connections[flow];
        connection.under_way -= 1;
        if connection.visit.is_some() {
            self.free_if_over(flow);
        }
    }

    fn free_if_over(&mut self, flow: usize) {
        let connection = &mut self.connections[flow];
        // Whose last ACK was lost has no FIN to repeat: nobody waits for it.
        let is_closed = connection.sender.is_closed();
        let is_over = |visit: &Visit| visit.is_over && (is_closed || visit.has_failed);
        if connection.visit.as_deref().is_some_and(is_over) && connection.has_left() {
            connection.visit = None;
            connection.forget_timers();
            self.crowd.free.push(flow as u32);
        }
    }

    /// The run ends: flows that are not over have a row too.
    pub(crate) fn end_visits(&mut self) {
        for flow in self.plan.flows.len()..self.connections.len() {
            let connection = &self.connections[flow];
            if connection
                .visit
                .as_ref()
                .is_some_and(|visit| !visit.is_over)
            {
                let row = row(connection, None);
                self.keep(row);
            }
        }
    }
}

fn row(connection: &Connection, completion_ns: Option<u64>) -> TrafficRow {
    let totals = connection.sender.totals();
    let mut row = TrafficRow {
        start_us: connection.start_ns / 1000,
        base_rtt_us: connection.base_rtt_ns / 1000,
        completion_us: completion_ns.map(|ns| ns / 1000),
        bytes_acked: connection.sender.acked_bytes(),
        packets_sent: totals.packets_sent,
        packets_retransmitted: totals.packets_retransmitted,
        timeouts: totals.timeouts,
        ..TrafficRow::default()
    };
    if let Some(visit) = &connection.visit {
        row.group_id = u64::from(visit.group);
        row.number = visit.number;
        row.sender = u64::from(visit.sender);
        row.size_bytes = visit.bytes;
        row.chunks = visit.chunk_count;
        row.pause_us = visit.pause_ns / 1000;
    }
    row
}
