//! Fair queueing with CoDel in each queue: RFC 8290 as in sch_fq_codel.c.
//!
//! Linux hashes addresses and ports with a key drawn at boot, so that connections share queues at random.
//! Here the hash is fixed and sends neighbouring keys to different queues, so that connections share one only
//! if there are more connections than queues.

use serde::{Deserialize, Serialize};

use super::codel::{self, Law, Source, State};
use super::discipline::{Discipline, Environment, Outcome, Parameters};
use super::drr::Drr;
use super::slab::{List, Slab};
use crate::kernel::Kernel;
use crate::packet::Packet;

/// Most packets dropped at once from the largest queue when a limit is exceeded (drop_batch_size).
const DROP_BATCH: u32 = 64;
/// Least quantum (fq_codel_change()).
const MIN_QUANTUM_BYTES: u32 = 256;

/// Parameters of sch_fq_codel.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Acceptable standing delay (tc: 5 ms).
    pub target_ns: u64,
    /// How long the delay must exceed the target before packets are dropped (tc: 100 ms).
    pub interval_ns: u64,
    /// Bytes that a flow may send per round (tc: one full packet).
    pub quantum_bytes: u32,
    /// Number of queues (tc: 1024).
    pub flows: u32,
    /// Bytes that all queues may hold (tc: 32 MiB).
    pub memory_limit_bytes: u64,
    /// Marks packets that can carry a mark instead of dropping them.
    pub ecn: bool,
    /// Packets that waited longer are marked if they can carry a mark, whatever `ecn` says (tc:
    /// none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ce_threshold_ns: Option<u64>,
    /// Whose rules it has; `None`: the newest kernel's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Kernel>,
}

impl Parameters for Params {
    fn kernel(&self) -> Option<Kernel> {
        self.kernel
    }
}

#[derive(Clone, Debug)]
struct Flow {
    list: List,
    codel: State,
    deficit: i64,
    /// Whether it is in one of the lists.
    listed: bool,
}

/// The packets of all queues and their sums.
#[derive(Debug)]
struct Held<P> {
    slab: Slab<(u32, P)>,
    /// Bytes of each queue, not in `Flow` so that the search for the largest stays in cache.
    flow_bytes: Vec<u64>,
    bytes: u64,
    packets: usize,
    memory_bytes: u64,
}

/// The queues and their two lists.
#[derive(Debug)]
pub(crate) struct FqCodel<P> {
    flows: Vec<Flow>,
    held: Held<P>,
    drr: Drr,
    law: Law,
    limit_packets: usize,
    memory_limit: u64,
    /// The queue of the packet that leaves next.
    chosen: usize,
}

impl<P: Packet> FqCodel<P> {
    /// reciprocal_scale() of a multiplicative hash.
    fn classify(&self, packet: &P) -> u32 {
        let hash = packet.flow_key().wrapping_mul(0x9e37_79b1);
        ((u64::from(hash) * self.flows.len() as u64) >> 32) as u32
    }

    /// Drops half of the bytes of the largest queue, at most a batch, from its head (fq_codel_drop()).
    fn drop_from_fattest(&mut self, outcome: &mut Outcome<P>) {
        let (mut fattest, mut most) = (0, 0);
        for (index, &bytes) in self.held.flow_bytes.iter().enumerate() {
            if bytes > most {
                (fattest, most) = (index, bytes);
            }
        }
        let flow = &mut self.flows[fattest];
        let mut dropped = 0;
        while dropped < DROP_BATCH {
            if !self.held.drop_head(&mut flow.list, fattest, outcome) {
                break;
            }
            dropped += 1;
            if most - self.held.flow_bytes[fattest] >= most / 2 {
                break;
            }
        }
        // CoDel then drops more often from the queue that caused it.
        flow.codel.count = flow.codel.count.wrapping_add(dropped);
    }
}

impl<P: Packet> Discipline<P> for FqCodel<P> {
    type Params = Params;

    fn new(params: &Params, environment: &Environment) -> Self {
        let flows = params.flows.max(1) as usize;
        let of_one_queue = codel::Params {
            target_ns: params.target_ns,
            interval_ns: params.interval_ns,
            ecn: params.ecn,
            ce_threshold_ns: params.ce_threshold_ns,
            kernel: params.kernel,
        };
        let empty = Flow {
            list: List::default(),
            codel: State::default(),
            deficit: 0,
            listed: false,
        };
        Self {
            flows: vec![empty; flows],
            held: Held {
                slab: Slab::default(),
                flow_bytes: vec![0; flows],
                bytes: 0,
                packets: 0,
                memory_bytes: 0,
            },
            law: Law::new(&of_one_queue, environment.frame_bytes),
            drr: Drr::new(params.quantum_bytes.max(MIN_QUANTUM_BYTES)),
            limit_packets: environment.most_packets(),
            memory_limit: params.memory_limit_bytes,
            chosen: 0,
        }
    }

    fn enqueue(&mut self, now_ns: u64, packet: P, outcome: &mut Outcome<P>) {
        let index = self.classify(&packet);
        let flow = &mut self.flows[index as usize];
        let bytes = u64::from(packet.wire_bytes());
        let item = (codel::time(now_ns), packet);
        self.held.slab.push_back(&mut flow.list, item);
        self.held.flow_bytes[index as usize] += bytes;
        self.held.bytes += bytes;
        self.held.packets += 1;
        self.held.memory_bytes += u64::from(packet.memory_bytes());
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.drr.quantum();
            self.drr.join(index);
        }
        if self.held.packets > self.limit_packets || self.held.memory_bytes > self.memory_limit {
            self.drop_from_fattest(outcome);
        }
    }

    #[inline]
    fn choose(&mut self, now_ns: u64, _taken: &mut Option<P>, outcome: &mut Outcome<P>) -> bool {
        loop {
            let Some(turn) = self.drr.next(&mut self.flows, |flow| &mut flow.deficit) else {
                return false;
            };
            self.chosen = turn.flow as usize;
            let flow = &mut self.flows[self.chosen];
            let mut queue = OneQueue {
                held: &mut self.held,
                list: &mut flow.list,
                index: turn.flow as usize,
            };
            if flow.codel.choose(&mut queue, &self.law, now_ns, outcome) {
                return true;
            }
            if self.drr.retire(&turn) {
                flow.listed = false;
            }
        }
    }

    #[inline]
    fn front<'a>(&'a self, _taken: &'a Option<P>) -> Option<(&'a P, bool)> {
        let (_, packet) = self.held.slab.front(&self.flows[self.chosen].list)?;
        Some((packet, false))
    }

    #[inline]
    fn leave(&mut self, _taken: &mut Option<P>) -> u32 {
        let flow = &mut self.flows[self.chosen];
        let Some(wire_bytes) = self.held.remove(&mut flow.list, self.chosen) else {
            return 0;
        };
        flow.deficit -= i64::from(wire_bytes);
        wire_bytes
    }
}

impl<P: Packet> Held<P> {
    /// Removes the head of a queue and returns its bytes on the wire.
    #[inline]
    fn remove(&mut self, list: &mut List, index: usize) -> Option<u32> {
        let (_, packet) = self.slab.front(list)?;
        let (wire_bytes, memory_bytes) = (packet.wire_bytes(), packet.memory_bytes());
        self.slab.drop_front(list);
        let bytes = u64::from(wire_bytes);
        self.flow_bytes[index] -= bytes;
        self.bytes -= bytes;
        self.packets -= 1;
        self.memory_bytes -= u64::from(memory_bytes);
        Some(wire_bytes)
    }

    /// Drops the head of a queue. False: it is empty.
    fn drop_head(&mut self, list: &mut List, index: usize, outcome: &mut Outcome<P>) -> bool {
        let Some(&(_, packet)) = self.slab.front(list) else {
            return false;
        };
        self.remove(list, index);
        outcome.drop(packet);
        true
    }
}

/// One queue, for CoDel.
struct OneQueue<'a, P> {
    held: &'a mut Held<P>,
    list: &'a mut List,
    index: usize,
}

impl<P: Packet> Source<P> for OneQueue<'_, P> {
    fn head(&self) -> Option<(u32, &P)> {
        let (arrived, packet) = self.held.slab.front(self.list)?;
        Some((*arrived, packet))
    }

    fn head_mut(&mut self) -> Option<&mut P> {
        let head = self.held.slab.front_mut(self.list)?;
        Some(&mut head.1)
    }

    fn drop_head(&mut self, outcome: &mut Outcome<P>) {
        self.held.drop_head(self.list, self.index, outcome);
    }

    fn backlog_bytes(&self) -> u64 {
        self.held.bytes
    }
}

#[cfg(test)]
pub(super) mod tests;
