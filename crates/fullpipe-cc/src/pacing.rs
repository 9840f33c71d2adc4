//! The pacing rate of algorithms that name none (cc/defaults.h).

use crate::abi::{self, Ctl};

/// How many percent of a window are sent in an RTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacingRatios {
    /// sysctl tcp_pacing_ss_ratio.
    pub slow_start_percent: u32,
    /// sysctl tcp_pacing_ca_ratio.
    pub avoidance_percent: u32,
}

impl Default for PacingRatios {
    fn default() -> Self {
        // SAFETY: immutable constants of native.c.
        unsafe {
            Self {
                slow_start_percent: abi::cc_pacing_ss_percent,
                avoidance_percent: abi::cc_pacing_ca_percent,
            }
        }
    }
}

impl PacingRatios {
    /// The rate in bytes per second. `srtt_us8` is eight times the RTT.
    #[inline]
    pub fn rate(&self, ctl: &Ctl, packets_out: u32, mss_bytes: u32, srtt_us8: u64) -> u64 {
        // SAFETY: a plain structure, of which it keeps no pointer.
        unsafe {
            abi::cc_window_rate(
                ctl,
                packets_out,
                mss_bytes,
                srtt_us8,
                self.slow_start_percent,
                self.avoidance_percent,
            )
        }
    }
}
