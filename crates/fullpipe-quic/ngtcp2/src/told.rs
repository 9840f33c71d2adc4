//! What told.c tells of a connection. Must never change anything.

use fullpipe_transport::NONE;
use ngtcp2_sys::ngtcp2_conn;

/// `struct told` of told.c; what there is not is [`NONE`].
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Told {
    pub(crate) congestion_recovery_start_ns: u64,
    pub(crate) pacing_rate_bps: u64,
    phase: u64,
    pub(crate) max_bw_bps: u64,
    pub(crate) min_rtt_ns: u64,
    pub(crate) round_count: u64,
    pub(crate) bw_shortterm_bps: u64,
    pub(crate) inflight_longterm_bytes: u64,
    pub(crate) inflight_shortterm_bytes: u64,
    pub(crate) extra_acked_bytes: u64,
    pacing_gain_percent: u64,
    cwnd_gain_percent: u64,
}

extern "C" {
    fn fullpipe_ngtcp2_told(conn: *const ngtcp2_conn, told: *mut Told);
}

impl Told {
    /// # Safety
    /// The connection lives.
    pub(crate) unsafe fn of(conn: *const ngtcp2_conn) -> Self {
        let mut told = std::mem::MaybeUninit::uninit();
        // SAFETY: told.c writes all of it.
        unsafe {
            fullpipe_ngtcp2_told(conn, told.as_mut_ptr());
            told.assume_init()
        }
    }

    /// BBR's phase, in the order of ngtcp2_bbr.h, `ngtcp2_bbr_state`.
    pub(crate) fn phase(&self) -> Option<&'static str> {
        const NAMES: [&str; 7] = [
            "startup",
            "drain",
            "down",
            "cruise",
            "refill",
            "up",
            "probe_rtt",
        ];
        let position = self.phase.checked_sub(1)?;
        NAMES.get(usize::try_from(position).ok()?).copied()
    }

    pub(crate) fn pacing_gain(&self) -> f64 {
        share(self.pacing_gain_percent)
    }

    pub(crate) fn cwnd_gain(&self) -> f64 {
        share(self.cwnd_gain_percent)
    }
}

fn share(percent: u64) -> f64 {
    if percent == NONE {
        f64::NAN
    } else {
        percent as f64 / 100.0
    }
}
