//! Reordering of packets, and RACK's reordering window: RFC 8985 section 6.2,
//! tcp_check_sack_reordering() and tcp_rack_update_reo_wnd().

/// Initial `tp->reordering` (RFC 5681's three duplicate ACKs), and sysctl tcp_max_reordering.
const DUPTHRESH: u32 = 3;
const THRESHOLD_MAX: u32 = 300;
/// Most steps of a quarter of the minimum RTT (rack.reo_wnd_steps has eight bits).
const STEPS_MAX: u32 = 255;
/// Recoveries for which a widened window is kept (TCP_RACK_RECOVERY_THRESH).
const KEPT_RECOVERIES: u32 = 16;

/// The reordering seen so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reordering {
    /// One past the highest packet that was SACKed.
    highest_sacked: u32,
    threshold: u32,
    /// Times that reordering was seen (reord_seen).
    times_seen: u32,
    steps: u32,
    kept_recoveries: u32,
    has_dsack: bool,
    /// `delivered` when the window was last widened, to widen it once a round trip.
    widened_delivered: u32,
}

impl Default for Reordering {
    fn default() -> Self {
        Self {
            highest_sacked: 0,
            threshold: DUPTHRESH,
            times_seen: 0,
            steps: 1,
            kept_recoveries: 0,
            has_dsack: false,
            widened_delivered: 0,
        }
    }
}

impl Reordering {
    /// Packets up to `end` were SACKed.
    pub(super) fn sacked_up_to(&mut self, end: u32) {
        self.highest_sacked = self.highest_sacked.max(end);
    }

    /// Whether an earlier ACK SACKed a later packet than `number`, which is delivered now.
    pub(super) fn is_late(&self, number: u32) -> bool {
        number + 1 < self.highest_sacked
    }

    /// One past the highest packet that was SACKed.
    pub(super) fn highest_sacked(&self) -> u32 {
        self.highest_sacked
    }

    /// A packet that was sent once was delivered after later ones: as many full packets are as long as it and
    /// all that are before the end of the highest SACKed one (tcp_check_sack_reordering()).
    pub(super) fn seen(&mut self, distance: u32) {
        if distance == 0 {
            return;
        }
        self.threshold = self.threshold.max(distance.min(THRESHOLD_MAX));
        self.times_seen += 1;
    }

    /// A DSACK arrived. It counts if reordering was seen, unless it is for a tail loss probe.
    pub(super) fn duplicate_reported(&mut self, is_probes: bool) {
        self.has_dsack |= self.was_seen() && !is_probes;
    }

    /// An ACK was processed: a DSACK widens the window, once a round trip.
    pub(super) fn adapt(&mut self, prior_delivered: u32, delivered: u32) {
        if (prior_delivered.wrapping_sub(self.widened_delivered) as i32) < 0 {
            self.has_dsack = false;
        }
        if std::mem::take(&mut self.has_dsack) {
            self.steps = (self.steps + 1).min(STEPS_MAX);
            self.widened_delivered = delivered;
            self.kept_recoveries = KEPT_RECOVERIES;
        } else if self.kept_recoveries == 0 {
            self.steps = 1;
        }
    }

    /// A recovery was spurious: the widened window is kept for longer (tcp_try_undo_dsack()).
    pub(super) fn recovery_was_spurious(&mut self) {
        self.kept_recoveries = (self.kept_recoveries + 1).min(KEPT_RECOVERIES);
    }

    /// A timeout although three packets were SACKed: the threshold was too high (tcp_enter_loss()).
    pub(super) fn timed_out(&mut self, sacked_out: u32) {
        if sacked_out >= DUPTHRESH {
            self.threshold = DUPTHRESH;
        }
    }

    /// Whether reordering exceeds RFC 5681's three packets.
    pub(super) fn exceeds_dupthresh(&self) -> bool {
        self.threshold > DUPTHRESH
    }

    /// A recovery ended that was not spurious.
    pub(super) fn recovery_was_needed(&mut self) {
        self.kept_recoveries = self.kept_recoveries.saturating_sub(1);
    }

    pub(super) fn was_seen(&self) -> bool {
        self.times_seen > 0
    }

    pub(super) fn times_seen(&self) -> u32 {
        self.times_seen
    }

    /// Packets SACKed above a hole that prove its loss while no reordering was seen.
    pub(super) fn threshold(&self) -> u32 {
        self.threshold
    }

    pub(super) fn steps(&self) -> u64 {
        u64::from(self.steps)
    }
}
