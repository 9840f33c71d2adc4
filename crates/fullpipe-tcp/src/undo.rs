//! Reductions that were a mistake: how that is known (RFC 3522, RFC 3708), and their undoing.

use fullpipe_cc::{CaState, EventKind};

use crate::ack::Incoming;
use crate::scoreboard::LOST;
use crate::sender::{Sender, SenderEvent};

const NS_PER_MS: u64 = 1_000_000;

impl Sender {
    /// tcp_current_ssthresh(): what an undo should restore.
    pub(crate) fn current_ssthresh(&self) -> u32 {
        if self.in_cwnd_reduction() {
            self.ctl.ssthresh
        } else {
            self.ctl.ssthresh.max(self.ctl.cwnd / 2 + self.ctl.cwnd / 4)
        }
    }

    /// tcp_init_undo(): what is on its way again, a probe too, may be reported as a duplicate. None at
    /// all is not "all of them".
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
            self.reordering.recovery_stood();
        }
        self.set_ca_state(CaState::Open);
    }

    /// tcp_try_undo_partial(): the hole was filled by the late original, not by what was sent again.
    /// True if more is on its way again: nothing else is taken for lost then.
    pub(crate) fn try_undo_partial(&mut self, prior_una: u32, incoming: &Incoming) -> bool {
        if self.undo_marker.is_none() || !self.is_delayed(incoming.echo_ns) {
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

    /// tcp_try_undo_dsack(): all that was sent again had arrived.
    pub(crate) fn try_undo_duplicates(&mut self) -> bool {
        let in_vain = self.undo_marker.is_some() && self.undo_retrans == 0;
        if in_vain {
            self.reordering.recovery_was_in_vain();
            self.undo(false);
        }
        in_vain
    }

    /// tcp_packet_delayed(): the ACK answers what was sent before the first retransmission (Eifel,
    /// RFC 3522, by timestamps of 1 ms), or nothing was sent again yet.
    fn is_delayed(&self, echo_ns: u64) -> bool {
        self.retrans_ns == 0 || echoes_before(echo_ns, self.retrans_ns)
    }

    /// tcp_may_undo(): that, or every retransmission was reported as a duplicate.
    pub(crate) fn undo_if_spurious(&mut self, echo_ns: u64, unmark: bool) -> bool {
        let is_spurious = self.undo_retrans == 0 || self.is_delayed(echo_ns);
        self.undo_marker.is_some() && is_spurious && self.undo(unmark)
    }

    /// tcp_undo_cwnd_reduction().
    pub(crate) fn undo(&mut self, unmark: bool) -> bool {
        if self.undo_marker.take().is_none() {
            return false;
        }
        if unmark {
            self.board.spread_out(self.snd_una);
            for number in self.snd_una..self.snd_nxt {
                let record = self.board.get_mut(number);
                if record.flags & LOST != 0 {
                    record.flags &= !LOST;
                    self.lost_out -= 1;
                }
            }
            self.board.restore_timed_out(self.snd_una, self.snd_nxt);
        }
        // What is out is judged anew.
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
        true
    }
}

/// tcp_tsopt_ecr_before(): the ACK answers what was sent before that. Timestamps count milliseconds.
pub(crate) fn echoes_before(echo_ns: u64, at_ns: u64) -> bool {
    echo_ns > 0 && echo_ns / NS_PER_MS < at_ns / NS_PER_MS
}
