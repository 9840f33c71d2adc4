//! The queues of a tin and the lists in which they are served. Knows no packets.

use super::cobalt::Cobalt;
use super::hash::{Use, QUEUES};
use crate::queue::slab::List;

const NIL: u16 = u16::MAX;
const CHAINS: usize = 3;

/// Lists of a tin: new queues, old ones, and those whose state decays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chain {
    New,
    Old,
    Decaying,
}

/// The state of a queue in the rotation (sch_cake.c, CAKE_SET_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    Sparse,
    SparseWait,
    Bulk,
    Decaying,
}

/// One queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    pub(super) list: List,
    pub(super) cobalt: Cobalt,
    pub(super) deficit: i64,
    pub(super) state: State,
    chain: Option<Chain>,
    previous: u16,
    next: u16,
}

/// All queues of a tin, in doubly linked lists.
#[derive(Debug)]
pub(super) struct Flows {
    flows: Box<[Flow; QUEUES]>,
    ends: [(u16, u16); CHAINS],
}

impl Default for Flows {
    fn default() -> Self {
        let flow = Flow {
            list: List::default(),
            cobalt: Cobalt::default(),
            deficit: 0,
            state: State::Idle,
            chain: None,
            previous: NIL,
            next: NIL,
        };
        Self {
            flows: Box::new([flow; QUEUES]),
            ends: [(NIL, NIL); CHAINS],
        }
    }
}

impl Flows {
    #[inline]
    pub(super) fn at(&mut self, queue: usize) -> &mut Flow {
        &mut self.flows[queue % QUEUES]
    }

    #[inline]
    pub(super) fn list(&self, queue: usize) -> &List {
        &self.flows[queue % QUEUES].list
    }

    pub(super) fn used(&self, queue: usize) -> Use {
        match self.flows[queue % QUEUES].state {
            State::Idle => Use::Free,
            State::Bulk => Use::Bulk,
            _ => Use::Other,
        }
    }

    #[inline]
    pub(super) fn first(&self, chain: Chain) -> Option<usize> {
        let (first, _) = self.ends[chain as usize];
        (first != NIL).then_some(usize::from(first))
    }

    /// Moves a queue to the end of a list, from any other.
    pub(super) fn move_to(&mut self, queue: usize, chain: Chain) {
        self.detach(queue);
        let ends = &mut self.ends[chain as usize];
        let last = ends.1;
        ends.1 = queue as u16;
        if last == NIL {
            ends.0 = queue as u16;
        } else {
            self.flows[usize::from(last) % QUEUES].next = queue as u16;
        }
        let flow = &mut self.flows[queue % QUEUES];
        flow.chain = Some(chain);
        flow.previous = last;
        flow.next = NIL;
    }

    pub(super) fn detach(&mut self, queue: usize) {
        let flow = &mut self.flows[queue % QUEUES];
        let (previous, next) = (flow.previous, flow.next);
        let Some(chain) = flow.chain.take() else {
            return;
        };
        if previous == NIL {
            self.ends[chain as usize].0 = next;
        } else {
            self.flows[usize::from(previous) % QUEUES].next = next;
        }
        if next == NIL {
            self.ends[chain as usize].1 = previous;
        } else {
            self.flows[usize::from(next) % QUEUES].previous = previous;
        }
    }
}
