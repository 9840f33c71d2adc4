//! What one ACK says.

use super::rate::Sample;

/// When the first and the last of the packets were sent that an ACK covers.
#[derive(Clone, Copy)]
pub(super) struct SendTimes {
    first_ns: u64,
    last_ns: u64,
}

impl SendTimes {
    #[inline(always)] // for every ACK
    pub(super) fn add(known: &mut Option<Self>, at_ns: u64) {
        *known = Some(Self {
            first_ns: known.map_or(at_ns, |known| known.first_ns),
            last_ns: at_ns,
        });
    }

    /// RTTs of the first and the last, in us.
    #[inline(always)]
    pub(super) fn rtts_us(self, now_ns: u64) -> (u64, u64) {
        let us = |at_ns: u64| now_ns.saturating_sub(at_ns) / 1000;
        let last_us = us(self.last_ns);
        match self.first_ns == self.last_ns {
            true => (last_us, last_us),
            false => (us(self.first_ns), last_us),
        }
    }
}

/// What one ACK says (struct tcp_sacktag_state and the flags of tcp_ack()).
#[derive(Default)]
pub(super) struct AckInfo {
    pub(super) sample: Sample,
    pub(super) newly_delivered: u32,
    /// Send times of acknowledged packets that were sent once.
    pub(super) acked: Option<SendTimes>,
    /// Send times of newly SACKed packets that were sent once.
    pub(super) newly_sacked: Option<SendTimes>,
    pub(super) acked_retransmission: bool,
    /// A packet was delivered that was sent once before the present state began: F-RTO takes the timeout for
    /// spurious (FLAG_ORIG_SACK_ACKED).
    pub(super) original_delivered: bool,
    pub(super) advanced: bool,
    pub(super) sacked: bool,
    /// The lowest packet that was sent once and SACKed after a later one (state->reord), and the lowest
    /// that was acknowledged so (reord of tcp_clean_rtx_queue()).
    pub(super) reordered: Option<u32>,
    pub(super) acked_late: Option<u32>,
    /// One past the highest SACKed packet.
    pub(super) sacked_end: u32,
    pub(super) acked_packets: u32,
    pub(super) echo_ns: u64,
    pub(super) ece: bool,
    pub(super) window_changed: bool,
    /// Header prediction failed (FLAG_SLOWPATH), apart from ECN marks.
    pub(super) is_slow: bool,
    /// Apart from SACK blocks it says nothing new (no FLAG_NOT_DUP).
    pub(super) is_dupack: bool,
    /// It carries a DSACK (FLAG_DSACKING_ACK).
    pub(super) is_dsack: bool,
    /// It may acknowledge a loss probe's retransmission or the original.
    pub(super) answers_tlp: bool,
    /// The receiver may have delayed it (FLAG_ACK_MAYBE_DELAYED).
    pub(super) is_delayed: bool,
    /// The retransmission timer is restarted (FLAG_SET_XMIT_TIMER).
    pub(super) sets_timer: bool,
}

impl AckInfo {
    /// The bits of CC_EVENT_ACK (tcp_in_ack_event()).
    #[inline(always)]
    pub(super) fn ack_bits(&self) -> u32 {
        let slow = self.is_slow || self.ece;
        u32::from(slow) | u32::from(self.window_changed) << 1 | u32::from(self.ece) << 2
    }

    /// Packets delivered since the newest one that the ACK delivers was sent.
    #[inline(always)]
    pub(super) fn delivered_since(&self, delivered: u32) -> u32 {
        delivered.wrapping_sub(self.sample.prior_delivered)
    }

    /// A packet that was sent once was SACKed after a later one.
    #[inline(always)]
    pub(super) fn note_reordered(&mut self, number: u32) {
        self.reordered = Some(self.reordered.map_or(number, |least| least.min(number)));
    }

    /// A packet that was sent once was acknowledged after a later one; the lowest comes first.
    #[inline(always)]
    pub(super) fn note_acked_late(&mut self, number: u32) {
        self.acked_late = self.acked_late.or(Some(number));
    }
}
