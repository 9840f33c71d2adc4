//! Processes ACKs: what they acknowledge and SACK, ECN marks, RTT samples, then the call of the congestion
//! control. Order and names follow tcp_ack() of tcp_input.c. Loss recovery is in `fast_retransmit.rs`.

use fullpipe_cc::{flags, Ack as CcAck, CaState, EventKind};

use super::rate::Sample;
use super::scoreboard::{is_later, Sent, EVER_RETRANS, LOST, RETRANS, SACKED};
use super::{Resend, Sender, SenderEvent};
use crate::packet::EcnFeedback;
use crate::packet::{Ack, Block, MAX_BLOCKS};

const NS_PER_MS: u64 = 1_000_000;

/// When the first and the last of the packets were sent that an ACK covers.
#[derive(Clone, Copy)]
pub(crate) struct SendTimes {
    first_ns: u64,
    last_ns: u64,
}

impl SendTimes {
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

/// What one ACK says (struct tcp_sacktag_state and the flags of tcp_ack()).
#[derive(Default)]
pub(crate) struct AckInfo {
    pub(crate) sample: Sample,
    pub(crate) newly_delivered: u32,
    /// Send times of acknowledged packets that were sent once.
    pub(crate) acked: Option<SendTimes>,
    /// Send times of newly SACKed packets that were sent once.
    pub(crate) newly_sacked: Option<SendTimes>,
    pub(crate) acked_retransmission: bool,
    /// A packet below `high_seq` that was sent once was delivered: F-RTO takes the timeout for spurious
    /// (FLAG_ORIG_SACK_ACKED).
    pub(crate) original_delivered: bool,
    pub(crate) advanced: bool,
    pub(crate) sacked: bool,
    /// The lowest packet that was sent once and delivered after a later one.
    pub(crate) reordered: Option<u32>,
    /// One past the highest SACKed packet.
    pub(crate) sacked_end: u32,
    pub(crate) acked_packets: u32,
    pub(crate) echo_ns: u64,
    pub(crate) ece: bool,
    pub(crate) window_changed: bool,
    /// Header prediction failed (FLAG_SLOWPATH), apart from ECN marks.
    pub(crate) is_slow: bool,
    /// Apart from SACK blocks it says nothing new (no FLAG_NOT_DUP).
    pub(crate) is_dupack: bool,
    /// It carries a DSACK (FLAG_DSACKING_ACK).
    pub(crate) is_dsack: bool,
    /// It may acknowledge a loss probe's retransmission or the original.
    pub(crate) answers_tlp: bool,
    /// The receiver may have delayed it (FLAG_ACK_MAYBE_DELAYED).
    pub(crate) is_delayed: bool,
    /// The retransmission timer is restarted (FLAG_SET_XMIT_TIMER).
    pub(crate) sets_timer: bool,
}

impl AckInfo {
    /// The bits of CC_EVENT_ACK (tcp_in_ack_event()).
    fn ack_bits(&self) -> u32 {
        let slow = self.is_slow || self.ece;
        u32::from(slow) | u32::from(self.window_changed) << 1 | u32::from(self.ece) << 2
    }
}

impl Sender {
    /// Processes an ACK. Call [`Sender::transmit`] afterwards.
    #[inline]
    pub fn on_ack(&mut self, now_ns: u64, ack: &Ack) {
        self.advance_clock(now_ns);
        self.peer_closed |= ack.fin;
        self.acks = self.acks.wrapping_add(1);
        (self.ack_sent_ns, self.ack_echo_ns) = (ack.sent_ns, ack.echo_ns);
        if ack.next > self.snd_nxt || ack.sent_ns < self.echo_ns && self.is_stale(ack) {
            return;
        }
        if ack.next < self.snd_una {
            self.on_old_ack(ack);
            return;
        }
        match self.is_predicted(ack) {
            true => self.process_ack::<true>(ack),
            false => self.process_unpredicted_ack(ack),
        }
    }

    /// PAWS drops an ACK whose timestamp, in milliseconds, is older than the newest one's by more than
    /// TCP_PAWS_WINDOW, unless it says nothing but SACK blocks (tcp_paws_discard(), tcp_disordered_ack()).
    #[inline(never)] // only where ACKs overtake each other
    fn is_stale(&self, ack: &Ack) -> bool {
        let is_disordered = ack.next == self.snd_una && !self.updates_window(ack) && !ack.fin;
        ack.sent_ns / NS_PER_MS + 1 < self.echo_ns / NS_PER_MS && !is_disordered
    }

    /// tcp_may_update_window(), for ACKs without data: of two with the same number the larger window counts.
    #[inline(always)] // as `process_ack`
    fn updates_window(&self, ack: &Ack) -> bool {
        ack.next > self.snd_una || ack.window_bytes > self.window_bytes || ack.window_bytes == 0
    }

    /// Whether it only acknowledges the next packets while none is missing (header prediction, the fast
    /// path of tcp_ack()).
    #[inline(always)] // as `process_ack`
    fn is_predicted(&self, ack: &Ack) -> bool {
        let acknowledges = ack.count == 0 && ack.next > self.snd_una;
        let is_open = self.ca_state == CaState::Open && self.tlp_high.is_none();
        acknowledges && is_open && !self.config.ecn && self.board.has_only_bursts(self.snd_una)
    }

    #[inline(never)]
    fn process_unpredicted_ack(&mut self, ack: &Ack) {
        match self.packets_out() {
            0 => self.process_ack_of_nothing(ack),
            _ => self.process_ack::<false>(ack),
        }
    }

    /// Nothing is unacknowledged: the congestion control sees no such ACK (tcp_ack(), no_queue).
    fn process_ack_of_nothing(&mut self, ack: &Ack) {
        self.recheck_app_limited();
        let mut info = AckInfo {
            echo_ns: ack.echo_ns,
            is_slow: true,
            window_changed: self.updates_window(ack),
            ..AckInfo::default()
        };
        let delivered_before = self.rate.delivered;
        let is_newest = self.take_header(ack, info.window_changed);
        self.resend = Resend::Nothing;
        if ack.count > 0 {
            self.process_sack(ack, &mut info);
        }
        info.newly_delivered = self.rate.delivered.wrapping_sub(delivered_before);
        self.process_marks(ack, is_newest, &mut info);
        if self.cc.wants(flags::WANTS_ACKS) {
            self.cc_event(EventKind::Ack, info.ack_bits(), 0);
        }
        if info.is_dsack {
            self.fastretrans_alert(self.snd_una, &mut info);
        }
        self.process_tlp_ack(ack, &mut info);
    }

    /// Takes over window and timestamp; whether no ACK was sent later.
    #[inline(always)] // as `process_ack`
    fn take_header(&mut self, ack: &Ack, updates_window: bool) -> bool {
        if updates_window {
            self.window_bytes = ack.window_bytes;
        }
        let is_newest = ack.sent_ns >= self.echo_ns;
        if is_newest {
            self.echo_ns = ack.sent_ns;
        }
        is_newest
    }

    /// With `PREDICTED` ([`Self::is_predicted`]) the compiler leaves out everything but the fast path.
    #[inline(always)] // keeps `AckInfo` in registers
    fn process_ack<const PREDICTED: bool>(&mut self, ack: &Ack) {
        self.recheck_app_limited();
        // Without losses and SACKs every packet out is in flight.
        let prior_inflight = match PREDICTED {
            true => self.packets_out(),
            false => self.inflight(),
        };
        let prior_lost = self.conn.lost;
        let prior_sacked = self.sacked_out;
        let prior_una = self.snd_una;
        let mut info = AckInfo {
            echo_ns: ack.echo_ns,
            advanced: PREDICTED || ack.next > self.snd_una,
            window_changed: PREDICTED || self.updates_window(ack),
            ..AckInfo::default()
        };
        info.is_dupack = !PREDICTED && !info.window_changed && !ack.fin;
        info.is_slow = ack.count > 0 || ack.window_bytes != self.window_bytes;
        let is_newest = self.take_header(ack, info.window_changed);
        self.resend = Resend::Nothing;
        if info.advanced {
            self.retransmits = 0;
        }

        let delivered_before = self.rate.delivered;
        if !PREDICTED && ack.count > 0 {
            self.process_sack(ack, &mut info);
        } else {
            self.sack_cache = Default::default();
        }
        self.process_cumulative_ack::<PREDICTED>(ack.next, &mut info);
        info.newly_delivered = self.rate.delivered.wrapping_sub(delivered_before);
        self.learn_reordering(&info);
        if !PREDICTED {
            self.process_marks(ack, is_newest, &mut info);
        }
        let rtt_us = self.process_rtt(&mut info);
        if self.cc.wants(flags::WANTS_RTT) {
            self.report_rtt(rtt_us, &info);
        }
        if self.cc.wants(flags::WANTS_ACKS) {
            self.cc_event(EventKind::Ack, info.ack_bits(), 0);
        }
        if !PREDICTED {
            self.process_tlp_ack(ack, &mut info);
            if self.is_dubious(&info) {
                self.fastretrans_alert(prior_una, &mut info);
            }
        }
        if info.sets_timer && !self.schedule_loss_probe(self.rtt.timeout_ns()) {
            self.arm_retransmit();
        }

        let losses = self.conn.lost.wrapping_sub(prior_lost);
        let grew = info.newly_delivered > 0;
        let min_rtt_us = self.rtt.min_us();
        self.rate
            .generate(&mut info.sample, grew, self.conn.now_us, min_rtt_us);
        info.is_delayed = (PREDICTED || prior_sacked == 0) && self.is_ack_maybe_delayed(ack, &info);
        self.cong_control(&info, rtt_us, losses, prior_inflight);
    }

    /// An ACK older than one before: only its SACK blocks count (tcp_ack(), old_ack).
    #[inline(never)] // rare
    fn on_old_ack(&mut self, ack: &Ack) {
        if ack.count == 0 {
            return;
        }
        let mut info = AckInfo {
            echo_ns: ack.echo_ns,
            ..AckInfo::default()
        };
        self.resend = Resend::Nothing;
        self.process_sack(ack, &mut info);
        self.learn_reordering(&info);
        self.fastretrans_alert(self.snd_una, &mut info);
    }

    /// ECN marks. RFC 3168 and DCTCP mark all packets that the ACK covers. Accurate ECN counts packets
    /// (tcp_accecn_process()); reordered ACKs are ignored.
    fn process_marks(&mut self, ack: &Ack, is_newest: bool, info: &mut AckInfo) {
        if !self.config.ecn {
            return;
        }
        let marked = match self.config.feedback {
            EcnFeedback::Accurate if !is_newest => 0,
            EcnFeedback::Accurate => {
                let before = std::mem::replace(&mut self.marks_seen, ack.marks);
                u32::from(ack.marks.wrapping_sub(before))
            }
            _ if ack.marks > 0 => info.newly_delivered,
            _ => 0,
        };
        info.ece = ack.marks > 0 && self.config.feedback != EcnFeedback::Accurate || marked > 0;
        self.rate.delivered_ce = self.rate.delivered_ce.wrapping_add(marked);
    }

    /// tcp_sacktag_write_queue(): walks only ranges that the previous ACK did not carry.
    #[inline(never)] // only after loss or reordering
    fn process_sack(&mut self, ack: &Ack, info: &mut AckInfo) {
        self.board.split_bursts(self.snd_una);
        let mut blocks = &ack.blocks[..usize::from(ack.count).min(MAX_BLOCKS)];
        if ack.dsack {
            if let Some((duplicate, others)) = blocks.split_first() {
                if self.process_dsack(duplicate, info) {
                    self.sack_duplicate(duplicate, ack.next, info);
                }
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
                    None => self.sack_buffer(number, end, info),
                };
            }
        }
        let ends = blocks.iter().map(|block| block.end.min(self.snd_nxt));
        info.sacked_end = ends.max().unwrap_or(0);
        self.sack_cache = [Block::default(); MAX_BLOCKS];
        self.sack_cache[..blocks.len()].copy_from_slice(blocks);
    }

    /// tcp_check_dsack(), tcp_dsack_seen(): a retransmission was unnecessary. More duplicates than
    /// retransmissions come from the network and are ignored.
    fn process_dsack(&mut self, duplicate: &Block, info: &mut AckInfo) -> bool {
        let packets = duplicate.end.saturating_sub(duplicate.start);
        self.duplicates += u64::from(packets);
        if packets == 0 || self.duplicates > self.totals.packets_retransmitted {
            return false;
        }
        info.is_dsack = true;
        // The retransmission was delivered as well.
        self.rate.delivered = self.rate.delivered.wrapping_add(packets);
        let is_probes = self.tlp_high == Some(duplicate.end);
        self.reordering.duplicate_reported(is_probes);
        let Some(marker) = self.undo_marker else {
            return true;
        };
        let was_sent_again = duplicate.start < self.snd_una
            || duplicate.end <= self.snd_nxt
                && self.board.get(duplicate.start).flags & EVER_RETRANS != 0;
        if duplicate.end > marker && was_sent_again && self.undo_retrans > 0 {
            self.undo_retrans = (self.undo_retrans - packets as i32).max(0);
        }
        true
    }

    /// tcp_sacktag_one() for a DSACK beyond `next`: the packets are SACKed even if no block has named them,
    /// and one that is SACKed already was sent again because it came late.
    fn sack_duplicate(&mut self, duplicate: &Block, next: u32, info: &mut AckInfo) {
        let mut number = duplicate.start.max(next);
        let end = duplicate.end.min(self.snd_nxt);
        while number < end {
            let flags = self.board.own(number).flags;
            if flags & (SACKED | EVER_RETRANS) == SACKED | EVER_RETRANS {
                info.reordered = Some(info.reordered.map_or(number, |least| least.min(number)));
            }
            let following = self.sack_buffer(number, end, info);
            if flags & RETRANS != 0 && self.board.own(number).flags & RETRANS != 0 {
                self.board.get_mut(number).flags &= !RETRANS;
                self.retrans_out -= 1;
            }
            number = following;
        }
    }

    /// tcp_sacktag_walk(): applies a SACK block that ends at `end` to the buffer from `number` on; returns
    /// one past the last packet processed. A partly covered buffer is split (tcp_match_skb_to_sack()). If
    /// the packet before is SACKed, the covered part is merged with it instead, and the rate sample is the
    /// whole buffer's (tcp_shift_skb_data()).
    fn sack_buffer(&mut self, number: u32, end: u32, info: &mut AckInfo) -> u32 {
        let record = self.board.own(number);
        let (flags, next) = (record.flags, number + 1 + u32::from(record.behind));
        if flags & SACKED != 0 {
            return number + 1;
        }
        self.cut_before(number, self.snd_una);
        let taken = next.min(end);
        let merges = number > self.snd_una
            && self.is_sacked_alone(number - 1)
            && flags & (LOST | RETRANS) != RETRANS;
        let is_shifted = merges && taken < next;
        if !is_shifted {
            self.cut_before(taken, number);
        }
        for number in number..taken {
            self.sack_packet(number, info);
        }
        if is_shifted {
            self.board.shift_before(number, taken);
            self.queue.move_boundary(number, taken, self.snd_una);
        } else if merges {
            self.queue.merge_before(number, self.snd_una);
            if taken < self.snd_nxt && self.is_sacked_alone(taken) {
                self.queue.merge_before(taken, self.snd_una);
            }
        }
        taken
    }

    /// Splits the buffer that contains packets on both sides of `number`; `from` is `snd_una`, or a packet
    /// of that buffer (tcp_fragment()).
    pub(crate) fn cut_before(&mut self, number: u32, from: u32) {
        self.board.cut_before(number, from);
        self.queue.cut_before(number, self.snd_una);
    }

    /// Whether a packet is SACKed and was not sent again since it was marked lost.
    fn is_sacked_alone(&self, number: u32) -> bool {
        self.board.own(number).flags & (SACKED | LOST | RETRANS) == SACKED
    }

    fn sack_packet(&mut self, number: u32, info: &mut AckInfo) {
        let &Sent {
            flags,
            at_ns,
            order,
            ..
        } = self.board.own(number);
        self.advance_rack(flags, at_ns, order);
        self.deliver(number, info);
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
        info.sacked = true;
        if flags & EVER_RETRANS == 0 {
            SendTimes::add(&mut info.newly_sacked, at_ns);
            self.note_original(number, info);
        }
    }

    /// tcp_clean_rtx_queue().
    #[inline(always)] // keeps `AckInfo` in registers
    fn process_cumulative_ack<const PREDICTED: bool>(&mut self, next: u32, info: &mut AckInfo) {
        let before = self.snd_una;
        while self.snd_una < next {
            match self.board.ack_burst(self.snd_una, next) {
                Some((count, last)) => self.ack_burst(count, last, info),
                None if PREDICTED => break, // unreachable: all records are bursts
                None => self.ack_packet(info),
            }
        }
        info.acked_packets = next - before;
    }

    /// Acknowledges the first `count` packets of a burst that still has one record; `last` is the last
    /// packet's, which stands for all.
    #[inline(always)] // as `process_cumulative_ack`
    fn ack_burst(&mut self, count: u32, mut last: Sent, info: &mut AckInfo) {
        self.note_original_ack(self.snd_una, last.at_ns, info);
        self.advance_rack(last.flags, last.at_ns, last.order);
        self.rate.delivered = self.rate.delivered.wrapping_add(count);
        self.snd_una += count;
        let sample = &mut info.sample;
        self.rate
            .packet_delivered(sample, &mut last, self.snd_una - 1);
    }

    /// Acknowledges the first packet, which has a record of its own.
    #[inline(never)] // only after loss or SACKs
    fn ack_packet(&mut self, info: &mut AckInfo) {
        let number = self.snd_una;
        let &Sent {
            flags,
            at_ns,
            order,
            ..
        } = self.board.own(number);
        if flags & EVER_RETRANS != 0 {
            info.acked_retransmission = true;
        } else if flags & SACKED == 0 {
            self.note_original_ack(number, at_ns, info);
        }
        if flags & SACKED != 0 {
            self.sacked_out -= 1;
        } else {
            // tcp_skb_spurious_retrans(): the timestamp echo is older than the retransmission, so the
            // original was delivered.
            let is_spurious = flags & EVER_RETRANS != 0 && echoes_before(info.echo_ns, at_ns);
            if !is_spurious {
                self.advance_rack(flags, at_ns, order);
            }
            self.deliver(number, info);
        }
        if flags & RETRANS != 0 {
            self.retrans_out -= 1;
        }
        if flags & LOST != 0 {
            self.lost_out -= 1;
        }
        self.snd_una += 1;
    }

    /// A packet that was sent once and not SACKed is acknowledged.
    #[inline(always)] // as `process_ack`
    fn note_original_ack(&self, number: u32, at_ns: u64, info: &mut AckInfo) {
        SendTimes::add(&mut info.acked, at_ns);
        self.note_original(number, info);
    }

    /// A packet that was sent once was delivered: looks for reordering and spurious timeouts.
    #[inline(always)] // as `process_ack`
    fn note_original(&self, number: u32, info: &mut AckInfo) {
        if self.reordering.is_late(number) {
            info.reordered = Some(info.reordered.map_or(number, |least| least.min(number)));
        }
        if number < self.high_seq {
            info.original_delivered = true;
        }
    }

    fn deliver(&mut self, number: u32, info: &mut AckInfo) {
        self.rate.delivered = self.rate.delivered.wrapping_add(1);
        let record = self.board.get_mut(number);
        self.rate.packet_delivered(&mut info.sample, record, number);
        self.board.unlink(number);
    }

    /// tcp_rack_advance(): keeps the most recently sent packet that was delivered.
    #[inline]
    fn advance_rack(&mut self, flags: u8, at_ns: u64, order: u32) {
        let rtt_us = self.now_ns.saturating_sub(at_ns) / 1000;
        // Faster than the minimum RTT: the original was delivered, not the retransmission.
        if flags & EVER_RETRANS != 0 && rtt_us < u64::from(self.rtt.min_us()) {
            return;
        }
        self.rack.advanced = true;
        self.rack.rtt_us = rtt_us;
        if is_later(order, self.rack.order) {
            self.rack.order = order;
        }
    }

    /// tcp_ack_update_rtt(): returns the congestion control's RTT sample in us, and sets `sets_timer`.
    #[inline(always)] // as `process_cumulative_ack`
    fn process_rtt(&mut self, info: &mut AckInfo) -> Option<u32> {
        let now_ns = self.now_ns;
        let acked = info.acked.filter(|_| !info.acked_retransmission);
        let mut rtts_us = acked.map(|acked| acked.rtts_us(now_ns));
        let newly_sacked = info.newly_sacked.map(|sacked| sacked.rtts_us(now_ns));
        if let Some((first_us, last_us)) = newly_sacked {
            rtts_us = Some((rtts_us.map_or(first_us, |(acked_us, _)| acked_us), last_us));
        }
        if rtts_us.is_none() && info.advanced && info.echo_ns > 0 {
            let echoed_us = self.echoed_rtt_us(info.echo_ns);
            rtts_us = Some((echoed_us, echoed_us));
        }
        info.sets_timer = info.advanced
            || newly_sacked.is_some_and(|(first_us, _)| {
                let oldest_ns = self.board.oldest_sent_ns(self.snd_una);
                self.packets_out() > 0 && first_us > now_ns.saturating_sub(oldest_ns) / 1000
            });
        let (sequence_us, control_us) = rtts_us?;
        let control_us = control_us as u32;
        self.rtt.sample_min(control_us, self.conn.now_us);
        self.rtt
            .sample(sequence_us as i64, self.snd_una, self.snd_nxt);
        self.rtt.reset_back_off();
        self.conn.srtt_us = self.rtt.smoothed_us();
        Some(control_us)
    }

    /// Reports an RTT sample, and to an algorithm that wants every ACK also that there is none
    /// (pkts_acked() of tcp_clean_rtx_queue()).
    #[inline(always)] // as `process_ack`
    fn report_rtt(&mut self, rtt_us: Option<u32>, info: &AckInfo) {
        if !self.cc.wants(flags::WANTS_EVERY_RTT) {
            if let Some(rtt_us) = rtt_us {
                self.cc_rtt(rtt_us, info.acked_packets, 0);
            }
            return;
        }
        let since = self
            .rate
            .delivered
            .wrapping_sub(info.sample.prior_delivered);
        self.cc_rtt(rtt_us.unwrap_or(u32::MAX), info.acked_packets, since);
    }

    /// tcp_rtt_tsopt_us(): the RTT by the timestamp echo, in whole milliseconds.
    fn echoed_rtt_us(&self, echo_ns: u64) -> u64 {
        let elapsed_ms = (self.now_ns / NS_PER_MS).saturating_sub(echo_ns / NS_PER_MS);
        elapsed_ms.max(1) * 1000
    }

    /// tcp_process_tlp_ack(): if a later packet is acknowledged without a DSACK for the loss probe, the
    /// probe repaired a loss and the window is reduced (RFC 8985 section 7.4.2).
    #[inline(always)] // as `process_cumulative_ack`
    fn process_tlp_ack(&mut self, ack: &Ack, info: &mut AckInfo) {
        let Some(high) = self.tlp_high.filter(|&high| ack.next >= high) else {
            return;
        };
        let is_duplicate = ack.dsack && ack.blocks[0].end == high;
        if !self.tlp_is_retrans || is_duplicate {
            self.tlp_high = None;
        } else if ack.next > high {
            self.cc_packet_event(EventKind::TlpRecovery, 0, 0, self.tlp_app_limited);
            self.init_cwnd_reduction();
            self.set_ca_state(CaState::Cwr);
            self.events.push(SenderEvent::Cwr);
            self.end_cwnd_reduction();
            self.keep_open();
        } else if info.advanced || info.sacked || info.window_changed {
            info.answers_tlp = true;
        } else {
            self.tlp_high = None; // both the original and the probe arrived
        }
    }

    /// tcp_clean_rtx_queue(): the ACK covers a single short packet that was alone in flight.
    #[inline(always)] // as `process_ack`
    fn is_ack_maybe_delayed(&self, ack: &Ack, info: &AckInfo) -> bool {
        let is_runt = self.closed
            && self.snd_una == self.data_end()
            && self.last_payload < self.config.mss_bytes;
        is_runt
            && info.acked_packets == 1
            && info.sample.prior_delivered.wrapping_add(1) == self.rate.delivered
            && !(info.sacked || info.ece || ack.dsack)
    }

    /// tcp_ack_is_dubious(): whether the recovery state machine has to see this ACK.
    fn is_dubious(&self, info: &AckInfo) -> bool {
        let is_news = info.sacked || info.ece || info.is_dsack;
        is_news || info.is_dupack || self.ca_state != CaState::Open
    }

    /// tcp_check_sack_reordering(), tcp_rack_update_reo_wnd().
    #[inline(always)] // as `process_ack`
    fn learn_reordering(&mut self, info: &AckInfo) {
        self.reordering.sacked_up_to(info.sacked_end);
        if let Some(late) = info.reordered {
            if self.ca_state != CaState::Loss || self.undo_marker.is_some() {
                self.reordering.seen(late);
            }
        }
        let prior = info.sample.prior_delivered;
        if prior != 0 {
            self.reordering.adapt(prior, self.rate.delivered);
        }
    }

    /// tcp_cong_control().
    #[inline(always)] // as `process_cumulative_ack`
    fn cong_control(&mut self, info: &AckInfo, rtt_us: Option<u32>, losses: u32, inflight: u32) {
        if !self.owns_cwnd() {
            if self.in_cwnd_reduction() {
                self.reduce_cwnd(info.newly_delivered, losses, info.advanced);
            } else if self.may_raise_cwnd(info) {
                let acked_sacked = info.newly_delivered;
                let mut ack = CcAck {
                    acked_sacked,
                    ..CcAck::default()
                };
                self.gather();
                self.cc.on_ack(&self.conn, &mut ack, &mut self.ctl);
                if std::mem::take(&mut self.ctl.enters_cwr) != 0 {
                    self.enter_cwr();
                }
            }
            self.update_pacing_rate();
            return;
        }
        let sample = &info.sample;
        // A partly acknowledged buffer keeps its end sequence (tcp_clean_rtx_queue() trims its start).
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
            acked_sacked: info.newly_delivered,
            prior_inflight: inflight,
            last_end_seq: end,
            is_app_limited: u8::from(sample.is_app_limited),
            is_retrans: u8::from(sample.is_retrans),
            is_ack_delayed: u8::from(info.is_delayed),
            is_probe_answer: u8::from(info.answers_tlp),
            age_us: self.conn.now_us.saturating_sub(self.rate.first_tx_us) as u32,
            tx_inflight: sample.tx_inflight,
            lost: self.conn.lost.wrapping_sub(sample.prior_lost),
        };
        self.gather();
        self.cc.on_ack(&self.conn, &mut ack, &mut self.ctl);
    }

    /// tcp_may_raise_cwnd(): with reordering beyond three packets, SACKs suffice.
    fn may_raise_cwnd(&self, info: &AckInfo) -> bool {
        info.advanced || info.sacked && self.reordering.exceeds_dupthresh()
    }
}

/// tcp_tsopt_ecr_before(): whether the timestamp echo, in milliseconds, is older than `at_ns`.
pub(crate) fn echoes_before(echo_ns: u64, at_ns: u64) -> bool {
    echo_ns > 0 && echo_ns / NS_PER_MS < at_ns / NS_PER_MS
}
