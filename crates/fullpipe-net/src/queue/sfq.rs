//! Stochastic fairness queueing (McKenney 1990): sch_sfq.c without its RED extension and without
//! perturbation, which only separates flows that share a queue.

use serde::{Deserialize, Serialize};

use super::discipline::{Discipline, Environment, Outcome, Parameters};
use super::slab::{List, Slab};
use crate::packet::Packet;

const NONE: u32 = u32::MAX;

/// Parameters of sch_sfq.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Bytes that a flow may send per round (tc: one full packet).
    pub quantum_bytes: u32,
    /// Flows that may queue at once (tc: 127).
    pub flows: u32,
    /// Hash buckets, a power of two (tc: 1024).
    pub buckets: u32,
    /// Packets that one flow may queue (tc: 127).
    pub depth_packets: u32,
    /// A full flow loses its oldest packet, not its newest.
    pub head_drop: bool,
}

impl Parameters for Params {}

#[derive(Clone, Debug)]
struct Slot {
    list: List,
    packets: usize,
    bucket: u32,
    credit: i64,
    /// The next slot of the round.
    next: u32,
    /// The step at which its length last changed: of equally long slots the one that changed last loses a
    /// packet.
    changed: u64,
}

/// Slots in a ring, each with the packets of one hash bucket.
#[derive(Debug)]
pub(crate) struct Sfq<P> {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The slot of each hash bucket.
    buckets: Vec<u32>,
    /// The last slot of the round; its successor is served next.
    tail: u32,
    slab: Slab<P>,
    quantum: i64,
    depth: usize,
    limit_packets: usize,
    head_drop: bool,
    packets: usize,
    steps: u64,
}

impl<P: Packet> Sfq<P> {
    fn bucket_of(&self, packet: &P) -> u32 {
        let hash = packet.flow_key().wrapping_mul(0x9e37_79b1);
        hash & (self.buckets.len() as u32 - 1)
    }

    fn take(&mut self, slot: u32, from_head: bool) -> Option<P> {
        self.steps += 1;
        let steps = self.steps;
        let slot = &mut self.slots[slot as usize];
        let packet = if from_head {
            self.slab.pop_front(&mut slot.list)
        } else {
            self.slab.pop_back(&mut slot.list)
        }?;
        slot.packets -= 1;
        slot.changed = steps;
        self.packets -= 1;
        Some(packet)
    }

    fn put(&mut self, slot: u32, packet: P) {
        self.steps += 1;
        let steps = self.steps;
        let slot = &mut self.slots[slot as usize];
        self.slab.push_back(&mut slot.list, packet);
        slot.packets += 1;
        slot.changed = steps;
        self.packets += 1;
    }

    /// Appends a slot to the round.
    fn join(&mut self, slot: u32) {
        if self.tail == NONE {
            self.slots[slot as usize].next = slot;
        } else {
            let first = std::mem::replace(&mut self.slots[self.tail as usize].next, slot);
            self.slots[slot as usize].next = first;
        }
        self.tail = slot;
        self.slots[slot as usize].credit = self.quantum;
    }

    /// Removes the slot behind the tail, which is empty, from the round.
    fn leave(&mut self, slot: u32) {
        let next = self.slots[slot as usize].next;
        if next == slot {
            self.tail = NONE;
        } else {
            self.slots[self.tail as usize].next = next;
        }
        self.buckets[self.slots[slot as usize].bucket as usize] = NONE;
        self.free.push(slot);
    }

    /// Drops a packet of the longest slot (sfq_drop()). It has two at least: there are no more slots than
    /// packets in the limit.
    fn drop_from_longest(&mut self, outcome: &mut Outcome<P>) {
        let slots = (0u32..).zip(&self.slots);
        let longest = slots.max_by_key(|(_, slot)| (slot.packets, slot.changed));
        if let Some(packet) = longest
            .map(|(longest, _)| longest)
            .and_then(|longest| self.take(longest, self.head_drop))
        {
            outcome.drop(packet);
        }
    }
}

impl<P: Packet> Discipline<P> for Sfq<P> {
    type Params = Params;

    fn new(params: &Params, environment: &Environment) -> Self {
        let slot = Slot {
            list: List::default(),
            packets: 0,
            bucket: 0,
            credit: 0,
            next: NONE,
            changed: 0,
        };
        let most = u64::from(params.depth_packets) * u64::from(params.flows);
        let limit = environment
            .limit_packets
            .map_or(most, |limit| u64::from(limit).min(most));
        // sfq_change(): no more flows than packets.
        let flows = params
            .flows
            .min(u32::try_from(limit).unwrap_or(params.flows));
        Self {
            slots: vec![slot; flows as usize],
            free: (0..flows).rev().collect(),
            buckets: vec![NONE; params.buckets.next_power_of_two() as usize],
            tail: NONE,
            slab: Slab::default(),
            quantum: i64::from(params.quantum_bytes.max(1)),
            depth: params.depth_packets as usize,
            limit_packets: limit as usize,
            head_drop: params.head_drop,
            packets: 0,
            steps: 0,
        }
    }

    /// sfq_enqueue()
    fn enqueue(&mut self, _now_ns: u64, packet: P, outcome: &mut Outcome<P>) {
        let bucket = self.bucket_of(&packet);
        let mut slot = self.buckets[bucket as usize];
        if slot == NONE {
            let Some(free) = self.free.pop() else {
                outcome.drop(packet);
                return;
            };
            slot = free;
            self.buckets[bucket as usize] = slot;
            self.slots[slot as usize].bucket = bucket;
        } else if self.slots[slot as usize].packets >= self.depth {
            if !self.head_drop {
                outcome.drop(packet);
                return;
            }
            if let Some(head) = self.take(slot, true) {
                outcome.drop(head);
            }
            self.put(slot, packet);
            return;
        }
        self.put(slot, packet);
        if self.slots[slot as usize].packets == 1 {
            self.join(slot);
        }
        if self.packets > self.limit_packets {
            self.drop_from_longest(outcome);
        }
    }

    /// sfq_dequeue()
    fn dequeue(&mut self, _now_ns: u64, _outcome: &mut Outcome<P>) -> Option<P> {
        if self.tail == NONE {
            return None;
        }
        let mut slot = self.slots[self.tail as usize].next;
        while self.slots[slot as usize].credit <= 0 {
            self.slots[slot as usize].credit += self.quantum;
            self.tail = slot;
            slot = self.slots[slot as usize].next;
        }
        let packet = self.take(slot, true)?;
        let state = &mut self.slots[slot as usize];
        if state.packets == 0 {
            self.leave(slot);
        } else {
            state.credit -= i64::from(packet.wire_bytes());
        }
        Some(packet)
    }
}

#[cfg(test)]
pub(super) mod tests;
