//! Fair queueing with CoDel in each queue: RFC 8290, sch_fq_codel.c.

use std::collections::VecDeque;

use crate::codel::{self, Params, State, TimedFifo};
use crate::Packet;

/// Packets dropped at once from the fattest queue when the limit is hit (drop_batch_size).
const DROP_BATCH: usize = 64;

#[derive(Debug)]
struct Flow<P> {
    queue: TimedFifo<P>,
    codel: State,
    deficit: i64,
    listed: bool,
}

/// The queues and their two lists.
#[derive(Debug)]
pub(crate) struct FqCodel<P> {
    flows: Vec<Flow<P>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    params: Params,
    quantum: i64,
    limit_packets: usize,
    memory_limit: u64,
    bytes: u64,
    packets: usize,
}

impl<P: Packet> FqCodel<P> {
    pub(crate) fn new(
        params: Params,
        flows: u32,
        quantum_bytes: u32,
        limit_packets: Option<u32>,
        memory_limit: u64,
    ) -> Self {
        let flow = |_| Flow {
            queue: TimedFifo::default(),
            codel: State::default(),
            deficit: 0,
            listed: false,
        };
        Self {
            flows: (0..flows.max(1)).map(flow).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            params,
            quantum: i64::from(quantum_bytes),
            limit_packets: limit_packets.map_or(usize::MAX, |limit| limit as usize),
            memory_limit,
            bytes: 0,
            packets: 0,
        }
    }

    pub(crate) fn enqueue(&mut self, now_ns: u64, packet: P, mut on_drop: impl FnMut(P)) {
        // A multiplicative hash spreads keys; Linux's jhash is seeded at boot, so which flows
        // collide there is chance.
        let hash = packet.flow_key().wrapping_mul(0x9e37_79b1) >> 8;
        let index = hash % self.flows.len() as u32;
        self.bytes += u64::from(packet.wire_bytes());
        self.packets += 1;
        let flow = &mut self.flows[index as usize];
        flow.queue.push(now_ns, packet);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.quantum;
            self.new.push_back(index);
        }
        if self.packets > self.limit_packets || self.bytes > self.memory_limit {
            self.drop_from_fattest(&mut on_drop);
        }
    }

    /// Up to a batch or half of the fattest queue's bytes, from its head (fq_codel_drop()).
    fn drop_from_fattest(&mut self, on_drop: &mut impl FnMut(P)) {
        let fattest = self.flows.iter_mut().max_by_key(|flow| flow.queue.bytes);
        let Some(flow) = fattest else { return };
        let threshold = flow.queue.bytes / 2;
        let mut dropped = 0;
        for _ in 0..DROP_BATCH {
            let Some((_, packet)) = flow.queue.pop() else {
                break;
            };
            dropped += u64::from(packet.wire_bytes());
            self.bytes -= u64::from(packet.wire_bytes());
            self.packets -= 1;
            on_drop(packet);
            if dropped >= threshold {
                break;
            }
        }
    }

    pub(crate) fn dequeue(
        &mut self,
        now_ns: u64,
        mut on_drop: impl FnMut(P),
        mut on_mark: impl FnMut(),
    ) -> Option<P> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new {
                &mut self.new
            } else {
                &mut self.old
            };
            let index = *list.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let (bytes, packets) = (&mut self.bytes, &mut self.packets);
            let mut drop = |packet: P| {
                *bytes -= u64::from(packet.wire_bytes());
                *packets -= 1;
                on_drop(packet);
            };
            let (queue, state) = (&mut flow.queue, &mut flow.codel);
            let taken = codel::dequeue(queue, state, self.params, now_ns, &mut drop, &mut on_mark);
            let Some(packet) = taken else {
                list.pop_front();
                // A queue that empties while new must wait a turn, or it would never be old.
                if from_new && !self.old.is_empty() {
                    self.old.push_back(index);
                } else {
                    flow.listed = false;
                }
                continue;
            };
            self.bytes -= u64::from(packet.wire_bytes());
            self.packets -= 1;
            flow.deficit -= i64::from(packet.wire_bytes());
            return Some(packet);
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.packets
    }
}
