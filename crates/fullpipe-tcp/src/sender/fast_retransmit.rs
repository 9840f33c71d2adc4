//! The state machine of loss recovery: tcp_fastretrans_alert() of tcp_input.c. Packets are marked lost
//! in `loss.rs`, the window is reduced in `prr.rs`, and reductions are undone in `undo.rs`.

use fullpipe_cc::{CaState, EventKind};

use super::ack::AckInfo;
use super::scoreboard::EVER_RETRANS;
use super::{Resend, Sender, SenderEvent};
use crate::packet::EcnFeedback;

impl Sender {
    /// tcp_fastretrans_alert().
    #[inline(never)] // most ACKs are not dubious
    pub(crate) fn fastretrans_alert(&mut self, prior_una: u32, info: &mut AckInfo) {
        if info.ece {
            self.prior_ssthresh = 0;
        }
        if self.ca_state == CaState::Open {
            self.retrans_ns = 0;
        } else if self.snd_una >= self.high_seq {
            match self.ca_state {
                CaState::Cwr if self.snd_una != self.high_seq => {
                    self.end_cwnd_reduction();
                    self.set_ca_state(CaState::Open);
                }
                CaState::Recovery => {
                    self.try_undo_recovery(info.echo_ns);
                    self.end_cwnd_reduction();
                }
                _ => {}
            }
        }
        match self.ca_state {
            CaState::Recovery => {
                if self.snd_una > prior_una && self.try_undo_partial(prior_una, info) {
                    return;
                }
                if self.try_undo_duplicates() {
                    self.try_to_open(info.ece);
                }
                self.detect_losses(info);
                if self.ca_state != CaState::Recovery {
                    if self.lost_out == 0 {
                        return;
                    }
                    self.enter_recovery(info.ece);
                }
                self.resend = Resend::Lost;
                return;
            }
            CaState::Loss => {
                self.resend = self.process_loss(info);
                let retransmitted = self.retrans_out;
                self.detect_losses(info);
                // A lost retransmission begins a recovery.
                if self.ca_state != CaState::Open && self.retrans_out == retransmitted {
                    return;
                }
            }
            _ => {}
        }
        if self.ca_state <= CaState::Disorder {
            self.try_undo_duplicates();
        }
        self.detect_losses(info);
        if self.lost_out == 0 {
            self.try_to_open(info.ece);
            return;
        }
        self.enter_recovery(info.ece);
        self.resend = Resend::Lost;
    }

    /// tcp_try_to_open().
    fn try_to_open(&mut self, ece: bool) {
        self.clean_retrans_stamp();
        if ece {
            self.enter_cwr();
        }
        if self.ca_state != CaState::Cwr {
            self.keep_open();
        }
    }

    /// tcp_any_retrans_done(): an unacknowledged packet was retransmitted.
    fn is_any_retransmitted(&self) -> bool {
        let head = self.snd_una;
        self.retrans_out > 0
            || head < self.snd_nxt && self.board.get(head).flags & EVER_RETRANS != 0
    }

    pub(crate) fn clean_retrans_stamp(&mut self) {
        if !self.is_any_retransmitted() {
            self.retrans_ns = 0;
        }
    }

    pub(crate) fn enter_recovery(&mut self, ece: bool) {
        self.prior_ssthresh = 0;
        self.clean_retrans_stamp();
        self.init_undo();
        if !self.in_cwnd_reduction() {
            if !ece {
                self.prior_ssthresh = self.current_ssthresh();
            }
            self.init_cwnd_reduction();
        }
        self.set_ca_state(CaState::Recovery);
        self.totals.recoveries += 1;
        self.events.push(SenderEvent::Recovery);
    }

    pub(crate) fn keep_open(&mut self) {
        let doubtful = self.sacked_out + self.lost_out > 0 || self.is_any_retransmitted();
        let state = if doubtful {
            CaState::Disorder
        } else {
            CaState::Open
        };
        if self.ca_state != state {
            self.set_ca_state(state);
            self.high_seq = self.snd_nxt;
        }
    }

    /// tcp_enter_loss().
    pub(crate) fn enter_loss(&mut self) {
        self.mark_timed_out();
        let in_recovery = self.ca_state >= CaState::Recovery;
        if self.ca_state <= CaState::Disorder {
            self.reordering.timed_out(self.sacked_out);
        }
        let new_episode = self.ca_state <= CaState::Disorder
            || self.snd_una >= self.high_seq
            || self.ca_state == CaState::Loss && self.retransmits == 0;
        if new_episode {
            self.prior_ssthresh = self.current_ssthresh();
            self.prior_cwnd = self.ctl.cwnd;
            self.cc_event(EventKind::Ssthresh, 0, 0);
            self.cc_event(EventKind::Rto, 0, 0);
            self.init_undo();
        }
        self.ctl.cwnd = self.inflight() + 1;
        self.ctl.cwnd_cnt = 0;
        self.cwnd_stamp_ns = self.now_ns;
        self.set_ca_state(CaState::Loss);
        self.high_seq = self.snd_nxt;
        self.cwr_pending = self.config.ecn && self.config.feedback != EcnFeedback::Accurate;
        self.frto = !in_recovery || self.retransmits > 0;
        self.tlp_high = None;
        self.totals.timeouts += 1;
        self.events.push(SenderEvent::Timeout);
    }

    /// tcp_process_loss(): F-RTO (RFC 5682), and the end of the Loss state.
    fn process_loss(&mut self, info: &AckInfo) -> Resend {
        let recovered = self.snd_una >= self.high_seq;
        if info.advanced && self.undo_if_spurious(info.echo_ns, true) {
            self.leave_loss();
            return Resend::Nothing;
        }
        if self.frto {
            if info.original_delivered {
                self.undo(true);
                self.leave_loss();
                return Resend::Nothing;
            }
            if self.snd_nxt > self.high_seq {
                self.frto &= !info.sacked && (!info.is_dupack || info.is_dsack);
            } else if info.advanced && !recovered {
                self.high_seq = self.snd_nxt;
                // RFC 5682 step 2.b: send new data, whose ACKs show whether the originals arrived.
                if self.has_sendable() {
                    return Resend::NewFirst;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery(info.echo_ns);
            return Resend::Nothing;
        }
        Resend::Lost
    }

    fn leave_loss(&mut self) {
        self.retransmits = 0;
        self.frto = false;
        self.set_ca_state(CaState::Open);
    }
}
