//! Whether a reduction of the window was spurious (Eifel, RFC 3522, and DSACK, RFC 3708): tcp_may_undo() of
//! tcp_input.c.

const NS_PER_MS: u64 = 1_000_000;

/// What an undo needs to know of an episode of recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// The first unacknowledged packet when the episode began; `None`: it cannot be undone.
    marker: Option<u32>,
    /// Retransmissions that no DSACK has reported; -1: there were none, so the count cannot fall to 0.
    unreported: i32,
    /// When the first retransmission of this episode was sent; 0: none was (retrans_stamp).
    first_ns: u64,
    /// The threshold to restore; 0: none.
    prior_ssthresh: u32,
    /// Packets that DSACKs reported in the connection's life (dsack_dups).
    duplicates: u64,
}

impl Undo {
    /// tcp_init_undo(): an episode begins with retransmissions in flight, loss probes included.
    pub(super) fn begin(&mut self, una: u32, retransmissions: u32) {
        self.marker = Some(una);
        self.unreported = match retransmissions {
            0 => -1,
            count => count as i32,
        };
    }

    /// The episode cannot be undone, or has been.
    pub(super) fn end(&mut self) {
        self.marker = None;
    }

    /// Whether the episode can be undone.
    #[inline]
    pub(super) fn is_possible(&self) -> bool {
        self.marker.is_some()
    }

    /// Whether packets just before `end` are of the episode, and it can be undone.
    pub(super) fn covers(&self, end: u32) -> bool {
        self.marker.is_some_and(|marker| end > marker)
    }

    /// What an undo will restore; 0: nothing.
    pub(super) fn set_ssthresh(&mut self, ssthresh: u32) {
        self.prior_ssthresh = ssthresh;
    }

    pub(super) fn ssthresh(&self) -> u32 {
        self.prior_ssthresh
    }

    /// Packets are sent again.
    pub(super) fn sent_again(&mut self, packets: u32, at_ns: u64) {
        self.unreported = self.unreported.max(0) + packets as i32;
        if self.first_ns == 0 {
            self.first_ns = at_ns;
        }
    }

    /// No retransmission is out.
    pub(super) fn forget_retransmissions(&mut self) {
        self.first_ns = 0;
    }

    /// A DSACK reports packets. False if more were reported than sent again, so the network duplicated them.
    pub(super) fn count_duplicates(&mut self, packets: u32, retransmissions: u64) -> bool {
        self.duplicates += u64::from(packets);
        packets > 0 && self.duplicates <= retransmissions
    }

    /// Packets that DSACKs reported.
    pub(super) fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Packets up to `end` that were sent again arrived twice (tcp_check_dsack()).
    pub(super) fn retransmission_was_needless(&mut self, end: u32, packets: u32) {
        if self.covers(end) && self.unreported > 0 {
            self.unreported = (self.unreported - packets as i32).max(0);
        }
    }

    /// Whether DSACKs reported every retransmission.
    pub(super) fn all_were_needless(&self) -> bool {
        self.marker.is_some() && self.unreported == 0
    }

    /// tcp_packet_delayed(): nothing was retransmitted, or the ACK echoes a timestamp from before the first
    /// retransmission.
    pub(super) fn was_delayed(&self, echo_ns: u64) -> bool {
        self.first_ns == 0 || echoes_before(echo_ns, self.first_ns)
    }

    /// tcp_may_undo(): the packet was delayed, or every retransmission needless.
    pub(super) fn was_spurious(&self, echo_ns: u64) -> bool {
        self.all_were_needless() || self.is_possible() && self.was_delayed(echo_ns)
    }
}

/// tcp_tsopt_ecr_before(): whether the timestamp echo, in milliseconds, is older than `at_ns`.
pub(in crate::sender) fn echoes_before(echo_ns: u64, at_ns: u64) -> bool {
    echo_ns > 0 && echo_ns / NS_PER_MS < at_ns / NS_PER_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = NS_PER_MS;

    #[test]
    fn an_echo_from_before_the_first_retransmission_shows_that_it_was_spurious() {
        // RFC 3522 section 3.2, with timestamps in milliseconds.
        let mut undo = Undo::default();
        undo.begin(5, 0);
        undo.sent_again(1, 100 * MS + 7);
        undo.sent_again(1, 300 * MS);
        assert!(undo.was_spurious(100 * MS - 1));
        assert!(!undo.was_spurious(100 * MS + 1));
        assert!(!undo.was_spurious(0), "no timestamps");
        undo.end();
        assert!(!undo.was_spurious(100 * MS - 1));
    }

    #[test]
    fn dsacks_of_all_retransmissions_show_that_none_was_needed() {
        let mut undo = Undo::default();
        undo.begin(5, 1);
        undo.sent_again(2, 100 * MS);
        for end in [7, 8] {
            undo.retransmission_was_needless(end, 1);
            assert!(!undo.all_were_needless());
        }
        undo.retransmission_was_needless(5, 1);
        assert!(!undo.all_were_needless(), "from before the episode");
        undo.retransmission_was_needless(9, 1);
        assert!(undo.all_were_needless());
    }

    #[test]
    fn an_episode_without_retransmissions_is_not_undone_by_dsacks() {
        let mut undo = Undo::default();
        undo.begin(5, 0);
        undo.retransmission_was_needless(9, 1);
        assert!(!undo.all_were_needless());
        undo.sent_again(1, 100 * MS);
        undo.retransmission_was_needless(9, 1);
        assert!(undo.all_were_needless());
    }

    #[test]
    fn more_duplicates_than_retransmissions_come_from_the_network() {
        let mut undo = Undo::default();
        assert!(undo.count_duplicates(2, 2));
        assert!(!undo.count_duplicates(1, 2));
        assert!(!undo.count_duplicates(0, 9));
    }
}
