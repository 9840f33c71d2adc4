//! When an ACK may wait: delayed and quick ACKs. tcp_event_data_recv(), tcp_enter_quickack_mode() and
//! tcp_send_delayed_ack(). Must never know what the ACK says.

use crate::countdown::Countdown;

const NS_PER_MS: u64 = 1_000_000;
/// Linux TCP_ATO_MIN, TCP_DELACK_MIN.
pub(super) const ATO_MIN_NS: u64 = 40 * NS_PER_MS;
/// Linux TCP_DELACK_MAX.
const DELACK_MAX_NS: u64 = 200 * NS_PER_MS;
/// Linux TCP_MAX_QUICKACKS.
pub(super) const MAX_QUICKACKS: u32 = 16;
/// Retransmission timeout before any sample (RFC 6298); Linux's least deviation is a fifth of it.
const FIRST_TIMEOUT_NS: u64 = 1000 * NS_PER_MS;

/// Delayed ACKs of one connection.
#[derive(Debug)]
pub(super) struct DelayedAck {
    mss_bytes: u32,
    /// Packets that are acknowledged at once.
    quick: u32,
    /// How long an ACK may be delayed (icsk_ack.ato); 0 before the first packet.
    ato_ns: u64,
    last_data_ns: u64,
    timer: Countdown,
    /// The next ACK must not be delayed (ICSK_ACK_NOW).
    is_urgent: bool,
    /// A PSH arrived since the last ACK (ICSK_ACK_PUSHED).
    was_pushed: bool,
    /// RTT of the handshake, the only sample of an end that sends no data (tp->srtt_us); `u64::MAX`: none.
    handshake_rtt_ns: u64,
}

impl DelayedAck {
    pub(super) fn new(mss_bytes: u32) -> Self {
        Self {
            mss_bytes,
            quick: 0,
            ato_ns: 0,
            last_data_ns: 0,
            timer: Countdown::NEVER,
            is_urgent: false,
            was_pushed: false,
            handshake_rtt_ns: u64::MAX,
        }
    }

    /// The handshake is done; `rtt_ns` is its RTT, if it was measured.
    pub(super) fn established(&mut self, now_ns: u64, rtt_ns: Option<u64>) {
        self.handshake_rtt_ns = rtt_ns.unwrap_or(u64::MAX);
        self.last_data_ns = now_ns;
    }

    /// RTT of the handshake; `u64::MAX`: none.
    pub(super) fn handshake_rtt_ns(&self) -> u64 {
        self.handshake_rtt_ns
    }

    /// The receiver's own retransmission timeout (icsk_rto), from the handshake's RTT.
    pub(super) fn timeout_ns(&self) -> u64 {
        match self.handshake_rtt_ns {
            u64::MAX => FIRST_TIMEOUT_NS,
            rtt_ns => rtt_ns + FIRST_TIMEOUT_NS / 5,
        }
    }

    #[inline(always)] // for every packet
    pub(super) fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    /// The next ACK must not be delayed.
    #[inline(always)]
    pub(super) fn hurry(&mut self) {
        self.is_urgent = true;
    }

    /// A packet arrived that makes the window grow: it is acknowledged at once (tcp_grow_window()).
    #[inline(never)] // until the window has grown
    pub(super) fn hurry_window(&mut self) {
        self.quick |= 1;
    }

    /// Whether the last packet is to be acknowledged without delay, if one packet is unacknowledged.
    #[inline(always)]
    pub(super) fn acks_at_once(&self) -> bool {
        self.quick > 0 || self.is_urgent
    }

    /// A PSH arrived that reading is to acknowledge.
    pub(super) fn push(&mut self) {
        self.was_pushed = true;
    }

    pub(super) fn was_pushed(&self) -> bool {
        self.was_pushed
    }

    /// tcp_event_data_recv(): a packet arrived; adapts how long ACKs may be delayed.
    #[inline(always)]
    pub(super) fn data_arrived(&mut self, now_ns: u64, window_bytes: u64) {
        if self.ato_ns == 0 {
            self.quick = self.quickacks(window_bytes, MAX_QUICKACKS);
            self.ato_ns = ATO_MIN_NS;
        } else {
            let gap_ns = now_ns - self.last_data_ns;
            if gap_ns <= ATO_MIN_NS / 2 {
                self.ato_ns = self.ato_ns / 2 + ATO_MIN_NS / 2;
            } else {
                self.data_arrived_late(gap_ns, window_bytes);
            }
        }
        self.last_data_ns = now_ns;
    }

    #[inline(never)] // packets are mostly closer together
    fn data_arrived_late(&mut self, gap_ns: u64, window_bytes: u64) {
        if gap_ns < self.ato_ns {
            self.ato_ns = (self.ato_ns / 2 + gap_ns).min(self.timeout_ns());
        } else if gap_ns > self.timeout_ns() {
            // After a pause the sender is probably in slow start again.
            self.quick = self.quick.max(self.quickacks(window_bytes, MAX_QUICKACKS));
        }
    }

    /// tcp_enter_quickack_mode(): an ACK may have been lost, or the sender may wait for one.
    pub(super) fn enter_quick_mode(&mut self, window_bytes: u64, most: u32) {
        self.quick = self.quick.max(self.quickacks(window_bytes, most));
        self.ato_ns = ATO_MIN_NS;
    }

    /// No more quick ACKs: memory is short.
    #[inline(always)]
    pub(super) fn leave_quick_mode(&mut self) {
        self.quick = 0;
    }

    /// tcp_incr_quickack(): as many ACKs as half the window has packets, but not none.
    fn quickacks(&self, window_bytes: u64, most: u32) -> u32 {
        match window_bytes / (2 * u64::from(self.mss_bytes)) {
            0 => 2,
            packets => packets.min(u64::from(most)) as u32,
        }
    }

    /// tcp_send_delayed_ack(): the ATO, but no more than an RTT if that is known, and at least its minimum.
    #[inline(always)]
    pub(super) fn wait_ns(&self) -> u64 {
        match self.ato_ns > ATO_MIN_NS {
            true => self.ato_ns.min(self.longest_wait_ns()),
            false => ATO_MIN_NS,
        }
    }

    #[inline(never)] // packets are mostly closer together
    fn longest_wait_ns(&self) -> u64 {
        self.handshake_rtt_ns.clamp(ATO_MIN_NS, DELACK_MAX_NS)
    }

    /// Delays an ACK, unless one is delayed already.
    #[inline(always)]
    pub(super) fn delay(&mut self, now_ns: u64, wait_ns: u64) {
        if !self.timer.runs() {
            self.timer = Countdown {
                is_from_handler: false,
                set_ns: now_ns,
                wait_ns,
            };
        }
    }

    /// Whether an ACK is delayed.
    #[inline(always)]
    pub(super) fn is_delaying(&self) -> bool {
        self.timer.runs()
    }

    /// When the delayed ACK is sent at the latest; `u64::MAX`: none is delayed.
    pub(super) fn expires_ns(&self) -> u64 {
        match self.timer.runs() {
            true => self.timer.expires_ns(),
            false => u64::MAX,
        }
    }

    /// A lower bound of [`Self::expires_ns`], cheaper to compute.
    #[inline(always)]
    pub(super) fn lower_bound_ns(&self) -> u64 {
        self.timer.lower_bound_ns()
    }

    /// tcp_delack_timer_handler(): no second packet hastened the delayed ACK.
    pub(super) fn expired(&mut self) {
        self.ato_ns = (2 * self.ato_ns).min(self.timeout_ns());
    }

    /// An ACK is sent.
    #[inline(always)]
    pub(super) fn ack_sent(&mut self) {
        self.is_urgent = false;
        self.was_pushed = false;
        if self.quick > 0 {
            self.quick -= 1;
            // tcp_dec_quickack_mode(). A connection whose first packet arrived beyond a hole gets no quick
            // ACKs of its start.
            if self.quick == 0 {
                self.ato_ns = ATO_MIN_NS;
            }
        }
        self.timer = Countdown::NEVER;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = NS_PER_MS;
    const WINDOW: u64 = 65_160;

    fn started() -> DelayedAck {
        let mut delay = DelayedAck::new(1448);
        delay.established(0, Some(80 * MS));
        delay.data_arrived(0, WINDOW);
        delay
    }

    #[test]
    fn a_connection_begins_with_quick_acks_for_half_a_window_and_at_most_16() {
        // tcp_incr_quickack().
        for (window_bytes, count) in [(WINDOW, 16), (10 * 1448, 5), (2 * 1448, 1), (1448, 2)] {
            let mut delay = DelayedAck::new(1448);
            delay.data_arrived(0, window_bytes);
            for _ in 0..count {
                assert!(delay.acks_at_once());
                delay.ack_sent();
            }
            assert!(!delay.acks_at_once(), "{window_bytes}");
        }
    }

    #[test]
    fn the_ato_follows_the_gap_between_packets_up_to_an_rtt() {
        let mut delay = started();
        assert_eq!(delay.wait_ns(), 40 * MS);
        delay.data_arrived(30 * MS, WINDOW);
        assert_eq!(delay.wait_ns(), 50 * MS);
        delay.data_arrived(75 * MS, WINDOW);
        assert_eq!(delay.wait_ns(), 70 * MS);
        delay.data_arrived(140 * MS, WINDOW);
        assert_eq!(delay.wait_ns(), 80 * MS, "an RTT");
        delay.data_arrived(141 * MS, WINDOW);
        assert_eq!(delay.wait_ns(), 70 * MS, "half of 100 and half of 40");
    }

    #[test]
    fn the_ato_may_exceed_the_longest_delay_and_is_bounded_by_the_timeout() {
        // tcp_event_data_recv() and tcp_delack_timer_handler() bound it by icsk_rto, tcp_send_delayed_ack() the
        // delay by TCP_DELACK_MAX. The timeout is 280 ms.
        let mut delay = started();
        for _ in 0..3 {
            delay.expired();
        }
        assert_eq!(delay.ato_ns, 280 * MS);
        delay.data_arrived(270 * MS, WINDOW);
        assert_eq!(delay.ato_ns, 280 * MS, "half of 280 and 270");
        assert_eq!(delay.wait_ns(), 80 * MS);
    }

    #[test]
    fn after_a_pause_of_a_timeout_acks_are_quick_again() {
        let mut delay = started();
        for _ in 0..16 {
            delay.ack_sent();
        }
        delay.data_arrived(280 * MS, WINDOW);
        assert!(!delay.acks_at_once(), "exactly the timeout");
        delay.data_arrived(561 * MS, WINDOW);
        assert!(delay.acks_at_once());
    }

    #[test]
    fn a_delayed_ack_keeps_its_first_deadline() {
        let mut delay = started();
        delay.delay(0, 40 * MS);
        delay.delay(10 * MS, 40 * MS);
        assert_eq!(delay.lower_bound_ns(), 40 * MS);
        assert!(delay.expires_ns() >= 40 * MS);
        delay.ack_sent();
        assert_eq!((delay.is_delaying(), delay.expires_ns()), (false, u64::MAX));
    }

    #[test]
    fn an_ack_that_no_second_packet_hastened_doubles_the_ato_up_to_200_ms() {
        let mut delay = DelayedAck::new(1448);
        delay.data_arrived(0, WINDOW);
        let waits: Vec<_> = (0..4)
            .map(|_| {
                delay.expired();
                delay.wait_ns() / MS
            })
            .collect();
        assert_eq!(waits, [80, 160, 200, 200]);
    }
}
