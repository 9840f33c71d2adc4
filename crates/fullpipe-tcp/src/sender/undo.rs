//! Detects and undoes spurious window reductions (Eifel, RFC 3522, and DSACK, RFC 3708).

use fullpipe_cc::{CaState, EventKind};

use super::ack::{echoes_before, AckInfo};
use super::scoreboard::LOST;
use super::{Sender, SenderEvent};

impl Sender {
    /// tcp_current_ssthresh(): the threshold that an undo restores.
    pub(crate) fn current_ssthresh(&self) -> u32 {
        if self.in_cwnd_reduction() {
            self.ctl.ssthresh
        } else {
            self.ctl.ssthresh.max(self.ctl.cwnd / 2 + self.ctl.cwnd / 4)
        }
    }

    /// tcp_init_undo(): counts retransmissions in flight, loss probes included, that a DSACK may report;
    /// -1: there are none, so the count cannot fall to 0.
    pub(crate) fn init_undo(&mut self) {
        self.undo_marker = Some(self.snd_una);
        let probes = u32::from(self.tlp_high.is_some() && self.tlp_is_retrans);
        self.undo_retrans = match self.retrans_out + probes {
            0 => -1,
            count => count as i32,
        };
    }

    pub(crate) fn try_undo_recovery(&mut self, echo_ns: u64) {
        if !self.undo_if_spurious(echo_ns, false) {
            self.reordering.recovery_was_needed();
        }
        self.set_ca_state(CaState::Open);
    }

    /// tcp_try_undo_partial(): the original filled the hole, not the retransmission. True if other
    /// retransmissions are in flight; nothing else is marked lost then.
    pub(crate) fn try_undo_partial(&mut self, prior_una: u32, info: &AckInfo) -> bool {
        if self.undo_marker.is_none() || !self.is_delayed(info.echo_ns) {
            return false;
        }
        self.reordering.seen(prior_una);
        if self.retrans_out > 0 {
            return true;
        }
        self.clean_retrans_stamp();
        self.undo(true);
        self.keep_open();
        false
    }

    /// tcp_try_undo_dsack(): DSACKs reported every retransmission.
    pub(crate) fn try_undo_duplicates(&mut self) -> bool {
        let is_spurious = self.undo_marker.is_some() && self.undo_retrans == 0;
        if is_spurious {
            self.reordering.recovery_was_spurious();
            self.undo(false);
        }
        is_spurious
    }

    /// tcp_packet_delayed(): nothing was retransmitted, or the ACK echoes a timestamp from before the
    /// first retransmission (Eifel, RFC 3522).
    fn is_delayed(&self, echo_ns: u64) -> bool {
        self.retrans_ns == 0 || echoes_before(echo_ns, self.retrans_ns)
    }

    /// tcp_may_undo(): undoes the reduction if the packet was delayed or all retransmissions were
    /// reported by DSACKs. `unmark` clears the loss marks.
    pub(crate) fn undo_if_spurious(&mut self, echo_ns: u64, unmark: bool) -> bool {
        let is_spurious =
            self.undo_marker.is_some() && (self.undo_retrans == 0 || self.is_delayed(echo_ns));
        if is_spurious {
            self.undo(unmark);
        }
        is_spurious
    }

    /// tcp_undo_cwnd_reduction(). `unmark` clears the loss marks.
    pub(crate) fn undo(&mut self, unmark: bool) {
        self.undo_marker = None;
        if unmark {
            self.board.split_bursts(self.snd_una);
            for number in self.snd_una..self.snd_nxt {
                let record = self.board.get_mut(number);
                if record.flags & LOST != 0 {
                    record.flags &= !LOST;
                    self.lost_out -= 1;
                }
            }
            self.board.restore_timed_out(self.snd_una, self.snd_nxt);
        }
        self.cwnd_stamp_ns = self.now_ns;
        // RACK examines all packets again.
        self.rack.advanced = true;
        if self.prior_ssthresh > 0 {
            self.cc_event(EventKind::Undo, 0, 0);
            if self.prior_ssthresh > self.ctl.ssthresh {
                self.ctl.ssthresh = self.prior_ssthresh;
                self.cwr_pending = false;
            }
        }
        self.totals.undos += 1;
        self.events.push(SenderEvent::Undo);
    }
}
