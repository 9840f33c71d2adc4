//! Nagle's algorithm as Minshall changed it (RFC 896, tcp_nagle_check() of tcp_output.c): a short packet waits
//! while another one is unacknowledged, not while any packet is. Must never know what packets carry.

/// Which short packet is out.
#[derive(Debug)]
pub(super) struct Nagle {
    /// TCP_NODELAY is not set.
    is_on: bool,
    /// One past the last short packet that was sent (snd_sml); 0: none was.
    short_end: u32,
}

impl Nagle {
    pub(super) fn new(nodelay: bool) -> Self {
        Self {
            is_on: !nodelay,
            short_end: 0,
        }
    }

    /// Whether a short packet has to wait while packets from `una` on are unacknowledged (tcp_nagle_check()).
    #[inline]
    pub(super) fn holds(&self, una: u32) -> bool {
        self.is_on && self.short_end > una
    }

    /// A short packet is sent (tcp_minshall_update()).
    pub(super) fn sent_short(&mut self, number: u32) {
        self.short_end = number + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_packet_waits_for_the_one_before_and_for_no_full_one() {
        let mut nagle = Nagle::new(false);
        assert!(!nagle.holds(0));
        nagle.sent_short(4);
        assert!(nagle.holds(0) && nagle.holds(4) && !nagle.holds(5));
    }

    #[test]
    fn with_tcp_nodelay_none_waits() {
        let mut nagle = Nagle::new(true);
        nagle.sent_short(4);
        assert!(!nagle.holds(0));
    }
}
