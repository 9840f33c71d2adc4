//! What an ACK does: scoreboard, RACK, the states of loss recovery, PRR, undo, and the call of the
//! congestion control. Order and names follow tcp_input.c, tcp_ack().

use fullpipe_cc::{flags, Ack as CcAck, CaState, EventKind, INFINITE};
use fullpipe_scenario::CcFacts;

use crate::packet::{Ack, Block, Run, MAX_BLOCKS};
use crate::rate::Sample;
use crate::receiver::Feedback;
use crate::scoreboard::{
    is_later, Sent, APP_LIMITED, EVER_RETRANS, LOST, NIL, RETRANS, SACKED, TIMED_OUT,
};
use crate::sender::{Resend, Sender, SenderEvent, TimerKind};

const NS_PER_MS: u64 = 1_000_000;
/// Linux TCP_TIMEOUT_MIN_US.
const TIMEOUT_MIN_US: u64 = 2000;

/// What one ACK brought.
#[derive(Default)]
struct Incoming {
    sample: Sample,
    newly_delivered: u32,
    first_acked_ns: Option<u64>,
    last_acked_ns: Option<u64>,
    first_sacked_ns: Option<u64>,
    last_sacked_ns: Option<u64>,
    acked_retransmission: bool,
    /// Something sent once before `high_seq` was delivered: the timeout was spurious (F-RTO).
    original_delivered: bool,
    advanced: bool,
    sacked: bool,
    /// The lowest packet that was sent once and delivered after a later one.
    late: Option<u32>,
    /// One past the highest packet that it sacks.
    sacked_end: u32,
    acked_packets: u32,
    echo_ns: u64,
    ece: bool,
    window_changed: bool,
    /// It neither acknowledges nor changes anything but what its blocks say (not FLAG_NOT_DUP).
    is_dubious: bool,
    /// It reports a duplicate (FLAG_DSACKING_ACK).
    duplicate: bool,
    /// It may answer a probe's retransmission, or what that repeated.
    answers_probe: bool,
    /// The receiver may have waited before it answered (FLAG_ACK_MAYBE_DELAYED).
    is_delayed: bool,
    /// The timer starts anew (FLAG_SET_XMIT_TIMER).
    sets_timer: bool,
}

impl Sender {
    /// An ACK arrived. Call [`Sender::transmit`] afterwards.
    #[inline]
    pub fn on_ack(&mut self, now_ns: u64, ack: &Ack) {
        self.now_ns = self.now_ns.max(now_ns);
        self.peer_closed |= ack.fin;
        if ack.next > self.snd_nxt {
            return;
        }
        if ack.next < self.snd_una {
            self.on_old_ack(ack);
            return;
        }
        self.check_app_limited_again();
        let prior_inflight = self.inflight();
        let prior_lost = self.lost;
        let prior_sacked = self.sacked_out;
        let prior_una = self.snd_una;
        let mut incoming = Incoming {
            echo_ns: ack.echo_ns,
            advanced: ack.next > self.snd_una,
            window_changed: ack.window_bytes != self.window_bytes,
            is_dubious: ack.next == self.snd_una
                && ack.window_bytes == self.window_bytes
                && !ack.fin,
            ..Incoming::default()
        };
        self.window_bytes = ack.window_bytes;
        let is_newest = ack.sent_ns >= self.echo_ns;
        self.echo_ns = ack.sent_ns;
        self.rack.advanced = false;
        self.resend = Resend::Nothing;
        if incoming.advanced {
            self.retransmits = 0;
        }

        let delivered_before = self.rate.delivered;
        match ack.count {
            0 => self.sack_cache = Default::default(),
            _ => self.take_blocks(ack, &mut incoming),
        }
        self.take_cumulative(ack.next, &mut incoming);
        incoming.newly_delivered = self.rate.delivered.wrapping_sub(delivered_before);
        self.learn_reordering(&incoming);
        self.take_marks(ack, is_newest, &mut incoming);
        let rtt_us = self.take_rtt(&mut incoming);
        if incoming.advanced {
            self.rtt.reset_back_off();
        }
        if let Some(rtt_us) = rtt_us.filter(|_| self.cc.wants(flags::WANTS_RTT)) {
            self.cc_event(EventKind::Rtt, rtt_us, incoming.acked_packets);
        }
        if self.cc.wants(flags::WANTS_ACKS) {
            self.cc_event(EventKind::Ack, 0, 0);
        }
        self.end_loss_probe(ack, &mut incoming);
        if self.is_alert(&incoming) {
            self.alert(prior_una, &mut incoming);
        }
        if incoming.sets_timer && !self.schedule_loss_probe(self.rtt.timeout_ns()) {
            self.arm_retransmit();
        }

        let losses = self.lost.wrapping_sub(prior_lost);
        let grew = incoming.newly_delivered > 0;
        let min_rtt_us = self.rtt.min_us();
        self.rate
            .generate(&mut incoming.sample, grew, self.now_ns / 1000, min_rtt_us);
        incoming.is_delayed = prior_sacked == 0 && self.answers_a_lone_runt(ack, &incoming);
        self.control(&incoming, rtt_us, losses, prior_inflight);
    }

    /// One that others have overtaken: only its blocks are news (tcp_ack(), old_ack).
    #[inline(never)] // rare
    fn on_old_ack(&mut self, ack: &Ack) {
        if ack.count == 0 {
            return;
        }
        let mut incoming = Incoming {
            echo_ns: ack.echo_ns,
            ..Incoming::default()
        };
        self.rack.advanced = false;
        self.resend = Resend::Nothing;
        self.take_blocks(ack, &mut incoming);
        self.learn_reordering(&incoming);
        if self.is_alert(&incoming) {
            self.alert(self.snd_una, &mut incoming);
        }
    }

    /// What the ACK says of marks. RFC 3168 and DCTCP mean all that it acknowledges; accurate ECN
    /// counts (tcp_accecn_process()), and of ACKs that were overtaken says nothing.
    fn take_marks(&mut self, ack: &Ack, is_newest: bool, incoming: &mut Incoming) {
        if !self.config.ecn {
            return;
        }
        let marked = match self.config.feedback {
            Feedback::Accurate if !is_newest => 0,
            Feedback::Accurate => {
                let before = std::mem::replace(&mut self.marks_seen, ack.marks);
                u32::from(ack.marks.wrapping_sub(before))
            }
            _ if ack.marks > 0 => incoming.newly_delivered,
            _ => 0,
        };
        incoming.ece = ack.marks > 0 && self.config.feedback != Feedback::Accurate || marked > 0;
        self.rate.delivered_ce = self.rate.delivered_ce.wrapping_add(marked);
    }

    /// tcp_sacktag_write_queue(): only ranges that the last ACK did not carry are walked.
    #[inline(never)] // only where something is missing
    fn take_blocks(&mut self, ack: &Ack, incoming: &mut Incoming) {
        self.board.spread_out(self.snd_una);
        let mut blocks = &ack.blocks[..usize::from(ack.count).min(MAX_BLOCKS)];
        if ack.dsack {
            if let Some((duplicate, others)) = blocks.split_first() {
                self.take_duplicate(duplicate, incoming);
                blocks = others;
            }
        }
        let cache = self.sack_cache;
        for block in blocks {
            let mut number = block.start.max(self.snd_una);
            let end = block.end.min(self.snd_nxt);
            while number < end {
                number = match cache.iter().find(|b| b.start <= number && number < b.end) {
                    Some(seen) => seen.end,
                    None => self.take_sacked_buffer(number, end, incoming),
                };
            }
        }
        let ends = blocks.iter().map(|block| block.end.min(self.snd_nxt));
        incoming.sacked_end = ends.max().unwrap_or(0);
        self.sack_cache = [Block::default(); MAX_BLOCKS];
        self.sack_cache[..blocks.len()].copy_from_slice(blocks);
    }

    /// tcp_check_dsack(), tcp_dsack_seen(): what was sent again had arrived already. More duplicates than
    /// retransmissions are the network's.
    fn take_duplicate(&mut self, duplicate: &Block, incoming: &mut Incoming) {
        let packets = duplicate.end.saturating_sub(duplicate.start);
        self.duplicates += u64::from(packets);
        if packets == 0 || self.duplicates > self.totals.packets_retransmitted {
            return;
        }
        incoming.duplicate = true;
        // The retransmission was delivered too.
        self.rate.delivered = self.rate.delivered.wrapping_add(packets);
        let is_probes = self.tlp_high == Some(duplicate.end);
        self.reordering.duplicate_reported(is_probes);
        let Some(marker) = self.undo_marker else {
            return;
        };
        let was_sent_again = duplicate.start < self.snd_una
            || duplicate.end <= self.snd_nxt
                && self.board.get(duplicate.start).flags & EVER_RETRANS != 0;
        if duplicate.end > marker && was_sent_again && self.undo_retrans > 0 {
            self.undo_retrans = (self.undo_retrans - packets as i32).max(0);
        }
    }

    /// tcp_sacktag_walk(): what a block that ends at `end` says of the buffer with `number`, up to which
    /// it is known; returns up to where it then is. A part of a buffer is cut off
    /// (tcp_match_skb_to_sack()), but where what comes before is sacked, it is shifted there and the
    /// sample is the whole buffer's (tcp_shift_skb_data()).
    fn take_sacked_buffer(&mut self, number: u32, end: u32, incoming: &mut Incoming) -> u32 {
        let record = self.board.own(number);
        let (flags, next) = (record.flags, number + 1 + u32::from(record.behind));
        if flags & SACKED != 0 {
            return number + 1;
        }
        self.board.cut_before(number, self.snd_una);
        let taken = next.min(end);
        let is_shifted = taken < next
            && number > self.snd_una
            && self.board.own(number - 1).flags & (SACKED | LOST | RETRANS) == SACKED
            && flags & (LOST | RETRANS) != RETRANS;
        if !is_shifted {
            self.board.cut_before(taken, number);
        }
        for number in number..taken {
            self.take_sacked(number, incoming);
        }
        if is_shifted {
            self.board.shift_before(number, taken);
        }
        taken
    }

    fn take_sacked(&mut self, number: u32, incoming: &mut Incoming) {
        let &Sent {
            flags,
            at_ns,
            order,
            ..
        } = self.board.own(number);
        self.advance_rack(flags, at_ns, order);
        self.deliver(number, incoming);
        if flags & LOST != 0 {
            self.lost_out -= 1;
            if flags & RETRANS != 0 {
                self.retrans_out -= 1;
            }
        }
        let record = self.board.get_mut(number);
        if flags & LOST != 0 {
            record.flags &= !(LOST | RETRANS);
        }
        record.flags |= SACKED;
        self.sacked_out += 1;
        incoming.sacked = true;
        if flags & EVER_RETRANS == 0 {
            incoming.first_sacked_ns.get_or_insert(at_ns);
            incoming.last_sacked_ns = Some(at_ns);
            self.note_original(number, incoming);
        }
    }

    /// tcp_clean_rtx_queue().
    #[inline(always)] // one of the steps of every ACK: what it brought stays at hand
    fn take_cumulative(&mut self, next: u32, incoming: &mut Incoming) {
        let before = self.snd_una;
        while self.snd_una < next {
            match self.board.take_undisturbed(self.snd_una, next) {
                Some((count, last)) => self.take_undisturbed(count, last, incoming),
                None => self.take_first(incoming),
            }
        }
        incoming.acked_packets = next - before;
        self.retransmit_hint = self.retransmit_hint.max(self.snd_una);
    }

    /// The first packets of a burst that was sent once and of which nothing else is known; `last` is the
    /// record of the last of them, from which those of the others say nothing else.
    #[inline(always)] // as `take_cumulative`
    fn take_undisturbed(&mut self, count: u32, mut last: Sent, incoming: &mut Incoming) {
        self.take_original(self.snd_una, last.at_ns, incoming);
        self.advance_rack(last.flags, last.at_ns, last.order);
        self.rate.delivered = self.rate.delivered.wrapping_add(count);
        self.snd_una += count;
        let sample = &mut incoming.sample;
        self.rate
            .packet_delivered(sample, &mut last, self.snd_una - 1);
    }

    /// The first packet, which has a record of its own.
    #[inline(never)] // only where something was missing
    fn take_first(&mut self, incoming: &mut Incoming) {
        let number = self.snd_una;
        let &Sent {
            flags,
            at_ns,
            order,
            ..
        } = self.board.own(number);
        if flags & EVER_RETRANS != 0 {
            incoming.acked_retransmission = true;
        } else if flags & SACKED == 0 {
            self.take_original(number, at_ns, incoming);
        }
        if flags & SACKED != 0 {
            self.sacked_out -= 1;
        } else {
            // tcp_skb_spurious_retrans(): the echo is older than the retransmission, which
            // says nothing of it then.
            let is_spurious = flags & EVER_RETRANS != 0 && echoes_before(incoming.echo_ns, at_ns);
            if !is_spurious {
                self.advance_rack(flags, at_ns, order);
            }
            self.deliver(number, incoming);
        }
        if flags & RETRANS != 0 {
            self.retrans_out -= 1;
        }
        if flags & LOST != 0 {
            self.lost_out -= 1;
        }
        self.snd_una += 1;
    }

    /// A packet that was sent once is acknowledged, and was not sacked before.
    #[inline]
    fn take_original(&self, number: u32, at_ns: u64, incoming: &mut Incoming) {
        incoming.first_acked_ns.get_or_insert(at_ns);
        incoming.last_acked_ns = Some(at_ns);
        self.note_original(number, incoming);
    }

    /// What arrived is a packet's only sending: what it says of reordering, and of a recovery.
    #[inline]
    fn note_original(&self, number: u32, incoming: &mut Incoming) {
        if self.reordering.is_late(number) {
            incoming.late = Some(incoming.late.map_or(number, |least| least.min(number)));
        }
        if number < self.high_seq {
            incoming.original_delivered = true;
        }
    }

    fn deliver(&mut self, number: u32, incoming: &mut Incoming) {
        self.rate.delivered = self.rate.delivered.wrapping_add(1);
        let record = self.board.get_mut(number);
        self.rate
            .packet_delivered(&mut incoming.sample, record, number);
        self.board.unlink(number);
    }

    /// tcp_rack_advance(): the newest packet known to be delivered.
    #[inline]
    fn advance_rack(&mut self, flags: u8, at_ns: u64, order: u32) {
        let rtt_us = self.now_ns.saturating_sub(at_ns) / 1000;
        // Sooner than any packet could be: the original was delivered, not the retransmission.
        if flags & EVER_RETRANS != 0 && rtt_us < u64::from(self.rtt.min_us()) {
            return;
        }
        self.rack.advanced = true;
        self.rack.rtt_us = rtt_us;
        if is_later(order, self.rack.order) {
            self.rack.order = order;
        }
    }

    /// tcp_ack_update_rtt(); returns the congestion control's sample in us. Says whether the timer starts
    /// anew: not for what was sent before the oldest packet was.
    #[inline(always)] // as `take_cumulative`
    fn take_rtt(&mut self, incoming: &mut Incoming) -> Option<u32> {
        let now_ns = self.now_ns;
        let us = |at_ns: u64| now_ns.saturating_sub(at_ns) / 1000;
        let acked = incoming
            .first_acked_ns
            .filter(|_| !incoming.acked_retransmission);
        let mut sequence_us = acked.map(us);
        let mut control_us = incoming.last_acked_ns.filter(|_| acked.is_some()).map(us);
        if let Some(last_ns) = incoming.last_sacked_ns {
            control_us = Some(us(last_ns));
            sequence_us = sequence_us.or(incoming.first_sacked_ns.map(us));
        }
        if sequence_us.is_none() && incoming.advanced && incoming.echo_ns > 0 {
            sequence_us = Some(self.echoed_rtt_us(incoming.echo_ns));
            control_us = sequence_us;
        }
        incoming.sets_timer = incoming.advanced
            || incoming.first_sacked_ns.is_some_and(|sent_ns| {
                self.packets_out() > 0 && us(sent_ns) > us(self.board.get(self.snd_una).at_ns)
            });
        let rtt_us = sequence_us?;
        let control_us = control_us.unwrap_or(rtt_us) as u32;
        self.rtt.sample_min(control_us, self.now_ns / 1000);
        self.rtt.sample(rtt_us as i64, self.snd_una, self.snd_nxt);
        Some(control_us)
    }

    /// tcp_rtt_tsopt_us(): timestamps count milliseconds, so that of what was sent again an RTT can seem
    /// nearly one shorter than it was, or longer.
    fn echoed_rtt_us(&self, echo_ns: u64) -> u64 {
        let elapsed_ms = (self.now_ns / NS_PER_MS).saturating_sub(echo_ns / NS_PER_MS);
        elapsed_ms.max(1) * 1000
    }

    /// tcp_process_tlp_ack(): a probe that sent data again and was the only copy to arrive repaired a
    /// loss, which is known once something sent later is acknowledged (RFC 8985 section 7.4.2).
    #[inline(always)] // as `take_cumulative`
    fn end_loss_probe(&mut self, ack: &Ack, incoming: &mut Incoming) {
        let Some(high) = self.tlp_high.filter(|&high| ack.next >= high) else {
            return;
        };
        let is_duplicate = ack.dsack && ack.blocks[0].end == high;
        if !self.tlp_is_retrans || is_duplicate {
            self.tlp_high = None;
        } else if ack.next > high {
            self.cc_packet_event(EventKind::TlpRecovery, 0, 0, self.tlp_app_limited);
            self.enter_cwr();
            self.end_cwnd_reduction();
            self.keep_open();
        } else if incoming.advanced || incoming.sacked || incoming.window_changed {
            incoming.answers_probe = true;
        } else {
            self.tlp_high = None; // the original and the probe both arrived
        }
    }

    /// tcp_clean_rtx_queue(): one short packet that was alone on its way, without news of others.
    fn answers_a_lone_runt(&self, ack: &Ack, incoming: &Incoming) -> bool {
        let is_runt = self.closed
            && self.snd_una == self.data_end()
            && self.last_payload < self.config.mss_bytes;
        is_runt
            && incoming.acked_packets == 1
            && incoming.sample.prior_delivered.wrapping_add(1) == self.rate.delivered
            && !(incoming.sacked || incoming.ece || ack.dsack)
    }

    /// Whether an ACK asks for more than to go on (tcp_ack_is_dubious()).
    fn is_alert(&self, incoming: &Incoming) -> bool {
        let is_alert = incoming.sacked || incoming.ece || incoming.duplicate;
        is_alert || incoming.is_dubious || self.ca_state != CaState::Open
    }

    /// tcp_fastretrans_alert(): the states.
    #[inline(never)] // most ACKs let go on
    fn alert(&mut self, prior_una: u32, incoming: &mut Incoming) {
        if incoming.ece {
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
                    self.try_undo_recovery(incoming.echo_ns);
                    self.end_cwnd_reduction();
                }
                _ => {}
            }
        }
        match self.ca_state {
            CaState::Recovery => {
                if self.snd_una > prior_una && self.try_undo_partial(prior_una, incoming) {
                    return;
                }
                if self.try_undo_duplicates() {
                    self.try_to_open(incoming.ece);
                }
                self.detect_losses(incoming);
                if self.ca_state != CaState::Recovery {
                    if self.lost_out == 0 {
                        return;
                    }
                    self.enter_recovery(incoming.ece);
                }
                self.resend = Resend::Lost;
                return;
            }
            CaState::Loss => {
                self.resend = self.process_loss(incoming);
                let retransmitted = self.retrans_out;
                self.detect_losses(incoming);
                // What was sent again is lost again: that begins a recovery.
                if self.ca_state != CaState::Open && self.retrans_out == retransmitted {
                    return;
                }
            }
            _ => {}
        }
        if self.ca_state <= CaState::Disorder {
            self.try_undo_duplicates();
        }
        self.detect_losses(incoming);
        if self.lost_out == 0 {
            self.try_to_open(incoming.ece);
            return;
        }
        self.enter_recovery(incoming.ece);
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

    /// tcp_any_retrans_done(): something that was sent again is not acknowledged.
    fn is_any_retransmitted(&self) -> bool {
        let head = self.snd_una;
        self.retrans_out > 0
            || head < self.snd_nxt && self.board.get(head).flags & EVER_RETRANS != 0
    }

    fn clean_retrans_stamp(&mut self) {
        if !self.is_any_retransmitted() {
            self.retrans_ns = 0;
        }
    }

    /// RACK marks what was sent long enough before the newest delivery (RFC 8985 section 6.2,
    /// tcp_rack_detect_loss()); what is nearly due gets a timer.
    fn detect_losses(&mut self, incoming: &mut Incoming) {
        if !self.rack.advanced {
            return;
        }
        self.rack.advanced = false;
        if let Some(wait_us) = self.mark_lost() {
            self.arm_reorder(wait_us);
            incoming.sets_timer = false;
        }
    }

    /// Marks lost packets; returns how long the next one still has.
    fn mark_lost(&mut self) -> Option<u64> {
        self.board.spread_out(self.snd_una);
        let window_us = self.reorder_window_us();
        let mut longest_us = None;
        let mut number = self.board.oldest();
        while number != NIL {
            let following = self.board.after(number);
            let record = self.board.own(number);
            if !is_later(self.rack.order, record.order) {
                break;
            }
            let age_us = self.now_ns.saturating_sub(record.at_ns) / 1000;
            let limit_us = self.rack.rtt_us + window_us;
            if age_us >= limit_us {
                self.mark_packet_lost(number);
                self.board.unlink(number);
            } else {
                longest_us = longest_us.max(Some(limit_us - age_us));
            }
            number = following;
        }
        longest_us
    }

    /// tcp_check_sack_reordering(), tcp_rack_update_reo_wnd().
    fn learn_reordering(&mut self, incoming: &Incoming) {
        self.reordering.sacked_up_to(incoming.sacked_end);
        if let Some(late) = incoming.late {
            if self.ca_state != CaState::Loss || self.undo_marker.is_some() {
                self.reordering.seen(late);
            }
        }
        let prior = incoming.sample.prior_delivered;
        if prior != 0 {
            self.reordering.adapt(prior, self.rate.delivered);
        }
    }

    /// tcp_rack_reo_wnd(): where nothing was ever reordered, three packets above a hole are proof.
    fn reorder_window_us(&self) -> u64 {
        if !self.reordering.was_seen()
            && (self.ca_state >= CaState::Recovery
                || self.sacked_out >= self.reordering.threshold())
        {
            return 0;
        }
        let window_us = u64::from(self.rtt.min_us()) / 4 * self.reordering.steps();
        window_us.min(u64::from(self.rtt.smoothed_us()))
    }

    fn mark_packet_lost(&mut self, number: u32) {
        let flags = self.board.own(number).flags;
        let is_news = flags & (LOST | RETRANS) != LOST;
        self.lost_out += u32::from(flags & LOST == 0);
        self.retrans_out -= u32::from(flags & RETRANS != 0);
        self.lost = self.lost.wrapping_add(u32::from(is_news));
        let record = self.board.get_mut(number);
        record.flags = (record.flags | LOST) & !RETRANS;
        let tx_inflight = record.burst_inflight - u32::from(record.behind);
        let lost = self.lost.wrapping_sub(record.lost);
        let is_app_limited = record.flags & APP_LIMITED != 0;
        if is_news && self.tells_of_losses() {
            self.cc_packet_event(EventKind::Lost, tx_inflight, lost, is_app_limited);
        }
        self.retransmit_hint = self.retransmit_hint.min(number);
        self.lost_end = self.lost_end.max(number + 1);
    }

    fn tells_of_losses(&self) -> bool {
        self.config.facts == CcFacts::Google && self.cc.wants(flags::WANTS_RING)
    }

    /// tcp_rack_mark_lost(): never sooner than TCP_TIMEOUT_MIN_US.
    fn arm_reorder(&mut self, wait_us: u64) {
        let wait_ns = (wait_us + TIMEOUT_MIN_US) * 1000;
        self.set_timer(TimerKind::Reorder, wait_ns);
    }

    /// tcp_rack_reo_timeout().
    pub(crate) fn on_reorder_timeout(&mut self, out: &mut Vec<Run>) {
        let before = self.inflight();
        self.mark_lost();
        if self.inflight() != before && self.ca_state != CaState::Recovery {
            if self.ca_state != CaState::Loss {
                self.enter_recovery(false);
            }
            if !self.owns_cwnd() && self.in_cwnd_reduction() {
                self.reduce_cwnd(1, 0, false);
            }
        }
        if self.inflight() != before {
            self.retransmit_lost(out);
        }
        self.arm_retransmit();
    }

    pub(crate) fn in_cwnd_reduction(&self) -> bool {
        matches!(self.ca_state, CaState::Cwr | CaState::Recovery)
    }

    /// tcp_current_ssthresh(): what an undo should restore.
    fn current_ssthresh(&self) -> u32 {
        if self.in_cwnd_reduction() {
            self.ctl.ssthresh
        } else {
            self.ctl.ssthresh.max(self.ctl.cwnd / 2 + self.ctl.cwnd / 4)
        }
    }

    /// tcp_init_undo(): what is on its way again, a probe too, may be reported as a duplicate. None at
    /// all is not "all of them".
    fn init_undo(&mut self) {
        self.undo_marker = Some(self.snd_una);
        let probes = u32::from(self.tlp_high.is_some() && self.tlp_is_retrans);
        self.undo_retrans = match self.retrans_out + probes {
            0 => -1,
            count => count as i32,
        };
    }

    fn enter_recovery(&mut self, ece: bool) {
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

    fn init_cwnd_reduction(&mut self) {
        self.high_seq = self.snd_nxt;
        self.tlp_high = None;
        self.ctl.cwnd_cnt = 0;
        self.prior_cwnd = self.ctl.cwnd;
        self.prr_delivered = 0;
        self.prr_out = 0;
        self.cc_event(EventKind::Ssthresh, 0, 0);
        self.cwr_pending = self.config.ecn && self.config.feedback != Feedback::Accurate;
    }

    fn enter_cwr(&mut self) {
        self.prior_ssthresh = 0;
        if self.ca_state < CaState::Cwr {
            self.undo_marker = None;
            self.init_cwnd_reduction();
            self.set_ca_state(CaState::Cwr);
            self.events.push(SenderEvent::Cwr);
        }
    }

    fn end_cwnd_reduction(&mut self) {
        self.events.push(SenderEvent::RecoveryEnd);
        if self.owns_cwnd() {
            return;
        }
        let reduced = self.ca_state == CaState::Cwr || self.undo_marker.is_some();
        if self.ctl.ssthresh < INFINITE && reduced {
            self.ctl.cwnd = self.ctl.ssthresh;
        }
        self.cc_event(EventKind::CompleteCwr, 0, 0);
    }

    fn keep_open(&mut self) {
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

    /// tcp_timeout_mark_lost(): the first buffer, and of the rest what was sent more than an RTT ago.
    fn mark_timed_out(&mut self) {
        self.board.spread_out(self.snd_una);
        let first_end = self.snd_una + u32::from(self.board.own(self.snd_una).behind);
        for number in self.snd_una..self.snd_nxt {
            let record = self.board.own(number);
            let flags = record.flags;
            let age_us = self.now_ns.saturating_sub(record.at_ns) / 1000;
            let is_recent = number > first_end && age_us < self.rack.rtt_us;
            if flags & SACKED == 0 && flags & (LOST | RETRANS) != LOST && !is_recent {
                self.mark_packet_lost(number);
                self.board.unlink(number);
                self.board.get_mut(number).flags |= TIMED_OUT;
            }
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
        self.set_ca_state(CaState::Loss);
        self.high_seq = self.snd_nxt;
        self.cwr_pending = self.config.ecn && self.config.feedback != Feedback::Accurate;
        self.frto = !in_recovery || self.retransmits > 0;
        self.tlp_high = None;
        self.totals.timeouts += 1;
        self.events.push(SenderEvent::Timeout);
    }

    /// tcp_process_loss(): F-RTO (RFC 5682) and the way out.
    fn process_loss(&mut self, incoming: &Incoming) -> Resend {
        let recovered = self.snd_una >= self.high_seq;
        if incoming.advanced && self.undo_if_spurious(incoming.echo_ns, true) {
            self.leave_loss();
            return Resend::Nothing;
        }
        if self.frto {
            if incoming.original_delivered && self.undo(true) {
                self.leave_loss();
                return Resend::Nothing;
            }
            if self.snd_nxt > self.high_seq {
                self.frto &= !incoming.sacked && (!incoming.is_dubious || incoming.duplicate);
            } else if incoming.advanced && !recovered {
                self.high_seq = self.snd_nxt;
                // Step 2.b: new data first, whose ACKs tell what arrived before.
                if self.has_sendable() {
                    return Resend::NewFirst;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery(incoming.echo_ns);
            return Resend::Nothing;
        }
        Resend::Lost
    }

    fn leave_loss(&mut self) {
        self.retransmits = 0;
        self.frto = false;
        self.set_ca_state(CaState::Open);
    }

    fn try_undo_recovery(&mut self, echo_ns: u64) {
        if !self.undo_if_spurious(echo_ns, false) {
            self.reordering.recovery_stood();
        }
        self.set_ca_state(CaState::Open);
    }

    /// tcp_try_undo_partial(): the hole was filled by the late original, not by what was sent again.
    /// True if more is on its way again: nothing else is taken for lost then.
    fn try_undo_partial(&mut self, prior_una: u32, incoming: &Incoming) -> bool {
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
    fn try_undo_duplicates(&mut self) -> bool {
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
    fn undo_if_spurious(&mut self, echo_ns: u64, unmark: bool) -> bool {
        let is_spurious = self.undo_retrans == 0 || self.is_delayed(echo_ns);
        self.undo_marker.is_some() && is_spurious && self.undo(unmark)
    }

    /// tcp_undo_cwnd_reduction().
    fn undo(&mut self, unmark: bool) -> bool {
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

    /// tcp_may_raise_cwnd(): where packets overtake one another a great deal, also on what is sacked.
    fn may_raise_cwnd(&self, incoming: &Incoming) -> bool {
        incoming.advanced || incoming.sacked && self.reordering.is_great()
    }

    /// tcp_cong_control().
    #[inline(always)] // as `take_cumulative`
    fn control(&mut self, incoming: &Incoming, rtt_us: Option<u32>, losses: u32, inflight: u32) {
        if !self.owns_cwnd() {
            if self.in_cwnd_reduction() {
                self.reduce_cwnd(incoming.newly_delivered, losses, incoming.advanced);
            } else if self.may_raise_cwnd(incoming) {
                let acked_sacked = incoming.newly_delivered;
                let mut ack = CcAck {
                    acked_sacked,
                    ..CcAck::default()
                };
                self.gather();
                self.cc.on_ack(&self.conn, &mut ack, &mut self.ctl);
            }
            self.update_pacing_rate();
            return;
        }
        let sample = &incoming.sample;
        // A buffer whose first part is acknowledged keeps its end (tcp_clean_rtx_queue() trims it).
        let end = sample.end.wrapping_mul(self.config.mss_bytes);
        let mut ack = CcAck {
            prior_us: sample.prior_us,
            prior_delivered: sample.prior_delivered,
            prior_delivered_ce: sample.prior_delivered_ce,
            delivered: sample.delivered,
            delivered_ce: sample.delivered_ce,
            interval_us: sample.interval_us,
            rtt_us: rtt_us.map_or(-1, |us| us as i32),
            losses,
            acked_sacked: incoming.newly_delivered,
            prior_inflight: inflight,
            last_end_seq: end,
            is_app_limited: u8::from(sample.is_app_limited),
            is_retrans: u8::from(sample.is_retrans),
            is_ack_delayed: u8::from(incoming.is_delayed),
            is_probe_answer: u8::from(incoming.answers_probe),
            age_us: (self.now_ns / 1000).saturating_sub(self.rate.first_tx_us) as u32,
            tx_inflight: sample.tx_inflight,
            lost: self.lost.wrapping_sub(sample.prior_lost),
        };
        self.gather();
        self.cc.on_ack(&self.conn, &mut ack, &mut self.ctl);
    }

    /// Proportional rate reduction (RFC 6937 with its slow-start bound, tcp_cwnd_reduction()).
    #[inline(never)] // only in recovery
    fn reduce_cwnd(&mut self, delivered: u32, losses: u32, advanced: bool) {
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

/// tcp_tsopt_ecr_before(): the ACK answers what was sent before that. Timestamps count milliseconds.
fn echoes_before(echo_ns: u64, at_ns: u64) -> bool {
    echo_ns > 0 && echo_ns / NS_PER_MS < at_ns / NS_PER_MS
}
