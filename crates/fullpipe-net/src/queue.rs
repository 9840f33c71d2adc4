//! One queue of any discipline, with its counters.

use fullpipe_plan::{Aqm, Qdisc};

use crate::cake::Cake;
use crate::codel::{self, Codel};
use crate::discipline::{Discipline, Outcome};
use crate::dualpi2::{self, DualPi2};
use crate::fifo::Fifo;
use crate::fq::Fq;
use crate::fq_codel::FqCodel;
use crate::fq_pie::FqPie;
use crate::pie::{self, Pie};
use crate::prio::Prio;
use crate::red::{self, Red};
use crate::sfq::Sfq;
use crate::tbf::Tbf;
use crate::Packet;

/// Bytes of the header that Linux counts with a packet in a qdisc (Ethernet; psched_mtu()).
const LINK_HEADER_BYTES: u32 = 14;
const DEFAULT_MTU_BYTES: u32 = 1500;
/// Up to this probability PIE marks (sch_pie.c; fq_pie has a parameter for it).
const PIE_ECN_PERCENT: u32 = 10;

/// Totals since the queue was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets offered.
    pub offered_packets: u64,
    /// Packets handed out.
    pub sent_packets: u64,
    /// Bytes handed out.
    pub sent_bytes: u64,
    /// Packets dropped.
    pub dropped_packets: u64,
    /// Packets marked CE.
    pub marked_packets: u64,
}

impl Counters {
    fn count<P>(&mut self, outcome: &Outcome<P>) {
        self.dropped_packets += outcome.drops;
        self.marked_packets += outcome.marks;
    }
}

/// A queue at a bottleneck.
#[derive(Debug)]
pub struct Queue<P> {
    discipline: AnyDiscipline<P>,
    counters: Counters,
    /// What left a discipline that hands out packets, and has not left the queue yet.
    chosen: Option<P>,
}

impl<P: Packet> Queue<P> {
    /// From a plan's description, for packets of at most 1500 bytes. `rate_bps` is the link's, which
    /// CAKE and TBF keep themselves ([`Qdisc::shapes`]); random decisions are drawn by the seed.
    pub fn new(qdisc: &Qdisc, rate_bps: u64, seed: u64) -> Self {
        Self::with_mtu(qdisc, rate_bps, seed, DEFAULT_MTU_BYTES)
    }

    /// As [`Queue::new`], for IP packets of at most `mtu_bytes`: CoDel never drops from a backlog of
    /// one full packet, and fq starts a flow with the credit of ten.
    pub fn with_mtu(qdisc: &Qdisc, rate_bps: u64, seed: u64, mtu_bytes: u32) -> Self {
        Self {
            discipline: AnyDiscipline::new(qdisc, rate_bps, seed, mtu_bytes),
            counters: Counters::default(),
            chosen: None,
        }
    }

    /// Offers a packet; whatever is dropped for it, itself or another, is put into `dropped`.
    #[inline]
    pub fn enqueue(&mut self, now_ns: u64, packet: P, dropped: &mut Vec<P>) {
        self.counters.offered_packets += 1;
        let mut outcome = Outcome::new(dropped);
        match &mut self.discipline {
            AnyDiscipline::Fifo(queue) => queue.enqueue(now_ns, packet, &mut outcome),
            other => other.enqueue(now_ns, packet, &mut outcome),
        }
        self.counters.count(&outcome);
    }

    /// Offers so many packets that were handed down at once, by what stands for them
    /// ([`Packet::end_follows`]).
    #[inline]
    pub(crate) fn enqueue_burst(
        &mut self,
        now_ns: u64,
        burst: &P,
        count: u32,
        dropped: &mut Vec<P>,
    ) {
        self.counters.offered_packets += u64::from(count);
        let mut outcome = Outcome::new(dropped);
        match &mut self.discipline {
            AnyDiscipline::Fifo(queue) => queue.enqueue_burst(burst, count, &mut outcome),
            AnyDiscipline::Cake(queue) => queue.enqueue_burst(now_ns, burst, count, &mut outcome),
            other => {
                let mut burst = *burst;
                for others in (0..count).rev() {
                    other.enqueue(now_ns, burst.split_first(others), &mut outcome);
                }
            }
        }
        self.counters.count(&outcome);
    }

    /// Takes the next packet; those that an AQM drops on the way are put into `dropped`. `None`
    /// means that nothing may leave now; see [`Queue::next_ready_ns`].
    #[inline]
    pub fn dequeue(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> Option<P> {
        let mut outcome = Outcome::new(dropped);
        let packet = match &mut self.discipline {
            AnyDiscipline::Fifo(queue) => queue.dequeue(now_ns, &mut outcome),
            other => other.dequeue(now_ns, &mut outcome),
        };
        self.counters.count(&outcome);
        if let Some(packet) = &packet {
            self.counters.sent_packets += 1;
            self.counters.sent_bytes += u64::from(packet.wire_bytes());
        }
        packet
    }

    /// The same in three steps, for those who need not copy the packet: whether one leaves now,
    #[inline(always)] // between calls that match on the same discipline, as the next two
    pub(crate) fn chooses(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> bool {
        match &self.discipline {
            AnyDiscipline::Fifo(queue) => !queue.is_empty(),
            _ => self.discipline_chooses(now_ns, dropped),
        }
    }

    #[inline(never)]
    fn discipline_chooses(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> bool {
        let mut outcome = Outcome::new(dropped);
        let has_chosen = match &mut self.discipline {
            AnyDiscipline::Cake(queue) => queue.chooses(now_ns, &mut outcome),
            other => {
                self.chosen = other.dequeue(now_ns, &mut outcome);
                self.chosen.is_some()
            }
        };
        self.counters.count(&outcome);
        has_chosen
    }

    /// what stands for the run that it is the first of, and whether others of that follow it
    /// ([`Packet::end_follows`]),
    #[inline(always)]
    pub(crate) fn front(&self) -> Option<(&P, bool)> {
        match &self.discipline {
            AnyDiscipline::Fifo(queue) => queue.front(),
            AnyDiscipline::Cake(queue) => queue.front(),
            _ => self.chosen.as_ref().map(|packet| (packet, false)),
        }
    }

    /// and that it leaves: its bytes on the wire.
    #[inline(always)]
    pub(crate) fn leave(&mut self) -> u32 {
        let wire_bytes = match &mut self.discipline {
            AnyDiscipline::Fifo(queue) => queue.leave(),
            AnyDiscipline::Cake(queue) => queue.leave(),
            _ => self.chosen.take().map_or(0, |packet| packet.wire_bytes()),
        };
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(wire_bytes);
        wire_bytes
    }

    /// When to ask for a packet (next): `None` while the queue is empty, else `now_ns` or, where
    /// all packets are paced (fq) or the discipline shapes (CAKE, TBF), the first one's time. After [`Queue::dequeue`] gave nothing, it
    /// is never `now_ns`.
    pub fn next_ready_ns(&self, now_ns: u64) -> Option<u64> {
        each!(&self.discipline, queue => queue.next_ready_ns(now_ns))
    }

    /// Bytes waiting.
    pub fn bytes(&self) -> u64 {
        each!(&self.discipline, queue => queue.bytes())
    }

    /// Whether none waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match &self.discipline {
            AnyDiscipline::Fifo(queue) => queue.is_empty(),
            _ => self.packets() == 0,
        }
    }

    /// Packets waiting.
    pub fn packets(&self) -> usize {
        each!(&self.discipline, queue => queue.packets())
    }

    /// Totals so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

/// All disciplines. An enum, not a trait object: calls are direct and can be inlined.
#[derive(Debug)]
enum AnyDiscipline<P> {
    Fifo(Fifo<P>),
    Fq(Box<Fq<P>>),
    Codel(Box<Codel<P>>),
    FqCodel(Box<FqCodel<P>>),
    Red(Box<Red<P>>),
    DualPi2(Box<DualPi2<P>>),
    Prio(Box<Prio<P>>),
    Tbf(Box<Tbf<P>>),
    Sfq(Box<Sfq<P>>),
    FqPie(Box<FqPie<P>>),
    Pie(Box<Pie<P>>),
    Cake(Box<Cake<P>>),
}

macro_rules! each {
    ($discipline:expr, $queue:ident => $call:expr) => {
        match $discipline {
            AnyDiscipline::Fifo($queue) => $call,
            AnyDiscipline::Fq($queue) => $call,
            AnyDiscipline::Codel($queue) => $call,
            AnyDiscipline::FqCodel($queue) => $call,
            AnyDiscipline::Red($queue) => $call,
            AnyDiscipline::DualPi2($queue) => $call,
            AnyDiscipline::Prio($queue) => $call,
            AnyDiscipline::Tbf($queue) => $call,
            AnyDiscipline::Sfq($queue) => $call,
            AnyDiscipline::FqPie($queue) => $call,
            AnyDiscipline::Pie($queue) => $call,
            AnyDiscipline::Cake($queue) => $call,
        }
    };
}
use each;

impl<P: Packet> AnyDiscipline<P> {
    /// Never inlined, as the next one: the FIFO of most runs needs none of all this around it.
    #[inline(never)]
    fn enqueue(&mut self, now_ns: u64, packet: P, outcome: &mut Outcome<P>) {
        each!(self, queue => queue.enqueue(now_ns, packet, outcome));
    }

    #[inline(never)]
    fn dequeue(&mut self, now_ns: u64, outcome: &mut Outcome<P>) -> Option<P> {
        each!(self, queue => queue.dequeue(now_ns, outcome))
    }

    fn new(qdisc: &Qdisc, rate_bps: u64, seed: u64, mtu_bytes: u32) -> Self {
        let frame_bytes = mtu_bytes + LINK_HEADER_BYTES;
        let limit_packets = qdisc.limit_packets;
        match qdisc.aqm {
            Aqm::Fifo => Self::Fifo(Fifo::new(qdisc.limit_bytes, limit_packets)),
            Aqm::Fq {
                quantum_bytes,
                flow_limit_packets,
            } => Self::Fq(Box::new(Fq::new(
                quantum_bytes,
                flow_limit_packets,
                limit_packets,
                frame_bytes,
            ))),
            Aqm::Codel {
                target_ns,
                interval_ns,
                ecn,
            } => {
                let params = codel::Params::new(target_ns, interval_ns, frame_bytes, ecn);
                Self::Codel(Box::new(Codel::new(params, limit_packets)))
            }
            Aqm::FqCodel {
                target_ns,
                interval_ns,
                quantum_bytes,
                flows,
                memory_limit_bytes,
                ecn,
            } => Self::FqCodel(Box::new(FqCodel::new(
                codel::Params::new(target_ns, interval_ns, frame_bytes, ecn),
                flows,
                quantum_bytes,
                limit_packets,
                memory_limit_bytes,
            ))),
            Aqm::Red {
                min_bytes,
                max_bytes,
                max_probability_ppm,
                avpkt_bytes,
                burst_packets,
                ecn,
            } => {
                let params = red::Params {
                    limit_bytes: qdisc.limit_bytes,
                    min_bytes,
                    max_bytes,
                    max_probability_ppm,
                    avpkt_bytes,
                    burst_packets,
                    ecn,
                    rate_bps,
                };
                Self::Red(Box::new(Red::new(&params, seed)))
            }
            Aqm::Pie {
                target_ns,
                update_ns,
                alpha,
                beta,
                byte_mode,
                rate_estimator,
                ecn,
            } => {
                let params = pie::Params {
                    target_ns,
                    update_ns,
                    alpha,
                    beta,
                    ecn,
                    ecn_percent: PIE_ECN_PERCENT,
                    byte_mode,
                    rate_estimator,
                    frame_bytes,
                };
                Self::Pie(Box::new(Pie::new(params, limit_packets, seed)))
            }
            Aqm::FqPie {
                target_ns,
                update_ns,
                alpha,
                beta,
                byte_mode,
                rate_estimator,
                ecn,
                ecn_percent,
                quantum_bytes,
                flows,
            } => {
                let params = pie::Params {
                    target_ns,
                    update_ns,
                    alpha,
                    beta,
                    ecn,
                    ecn_percent,
                    byte_mode,
                    rate_estimator,
                    frame_bytes,
                };
                let queue = FqPie::new(params, flows, quantum_bytes, limit_packets, seed);
                Self::FqPie(Box::new(queue))
            }
            Aqm::Sfq {
                quantum_bytes,
                flows,
                buckets,
                depth_packets,
                head_drop,
            } => Self::Sfq(Box::new(Sfq::new(
                flows,
                buckets,
                quantum_bytes,
                depth_packets,
                limit_packets,
                head_drop,
            ))),
            Aqm::Tbf { burst_bytes } => Self::Tbf(Box::new(Tbf::new(
                rate_bps,
                burst_bytes,
                qdisc.limit_bytes,
                limit_packets,
            ))),
            Aqm::Prio {
                bands,
                default_band,
                ref filters,
            } => Self::Prio(Box::new(Prio::new(
                bands,
                default_band,
                filters,
                qdisc.limit_bytes,
                limit_packets,
            ))),
            Aqm::Dualpi2 {
                target_ns,
                update_ns,
                alpha,
                beta,
                step_ns,
                coupling,
                classic_percent,
                drop_overload,
            } => {
                let params = dualpi2::Params {
                    target_ns,
                    update_ns,
                    alpha,
                    beta,
                    step_ns,
                    coupling,
                    classic_percent,
                    drop_overload,
                    limit_packets,
                    frame_bytes,
                };
                Self::DualPi2(Box::new(DualPi2::new(params, seed)))
            }
            Aqm::Cake { .. } => Self::Cake(Box::new(Cake::new(
                &qdisc.aqm,
                qdisc.limit_bytes,
                rate_bps,
                frame_bytes,
                seed,
            ))),
        }
    }
}
