//! How a sender is set up.

use fullpipe_plan::{CcFacts, Pacing, RateRestart, Sysctl};

use crate::packet::EcnFeedback;
use crate::rules::Rules;

/// How a sender is set up.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// Payload of a full packet.
    pub mss_bytes: u32,
    /// What spaces packets out.
    pub pacing: Pacing,
    /// sk_pacing_shift: bounds what is queued below TCP and the length of bursts, in time.
    pub pacing_shift: u8,
    /// Largest burst in packets.
    pub gso_max_segments: u32,
    /// What its kernel does.
    pub rules: Rules,
    /// What it reports to the congestion control about losses and application limits.
    pub facts: CcFacts,
    /// When a delivery-rate sample begins a new interval.
    pub rate_restart: RateRestart,
    /// Initial congestion window.
    pub initial_cwnd: u32,
    /// Ceiling of the send buffer.
    pub wmem_max_bytes: u64,
    /// TCP_NOTSENT_LOWAT; `None`: no limit.
    pub notsent_lowat_bytes: Option<u64>,
    /// SO_MAX_PACING_RATE; `u64::MAX`: no limit.
    pub max_pacing_bytes_per_s: u64,
    /// Settings of its host by the kernel's names.
    pub sysctl: Sysctl,
    /// TCP_NODELAY: short packets leave at once.
    pub nodelay: bool,
    /// ECN is requested.
    pub ecn: bool,
    /// How the receiver reports marks.
    pub feedback: EcnFeedback,
    /// The path marks early, as L4S does (Google's kernels: TCP_ECN_LOW).
    pub l4s: bool,
    /// Seed of the congestion control's random numbers.
    pub seed: u32,
    /// What the application sends in total; `None`: unlimited.
    pub amount_bytes: Option<u64>,
    /// The application writes by [`Sender::write`] and its siblings.
    pub written_by_application: bool,
}

impl SenderConfig {
    /// SO_MAX_PACING_RATE is set, which makes TCP pace every algorithm (sk_setsockopt()).
    pub(super) fn is_rate_limited(&self) -> bool {
        self.max_pacing_bytes_per_s < u64::MAX
    }
}
