//! Per-flow fair queueing and pacing: sch_fq.c.
//!
//! Deficit round robin over flows, each with a FIFO ordered by earliest departure time. At a sender, TCP
//! stamps departure times. On a router packets have none (they are cleared when a packet changes its
//! network namespace), so flows are only served in turn. Since Linux 6.7 the flows are in three bands,
//! which are served in turn, too.
//!
//! Not modelled: the timer's slack, and the garbage collection of flows that were idle for seconds (a flow
//! that returns keeps its credit instead of getting the initial one).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use serde::{Deserialize, Serialize};

use super::discipline::{Discipline, Environment, Outcome, Parameters};
use super::drr::{Drr, Turn};
use super::rules::Rules;
use super::slab::{List, Slab};
use crate::kernel::Kernel;
use crate::packet::Packet;

/// A packet stamped farther ahead than this is dropped (q->horizon).
const HORIZON_NS: u64 = 10_000_000_000;
/// A flow that was empty for longer gets a full quantum again (q->flow_refill_delay).
const REFILL_DELAY_NS: u64 = 40_000_000;
/// Most packets in the fast path (fq_fastpath_check()).
const FAST_PATH_PACKETS: usize = 8;
/// Credit of a flow that appears, in full packets (q->initial_quantum).
const INITIAL_PACKETS: i64 = 10;
/// Bytes of each band per round (fq_init(), `band_flows[i].quantum`).
const BAND_QUANTA_BYTES: [i64; 3] = [9 << 16, 3 << 16, 1 << 16];
/// Before there were bands: one whose credit is never used up.
const NO_BANDS: [i64; 1] = [i64::MAX >> 1];
/// The band of each priority (sch_default_prio2band) that the TOS bits 0x1e give a packet that is forwarded
/// (ip_forward(), rt_tos2priority()): best effort, bulk, interactive, interactive bulk.
const BAND_OF_TOS: [u8; 4] = [1, 2, 0, 1];

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
    /// Whose rules it has; `None`: the newest kernel's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Kernel>,
}

impl Parameters for Params {
    fn kernel(&self) -> Option<Kernel> {
        self.kernel
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiting<P> {
    send_at_ns: u64,
    band: u8,
    packet: P,
}

#[derive(Debug)]
struct Flow {
    list: List,
    packets: usize,
    credit: i64,
    /// No packet leaves before this time.
    next_ns: u64,
    /// The band of its latest packet, in whose lists it goes when it is moved.
    band: u8,
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

/// Flows that are served while the band has credit (struct fq_perband_flows).
#[derive(Debug)]
struct Band {
    drr: Drr,
    credit: i64,
    quantum: i64,
    /// Packets of this band, whichever band's lists their flows are in.
    packets: usize,
}

/// The bands and the one that is served (q->band_nr).
#[derive(Debug)]
struct Bands {
    bands: Vec<Band>,
    served: usize,
}

impl Bands {
    fn new(quanta_bytes: &[i64], flow_quantum_bytes: u32) -> Self {
        let band = |&quantum| Band {
            drr: Drr::new(flow_quantum_bytes),
            credit: 0,
            quantum,
            packets: 0,
        };
        Self {
            bands: quanta_bytes.iter().map(band).collect(),
            served: 0,
        }
    }

    /// The flow that is next, of the served band while that has credit and flows, else of the next one
    /// that has (fq_dequeue(), fq_pband_head_select()).
    fn next_turn(&mut self) -> Option<Turn> {
        let mut empty_bands = 0;
        loop {
            let band = &self.bands[self.served];
            if band.credit > 0 {
                if let Some(turn) = band.drr.first() {
                    return Some(turn);
                }
            }
            loop {
                empty_bands += 1;
                if empty_bands > self.bands.len() {
                    return None;
                }
                self.served = (self.served + 1) % self.bands.len();
                let band = &mut self.bands[self.served];
                band.credit = (band.credit + band.quantum).min(band.quantum);
                if band.credit > 0 {
                    break;
                }
                empty_bands = 0;
            }
        }
    }

    /// Removes the flow from the list of the served band that it was next in.
    fn leave(&mut self, turn: &Turn) {
        self.bands[self.served].drr.leave(turn);
    }

    /// A packet left from the served band.
    fn charge(&mut self, bytes: i64) {
        self.bands[self.served].credit -= bytes;
    }

    fn of(&mut self, band: u8) -> &mut Band {
        &mut self.bands[usize::from(band)]
    }
}

/// The flows and their lists.
#[derive(Debug)]
pub(crate) struct Fq<P> {
    flows: Vec<Flow>,
    index_of: HashMap<u32, u32, BuildHasherDefault<KeyHasher>>,
    slab: Slab<Waiting<P>>,
    bands: Bands,
    quantum: i64,
    has_fast_path: bool,
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
        self.has_fast_path
            && send_at_ns <= now_ns
            && self.ready_flows == 0
            && self.fast_path.len() < FAST_PATH_PACKETS
            && next_throttled.is_none_or(|&Reverse((at_ns, ..))| at_ns > now_ns)
    }

    fn band_of(&self, packet: &P) -> u8 {
        match self.bands.bands.len() {
            1 => 0,
            // The TOS bits 0x18 are the codepoint's 0x06: the lowest one is not looked at.
            _ => BAND_OF_TOS[usize::from(packet.dscp() >> 1 & 3)],
        }
    }

    fn flow_of(&mut self, packet: &P, now_ns: u64) -> u32 {
        let (flows, initial_credit) = (&mut self.flows, self.initial_credit);
        *self.index_of.entry(packet.flow_key()).or_insert_with(|| {
            flows.push(Flow {
                list: List::default(),
                packets: 0,
                credit: initial_credit,
                next_ns: 0,
                band: 0,
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
            let flow = &mut self.flows[index as usize];
            flow.place = Place::Listed;
            self.ready_flows += 1;
            self.bands.of(flow.band).drr.rejoin(index);
        }
    }
}

impl<P: Packet> Discipline<P> for Fq<P> {
    type Params = Params;

    fn new(params: &Params, environment: &Environment) -> Self {
        let rules = Rules::of(params.kernel);
        let bands: &[i64] = match rules.fq_has_bands() {
            true => &BAND_QUANTA_BYTES,
            false => &NO_BANDS,
        };
        let quantum_bytes = params.quantum_bytes.max(1);
        Self {
            flows: Vec::new(),
            index_of: HashMap::default(),
            slab: Slab::default(),
            throttled: BinaryHeap::new(),
            throttle_count: 0,
            fast_path: VecDeque::new(),
            ready_flows: 0,
            bands: Bands::new(bands, quantum_bytes),
            quantum: i64::from(quantum_bytes),
            has_fast_path: rules.fq_has_fast_path(),
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
        let band = self.band_of(&packet);
        if self.bands.of(band).packets >= self.limit_packets || send_at_ns > now_ns + HORIZON_NS {
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
                // Before the flow's band is set: one that appears joins band 0.
                self.bands.of(flow.band).drr.join(index);
                if now_ns > since_ns + REFILL_DELAY_NS {
                    flow.credit = flow.credit.max(self.quantum);
                }
            }
            flow.band = band;
            self.bands.of(band).packets += 1;
            self.ready_flows += usize::from(flow.packets == 0);
            flow.packets += 1;
            let waiting = Waiting {
                send_at_ns,
                band,
                packet,
            };
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
            let turn = self.bands.next_turn()?;
            let index = turn.flow;
            let flow = &mut self.flows[index as usize];
            if flow.credit <= 0 {
                flow.credit += self.quantum;
                self.bands.leave(&turn);
                self.bands.of(flow.band).drr.rejoin(index);
                continue;
            }
            let Some(head) = self.slab.front(&flow.list) else {
                self.bands.leave(&turn);
                // A new flow becomes an old one first: else it could starve the old ones. Before there were
                // bands fq looked whether there are any.
                let has_bands = self.bands.bands.len() > 1;
                let drr = &mut self.bands.of(flow.band).drr;
                if turn.is_new && (has_bands || drr.has_old()) {
                    drr.rejoin(index);
                } else {
                    flow.place = Place::Detached { since_ns: now_ns };
                }
                continue;
            };
            let next_ns = head.send_at_ns.max(flow.next_ns);
            if next_ns > now_ns {
                self.bands.leave(&turn);
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
            let bytes = i64::from(waiting.packet.wire_bytes());
            flow.credit -= bytes;
            self.bands.charge(bytes);
            self.bands.of(waiting.band).packets -= 1;
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
