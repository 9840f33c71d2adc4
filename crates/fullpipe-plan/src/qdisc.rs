//! Queue disciplines of a plan, with the names and defaults of Linux's sch_*.c.

use serde::{Deserialize, Serialize};

/// A queue at a bottleneck.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Qdisc {
    /// Limit in bytes on the wire, link header included (bfifo). `None`: not limited in bytes.
    pub limit_bytes: Option<u64>,
    /// Limit in packets (pfifo, fq, codel, fq_codel). `None`: not limited in packets.
    pub limit_packets: Option<u32>,
    /// What decides who waits, who goes and who is dropped.
    pub aqm: Aqm,
}

/// Queue disciplines and their parameters (names and defaults of Linux's sch_*.c).
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Aqm {
    /// First in, first out, tail drop (bfifo, pfifo).
    Fifo,
    /// Per-flow fair queueing (sch_fq).
    Fq {
        /// Bytes a flow may send per round.
        quantum_bytes: u32,
        /// Packets one flow may hold.
        flow_limit_packets: u32,
    },
    /// Controlled delay (sch_codel, RFC 8289).
    Codel {
        /// Acceptable standing delay.
        target_ns: u64,
        /// Width of the minimum window.
        interval_ns: u64,
        /// Mark packets that can carry a mark instead of dropping them.
        ecn: bool,
    },
    /// Fair queueing with CoDel in each queue (sch_fq_codel, RFC 8290).
    FqCodel {
        /// Acceptable standing delay.
        target_ns: u64,
        /// Width of the minimum window.
        interval_ns: u64,
        /// Bytes a flow may send per round.
        quantum_bytes: u32,
        /// Number of queues.
        flows: u32,
        /// Bytes all queues may hold.
        memory_limit_bytes: u64,
        /// Mark packets that can carry a mark instead of dropping them.
        ecn: bool,
    },
    /// Random early detection (sch_red).
    Red {
        /// Below this average nothing is dropped.
        min_bytes: u64,
        /// Above this average everything is.
        max_bytes: u64,
        /// Probability at `max_bytes`, in parts per million.
        max_probability_ppm: u32,
        /// Average packet, for the time constant of an idle queue.
        avpkt_bytes: u32,
        /// Packets that may burst through.
        burst_packets: u32,
        /// Mark packets that can carry a mark instead of dropping them.
        ecn: bool,
    },
    /// Common Applications Kept Enhanced (sch_cake). The limit in bytes is its memory limit; `None`:
    /// what the kernel derives from rate and RTT.
    Cake {
        /// Nominal RTT, the interval of its CoDel.
        rtt_ns: u64,
        /// Acceptable standing delay; tc's is a twentieth of the RTT.
        target_ns: u64,
        /// Whether it keeps the link's rate itself. Else something above it does.
        shapes: bool,
        /// Classes of traffic.
        tins: CakeTins,
        /// What is isolated from what.
        isolation: CakeIsolation,
        /// Whether superfluous ACKs go.
        ack_filter: CakeAckFilter,
        /// Bytes that the link adds to an IP packet; `None`: those of Ethernet, as they are.
        overhead_bytes: Option<i32>,
        /// Least size of a packet on the link.
        mpu_bytes: u32,
        /// How the link cuts packets up.
        framing: CakeFraming,
        /// Counts what it drops as used (it stands behind the bottleneck).
        ingress: bool,
        /// Sets its bandwidth by the rate at which packets arrive.
        autorate_ingress: bool,
        /// Clears the DSCP of all packets.
        wash: bool,
        /// Cuts GSO packets; only kernels have any.
        split_gso: bool,
    },
    /// Proportional integral controller enhanced (sch_pie, RFC 8033).
    Pie {
        /// Acceptable delay.
        target_ns: u64,
        /// Between updates of the probability; rounded up to the kernel's tick of 4 ms.
        update_ns: u64,
        /// Weight of the delay, in sixteenths per s.
        alpha: u32,
        /// Weight of its change, in sixteenths per s.
        beta: u32,
        /// Smaller packets are dropped less.
        byte_mode: bool,
        /// Delay by the departure rate instead of by timestamps.
        rate_estimator: bool,
        /// Mark packets that can carry a mark instead of dropping them, up to 10 %.
        ecn: bool,
    },
    /// Fair queueing with PIE in each queue (sch_fq_pie).
    FqPie {
        /// See [`Aqm::Pie`].
        target_ns: u64,
        /// See [`Aqm::Pie`].
        update_ns: u64,
        /// See [`Aqm::Pie`].
        alpha: u32,
        /// See [`Aqm::Pie`].
        beta: u32,
        /// See [`Aqm::Pie`].
        byte_mode: bool,
        /// See [`Aqm::Pie`].
        rate_estimator: bool,
        /// Mark packets that can carry a mark instead of dropping them.
        ecn: bool,
        /// Up to this probability, in percent.
        ecn_percent: u32,
        /// Bytes a flow may send per round.
        quantum_bytes: u32,
        /// Number of queues.
        flows: u32,
    },
    /// Stochastic fairness queueing (sch_sfq).
    Sfq {
        /// Bytes a flow may send per round.
        quantum_bytes: u32,
        /// Flows that may wait at once.
        flows: u32,
        /// Hash buckets, a power of two.
        buckets: u32,
        /// Packets one flow may hold.
        depth_packets: u32,
        /// A full flow loses its oldest packet, not its newest.
        head_drop: bool,
    },
    /// Token bucket filter over a FIFO (sch_tbf); keeps the link's rate itself.
    Tbf {
        /// Bytes that gather while it idles.
        burst_bytes: u32,
    },
    /// FIFOs in strict priority (sch_prio), each with the qdisc's limit.
    Prio {
        /// How many.
        bands: u8,
        /// Where packets go whose DSCP has no filter.
        default_band: u8,
        /// Pairs of DSCP and band; band 0 goes first.
        filters: Vec<(u8, u8)>,
    },
    /// Coupled dual queue for L4S (sch_dualpi2, RFC 9332).
    Dualpi2 {
        /// Acceptable delay of classic traffic.
        target_ns: u64,
        /// Between updates of the probability.
        update_ns: u64,
        /// Weight of the delay, in 256ths of Hz.
        alpha: u32,
        /// Weight of its change, in 256ths of Hz.
        beta: u32,
        /// L4S packets that waited longer are marked.
        step_ns: u64,
        /// How much more L4S is marked than the base probability.
        coupling: u32,
        /// Part of classic traffic where both wait, in percent.
        classic_percent: u32,
        /// Drops L4S packets too in overload.
        drop_overload: bool,
    },
}

impl Qdisc {
    /// Whether the discipline keeps the link's rate itself, so that no shaper stands above it.
    pub fn shapes(&self) -> bool {
        matches!(self.aqm, Aqm::Cake { shapes: true, .. } | Aqm::Tbf { .. })
    }
}

/// CAKE's classes of traffic (sch_cake.c).
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum CakeTins {
    /// One.
    Besteffort,
    /// Bulk, best effort, voice.
    Diffserv3,
    /// Bulk, best effort, video, voice.
    Diffserv4,
    /// Eight by today's use of the code points.
    Diffserv8,
    /// Eight by IP precedence.
    Precedence,
}

/// What CAKE isolates from what.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum CakeIsolation {
    /// Nothing.
    Flowblind,
    /// Sources.
    Srchost,
    /// Destinations.
    Dsthost,
    /// Pairs of hosts.
    Hosts,
    /// Flows.
    Flows,
    /// Flows, and sources from one another.
    DualSrchost,
    /// Flows, and destinations from one another.
    DualDsthost,
    /// Flows, and hosts on both sides.
    TripleIsolate,
}

/// CAKE's ACK filter.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum CakeAckFilter {
    /// Off.
    No,
    /// Keeps two ACKs of a connection.
    Filter,
    /// Keeps one.
    Aggressive,
}

/// What a link makes of a packet's size.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum CakeFraming {
    /// Nothing.
    None,
    /// ATM cells: 53 bytes for 48.
    Atm,
    /// PTM (VDSL2): 65 bytes for 64.
    Ptm,
}
