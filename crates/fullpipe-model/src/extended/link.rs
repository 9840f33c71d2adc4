//! The drop-tail bottleneck as an exact first-in-first-out fluid: cumulative arrivals and
//! departures, and whole segments lost where the buffer overflows.

use super::random::Random;
use crate::history::Ring;

/// What the link remembers of one flow.
struct Passage {
    /// Volume accepted, which falls by one with a lost segment, whose volume had been accepted
    /// before; segments lost.
    past: Ring<[f64; 2]>,
    accepted_now: f64,
    lost_now: f64,
}

/// The bottleneck.
#[derive(Default)]
pub(super) struct Link {
    capacity_per_step: f64,
    buffer: f64,
    flows: Vec<Passage>,
    accepted: Ring,
    accepted_now: f64,
    departed: f64,
    /// Arrival time (in steps) of what departs at a step.
    head: Ring,
    head_now: f64,
    /// Volume that did not fit and is not yet a whole lost segment; it waits in the queue.
    excess: f64,
    /// Volume of lost segments that is still to be taken off what arrives, so that what has been
    /// accepted of all flows never falls.
    debt: f64,
    random: Random,
}

impl Link {
    pub(super) fn new(
        flows: usize,
        capacity_per_step: f64,
        buffer: f64,
        reach: usize,
        seed: u64,
    ) -> Self {
        let passage = |_| Passage {
            past: Ring::new(reach, [0.0; 2]),
            accepted_now: 0.0,
            lost_now: 0.0,
        };
        Self {
            capacity_per_step,
            buffer,
            flows: (0..flows).map(passage).collect(),
            accepted: Ring::new(reach, 0.0),
            head: Ring::new(reach, 0.0),
            random: Random::new(seed),
            ..Self::default()
        }
    }

    /// Queue in segments, without the lost volume that has not been taken off it yet.
    pub(super) fn queue(&self) -> f64 {
        (self.accepted_now - self.departed).min(self.buffer)
    }

    /// Volume that has departed since the start.
    pub(super) fn departed(&self) -> f64 {
        self.departed
    }

    /// Takes the arrivals of step `n` and serves one step.
    pub(super) fn step(&mut self, n: usize, arrivals: &[f64]) {
        let total: f64 = arrivals.iter().sum();
        let queue = self.accepted_now - self.departed - self.debt - self.excess;
        let over = queue + total - self.capacity_per_step - self.buffer;
        if over > 0.0 && total > 0.0 {
            self.overflow(over.min(total), total, arrivals);
        }
        for (flow, &arrived) in self.flows.iter_mut().zip(arrivals) {
            flow.accepted_now += arrived;
            flow.past.set(n, [flow.accepted_now, flow.lost_now]);
        }
        let taken = self.debt.min(total);
        self.debt -= taken;
        self.accepted_now += total - taken;
        self.accepted.set(n, self.accepted_now);
        self.departed = (self.departed + self.capacity_per_step).min(self.accepted_now);
        self.advance_head(n);
    }

    /// Loses whole segments. At a full queue a segment is lost because another took the place that
    /// a departure freed: either of the two with the same probability. Flows space their own
    /// segments out (paced, or clocked by departures), so the two are of different flows, and a
    /// flow's part of the losses goes with its arrivals times those of the others.
    fn overflow(&mut self, over: f64, total: f64, arrivals: &[f64]) {
        self.excess += over;
        while self.excess >= 1.0 {
            self.excess -= 1.0;
            let others = |arrived: f64| {
                if arrivals.len() > 1 {
                    total - arrived
                } else {
                    1.0
                }
            };
            let weights: f64 = arrivals.iter().map(|&a| a * others(a)).sum();
            let mut draw = self.random.uniform() * weights;
            let hit = arrivals.iter().position(|&arrived| {
                draw -= arrived * others(arrived);
                draw < 0.0
            });
            let largest = || {
                let order = |a: &usize, b: &usize| arrivals[*a].total_cmp(&arrivals[*b]);
                (0..arrivals.len()).max_by(order).unwrap_or(0)
            };
            let flow = &mut self.flows[hit.unwrap_or_else(largest)];
            flow.accepted_now -= 1.0;
            flow.lost_now += 1.0;
            self.debt += 1.0;
        }
    }

    fn advance_head(&mut self, n: usize) {
        let mut step = self.head_now as usize;
        while step < n && self.accepted.get(step + 1) <= self.departed {
            step += 1;
        }
        self.head_now = if step >= n {
            n as f64
        } else {
            let before = self.accepted.get(step);
            let width = self.accepted.get(step + 1) - before;
            let part = ((self.departed - before) / width).clamp(0.0, 1.0);
            (step as f64 + part).max(self.head_now)
        };
        self.head.set(n, self.head_now);
    }

    /// Arrival time of what departed at step `n`.
    #[inline]
    pub(super) fn arrival_of_departure(&self, n: usize) -> f64 {
        self.head.get(n)
    }

    /// Volume of a flow that had been accepted when what arrived at `time` was (not monotone), and
    /// its segments that had been lost before.
    #[inline]
    pub(super) fn accepted_and_lost_by(&self, flow: usize, time: f64) -> (f64, f64) {
        let past = &self.flows[flow].past;
        (past.at(time)[0], past.get(time as usize)[1])
    }
}
