//! Whose turn it is among the flows of a fair queue: new flows first, then the others one after the
//! other, each as long as its credit lasts (RFC 8290 section 4.2; fq_dequeue(), fq_codel_dequeue(),
//! fq_pie_qdisc_dequeue()). It must never know what flows hold.

use std::collections::VecDeque;

/// The lists of new and of old flows, by their indices.
#[derive(Debug)]
pub(crate) struct Drr {
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    quantum: i64,
}

/// The flow at the head of one of them.
pub(crate) struct Turn {
    pub(crate) flow: u32,
    pub(crate) is_new: bool,
}

impl Drr {
    pub(crate) fn new(quantum_bytes: u32) -> Self {
        Self {
            new: VecDeque::new(),
            old: VecDeque::new(),
            quantum: i64::from(quantum_bytes),
        }
    }

    /// What a flow may send a round.
    pub(crate) fn quantum(&self) -> i64 {
        self.quantum
    }

    /// A flow that had nothing begins.
    pub(crate) fn join(&mut self, flow: u32) {
        self.new.push_back(flow);
    }

    /// A flow takes its place behind the old ones.
    pub(crate) fn rejoin(&mut self, flow: u32) {
        self.old.push_back(flow);
    }

    /// The flow whose turn it is. Those before it that have used their credit get another quantum and
    /// wait behind the others.
    #[inline]
    pub(crate) fn next<F>(
        &mut self,
        flows: &mut [F],
        credit: impl Fn(&mut F) -> &mut i64,
    ) -> Option<Turn> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let flow = *list.front()?;
            let credit = credit(&mut flows[flow as usize]);
            if *credit > 0 {
                return Some(Turn { flow, is_new });
            }
            *credit += self.quantum;
            list.pop_front();
            self.old.push_back(flow);
        }
    }

    /// The flow leaves its list.
    pub(crate) fn leave(&mut self, turn: &Turn) {
        let list = if turn.is_new {
            &mut self.new
        } else {
            &mut self.old
        };
        list.pop_front();
    }

    /// The flow has nothing. One that was new waits among the old first, if there are any, lest it starve
    /// them by being new again and again; else it leaves, and this is true.
    pub(crate) fn retire(&mut self, turn: &Turn) -> bool {
        self.leave(turn);
        let stays = turn.is_new && !self.old.is_empty();
        if stays {
            self.old.push_back(turn.flow);
        }
        !stays
    }
}
