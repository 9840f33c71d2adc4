//! The resolved scenario. Times are in ns since the start of the run, rates in bit/s, volumes in
//! bytes. `None` means "as a stock Linux host would", and each field says what that is.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use crate::applications::{Datagrams, Page, Pattern};
use crate::links::{Ends, Hosts, Link, Route};
use crate::traffic::Traffic;

/// One run of one scenario.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Name for people; not interpreted.
    pub name: String,
    /// Seed of every random number in the run.
    pub seed: u64,
    /// How long the run lasts.
    pub duration_ns: u64,
    /// Interval of flow, queue and algorithm samples.
    pub sample_interval_ns: u64,
    /// The row of links that is the network, in the order in which "up" flows pass it.
    pub links: Vec<Link>,
    /// What lies between the row and the hosts.
    pub ends: Ends,
    /// The first bottleneck in short, for models and reports: engines read `links` and `ends`.
    #[serde(default, skip_serializing, deserialize_with = "ignored")]
    pub path: (),
    /// The connections, in the order of their flow ids 0, 1, ...
    pub flows: Vec<Flow>,
    /// Latency measurements beside the flows.
    pub probes: Vec<Probe>,
    /// Groups of flows that come and go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<Traffic>,
    /// Pages that are loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<Page>,
    /// Streams of datagrams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub datagrams: Vec<Datagrams>,
    /// How the end hosts' TCP is set up.
    pub host: HostOptions,
}

/// Of a flow that stops early.
const UNSENT_MOST_BYTES: u32 = 128 * 1024;

impl Plan {
    /// How much waits when a flow's receiver reads: any data where its window is fixed, which would
    /// close otherwise.
    pub fn low_water_bytes(&self, flow: &Flow) -> u32 {
        match flow.receive_window_bytes {
            Some(_) => 1,
            None => self.host.receive_low_water_bytes,
        }
    }

    /// How much a flow's application wants to wait unsent at most (TCP_NOTSENT_LOWAT), if it stops before the
    /// run does: TCP sends what is in its buffer although its application has stopped.
    pub fn unsent_most_bytes(&self, flow: &Flow) -> Option<u32> {
        let stops = |stop_ns| stop_ns < self.duration_ns;
        let stops_early = flow.stop_ns.is_some_and(stops) || flow.pattern.is_some();
        stops_early.then_some(UNSENT_MOST_BYTES)
    }

    /// Delays of a flow's ends (forward, reverse), or of a probe's.
    pub fn end_delays_ns(&self, flow: Option<&Flow>) -> (u64, u64) {
        let own = |get: fn(&Flow) -> Option<u64>, common| flow.and_then(get).unwrap_or(common);
        (
            own(|flow| flow.forward_delay_ns, self.ends.forward_delay_ns),
            own(|flow| flow.reverse_delay_ns, self.ends.reverse_delay_ns),
        )
    }

    /// A flow's RTT without queues and serialization: its ends' delays and those of its links.
    pub fn base_rtt_ns(&self, flow: &Flow) -> u64 {
        let (forward_ns, reverse_ns) = self.end_delays_ns(Some(flow));
        let links = &self.links[flow.route.range()];
        let links_ns: u64 = links.iter().map(Link::base_rtt_ns).sum();
        forward_ns + reverse_ns + links_ns
    }
}

fn ignored<'de, D: Deserializer<'de>>(value: D) -> Result<(), D::Error> {
    IgnoredAny::deserialize(value).map(|_| ())
}

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

/// Random loss as netem defines it.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// Probability, parts per million.
    pub probability_ppm: u32,
    /// netem's correlation of successive draws, parts per million; 0: independent.
    pub correlation_ppm: u32,
    /// Mark CE instead of dropping where the packet can carry it (netem `ecn`).
    pub ecn: bool,
    /// One draw for a whole burst, as netem at a sender's own egress, which sees GSO packets
    /// before they are cut.
    pub per_burst: bool,
}

/// Random extra delay that never reorders.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    /// How the delay is drawn.
    pub shape: JitterShape,
    /// Its largest value: uniform over 0..=max.
    pub max_ns: u64,
}

/// bless2025 section V.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum JitterShape {
    /// Each packet draws its own delay; it leaves no earlier than the packet before it.
    PerPacket,
    /// A slot draws a delay when its first packet arrives; packets that arrive while the slot
    /// waits or is used leave with it, at once.
    Slotted,
}

/// One transport connection.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Unique name, e.g. `bbr3.1`.
    pub name: String,
    /// Its congestion control.
    pub cc: CcChoice,
    /// When it connects.
    pub start_ns: u64,
    /// When its application stops sending. `None`: at the end of the run.
    pub stop_ns: Option<u64>,
    /// How much the application sends. `None`: without end.
    pub amount_bytes: Option<u64>,
    /// Rate at which the application hands over data. `None`: always ready.
    pub app_rate_bps: Option<u64>,
    /// When the application writes. `None`: as `app_rate_bps` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// Which way the data goes.
    pub direction: Direction,
    /// Which links it passes.
    pub route: Route,
    /// Which hosts it joins.
    pub hosts: Hosts,
    /// Differentiated services codepoint of its packets, ACKs included (RFC 2474).
    pub dscp: u8,
    /// Own delays of its ends (forward, reverse); `None`: those of all, [`Ends`].
    pub forward_delay_ns: Option<u64>,
    /// See `forward_delay_ns`.
    pub reverse_delay_ns: Option<u64>,
    /// Own jitter; `None`: that of all, [`Ends`].
    pub jitter: Option<Jitter>,
    /// Fixed receive window in bytes. `None`: autotuned up to `HostOptions::rmem_max_bytes`.
    pub receive_window_bytes: Option<u64>,
    /// Negotiate ECN.
    pub ecn: bool,
    /// Which kind of it.
    #[serde(default, skip_serializing_if = "EcnKind::is_classic")]
    pub ecn_kind: EcnKind,
}

/// What ECN means to a flow that negotiates it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum EcnKind {
    /// RFC 3168; where the algorithm asks for it DCTCP's echo of each packet.
    #[default]
    Classic,
    /// Receivers count marks (RFC 9768).
    Accecn,
    /// That, and the path marks early: who answers marks in proportion sends ECT(1) (RFC 9331).
    L4s,
}

impl EcnKind {
    fn is_classic(&self) -> bool {
        *self == Self::Classic
    }
}

/// Which congestion control a flow runs.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CcChoice {
    /// The name the user gave: a parameter set (`bbr3-linux`) or `kernel:NAME`.
    pub name: String,
    /// Algorithm of cc/ (`bbr3`); `None` for `kernel:` names.
    pub algorithm: Option<String>,
    /// All parameters in the order of the algorithm's list, overrides applied.
    pub params: Vec<u32>,
}

/// Which way a flow's data goes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Through the forward bottleneck.
    Up,
    /// Through the reverse bottleneck.
    Down,
}

/// A latency measurement.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Unique name.
    pub name: String,
    /// What is sent.
    pub kind: ProbeKind,
    /// Interval between requests.
    pub interval_ns: u64,
    /// When the first request is sent.
    pub start_ns: u64,
    /// Which links it passes.
    pub route: Route,
    /// Which hosts it joins.
    pub hosts: Hosts,
    /// Differentiated services codepoint of its packets.
    pub dscp: u8,
}

/// What a probe sends.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// ICMP echo.
    Ping,
    /// UDP request and answer.
    Udp,
}

/// How the end hosts are set up; the same for all.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct HostOptions {
    /// Who paces.
    pub pacing: Pacing,
    /// Time of queued data that TCP small queues allow below the sender, as a shift of the pacing
    /// rate (`sk_pacing_shift`: 10 is about 1 ms, 9: 2 ms, 8: 4 ms, 7: 8 ms).
    pub pacing_shift: u8,
    /// Largest burst that one send may hold; `1` switches TSO off.
    pub gso_max_segments: u32,
    /// Receive aggregation (GRO): packets that arrive within this time are acknowledged at once.
    /// 0: off.
    pub receive_aggregation_ns: u64,
    /// When the receiver acknowledges.
    pub ack_policy: AckPolicy,
    /// Whose TCP it is.
    #[serde(default, skip_serializing_if = "TcpRules::is_default")]
    pub tcp: TcpRules,
    /// What it tells a congestion control.
    #[serde(default, skip_serializing_if = "CcFacts::is_google")]
    pub cc_facts: CcFacts,
    /// The receiving application reads when so much waits (`SO_RCVLOWAT`).
    pub receive_low_water_bytes: u32,
    /// Ceiling of receive-window autotuning (third value of `tcp_rmem`).
    pub rmem_max_bytes: u64,
    /// Ceiling of the send buffer (third value of `tcp_wmem`).
    pub wmem_max_bytes: u64,
    /// Initial congestion window in packets (RFC 6928).
    pub initial_cwnd_packets: u32,
    /// Rate of each sender's own link to the bottleneck; 0: infinitely fast.
    pub access_rate_bps: u64,
    /// The first packets pay an address resolution over the delayed path, as in a testbed without
    /// static neighbours; the first RTT sample is then twice the base RTT.
    pub arp: bool,
    /// What packets cost those that receive them; `None`: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<HostWork>,
    /// When those who read are kept from it; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader_pauses: Option<ReaderPauses>,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// Work of a host's one processor for what TCP receives and sends; what it cannot do at once waits.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct HostWork {
    /// A data packet, for the host that receives it.
    pub packet_ns: u64,
    /// An ACK, for the host that makes it and for the one that receives it.
    pub ack_ns: u64,
    /// Each packet of a burst, for the host that sends it: none leaves before all are made.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub send_ns: u64,
    /// A packet of a handshake, for the host that it reaches.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub handshake_ns: u64,
}

/// Other processes have the processor again and again, and those who read do not.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct ReaderPauses {
    /// From the beginning of one to that of the next; longer than one is.
    pub every_ns: u64,
    /// How long one is in the mean.
    pub for_ns: u64,
    /// By how much at most one is longer or shorter.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spread_ns: u64,
}

/// Who spaces packets out.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Pacing {
    /// TCP's own timers, for algorithms that ask for pacing; the others send at once.
    Internal,
    /// sch_fq on the sender, which paces every connection at its pacing rate.
    Fq,
}

/// The Linux release whose TCP the hosts have, among those between which a rule changed that decides
/// contests in small buffers. Stable releases take changes over, so that a younger 6.1 has some that
/// an older 6.4 lacks: each rule says who has it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub enum TcpRules {
    /// As released; before any of the changes below.
    #[serde(rename = "5.13")]
    Linux5_13,
    /// As its stable releases have been since late 2025 (Debian 12's).
    #[serde(rename = "6.1")]
    Linux6_1,
    /// As released.
    #[serde(rename = "6.4")]
    Linux6_4,
    /// As released.
    #[serde(rename = "6.12")]
    Linux6_12,
    /// As stable releases of 6.12 have been since late 2025: Debian's, which the virtual machine boots.
    #[serde(rename = "6.12.117")]
    #[default]
    Linux6_12_117,
    /// As released.
    #[serde(rename = "6.18")]
    Linux6_18,
    /// As released.
    #[serde(rename = "7.3")]
    Linux7_3,
}

impl TcpRules {
    /// What holds where nothing is said.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// 6.12 and whatever is younger.
    fn is_since_6_12(self) -> bool {
        self.is_late_6_12() || self == Self::Linux6_12
    }

    /// 6.18, whatever is younger, and stable releases of 6.12 since late 2025.
    fn is_late_6_12(self) -> bool {
        self.is_since_6_18() || self == Self::Linux6_12_117
    }

    /// 6.18 and whatever is younger.
    fn is_since_6_18(self) -> bool {
        matches!(self, Self::Linux6_18 | Self::Linux7_3)
    }

    /// Whoever was limited by the window in this round trip stays so (tcp_cwnd_validate(), in 6.1).
    pub fn keeps_being_limited(self) -> bool {
        self != Self::Linux5_13
    }

    /// A full packet with PSH is acknowledged by a reader at once (tcp_measure_rcv_mss(), in 6.6 and
    /// in stable releases since October 2023).
    pub fn acknowledges_pushed(self) -> bool {
        self.is_since_6_12() || self == Self::Linux6_1
    }

    /// A receiver measures how much of its memory payload is, instead of counting half (scaling_ratio, in
    /// 6.6).
    pub fn measures_overhead(self) -> bool {
        self.is_since_6_12()
    }

    /// A receiver's RTT falls at once and rises slowly (tcp_rcv_rtt_update(), in 6.16 and in stable
    /// releases of 2025).
    pub fn follows_least_rtt(self) -> bool {
        self.is_late_6_12() || self == Self::Linux6_1
    }

    /// Who was connected to takes timestamps of its segments before it sets up its receive buffer
    /// (tcp_rcv_state_process(), likewise).
    pub fn tells_timestamps_early(self) -> bool {
        self.is_late_6_12() || self == Self::Linux6_1
    }

    /// What has come and waits to be read counts against what a receiver has read in a round trip, and an
    /// RTT below a millisecond is none (tcp_rcv_space_adjust(), tcp_rcv_rtt_measure_ts(); in 6.16 and in
    /// stable releases of 6.12 since 2025).
    pub fn subtracts_unread(self) -> bool {
        self.is_late_6_12()
    }

    /// A receiver's RTT does not rise while something waits to be read (tcp_rcv_rtt_update(), commit
    /// a00f135cd986, in 6.16; no stable release has it).
    pub fn ignores_rtts_of_unread(self) -> bool {
        self.is_since_6_18()
    }

    /// A receive buffer holds twice what a round trip brought, with no cushion, and as much more as lies
    /// beyond a hole, for which it grows as that comes (tcp_rcvbuf_grow(), commits 65c5287892e9 and
    /// 63ad7dfedfae, in 6.16; and aa251c84636c, in 6.18).
    pub fn holds_what_is_beyond(self) -> bool {
        self.is_since_6_18()
    }

    /// ACKs of a hole wait for a third of an RTT instead of a twentieth, and their timer may be late by 10 us
    /// instead of 100 (tcp_comp_sack_rtt_percent, tcp_comp_sack_slack_ns; commits 416dd649f3aa and
    /// ca412f25d6b2, in 6.19).
    pub fn compresses_longer(self) -> bool {
        self == Self::Linux7_3
    }

    /// A window's shift allows for 4 MB at least, before for 208 KiB (net.core.rmem_max, commit
    /// a6d4f25888b8, in 6.18).
    pub fn scales_for_4_mb(self) -> bool {
        self.is_since_6_18()
    }

    /// Of a paced connection too no more than 4 MB wait below TCP (tcp_small_queue_check(), commits
    /// c4221a8cc3a7 and 9ea3bfa61b09, in 6.16).
    pub fn bounds_paced_queues(self) -> bool {
        self.is_since_6_18()
    }

    /// Bursts do not end where a buffer of the write queue does (tcp_grow_skb(), in 6.10; a feature,
    /// which stable releases do not take).
    pub fn grows_bursts(self) -> bool {
        self.is_since_6_12()
    }

    /// A single packet waits for a second one only if an ACK is due within 1 ms, instead of half a
    /// round trip (tcp_tso_should_defer(); in stable releases of late 2025 too).
    pub fn defers_briefly(self) -> bool {
        self.is_late_6_12() || self == Self::Linux6_1
    }
}

/// What TCP tells a congestion control of the packets that it loses.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum CcFacts {
    /// As Google's kernel with BBRv3: every packet has its own flight and losses, and is told of when
    /// it is lost; application limits are looked for at ACKs and timers too.
    #[default]
    Google,
    /// As a stock kernel tells eBPF: the contract's ring of snapshots, losses with the next ACK;
    /// application limits are looked for when the application writes.
    Stock,
}

impl CcFacts {
    /// What holds where nothing is said.
    pub fn is_google(&self) -> bool {
        *self == Self::Google
    }
}

/// When a receiver acknowledges.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum AckPolicy {
    /// Linux: quick ACKs at the start, then every second packet or a timer.
    Linux,
    /// Every packet.
    EveryPacket,
    /// Strictly every second packet (RFC 5681's b = 2), for checks against formulas.
    EverySecond,
}
