//! Common Applications Kept Enhanced: sch_cake.c as of Linux 6.18, by Morton, Høiland-Jørgensen and
//! Täht (LANMAN 2018). A shaper without bursts, tins by DSCP, fair queues by flow and host in each,
//! COBALT in each queue.
//!
//! Not modelled: NAT look-ups, firewall marks and tc filters, which need fields that simulated packets lack;
//! splitting of GSO packets, because the simulator has none.

mod ack_filter;
mod autorate;
mod cobalt;
mod flows;
mod framing;
mod hash;
mod overflow;
mod params;
mod tin;
mod tins;

pub use crate::link::framing::Framing;
pub use params::{AckFilter, Isolation, Params, Tins};

use self::autorate::Autorate;
use self::framing::Pace;
use self::hash::{HashKeys, QUEUES};
use self::overflow::Overflow;
use self::tin::Tin;
use crate::link::framing::Overhead;
use crate::packet::Packet;
use crate::queue::discipline::{Discipline, Environment, Outcome};
use crate::queue::slab::Slab;
use crate::rng::Rng;

/// Most full packets in memory (cake_init(): sch->limit).
const MOST_FRAMES: u64 = 10_240;
const LEAST_BUFFER_BYTES: u64 = 4 << 20;
/// Bounds of a flow's quantum, which grows with the rate.
const QUANTUM_BYTES: std::ops::RangeInclusive<u64> = 300..=1514;

/// A burst of packets.
#[derive(Clone, Copy, Debug)]
struct Waiting<P> {
    /// Represents them ([`Packet::first_of_burst`]).
    burst: P,
    count: u32,
    /// Bytes of each on the link, overhead included.
    link_bytes: u32,
    arrived_ns: u64,
}

/// The result of serving a queue.
enum Turn {
    /// Its first packet leaves, marked or not.
    Passes { mark: bool },
    /// A dropped packet was charged, so another queue may be next.
    Spent,
    /// It is empty.
    Empty,
}

/// Constants.
#[derive(Debug)]
struct Options {
    tins: Tins,
    tin_of: [u8; 64],
    ack_filter: AckFilter,
    overhead: Overhead,
    rtt_ns: u64,
    target_ns: u64,
    memory_limit: Option<u64>,
    frame_bytes: u32,
    shapes: bool,
    ingress: bool,
    wash: bool,
}

/// CAKE's state.
#[derive(Debug)]
pub(crate) struct Cake<P> {
    options: Options,
    tins: Vec<Tin>,
    slab: Slab<Waiting<P>>,
    autorate: Option<Autorate>,
    pace: Pace,
    next_ns: u64,
    /// A second clock, slower by a half, that drops do not advance: drops of ingress mode must not keep
    /// the link idle for longer.
    failsafe_ns: u64,
    current_tin: usize,
    packets: usize,
    bytes: u64,
    memory: u64,
    memory_limit: u64,
    overflow: Overflow,
    /// Tin and queue of the packet that leaves next.
    chosen: (usize, usize),
    /// That packet, if it is marked.
    marked: Option<P>,
    rng: Rng,
}

impl<P: Packet> Cake<P> {
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
            tin.law = cobalt::Law {
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

    /// Appends packets to their queue. Filters an ACK that they make redundant.
    #[inline]
    fn append(&mut self, tin: usize, queue: usize, waiting: Waiting<P>, outcome: &mut Outcome<P>) {
        let count = u64::from(waiting.count);
        let bytes = u64::from(waiting.burst.wire_bytes()) * count;
        let data = &mut self.tins[tin];
        self.slab.push_back(&mut data.flows.at(queue).list, waiting);
        data.backlogs[queue % QUEUES] += bytes;
        data.backlog += bytes;
        self.bytes += bytes;
        self.memory += u64::from(waiting.burst.memory_bytes()) * count;
        self.packets += waiting.count as usize;
        if self.options.ack_filter != AckFilter::No {
            self.filter_acks(tin, queue, &waiting, outcome);
        }
        let tins = &self.tins;
        (self.overflow).grown(tin, queue, |tin, queue| backlog(tins, tin, queue));
    }

    #[inline(never)]
    fn filter_acks(
        &mut self,
        tin: usize,
        queue: usize,
        waiting: &Waiting<P>,
        outcome: &mut Outcome<P>,
    ) {
        let list = &mut self.tins[tin].flows.at(queue).list;
        let aggressive = self.options.ack_filter == AckFilter::Aggressive;
        let Some(newest_place) = self.slab.last_place(list) else {
            return;
        };
        let others = self
            .slab
            .iter(list)
            .map(|(place, held)| (place, &held.burst));
        let newest = (newest_place, &waiting.burst);
        let Some(before) = ack_filter::superfluous(others, newest, aggressive) else {
            return;
        };
        if let Some(ack) = self.slab.remove_behind(list, before) {
            self.count_out(tin, queue, ack.burst.wire_bytes(), ack.burst.memory_bytes());
            if self.options.ingress {
                self.charge(tin, ack.link_bytes, waiting.arrived_ns, true);
            }
            outcome.filter(ack.burst);
        }
    }

    /// Removes the first packet of a queue and returns it.
    fn take(&mut self, tin: usize, queue: usize) -> Option<P> {
        let waiting = self.slab.front(self.tins[tin].flows.list(queue))?;
        let packet = waiting.burst.first_of_burst(waiting.count > 1);
        self.drop_first(tin, queue);
        Some(packet)
    }

    /// Removes the first packet of a queue; returns its bytes on the wire.
    #[inline]
    fn drop_first(&mut self, tin: usize, queue: usize) -> u32 {
        let list = &mut self.tins[tin].flows.at(queue).list;
        let Some(waiting) = self.slab.front_mut(list) else {
            return 0;
        };
        let wire_bytes = waiting.burst.wire_bytes();
        let memory = waiting.burst.memory_bytes();
        waiting.count -= 1;
        if waiting.count > 0 {
            waiting.burst.skip_first_of_burst();
        } else {
            self.slab.pop_front(list);
        }
        self.count_out(tin, queue, wire_bytes, memory);
        wire_bytes
    }

    /// Subtracts a packet that left from all counts.
    #[inline]
    fn count_out(&mut self, tin: usize, queue: usize, wire_bytes: u32, memory: u32) {
        let bytes = u64::from(wire_bytes);
        let data = &mut self.tins[tin];
        data.backlogs[queue % QUEUES] -= bytes;
        data.backlog -= bytes;
        let tins = &self.tins;
        (self.overflow).shrunk(tin, queue, |tin, queue| backlog(tins, tin, queue));
        self.bytes -= bytes;
        self.memory -= u64::from(memory);
        self.packets -= 1;
    }

    /// Drops the head of the longest queue (cake_drop()).
    fn drop_from_longest(&mut self, now_ns: u64, outcome: &mut Outcome<P>) {
        let tins = &self.tins;
        let longest = |tin, queue| backlog(tins, tin, queue);
        let (tin, queue) = self.overflow.longest(longest);
        let data = &mut self.tins[tin];
        let flow = data.flows.at(queue);
        let Some(head) = self.slab.front(&flow.list) else {
            return;
        };
        flow.cobalt.on_full(&data.law, now_ns);
        if self.options.ingress {
            let link_bytes = head.link_bytes;
            self.charge(tin, link_bytes, now_ns, true);
        }
        if let Some(packet) = self.take(tin, queue) {
            outcome.drop(packet);
        }
    }

    /// Advances the clocks of the tin and of all tins (cake_advance_shaper()).
    #[inline]
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
        // The last tin that is due, which has the highest priority; else the one that is due first.
        let mut best: Option<(usize, u64)> = None;
        for (index, tin) in self.tins.iter().enumerate() {
            if !tin.is_active() {
                continue;
            }
            let wait_ns = tin.next_ns.saturating_sub(now_ns);
            if best.is_none_or(|(_, best_ns)| wait_ns == 0 || wait_ns <= best_ns) {
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

    /// Applies COBALT to the packets of one queue, up to the first that may leave.
    #[inline]
    fn serve(&mut self, index: usize, queue: usize, now_ns: u64, outcome: &mut Outcome<P>) -> Turn {
        let ingress = self.options.ingress;
        loop {
            let tin = &mut self.tins[index];
            let busy = if ingress { tin.bulk_flows } else { 0 };
            let flow = tin.flows.at(queue);
            let Some(head) = self.slab.front(&flow.list) else {
                return Turn::Empty;
            };
            let signal = flow.cobalt.judge(
                &tin.law,
                now_ns,
                now_ns - head.arrived_ns,
                head.burst.ecn_capable(),
                busy,
                &mut self.rng,
            );
            let link_bytes = head.link_bytes;
            // The last packet of a queue may be marked but is never dropped.
            let is_last = head.count == 1 && flow.list.has_one();
            if !signal.drop || is_last {
                self.pay(index, queue, link_bytes);
                self.charge(index, link_bytes, now_ns, false);
                return Turn::Passes { mark: signal.mark };
            }
            if let Some(packet) = self.take(index, queue) {
                outcome.drop(packet);
            }
            if ingress {
                self.pay(index, queue, link_bytes);
                self.charge(index, link_bytes, now_ns, true);
                return Turn::Spent;
            }
        }
    }

    #[inline]
    fn pay(&mut self, tin: usize, queue: usize, link_bytes: u32) {
        let tin = &mut self.tins[tin];
        tin.flows.at(queue).deficit -= i64::from(link_bytes);
        tin.deficit -= i64::from(link_bytes);
    }

    /// cake_enqueue(), of packets that all find the same state.
    #[inline]
    fn admit(&mut self, now_ns: u64, mut burst: P, count: u32, outcome: &mut Outcome<P>) {
        let index = usize::from(self.options.tin_of[usize::from(burst.dscp() & 63)]);
        if self.options.wash {
            burst.clear_dscp();
        }
        let tin = &mut self.tins[index];
        let queue = tin.table.classify(&burst, |queue| tin.flows.used(queue));
        // A clock that stood still while nothing waited is not to be caught up.
        if tin.backlog == 0 {
            tin.next_ns = tin.next_ns.max(now_ns);
            if self.packets == 0 && self.next_ns < now_ns {
                self.next_ns = now_ns;
                self.failsafe_ns = now_ns;
            }
        }
        let waiting = Waiting {
            burst,
            count,
            link_bytes: self.options.overhead.on_link(burst.wire_bytes()),
            arrived_ns: now_ns,
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

    /// Marks the chosen packet, which is split off its burst.
    #[inline(never)]
    fn mark_chosen(&mut self, outcome: &mut Outcome<P>) {
        let (tin, queue) = self.chosen;
        self.marked = self.take(tin, queue);
        if let Some(packet) = &mut self.marked {
            outcome.mark(packet);
        }
    }
}

/// Bytes that wait in a queue; 0 if there is no such tin.
fn backlog(tins: &[Tin], tin: usize, queue: usize) -> u64 {
    tins.get(tin).map_or(0, |tin| tin.backlogs[queue % QUEUES])
}

impl<P: Packet> Discipline<P> for Cake<P> {
    type Params = Params;

    fn new(params: &Params, environment: &Environment) -> Self {
        let keys = HashKeys::new(params.isolation);
        let mut cake = Self {
            options: Options {
                tins: params.tins,
                tin_of: tins::by_dscp(params.tins),
                ack_filter: params.ack_filter,
                overhead: Overhead {
                    bytes: params.overhead_bytes,
                    mpu_bytes: params.mpu_bytes,
                    framing: params.framing,
                },
                rtt_ns: params.rtt_ns,
                target_ns: params.target_ns,
                memory_limit: environment.limit_bytes,
                frame_bytes: environment.frame_bytes,
                shapes: params.shapes,
                ingress: params.ingress,
                wash: params.wash,
            },
            tins: (0..tins::count(params.tins))
                .map(|_| Tin::new(keys))
                .collect(),
            slab: Slab::default(),
            autorate: params.autorate_ingress.then(Autorate::default),
            pace: Pace::default(),
            next_ns: 0,
            failsafe_ns: 0,
            current_tin: 0,
            packets: 0,
            bytes: 0,
            memory: 0,
            memory_limit: 0,
            overflow: Overflow::new(),
            chosen: (0, 0),
            marked: None,
            rng: Rng::new(environment.seed),
        };
        cake.configure(if params.shapes {
            environment.rate_bps / 8
        } else {
            0
        });
        cake
    }

    fn enqueue(&mut self, now_ns: u64, packet: P, outcome: &mut Outcome<P>) {
        self.admit(now_ns, packet, 1, outcome);
    }

    /// Queues a burst as one entry. If memory overflows, or the rate follows arrivals, each packet changes
    /// the state for the next one, so the burst is split.
    fn enqueue_burst(&mut self, now_ns: u64, burst: &P, count: u32, outcome: &mut Outcome<P>) {
        let memory = self.memory + u64::from(burst.memory_bytes()) * u64::from(count);
        if self.autorate.is_none() && memory <= self.memory_limit {
            return self.admit(now_ns, *burst, count, outcome);
        }
        let mut burst = *burst;
        for others in (0..count).rev() {
            self.admit(now_ns, burst.split_first(others), 1, outcome);
        }
    }

    /// cake_dequeue(), up to the packet itself.
    #[inline(never)]
    fn choose(&mut self, now_ns: u64, _taken: &mut Option<P>, outcome: &mut Outcome<P>) -> bool {
        // Each call serves at most one queue whose state decays.
        let mut may_decay = true;
        'choose: loop {
            if self.packets == 0 || self.options.shapes && self.ready_ns() > now_ns {
                return false;
            }
            let Some(index) = self.choose_tin(now_ns) else {
                return false;
            };
            loop {
                let tin = &mut self.tins[index];
                let Some(queue) = tin.next_queue(&mut may_decay, &mut self.rng) else {
                    continue 'choose;
                };
                match self.serve(index, queue, now_ns, outcome) {
                    Turn::Passes { mark } => {
                        self.chosen = (index, queue);
                        if mark {
                            self.mark_chosen(outcome);
                        }
                        return true;
                    }
                    Turn::Spent => {}
                    Turn::Empty => {
                        self.tins[index].retire(queue, now_ns);
                        continue 'choose;
                    }
                }
            }
        }
    }

    #[inline]
    fn front<'a>(&'a self, _taken: &'a Option<P>) -> Option<(&'a P, bool)> {
        if let Some(packet) = &self.marked {
            return Some((packet, false));
        }
        let (tin, queue) = self.chosen;
        let waiting = self.slab.front(self.tins[tin].flows.list(queue))?;
        Some((&waiting.burst, waiting.count > 1))
    }

    #[inline]
    fn leave(&mut self, _taken: &mut Option<P>) -> u32 {
        self.overflow.departed();
        if let Some(packet) = self.marked.take() {
            return packet.wire_bytes();
        }
        let (tin, queue) = self.chosen;
        self.drop_first(tin, queue)
    }

    fn next_ready_ns(&self, now_ns: u64) -> Option<u64> {
        let is_paced = self.options.shapes;
        Some(if is_paced {
            self.ready_ns().max(now_ns)
        } else {
            now_ns
        })
    }
}

#[cfg(test)]
pub(super) mod tests;
