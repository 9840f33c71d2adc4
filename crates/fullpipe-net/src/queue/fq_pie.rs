//! Fair queueing with PIE in each queue: sch_fq_pie.c.
//!
//! Linux updates the probabilities of all queues by one timer. Here the updates of a queue that are due are
//! made when it is next used; an idle queue at rest needs none. Up to 2048 queues share the kernel's
//! timer; more take turns there, which is left out. So is the memory limit, which the kernel counts
//! but never enforces.

use serde::{Deserialize, Serialize};

use super::discipline::{Discipline, Environment, Outcome, Parameters};
use super::drr::Drr;
use super::pie::{self, Law, State, Updates, Verdict};
use super::slab::{List, Slab};
use crate::packet::Packet;
use crate::rng::Rng;

/// Parameters of sch_fq_pie.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Acceptable delay (tc: 15 ms).
    pub target_ns: u64,
    /// What the timer of the updates is set to (tc: 15 ms, after which it fires every 20 ms).
    pub update_ns: u64,
    /// Weight of the delay, in sixteenths of a Hz (tc: 2).
    pub alpha: u32,
    /// Weight of its change, in sixteenths of a Hz (tc: 20).
    pub beta: u32,
    /// Drops small packets less often.
    pub byte_mode: bool,
    /// Takes the delay from the departure rate (RFC 8033 section 5.2) instead of from timestamps.
    pub rate_estimator: bool,
    /// Marks packets that can carry a mark instead of dropping them.
    pub ecn: bool,
    /// Up to this probability, in percent (tc: 10).
    pub ecn_percent: u32,
    /// Bytes that a flow may send per round (tc: one full packet).
    pub quantum_bytes: u32,
    /// Number of queues (tc: 1024).
    pub flows: u32,
}

impl Parameters for Params {}

#[derive(Clone, Debug, Default)]
struct Flow {
    list: List,
    bytes: u64,
    pie: State,
    /// Updates of the qdisc that this queue has seen.
    updates: u64,
    deficit: i64,
    listed: bool,
}

/// The queues and their two lists.
#[derive(Debug)]
pub(crate) struct FqPie<P> {
    flows: Vec<Flow>,
    slab: Slab<(u64, P)>,
    drr: Drr,
    law: Law,
    timer: Updates,
    updates: u64,
    limit_packets: usize,
    packets: usize,
    rng: Rng,
}

impl<P: Packet> FqPie<P> {
    /// reciprocal_scale() of a multiplicative hash.
    fn classify(&self, packet: &P) -> u32 {
        let hash = packet.flow_key().wrapping_mul(0x9e37_79b1);
        ((u64::from(hash) * self.flows.len() as u64) >> 32) as u32
    }

    fn catch_up(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        for _ in flow.updates..self.updates {
            if flow.bytes == 0 && flow.pie.is_at_rest() {
                break;
            }
            flow.pie.update(&self.law, flow.bytes);
        }
        flow.updates = self.updates;
    }
}

impl<P: Packet> Discipline<P> for FqPie<P> {
    type Params = Params;

    fn new(params: &Params, environment: &Environment) -> Self {
        let of_one_queue = pie::Params {
            target_ns: params.target_ns,
            update_ns: params.update_ns,
            alpha: params.alpha,
            beta: params.beta,
            byte_mode: params.byte_mode,
            rate_estimator: params.rate_estimator,
            ecn: params.ecn,
        };
        Self {
            flows: vec![Flow::default(); params.flows.max(1) as usize],
            slab: Slab::default(),
            law: Law {
                params: of_one_queue,
                ecn_percent: params.ecn_percent,
                frame_bytes: environment.frame_bytes,
            },
            timer: Updates::new(params.update_ns),
            updates: 0,
            drr: Drr::new(params.quantum_bytes.max(1)),
            limit_packets: environment.most_packets(),
            packets: 0,
            rng: Rng::new(environment.seed),
        }
    }

    /// fq_pie_qdisc_enqueue()
    fn enqueue(&mut self, now_ns: u64, mut packet: P, outcome: &mut Outcome<P>) {
        self.updates += self.timer.take(now_ns);
        let index = self.classify(&packet);
        self.catch_up(index);
        let flow = &mut self.flows[index as usize];
        if self.packets >= self.limit_packets {
            flow.pie.on_drop();
            outcome.drop(packet);
            return;
        }
        match flow
            .pie
            .judge(&self.law, flow.bytes, &packet, &mut self.rng)
        {
            Verdict::Take => {}
            Verdict::Mark => outcome.mark(&mut packet),
            Verdict::Drop => {
                outcome.drop(packet);
                return;
            }
        }
        let bytes = u64::from(packet.wire_bytes());
        self.slab.push_back(&mut flow.list, (now_ns, packet));
        flow.bytes += bytes;
        self.packets += 1;
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.drr.quantum();
            self.drr.join(index);
        }
    }

    /// fq_pie_qdisc_dequeue()
    fn dequeue(&mut self, now_ns: u64, _outcome: &mut Outcome<P>) -> Option<P> {
        self.updates += self.timer.take(now_ns);
        loop {
            let turn = self.drr.next(&mut self.flows, |flow| &mut flow.deficit)?;
            let index = turn.flow;
            let flow = &mut self.flows[index as usize];
            let Some((arrived_ns, packet)) = self.slab.pop_front(&mut flow.list) else {
                if self.drr.retire(&turn) {
                    flow.listed = false;
                }
                continue;
            };
            self.catch_up(index);
            let bytes = packet.wire_bytes();
            let flow = &mut self.flows[index as usize];
            flow.bytes -= u64::from(bytes);
            flow.deficit -= i64::from(bytes);
            self.packets -= 1;
            flow.pie
                .on_departure(&self.law, now_ns, arrived_ns, bytes, flow.bytes);
            return Some(packet);
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
