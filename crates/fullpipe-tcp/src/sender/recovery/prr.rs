//! Proportional rate reduction: how the window falls to its new threshold (RFC 6937 with its slow-start
//! bound, tcp_cwnd_reduction() of tcp_input.c).

/// What an ACK says to a reduction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Packets that it delivered.
    pub(super) delivered: u32,
    /// It made the first unacknowledged packet advance, and nothing was marked lost.
    pub(super) is_clean: bool,
    /// Packets in flight after it.
    pub(super) inflight: u32,
}

/// One reduction of the window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    /// The window before it.
    prior_cwnd: u32,
    /// Packets delivered and sent since it began.
    delivered: u32,
    sent: u32,
}

impl Prr {
    /// A reduction of this window begins.
    pub(super) fn begin(&mut self, cwnd: u32) {
        *self = Self {
            prior_cwnd: cwnd,
            ..Self::default()
        };
    }

    /// A timeout begins at this window, which is not reduced bit by bit.
    pub(super) fn note_timeout(&mut self, cwnd: u32) {
        self.prior_cwnd = cwnd;
    }

    /// The window before the reduction.
    pub(super) fn prior_cwnd(&self) -> u32 {
        self.prior_cwnd
    }

    /// Packets are sent.
    #[inline]
    pub(super) fn sent(&mut self, packets: u32) {
        self.sent += packets;
    }

    /// The window after an ACK; `None`: it stays.
    pub(super) fn window(&mut self, progress: Progress, ssthresh: u32) -> Option<u32> {
        let Progress {
            delivered,
            is_clean,
            inflight,
        } = progress;
        if delivered == 0 || self.prior_cwnd == 0 {
            return None;
        }
        self.delivered += delivered;
        let room = i64::from(ssthresh) - i64::from(inflight);
        let mut send = if room < 0 {
            let prior = u64::from(self.prior_cwnd);
            let share = (u64::from(ssthresh) * u64::from(self.delivered)).div_ceil(prior);
            share as i64 - i64::from(self.sent)
        } else {
            let behind = i64::from(self.delivered) - i64::from(self.sent);
            let send = behind.max(i64::from(delivered)) + i64::from(is_clean);
            send.min(room)
        };
        // The first retransmission of an episode is always sent.
        send = send.max(i64::from(self.sent == 0));
        Some(inflight + send.max(0) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(inflight: u32) -> Progress {
        Progress {
            delivered: 1,
            is_clean: false,
            inflight,
        }
    }

    /// A window of 20 after one loss: 19 in flight, the window falls to 10.
    fn begun() -> Prr {
        let mut prr = Prr::default();
        prr.begin(20);
        prr
    }

    #[test]
    fn above_the_threshold_one_packet_is_sent_for_every_two_delivered() {
        // RFC 6937 section 3: sent = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out.
        let (mut prr, mut inflight) = (begun(), 19);
        let mut sent = Vec::new();
        for _ in 0..10 {
            inflight -= 1;
            let window = prr.window(ack(inflight), 10).unwrap();
            sent.push(window - inflight);
            prr.sent(window - inflight);
            inflight = window;
        }
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
    }

    #[test]
    fn below_the_threshold_the_window_grows_by_what_is_delivered_and_one_more_as_in_slow_start() {
        // RFC 6937's PRR-SSRB: MAX(prr_delivered - prr_out, DeliveredData) + MSS, up to ssthresh.
        for (is_clean, expected) in [(false, 6), (true, 7)] {
            let mut prr = begun();
            prr.sent(1);
            let progress = Progress {
                delivered: 2,
                is_clean,
                inflight: 4,
            };
            assert_eq!(prr.window(progress, 10), Some(expected));
        }
        let mut prr = begun();
        prr.sent(1);
        let progress = Progress {
            delivered: 9,
            is_clean: true,
            inflight: 4,
        };
        assert_eq!(prr.window(progress, 10), Some(10));
    }

    #[test]
    fn the_first_retransmission_is_always_sent() {
        let mut prr = begun();
        assert_eq!(prr.window(ack(10), 10), Some(11));
        assert_eq!(begun().window(ack(30), 0), Some(31));
    }

    #[test]
    fn an_ack_that_delivers_nothing_leaves_the_window() {
        let progress = Progress {
            delivered: 0,
            ..ack(5)
        };
        assert_eq!(begun().window(progress, 10), None);
        assert_eq!(Prr::default().window(ack(5), 10), None);
    }
}
