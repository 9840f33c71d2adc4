//! One queue of any discipline, with its counters.

use fullpipe_scenario::{Aqm, Qdisc};

use crate::codel::{self, Params, State, TimedFifo};
use crate::fifo::Fifo;
use crate::fq::Fq;
use crate::fq_codel::FqCodel;
use crate::red::{Decision, Red};
use crate::Packet;

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

/// A queue at a bottleneck.
#[derive(Debug)]
pub struct Queue<P> {
    discipline: Discipline<P>,
    counters: Counters,
}

#[derive(Debug)]
enum Discipline<P> {
    Fifo(Fifo<P>),
    Fq(Fq<P>),
    Codel {
        queue: TimedFifo<P>,
        state: State,
        params: Params,
        limit: usize,
    },
    FqCodel(FqCodel<P>),
    Red(Box<Red<P>>),
}

impl<P: Packet> Queue<P> {
    /// From a plan's description; `None` for a discipline that only kernels have (CAKE). RED needs
    /// the link's rate and a seed.
    pub fn new(qdisc: &Qdisc, rate_bps: u64, seed: u64) -> Option<Self> {
        let (bytes, packets) = (qdisc.limit_bytes, qdisc.limit_packets);
        let limit = packets.map_or(usize::MAX, |limit| limit as usize);
        let discipline = match qdisc.aqm {
            Aqm::Fifo => Discipline::Fifo(Fifo::new(bytes, packets)),
            Aqm::Fq {
                quantum_bytes,
                flow_limit_packets,
            } => Discipline::Fq(Fq::new(quantum_bytes, flow_limit_packets, packets)),
            Aqm::Codel {
                target_ns,
                interval_ns,
                ecn,
            } => Discipline::Codel {
                queue: TimedFifo::default(),
                state: State::default(),
                params: Params::new(target_ns, interval_ns, ecn),
                limit,
            },
            Aqm::FqCodel {
                target_ns,
                interval_ns,
                quantum_bytes,
                flows,
                memory_limit_bytes,
                ecn,
            } => {
                let params = Params::new(target_ns, interval_ns, ecn);
                Discipline::FqCodel(FqCodel::new(
                    params,
                    flows,
                    quantum_bytes,
                    packets,
                    memory_limit_bytes,
                ))
            }
            Aqm::Red {
                min_bytes,
                max_bytes,
                max_probability_ppm,
                avpkt_bytes,
                burst_packets,
                ecn,
            } => Discipline::Red(Box::new(Red::new(
                bytes,
                min_bytes,
                max_bytes,
                max_probability_ppm,
                avpkt_bytes,
                burst_packets,
                ecn,
                rate_bps,
                seed,
            ))),
            Aqm::Cake { .. } => return None,
        };
        Some(Self {
            discipline,
            counters: Counters::default(),
        })
    }

    /// Offers a packet; whatever is dropped for it, itself or another, is put into `dropped`.
    pub fn enqueue(&mut self, now_ns: u64, mut packet: P, dropped: &mut Vec<P>) {
        self.counters.offered_packets += 1;
        let before = dropped.len();
        let refused = match &mut self.discipline {
            Discipline::Fifo(fifo) => fifo.enqueue(packet).err(),
            Discipline::Fq(fq) => fq.enqueue(packet).err(),
            Discipline::Codel { queue, limit, .. } => {
                if queue.len() < *limit {
                    queue.push(now_ns, packet);
                    None
                } else {
                    Some(packet)
                }
            }
            Discipline::FqCodel(fq_codel) => {
                fq_codel.enqueue(now_ns, packet, |victim| dropped.push(victim));
                None
            }
            Discipline::Red(red) => {
                let decision = red.decide(now_ns);
                let mark = decision != Decision::Pass && red.ecn && packet.ecn_capable();
                if mark {
                    packet.mark_ce();
                    self.counters.marked_packets += 1;
                }
                if decision == Decision::Pass || mark {
                    red.queue.enqueue(packet).err()
                } else {
                    Some(packet)
                }
            }
        };
        dropped.extend(refused);
        self.counters.dropped_packets += (dropped.len() - before) as u64;
    }

    /// Takes the next packet; those that an AQM drops on the way are put into `dropped`.
    pub fn dequeue(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> Option<P> {
        let before = dropped.len();
        let mut marks = 0;
        let packet = match &mut self.discipline {
            Discipline::Fifo(fifo) => fifo.dequeue(),
            Discipline::Fq(fq) => fq.dequeue(),
            Discipline::Codel {
                queue,
                state,
                params,
                ..
            } => {
                let on_drop = |victim| dropped.push(victim);
                codel::dequeue(queue, state, *params, now_ns, on_drop, || marks += 1)
            }
            Discipline::FqCodel(fq_codel) => {
                fq_codel.dequeue(now_ns, |victim| dropped.push(victim), || marks += 1)
            }
            Discipline::Red(red) => red.dequeue(now_ns),
        };
        self.counters.dropped_packets += (dropped.len() - before) as u64;
        self.counters.marked_packets += marks;
        if let Some(packet) = &packet {
            self.counters.sent_packets += 1;
            self.counters.sent_bytes += u64::from(packet.wire_bytes());
        }
        packet
    }

    /// Bytes waiting.
    pub fn bytes(&self) -> u64 {
        match &self.discipline {
            Discipline::Fifo(fifo) => fifo.bytes(),
            Discipline::Fq(fq) => fq.bytes(),
            Discipline::Codel { queue, .. } => queue.bytes,
            Discipline::FqCodel(fq_codel) => fq_codel.bytes(),
            Discipline::Red(red) => red.queue.bytes(),
        }
    }

    /// Packets waiting.
    pub fn packets(&self) -> usize {
        match &self.discipline {
            Discipline::Fifo(fifo) => fifo.len(),
            Discipline::Fq(fq) => fq.len(),
            Discipline::Codel { queue, .. } => queue.len(),
            Discipline::FqCodel(fq_codel) => fq_codel.len(),
            Discipline::Red(red) => red.queue.len(),
        }
    }

    /// Totals so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}
