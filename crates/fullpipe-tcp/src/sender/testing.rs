//! What the unit tests of several parts of a sender share.

use fullpipe_plan::{CcFacts, Pacing, RateRestart};

use crate::packet::EcnFeedback;
use crate::rules::Rules;

use super::config::SenderConfig;

/// A sender without limits.
pub(super) fn config() -> SenderConfig {
    SenderConfig {
        mss_bytes: 1448,
        pacing: Pacing::Internal,
        pacing_shift: 10,
        gso_max_segments: 44,
        rules: Rules::default(),
        facts: CcFacts::default(),
        rate_restart: RateRestart::default(),
        initial_cwnd: 10,
        wmem_max_bytes: 1 << 30,
        notsent_lowat_bytes: None,
        max_pacing_bytes_per_s: u64::MAX,
        sysctl: fullpipe_plan::Sysctl::default(),
        nodelay: false,
        ecn: false,
        feedback: EcnFeedback::Latched,
        l4s: false,
        seed: 1,
        amount_bytes: None,
        written_by_application: false,
    }
}
