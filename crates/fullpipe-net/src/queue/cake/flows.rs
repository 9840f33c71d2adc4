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

/// All queues of a tin, in lists that are linked as rings: one of them turns by a step of its head.
#[derive(Debug)]
pub(super) struct Flows {
    flows: Box<[Flow; QUEUES]>,
    heads: [u16; CHAINS],
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
            heads: [NIL; CHAINS],
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
        let first = self.heads[chain as usize];
        (first != NIL).then_some(usize::from(first))
    }

    /// Moves a queue to the end of a list, from any other.
    #[inline]
    pub(super) fn move_to(&mut self, queue: usize, chain: Chain) {
        let head = self.heads[chain as usize];
        if usize::from(head) == queue {
            self.heads[chain as usize] = self.flows[queue % QUEUES].next;
        } else {
            self.append(queue, chain);
        }
    }

    #[inline(never)] // most queues only take turns
    fn append(&mut self, queue: usize, chain: Chain) {
        self.detach(queue);
        let number = queue as u16;
        let head = self.heads[chain as usize];
        let (previous, next) = match head {
            NIL => (number, number),
            head => (self.flows[usize::from(head) % QUEUES].previous, head),
        };
        if head == NIL {
            self.heads[chain as usize] = number;
        }
        let flow = &mut self.flows[queue % QUEUES];
        flow.chain = Some(chain);
        flow.previous = previous;
        flow.next = next;
        self.flows[usize::from(previous) % QUEUES].next = number;
        self.flows[usize::from(next) % QUEUES].previous = number;
    }

    pub(super) fn detach(&mut self, queue: usize) {
        let flow = &mut self.flows[queue % QUEUES];
        let (previous, next) = (flow.previous, flow.next);
        let Some(chain) = flow.chain.take() else {
            return;
        };
        let head = &mut self.heads[chain as usize];
        if usize::from(*head) == queue {
            *head = if usize::from(next) == queue {
                NIL
            } else {
                next
            };
        }
        self.flows[usize::from(previous) % QUEUES].next = next;
        self.flows[usize::from(next) % QUEUES].previous = previous;
    }
}
