//! Loss recovery. `states.rs` has its state machine, `marks.rs` finds losses, `reduction.rs` reduces the window
//! and undoes that. Must never know the congestion control: what it needs of it is [`Context`].

mod marks;
mod probe;
mod prr;
mod rack;
mod reduction;
mod reordering;
mod states;
#[cfg(test)]
mod tests;
mod undo;

use fullpipe_cc::{CaState, Ctl, Event};

use crate::packet::Block;

use self::probe::LossProbe;
use self::prr::Prr;
use self::rack::Rack;
use self::reordering::Reordering;
use self::undo::Undo;
use super::ack_info::AckInfo;
use super::flight::{Flight, LostPacket};
use super::journal::SenderEvent;
use super::rtt::Rtt;
use super::scoreboard::Sent;
use super::stream::Stream;

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
    /// How many full packets hold what those from `first` to `end` hold.
    fn full_packets(&self, first: u32, end: u32) -> u32;
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

    /// Retransmission timeouts since data were last acknowledged.
    pub(super) fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// Packets that DSACKs reported.
    pub(super) fn duplicates(&self) -> u64 {
        self.undo.duplicates()
    }

    /// Times that reordering was seen.
    pub(super) fn reorderings(&self) -> u32 {
        self.reordering.times_seen()
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

    /// New data are acknowledged.
    #[inline(always)]
    pub(super) fn advanced(&mut self) {
        self.timeouts = 0;
    }

    /// A packet was delivered, with this record.
    #[inline(always)]
    pub(super) fn delivered(&mut self, sent: &Sent, now_ns: u64, min_rtt_us: u32) {
        self.rack.delivered(sent, now_ns, min_rtt_us);
    }

    /// A packet that was sent once was SACKed: looks for reordering and spurious timeouts.
    #[inline(always)]
    pub(super) fn note_original_sack(&self, number: u32, info: &mut AckInfo) {
        if self.reordering.is_late(number) {
            info.note_reordered(number);
        }
        info.original_delivered |= number < self.end;
    }

    /// The same of one that was acknowledged.
    #[inline(always)]
    pub(super) fn note_original_ack(&self, number: u32, info: &mut AckInfo) {
        if self.reordering.is_late(number) {
            info.note_acked_late(number);
        }
        info.original_delivered |= number < self.end;
    }

    /// tcp_check_sack_reordering(), tcp_rack_update_reo_wnd().
    #[inline(always)]
    pub(super) fn learn_reordering(
        &mut self,
        info: &AckInfo,
        (flight, stream): (&Flight, &Stream),
        delivered: u32,
    ) {
        self.reordering.sacked_up_to(info.sacked_end);
        if let Some(late) = info.reordered {
            if self.state != CaState::Loss || self.undo.is_possible() {
                let end = self.reordering.highest_sacked();
                self.reordering.seen(stream.full_packets(late, end));
            }
        }
        if let Some(late) = info.acked_late {
            let end = self.highest_sack(flight);
            self.reordering.seen(stream.full_packets(late, end));
        }
        let prior = info.sample.prior_delivered;
        if prior != 0 {
            self.reordering.adapt(prior, delivered);
        }
    }

    /// tcp_highest_sack_seq(): one past the highest SACKed packet, or the first that is not acknowledged.
    fn highest_sack(&self, flight: &Flight) -> u32 {
        match flight.sacked() {
            0 => flight.una(),
            _ => self.reordering.highest_sacked(),
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
        self.count_needless(duplicate, flight);
        true
    }

    /// Each walk that finds the packets of a DSACK sent again counts them (tcp_sacktag_one()).
    pub(super) fn count_needless(&mut self, duplicate: &Block, flight: &Flight) {
        let packets = duplicate.end.saturating_sub(duplicate.start);
        let was_sent_again = duplicate.start < flight.una()
            || duplicate.end <= flight.next() && flight.was_retransmitted(duplicate.start);
        if was_sent_again {
            self.undo
                .retransmission_was_needless(duplicate.end, packets);
        }
    }

    /// Whether packets just before `end` belong to an episode that may be undone.
    pub(super) fn may_undo_before(&self, end: u32) -> bool {
        self.undo.covers(end)
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

    /// F-RTO was to send new data: ends it if none were sent. True if lost packets are to be sent then.
    pub(super) fn end_frto_without_new_data(&mut self, flight: &Flight) -> bool {
        self.frto &= flight.next() > self.end;
        !self.frto
    }
}
