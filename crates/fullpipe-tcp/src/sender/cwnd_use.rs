//! How much of the congestion window is used, and what becomes of a window that is not: tcp_cwnd_validate(),
//! tcp_cwnd_application_limited() and tcp_slow_start_after_idle_check() (RFC 2861). Must never know which
//! algorithm sets the window.

use fullpipe_cc::Ctl;

use fullpipe_ticks::elapsed_ns;

use crate::rules::Rules;

/// The use of the window.
#[derive(Debug)]
pub(super) struct CwndUse {
    /// A sender that was limited by its window stays so for the rest of the round trip.
    remembers_limit: bool,
    initial_cwnd: u32,
    /// The window was full in this period (is_cwnd_limited), and the most packets that were out in it
    /// (max_packets_out).
    was_full: bool,
    most_out: u32,
    /// The period ends when this packet is acknowledged (cwnd_usage_seq).
    period_end: u32,
    /// Most packets out since the window was last full, or judged (snd_cwnd_used), and when that was
    /// (snd_cwnd_stamp).
    used: u32,
    stamp_ns: u64,
}

impl CwndUse {
    pub(super) fn new(rules: Rules, initial_cwnd: u32) -> Self {
        Self {
            remembers_limit: rules.remembers_cwnd_limited(),
            initial_cwnd,
            was_full: false,
            most_out: 0,
            period_end: 0,
            used: 0,
            stamp_ns: 0,
        }
    }

    /// The window was set or judged anew (tcp_cong_avoid() for each ACK): unused parts of it count from now on.
    pub(super) fn restamp(&mut self, now_ns: u64) {
        self.stamp_ns = now_ns;
    }

    /// Packets were sent, or could not be as the window was full: `una` to `next` are out.
    #[inline]
    pub(super) fn sent(&mut self, is_full: bool, una: u32, next: u32) {
        let out = next - una;
        let has_grown = out > self.most_out;
        let is_news = match self.remembers_limit {
            true => is_full || !self.was_full && has_grown,
            false => has_grown,
        };
        if una >= self.period_end || is_news {
            self.was_full = is_full;
            self.most_out = out;
            self.period_end = next;
        }
    }

    /// Whether the window limits the sender (tcp_is_cwnd_limited()): in slow start half of it suffices.
    #[inline]
    pub(super) fn is_limited(&self, ctl: &Ctl) -> bool {
        self.was_full || ctl.cwnd < ctl.ssthresh && ctl.cwnd < 2 * self.most_out
    }

    /// Whether all of the window was in use in this period.
    #[inline]
    pub(super) fn was_full(&self) -> bool {
        self.was_full
    }

    /// Most packets out in this period.
    pub(super) fn most_out(&self) -> u32 {
        self.most_out
    }

    /// The window is in use.
    #[inline]
    pub(super) fn note_limited(&mut self, now_ns: u64) {
        self.used = 0;
        self.stamp_ns = now_ns;
    }

    /// The application or the receive window limits. A window that was not used for a timeout shrinks half way
    /// to what was used of it, if the application `leaves_it_unused`: returns the smaller window then.
    #[inline(never)]
    pub(super) fn note_unused(
        &mut self,
        now_ns: u64,
        out: u32,
        timeout_ns: u64,
        leaves_it_unused: bool,
        cwnd: u32,
    ) -> Option<u32> {
        self.used = self.used.max(out);
        if elapsed_ns(self.stamp_ns, now_ns) < timeout_ns {
            return None;
        }
        self.stamp_ns = now_ns;
        if !leaves_it_unused {
            return None;
        }
        let used = self.used.max(self.initial_cwnd);
        self.used = 0;
        (used < cwnd).then_some((cwnd + used) / 2)
    }

    /// The window after nothing was sent for `idle_ns`: half for each timeout, down to the initial window.
    pub(super) fn restart(&mut self, now_ns: u64, idle_ns: u64, timeout_ns: u64, cwnd: u32) -> u32 {
        let restart = self.initial_cwnd.min(cwnd);
        let (mut left_ns, mut cwnd) = (idle_ns, cwnd);
        while left_ns > timeout_ns && cwnd > restart {
            cwnd >>= 1;
            left_ns -= timeout_ns;
        }
        self.note_limited(now_ns);
        cwnd.max(restart)
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_plan::Kernel;

    use super::*;

    const MS: u64 = 1_000_000;
    const RTO: u64 = 200 * MS;

    fn cwnd_use(kernel: Kernel) -> CwndUse {
        CwndUse::new(kernel.into(), 10)
    }

    fn ctl(cwnd: u32, ssthresh: u32) -> Ctl {
        Ctl {
            cwnd,
            ssthresh,
            ..Ctl::default()
        }
    }

    #[test]
    fn in_slow_start_half_of_the_window_in_use_is_enough_to_be_limited_by_it() {
        let mut window = cwnd_use(Kernel::default());
        window.sent(false, 0, 11);
        assert!(window.is_limited(&ctl(20, 100)));
        assert!(!window.is_limited(&ctl(22, 100)));
        assert!(!window.is_limited(&ctl(20, 20)));
    }

    #[test]
    fn a_sender_that_was_limited_stays_so_for_a_round_trip_since_6_1() {
        // Commit f4ce91ce12a7: a smaller flight later in the round trip does not clear the flag.
        for (kernel, stays) in [(Kernel::Linux6_1, true), (Kernel::Linux5_13, false)] {
            let mut window = cwnd_use(kernel);
            window.sent(true, 0, 10);
            window.sent(false, 5, 16);
            assert_eq!(window.was_full(), stays, "{kernel:?}");
            window.sent(false, 16, 18);
            assert!(!window.was_full(), "{kernel:?}");
        }
    }

    #[test]
    fn a_window_unused_for_a_timeout_shrinks_half_way_to_its_use() {
        // RFC 2861 section 3.1.
        let mut window = cwnd_use(Kernel::default());
        assert_eq!(window.note_unused(RTO - 1, 20, RTO, true, 100), None);
        assert_eq!(window.note_unused(RTO, 12, RTO, true, 100), Some(60));
        assert_eq!(window.note_unused(2 * RTO - 1, 4, RTO, true, 60), None);
        // No further than to the initial window.
        assert_eq!(window.note_unused(2 * RTO, 4, RTO, true, 60), Some(35));
        assert_eq!(window.note_unused(3 * RTO, 4, RTO, true, 9), None);
    }

    #[test]
    fn a_window_is_unused_for_whole_ticks() {
        // tcp_jiffies32 - snd_cwnd_stamp >= icsk_rto: from 3.9 ms to 200.1 ms are 50 ticks, to 199.9 ms 49.
        for (begin_us, end_us, is_reduced) in [(3_900, 200_100, true), (3_900, 199_900, false)] {
            let mut window = cwnd_use(Kernel::default());
            window.restamp(begin_us * 1000);
            let cwnd = window.note_unused(end_us * 1000, 20, RTO, true, 100);
            assert_eq!(cwnd.is_some(), is_reduced, "{begin_us}");
        }
    }

    #[test]
    fn a_window_that_something_else_keeps_unused_stays() {
        let mut window = cwnd_use(Kernel::default());
        assert_eq!(window.note_unused(RTO, 20, RTO, false, 100), None);
        // The use is remembered, and the timeout begins again.
        assert_eq!(window.note_unused(2 * RTO - 1, 1, RTO, true, 100), None);
        assert_eq!(window.note_unused(2 * RTO, 1, RTO, true, 100), Some(60));
    }

    #[test]
    fn what_was_used_before_the_window_was_full_does_not_count() {
        // tcp_cwnd_validate() sets snd_cwnd_used to 0 for a sender that its window limits, and
        // tcp_cwnd_restart() for one that was idle.
        for limits in [
            |window: &mut CwndUse| window.note_limited(RTO),
            |window: &mut CwndUse| {
                window.restart(RTO, 0, RTO, 100);
            },
        ] {
            let mut window = cwnd_use(Kernel::default());
            assert_eq!(window.note_unused(RTO - 1, 30, RTO, true, 100), None);
            limits(&mut window);
            assert_eq!(window.note_unused(2 * RTO, 12, RTO, true, 100), Some(56));
        }
    }

    #[test]
    fn each_timeout_of_silence_halves_the_window_down_to_the_initial_one() {
        // RFC 2861 section 3.2; the first timeout is exceeded, not only reached.
        for (timeouts, cwnd) in [(1, 80), (2, 40), (3, 20), (4, 10), (9, 10)] {
            let mut window = cwnd_use(Kernel::default());
            assert_eq!(window.restart(0, timeouts * RTO, RTO, 80), cwnd);
        }
        assert_eq!(cwnd_use(Kernel::default()).restart(0, 9 * RTO, RTO, 4), 4);
    }
}
