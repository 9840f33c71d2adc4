//! RTT and retransmission timeout: tcp_rtt_estimator() of tcp_input.c, RFC 6298.

use fullpipe_ticks::TICK_NS;

use super::min_rtt::MinRtt;

/// Linux TCP_RTO_MIN and TCP_RTO_MAX.
const RTO_MIN_US: i64 = 200_000;
const RTO_MAX_US: i64 = 120_000_000;
/// Doublings that take the least wait for a probe beyond the most (tcp_probe0_when()).
const MAX_PROBE_DOUBLINGS: u32 = 10;

/// The estimator. As in Linux, `srtt` has three bits of fraction and the deviations have two.
#[derive(Clone, Debug)]
pub(super) struct Rtt {
    srtt8: i64,
    mdev4: i64,
    mdev_max4: i64,
    rttvar4: i64,
    /// `mdev_max4` covers packets up to this one (rtt_seq).
    window_end: u32,
    rto_us: i64,
    /// Doublings of the timeout, until an RTT is measured.
    doublings: u32,
    /// The same, and probes of a closed window, until it opens (icsk_backoff).
    backoff: u32,
    min: MinRtt,
}

impl Default for Rtt {
    fn default() -> Self {
        Self {
            srtt8: 0,
            mdev4: 0,
            mdev_max4: 0,
            rttvar4: 0,
            window_end: 0,
            rto_us: 1_000_000,
            doublings: 0,
            backoff: 0,
            min: MinRtt::default(),
        }
    }
}

impl Rtt {
    /// Mean deviation (tcpi_rttvar).
    pub(super) fn deviation_us(&self) -> u32 {
        (self.mdev4 >> 2) as u32
    }

    /// Adds a sample of a packet that was sent once (Karn's rule).
    pub(super) fn sample(&mut self, rtt_us: i64, snd_una: u32, snd_nxt: u32) {
        let rtt_us = rtt_us.max(1);
        if self.srtt8 == 0 {
            self.srtt8 = rtt_us << 3;
            self.mdev4 = rtt_us << 1;
            self.rttvar4 = self.mdev4.max(RTO_MIN_US);
            self.mdev_max4 = self.rttvar4;
            self.window_end = snd_nxt;
        } else {
            let mut error = rtt_us - (self.srtt8 >> 3);
            self.srtt8 += error;
            if error < 0 {
                // A falling RTT raises the deviation more slowly than a rising one.
                error = -error - (self.mdev4 >> 2);
                if error > 0 {
                    error >>= 3;
                }
            } else {
                error -= self.mdev4 >> 2;
            }
            self.mdev4 += error;
            if self.mdev4 > self.mdev_max4 {
                self.mdev_max4 = self.mdev4;
                self.rttvar4 = self.rttvar4.max(self.mdev_max4);
            }
            if snd_una > self.window_end {
                if self.mdev_max4 < self.rttvar4 {
                    self.rttvar4 -= (self.rttvar4 - self.mdev_max4) >> 2;
                }
                self.window_end = snd_nxt;
                self.mdev_max4 = RTO_MIN_US;
            }
        }
        self.rto_us = ((self.srtt8 >> 3) + self.rttvar4).min(RTO_MAX_US);
    }

    /// Adds a sample to the minimum (tcp_update_rtt_min()).
    pub(super) fn sample_min(&mut self, rtt_us: u32, now_us: u64) {
        self.min.add(rtt_us, now_us);
    }

    /// The minimum RTT; `u32::MAX` before the first sample.
    pub(super) fn min_us(&self) -> u32 {
        self.min.us()
    }

    /// The minimum RTT, if there is a sample.
    pub(super) fn least_us(&self) -> Option<u32> {
        (self.min.us() != u32::MAX).then_some(self.min.us())
    }

    /// Smoothed RTT; 0 before the first sample.
    pub(super) fn smoothed_us(&self) -> u32 {
        (self.srtt8 >> 3) as u32
    }

    /// Smoothed RTT with three bits of fraction.
    pub(super) fn smoothed8(&self) -> u64 {
        self.srtt8 as u64
    }

    /// The retransmission timeout, back-off included. It is a number of ticks before it is doubled
    /// (tcp_set_rto(), icsk_rto).
    pub(super) fn timeout_ns(&self) -> u64 {
        let timeout_ns = (self.rto_us as u64 * 1000).next_multiple_of(TICK_NS);
        (timeout_ns << self.doublings.min(16)).min(RTO_MAX_US as u64 * 1000)
    }

    /// Doublings of the timeout or of the wait for a probe of the window (icsk_backoff).
    pub(super) fn backoff(&self) -> u32 {
        self.backoff
    }

    /// How long a closed window is left alone before its first probe (tcp_probe0_base()).
    pub(super) fn first_probe_wait_ns(&self) -> u64 {
        self.timeout_ns().max(RTO_MIN_US as u64 * 1000)
    }

    /// How long before the next probe (tcp_probe0_when()).
    pub(super) fn probe_wait_ns(&self) -> u64 {
        let wait_ns = self.first_probe_wait_ns() << self.backoff.min(MAX_PROBE_DOUBLINGS);
        wait_ns.min(RTO_MAX_US as u64 * 1000)
    }

    /// A probe of a closed window was sent.
    pub(super) fn count_probe(&mut self) {
        self.backoff += 1;
    }

    /// The window is open.
    pub(super) fn reset_probes(&mut self) {
        self.backoff = 0;
    }

    /// A retransmission timer expired: doubles the timeout.
    pub(super) fn back_off(&mut self) {
        self.doublings += 1;
        self.backoff += 1;
    }

    /// New data were acknowledged: ends the back-off.
    pub(super) fn reset_back_off(&mut self) {
        self.doublings = 0;
        self.backoff = 0;
    }
}
