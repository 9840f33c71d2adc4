//! The state machine of loss recovery: tcp_fastretrans_alert(), tcp_enter_loss(), tcp_process_loss() and
//! their like in tcp_input.c. Must never know the congestion control: what it needs of it is [`Context`].

mod probe;
mod prr;
mod rack;
mod reordering;
mod undo;

use fullpipe_cc::{CaState, Ctl, Event, EventKind, INFINITE};

use crate::packet::{Ack, Block};

use self::probe::{LossProbe, Outcome};
use self::prr::Prr;
use self::rack::{Rack, Verdict};
use self::reordering::Reordering;
use self::undo::Undo;
use super::ack_info::AckInfo;
use super::flight::{Flight, LostPacket};
use super::journal::SenderEvent;
use super::rtt::Rtt;

pub(super) use self::prr::Progress;
pub(super) use self::undo::echoes_before;

/// What recovery needs of the connection around it.
pub(super) trait Context {
    fn now_ns(&self) -> u64;
    fn rtt(&self) -> &Rtt;
    /// Whether the algorithm sets the window in every state.
    fn owns_cwnd(&self) -> bool;
    fn ctl(&self) -> &Ctl;
    fn ctl_mut(&mut self) -> &mut Ctl;
    /// Tells the congestion control of an event. It sees the state that it is given.
    fn tell(&mut self, recovery: &Recovery, flight: &Flight, event: Event);
    /// Tells it of a packet that was marked lost.
    fn tell_lost(&mut self, recovery: &Recovery, flight: &Flight, packet: &LostPacket);
    /// The window was set: what is unused of it counts from now on.
    fn restamp_cwnd(&mut self);
    fn record(&mut self, event: SenderEvent);
}

/// What is retransmitted at the next opportunity (enum REXMIT of tcp_input.c).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Resend {
    /// No ACK was processed since: lost packets, if the window has room (tcp_tsq_write()).
    #[default]
    IfRoom,
    /// Nothing.
    Nothing,
    /// Lost packets.
    Lost,
    /// F-RTO: new data, or lost packets if there are no new data.
    NewFirst,
}

/// What an ACK makes recovery decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) resend: Resend,
    /// When packets that may only be late are taken for lost.
    pub(super) reorder_wait_us: Option<u64>,
}

/// Loss recovery of one connection.
#[derive(Debug)]
pub(super) struct Recovery {
    state: CaState,
    prior_state: CaState,
    /// The state ends when all packets before this one are acknowledged (high_seq).
    end: u32,
    rack: Rack,
    reordering: Reordering,
    prr: Prr,
    undo: Undo,
    probe: LossProbe,
    /// Retransmission timeouts since data were last acknowledged (icsk_retransmits).
    timeouts: u32,
    /// F-RTO examines whether the last timeout was spurious.
    frto: bool,
    /// Reductions are announced with CWR (RFC 3168), and one is not yet.
    announces: bool,
    cwr_pending: bool,
}

impl Recovery {
    pub(super) fn new() -> Self {
        Self {
            state: CaState::Open,
            prior_state: CaState::Open,
            end: 0,
            rack: Rack::default(),
            reordering: Reordering::default(),
            prr: Prr::default(),
            undo: Undo::default(),
            probe: LossProbe::default(),
            timeouts: 0,
            frto: false,
            announces: false,
            cwr_pending: false,
        }
    }

    /// The handshake is done; `announces`: reductions are announced with CWR.
    pub(super) fn established(&mut self, announces: bool) {
        self.announces = announces;
    }

    #[inline(always)] // as all that only read
    pub(super) fn state(&self) -> CaState {
        self.state
    }

    #[inline(always)]
    pub(super) fn prior_state(&self) -> CaState {
        self.prior_state
    }

    /// The state ends when all packets before this one are acknowledged.
    #[inline(always)]
    pub(super) fn end(&self) -> u32 {
        self.end
    }

    /// The window before the last reduction.
    pub(super) fn prior_cwnd(&self) -> u32 {
        self.prr.prior_cwnd()
    }

    /// Packets SACKed above a hole that prove its loss while no reordering was seen.
    pub(super) fn dupthresh(&self) -> u32 {
        self.reordering.threshold()
    }

    /// Whether an ACK that only acknowledges the next packets is nothing to it.
    #[inline(always)]
    pub(super) fn is_idle(&self) -> bool {
        self.state == CaState::Open && !self.probe.is_out()
    }

    /// Whether the window is being reduced (tcp_in_cwnd_reduction()).
    #[inline(always)]
    pub(super) fn is_reducing(&self) -> bool {
        matches!(self.state, CaState::Cwr | CaState::Recovery)
    }

    /// Whether a loss probe may be scheduled in this state.
    #[inline(always)]
    pub(super) fn allows_probe(&self) -> bool {
        matches!(self.state, CaState::Open | CaState::Cwr)
    }

    pub(super) fn has_probe_out(&self) -> bool {
        self.probe.is_out()
    }

    /// tcp_may_raise_cwnd(): with reordering beyond three packets, SACKs suffice.
    pub(super) fn lets_cwnd_rise(&self, info: &AckInfo) -> bool {
        info.advanced || info.sacked && self.reordering.exceeds_dupthresh()
    }

    /// tcp_current_ssthresh(): the threshold that an undo restores.
    pub(super) fn current_ssthresh(&self, ctl: &Ctl) -> u32 {
        match self.is_reducing() {
            true => ctl.ssthresh,
            false => ctl.ssthresh.max(ctl.cwnd / 2 + ctl.cwnd / 4),
        }
    }

    /// New data are acknowledged.
    #[inline(always)]
    pub(super) fn advanced(&mut self) {
        self.timeouts = 0;
    }

    /// A packet was delivered: it had these flags and was sent at this time and place.
    #[inline(always)]
    pub(super) fn delivered(
        &mut self,
        (flags, at_ns, order): (u8, u64, u32),
        now_ns: u64,
        min_rtt_us: u32,
    ) {
        self.rack.delivered(flags, at_ns, order, now_ns, min_rtt_us);
    }

    /// A packet that was sent once was delivered: looks for reordering and spurious timeouts.
    #[inline(always)]
    pub(super) fn note_original(&self, number: u32, info: &mut AckInfo) {
        if self.reordering.is_late(number) {
            info.note_reordered(number);
        }
        if number < self.end {
            info.original_delivered = true;
        }
    }

    /// tcp_check_sack_reordering(), tcp_rack_update_reo_wnd().
    #[inline(always)]
    pub(super) fn learn_reordering(&mut self, info: &AckInfo, delivered: u32) {
        self.reordering.sacked_up_to(info.sacked_end);
        if let Some(late) = info.reordered {
            if self.state != CaState::Loss || self.undo.is_possible() {
                self.reordering.seen(late);
            }
        }
        let prior = info.sample.prior_delivered;
        if prior != 0 {
            self.reordering.adapt(prior, delivered);
        }
    }

    /// tcp_check_dsack(), tcp_dsack_seen(): a DSACK says that a retransmission was unnecessary. False if it
    /// reports more than the connection's `retransmissions`, so the network duplicated packets.
    pub(super) fn duplicate_reported(
        &mut self,
        duplicate: &Block,
        flight: &Flight,
        retransmissions: u64,
    ) -> bool {
        let packets = duplicate.end.saturating_sub(duplicate.start);
        if !self.undo.count_duplicates(packets, retransmissions) {
            return false;
        }
        let is_probes = self.probe.ends_at(duplicate.end);
        self.reordering.duplicate_reported(is_probes);
        let was_sent_again = duplicate.start < flight.una()
            || duplicate.end <= flight.next() && flight.was_retransmitted(duplicate.start);
        if was_sent_again {
            self.undo
                .retransmission_was_needless(duplicate.end, packets);
        }
        true
    }

    /// New data or retransmissions are sent.
    #[inline(always)]
    pub(super) fn sent(&mut self, packets: u32) {
        if self.is_reducing() {
            self.prr.sent(packets);
        }
    }

    /// Packets are sent again, except by a loss probe.
    pub(super) fn sent_again(&mut self, packets: u32, at_ns: u64) {
        self.undo.sent_again(packets, at_ns);
    }

    /// A loss probe is sent; packets up to `end` are out. `retransmits`: of a retransmission, whether the
    /// packet was application-limited.
    pub(super) fn probe_sent(&mut self, end: u32, retransmits: Option<bool>) {
        self.probe.send(end, retransmits);
    }

    /// Whether the next packet announces a reduction with CWR.
    #[inline(always)]
    pub(super) fn take_cwr(&mut self) -> bool {
        std::mem::take(&mut self.cwr_pending)
    }

    /// F-RTO sent what is new: whether lost packets are to be sent nevertheless, as nothing was.
    pub(super) fn gives_up_frto(&mut self, flight: &Flight) -> bool {
        self.frto &= flight.next() > self.end;
        !self.frto
    }

    /// tcp_ack_is_dubious(): whether [`Self::alert`] has to see this ACK.
    pub(super) fn is_dubious(&self, info: &AckInfo) -> bool {
        let is_news = info.sacked || info.ece || info.is_dsack;
        is_news || info.is_dupack || self.state != CaState::Open
    }

    /// tcp_fastretrans_alert(): an ACK arrived that is more than progress. `prior_una` was the first
    /// unacknowledged packet before it; `can_send_new`: new data could be sent.
    #[inline(never)] // most ACKs are not dubious
    pub(super) fn alert(
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

    /// Marks lost packets if an ACK delivered some, and decides when to look again for those that are not
    /// overdue yet (tcp_rack_mark_lost()).
    fn detect_losses(
        &mut self,
        context: &mut impl Context,
        flight: &mut Flight,
        decision: &mut Decision,
    ) {
        if self.rack.take_due() {
            let wait_us = self.mark_lost(context, flight);
            decision.reorder_wait_us = wait_us.or(decision.reorder_wait_us);
        }
    }

    /// Marks lost packets (tcp_rack_detect_loss()); returns how long until the last pending one is lost.
    fn mark_lost(&mut self, context: &mut impl Context, flight: &mut Flight) -> Option<u64> {
        flight.split_bursts();
        let window_us = self.reorder_window_us(context.rtt(), flight.sacked());
        let now_ns = context.now_ns();
        let mut longest_us = None;
        let mut oldest = flight.oldest();
        while let Some(number) = oldest {
            oldest = flight.after(number);
            match self.rack.judge(flight.record(number), now_ns, window_us) {
                Verdict::TooNew => break,
                Verdict::Lost => {
                    self.mark_packet_lost(context, flight, number);
                    flight.unlink(number);
                }
                Verdict::WaitUs(wait_us) => longest_us = longest_us.max(Some(wait_us)),
            }
        }
        longest_us
    }

    /// tcp_rack_reo_wnd(): without reordering so far, three packets SACKed above a hole suffice.
    fn reorder_window_us(&self, rtt: &Rtt, sacked: u32) -> u64 {
        let is_proven = self.state >= CaState::Recovery || sacked >= self.reordering.threshold();
        if !self.reordering.was_seen() && is_proven {
            return 0;
        }
        let window_us = u64::from(rtt.min_us()) / 4 * self.reordering.steps();
        window_us.min(u64::from(rtt.smoothed_us()))
    }

    fn mark_packet_lost(&mut self, context: &mut impl Context, flight: &mut Flight, number: u32) {
        if let Some(packet) = flight.mark_lost(number, context.now_ns()) {
            context.tell_lost(self, flight, &packet);
        }
    }

    /// tcp_rack_reo_timeout(): packets may be lost that were waited for. True if some were.
    pub(super) fn reorder_timed_out(
        &mut self,
        context: &mut impl Context,
        flight: &mut Flight,
    ) -> bool {
        let before = flight.inflight();
        self.mark_lost(context, flight);
        if flight.inflight() == before {
            return false;
        }
        if self.state != CaState::Recovery {
            self.enter_recovery(context, flight, false);
            if !context.owns_cwnd() {
                self.reduce(context, flight, 1, false);
            }
        }
        true
    }

    /// tcp_enter_loss(): the retransmission timer expired.
    pub(super) fn timed_out(&mut self, context: &mut impl Context, flight: &mut Flight) {
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
    pub(super) fn count_timeout(&mut self) {
        self.timeouts += 1;
    }

    /// tcp_timeout_mark_lost(): marks the first buffer, and all packets sent more than an RTT ago.
    fn mark_timed_out(&mut self, context: &mut impl Context, flight: &mut Flight) {
        flight.split_bursts();
        let (una, now_ns) = (flight.una(), context.now_ns());
        let first_end = una + flight.buffered_from(una) - 1;
        for number in una..flight.next() {
            if flight.times_out(number, first_end, now_ns, self.rack.rtt_us()) {
                self.mark_packet_lost(context, flight, number);
                flight.note_timeout(number);
            }
        }
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

    fn forget_retransmissions(&mut self, flight: &Flight) {
        if !flight.is_any_retransmitted() {
            self.undo.forget_retransmissions();
        }
    }

    fn enter_recovery(&mut self, context: &mut impl Context, flight: &Flight, ece: bool) {
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
    fn keep_open(&mut self, context: &mut impl Context, flight: &Flight) {
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
    pub(super) fn answer_probe(
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
    pub(super) fn enter_cwr(&mut self, context: &mut impl Context, flight: &Flight) {
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

    /// tcp_init_cwnd_reduction().
    fn begin_reduction(&mut self, context: &mut impl Context, flight: &Flight) {
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
    pub(super) fn reduce(
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
    fn end_reduction(&mut self, context: &mut impl Context, flight: &Flight) {
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
    fn begin_undo(&mut self, flight: &Flight) {
        let copies = flight.retransmitted() + self.probe.retransmissions();
        self.undo.begin(flight.una(), copies);
    }

    /// tcp_try_undo_recovery().
    fn try_undo_recovery(&mut self, context: &mut impl Context, flight: &mut Flight, echo_ns: u64) {
        match self.undo.was_spurious(echo_ns) {
            true => self.undo(context, flight, false),
            false => self.reordering.recovery_was_needed(),
        }
        self.set_state(context, flight, CaState::Open);
    }

    /// tcp_try_undo_partial(): the original filled the hole, not the retransmission. True if other
    /// retransmissions are in flight; nothing else is marked lost then.
    fn try_undo_partial(
        &mut self,
        context: &mut impl Context,
        flight: &mut Flight,
        prior_una: u32,
        echo_ns: u64,
    ) -> bool {
        if !self.undo.is_possible() || !self.undo.was_delayed(echo_ns) {
            return false;
        }
        self.reordering.seen(prior_una);
        if flight.retransmitted() > 0 {
            return true;
        }
        self.forget_retransmissions(flight);
        self.undo(context, flight, true);
        self.keep_open(context, flight);
        false
    }

    /// tcp_try_undo_dsack(): DSACKs reported every retransmission.
    fn try_undo_duplicates(&mut self, context: &mut impl Context, flight: &mut Flight) -> bool {
        let is_spurious = self.undo.all_were_needless();
        if is_spurious {
            self.reordering.recovery_was_spurious();
            self.undo(context, flight, false);
        }
        is_spurious
    }

    /// tcp_undo_cwnd_reduction(). `unmark` clears the loss marks.
    fn undo(&mut self, context: &mut impl Context, flight: &mut Flight, unmark: bool) {
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

    fn set_state(&mut self, context: &mut impl Context, flight: &Flight, state: CaState) {
        self.tell(context, flight, EventKind::State, state as u32);
        self.prior_state = self.state;
        self.state = state;
    }

    fn tell(&self, context: &mut impl Context, flight: &Flight, kind: EventKind, value: u32) {
        let event = Event {
            kind: kind as u32,
            value,
            ..Event::default()
        };
        context.tell(self, flight, event);
    }
}
