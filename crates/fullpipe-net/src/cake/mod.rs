//! Common Applications Kept Enhanced: sch_cake.c as of Linux 6.18, by Morton, Høiland-Jørgensen and
//! Täht (LANMAN 2018). A shaper without bursts, tins by DSCP, fair queues by flow and host in each,
//! COBALT in each queue.
//!
//! Left out: NAT look-ups, firewall marks and tc filters, for which simulated packets have nothing
//! to look up; splitting of GSO packets, because packets here are never joined.

mod ack_filter;
mod autorate;
mod cobalt;
mod flows;
mod framing;
mod hash;
mod tins;

use fullpipe_scenario::{Aqm, CakeAckFilter, CakeTins};

use self::autorate::Autorate;
use self::cobalt::{Cobalt, Params};
use self::flows::{Chain, Flows, State};
use self::framing::{Overhead, Pace};
use self::hash::{FlowTable, Isolation, Use, QUEUES};
use crate::discipline::{Discipline, Outcome};
use crate::rng::Rng;
use crate::store::{List, Store};
use crate::Packet;

/// Packets of full size that memory holds at most (cake_init(): sch->limit).
const MOST_FRAMES: u64 = 10_240;
const LEAST_BUFFER_BYTES: u64 = 4 << 20;
/// Bounds of a flow's quantum, which grows with the rate.
const QUANTUM_BYTES: std::ops::RangeInclusive<u64> = 300..=1514;

#[derive(Clone, Copy, Debug)]
struct Waiting<P> {
    packet: P,
    arrived_ns: u64,
    /// Bytes on the link, overhead included.
    link_bytes: u32,
}

/// One class of traffic.
#[derive(Debug)]
struct Tin {
    flows: Flows,
    table: FlowTable,
    /// Bytes of each queue, apart from the flows so that the search for the longest is quick.
    backlogs: Vec<u64>,
    backlog: u64,
    params: Params,
    pace: Pace,
    /// When the tin has used its share of the rate up to now.
    next_ns: u64,
    flow_quantum: u32,
    quantum: u32,
    deficit: i64,
    sparse_flows: u32,
    bulk_flows: u32,
}

/// What does not change.
#[derive(Debug)]
struct Options {
    tins: CakeTins,
    tin_of: [u8; 64],
    ack_filter: CakeAckFilter,
    overhead: Overhead,
    rtt_ns: u64,
    target_ns: u64,
    memory_limit: Option<u64>,
    frame_bytes: u32,
    shapes: bool,
    ingress: bool,
    wash: bool,
}

/// The whole of it.
#[derive(Debug)]
pub(crate) struct Cake<P> {
    options: Options,
    tins: Vec<Tin>,
    store: Store<Waiting<P>>,
    autorate: Option<Autorate>,
    pace: Pace,
    next_ns: u64,
    /// A second clock, slower by a half, that drops do not advance: what ingress mode drops must not
    /// keep the link idle for longer.
    failsafe_ns: u64,
    current_tin: usize,
    packets: usize,
    bytes: u64,
    memory: u64,
    memory_limit: u64,
    rng: Rng,
}

impl<P: Packet> Cake<P> {
    /// From `Aqm::Cake`; `rate_bps` is its bandwidth where it shapes.
    pub(crate) fn new(
        aqm: &Aqm,
        memory_limit: Option<u64>,
        rate_bps: u64,
        frame_bytes: u32,
        seed: u64,
    ) -> Self {
        let Aqm::Cake {
            rtt_ns,
            target_ns,
            shapes,
            tins,
            isolation,
            ack_filter,
            overhead_bytes,
            mpu_bytes,
            framing,
            ingress,
            autorate_ingress,
            wash,
            split_gso: _,
        } = *aqm
        else {
            unreachable!("called for CAKE only")
        };
        let isolation = Isolation::new(isolation);
        let mut cake = Self {
            options: Options {
                tins,
                tin_of: tins::by_dscp(tins),
                ack_filter,
                overhead: Overhead {
                    bytes: overhead_bytes,
                    mpu_bytes,
                    framing,
                },
                rtt_ns,
                target_ns,
                memory_limit,
                frame_bytes,
                shapes,
                ingress,
                wash,
            },
            tins: (0..tins::count(tins))
                .map(|_| Tin::new(isolation))
                .collect(),
            store: Store::default(),
            autorate: autorate_ingress.then(Autorate::default),
            pace: Pace::default(),
            next_ns: 0,
            failsafe_ns: 0,
            current_tin: 0,
            packets: 0,
            bytes: 0,
            memory: 0,
            memory_limit: 0,
            rng: Rng::new(seed),
        };
        cake.configure(if shapes { rate_bps / 8 } else { 0 });
        cake
    }

    /// Derives everything from a bandwidth; 0: not shaped (cake_reconfigure(), cake_set_rate()).
    fn configure(&mut self, bytes_per_s: u64) {
        let options = &self.options;
        let shares = tins::shares(options.tins, bytes_per_s);
        for (tin, share) in self.tins.iter_mut().zip(shares) {
            let is_shaped = share.bytes_per_s > 0;
            let quantum =
                (share.bytes_per_s >> 12).clamp(*QUANTUM_BYTES.start(), *QUANTUM_BYTES.end());
            tin.flow_quantum = if is_shaped { quantum as u32 } else { 1514 };
            tin.quantum = share.quantum.max(1);
            tin.pace = if is_shaped {
                Pace::new(share.bytes_per_s)
            } else {
                Pace::default()
            };
            let mtu_ns = tin.pace.duration_ns(options.frame_bytes);
            let target_ns = options.target_ns.max(mtu_ns * 3 / 2);
            tin.params = Params {
                target_ns,
                interval_ns: (options.rtt_ns + target_ns - options.target_ns).max(2 * target_ns),
                mtu_ns,
            };
        }
        self.pace = self.tins[0].pace;
        let most = MOST_FRAMES * u64::from(options.frame_bytes);
        let usual = if bytes_per_s > 0 {
            let four_rtts =
                u128::from(bytes_per_s) * u128::from(options.rtt_ns) * 4 / 1_000_000_000;
            u64::try_from(four_rtts)
                .unwrap_or(most)
                .max(LEAST_BUFFER_BYTES)
        } else {
            most
        };
        self.memory_limit = match options.memory_limit {
            Some(limit) => limit,
            None => usual.min(most),
        };
    }

    /// Puts the packet behind its flow's others; an ACK that it makes superfluous goes.
    fn append(&mut self, tin: usize, queue: usize, waiting: Waiting<P>, outcome: &mut Outcome<P>) {
        let list = &mut self.tins[tin].flows.at(queue).list;
        self.store.push_back(list, waiting);
        self.count(tin, queue, &waiting.packet, true);
        if self.options.ack_filter == CakeAckFilter::No {
            return;
        }
        let list = &mut self.tins[tin].flows.at(queue).list;
        let aggressive = self.options.ack_filter == CakeAckFilter::Aggressive;
        let Some(newest_place) = self.store.last_place(list) else {
            return;
        };
        let others = self
            .store
            .iter(list)
            .map(|(place, held)| (place, &held.packet));
        let newest = (newest_place, &waiting.packet);
        let Some(before) = ack_filter::superfluous(others, newest, aggressive) else {
            return;
        };
        if let Some(ack) = self.store.remove_behind(list, before) {
            self.count(tin, queue, &ack.packet, false);
            if self.options.ingress {
                self.charge(tin, ack.link_bytes, waiting.arrived_ns, true);
            }
            outcome.drop(ack.packet);
        }
    }

    /// Keeps the sums.
    fn count(&mut self, tin: usize, queue: usize, packet: &P, comes: bool) {
        let bytes = u64::from(packet.wire_bytes());
        let memory = u64::from(packet.memory_bytes());
        let tin = &mut self.tins[tin];
        if comes {
            tin.backlogs[queue] += bytes;
            tin.backlog += bytes;
            self.bytes += bytes;
            self.memory += memory;
            self.packets += 1;
        } else {
            tin.backlogs[queue] -= bytes;
            tin.backlog -= bytes;
            self.bytes -= bytes;
            self.memory -= memory;
            self.packets -= 1;
        }
    }

    fn take(&mut self, tin: usize, queue: usize) -> Option<Waiting<P>> {
        let list = &mut self.tins[tin].flows.at(queue).list;
        let waiting = self.store.pop_front(list)?;
        self.count(tin, queue, &waiting.packet, false);
        Some(waiting)
    }

    /// A head of the longest queue goes (cake_drop()).
    fn drop_from_longest(&mut self, now_ns: u64, outcome: &mut Outcome<P>) {
        let (mut longest, mut most) = ((0, 0), 0);
        for (tin, data) in self.tins.iter().enumerate() {
            for (queue, &bytes) in data.backlogs.iter().enumerate() {
                if bytes > most {
                    (longest, most) = ((tin, queue), bytes);
                }
            }
        }
        let (tin, queue) = longest;
        let Some(waiting) = self.take(tin, queue) else {
            return;
        };
        let params = self.tins[tin].params;
        self.tins[tin]
            .flows
            .at(queue)
            .cobalt
            .on_full(&params, now_ns);
        if self.options.ingress {
            self.charge(tin, waiting.link_bytes, now_ns, true);
        }
        outcome.drop(waiting.packet);
    }

    /// Advances the clocks of the tin and of the whole (cake_advance_shaper()).
    fn charge(&mut self, tin: usize, link_bytes: u32, now_ns: u64, is_drop: bool) {
        if !self.options.shapes {
            return;
        }
        let tin = &mut self.tins[tin];
        let own_ns = tin.pace.duration_ns(link_bytes);
        if tin.next_ns < now_ns {
            tin.next_ns += own_ns;
        } else {
            tin.next_ns = tin.next_ns.max(now_ns + own_ns);
        }
        let whole_ns = self.pace.duration_ns(link_bytes);
        self.next_ns += whole_ns;
        if !is_drop {
            self.failsafe_ns += whole_ns + whole_ns / 2;
        }
    }

    fn ready_ns(&self) -> u64 {
        self.next_ns.min(self.failsafe_ns)
    }

    /// The tin to serve: by its schedule where CAKE shapes, else by deficit round robin.
    fn choose_tin(&mut self, now_ns: u64) -> Option<usize> {
        if !self.options.shapes {
            return self.next_tin_by_deficit();
        }
        // Of those that keep their schedule the last, which has the highest priority; else the one
        // that is due first.
        let mut best: Option<(usize, u64)> = None;
        for (index, tin) in self.tins.iter().enumerate() {
            let wait_ns = tin.next_ns.saturating_sub(now_ns);
            let is_better = best.is_none_or(|(_, best_ns)| wait_ns == 0 || wait_ns <= best_ns);
            if tin.is_active() && is_better {
                best = Some((index, wait_ns));
            }
        }
        best.map(|(index, _)| index)
    }

    fn next_tin_by_deficit(&mut self) -> Option<usize> {
        let (mut has_wrapped, mut is_empty) = (false, true);
        loop {
            let tin = &mut self.tins[self.current_tin];
            if tin.deficit >= 0 && tin.is_active() {
                return Some(self.current_tin);
            }
            if tin.deficit <= 0 {
                tin.deficit += i64::from(tin.quantum);
            }
            is_empty &= !tin.is_active();
            self.current_tin += 1;
            if self.current_tin == self.tins.len() {
                self.current_tin = 0;
                if has_wrapped && is_empty {
                    return None;
                }
                has_wrapped = true;
            }
        }
    }

    /// Takes a packet from one queue by way of COBALT. `Err(true)`: the queue was empty;
    /// `Err(false)`: what it dropped was charged, so another queue may have the turn.
    fn serve(
        &mut self,
        tin: usize,
        queue: usize,
        now_ns: u64,
        outcome: &mut Outcome<P>,
    ) -> Result<P, bool> {
        let ingress = self.options.ingress;
        loop {
            let Some(mut waiting) = self.take(tin, queue) else {
                return Err(true);
            };
            let data = &mut self.tins[tin];
            let busy = if ingress { data.bulk_flows } else { 0 };
            let flow = data.flows.at(queue);
            let signal = flow.cobalt.judge(
                &data.params,
                now_ns,
                now_ns - waiting.arrived_ns,
                waiting.packet.ecn_capable(),
                busy,
                &mut self.rng,
            );
            // The last packet of a queue may be marked but never goes.
            let is_last = self.store.front(&flow.list).is_none();
            if !signal.drop || is_last {
                if signal.mark {
                    outcome.mark(&mut waiting.packet);
                }
                self.pay(tin, queue, waiting.link_bytes);
                self.charge(tin, waiting.link_bytes, now_ns, false);
                return Ok(waiting.packet);
            }
            outcome.drop(waiting.packet);
            if ingress {
                self.pay(tin, queue, waiting.link_bytes);
                self.charge(tin, waiting.link_bytes, now_ns, true);
                return Err(false);
            }
        }
    }

    fn pay(&mut self, tin: usize, queue: usize, link_bytes: u32) {
        let tin = &mut self.tins[tin];
        tin.flows.at(queue).deficit -= i64::from(link_bytes);
        tin.deficit -= i64::from(link_bytes);
    }
}

impl<P: Packet> Discipline<P> for Cake<P> {
    /// cake_enqueue()
    fn enqueue(&mut self, now_ns: u64, mut packet: P, outcome: &mut Outcome<P>) {
        let index = usize::from(self.options.tin_of[usize::from(packet.dscp() & 63)]);
        if self.options.wash {
            packet.clear_dscp();
        }
        let tin = &mut self.tins[index];
        let queue = tin.table.classify(&packet, |queue| tin.flows.used(queue));
        // A clock that stood still while nothing waited is not to be caught up.
        if tin.backlog == 0 {
            tin.next_ns = tin.next_ns.max(now_ns);
            if self.packets == 0 && self.next_ns < now_ns {
                self.next_ns = now_ns;
                self.failsafe_ns = now_ns;
            }
        }
        let waiting = Waiting {
            packet,
            arrived_ns: now_ns,
            link_bytes: self.options.overhead.on_link(packet.wire_bytes()),
        };
        let bytes = self.bytes;
        self.append(index, queue, waiting, outcome);
        if let Some(autorate) = &mut self.autorate {
            let new_bytes = self.bytes.saturating_sub(bytes);
            if let Some(bytes_per_s) = autorate.on_arrival(now_ns, new_bytes) {
                self.configure(bytes_per_s.max(1));
            }
        }
        self.tins[index].wake(queue, &mut self.rng);
        while self.memory > self.memory_limit && self.packets > 0 {
            self.drop_from_longest(now_ns, outcome);
        }
    }

    /// cake_dequeue()
    fn dequeue(&mut self, now_ns: u64, outcome: &mut Outcome<P>) -> Option<P> {
        // One queue whose state decays is looked after at each call.
        let mut may_decay = true;
        'choose: loop {
            if self.packets == 0 || self.options.shapes && self.ready_ns() > now_ns {
                return None;
            }
            let index = self.choose_tin(now_ns)?;
            loop {
                let tin = &mut self.tins[index];
                let Some(queue) = tin.next_queue(std::mem::take(&mut may_decay)) else {
                    continue 'choose;
                };
                if tin.flows.at(queue).deficit <= 0 {
                    tin.refill(queue, &mut self.rng);
                    continue;
                }
                match self.serve(index, queue, now_ns, outcome) {
                    Ok(packet) => return Some(packet),
                    Err(false) => {}
                    Err(true) => {
                        self.tins[index].retire(queue, now_ns);
                        continue 'choose;
                    }
                }
            }
        }
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn packets(&self) -> usize {
        self.packets
    }

    fn next_ready_ns(&self, now_ns: u64) -> Option<u64> {
        let at_ns = if self.options.shapes {
            self.ready_ns().max(now_ns)
        } else {
            now_ns
        };
        (self.packets > 0).then_some(at_ns)
    }
}

impl Tin {
    fn new(isolation: Isolation) -> Self {
        Self {
            flows: Flows::new(QUEUES),
            table: FlowTable::new(isolation),
            backlogs: vec![0; QUEUES],
            backlog: 0,
            params: Params::default(),
            pace: Pace::default(),
            next_ns: 0,
            flow_quantum: 0,
            quantum: 0,
            deficit: 0,
            sparse_flows: 0,
            bulk_flows: 0,
        }
    }

    fn is_active(&self) -> bool {
        self.sparse_flows + self.bulk_flows > 0
    }

    /// What a flow may send a round: its host's part where hosts are isolated. Random numbers make
    /// up for what the division cuts off (cake_get_flow_quantum()).
    fn quantum_of(&self, queue: usize, rng: &mut Rng) -> i64 {
        let share = 65_535 / u32::from(self.table.host_load(queue));
        let dither = rng.next_u32() & 0xffff;
        i64::from((self.flow_quantum * share + dither) >> 16)
    }

    /// A packet came to a queue.
    fn wake(&mut self, queue: usize, rng: &mut Rng) {
        match self.flows.at(queue).state {
            State::Idle | State::Decaying => {
                let deficit = self.quantum_of(queue, rng);
                self.flows.move_to(queue, Chain::New);
                self.sparse_flows += 1;
                let flow = self.flows.at(queue);
                flow.state = State::Sparse;
                flow.deficit = deficit;
            }
            State::SparseWait => {
                self.sparse_flows -= 1;
                self.become_bulk(queue);
            }
            State::Sparse | State::Bulk => {}
        }
    }

    fn become_bulk(&mut self, queue: usize) {
        self.flows.at(queue).state = State::Bulk;
        self.bulk_flows += 1;
        self.table.count(queue, 1);
    }

    /// The queue whose turn it is.
    fn next_queue(&self, may_decay: bool) -> Option<usize> {
        let decaying = self.flows.first(Chain::Decaying);
        decaying
            .filter(|_| may_decay)
            .or_else(|| self.flows.first(Chain::New))
            .or_else(|| self.flows.first(Chain::Old))
            .or(decaying)
    }

    /// A queue that has used its quantum gets the next one behind the others.
    fn refill(&mut self, queue: usize, rng: &mut Rng) {
        let flow = self.flows.at(queue);
        if flow.state == State::Sparse {
            if flow.list.is_empty() {
                // In the rotation for its deficit, yet no load to its host.
                flow.state = State::SparseWait;
            } else {
                self.sparse_flows -= 1;
                self.become_bulk(queue);
            }
        }
        let more = self.quantum_of(queue, rng);
        self.flows.at(queue).deficit += more;
        self.flows.move_to(queue, Chain::Old);
    }

    /// An empty queue leaves the rotation, by way of those whose COBALT has something to forget.
    fn retire(&mut self, queue: usize, now_ns: u64) {
        let params = self.params;
        let flow = self.flows.at(queue);
        flow.cobalt.on_empty(&params, now_ns);
        let is_at_rest = flow.cobalt.is_at_rest(now_ns);
        let state = flow.state;
        flow.state = if is_at_rest {
            State::Idle
        } else {
            State::Decaying
        };
        match state {
            State::Bulk => {
                self.bulk_flows -= 1;
                self.table.count(queue, -1);
            }
            State::Sparse | State::SparseWait => self.sparse_flows -= 1,
            State::Decaying | State::Idle => {}
        }
        if is_at_rest {
            self.flows.detach(queue);
        } else {
            self.flows.move_to(queue, Chain::Decaying);
        }
    }
}
