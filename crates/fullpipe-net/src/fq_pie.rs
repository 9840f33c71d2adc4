//! Fair queueing with PIE in each queue: sch_fq_pie.c.
//!
//! Linux updates the probabilities of all queues by one timer. Here each queue makes up its due
//! updates when it is next touched; a queue at rest has none. Up to 2048 queues share the kernel's
//! timer; more take turns there, which is left out. So is the memory limit, which the kernel counts
//! but never enforces.

use crate::discipline::{Discipline, Outcome};
use crate::pie::{Params, State, Updates, Verdict};
use crate::rng::Rng;
use crate::store::{List, Store};
use crate::turns::Turns;
use crate::Packet;

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
    store: Store<(u64, P)>,
    turns: Turns,
    params: Params,
    timer: Updates,
    updates: u64,
    limit_packets: usize,
    packets: usize,
    bytes: u64,
    rng: Rng,
}

impl<P: Packet> FqPie<P> {
    pub(crate) fn new(
        params: Params,
        flows: u32,
        quantum_bytes: u32,
        limit_packets: Option<u32>,
        seed: u64,
    ) -> Self {
        Self {
            flows: vec![Flow::default(); flows.max(1) as usize],
            store: Store::default(),
            params,
            timer: Updates::new(params.update_ns),
            updates: 0,
            turns: Turns::new(quantum_bytes.max(1)),
            limit_packets: limit_packets.map_or(usize::MAX, |limit| limit as usize),
            packets: 0,
            bytes: 0,
            rng: Rng::new(seed),
        }
    }

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
            flow.pie.update(&self.params, flow.bytes);
        }
        flow.updates = self.updates;
    }
}

impl<P: Packet> Discipline<P> for FqPie<P> {
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
            .judge(&self.params, flow.bytes, &packet, &mut self.rng)
        {
            Verdict::Take => {}
            Verdict::Mark => outcome.mark(&mut packet),
            Verdict::Drop => {
                outcome.drop(packet);
                return;
            }
        }
        let bytes = u64::from(packet.wire_bytes());
        self.store.push_back(&mut flow.list, (now_ns, packet));
        flow.bytes += bytes;
        self.bytes += bytes;
        self.packets += 1;
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.turns.quantum();
            self.turns.join(index);
        }
    }

    /// fq_pie_qdisc_dequeue()
    fn dequeue(&mut self, now_ns: u64, _outcome: &mut Outcome<P>) -> Option<P> {
        self.updates += self.timer.take(now_ns);
        loop {
            let turn = self.turns.next(&mut self.flows, |flow| &mut flow.deficit)?;
            let index = turn.flow;
            let flow = &mut self.flows[index as usize];
            let Some((arrived_ns, packet)) = self.store.pop_front(&mut flow.list) else {
                if self.turns.retire(&turn) {
                    flow.listed = false;
                }
                continue;
            };
            self.catch_up(index);
            let bytes = packet.wire_bytes();
            let flow = &mut self.flows[index as usize];
            flow.bytes -= u64::from(bytes);
            flow.deficit -= i64::from(bytes);
            self.bytes -= u64::from(bytes);
            self.packets -= 1;
            flow.pie
                .on_departure(&self.params, now_ns, arrived_ns, bytes, flow.bytes);
            return Some(packet);
        }
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn packets(&self) -> usize {
        self.packets
    }
}
