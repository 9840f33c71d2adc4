//! The pool of short traffic flows over sockets. fullpipe-workload decides when a flow arrives and what
//! it sends; the pool opens its connection. A slot and its ports are free again when both ends are
//! closed.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::sync::Arc;

use fullpipe_net::{derive_seed, purpose};
use fullpipe_plan::{Flow, Plan, TrafficRow, TrafficSampleRow};
use fullpipe_workload::{Flows, NewFlow, Trace};
use nix::sys::epoll::EpollFlags;
use nix::sys::resource::{setrlimit, Resource};

use super::application::Context;
use super::connection::{Connection, ConnectionEvent, Role, MAX_FLOWS};
use super::meter::FlowMeter;

/// Limit of open files: three for each connection, and a reserve.
const DESCRIPTORS: u64 = 4 * MAX_FLOWS as u64;

/// All groups of a plan.
#[derive(Default)]
pub(crate) struct FlowPool {
    groups: Vec<Group>,
    /// Index of the first slot's connection: the plan's own flows come before.
    first: usize,
    slots: Vec<Option<Slot>>,
    /// Free slots, the one that was freed first in front.
    free: VecDeque<usize>,
    /// Flows of all groups that have arrived.
    arrived: u64,
    /// (time since the start in ns, slot, arrival number) of the next chunks to write.
    due: Vec<(u64, usize, u64)>,
    /// Sampled flows that are not over.
    sampled: usize,
    /// Their rows that were not taken yet.
    samples: Vec<TrafficSampleRow>,
}

struct Group {
    name: String,
    flows: Flows,
    /// The trace that its flows follow, if any.
    trace: Option<Arc<Trace>>,
    next: Option<NewFlow>,
    arrived: u64,
    start_ns: u64,
    stop_ns: u64,
    members: Vec<Member>,
    low_water_bytes: u32,
    control: Control,
    /// Numbers of flows that are sampled.
    samples: HashSet<u64>,
    /// The error of its first connection that failed.
    problem: Option<String>,
}

/// The congestion control of a group.
pub(crate) struct Control {
    /// Its name in the kernel.
    pub(crate) name: String,
    /// Whether receivers run it too.
    pub(crate) is_at_both_ends: bool,
    /// Whether it or its host paces.
    pub(crate) is_paced: bool,
}

/// A sender.
struct Member {
    /// The plan of its flows.
    flow: Flow,
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

impl FlowPool {
    /// An empty pool. `ends` has the ends of the senders of all groups.
    pub(crate) fn new(
        plan: &Plan,
        ends: &[[(usize, Ipv4Addr); 2]],
        control: impl Fn(usize) -> Control,
    ) -> Result<Self, String> {
        if !plan.traffic.is_empty() {
            // Without the right to raise it the limit stays; a connection reports when it is reached.
            let _ = setrlimit(Resource::RLIMIT_NOFILE, DESCRIPTORS, DESCRIPTORS);
        }
        let mut ends = ends.iter();
        let mut groups = Vec::with_capacity(plan.traffic.len());
        for (index, traffic) in plan.traffic.iter().enumerate() {
            let seed = derive_seed(plan.seed, purpose::TRAFFIC, index as u32);
            let place = |error| format!("traffic {}: {error}", traffic.name);
            let trace = Trace::of_list(&traffic.source)
                .map_err(place)?
                .map(Arc::new);
            let mut flows = Flows::new(&traffic.source, trace.clone(), seed).map_err(place)?;
            let members: Vec<_> = (0..traffic.senders.len())
                .map(|sender| traffic.member(sender))
                .zip(ends.by_ref())
                .map(|(flow, &ends)| Member {
                    base_rtt_us: plan.base_rtt_ns(&flow) / 1000,
                    flow,
                    ends,
                })
                .collect();
            let Some(first) = members.first() else {
                return Err(format!("traffic {}: has no senders", traffic.name));
            };
            groups.push(Group {
                name: traffic.name.clone(),
                next: flows.next(),
                flows,
                trace,
                arrived: 0,
                start_ns: traffic.start_ns,
                stop_ns: traffic.stop_ns.unwrap_or(u64::MAX),
                low_water_bytes: plan.receive_low_water_bytes(&first.flow),
                members,
                control: control(index),
                samples: traffic.samples.iter().copied().collect(),
                problem: None,
            });
        }
        Ok(Self {
            groups,
            first: plan.flows.len(),
            ..Self::default()
        })
    }

    /// How many groups there are.
    pub(crate) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// When the next flow of a group comes.
    pub(crate) fn next_ns(&self, group: usize) -> Option<u64> {
        let group = &self.groups[group];
        let at_ns = group.next.as_ref()?.at_ns.saturating_add(group.start_ns);
        (at_ns < group.stop_ns).then_some(at_ns)
    }

    /// The next flow of a group comes. The error ends the run.
    pub(crate) fn arrive(&mut self, index: usize, context: &Context) -> Result<(), String> {
        let group = &mut self.groups[index];
        let Some(new) = group.next.take() else {
            return Ok(());
        };
        group.next = group.flows.next();
        let number = group.arrived;
        group.arrived += 1;
        let sender = (number % group.members.len() as u64) as usize;
        let member = &mut group.members[sender];
        member.flow.amount_bytes = Some(new.bytes);
        let place = self.free.pop_front().unwrap_or(self.slots.len());
        let slot = self.first + place;
        if slot >= MAX_FLOWS {
            return Err(format!(
                "traffic {}: more than {} flows at once; they come faster than the path passes them",
                group.name,
                MAX_FLOWS - self.first
            ));
        }
        let mut connection = Connection::open(
            &member.flow,
            slot,
            (&group.control.name, group.control.is_at_both_ends),
            context.nodes,
            member.ends,
            group.low_water_bytes,
            None,
        )
        .map_err(|error| format!("traffic {}, flow {number}: {error}", group.name))?;
        let row = TrafficRow {
            group_id: index as u64,
            number,
            sender: sender as u64,
            base_rtt_us: member.base_rtt_us,
            start_us: context.t_ns / 1000,
            size_bytes: new.bytes,
            chunks: new.chunks.as_ref().map_or(1, |chunks| chunks.len() as u64),
            ..TrafficRow::default()
        };
        if new.chunks.is_some() {
            connection.write_in_chunks();
        }
        connection
            .start(context.poller)
            .map_err(|error| format!("traffic {}, flow {number}: {error}", group.name))?;
        let is_sampled = group.samples.contains(&number);
        self.sampled += usize::from(is_sampled);
        let slot = Slot {
            connection,
            meter: FlowMeter::new(slot as u64, group.control.is_paced),
            row,
            number: self.arrived,
            chunks: new.chunks.unwrap_or(0..0),
            is_sampled,
            is_over: false,
        };
        self.arrived += 1;
        if place == self.slots.len() {
            self.slots.push(Some(slot));
        } else {
            self.slots[place] = Some(slot);
        }
        Ok(())
    }

    /// Handles a ready descriptor of a connection. Returns the flow's row if the flow is over.
    pub(crate) fn handle(
        &mut self,
        slot: usize,
        role: Role,
        flags: EpollFlags,
        context: &Context,
    ) -> Option<TrafficRow> {
        let place = slot - self.first;
        let slot = self.slots.get_mut(place)?.as_mut()?;
        let event = slot
            .connection
            .handle(role, flags, context.poller, context.payload);
        if slot.is_over {
            if slot.connection.is_gone() {
                self.leave(place);
            }
            return None;
        }
        match event {
            Some(ConnectionEvent::Finished) => {
                slot.is_over = true;
                slot.row.completion_us = Some(context.t_ns / 1000);
                let row = slot.row();
                if slot.is_sampled {
                    self.sampled -= 1;
                    self.samples.push(slot.sample(context.t_ns / 1000));
                }
                if slot.connection.is_gone() {
                    self.leave(place);
                }
                Some(row)
            }
            Some(ConnectionEvent::Broken(error)) => {
                let row = slot.row();
                self.sampled -= usize::from(slot.is_sampled);
                let group = &mut self.groups[row.group_id as usize];
                let sentence = format!("traffic {}, flow {}: {error}", group.name, row.number);
                group.problem.get_or_insert(sentence);
                self.leave(place);
                Some(row)
            }
            Some(ConnectionEvent::Established | ConnectionEvent::Drained) => {
                let trace = &self.groups[slot.row.group_id as usize].trace;
                if let (Some(trace), false) = (trace, slot.chunks.is_empty()) {
                    let pause_ns = trace.chunk(slot.chunks.start).pause_ns;
                    slot.row.pause_us += pause_ns / 1000;
                    self.due.push((context.t_ns + pause_ns, place, slot.number));
                }
                None
            }
            None => None,
        }
    }

    /// The chunks that became due since the last call: time in ns, slot, arrival number.
    pub(crate) fn take_due(&mut self) -> std::vec::Drain<'_, (u64, usize, u64)> {
        self.due.drain(..)
    }

    /// Writes the next chunk of the flow with this arrival number, if it is still in its slot.
    pub(crate) fn write_chunk(&mut self, place: usize, number: u64, context: &Context) {
        let slot = self.slots.get_mut(place).and_then(Option::as_mut);
        let Some(slot) = slot.filter(|slot| slot.number == number) else {
            return;
        };
        let group = &mut self.groups[slot.row.group_id as usize];
        let (Some(trace), Some(position)) = (&group.trace, slot.chunks.next()) else {
            return;
        };
        let bytes = trace.chunk(position).bytes;
        if let Err(error) = slot.connection.add_credit(bytes, context.payload) {
            let sentence = format!("traffic {}, flow {}: {error}", group.name, slot.row.number);
            group.problem.get_or_insert(sentence);
        }
    }

    /// Samples the flows that the plan names.
    pub(crate) fn sample(&mut self, t_us: u64) {
        let slots = self.slots.iter_mut().flatten();
        let sampled = slots.filter(|slot| slot.is_sampled && !slot.is_over);
        for slot in sampled.take(self.sampled) {
            slot.look();
            self.samples.push(slot.sample(t_us));
        }
    }

    /// The rows of samples since the last call.
    pub(crate) fn take_samples(&mut self) -> std::vec::Drain<'_, TrafficSampleRow> {
        self.samples.drain(..)
    }

    /// Frees a slot.
    fn leave(&mut self, place: usize) {
        self.slots[place] = None;
        self.free.push_back(place);
    }

    /// The first connection error of each group that had one.
    pub(crate) fn problems(&mut self) -> impl Iterator<Item = String> + '_ {
        let groups = self.groups.iter_mut();
        groups.filter_map(|group| group.problem.take())
    }

    /// Ends the run. Returns the rows of flows that are not over.
    pub(crate) fn end(&mut self) -> Vec<TrafficRow> {
        let slots = std::mem::take(&mut self.slots);
        let left = slots.into_iter().flatten();
        left.filter(|slot| !slot.is_over)
            .map(|mut slot| slot.row())
            .collect()
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
