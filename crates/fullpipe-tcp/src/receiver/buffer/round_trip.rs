//! The receiver's own round trips: how long one lasts, and what is read in it. tcp_rcv_rtt_update() and
//! tcp_rcv_space_adjust() of tcp_input.c. Must never know the size of the buffer.

use crate::packet::Data;
use crate::rules::Rules;

use super::unread::Unread;

const NS_PER_US: u64 = 1000;
const NS_PER_MS: u64 = 1_000_000;
/// There is no RTT sample yet.
const NEVER_NS: u64 = u64::MAX;
/// No timestamp was echoed: differs from any by more than a millisecond.
const NO_ECHO_NS: u64 = u64::MAX - NS_PER_MS;

/// The present round trip, and the RTT.
#[derive(Debug)]
pub(super) struct RoundTrip {
    mss_bytes: u64,
    rules: Rules,
    /// The last timestamp echo, in whole milliseconds (rcv_rtt_last_tsecr).
    echoed_ns: u64,
    /// Eight times the RTT (rcv_rtt_est).
    rtt_us8: u64,
    /// Bytes read in an RTT; the packet and time from which the next RTT is counted (rcvq_space).
    space_bytes: u64,
    from: u32,
    since_us: u64,
    /// When that RTT ends.
    ends_ns: u64,
}

impl RoundTrip {
    pub(super) fn new(mss_bytes: u64, rules: Rules, space_bytes: u64) -> Self {
        Self {
            mss_bytes,
            rules,
            echoed_ns: NO_ECHO_NS,
            rtt_us8: 0,
            space_bytes,
            from: 0,
            since_us: 0,
            ends_ns: NEVER_NS,
        }
    }

    /// A round trip begins now.
    pub(super) fn restart(&mut self, now_ns: u64) {
        self.since_us = now_ns / NS_PER_US;
        self.ends_ns = match self.rtt_us8 {
            0 => NEVER_NS,
            _ => self.end_ns(),
        };
    }

    fn end_ns(&self) -> u64 {
        (self.since_us + self.rtt_us8 / 8) * NS_PER_US
    }

    /// The round trip is over; packets up to `read_next` were read.
    pub(super) fn end(&mut self, now_ns: u64, read_next: u32) {
        self.from = read_next;
        self.restart(now_ns);
    }

    /// Whether the round trip is over.
    #[inline(always)] // for every packet
    pub(super) fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.ends_ns
    }

    /// The RTT; 0 before the first sample.
    pub(super) fn rtt_ns(&self) -> u64 {
        self.rtt_us8 * NS_PER_US / 8
    }

    /// Bytes read in the best round trip so far.
    pub(super) fn space_bytes(&self) -> u64 {
        self.space_bytes
    }

    /// More was read.
    pub(super) fn set_space(&mut self, bytes: u64) {
        self.space_bytes = bytes;
    }

    /// The window holds no more than this.
    pub(super) fn limit_space(&mut self, bytes: u64) {
        self.space_bytes = self.space_bytes.min(bytes);
    }

    /// Bytes read in this round trip: packets up to `read_next` are read, and those up to `next` are there.
    pub(super) fn copied_bytes(&self, read_next: u32, next: u32) -> u64 {
        let copied = u64::from(read_next - self.from) * self.mss_bytes;
        let unread = u64::from(next - read_next) * self.mss_bytes;
        match self.rules.excludes_unread_from_copied() {
            true => copied.saturating_sub(unread),
            false => copied,
        }
    }

    /// tcp_rcv_rtt_measure_ts(): one sample for each new timestamp echo, in milliseconds.
    #[inline(always)] // for every packet
    pub(super) fn measure(&mut self, now_ns: u64, data: &Data, unread: &Unread) {
        if data.echo_ns.wrapping_sub(self.echoed_ns) >= NS_PER_MS {
            self.sample(now_ns, data, unread.has_data());
        }
    }

    #[inline(never)] // once a millisecond at most
    fn sample(&mut self, now_ns: u64, data: &Data, has_unread: bool) {
        if data.echo_ns == 0 {
            return; // no echo
        }
        let echo_ms = data.echo_ns / NS_PER_MS;
        self.echoed_ns = echo_ms * NS_PER_MS;
        if u64::from(data.payload_bytes) < self.mss_bytes {
            return;
        }
        let mut sample_ms = (now_ns / NS_PER_MS).saturating_sub(echo_ms);
        if sample_ms == 0 {
            if self.rules.ignores_rcv_rtt_below_1_ms() {
                return;
            }
            sample_ms = 1;
        }
        let sample_us = sample_ms * NS_PER_MS / NS_PER_US;
        let is_less = 8 * sample_us < self.rtt_us8 && self.rules.rcv_rtt_falls_at_once();
        let may_rise = self.rtt_us8 == 0 || !has_unread || !self.rules.rcv_rtt_ignores_queued();
        if !is_less && !may_rise {
            return;
        }
        // tcp_rcv_rtt_update() with timestamps: a moving average. A minimum would starve a flow that fills
        // a deep buffer.
        self.rtt_us8 = match self.rtt_us8 {
            0 => 8 * sample_us,
            _ if is_less => 8 * sample_us,
            smoothed => smoothed - smoothed / 8 + sample_us,
        };
        self.ends_ns = self.end_ns();
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_plan::Kernel;

    use super::*;

    const MS: u64 = NS_PER_MS;

    fn trip(kernel: Kernel) -> RoundTrip {
        RoundTrip::new(1448, kernel.into(), 14_480)
    }

    fn echo(echo_ns: u64) -> Data {
        Data {
            echo_ns,
            payload_bytes: 1448,
            ..Data::default()
        }
    }

    fn measure(trip: &mut RoundTrip, echo_ns: u64, rtt_ns: u64) -> u64 {
        trip.measure(echo_ns + rtt_ns, &echo(echo_ns), &Unread::new(1448));
        trip.rtt_ns()
    }

    #[test]
    fn a_larger_rtt_counts_for_an_eighth_and_a_smaller_one_at_once_in_later_kernels() {
        for (kernel, fallen_us) in [(Kernel::Linux6_12, 39_875), (Kernel::Linux6_12_117, 32_000)] {
            let mut trip = trip(kernel);
            assert_eq!(measure(&mut trip, 100 * MS, 40 * MS), 40 * MS);
            assert_eq!(measure(&mut trip, 102 * MS, 48 * MS), 41 * MS);
            let rtt_ns = measure(&mut trip, 104 * MS, 32 * MS);
            assert_eq!(rtt_ns, fallen_us * NS_PER_US, "{kernel:?}");
        }
    }

    #[test]
    fn an_echo_counts_once() {
        let mut trip = trip(Kernel::default());
        measure(&mut trip, 100 * MS, 40 * MS);
        assert_eq!(measure(&mut trip, 100 * MS + 10, 90 * MS), 40 * MS);
    }

    #[test]
    fn a_round_trip_ends_an_rtt_after_it_began() {
        let mut trip = trip(Kernel::default());
        trip.restart(50 * MS);
        assert!(!trip.is_over(u64::MAX - 1), "there is no sample");
        measure(&mut trip, 60 * MS, 40 * MS);
        assert!(!trip.is_over(90 * MS - 1) && trip.is_over(90 * MS));
        trip.end(100 * MS, 7);
        assert!(!trip.is_over(140 * MS - 1) && trip.is_over(140 * MS));
    }

    #[test]
    fn what_is_still_unread_does_not_count_since_6_12_117() {
        for (kernel, packets) in [(Kernel::Linux6_12, 10), (Kernel::Linux6_12_117, 7)] {
            assert_eq!(trip(kernel).copied_bytes(10, 13), packets * 1448);
        }
    }
}
