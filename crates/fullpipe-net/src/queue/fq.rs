//! Per-flow fair queueing and pacing: sch_fq.c as of Linux 6.12.
//!
//! Deficit round robin over flows, each with a FIFO ordered by earliest departure time. At a sender, TCP
//! stamps departure times. On a router packets have none (they are cleared when a packet changes its
//! network namespace), so flows are only served in turn.
//!
//! Not modelled: the three priority bands (all traffic here has one priority), the timer's slack, and the
//! garbage collection of flows that were idle for seconds (a flow that returns keeps its credit instead of
//! getting the initial one).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use serde::{Deserialize, Serialize};

use super::discipline::{Discipline, Environment, Outcome, Parameters};
use super::drr::Drr;
use super::slab::{List, Slab};
use crate::packet::Packet;

/// A packet stamped farther ahead than this is dropped (q->horizon).
const HORIZON_NS: u64 = 10_000_000_000;
/// A flow that was empty for longer gets a full quantum again (q->flow_refill_delay).
const REFILL_DELAY_NS: u64 = 40_000_000;
/// Most packets in the fast path (fq_fastpath_check()).
const FAST_PATH_PACKETS: usize = 8;
/// Credit of a flow that appears, in full packets (q->initial_quantum).
const INITIAL_PACKETS: i64 = 10;

/// Parameters of sch_fq.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Bytes that a flow may send per round (tc: two full packets).
    pub quantum_bytes: u32,
    /// Packets that one flow may queue (tc: 100).
    pub flow_limit_packets: u32,
    /// Packets that leave later than this after they might have left are marked (tc: never).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ce_threshold_ns: Option<u64>,
}

impl Parameters for Params {}

#[derive(Clone, Copy, Debug)]
struct Waiting<P> {
    send_at_ns: u64,
    packet: P,
}

#[derive(Debug)]
struct Flow {
    list: List,
    packets: usize,
    credit: i64,
    /// No packet leaves before this time.
    next_ns: u64,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In no list, since it was found empty.
    Detached { since_ns: u64 },
    /// In the list of new or of old flows.
    Listed,
    /// Waits for the departure time of its next packet.
    Throttled,
}

/// The flows and their lists.
#[derive(Debug)]
pub(crate) struct Fq<P> {
    flows: Vec<Flow>,
    index_of: HashMap<u32, u32, BuildHasherDefault<KeyHasher>>,
    slab: Slab<Waiting<P>>,
    drr: Drr,
    /// (time, order of throttling, flow): flows with equal times keep this order.
    throttled: BinaryHeap<Reverse<(u64, u64, u32)>>,
    throttle_count: u64,
    /// Packets that bypass the flows while no flow is ready.
    fast_path: VecDeque<P>,
    /// Flows that hold packets and are not throttled.
    ready_flows: usize,
    initial_credit: i64,
    flow_limit: usize,
    limit_packets: usize,
    ce_threshold_ns: u64,
    packets: usize,
}

impl<P: Packet> Fq<P> {
    /// A packet that may go at once bypasses the flows while none of them is ready
    /// (fq_fastpath_check()).
    fn takes_fast_path(&self, now_ns: u64, send_at_ns: u64) -> bool {
        let next_throttled = self.throttled.peek();
        send_at_ns <= now_ns
            && self.ready_flows == 0
            && self.fast_path.len() < FAST_PATH_PACKETS
            && next_throttled.is_none_or(|&Reverse((at_ns, ..))| at_ns > now_ns)
    }

    fn flow_of(&mut self, packet: &P, now_ns: u64) -> u32 {
        let (flows, initial_credit) = (&mut self.flows, self.initial_credit);
        *self.index_of.entry(packet.flow_key()).or_insert_with(|| {
            flows.push(Flow {
                list: List::default(),
                packets: 0,
                credit: initial_credit,
                next_ns: 0,
                place: Place::Detached { since_ns: now_ns },
            });
            (flows.len() - 1) as u32
        })
    }

    /// Moves flows whose time has come to the old ones (fq_check_throttled()).
    fn release_throttled(&mut self, now_ns: u64) {
        while let Some(&Reverse((at_ns, _, index))) = self.throttled.peek() {
            if at_ns > now_ns {
                break;
            }
            self.throttled.pop();
            self.flows[index as usize].place = Place::Listed;
            self.ready_flows += 1;
            self.drr.rejoin(index);
        }
    }
}

impl<P: Packet> Discipline<P> for Fq<P> {
    type Params = Params;

    fn new(params: &Params, environment: &Environment) -> Self {
        Self {
            flows: Vec::new(),
            index_of: HashMap::default(),
            slab: Slab::default(),
            throttled: BinaryHeap::new(),
            throttle_count: 0,
            fast_path: VecDeque::new(),
            ready_flows: 0,
            drr: Drr::new(params.quantum_bytes.max(1)),
            initial_credit: INITIAL_PACKETS * i64::from(environment.frame_bytes),
            flow_limit: params.flow_limit_packets as usize,
            limit_packets: environment.most_packets(),
            ce_threshold_ns: params.ce_threshold_ns.unwrap_or(u64::MAX),
            packets: 0,
        }
    }

    /// fq_enqueue()
    fn enqueue(&mut self, now_ns: u64, packet: P, outcome: &mut Outcome<P>) {
        let stamp_ns = packet.pacing_time_ns();
        let send_at_ns = if stamp_ns == 0 { now_ns } else { stamp_ns };
        let in_flows = self.packets - self.fast_path.len();
        if in_flows >= self.limit_packets || send_at_ns > now_ns + HORIZON_NS {
            outcome.drop(packet);
            return;
        }
        if self.takes_fast_path(now_ns, send_at_ns) {
            self.fast_path.push_back(packet);
        } else {
            let index = self.flow_of(&packet, now_ns);
            let flow = &mut self.flows[index as usize];
            if flow.packets >= self.flow_limit {
                outcome.drop(packet);
                return;
            }
            if let Place::Detached { since_ns } = flow.place {
                flow.place = Place::Listed;
                self.drr.join(index);
                if now_ns > since_ns + REFILL_DELAY_NS {
                    flow.credit = flow.credit.max(self.drr.quantum());
                }
            }
            self.ready_flows += usize::from(flow.packets == 0);
            flow.packets += 1;
            let waiting = Waiting { send_at_ns, packet };
            self.slab
                .insert_by_key(&mut flow.list, waiting, |waiting| waiting.send_at_ns);
        }
        self.packets += 1;
    }

    /// fq_dequeue()
    fn dequeue(&mut self, now_ns: u64, outcome: &mut Outcome<P>) -> Option<P> {
        if let Some(packet) = self.fast_path.pop_front() {
            self.packets -= 1;
            return Some(packet);
        }
        self.release_throttled(now_ns);
        loop {
            let turn = self.drr.next(&mut self.flows, |flow| &mut flow.credit)?;
            let index = turn.flow;
            let flow = &mut self.flows[index as usize];
            let Some(head) = self.slab.front(&flow.list) else {
                self.drr.leave(&turn);
                // A new flow becomes an old one first: else it could starve the old ones.
                if turn.is_new {
                    self.drr.rejoin(index);
                } else {
                    flow.place = Place::Detached { since_ns: now_ns };
                }
                continue;
            };
            let next_ns = head.send_at_ns.max(flow.next_ns);
            if next_ns > now_ns {
                self.drr.leave(&turn);
                flow.next_ns = next_ns;
                flow.place = Place::Throttled;
                self.ready_flows -= 1;
                self.throttle_count += 1;
                let order = self.throttle_count;
                self.throttled.push(Reverse((next_ns, order, index)));
                continue;
            }
            let mut waiting = self.slab.pop_front(&mut flow.list)?;
            if now_ns - next_ns > self.ce_threshold_ns && waiting.packet.ecn_capable() {
                outcome.mark(&mut waiting.packet);
            }
            flow.packets -= 1;
            self.ready_flows -= usize::from(flow.packets == 0);
            flow.credit -= i64::from(waiting.packet.wire_bytes());
            self.packets -= 1;
            return Some(waiting.packet);
        }
    }

    fn next_ready_ns(&self, now_ns: u64) -> Option<u64> {
        if self.ready_flows > 0 || !self.fast_path.is_empty() {
            return Some(now_ns);
        }
        let &Reverse((at_ns, ..)) = self.throttled.peek()?;
        Some(at_ns.max(now_ns))
    }
}

/// One multiplication spreads the keys, which are small numbers. Unlike std's default it is the same in every
/// run.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte));
        }
    }

    fn write_u32(&mut self, key: u32) {
        self.0 = (self.0 ^ u64::from(key)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
pub(super) mod tests;
