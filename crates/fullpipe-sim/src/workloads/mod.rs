//! Workloads: what opens connections and writes into them, as far as the simulator has to know. When they
//! do it, and how much, is in fullpipe-workload.

mod flow_pool;
mod pages;

pub(crate) use flow_pool::{Arrived, FlowPool, PooledFlow, Progress};
pub(crate) use pages::{PageConnection, Pages, QUERY_BYTES, REPLY_BYTES, UNSENT_BYTES};

pub use flow_pool::Traces;

use fullpipe_net::{derive_seed, purpose};
use fullpipe_plan::Plan;
use fullpipe_workload::DatagramSource;

use crate::agenda::{Agenda, Event};
use crate::check::BadPlan;

/// All workloads of a plan but its bulk flows.
pub(crate) struct Workloads {
    pub(crate) pool: FlowPool,
    pub(crate) pages: Pages,
    /// Streams of datagrams.
    pub(crate) streams: Vec<DatagramSource>,
}

impl Workloads {
    pub(crate) fn new(plan: &Plan, traces: &Traces) -> Result<Self, BadPlan> {
        let streams = (0..).zip(&plan.datagrams).map(|(index, stream)| {
            DatagramSource::new(stream, derive_seed(plan.seed, purpose::DATAGRAMS, index))
        });
        Ok(Self {
            pool: FlowPool::new(plan, traces)?,
            pages: Pages::new(plan),
            streams: streams.collect(),
        })
    }

    /// Schedules the first flows of traffic groups, loads of pages, and datagrams.
    pub(crate) fn schedule(&mut self, agenda: &mut Agenda) {
        self.pool.schedule(agenda);
        self.pages.finish_steps(agenda);
        for (index, stream) in (0..).zip(&self.streams) {
            if let Some(at_ns) = stream.due_ns() {
                agenda.schedule(at_ns, Event::Datagram(index));
            }
        }
    }
}
