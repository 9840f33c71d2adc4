//! The end of a connection at its receiver: the sender's FIN, and its own.

use fullpipe_ticks::expires_ns;

/// Retries of a closed socket's FIN (sysctl tcp_orphan_retries).
const FIN_RETRIES: u32 = 8;
/// No timer runs.
const NEVER_NS: u64 = u64::MAX;

/// Both FINs.
#[derive(Debug)]
pub(super) struct Closing {
    /// One past the sender's FIN, once that has arrived.
    end: Option<u32>,
    /// How often this side's FIN was sent, and when it is sent again.
    sent: u32,
    timer_ns: u64,
    is_done: bool,
}

impl Closing {
    pub(super) fn new() -> Self {
        Self {
            end: None,
            sent: 0,
            timer_ns: NEVER_NS,
            is_done: false,
        }
    }

    /// The sender's FIN arrived with, or as, packet `number`.
    pub(super) fn fin_arrived(&mut self, number: u32) {
        self.end = Some(number + 1);
    }

    /// Whether the sender's FIN has arrived, with or without all before it.
    #[inline(always)] // for every packet, as below
    pub(super) fn has_begun(&self) -> bool {
        self.end.is_some()
    }

    /// Whether everything has arrived: `next` is the next packet expected.
    #[inline(always)]
    pub(super) fn has_all(&self, next: u32) -> bool {
        self.end == Some(next)
    }

    /// When this side's FIN is sent again; `u64::MAX`: it is not.
    #[inline(always)]
    pub(super) fn timer_ns(&self) -> u64 {
        self.timer_ns
    }

    /// The timer has expired: whether to send the FIN again.
    pub(super) fn expired(&mut self) -> bool {
        self.timer_ns = NEVER_NS;
        self.sent <= FIN_RETRIES
    }

    /// This side's FIN is sent, and will be again after a timeout that doubles.
    pub(super) fn fin_sent(&mut self, now_ns: u64, timeout_ns: u64) {
        if !self.is_done {
            self.timer_ns = expires_ns(now_ns, timeout_ns << self.sent);
            self.sent += 1;
        }
    }

    /// This side's FIN was acknowledged.
    pub(super) fn acked(&mut self) {
        self.is_done = true;
        self.timer_ns = NEVER_NS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_fin_is_sent_nine_times_with_doubling_timeouts() {
        let mut closing = Closing::new();
        let (mut now_ns, mut sent) = (0, 0);
        loop {
            closing.fin_sent(now_ns, 200 * MS);
            sent += 1;
            let wait_ns = closing.timer_ns() - now_ns;
            // Timers expire at a tick, no earlier.
            assert!(wait_ns >= (200 * MS) << (sent - 1), "{sent}");
            now_ns = closing.timer_ns();
            if !closing.expired() {
                break;
            }
        }
        assert_eq!(sent, 9);
    }

    #[test]
    fn an_acknowledged_fin_is_sent_again_only_on_request() {
        let mut closing = Closing::new();
        closing.fin_arrived(6);
        assert!(closing.has_begun() && closing.has_all(7) && !closing.has_all(6));
        closing.fin_sent(0, 200 * MS);
        closing.acked();
        closing.fin_sent(MS, 200 * MS);
        assert_eq!(closing.timer_ns(), NEVER_NS);
    }
}
