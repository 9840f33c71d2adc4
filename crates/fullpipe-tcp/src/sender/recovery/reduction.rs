//! Reductions of the window, and their undoing: tcp_init_cwnd_reduction(), tcp_end_cwnd_reduction() and
//! tcp_undo_cwnd_reduction() of tcp_input.c.

use fullpipe_cc::{CaState, Ctl, EventKind, INFINITE};

use crate::sender::flight::Flight;
use crate::sender::journal::SenderEvent;

use super::prr::Progress;
use super::{Context, Recovery};

impl Recovery {
    /// tcp_current_ssthresh(): the threshold that an undo restores.
    pub(in crate::sender) fn current_ssthresh(&self, ctl: &Ctl) -> u32 {
        match self.is_reducing() {
            true => ctl.ssthresh,
            false => ctl.ssthresh.max(ctl.cwnd / 2 + ctl.cwnd / 4),
        }
    }

    /// tcp_init_cwnd_reduction().
    pub(super) fn begin_reduction(&mut self, context: &mut impl Context, flight: &Flight) {
        self.end = flight.next();
        self.probe.cancel();
        context.ctl_mut().cwnd_cnt = 0;
        self.prr.begin(context.ctl().cwnd);
        self.tell(context, flight, EventKind::Ssthresh, 0);
        self.cwr_pending = self.announces;
    }

    /// An ACK in CWR or Recovery sets the window of an algorithm that does not (tcp_cwnd_reduction()).
    /// `is_clean`: it advanced, and nothing was marked lost.
    #[inline(never)] // only in recovery
    pub(in crate::sender) fn reduce(
        &mut self,
        context: &mut impl Context,
        flight: &Flight,
        delivered: u32,
        is_clean: bool,
    ) {
        let progress = Progress {
            delivered,
            is_clean,
            inflight: flight.inflight(),
        };
        let ctl = context.ctl_mut();
        ctl.cwnd = self.prr.window(progress, ctl.ssthresh).unwrap_or(ctl.cwnd);
    }

    /// tcp_end_cwnd_reduction().
    pub(super) fn end_reduction(&mut self, context: &mut impl Context, flight: &Flight) {
        context.record(SenderEvent::RecoveryEnd);
        if context.owns_cwnd() {
            return;
        }
        let ctl = context.ctl_mut();
        let is_reduced = self.state == CaState::Cwr || self.undo.is_possible();
        if ctl.ssthresh < INFINITE && is_reduced {
            ctl.cwnd = ctl.ssthresh;
            context.restamp_cwnd();
        }
        self.tell(context, flight, EventKind::CompleteCwr, 0);
    }

    /// tcp_init_undo().
    pub(super) fn begin_undo(&mut self, flight: &Flight) {
        let copies = flight.retransmitted() + self.probe.retransmissions();
        self.undo.begin(flight.una(), copies);
    }

    /// tcp_try_undo_recovery().
    pub(super) fn try_undo_recovery(
        &mut self,
        context: &mut impl Context,
        flight: &mut Flight,
        echo_ns: u64,
    ) {
        match self.undo.was_spurious(echo_ns) {
            true => self.undo(context, flight, false),
            false => self.reordering.recovery_was_needed(),
        }
        self.set_state(context, flight, CaState::Open);
    }

    /// tcp_try_undo_partial(): the original filled the hole, not the retransmission. True if other
    /// retransmissions are in flight; nothing else is marked lost then.
    pub(super) fn try_undo_partial(
        &mut self,
        context: &mut impl Context,
        flight: &mut Flight,
        prior_una: u32,
        echo_ns: u64,
    ) -> bool {
        if !self.undo.is_possible() || !self.undo.was_delayed(echo_ns) {
            return false;
        }
        let end = self.highest_sack(flight);
        self.reordering.seen(context.full_packets(prior_una, end));
        if flight.retransmitted() > 0 {
            return true;
        }
        self.forget_retransmissions(flight);
        self.undo(context, flight, true);
        self.keep_open(context, flight);
        false
    }

    /// tcp_try_undo_dsack(): DSACKs reported every retransmission.
    pub(super) fn try_undo_duplicates(
        &mut self,
        context: &mut impl Context,
        flight: &mut Flight,
    ) -> bool {
        let is_spurious = self.undo.all_were_needless();
        if is_spurious {
            self.reordering.recovery_was_spurious();
            self.undo(context, flight, false);
        }
        is_spurious
    }

    /// tcp_undo_cwnd_reduction(). `unmark` clears the loss marks.
    pub(super) fn undo(&mut self, context: &mut impl Context, flight: &mut Flight, unmark: bool) {
        self.undo.end();
        if unmark {
            flight.unmark_lost();
        }
        context.restamp_cwnd();
        self.rack.examine_again();
        let prior_ssthresh = self.undo.ssthresh();
        if prior_ssthresh > 0 {
            self.tell(context, flight, EventKind::Undo, 0);
            let ctl = context.ctl_mut();
            if prior_ssthresh > ctl.ssthresh {
                ctl.ssthresh = prior_ssthresh;
                self.cwr_pending = false;
            }
        }
        context.record(SenderEvent::Undo);
    }

    pub(super) fn forget_retransmissions(&mut self, flight: &Flight) {
        if !flight.is_any_retransmitted() {
            self.undo.forget_retransmissions();
        }
    }
}
