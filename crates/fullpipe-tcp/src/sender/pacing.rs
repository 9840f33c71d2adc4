//! Pacing: when the next packet may leave, how large a burst is, and the rate of algorithms that set none.
//! tcp_update_skb_after_send(), tcp_pacing_check() and tcp_tso_autosize() of tcp_output.c,
//! tcp_update_pacing_rate() of tcp_input.c. Must never know why something is sent.

use fullpipe_cc::{Ctl, PacingRatios};

use crate::skb::GSO_MAX_BYTES;

use super::config::SenderConfig;
use super::timers::NEVER_NS;

/// Bursts may be larger at small RTTs: by gso_max at 0, and by half of that every 2^9 us (sysctl
/// tcp_tso_rtt_log).
const TSO_RTT_LOG: u32 = 9;
/// The first packets are not paced (tcp_update_skb_after_send(): data_segs_out >= TCP_INIT_CWND).
const UNPACED_PACKETS: u64 = 10;
const NS_PER_S: u64 = 1_000_000_000;

/// When a burst leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Departure {
    pub(super) at_ns: u64,
    /// How late it is against the time that the rate allowed.
    late_ns: u64,
}

/// What decides the size of a burst.
#[derive(Clone, Copy, Debug)]
pub(super) struct BurstSize {
    pub(super) rate_bytes_per_s: u64,
    /// The minimum RTT; `u32::MAX` before the first sample.
    pub(super) min_rtt_us: u32,
    /// The algorithm's bounds; a most of 0: none.
    pub(super) least: u32,
    pub(super) most: u32,
}

/// The pacing of one connection.
#[derive(Debug)]
pub(super) struct Pacing {
    /// fq delays packets; otherwise a timer of TCP does.
    is_fq: bool,
    /// By fq always, by TCP if the algorithm requests it.
    is_paced: bool,
    /// sk_pacing_shift.
    shift: u8,
    mss_bytes: u32,
    gso_max_segments: u32,
    /// SO_MAX_PACING_RATE.
    most_bytes_per_s: u64,
    tso_rtt_log: u32,
    ratios: PacingRatios,
    /// When the next packet may leave (tcp_wstamp_ns).
    next_ns: u64,
    /// When the pacing timer expires; [`NEVER_NS`]: it does not run.
    timer_ns: u64,
    /// When the last burst left (lsndtime).
    last_ns: u64,
    /// Packets with data sent (data_segs_out).
    packets: u64,
}

impl Pacing {
    /// `is_requested`: the algorithm sets a pacing rate.
    pub(super) fn new(config: &SenderConfig, is_requested: bool) -> Self {
        let is_fq = config.pacing == fullpipe_plan::Pacing::Fq;
        let sysctl = &config.sysctl;
        let linux = PacingRatios::default();
        Self {
            is_fq,
            is_paced: is_fq || is_requested || config.is_rate_limited(),
            shift: config.pacing_shift,
            mss_bytes: config.mss_bytes,
            gso_max_segments: config.gso_max_segments,
            most_bytes_per_s: config.max_pacing_bytes_per_s,
            tso_rtt_log: sysctl.tcp_tso_rtt_log.unwrap_or(TSO_RTT_LOG),
            ratios: PacingRatios {
                slow_start_percent: sysctl
                    .tcp_pacing_ss_ratio
                    .unwrap_or(linux.slow_start_percent),
                avoidance_percent: sysctl
                    .tcp_pacing_ca_ratio
                    .unwrap_or(linux.avoidance_percent),
            },
            next_ns: 0,
            timer_ns: NEVER_NS,
            last_ns: 0,
            packets: 0,
        }
    }

    /// The handshake is done.
    pub(super) fn established(&mut self, now_ns: u64) {
        self.next_ns = now_ns;
    }

    pub(super) fn is_paced(&self) -> bool {
        self.is_paced
    }

    /// When the next packet may leave.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// When the last burst left.
    pub(super) fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// When the pacing timer expires; [`NEVER_NS`]: it does not run.
    #[inline]
    pub(super) fn timer_ns(&self) -> u64 {
        self.timer_ns
    }

    /// Stops the pacing timer if it has expired; true then.
    pub(super) fn take_expired(&mut self, now_ns: u64) -> bool {
        let has_expired = self.timer_ns <= now_ns;
        if has_expired {
            self.timer_ns = NEVER_NS;
        }
        has_expired
    }

    /// If pacing forbids to send now, starts the pacing timer; true then (tcp_pacing_check()).
    #[inline]
    pub(super) fn hold_back(&mut self, now_ns: u64) -> bool {
        let blocks = self.next_ns > now_ns && self.is_paced && !self.is_fq;
        if blocks {
            self.timer_ns = self.next_ns;
        }
        blocks
    }

    /// A burst leaves. fq takes it at once and holds it until its time.
    #[inline]
    pub(super) fn depart(&mut self, now_ns: u64) -> Departure {
        let late_ns = now_ns.saturating_sub(self.next_ns);
        self.next_ns += late_ns;
        self.last_ns = if self.is_fq { self.next_ns } else { now_ns };
        Departure {
            at_ns: self.last_ns,
            late_ns,
        }
    }

    /// The burst has left: advances the time of the next by its length. A late timer has a credit of up to
    /// half a burst.
    #[inline]
    pub(super) fn charge(
        &mut self,
        departure: Departure,
        packets: u32,
        payload_bytes: u64,
        rate_bytes_per_s: u64,
    ) {
        self.packets += u64::from(packets);
        if self.is_paced && self.packets >= UNPACED_PACKETS {
            let length_ns = payload_bytes * NS_PER_S / rate_bytes_per_s.max(1);
            self.next_ns += length_ns - (length_ns / 2).min(departure.late_ns);
        }
    }

    /// tcp_tso_autosize(): a burst lasts about a millisecond at the pacing rate.
    #[inline]
    pub(super) fn burst_packets(&self, size: BurstSize) -> u32 {
        let mut bytes = size.rate_bytes_per_s >> self.shift;
        let rtt_shift = size.min_rtt_us >> self.tso_rtt_log;
        if rtt_shift < 32 {
            bytes += GSO_MAX_BYTES >> rtt_shift;
        }
        let packets = (bytes.min(GSO_MAX_BYTES) / u64::from(self.mss_bytes)) as u32;
        let most = match size.most {
            0 => self.gso_max_segments,
            most => most.min(self.gso_max_segments),
        };
        packets.max(size.least).min(most)
    }

    /// The rate of algorithms that set none. `srtt_us8` is eight times the RTT.
    #[inline]
    pub(super) fn default_rate(&self, ctl: &Ctl, packets_out: u32, srtt_us8: u64) -> u64 {
        let rate = self.ratios.rate(ctl, packets_out, self.mss_bytes, srtt_us8);
        rate.min(self.most_bytes_per_s)
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_plan::Pacing as Kind;

    use super::*;
    use crate::sender::testing::config;

    const MS: u64 = 1_000_000;
    /// A burst of two packets takes 1 ms at this rate.
    const RATE: u64 = 2 * 1448 * 1000;

    fn paced(pacing: Kind) -> Pacing {
        let config = SenderConfig { pacing, ..config() };
        let mut paced = Pacing::new(&config, true);
        let first = paced.depart(0);
        paced.charge(first, 9, 9 * 1448, RATE);
        assert_eq!(paced.next_ns(), 0, "the initial window is not paced");
        paced
    }

    /// The default rate of 100 packets in 100 ms.
    fn default_rate(pacing: &Pacing, ssthresh: u32) -> u64 {
        let ctl = Ctl {
            cwnd: 100,
            ssthresh,
            ..Ctl::default()
        };
        pacing.default_rate(&ctl, 100, 800_000)
    }

    fn send(pacing: &mut Pacing, now_ns: u64) -> u64 {
        let departure = pacing.depart(now_ns);
        pacing.charge(departure, 2, 2 * 1448, RATE);
        departure.at_ns
    }

    #[test]
    fn a_burst_holds_the_next_back_for_its_length_at_the_pacing_rate() {
        let mut pacing = paced(Kind::Internal);
        assert_eq!(send(&mut pacing, 0), 0);
        assert_eq!(pacing.timer_ns(), NEVER_NS);
        assert!(pacing.hold_back(MS - 1) && !pacing.hold_back(MS));
        assert_eq!(pacing.timer_ns(), MS);
        assert!(!pacing.take_expired(MS - 1) && pacing.take_expired(MS));
        assert_eq!(pacing.timer_ns(), NEVER_NS);
    }

    #[test]
    fn a_late_burst_is_credited_its_lateness_up_to_half_its_length() {
        for (late_ns, credit_ns) in [(0, 0), (MS / 4, MS / 4), (MS / 2, MS / 2), (9 * MS, MS / 2)] {
            let mut pacing = paced(Kind::Internal);
            send(&mut pacing, 0);
            let now_ns = MS + late_ns;
            assert_eq!(send(&mut pacing, now_ns), now_ns);
            assert_eq!(pacing.next_ns(), now_ns + MS - credit_ns);
        }
    }

    #[test]
    fn fq_takes_bursts_at_once_and_sends_them_at_their_times() {
        let mut pacing = paced(Kind::Fq);
        let times: Vec<_> = (0..3).map(|_| send(&mut pacing, 0)).collect();
        assert_eq!(times, [0, MS, 2 * MS]);
        assert!(!pacing.hold_back(0));
    }

    #[test]
    fn an_algorithm_that_sets_no_rate_is_not_paced_by_tcp() {
        let mut pacing = Pacing::new(&config(), false);
        let first = pacing.depart(5);
        pacing.charge(first, 100, 100 * 1448, 1);
        assert!(!pacing.is_paced() && !pacing.hold_back(5));
        assert_eq!(pacing.next_ns(), 5);
    }

    #[test]
    fn a_burst_lasts_a_millisecond_and_is_larger_on_a_short_path() {
        let pacing = Pacing::new(
            &SenderConfig {
                gso_max_segments: 44,
                ..config()
            },
            true,
        );
        let packets = |rate, min_rtt_us, least, most| {
            pacing.burst_packets(BurstSize {
                rate_bytes_per_s: rate,
                min_rtt_us,
                least,
                most,
            })
        };
        // 10 packets in 1/1024 s.
        let rate = 10 * 1448 * 1024;
        assert_eq!(packets(rate, u32::MAX, 2, 0), 10);
        // Half of 65,279 bytes more at 512 us.
        assert_eq!(packets(rate, 512, 2, 0), 10 + 32_639 / 1448);
        assert_eq!(packets(rate, 0, 2, 0), 44);
        assert_eq!(packets(1000, u32::MAX, 2, 0), 2);
        assert_eq!(packets(rate, u32::MAX, 2, 4), 4);
    }

    #[test]
    fn a_window_is_sent_in_half_an_rtt_in_slow_start_and_five_sixths_later() {
        let pacing = Pacing::new(&config(), false);
        assert_eq!(default_rate(&pacing, u32::MAX), 2 * 1_448_000);
        assert_eq!(default_rate(&pacing, 100), 1_448_000 * 6 / 5);
    }

    #[test]
    fn a_limit_of_the_socket_paces_every_algorithm_and_bounds_the_default_rate() {
        let config = SenderConfig {
            max_pacing_bytes_per_s: 2_000_000,
            ..config()
        };
        let pacing = Pacing::new(&config, false);
        assert!(pacing.is_paced());
        // They are 1,448,000 bytes a second, of which 200 % and 120 %.
        assert_eq!(default_rate(&pacing, u32::MAX), 2_000_000);
        assert_eq!(default_rate(&pacing, 100), 1_737_600);
    }

    #[test]
    fn sysctls_change_the_ratios_and_the_allowance_of_short_paths() {
        let sysctl = fullpipe_plan::Sysctl {
            tcp_pacing_ss_ratio: Some(150),
            tcp_pacing_ca_ratio: Some(100),
            tcp_tso_rtt_log: Some(12),
            ..Default::default()
        };
        let pacing = Pacing::new(
            &SenderConfig {
                sysctl,
                gso_max_segments: 44,
                ..config()
            },
            true,
        );
        assert_eq!(default_rate(&pacing, u32::MAX), 2_172_000);
        assert_eq!(default_rate(&pacing, 100), 1_448_000);
        // A quarter of 65,279 bytes at 2^13 us, and none of it by default.
        let size = BurstSize {
            rate_bytes_per_s: 0,
            min_rtt_us: 8192,
            least: 2,
            most: 0,
        };
        assert_eq!(pacing.burst_packets(size), 16_319 / 1448);
    }
}
