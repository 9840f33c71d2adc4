//! Compressed ACKs: while a hole is open, one ACK for many packets beyond it (tcp_sack_compress_send_ack() and
//! __tcp_ack_snd_check()).

use crate::rules::Rules;

/// Duplicate ACKs that are sent at once before compression begins (TCP_FASTRETRANS_THRESH).
const DUPACK_THRESHOLD: u32 = 3;
/// sysctl tcp_comp_sack_delay_ns and tcp_comp_sack_nr.
const COMPRESSION_NS: u64 = 1_000_000;
const COMPRESSION_COUNT: u32 = 44;
/// No timer runs.
const NEVER_NS: u64 = u64::MAX;

/// The compression of one connection's ACKs.
#[derive(Debug)]
pub(super) struct Compression {
    rtt_percent: u64,
    slack_ns: u64,
    /// ACKs held back.
    held: u32,
    /// Duplicate ACKs sent for this hole.
    dupacks: u32,
    hole: u32,
    at_ns: u64,
}

impl Compression {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rtt_percent: rules.comp_sack_rtt_percent(),
            slack_ns: rules.comp_sack_slack_ns(),
            held: 0,
            dupacks: 0,
            hole: 0,
            at_ns: NEVER_NS,
        }
    }

    /// Whether ACKs are held back.
    pub(super) fn is_holding(&self) -> bool {
        self.held > 0
    }

    /// When the ACK is sent; `u64::MAX`: none is held back.
    #[inline(always)] // for every packet
    pub(super) fn at_ns(&self) -> u64 {
        self.at_ns
    }

    /// A packet arrived beyond the hole at `hole`. The first duplicate ACKs are sent at once, later ones are
    /// held back; false then. `rtt_ns` is the RTT, if a timer starts.
    #[inline] // into what is rare
    pub(super) fn acks_now(
        &mut self,
        now_ns: u64,
        hole: u32,
        rtt_ns: impl FnOnce() -> u64,
    ) -> bool {
        if self.held >= COMPRESSION_COUNT {
            return true;
        }
        if self.hole != hole {
            self.hole = hole;
            self.dupacks = 0;
        }
        if self.dupacks < DUPACK_THRESHOLD {
            self.dupacks += 1;
            return true;
        }
        self.held += 1;
        if self.at_ns == NEVER_NS {
            // The timer's slack is used up by an idle processor.
            let part_ns = rtt_ns().saturating_mul(self.rtt_percent) / 100;
            self.at_ns = now_ns + COMPRESSION_NS.min(part_ns) + self.slack_ns;
        }
        false
    }

    /// An ACK is sent.
    #[inline(always)]
    pub(super) fn ack_sent(&mut self) {
        self.at_ns = NEVER_NS;
        self.held = 0;
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_plan::Kernel;

    use super::*;

    const MS: u64 = 1_000_000;

    fn compression(kernel: Kernel) -> Compression {
        Compression::new(kernel.into())
    }

    #[test]
    fn three_duplicate_acks_are_sent_and_44_are_held_back() {
        let mut compression = compression(Kernel::default());
        let sent = |compression: &mut Compression| compression.acks_now(0, 7, || 10 * MS);
        assert!((0..3).all(|_| sent(&mut compression)));
        assert!((0..44).all(|_| !sent(&mut compression)));
        assert!(sent(&mut compression));
        compression.ack_sent();
        assert!(!sent(&mut compression), "the same hole");
        assert!(compression.acks_now(0, 9, || 10 * MS), "another hole");
    }

    #[test]
    fn they_wait_for_a_part_of_the_rtt_and_at_most_a_millisecond() {
        // sysctl tcp_comp_sack_rtt_percent was 5 before 6.19 and is 33 since.
        for (kernel, rtt_ns, wait_ns) in [
            (Kernel::Linux6_18, 10 * MS, MS / 2 + 100_000),
            (Kernel::Linux6_18, 100 * MS, MS + 100_000),
            (Kernel::Linux7_3, MS, MS * 33 / 100 + 10_000),
        ] {
            let mut compression = compression(kernel);
            for _ in 0..4 {
                compression.acks_now(5 * MS, 7, || rtt_ns);
            }
            assert_eq!(compression.at_ns(), 5 * MS + wait_ns, "{kernel:?}");
        }
    }
}
