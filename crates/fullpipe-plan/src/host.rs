//! How the end hosts are set up: their kernel, its settings, and what packets cost their processors.

use fullpipe_net::Kernel;
use serde::{Deserialize, Serialize};

use crate::sysctl::Sysctl;

/// How the end hosts are set up; the same for all.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct HostOptions {
    /// What spaces packets out.
    pub pacing: Pacing,
    /// How much may be queued below TCP (TCP small queues), as a shift of the pacing rate
    /// (`sk_pacing_shift`: 10 is about 1 ms, 9: 2 ms, 8: 4 ms, 7: 8 ms).
    pub pacing_shift: u8,
    /// Largest burst in packets; 1 switches TSO off.
    pub gso_max_segments: u32,
    /// Receive aggregation (GRO): packets that arrive within this time are processed together.
    /// 0: off.
    pub receive_aggregation_ns: u64,
    /// When the receiver acknowledges.
    pub ack_policy: AckPolicy,
    /// Whose TCP it is.
    #[serde(default, skip_serializing_if = "Kernel::is_default")]
    pub tcp: Kernel,
    /// What TCP reports to a congestion control.
    #[serde(default, skip_serializing_if = "CcFacts::is_google")]
    pub cc_facts: CcFacts,
    /// When a delivery-rate sample begins a new interval.
    #[serde(default, skip_serializing_if = "RateRestart::is_unacknowledged")]
    pub rate_restart: RateRestart,
    /// The receiving application reads when this much is queued (`SO_RCVLOWAT`).
    pub receive_low_water_bytes: u32,
    /// Ceiling of receive-window autotuning (third value of `tcp_rmem`).
    pub rmem_max_bytes: u64,
    /// Ceiling of the send buffer (third value of `tcp_wmem`).
    pub wmem_max_bytes: u64,
    /// Initial congestion window in packets (RFC 6928).
    pub initial_cwnd_packets: u32,
    /// Rate of each sender's own link to the bottleneck; 0: infinitely fast.
    pub access_rate_bps: u64,
    /// The first packet waits for an ARP exchange over the delayed path, as in a testbed without static
    /// neighbours; the first RTT sample is then twice the base RTT.
    pub arp: bool,
    /// Processor time that packets cost; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<HostWork>,
    /// When receiving applications stall; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader_pauses: Option<ReaderPauses>,
    /// Programs that carry a transport of their own wake at the first multiple of this behind the time of
    /// a timer; 0: at that time.
    #[serde(default = "program_timer_ns", skip_serializing_if = "is_tokio")]
    pub program_timer_ns: u64,
    /// What is not as Linux has it by default.
    #[serde(default, skip_serializing_if = "Sysctl::is_default")]
    pub sysctl: Sysctl,
}

/// The resolution of tokio's timers, under which most QUIC stacks in Rust run
/// (tokio/src/runtime/time/source.rs, `deadline_to_tick`).
const TOKIO_TIMER_NS: u64 = 1_000_000;

fn program_timer_ns() -> u64 {
    TOKIO_TIMER_NS
}

fn is_tokio(timer_ns: &u64) -> bool {
    *timer_ns == TOKIO_TIMER_NS
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// Time that a host's single processor spends on packets; packets wait while it is busy.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct HostWork {
    /// A data packet, at its receiver.
    pub packet_ns: u64,
    /// An ACK, at the host that sends it and at the host that receives it.
    pub ack_ns: u64,
    /// Each packet of a burst, at its sender; the burst leaves when all are made.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub send_ns: u64,
    /// A packet of a handshake, at the host that receives it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub handshake_ns: u64,
}

/// Periodic stalls of the receiving applications, while other processes run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct ReaderPauses {
    /// Interval between the starts of two stalls; longer than a stall.
    pub every_ns: u64,
    /// Mean duration of a stall.
    pub for_ns: u64,
    /// Half the range of the durations, which are drawn uniformly.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spread_ns: u64,
}

/// What spaces packets out.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Pacing {
    /// TCP's pacing timer, for algorithms that request pacing; others send at once.
    Internal,
    /// sch_fq at the sender, which paces every connection.
    Fq,
}

/// What TCP reports to a congestion control about losses and application limits.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum CcFacts {
    /// As Google's BBRv3 kernel: each packet carries its own `tx_in_flight` and `lost`, each loss is
    /// reported at once, and application limits are also checked at ACKs and timers.
    #[default]
    Google,
    /// As a stock kernel through eBPF: the contract's ring of snapshots, losses with the next ACK,
    /// application limits checked when the application writes.
    Stock,
}

impl CcFacts {
    /// Whether this is the default, which plans leave out.
    pub fn is_google(&self) -> bool {
        *self == Self::Google
    }
}

/// When a packet that is sent begins a new interval of the delivery rate
/// (draft-ietf-ccwg-bbr section 4.1.2.2, and its pull request 56).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum RateRestart {
    /// Linux: when all that was sent before is acknowledged.
    #[default]
    Unacknowledged,
    /// The draft before the pull request: when nothing is in flight, and what was declared lost is not.
    Inflight,
}

impl RateRestart {
    /// Whether this is the default, which plans leave out.
    pub fn is_unacknowledged(&self) -> bool {
        *self == Self::Unacknowledged
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
