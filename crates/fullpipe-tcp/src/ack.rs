//! What an ACK says: of the packets that it acknowledges and sacks, of marks and of the RTT; then the
//! call of the congestion control. Order and names follow tcp_input.c, tcp_ack(). What follows from it
//! for loss recovery is in `recovery.rs`.

use fullpipe_cc::{flags, Ack as CcAck, CaState, EventKind};

use crate::packet::{Ack, Block, MAX_BLOCKS};
use crate::rate::Sample;
use crate::receiver::Feedback;
use crate::scoreboard::{is_later, Sent, EVER_RETRANS, LOST, RETRANS, SACKED};
use crate::sender::{Resend, Sender};
use crate::undo::echoes_before;

const NS_PER_MS: u64 = 1_000_000;

/// When the first and the last of some packets were sent.
#[derive(Clone, Copy)]
pub(crate) struct Sendings {
    first_ns: u64,
    last_ns: u64,
}

impl Sendings {
    fn add(known: &mut Option<Self>, at_ns: u64) {
        *known = Some(Self {
            first_ns: known.map_or(at_ns, |known| known.first_ns),
            last_ns: at_ns,
        });
    }

    /// RTTs of the first and the last, in us.
    fn rtts_us(self, now_ns: u64) -> (u64, u64) {
        let us = |at_ns: u64| now_ns.saturating_sub(at_ns) / 1000;
        let last_us = us(self.last_ns);
        match self.first_ns == self.last_ns {
            true => (last_us, last_us),
            false => (us(self.first_ns), last_us),
        }
    }
}

/// What one ACK brought.
#[derive(Default)]
pub(crate) struct Incoming {
    pub(crate) sample: Sample,
    pub(crate) newly_delivered: u32,
    /// Of what was sent once.
    pub(crate) acked: Option<Sendings>,
    pub(crate) newly_sacked: Option<Sendings>,
    pub(crate) acked_retransmission: bool,
    /// Something sent once before `high_seq` was delivered: the timeout was spurious (F-RTO).
    pub(crate) original_delivered: bool,
    pub(crate) advanced: bool,
    pub(crate) sacked: bool,
    /// The lowest packet that was sent once and delivered after a later one.
    pub(crate) late: Option<u32>,
    /// One past the highest packet that it sacks.
    pub(crate) sacked_end: u32,
    pub(crate) acked_packets: u32,
    pub(crate) echo_ns: u64,
    pub(crate) ece: bool,
    pub(crate) window_changed: bool,
    /// It neither acknowledges nor changes anything but what its blocks say (not FLAG_NOT_DUP).
    pub(crate) is_dubious: bool,
    /// It reports a duplicate (FLAG_DSACKING_ACK).
    pub(crate) duplicate: bool,
    /// It may answer a probe's retransmission, or what that repeated.
    pub(crate) answers_probe: bool,
    /// The receiver may have waited before it answered (FLAG_ACK_MAYBE_DELAYED).
    pub(crate) is_delayed: bool,
    /// The timer starts anew (FLAG_SET_XMIT_TIMER).
    pub(crate) sets_timer: bool,
}

impl Sender {
    /// An ACK arrived. Call [`Sender::transmit`] afterwards.
    #[inline]
    pub fn on_ack(&mut self, now_ns: u64, ack: &Ack) {
        self.advance_clock(now_ns);
        self.peer_closed |= ack.fin;
        if ack.next > self.snd_nxt {
            return;
        }
        if ack.next < self.snd_una {
            self.on_old_ack(ack);
            return;
        }
        match self.is_predicted(ack) {
            true => self.take_ack::<true>(ack),
            false => self.take_unpredicted(ack),
        }
    }

    /// It acknowledges what is next and says nothing else, and nothing is missing (header prediction,
    /// tcp_ack()'s fast path).
    #[inline(always)] // as `take_ack`
    fn is_predicted(&self, ack: &Ack) -> bool {
        let acknowledges = ack.count == 0 && ack.next > self.snd_una;
        let is_open = self.ca_state == CaState::Open && self.tlp_high.is_none();
        acknowledges && is_open && !self.config.ecn && self.board.has_only_bursts(self.snd_una)
    }

    #[inline(never)]
    fn take_unpredicted(&mut self, ack: &Ack) {
        self.take_ack::<false>(ack);
    }

    /// `PREDICTED`: by [`Self::is_predicted`], so that the compiler leaves out what else ACKs may bring.
    #[inline(always)] // or what it brings goes through memory
    fn take_ack<const PREDICTED: bool>(&mut self, ack: &Ack) {
        self.check_app_limited_again();
        // Where nothing is missing all that is out is in flight.
        let prior_inflight = match PREDICTED {
            true => self.packets_out(),
            false => self.inflight(),
        };
        let prior_lost = self.conn.lost;
        let prior_sacked = self.sacked_out;
        let prior_una = self.snd_una;
        let mut incoming = Incoming {
            echo_ns: ack.echo_ns,
            advanced: PREDICTED || ack.next > self.snd_una,
            window_changed: ack.window_bytes != self.window_bytes,
            is_dubious: !PREDICTED
                && ack.next == self.snd_una
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
        if !PREDICTED && ack.count > 0 {
            self.take_blocks(ack, &mut incoming);
        } else {
            self.sack_cache = Default::default();
        }
        self.take_cumulative::<PREDICTED>(ack.next, &mut incoming);
        incoming.newly_delivered = self.rate.delivered.wrapping_sub(delivered_before);
        self.learn_reordering(&incoming);
        if !PREDICTED {
            self.take_marks(ack, is_newest, &mut incoming);
        }
        let rtt_us = self.take_rtt(&mut incoming);
        if incoming.advanced {
            self.rtt.reset_back_off();
        }
        if let Some(rtt_us) = rtt_us.filter(|_| self.cc.wants(flags::WANTS_RTT)) {
            self.cc_rtt(rtt_us, incoming.acked_packets);
        }
        if self.cc.wants(flags::WANTS_ACKS) {
            self.cc_event(EventKind::Ack, 0, 0);
        }
        if !PREDICTED {
            self.end_loss_probe(ack, &mut incoming);
            if self.is_alert(&incoming) {
                self.alert(prior_una, &mut incoming);
            }
        }
        if incoming.sets_timer && !self.schedule_loss_probe(self.rtt.timeout_ns()) {
            self.arm_retransmit();
        }

        let losses = self.conn.lost.wrapping_sub(prior_lost);
        let grew = incoming.newly_delivered > 0;
        let min_rtt_us = self.rtt.min_us();
        self.rate
            .generate(&mut incoming.sample, grew, self.conn.now_us, min_rtt_us);
        incoming.is_delayed =
            (PREDICTED || prior_sacked == 0) && self.answers_a_lone_runt(ack, &incoming);
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
            Sendings::add(&mut incoming.newly_sacked, at_ns);
            self.note_original(number, incoming);
        }
    }

    /// tcp_clean_rtx_queue().
    #[inline(always)] // one of the steps of every ACK: what it brought stays at hand
    fn take_cumulative<const PREDICTED: bool>(&mut self, next: u32, incoming: &mut Incoming) {
        let before = self.snd_una;
        while self.snd_una < next {
            match self.board.take_undisturbed(self.snd_una, next) {
                Some((count, last)) => self.take_undisturbed(count, last, incoming),
                None if PREDICTED => break, // never: there are only bursts
                None => self.take_first(incoming),
            }
        }
        incoming.acked_packets = next - before;
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
    #[inline(always)] // as `take_ack`
    fn take_original(&self, number: u32, at_ns: u64, incoming: &mut Incoming) {
        Sendings::add(&mut incoming.acked, at_ns);
        self.note_original(number, incoming);
    }

    /// What arrived is a packet's only sending: what it says of reordering, and of a recovery.
    #[inline(always)] // as `take_ack`
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
        let acked = incoming.acked.filter(|_| !incoming.acked_retransmission);
        let mut rtts_us = acked.map(|acked| acked.rtts_us(now_ns));
        let newly_sacked = incoming.newly_sacked.map(|sacked| sacked.rtts_us(now_ns));
        if let Some((first_us, last_us)) = newly_sacked {
            rtts_us = Some((rtts_us.map_or(first_us, |(acked_us, _)| acked_us), last_us));
        }
        if rtts_us.is_none() && incoming.advanced && incoming.echo_ns > 0 {
            let echoed_us = self.echoed_rtt_us(incoming.echo_ns);
            rtts_us = Some((echoed_us, echoed_us));
        }
        incoming.sets_timer = incoming.advanced
            || newly_sacked.is_some_and(|(first_us, _)| {
                let oldest_ns = self.board.oldest_sent_ns(self.snd_una);
                self.packets_out() > 0 && first_us > now_ns.saturating_sub(oldest_ns) / 1000
            });
        let (sequence_us, control_us) = rtts_us?;
        let control_us = control_us as u32;
        self.rtt.sample_min(control_us, self.conn.now_us);
        self.rtt
            .sample(sequence_us as i64, self.snd_una, self.snd_nxt);
        self.conn.srtt_us = self.rtt.smoothed_us();
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
    #[inline(always)] // as `take_ack`
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

    /// tcp_check_sack_reordering(), tcp_rack_update_reo_wnd().
    #[inline(always)] // as `take_ack`
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
            age_us: self.conn.now_us.saturating_sub(self.rate.first_tx_us) as u32,
            tx_inflight: sample.tx_inflight,
            lost: self.conn.lost.wrapping_sub(sample.prior_lost),
        };
        self.gather();
        self.cc.on_ack(&self.conn, &mut ack, &mut self.ctl);
    }

    /// tcp_may_raise_cwnd(): where packets overtake one another a great deal, also on what is sacked.
    fn may_raise_cwnd(&self, incoming: &Incoming) -> bool {
        incoming.advanced || incoming.sacked && self.reordering.is_great()
    }
}
