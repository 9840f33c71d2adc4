//! How far packets overtake one another, and how long RACK therefore waits: RFC 8985 section 6.2,
//! tcp_check_sack_reordering() and tcp_rack_update_reo_wnd().

/// Initial `tp->reordering` (RFC 5681's three duplicate ACKs), and sysctl tcp_max_reordering.
const DUPTHRESH: u32 = 3;
const THRESHOLD_MAX: u32 = 300;
/// Steps of a quarter of the least RTT, at most (rack.reo_wnd_steps has eight bits).
const STEPS_MAX: u32 = 255;
/// Recoveries for which a widened window is kept (TCP_RACK_RECOVERY_THRESH).
const KEPT_RECOVERIES: u32 = 16;

/// What is known of a path's reordering.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reordering {
    /// One past the highest packet that was ever sacked.
    highest_sacked: u32,
    threshold: u32,
    was_seen: bool,
    steps: u32,
    kept_recoveries: u32,
    duplicate: bool,
    /// `delivered` when the window was widened: once a round trip.
    widened_delivered: u32,
}

impl Default for Reordering {
    fn default() -> Self {
        Self {
            highest_sacked: 0,
            threshold: DUPTHRESH,
            was_seen: false,
            steps: 1,
            kept_recoveries: 0,
            duplicate: false,
            widened_delivered: 0,
        }
    }
}

impl Reordering {
    /// Packets up to `end` were sacked.
    pub(crate) fn sacked_up_to(&mut self, end: u32) {
        self.highest_sacked = self.highest_sacked.max(end);
    }

    /// Whether a later packet was sacked by an earlier ACK than this one, which delivers `number`.
    pub(crate) fn is_late(&self, number: u32) -> bool {
        number + 1 < self.highest_sacked
    }

    /// A packet that was sent once was delivered after later ones.
    pub(crate) fn seen(&mut self, number: u32) {
        let distance = self.highest_sacked.saturating_sub(number);
        if distance == 0 {
            return;
        }
        self.threshold = self.threshold.max(distance.min(THRESHOLD_MAX));
        self.was_seen = true;
    }

    /// The receiver had something twice (DSACK): a retransmission was in vain. What a tail loss
    /// probe repeated does not count, nor anything where packets keep their order.
    pub(crate) fn duplicate_reported(&mut self, is_probes: bool) {
        self.duplicate |= self.was_seen && !is_probes;
    }

    /// An ACK was taken in: a duplicate widens the window, once a round trip.
    pub(crate) fn adapt(&mut self, prior_delivered: u32, delivered: u32) {
        if (prior_delivered.wrapping_sub(self.widened_delivered) as i32) < 0 {
            self.duplicate = false;
        }
        if std::mem::take(&mut self.duplicate) {
            self.steps = (self.steps + 1).min(STEPS_MAX);
            self.widened_delivered = delivered;
            self.kept_recoveries = KEPT_RECOVERIES;
        } else if self.kept_recoveries == 0 {
            self.steps = 1;
        }
    }

    /// A recovery was in vain: the widened window is kept for longer (tcp_try_undo_dsack()).
    pub(crate) fn recovery_was_in_vain(&mut self) {
        self.kept_recoveries = (self.kept_recoveries + 1).min(KEPT_RECOVERIES);
    }

    /// A timeout although three packets were sacked: the threshold was too high (tcp_enter_loss()).
    pub(crate) fn timed_out(&mut self, sacked_out: u32) {
        if sacked_out >= DUPTHRESH {
            self.threshold = DUPTHRESH;
        }
    }

    /// More than what RFC 5681 allows for.
    pub(crate) fn is_great(&self) -> bool {
        self.threshold > DUPTHRESH
    }

    /// A recovery ended that was not in vain.
    pub(crate) fn recovery_stood(&mut self) {
        self.kept_recoveries = self.kept_recoveries.saturating_sub(1);
    }

    pub(crate) fn was_seen(&self) -> bool {
        self.was_seen
    }

    /// Packets sacked above a hole that make it a loss while no reordering was seen.
    pub(crate) fn threshold(&self) -> u32 {
        self.threshold
    }

    pub(crate) fn steps(&self) -> u64 {
        u64::from(self.steps)
    }
}
