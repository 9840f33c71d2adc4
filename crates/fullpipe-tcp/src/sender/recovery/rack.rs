//! Loss detection by time: RACK (RFC 8985 section 6.2, tcp_recovery.c). `reordering.rs` has its reordering
//! window.

use crate::sender::scoreboard::{is_later, Sent, EVER_RETRANS};

/// RACK's state (RFC 8985 section 5.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// The newest transmission that was delivered, and the RTT that it had.
    newest: u32,
    rtt_us: u64,
    /// Of the packet delivered last: when it was sent, by which reading of the clock, and its serial number.
    last_ns: u64,
    last_reading: u8,
    last_order: u32,
    /// Packets have to be examined: something was delivered since, or an undo cleared the marks.
    is_due: bool,
}

/// What RACK says of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It was sent after all that were delivered.
    TooNew,
    Lost,
    /// It is lost if nothing is heard of it for this long.
    WaitUs(u64),
}

impl Rack {
    /// tcp_rack_advance(): a packet was delivered; keeps the one that was sent last.
    #[inline]
    pub(super) fn delivered(&mut self, sent: &Sent, now_ns: u64, min_rtt_us: u32) {
        let rtt_us = now_ns.saturating_sub(sent.at_ns) / 1000;
        // Faster than the minimum RTT: the original was delivered, not the retransmission.
        if sent.flags & EVER_RETRANS != 0 && rtt_us < u64::from(min_rtt_us) {
            return;
        }
        self.is_due = true;
        self.rtt_us = rtt_us;
        self.last_ns = sent.at_ns;
        self.last_reading = sent.reading;
        self.last_order = sent.order;
        if is_later(sent.order, self.newest) {
            self.newest = sent.order;
        }
    }

    /// Whether a packet was sent at the same time as the one delivered last, but later: a kernel's clock goes on
    /// between the bursts of a write, and between retransmissions and new data (tcp_mstamp_refresh()).
    fn is_just_behind(&self, sent: &Sent) -> bool {
        sent.at_ns == self.last_ns
            && sent.reading != self.last_reading
            && is_later(sent.order, self.last_order)
    }

    /// All packets are examined anew.
    pub(super) fn examine_again(&mut self) {
        self.is_due = true;
    }

    /// Whether packets have to be examined; they are then.
    pub(super) fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.is_due)
    }

    /// The newest transmission that was delivered.
    pub(super) fn newest(&self) -> u32 {
        self.newest
    }

    /// RTT of the packet delivered last.
    pub(super) fn rtt_us(&self) -> u64 {
        self.rtt_us
    }

    /// A packet that is neither delivered nor marked lost is lost if it was sent an RTT and a reordering
    /// window before now, and before the newest delivered one (tcp_rack_detect_loss()).
    #[inline]
    pub(super) fn judge(&self, sent: &Sent, now_ns: u64, window_us: u64) -> Verdict {
        if !is_later(self.newest, sent.order) {
            return Verdict::TooNew;
        }
        let age_us = now_ns.saturating_sub(sent.at_ns) / 1000;
        let limit_us = self.rtt_us + window_us + u64::from(self.is_just_behind(sent));
        match age_us >= limit_us {
            true => Verdict::Lost,
            false => Verdict::WaitUs(limit_us - age_us),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn sent(order: u32, at_ns: u64) -> Sent {
        let mut sent = Sent::first_of(1, at_ns, 0, 0);
        sent.order = order;
        sent
    }

    /// Transmission 5, sent at 10 ms, is delivered at 50 ms.
    fn rack() -> Rack {
        let mut rack = Rack::default();
        rack.delivered(&sent(5, 10 * MS), 50 * MS, 40_000);
        rack
    }

    fn sent_again(order: u32, at_ns: u64) -> Sent {
        let mut sent = sent(order, at_ns);
        sent.flags = EVER_RETRANS;
        sent
    }

    #[test]
    fn a_packet_of_the_next_burst_of_a_write_was_sent_later_than_one_of_the_burst_before() {
        // The RTT is that of the packet delivered last, even if another one was sent later (tcp_rack_advance()):
        // script 9012-128 of the differential test.
        let of = |order, reading| {
            let mut sent = sent(order, 10 * MS);
            sent.reading = reading;
            sent
        };
        let mut rack = Rack::default();
        rack.delivered(&of(6, 3), 50 * MS, 40_000);
        rack.delivered(&of(2, 1), 50 * MS, 40_000);
        assert_eq!(rack.judge(&of(3, 2), 50 * MS, 0), Verdict::WaitUs(1));
        assert_eq!(rack.judge(&of(3, 1), 50 * MS, 0), Verdict::Lost);
        assert_eq!(rack.judge(&of(1, 0), 50 * MS, 0), Verdict::Lost);
    }

    #[test]
    fn a_packet_sent_an_rtt_and_the_window_before_now_is_lost() {
        let rack = rack();
        let old = sent(3, 5 * MS);
        assert_eq!(rack.judge(&old, 55 * MS, 10_000), Verdict::Lost);
        assert_eq!(rack.judge(&old, 50 * MS, 10_000), Verdict::WaitUs(5_000));
        assert_eq!(rack.judge(&old, 50 * MS, 0), Verdict::Lost);
    }

    #[test]
    fn packets_sent_after_the_newest_delivered_one_are_not_judged() {
        for order in [5, 6, 100] {
            assert_eq!(rack().judge(&sent(order, 0), 900 * MS, 0), Verdict::TooNew);
        }
    }

    #[test]
    fn a_retransmission_that_is_acknowledged_faster_than_the_minimum_rtt_does_not_count() {
        // RFC 8985 section 6.2, step 2: the ACK is the original's.
        let mut rack = rack();
        assert!(rack.take_due() && !rack.take_due());
        rack.delivered(&sent_again(9, 60 * MS), 99 * MS, 40_000);
        assert!(!rack.take_due());
        assert_eq!(rack.judge(&sent(8, 0), 900 * MS, 0), Verdict::TooNew);
        rack.delivered(&sent_again(9, 60 * MS), 101 * MS, 40_000);
        assert_eq!(rack.judge(&sent(8, 0), 900 * MS, 0), Verdict::Lost);
        assert_eq!(rack.rtt_us(), 41_000);
    }
}
