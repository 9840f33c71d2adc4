//! Flows of traffic that come and go over sockets: each has a connection of its own while it lives.
//! When a flow comes and what it sends was made before; here it is done. A connection's place, and
//! with it its ports, is free again when both ends are closed.

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

use super::application::Means;
use super::connection::{Connection, Happening, Role, MAX_FLOWS};
use crate::sample::FlowMeter;

/// Files that may be open: three a connection, and some.
const DESCRIPTORS: u64 = 4 * MAX_FLOWS as u64;

/// All groups of a plan.
pub(crate) struct Crowd {
    groups: Vec<Group>,
    /// Connections of the plan's own flows stand before those of the crowd.
    first: usize,
    visits: Vec<Option<Visit>>,
    /// Places of `visits` that are free, the one that has been so for longest first.
    free: VecDeque<usize>,
    /// Flows that came, of all groups.
    came: u64,
    /// When the flow at a place that came as this one writes its next chunk, since the run's start.
    due: Vec<(u64, usize, u64)>,
    /// Flows that are sampled and not over.
    watched: usize,
    /// Rows of theirs that nobody has taken.
    samples: Vec<TrafficSampleRow>,
}

struct Group {
    name: String,
    flows: Flows,
    /// Where its flows pause.
    trace: Option<Arc<Trace>>,
    next: Option<NewFlow>,
    came: u64,
    start_ns: u64,
    stop_ns: u64,
    members: Vec<Member>,
    low_water_bytes: u32,
    control: Control,
    /// Numbers of flows that are sampled.
    samples: HashSet<u64>,
    /// Why its first connection broke that did.
    problem: Option<String>,
}

/// The congestion control of a group.
pub(crate) struct Control {
    /// As the kernel calls it.
    pub(crate) name: String,
    /// Receivers have it too.
    pub(crate) is_at_both_ends: bool,
    /// It paces, or its host does.
    pub(crate) is_paced: bool,
}

/// A sender.
struct Member {
    /// A flow of it.
    flow: Flow,
    base_rtt_us: u64,
    ends: [(usize, Ipv4Addr); 2],
}

/// A flow's stay.
struct Visit {
    connection: Connection,
    meter: FlowMeter,
    row: TrafficRow,
    /// As which one it came.
    came: u64,
    /// Chunks of its group's trace that it has not written.
    chunks: Range<usize>,
    /// It is sampled.
    is_watched: bool,
    /// Its row has been given out.
    is_over: bool,
}

impl Crowd {
    /// Groups that wait; `ends` holds those of the senders of all groups.
    pub(crate) fn new(
        plan: &Plan,
        ends: &[[(usize, Ipv4Addr); 2]],
        control: impl Fn(usize) -> Control,
    ) -> Result<Self, String> {
        if !plan.traffic.is_empty() {
            // Who may not raise it has what it has: a connection that finds none left says so.
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
                came: 0,
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
            visits: Vec::new(),
            free: VecDeque::new(),
            came: 0,
            due: Vec::new(),
            watched: 0,
            samples: Vec::new(),
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
    pub(crate) fn arrive(&mut self, index: usize, means: &Means) -> Result<(), String> {
        let group = &mut self.groups[index];
        let Some(new) = group.next.take() else {
            return Ok(());
        };
        group.next = group.flows.next();
        let number = group.came;
        group.came += 1;
        let sender = (number % group.members.len() as u64) as usize;
        let member = &mut group.members[sender];
        member.flow.amount_bytes = Some(new.bytes);
        let place = self.free.pop_front().unwrap_or(self.visits.len());
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
            means.nodes,
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
            start_us: means.t_ns / 1000,
            size_bytes: new.bytes,
            chunks: new.chunks.as_ref().map_or(1, |chunks| chunks.len() as u64),
            ..TrafficRow::default()
        };
        if new.chunks.is_some() {
            connection.write_in_chunks();
        }
        connection
            .start(means.poller)
            .map_err(|error| format!("traffic {}, flow {number}: {error}", group.name))?;
        let is_watched = group.samples.contains(&number);
        self.watched += usize::from(is_watched);
        let visit = Visit {
            connection,
            meter: FlowMeter::new(slot as u64, group.control.is_paced),
            row,
            came: self.came,
            chunks: new.chunks.unwrap_or(0..0),
            is_watched,
            is_over: false,
        };
        self.came += 1;
        if place == self.visits.len() {
            self.visits.push(Some(visit));
        } else {
            self.visits[place] = Some(visit);
        }
        Ok(())
    }

    /// A descriptor of the connection `slot` is ready; the row of a flow that is over by this.
    pub(crate) fn handle(
        &mut self,
        slot: usize,
        role: Role,
        flags: EpollFlags,
        means: &Means,
    ) -> Option<TrafficRow> {
        let place = slot - self.first;
        let visit = self.visits.get_mut(place)?.as_mut()?;
        let happening = visit
            .connection
            .handle(role, flags, means.poller, means.payload);
        if visit.is_over {
            if visit.connection.is_gone() {
                self.leave(place);
            }
            return None;
        }
        match happening {
            Some(Happening::Finished) => {
                visit.is_over = true;
                visit.row.completion_us = Some(means.t_ns / 1000);
                let row = visit.row();
                if visit.is_watched {
                    self.watched -= 1;
                    self.samples.push(visit.sample(means.t_ns / 1000));
                }
                if visit.connection.is_gone() {
                    self.leave(place);
                }
                Some(row)
            }
            Some(Happening::Broken(error)) => {
                let row = visit.row();
                self.watched -= usize::from(visit.is_watched);
                let group = &mut self.groups[row.group_id as usize];
                let sentence = format!("traffic {}, flow {}: {error}", group.name, row.number);
                group.problem.get_or_insert(sentence);
                self.leave(place);
                Some(row)
            }
            Some(Happening::Established | Happening::Drained) => {
                let trace = &self.groups[visit.row.group_id as usize].trace;
                if let (Some(trace), false) = (trace, visit.chunks.is_empty()) {
                    let pause_ns = trace.chunk(visit.chunks.start).pause_ns;
                    visit.row.pause_us += pause_ns / 1000;
                    self.due.push((means.t_ns + pause_ns, place, visit.came));
                }
                None
            }
            None => None,
        }
    }

    /// Flows that will write a chunk, which nobody has been told of yet: when, where, which one.
    pub(crate) fn take_due(&mut self) -> std::vec::Drain<'_, (u64, usize, u64)> {
        self.due.drain(..)
    }

    /// The flow that came as this one writes its next chunk if it is still there.
    pub(crate) fn write_chunk(&mut self, place: usize, came: u64, means: &Means) {
        let visit = self.visits.get_mut(place).and_then(Option::as_mut);
        let Some(visit) = visit.filter(|visit| visit.came == came) else {
            return;
        };
        let group = &mut self.groups[visit.row.group_id as usize];
        let (Some(trace), Some(position)) = (&group.trace, visit.chunks.next()) else {
            return;
        };
        let bytes = trace.chunk(position).bytes;
        if let Err(error) = visit.connection.add_credit(bytes, means.payload) {
            let sentence = format!("traffic {}, flow {}: {error}", group.name, visit.row.number);
            group.problem.get_or_insert(sentence);
        }
    }

    /// Samples the flows of which that was asked for.
    pub(crate) fn sample(&mut self, t_us: u64) {
        let visits = self.visits.iter_mut().flatten();
        let watched = visits.filter(|visit| visit.is_watched && !visit.is_over);
        for visit in watched.take(self.watched) {
            visit.look();
            self.samples.push(visit.sample(t_us));
        }
    }

    /// Their rows since this was last asked.
    pub(crate) fn take_samples(&mut self) -> std::vec::Drain<'_, TrafficSampleRow> {
        self.samples.drain(..)
    }

    /// The place is free.
    fn leave(&mut self, place: usize) {
        self.visits[place] = None;
        self.free.push_back(place);
    }

    /// Why connections broke: a sentence of each group where one did.
    pub(crate) fn problems(&mut self) -> impl Iterator<Item = String> + '_ {
        let groups = self.groups.iter_mut();
        groups.filter_map(|group| group.problem.take())
    }

    /// The run ends: rows of flows that are not over.
    pub(crate) fn end(&mut self) -> Vec<TrafficRow> {
        let visits = std::mem::take(&mut self.visits);
        let left = visits.into_iter().flatten();
        left.filter(|visit| !visit.is_over)
            .map(|mut visit| visit.row())
            .collect()
    }
}

impl Visit {
    fn look(&mut self) {
        // A sender that the kernel has nothing to say of has sent nothing that counts.
        let _: io::Result<()> = self.meter.look(&self.connection, 0, |_| ());
    }

    /// The row of a sample by the last look.
    fn sample(&self, t_us: u64) -> TrafficSampleRow {
        let sample = self.meter.sample(&self.connection, t_us);
        TrafficSampleRow::of(self.row.group_id, self.row.number, &sample)
    }

    /// What the kernel says of the flow now.
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
