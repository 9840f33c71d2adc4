//! A flow of a plan: one transport connection, its congestion control, and when its application writes.

use fullpipe_net::impair::jitter;
use serde::{Deserialize, Serialize};

use crate::route::{FlowDirection, Hosts, Route};
use fullpipe_net::Kernel;

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
    /// How much the application sends. `None`: unlimited.
    pub amount_bytes: Option<u64>,
    /// Rate at which the application writes. `None`: always ready.
    pub app_rate_bps: Option<u64>,
    /// When the application writes. `None`: as `app_rate_bps` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// Direction of its data.
    pub direction: FlowDirection,
    /// The links it passes.
    pub route: Route,
    /// The hosts at its ends.
    pub hosts: Hosts,
    /// Differentiated services codepoint of its packets, ACKs included (RFC 2474).
    pub dscp: u8,
    /// Own delay behind the last link; `None`: as in [`crate::Access`].
    pub forward_delay_ns: Option<u64>,
    /// Own delay behind the first link, in the reverse direction; `None`: as in [`crate::Access`].
    pub reverse_delay_ns: Option<u64>,
    /// Own jitter; `None`: as in [`crate::Access`].
    pub jitter: Option<jitter::Params>,
    /// Fixed receive window in bytes. `None`: autotuned up to `HostOptions::rmem_max_bytes`.
    pub receive_window_bytes: Option<u64>,
    /// Its application sets TCP_NODELAY: short packets leave at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nodelay: bool,
    /// SO_MAX_PACING_RATE of the sending socket. `None`: not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_pacing_rate_bps: Option<u64>,
    /// Whether it negotiates ECN.
    pub ecn: bool,
    /// Which kind of ECN.
    #[serde(default, skip_serializing_if = "EcnKind::is_classic")]
    pub ecn_kind: EcnKind,
    /// The TCP of the hosts at its ends. `None`: as in [`crate::HostOptions`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<Stack>,
}

/// The TCP of the hosts at a flow's ends, where it differs from that of the others.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// Linux release.
    pub tcp: Kernel,
    /// Packets in the largest burst.
    pub gso_max_segments: u32,
}

/// Kinds of ECN.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum EcnKind {
    /// RFC 3168, or DCTCP's echo of each packet if the algorithm requests it.
    #[default]
    Classic,
    /// Accurate ECN: receivers count marks (RFC 9768).
    Accecn,
    /// Accurate ECN on a path that marks early: scalable algorithms send ECT(1) (RFC 9331).
    L4s,
}

impl EcnKind {
    fn is_classic(&self) -> bool {
        *self == Self::Classic
    }
}

/// The congestion control of a flow.
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

/// An on/off source: it sends, is silent, sends again. With exponential times it is a two-state
/// Markov source.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct OnOff {
    /// Duration of an on period; the source starts with one.
    pub on_ns: u64,
    /// Duration of an off period.
    pub off_ns: u64,
    /// Durations are exponential with these means.
    pub is_random: bool,
}

/// When a flow's application writes, if it is not always ready.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Pattern {
    /// As much as TCP takes during on periods.
    OnOff(OnOff),
    /// A fixed amount at a fixed interval.
    Paced {
        /// Written at once.
        write_bytes: u64,
        /// From one write to the next.
        interval_ns: u64,
    },
}
