//! One of CAKE's traffic classes: deficit round robin over its queues (sch_cake.c, cake_dequeue() within a
//! tin, cake_get_flow_quantum()). Knows no packets and no other tins.

use super::cobalt::Law;
use super::flows::{Chain, Flows, State};
use super::framing::Pace;
use super::hash::{FlowTable, HashKeys, QUEUES};
use crate::rng::Rng;

/// 65,535 divided by so many flows: saves a division at every quantum (quantum_div[]).
static PARTS: [u32; QUEUES + 1] = {
    let mut parts = [65_535; QUEUES + 1];
    let mut flows = 1;
    while flows <= QUEUES {
        parts[flows] /= flows as u32;
        flows += 1;
    }
    parts
};

/// One class of traffic.
#[derive(Debug)]
pub(super) struct Tin {
    pub(super) flows: Flows,
    pub(super) table: FlowTable,
    /// Bytes of each queue, not in the flows so that the search for the longest stays in cache.
    pub(super) backlogs: Box<[u64; QUEUES]>,
    pub(super) backlog: u64,
    pub(super) law: Law,
    pub(super) pace: Pace,
    /// When the tin has used its share of the rate up to now.
    pub(super) next_ns: u64,
    pub(super) flow_quantum: u32,
    pub(super) quantum: u32,
    pub(super) deficit: i64,
    pub(super) sparse_flows: u32,
    pub(super) bulk_flows: u32,
}

impl Tin {
    pub(super) fn new(keys: HashKeys) -> Self {
        Self {
            flows: Flows::default(),
            table: FlowTable::new(keys),
            backlogs: Box::new([0; QUEUES]),
            backlog: 0,
            law: Law::default(),
            pace: Pace::default(),
            next_ns: 0,
            flow_quantum: 0,
            quantum: 0,
            deficit: 0,
            sparse_flows: 0,
            bulk_flows: 0,
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.sparse_flows + self.bulk_flows > 0
    }

    /// Bytes that a flow may send per round: its part of its host's share if hosts are isolated. A random
    /// number makes up for the remainder of the division (cake_get_flow_quantum()).
    #[inline]
    fn quantum_of(&self, queue: usize, rng: &mut Rng) -> i64 {
        let load = usize::from(self.table.host_load(queue));
        let share = PARTS[load.min(QUEUES)];
        let dither = rng.next_u32() & 0xffff;
        i64::from((self.flow_quantum * share + dither) >> 16)
    }

    /// A packet arrived at a queue.
    pub(super) fn wake(&mut self, queue: usize, rng: &mut Rng) {
        match self.flows.at(queue).state {
            State::Idle | State::Decaying => {
                let deficit = self.quantum_of(queue, rng);
                self.flows.move_to(queue, Chain::New);
                self.sparse_flows += 1;
                let flow = self.flows.at(queue);
                flow.state = State::Sparse;
                flow.deficit = deficit;
            }
            State::SparseWait => {
                self.sparse_flows -= 1;
                self.become_bulk(queue);
            }
            State::Sparse | State::Bulk => {}
        }
    }

    fn become_bulk(&mut self, queue: usize) {
        self.flows.at(queue).state = State::Bulk;
        self.bulk_flows += 1;
        self.table.count(queue, 1);
    }

    /// The queue to serve next. Queues before it get a quantum and move behind the others.
    #[inline]
    pub(super) fn next_queue(&mut self, may_decay: &mut bool, rng: &mut Rng) -> Option<usize> {
        let mut queue = self.first(std::mem::take(may_decay))?;
        while self.flows.at(queue).deficit <= 0 {
            self.refill(queue, rng);
            queue = self.first(false)?;
        }
        Some(queue)
    }

    #[inline]
    fn first(&self, may_decay: bool) -> Option<usize> {
        let decaying = self.flows.first(Chain::Decaying);
        decaying
            .filter(|_| may_decay)
            .or_else(|| self.flows.first(Chain::New))
            .or_else(|| self.flows.first(Chain::Old))
            .or(decaying)
    }

    /// Gives a queue the next quantum and moves it behind the others.
    #[inline]
    fn refill(&mut self, queue: usize, rng: &mut Rng) {
        if self.flows.at(queue).state == State::Sparse {
            self.end_sparse(queue);
        }
        let more = self.quantum_of(queue, rng);
        self.flows.at(queue).deficit += more;
        self.flows.move_to(queue, Chain::Old);
    }

    /// A queue has used its first quantum.
    #[inline(never)] // once in a while
    fn end_sparse(&mut self, queue: usize) {
        let flow = self.flows.at(queue);
        if flow.list.is_empty() {
            // It stays in the rotation for its deficit, but does not count for its host.
            flow.state = State::SparseWait;
        } else {
            self.sparse_flows -= 1;
            self.become_bulk(queue);
        }
    }

    /// Removes an empty queue from the rotation, or moves it to the decaying ones until its COBALT is at rest.
    pub(super) fn retire(&mut self, queue: usize, now_ns: u64) {
        let law = self.law;
        let flow = self.flows.at(queue);
        flow.cobalt.on_empty(&law, now_ns);
        let is_at_rest = flow.cobalt.is_at_rest(now_ns);
        let state = flow.state;
        flow.state = if is_at_rest {
            State::Idle
        } else {
            State::Decaying
        };
        match state {
            State::Bulk => {
                self.bulk_flows -= 1;
                self.table.count(queue, -1);
            }
            State::Sparse | State::SparseWait => self.sparse_flows -= 1,
            State::Decaying | State::Idle => {}
        }
        if is_at_rest {
            self.flows.detach(queue);
        } else {
            self.flows.move_to(queue, Chain::Decaying);
        }
    }
}
