//! The retransmission timer, which also waits for loss probes and for reordered packets: tcp_rearm_rto()
//! of tcp_input.c, tcp_schedule_loss_probe() of tcp_output.c. Must never know what its expiry causes.

use crate::countdown::Countdown;

const NS_PER_MS: u64 = 1_000_000;
/// No timer runs.
pub(super) const NEVER_NS: u64 = u64::MAX;
/// Linux TCP_TIMEOUT_MIN_US.
const TIMEOUT_MIN_US: u64 = 2000;
/// A rearmed timeout is at least this far away (tcp_rearm_rto()).
const OVERDUE_NS: u64 = 1000;
/// What a loss probe waits beyond two RTTs: for a delayed ACK if one packet is out (TCP_RTO_MIN), else
/// TCP_TIMEOUT_MIN.
const PROBE_SLACK_ALONE_NS: u64 = 200 * NS_PER_MS;
const PROBE_SLACK_NS: u64 = 2 * NS_PER_MS;

/// What the timer waits for (icsk_pending).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerKind {
    Retransmit,
    LossProbe,
    Reorder,
    WindowProbe,
}

/// When packets that are out time out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeout {
    pub(super) now_ns: u64,
    /// The timeout, back-off included.
    pub(super) timeout_ns: u64,
    /// When the first packet was last sent.
    pub(super) first_sent_ns: u64,
}

impl Timeout {
    /// What is left of the first packet's timeout; 0: it is overdue (tcp_rto_delta_us()).
    #[inline]
    pub(super) fn left_ns(self) -> u64 {
        (self.first_sent_ns + self.timeout_ns).saturating_sub(self.now_ns)
    }
}

/// The one timer of these kinds.
#[derive(Debug)]
pub(super) struct Timers {
    running: Option<(TimerKind, Countdown)>,
    /// What is in the wheel: a timer that nothing waits for any more stays there (inet_csk_clear_xmit_timer()).
    in_wheel: Countdown,
    /// What happens now is what an expired timer causes.
    is_in_handler: bool,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            running: None,
            in_wheel: Countdown::NEVER,
            is_in_handler: false,
        }
    }
}

impl Timers {
    #[inline]
    pub(super) fn set(&mut self, kind: TimerKind, now_ns: u64, wait_ns: u64) {
        let timer = Countdown {
            set_ns: now_ns,
            wait_ns,
            is_from_handler: self.is_in_handler,
        };
        if !self.in_wheel.gives_its_place_to(timer) {
            self.in_wheel = timer;
        }
        self.running = Some((kind, self.in_wheel));
    }

    /// The handler of an expired timer begins or ends.
    pub(super) fn set_in_handler(&mut self, is_in_handler: bool) {
        self.is_in_handler = is_in_handler;
        if is_in_handler {
            self.in_wheel = Countdown::NEVER;
        }
    }

    pub(super) fn stop(&mut self) {
        self.running = None;
    }

    /// When the timer expires; [`NEVER_NS`]: it does not run.
    pub(super) fn expires_ns(&self) -> u64 {
        self.running
            .map_or(NEVER_NS, |(_, timer)| timer.expires_ns())
    }

    /// A lower bound of [`Self::expires_ns`], cheaper to compute.
    #[inline]
    pub(super) fn lower_bound_ns(&self) -> u64 {
        self.running
            .map_or(NEVER_NS, |(_, timer)| timer.lower_bound_ns())
    }

    /// What the timer waited for, if it has expired. It keeps running.
    pub(super) fn expired(&self, now_ns: u64) -> Option<TimerKind> {
        let (kind, timer) = self.running?;
        (timer.expires_ns() <= now_ns).then_some(kind)
    }

    /// Whether it runs, whatever for.
    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Whether it waits to probe a closed window.
    pub(super) fn awaits_window(&self) -> bool {
        matches!(self.running, Some((TimerKind::WindowProbe, _)))
    }

    /// Whether it runs, and not for a loss probe.
    #[inline]
    pub(super) fn awaits_loss(&self) -> bool {
        matches!(self.running, Some((kind, _)) if kind != TimerKind::LossProbe)
    }

    /// Whether it waits for reordered packets.
    pub(super) fn awaits_reordered(&self) -> bool {
        matches!(self.running, Some((TimerKind::Reorder, _)))
    }

    /// tcp_rearm_rto(): restarts the retransmission timer. After a probe or reordering timer, the time since
    /// the first packet was sent counts.
    #[inline]
    pub(super) fn restart(&mut self, timeout: Timeout) {
        let counts_from_first = matches!(
            self.running,
            Some((TimerKind::LossProbe | TimerKind::Reorder, _))
        );
        let wait_ns = match counts_from_first {
            true => timeout.left_ns().max(OVERDUE_NS),
            false => timeout.timeout_ns,
        };
        self.set(TimerKind::Retransmit, timeout.now_ns, wait_ns);
    }

    /// tcp_schedule_loss_probe(): after two RTTs, or the timeout if that is sooner and not overdue (0).
    #[inline]
    pub(super) fn schedule_probe(
        &mut self,
        now_ns: u64,
        srtt_us: u32,
        is_one_packet: bool,
        timeout_ns: u64,
    ) {
        let slack_ns = match is_one_packet {
            true => PROBE_SLACK_ALONE_NS,
            false => PROBE_SLACK_NS,
        };
        let quiet_ns = 2 * u64::from(srtt_us) * 1000 + slack_ns;
        let wait_ns = match timeout_ns {
            0 => quiet_ns,
            _ => timeout_ns.min(quiet_ns),
        };
        self.set(TimerKind::LossProbe, now_ns, wait_ns);
    }

    /// tcp_rack_mark_lost(): packets are lost if nothing is heard of them for this long.
    pub(super) fn await_reordered(&mut self, now_ns: u64, wait_us: u64) {
        let wait_ns = (wait_us + TIMEOUT_MIN_US) * 1000;
        self.set(TimerKind::Reorder, now_ns, wait_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = NS_PER_MS;
    /// On a tick of Linux's timer wheel.
    const NOW: u64 = 4_000 * MS;

    fn timeout(first_sent_ns: u64) -> Timeout {
        Timeout {
            now_ns: NOW,
            timeout_ns: 240 * MS,
            first_sent_ns,
        }
    }

    #[test]
    fn a_probe_waits_for_two_rtts_and_for_a_delayed_ack_of_a_single_packet() {
        // RFC 8985 section 7.2, with Linux's 2 ms in place of the draft's constants.
        for (is_one, timeout_ns, wait_ns) in [
            (false, 240 * MS, 82 * MS),
            (true, 400 * MS, 280 * MS),
            (true, 240 * MS, 240 * MS),
            (true, 0, 280 * MS),
        ] {
            let mut timers = Timers::default();
            timers.schedule_probe(NOW, 40_000, is_one, timeout_ns);
            assert_eq!(timers.lower_bound_ns(), NOW + wait_ns);
            assert!(!timers.awaits_loss());
        }
    }

    #[test]
    fn after_a_probe_the_timeout_counts_from_the_first_packet() {
        let mut timers = Timers::default();
        timers.restart(timeout(NOW - 100 * MS));
        assert_eq!(timers.lower_bound_ns(), NOW + 240 * MS);
        timers.schedule_probe(NOW, 40_000, false, 240 * MS);
        timers.restart(timeout(NOW - 100 * MS));
        assert_eq!(timers.lower_bound_ns(), NOW + 140 * MS);
        timers.await_reordered(NOW, 10);
        timers.restart(timeout(NOW - 500 * MS));
        assert_eq!(timers.lower_bound_ns(), NOW + OVERDUE_NS);
    }

    #[test]
    fn reordered_packets_get_two_milliseconds_beyond_their_window() {
        let mut timers = Timers::default();
        timers.await_reordered(NOW, 10_000);
        assert_eq!(timers.lower_bound_ns(), NOW + 12 * MS);
        assert!(timers.awaits_reordered() && timers.awaits_loss());
    }

    #[test]
    fn a_timer_that_is_set_again_for_the_same_tick_keeps_its_bucket() {
        // mod_timer() of kernel/time/timer.c; script 9001-151 of the differential test.
        let set_again = |clears: bool| {
            let mut timers = Timers::default();
            // 63 ticks are the first wait of the second level, whose buckets have eight ticks.
            timers.set(TimerKind::Retransmit, NOW - MS, 63 * 4 * MS);
            if clears {
                timers.stop();
            }
            timers.set(TimerKind::Retransmit, NOW, 62 * 4 * MS);
            timers.expires_ns()
        };
        let mut fresh = Timers::default();
        fresh.set(TimerKind::Retransmit, NOW, 62 * 4 * MS);
        assert_eq!(fresh.expires_ns(), NOW + 63 * 4 * MS);
        // NOW is tick 1000, and 1062 is in the bucket that expires at 1064.
        assert_eq!(set_again(false), NOW + 64 * 4 * MS);
        assert_eq!(set_again(true), NOW + 64 * 4 * MS);
    }

    #[test]
    fn the_timer_expires_never_before_its_time_and_only_if_it_runs() {
        let mut timers = Timers::default();
        assert_eq!(
            (timers.expires_ns(), timers.lower_bound_ns()),
            (NEVER_NS, NEVER_NS)
        );
        timers.set(TimerKind::Retransmit, NOW, 10 * MS);
        assert_eq!(timers.expired(NOW + 10 * MS - 1), None);
        let at_ns = timers.expires_ns();
        assert!(at_ns >= NOW + 10 * MS);
        assert_eq!(timers.expired(at_ns), Some(TimerKind::Retransmit));
        timers.stop();
        assert_eq!(timers.expired(u64::MAX - 1), None);
    }
}
