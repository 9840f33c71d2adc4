//! The pool of short traffic flows over sockets. fullpipe-workload decides when a flow arrives and what
//! it sends; the pool opens its connection. A slot and its ports are free again when both ends are
//! closed.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::sync::Arc;

use fullpipe_net::{derive_seed, purpose};
use fullpipe_plan::stream::Frame;
use fullpipe_plan::{Flow, Pacing, Plan, TrafficRow, TrafficSampleRow};
use fullpipe_workload::{Flows, NewFlow, Trace};
use nix::sys::epoll::EpollFlags;
use nix::sys::resource::{setrlimit, Resource};

use crate::activity::{Activity, Run};
use crate::agenda::{PoolTask, Task};
use crate::congestion::Congestion;
use crate::sink::Sink;
use crate::tcp_flow::{Connection, ConnectionEvent, FlowMeter, Options, Place, MAX_FLOWS};
use crate::token::{Role, Token};

/// Limit of open files: three for each connection, and a reserve.
const DESCRIPTORS: u64 = 4 * MAX_FLOWS as u64;

/// All groups of a plan.
pub(super) struct FlowPool {
    groups: Vec<Group>,
    /// Index of the first slot's connection: the plan's own flows come before.
    first: usize,
    slots: Vec<Option<Slot>>,
    /// Free slots, the one that was freed first in front.
    free: VecDeque<usize>,
    /// Flows of all groups that have arrived.
    arrived: u64,
    /// Sampled flows that are not over.
    sampled: usize,
}

struct Group {
    id: u64,
    name: String,
    flows: Flows,
    /// The trace that its flows follow, if any.
    trace: Option<Arc<Trace>>,
    next: Option<NewFlow>,
    arrived: u64,
    start_ns: u64,
    stop_ns: u64,
    members: Vec<Member>,
    control: Control,
    /// Numbers of flows that are sampled.
    samples: HashSet<u64>,
    /// The error of its first connection that failed.
    problem: Option<String>,
}

/// The congestion control of a group.
struct Control {
    /// Its name in the kernel.
    name: String,
    /// Whether receivers run it too.
    is_at_both_ends: bool,
    /// Whether it or its host paces.
    is_paced: bool,
}

/// A sender.
struct Member {
    /// The plan of its flows.
    flow: Flow,
    options: Options,
    base_rtt_us: u64,
    ends: [(usize, Ipv4Addr); 2],
}

/// A flow in the pool.
struct Slot {
    connection: Connection,
    meter: FlowMeter,
    row: TrafficRow,
    /// Its arrival number.
    number: u64,
    /// Chunks of its group's trace still to write.
    chunks: Range<usize>,
    /// Whether it is sampled.
    is_sampled: bool,
    /// Whether its row was returned.
    is_over: bool,
}

impl Activity for FlowPool {
    /// A connection, by its index.
    type Socket = (usize, Role);
    type Task = PoolTask;

    fn open(run: &mut Run) -> Result<Self, String> {
        let plan = run.plan();
        if !plan.traffic.is_empty() {
            // Without the right to raise it the limit stays; a connection reports when it is reached.
            let _ = setrlimit(Resource::RLIMIT_NOFILE, DESCRIPTORS, DESCRIPTORS);
        }
        let mut ends = run.topology.traffic_ends.iter().copied();
        let mut groups = Vec::with_capacity(plan.traffic.len());
        for (index, traffic) in plan.traffic.iter().enumerate() {
            let control = Control::of(plan, index, &run.congestion);
            let group = Group::new(plan, index, control, &mut ends)
                .map_err(|error| format!("traffic {}: {error}", traffic.name))?;
            if let Some(at_ns) = group.next_ns() {
                run.agenda.add(at_ns, Task::Pool(PoolTask::Arrive(index)));
            }
            groups.push(group);
        }
        Ok(Self {
            groups,
            first: plan.flows.len(),
            slots: Vec::new(),
            free: VecDeque::new(),
            arrived: 0,
            sampled: 0,
        })
    }

    fn handle(
        &mut self,
        (index, role): (usize, Role),
        flags: EpollFlags,
        run: &mut Run,
        sink: &mut dyn Sink,
    ) {
        let place = index - self.first;
        let Some(slot) = self.slots.get_mut(place).and_then(Option::as_mut) else {
            return;
        };
        let t_ns = run.t_ns();
        let event = slot
            .connection
            .handle(role, flags, &run.poller, &run.payload);
        if slot.is_over {
            if slot.connection.is_gone() {
                self.leave(place);
            }
            return;
        }
        match event {
            Some(ConnectionEvent::Finished) => self.finish(place, t_ns, sink),
            Some(ConnectionEvent::Broken(error)) => self.give_up(place, &error, sink),
            Some(ConnectionEvent::Established | ConnectionEvent::Drained) => {
                self.pause(place, t_ns, run);
            }
            None => {}
        }
    }

    fn due(
        &mut self,
        task: PoolTask,
        _due_ns: u64,
        run: &mut Run,
        _sink: &mut dyn Sink,
    ) -> Result<(), String> {
        match task {
            PoolTask::Arrive(index) => {
                self.arrive(index, run)?;
                if let Some(at_ns) = self.groups[index].next_ns() {
                    run.agenda.add(at_ns, Task::Pool(PoolTask::Arrive(index)));
                }
            }
            PoolTask::Chunk(place, number) => self.write_chunk(place, number, run),
        }
        Ok(())
    }

    /// Samples the flows that the plan names.
    fn rows(&mut self, t_ns: u64, _run: &mut Run, sink: &mut dyn Sink) -> Result<(), String> {
        let slots = self.slots.iter_mut().flatten();
        let sampled = slots.filter(|slot| slot.is_sampled && !slot.is_over);
        for slot in sampled.take(self.sampled) {
            slot.look();
            sink.put(&Frame::TrafficSample(slot.sample(t_ns / 1000)));
        }
        Ok(())
    }

    /// Rows of flows that are not over, and the first connection error of each group that had one.
    fn end(&mut self, _t_ns: u64, run: &mut Run, sink: &mut dyn Sink) -> Result<(), String> {
        for slot in self.slots.iter_mut().flatten().filter(|slot| !slot.is_over) {
            sink.put(&Frame::Traffic(slot.row()));
        }
        for group in &mut self.groups {
            if let Some(problem) = group.problem.take() {
                run.health.add_problem(problem);
            }
        }
        Ok(())
    }
}

impl FlowPool {
    /// The next flow of a group comes. The error ends the run.
    fn arrive(&mut self, index: usize, run: &Run) -> Result<(), String> {
        let group = &mut self.groups[index];
        let Some((number, new)) = group.take_next() else {
            return Ok(());
        };
        let place = self.free.pop_front().unwrap_or(self.slots.len());
        let port = self.first + place;
        if port >= MAX_FLOWS {
            return Err(format!(
                "traffic {}: more than {} flows at once; they come faster than the path passes them",
                group.name,
                MAX_FLOWS - self.first
            ));
        }
        let slot = group
            .open((number, new), (port, self.arrived), run)
            .map_err(|error| format!("traffic {}, flow {number}: {error}", group.name))?;
        self.arrived += 1;
        self.sampled += usize::from(slot.is_sampled);
        if place == self.slots.len() {
            self.slots.push(Some(slot));
        } else {
            self.slots[place] = Some(slot);
        }
        Ok(())
    }

    /// All that a flow sends has been acknowledged.
    fn finish(&mut self, place: usize, t_ns: u64, sink: &mut dyn Sink) {
        let Some(slot) = &mut self.slots[place] else {
            return;
        };
        slot.is_over = true;
        slot.row.completion_us = Some(t_ns / 1000);
        let row = slot.row();
        if slot.is_sampled {
            self.sampled -= 1;
            sink.put(&Frame::TrafficSample(slot.sample(t_ns / 1000)));
        }
        if slot.connection.is_gone() {
            self.leave(place);
        }
        sink.put(&Frame::Traffic(row));
    }

    /// A flow's connection has failed.
    fn give_up(&mut self, place: usize, error: &str, sink: &mut dyn Sink) {
        let Some(slot) = &mut self.slots[place] else {
            return;
        };
        let row = slot.row();
        self.sampled -= usize::from(slot.is_sampled);
        self.groups[row.group_id as usize].note(row.number, error);
        self.leave(place);
        sink.put(&Frame::Traffic(row));
    }

    /// A flow of a trace pauses before its next chunk.
    fn pause(&mut self, place: usize, t_ns: u64, run: &mut Run) {
        let Some(slot) = &mut self.slots[place] else {
            return;
        };
        let trace = &self.groups[slot.row.group_id as usize].trace;
        if let (Some(trace), false) = (trace, slot.chunks.is_empty()) {
            let pause_ns = trace.chunk(slot.chunks.start).pause_ns;
            slot.row.pause_us += pause_ns / 1000;
            let task = Task::Pool(PoolTask::Chunk(place, slot.number));
            run.agenda.add(t_ns + pause_ns, task);
        }
    }

    /// Writes the next chunk of the flow with this arrival number, if it is still in its slot.
    fn write_chunk(&mut self, place: usize, number: u64, run: &Run) {
        let slot = self.slots.get_mut(place).and_then(Option::as_mut);
        let Some(slot) = slot.filter(|slot| slot.number == number) else {
            return;
        };
        let group = &mut self.groups[slot.row.group_id as usize];
        let (Some(trace), Some(position)) = (&group.trace, slot.chunks.next()) else {
            return;
        };
        let bytes = trace.chunk(position).bytes;
        if let Err(error) = slot.connection.add_credit(bytes, &run.payload) {
            group.note(slot.row.number, &error.to_string());
        }
    }

    /// Frees a slot.
    fn leave(&mut self, place: usize) {
        self.slots[place] = None;
        self.free.push_back(place);
    }
}

impl Control {
    fn of(plan: &Plan, group: usize, congestion: &Congestion) -> Self {
        let index = plan.flows.len() + plan.pages.len() + group;
        Self {
            name: congestion.name(index).to_owned(),
            is_at_both_ends: congestion.is_at_both_ends(index),
            is_paced: plan.host.pacing == Pacing::Fq || congestion.paces(index),
        }
    }
}

impl Group {
    /// `ends` has the ends of this group's senders and those of later groups.
    fn new(
        plan: &Plan,
        index: usize,
        control: Control,
        ends: &mut impl Iterator<Item = [(usize, Ipv4Addr); 2]>,
    ) -> Result<Self, String> {
        let traffic = &plan.traffic[index];
        let seed = derive_seed(plan.seed, purpose::TRAFFIC, index as u32);
        let trace = Trace::of_list(&traffic.source)?.map(Arc::new);
        let mut flows = Flows::new(&traffic.source, trace.clone(), seed)?;
        let members: Vec<_> = (0..traffic.senders.len())
            .map(|sender| traffic.member(sender))
            .zip(ends)
            .map(|(flow, ends)| Member {
                options: Options::of(plan, &flow),
                base_rtt_us: plan.base_rtt_ns(&flow) / 1000,
                flow,
                ends,
            })
            .collect();
        if members.is_empty() {
            return Err("has no senders".to_owned());
        }
        Ok(Self {
            id: index as u64,
            name: traffic.name.clone(),
            next: flows.next(),
            flows,
            trace,
            arrived: 0,
            start_ns: traffic.start_ns,
            stop_ns: traffic.stop_ns.unwrap_or(u64::MAX),
            members,
            control,
            samples: traffic.samples.iter().copied().collect(),
            problem: None,
        })
    }

    /// When the next flow comes.
    fn next_ns(&self) -> Option<u64> {
        let at_ns = self.next.as_ref()?.at_ns.saturating_add(self.start_ns);
        (at_ns < self.stop_ns).then_some(at_ns)
    }

    /// The flow that comes now, with its number in the group.
    fn take_next(&mut self) -> Option<(u64, NewFlow)> {
        let new = self.next.take()?;
        self.next = self.flows.next();
        self.arrived += 1;
        Some((self.arrived - 1, new))
    }

    /// Opens the connection of a flow at this port; the pool numbers it as an arrival.
    fn open(
        &mut self,
        (number, new): (u64, NewFlow),
        (port, arrival): (usize, u64),
        run: &Run,
    ) -> Result<Slot, String> {
        let sender = number % self.members.len() as u64;
        let member = &mut self.members[sender as usize];
        member.flow.amount_bytes = Some(new.bytes);
        let start_us = run.t_ns() / 1000;
        let mut connection = Connection::open(
            &member.flow,
            (port, Token::Pool),
            (&self.control.name, self.control.is_at_both_ends),
            member.options,
            Place {
                nodes: &run.topology.nodes,
                ends: member.ends,
            },
        )?;
        let row = TrafficRow {
            group_id: self.id,
            number,
            sender,
            base_rtt_us: member.base_rtt_us,
            start_us,
            size_bytes: new.bytes,
            chunks: new.chunks.as_ref().map_or(1, |chunks| chunks.len() as u64),
            ..TrafficRow::default()
        };
        if new.chunks.is_some() {
            connection.write_in_chunks();
        }
        connection
            .start(&run.poller)
            .map_err(|error| error.to_string())?;
        Ok(Slot {
            connection,
            meter: FlowMeter::new(port as u64, self.control.is_paced),
            row,
            number: arrival,
            chunks: new.chunks.unwrap_or(0..0),
            is_sampled: self.samples.contains(&number),
            is_over: false,
        })
    }

    /// Notes the error of a flow's connection.
    fn note(&mut self, number: u64, error: &str) {
        let sentence = format!("traffic {}, flow {number}: {error}", self.name);
        self.problem.get_or_insert(sentence);
    }
}

impl Slot {
    fn look(&mut self) {
        // A socket that the kernel cannot describe has sent nothing.
        let _: io::Result<()> = self.meter.look(&self.connection, 0, |_| ());
    }

    /// The row of a sample from the last read.
    fn sample(&self, t_us: u64) -> TrafficSampleRow {
        let sample = self.meter.sample(&self.connection, t_us);
        TrafficSampleRow::of(self.row.group_id, self.row.number, &sample)
    }

    /// The flow's row from the kernel's counters.
    fn row(&mut self) -> TrafficRow {
        self.look();
        TrafficRow {
            bytes_acked: self.meter.acked_bytes(&self.connection),
            packets_sent: u64::from(self.meter.sender().data_segs_out),
            packets_retransmitted: u64::from(self.meter.sender().total_retrans),
            timeouts: self.meter.timeouts(),
            ..self.row.clone()
        }
    }
}
