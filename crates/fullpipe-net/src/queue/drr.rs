//! Deficit round robin over the flows of a fair queue: new flows first, then old ones in turn, each while
//! it has credit (RFC 8290 section 4.2; fq_dequeue(), fq_codel_dequeue(), fq_pie_qdisc_dequeue()). Knows
//! no packets.

use std::collections::VecDeque;

/// The lists of new and of old flows, as indices.
#[derive(Debug)]
pub(crate) struct Drr {
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    quantum: i64,
}

/// The flow at the head of one of the lists.
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

    /// Bytes that a flow may send per round.
    pub(crate) fn quantum(&self) -> i64 {
        self.quantum
    }

    /// A flow that was empty gets a packet.
    pub(crate) fn join(&mut self, flow: u32) {
        self.new.push_back(flow);
    }

    /// Appends a flow to the old ones.
    pub(crate) fn rejoin(&mut self, flow: u32) {
        self.old.push_back(flow);
    }

    /// The next flow with credit. Flows before it get a quantum and move to the end of the old ones.
    #[inline]
    pub(crate) fn next<F>(
        &mut self,
        flows: &mut [F],
        credit: impl Fn(&mut F) -> &mut i64,
    ) -> Option<Turn> {
        loop {
            let turn = self.first()?;
            let credit = credit(&mut flows[turn.flow as usize]);
            if *credit > 0 {
                return Some(turn);
            }
            if self.is_alone(&turn) {
                // Rounds that nobody else takes part in.
                *credit += (1 - *credit / self.quantum) * self.quantum;
                return Some(turn);
            }
            *credit += self.quantum;
            self.leave(&turn);
            self.rejoin(turn.flow);
        }
    }

    /// The flow at the head of the new ones, or of the old ones if there is no new one.
    #[inline]
    pub(crate) fn first(&self) -> Option<Turn> {
        let is_new = !self.new.is_empty();
        let list = if is_new { &self.new } else { &self.old };
        let &flow = list.front()?;
        Some(Turn { flow, is_new })
    }

    /// Whether there are old flows.
    pub(crate) fn has_old(&self) -> bool {
        !self.old.is_empty()
    }

    /// Whether it is the only flow, an old one: behind the others it is first again.
    fn is_alone(&self, turn: &Turn) -> bool {
        !turn.is_new && self.old.len() == 1
    }

    /// Removes the flow from its list.
    pub(crate) fn leave(&mut self, turn: &Turn) {
        let list = if turn.is_new {
            &mut self.new
        } else {
            &mut self.old
        };
        list.pop_front();
    }

    /// Removes an empty flow and returns true. But if it is new and there are old flows, it becomes an old
    /// one: else it could starve them by being new again and again.
    pub(crate) fn retire(&mut self, turn: &Turn) -> bool {
        self.leave(turn);
        let stays = turn.is_new && self.has_old();
        if stays {
            self.old.push_back(turn.flow);
        }
        !stays
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flows 0 to `flows` - 1, all old, in that order.
    fn old_flows(flows: u32) -> Drr {
        let mut drr = Drr::new(300);
        (0..flows).for_each(|flow| drr.rejoin(flow));
        drr
    }

    #[test]
    fn a_lone_flow_gets_quanta_until_it_has_credit_and_stays() {
        let (mut drr, mut credits) = (old_flows(1), [-1214]);
        let turn = drr.next(&mut credits, |credit| credit).expect("it is old");
        assert_eq!((turn.flow, turn.is_new), (0, false));
        // Five quanta: four leave it at -14.
        assert_eq!(credits, [5 * 300 - 1214]);
        assert!(drr.retire(&turn) && drr.first().is_none());
    }

    #[test]
    fn flows_without_credit_get_a_quantum_in_turn() {
        let (mut drr, mut credits) = (old_flows(2), [-500, -100]);
        let turn = drr
            .next(&mut credits, |credit| credit)
            .expect("two are old");
        // Flow 0 has two quanta before flow 1, which has one, is at the head again.
        assert_eq!((turn.flow, credits), (1, [100, 200]));
        credits[1] = -1;
        let turn = drr
            .next(&mut credits, |credit| credit)
            .expect("two are old");
        // Flow 1 gets a quantum and goes behind flow 0, which has credit.
        assert_eq!((turn.flow, credits), (0, [100, 299]));
    }
}
