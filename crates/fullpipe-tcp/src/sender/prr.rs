//! Window reductions after loss and ECN marks: proportional rate reduction (RFC 6937, tcp_input.c).

use fullpipe_cc::{CaState, EventKind, INFINITE};

use super::{Sender, SenderEvent};
use crate::packet::EcnFeedback;

impl Sender {
    pub(crate) fn in_cwnd_reduction(&self) -> bool {
        matches!(self.ca_state, CaState::Cwr | CaState::Recovery)
    }

    pub(crate) fn init_cwnd_reduction(&mut self) {
        self.high_seq = self.snd_nxt;
        self.tlp_high = None;
        self.ctl.cwnd_cnt = 0;
        self.prior_cwnd = self.ctl.cwnd;
        self.prr_delivered = 0;
        self.prr_out = 0;
        self.cc_event(EventKind::Ssthresh, 0, 0);
        self.cwr_pending = self.config.ecn && self.config.feedback != EcnFeedback::Accurate;
    }

    pub(crate) fn enter_cwr(&mut self) {
        self.prior_ssthresh = 0;
        if self.ca_state < CaState::Cwr {
            self.undo_marker = None;
            self.init_cwnd_reduction();
            self.set_ca_state(CaState::Cwr);
            self.events.push(SenderEvent::Cwr);
        }
    }

    pub(crate) fn end_cwnd_reduction(&mut self) {
        self.events.push(SenderEvent::RecoveryEnd);
        if self.owns_cwnd() {
            return;
        }
        let reduced = self.ca_state == CaState::Cwr || self.undo_marker.is_some();
        if self.ctl.ssthresh < INFINITE && reduced {
            self.ctl.cwnd = self.ctl.ssthresh;
            self.cwnd_stamp_ns = self.now_ns;
        }
        self.cc_event(EventKind::CompleteCwr, 0, 0);
    }

    /// Proportional rate reduction (RFC 6937 with its slow-start bound, tcp_cwnd_reduction()).
    #[inline(never)] // only in recovery
    pub(crate) fn reduce_cwnd(&mut self, delivered: u32, losses: u32, advanced: bool) {
        if delivered == 0 || self.prior_cwnd == 0 {
            return;
        }
        self.prr_delivered += delivered;
        let inflight = self.inflight();
        let room = i64::from(self.ctl.ssthresh) - i64::from(inflight);
        let mut send = if room < 0 {
            let dividend = u64::from(self.ctl.ssthresh) * u64::from(self.prr_delivered)
                + u64::from(self.prior_cwnd)
                - 1;
            (dividend / u64::from(self.prior_cwnd)) as i64 - i64::from(self.prr_out)
        } else {
            let behind = i64::from(self.prr_delivered) - i64::from(self.prr_out);
            let mut send = behind.max(i64::from(delivered));
            if advanced && losses == 0 {
                send += 1;
            }
            send.min(room)
        };
        // The first retransmission of an episode is always sent.
        send = send.max(i64::from(self.prr_out == 0));
        self.ctl.cwnd = inflight + send.max(0) as u32;
    }
}
