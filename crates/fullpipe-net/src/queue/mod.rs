//! Queue disciplines, and a queue of any of them with its counters.
//!
//! A new discipline is a file here, its `mod` and its line in the registry below.

pub mod cake;
pub mod codel;
mod discipline;
mod drr;
pub mod dualpi2;
pub mod fifo;
pub mod fq;
pub mod fq_codel;
pub mod fq_pie;
pub mod pie;
pub mod prio;
pub mod red;
mod rules;
pub mod sfq;
pub(crate) mod slab;
pub mod tbf;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use self::discipline::Parameters;
use self::discipline::{Discipline, Environment, Outcome};
use crate::kernel::Kernel;
use crate::packet::{Packet, LINK_HEADER_BYTES};

/// From a line for each discipline: the parameters in a plan, `AnyDiscipline` and its calls.
macro_rules! registry {
    ($($(#[$doc:meta])* $Name:ident in $module:ident,)+) => {
        /// A queue discipline with its parameters: `kind` is its name, the others are those of its file.
        #[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum Aqm {
            $($(#[$doc])* $Name($module::Params),)+
        }

        impl Aqm {
            fn parameters(&self) -> &dyn Parameters {
                match self {
                    $(Self::$Name(params) => params,)+
                }
            }

            /// Any discipline, with any parameters that its tests allow.
            #[cfg(test)]
            pub(crate) fn any() -> impl proptest::strategy::Strategy<Value = Self> {
                use proptest::strategy::{Strategy, Union};
                Union::new([$($module::tests::any_params().prop_map(Self::$Name).boxed(),)+])
            }

            /// The most bytes and packets that may wait, for limits of so many.
            #[cfg(test)]
            pub(crate) fn most_waiting(&self, bytes: u64, packets: u64) -> (u64, u64) {
                match self {
                    $(Self::$Name(params) => $module::tests::most_waiting(params, bytes, packets),)+
                }
            }
        }

        /// An enum, not a trait object: calls are direct and can be inlined.
        #[derive(Debug)]
        enum AnyDiscipline<P> {
            $($Name(Box<$module::$Name<P>>),)+
        }

        impl<P: Packet> AnyDiscipline<P> {
            fn new(aqm: &Aqm, environment: &Environment) -> Self {
                match aqm {
                    $(Aqm::$Name(params) => {
                        Self::$Name(Box::new($module::$Name::new(params, environment)))
                    })+
                }
            }

            #[inline(never)] // a FIFO needs no other's code
            fn enqueue(&mut self, now_ns: u64, packet: P, outcome: &mut Outcome<P>) {
                match self {
                    $(Self::$Name(queue) => queue.enqueue(now_ns, packet, outcome),)+
                }
            }

            #[inline(never)]
            fn enqueue_burst(
                &mut self,
                now_ns: u64,
                burst: &P,
                count: u32,
                outcome: &mut Outcome<P>,
            ) {
                match self {
                    $(Self::$Name(queue) => queue.enqueue_burst(now_ns, burst, count, outcome),)+
                }
            }

            #[inline(never)]
            fn choose(
                &mut self,
                now_ns: u64,
                taken: &mut Option<P>,
                outcome: &mut Outcome<P>,
            ) -> bool {
                match self {
                    $(Self::$Name(queue) => queue.choose(now_ns, taken, outcome),)+
                }
            }

            #[inline(always)] // mostly there is nothing to do
            fn front<'a>(&'a self, taken: &'a Option<P>) -> Option<(&'a P, bool)> {
                match self {
                    $(Self::$Name(queue) => queue.front(taken),)+
                }
            }

            #[inline(always)]
            fn leave(&mut self, taken: &mut Option<P>) -> u32 {
                match self {
                    $(Self::$Name(queue) => queue.leave(taken),)+
                }
            }

            fn next_ready_ns(&self, now_ns: u64) -> Option<u64> {
                match self {
                    $(Self::$Name(queue) => queue.next_ready_ns(now_ns),)+
                }
            }
        }
    };
}

registry! {
    /// First in, first out, tail drop (bfifo, pfifo).
    Fifo in fifo,
    /// Common Applications Kept Enhanced (sch_cake).
    Cake in cake,
    /// Per-flow fair queueing (sch_fq).
    Fq in fq,
    /// Controlled delay (sch_codel, RFC 8289).
    Codel in codel,
    /// Fair queueing with CoDel in each queue (sch_fq_codel, RFC 8290).
    FqCodel in fq_codel,
    /// Random early detection (sch_red).
    Red in red,
    /// Proportional integral controller enhanced (sch_pie, RFC 8033).
    Pie in pie,
    /// Fair queueing with PIE in each queue (sch_fq_pie).
    FqPie in fq_pie,
    /// Stochastic fairness queueing (sch_sfq).
    Sfq in sfq,
    /// Token bucket filter over a FIFO (sch_tbf).
    Tbf in tbf,
    /// FIFOs in strict priority (sch_prio).
    Prio in prio,
    /// Coupled dual queue for L4S (sch_dualpi2, RFC 9332).
    Dualpi2 in dualpi2,
}

/// A call of a discipline, inlined for a FIFO, as most queues are one.
macro_rules! inline_fifo {
    ($discipline:expr, $queue:ident => $call:expr) => {
        match $discipline {
            AnyDiscipline::Fifo($queue) => $call,
            $queue => $call,
        }
    };
}

/// A queue at a bottleneck, as a plan describes it.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Qdisc {
    /// Limit in bytes on the wire, link header included (bfifo). `None`: not limited in bytes.
    pub limit_bytes: Option<u64>,
    /// Limit in packets (pfifo, fq, codel, fq_codel). `None`: not limited in packets.
    pub limit_packets: Option<u32>,
    /// The discipline.
    pub aqm: Aqm,
}

impl Qdisc {
    /// Whether the discipline shapes to the link's rate itself, so that no shaper is above it.
    pub fn shapes(&self) -> bool {
        self.aqm.parameters().shapes()
    }

    /// The kernel whose rules the discipline has, if the plan names one.
    pub fn kernel(&self) -> Option<Kernel> {
        self.aqm.parameters().kernel()
    }
}

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
    /// ACKs that an ACK filter took out: not dropped.
    pub filtered_packets: u64,
    /// Packets marked CE.
    pub marked_packets: u64,
}

/// The counters, and what the bytes that wait follow from.
#[derive(Debug, Default)]
struct Totals {
    counters: Counters,
    offered_bytes: u64,
    dropped_bytes: u64,
}

impl Totals {
    #[inline]
    fn add<P>(&mut self, outcome: &Outcome<P>) {
        self.counters.dropped_packets += outcome.drops;
        self.counters.filtered_packets += outcome.filtered;
        self.counters.marked_packets += outcome.marks;
        self.dropped_bytes += outcome.dropped_bytes;
    }
}

/// A queue at a bottleneck.
#[derive(Debug)]
pub struct Queue<P> {
    discipline: AnyDiscipline<P>,
    totals: Totals,
    /// The packet that leaves next, of a discipline that does not keep it.
    taken: Option<P>,
}

impl<P: Packet> Queue<P> {
    /// A queue for IP packets of at most `mtu_bytes` at a link of `rate_bps`. `seed` is that of its
    /// random decisions.
    pub fn new(qdisc: &Qdisc, rate_bps: u64, mtu_bytes: u32, seed: u64) -> Self {
        let environment = Environment {
            limit_bytes: qdisc.limit_bytes,
            limit_packets: qdisc.limit_packets,
            rate_bps,
            frame_bytes: mtu_bytes + LINK_HEADER_BYTES,
            seed,
        };
        Self {
            discipline: AnyDiscipline::new(&qdisc.aqm, &environment),
            totals: Totals::default(),
            taken: None,
        }
    }

    /// Offers a packet. Packets that are dropped for it, itself or others, are added to `dropped`.
    #[inline]
    pub fn enqueue(&mut self, now_ns: u64, packet: P, dropped: &mut Vec<P>) {
        self.totals.counters.offered_packets += 1;
        self.totals.offered_bytes += u64::from(packet.wire_bytes());
        inline_fifo!(&mut self.discipline, queue => {
            let mut outcome = Outcome::new(dropped);
            queue.enqueue(now_ns, packet, &mut outcome);
            self.totals.add(&outcome);
        });
    }

    /// Offers a burst of `count` packets ([`Packet::first_of_burst`]).
    #[inline]
    pub(crate) fn enqueue_burst(
        &mut self,
        now_ns: u64,
        burst: &P,
        count: u32,
        dropped: &mut Vec<P>,
    ) {
        self.totals.counters.offered_packets += u64::from(count);
        self.totals.offered_bytes += u64::from(count) * u64::from(burst.wire_bytes());
        inline_fifo!(&mut self.discipline, queue => {
            let mut outcome = Outcome::new(dropped);
            queue.enqueue_burst(now_ns, burst, count, &mut outcome);
            self.totals.add(&outcome);
        });
    }

    /// Takes the next packet. Packets that are dropped before it are added to `dropped`. `None`:
    /// nothing may leave now; see [`Queue::next_ready_ns`].
    pub fn dequeue(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> Option<P> {
        if !self.choose(now_ns, dropped) {
            return None;
        }
        let (burst, is_followed) = self.front()?;
        let packet = burst.first_of_burst(is_followed);
        self.leave();
        Some(packet)
    }

    /// The first of three steps that take a packet without copying it: chooses the packet that leaves
    /// now. False: none does.
    #[inline(always)] // the compiler then joins the matches of the three steps
    pub(crate) fn choose(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> bool {
        inline_fifo!(&mut self.discipline, queue => {
            let mut outcome = Outcome::new(dropped);
            let is_any = queue.choose(now_ns, &mut self.taken, &mut outcome);
            self.totals.add(&outcome);
            is_any
        })
    }

    /// The second step: the burst whose first packet was chosen, and whether more of its packets follow.
    #[inline(always)]
    pub(crate) fn front(&self) -> Option<(&P, bool)> {
        inline_fifo!(&self.discipline, queue => queue.front(&self.taken))
    }

    /// The third step: the chosen packet leaves. Returns its bytes on the wire.
    #[inline(always)]
    pub(crate) fn leave(&mut self) -> u32 {
        let wire_bytes = inline_fifo!(&mut self.discipline, queue => queue.leave(&mut self.taken));
        self.totals.counters.sent_packets += 1;
        self.totals.counters.sent_bytes += u64::from(wire_bytes);
        wire_bytes
    }

    /// When to call [`Queue::dequeue`] next. `None`: the queue is empty. Later than `now_ns` where all
    /// packets are paced (fq) or the discipline shapes (CAKE, TBF), and after a call of
    /// [`Queue::dequeue`] that returned nothing.
    pub fn next_ready_ns(&self, now_ns: u64) -> Option<u64> {
        match self.is_empty() {
            true => None,
            false => self.discipline.next_ready_ns(now_ns),
        }
    }

    /// Whether no packet waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets() == 0
    }

    /// Bytes waiting.
    pub fn bytes(&self) -> u64 {
        self.totals.offered_bytes - self.totals.dropped_bytes - self.totals.counters.sent_bytes
    }

    /// Packets waiting.
    #[inline]
    pub fn packets(&self) -> usize {
        let counters = &self.totals.counters;
        let gone = counters.sent_packets + counters.dropped_packets + counters.filtered_packets;
        (counters.offered_packets - gone) as usize
    }

    /// Totals so far.
    pub fn counters(&self) -> Counters {
        self.totals.counters
    }
}
