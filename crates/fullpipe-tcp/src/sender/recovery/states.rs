//! The states of recovery: tcp_fastretrans_alert(), tcp_process_loss() and tcp_enter_loss() of tcp_input.c.

use fullpipe_cc::{CaState, Event, EventKind};

use crate::packet::Ack;
use crate::sender::ack_info::AckInfo;
use crate::sender::flight::Flight;
use crate::sender::journal::SenderEvent;

use super::probe::Outcome;
use super::{Context, Decision, Recovery, Resend};

impl Recovery {
    /// tcp_ack_is_dubious(): whether [`Self::alert`] has to see this ACK.
    pub(in crate::sender) fn is_dubious(&self, info: &AckInfo) -> bool {
        let is_news = info.sacked || info.ece || info.is_dsack;
        is_news || info.is_dupack || self.state != CaState::Open
    }

    /// tcp_fastretrans_alert(): an ACK arrived that is more than progress. `prior_una` was the first
    /// unacknowledged packet before it; `can_send_new`: new data could be sent.
    #[inline(never)] // most ACKs are not dubious
    pub(in crate::sender) fn alert(
        &mut self,
        context: &mut impl Context,
        flight: &mut Flight,
        (prior_una, can_send_new): (u32, bool),
        info: &AckInfo,
    ) -> Decision {
        let mut decision = Decision {
            resend: Resend::Nothing,
            reorder_wait_us: None,
        };
        if info.ece {
            self.undo.set_ssthresh(0);
        }
        self.end_if_acked(context, flight, info.echo_ns);
        match self.state {
            CaState::Recovery => {
                self.go_on(context, flight, prior_una, info, &mut decision);
                return decision;
            }
            CaState::Loss => {
                decision.resend = self.process_loss(context, flight, can_send_new, info);
                let retransmitted = flight.retransmitted();
                self.detect_losses(context, flight, &mut decision);
                // A lost retransmission begins a recovery.
                if self.state != CaState::Open && flight.retransmitted() == retransmitted {
                    return decision;
                }
            }
            _ => {}
        }
        if self.state <= CaState::Disorder {
            self.try_undo_duplicates(context, flight);
        }
        self.detect_losses(context, flight, &mut decision);
        if flight.lost() == 0 {
            self.try_to_open(context, flight, info.ece);
        } else {
            self.enter_recovery(context, flight, info.ece);
            decision.resend = Resend::Lost;
        }
        decision
    }

    /// Ends CWR or Recovery if all packets that were out when it began are acknowledged.
    fn end_if_acked(&mut self, context: &mut impl Context, flight: &mut Flight, echo_ns: u64) {
        if self.state == CaState::Open {
            self.undo.forget_retransmissions();
            return;
        }
        if flight.una() < self.end {
            return;
        }
        match self.state {
            CaState::Cwr if flight.una() != self.end => {
                self.end_reduction(context, flight);
                self.set_state(context, flight, CaState::Open);
            }
            CaState::Recovery => {
                self.try_undo_recovery(context, flight, echo_ns);
                self.end_reduction(context, flight);
            }
            _ => {}
        }
    }

    /// An ACK in Recovery.
    fn go_on(
        &mut self,
        context: &mut impl Context,
        flight: &mut Flight,
        prior_una: u32,
        info: &AckInfo,
        decision: &mut Decision,
    ) {
        let has_advanced = flight.una() > prior_una;
        if has_advanced && self.try_undo_partial(context, flight, prior_una, info.echo_ns) {
            return;
        }
        if self.try_undo_duplicates(context, flight) {
            self.try_to_open(context, flight, info.ece);
        }
        self.detect_losses(context, flight, decision);
        if self.state != CaState::Recovery {
            if flight.lost() == 0 {
                return;
            }
            self.enter_recovery(context, flight, info.ece);
        }
        decision.resend = Resend::Lost;
    }

    /// tcp_process_loss(): F-RTO (RFC 5682), and the end of the Loss state.
    fn process_loss(
        &mut self,
        context: &mut impl Context,
        flight: &mut Flight,
        can_send_new: bool,
        info: &AckInfo,
    ) -> Resend {
        let has_recovered = flight.una() >= self.end;
        if info.advanced && self.undo.was_spurious(info.echo_ns) {
            self.undo(context, flight, true);
            self.leave_loss(context, flight);
            return Resend::Nothing;
        }
        if self.frto {
            if info.original_delivered {
                self.undo(context, flight, true);
                self.leave_loss(context, flight);
                return Resend::Nothing;
            }
            if flight.next() > self.end {
                self.frto &= !info.sacked && (!info.is_dupack || info.is_dsack);
            } else if info.advanced && !has_recovered {
                self.end = flight.next();
                // RFC 5682 step 2.b: send new data, whose ACKs show whether the originals arrived.
                if can_send_new {
                    return Resend::NewFirst;
                }
                self.frto = false;
            }
        }
        if has_recovered {
            self.try_undo_recovery(context, flight, info.echo_ns);
            return Resend::Nothing;
        }
        Resend::Lost
    }

    fn leave_loss(&mut self, context: &mut impl Context, flight: &Flight) {
        self.timeouts = 0;
        self.frto = false;
        self.set_state(context, flight, CaState::Open);
    }

    /// tcp_enter_loss(): the retransmission timer expired.
    pub(in crate::sender) fn timed_out(&mut self, context: &mut impl Context, flight: &mut Flight) {
        self.mark_timed_out(context, flight);
        let in_recovery = self.state >= CaState::Recovery;
        if self.state <= CaState::Disorder {
            self.reordering.timed_out(flight.sacked());
        }
        let is_new_episode = self.state <= CaState::Disorder
            || flight.una() >= self.end
            || self.state == CaState::Loss && self.timeouts == 0;
        if is_new_episode {
            self.undo.set_ssthresh(self.current_ssthresh(context.ctl()));
            self.prr.note_timeout(context.ctl().cwnd);
            self.tell(context, flight, EventKind::Ssthresh, 0);
            self.tell(context, flight, EventKind::Rto, 0);
            self.begin_undo(flight);
        }
        let ctl = context.ctl_mut();
        ctl.cwnd = flight.inflight() + 1;
        ctl.cwnd_cnt = 0;
        context.restamp_cwnd();
        self.set_state(context, flight, CaState::Loss);
        self.end = flight.next();
        self.cwr_pending = self.announces;
        self.frto = !in_recovery || self.timeouts > 0;
        self.probe.cancel();
        context.record(SenderEvent::Timeout);
    }

    /// What the timeout caused has been sent.
    pub(in crate::sender) fn count_timeout(&mut self) {
        self.timeouts += 1;
    }

    /// tcp_try_to_open().
    fn try_to_open(&mut self, context: &mut impl Context, flight: &Flight, ece: bool) {
        self.forget_retransmissions(flight);
        if ece {
            self.enter_cwr(context, flight);
        }
        if self.state != CaState::Cwr {
            self.keep_open(context, flight);
        }
    }

    pub(super) fn enter_recovery(
        &mut self,
        context: &mut impl Context,
        flight: &Flight,
        ece: bool,
    ) {
        self.undo.set_ssthresh(0);
        self.forget_retransmissions(flight);
        self.begin_undo(flight);
        if !self.is_reducing() {
            if !ece {
                self.undo.set_ssthresh(self.current_ssthresh(context.ctl()));
            }
            self.begin_reduction(context, flight);
        }
        self.set_state(context, flight, CaState::Recovery);
        context.record(SenderEvent::Recovery);
    }

    /// tcp_try_keep_open().
    pub(super) fn keep_open(&mut self, context: &mut impl Context, flight: &Flight) {
        let is_doubtful = flight.sacked() + flight.lost() > 0 || flight.is_any_retransmitted();
        let state = match is_doubtful {
            true => CaState::Disorder,
            false => CaState::Open,
        };
        if self.state != state {
            self.set_state(context, flight, state);
            self.end = flight.next();
        }
    }

    /// tcp_process_tlp_ack(): if the loss probe repaired a loss, the window is reduced (RFC 8985 section
    /// 7.4.2).
    pub(in crate::sender) fn answer_probe(
        &mut self,
        context: &mut impl Context,
        flight: &Flight,
        ack: &Ack,
        info: &mut AckInfo,
    ) {
        let is_news = info.advanced || info.sacked || info.window_changed;
        match self.probe.acked(ack, is_news) {
            Outcome::Nothing => {}
            Outcome::Ambiguous => info.answers_tlp = true,
            Outcome::RepairedLoss { is_app_limited } => {
                let event = Event {
                    kind: EventKind::TlpRecovery as u32,
                    is_app_limited: is_app_limited.into(),
                    ..Event::default()
                };
                context.tell(self, flight, event);
                self.begin_cwr(context, flight);
                self.end_reduction(context, flight);
                self.keep_open(context, flight);
            }
        }
    }

    /// tcp_enter_cwr(): an ECN mark, or the algorithm asks for a reduction.
    pub(in crate::sender) fn enter_cwr(&mut self, context: &mut impl Context, flight: &Flight) {
        self.undo.set_ssthresh(0);
        if self.state < CaState::Cwr {
            self.undo.end();
            self.begin_cwr(context, flight);
        }
    }

    fn begin_cwr(&mut self, context: &mut impl Context, flight: &Flight) {
        self.begin_reduction(context, flight);
        self.set_state(context, flight, CaState::Cwr);
        context.record(SenderEvent::Cwr);
    }

    pub(super) fn set_state(
        &mut self,
        context: &mut impl Context,
        flight: &Flight,
        state: CaState,
    ) {
        self.tell(context, flight, EventKind::State, state as u32);
        self.prior_state = self.state;
        self.state = state;
    }

    pub(super) fn tell(
        &self,
        context: &mut impl Context,
        flight: &Flight,
        kind: EventKind,
        value: u32,
    ) {
        let event = Event {
            kind: kind as u32,
            value,
            ..Event::default()
        };
        context.tell(self, flight, event);
    }
}
