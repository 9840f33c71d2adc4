//! Sends packets: tcp_write_xmit() and tcp_xmit_retransmit_queue() of tcp_output.c.

use std::ops::Range;

use fullpipe_cc::{flags, CaState, EventKind};
use fullpipe_plan::{Pacing, RateRestart};

use super::scoreboard::{Sent, APP_LIMITED, LOST, RETRANS, SACKED, TIMED_OUT};
use super::{Resend, Sender, TimerKind, NEVER_NS};
use crate::countdown::Countdown;
use crate::packet::{Burst, Data};
use crate::skb::{BUFFER_BYTES, GSO_MAX_BYTES};

/// Bursts may be larger at small RTTs: by gso_max at 0, and by half of that every 2^9 us (sysctl
/// tcp_tso_rtt_log).
const TSO_RTT_LOG: u32 = 9;
/// The first packets are not paced (tcp_update_skb_after_send(): data_segs_out >= TCP_INIT_CWND).
const UNPACED_PACKETS: u64 = 10;
const NS_PER_MS: u64 = 1_000_000;

/// How much tcp_write_xmit() sends (its push_one).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Push {
    AsMany,
    /// One burst, which is not deferred.
    One,
}

/// The first buffer of the write queue.
struct Head {
    packets: u32,
    is_last: bool,
    /// The application may still add to it.
    may_grow: bool,
}

impl Sender {
    /// Sends what may be sent now: retransmissions first, then new data. Appends bursts to `out` in the
    /// order of departure.
    #[inline(always)] // after every ACK
    pub fn transmit(&mut self, now_ns: u64, out: &mut Vec<Burst>) {
        self.advance_clock(now_ns);
        if !self.established {
            return;
        }
        if self.packets_out() == 0 {
            self.restart_after_idle();
        }
        let resend = std::mem::take(&mut self.resend);
        if resend != Resend::Nothing {
            self.send_lost(resend, out);
        }
        self.send_new(Push::AsMany, out);
        self.check_space();
        while self.may_write {
            self.write_until_blocked(out);
        }
    }

    #[inline(never)] // most ACKs cause no retransmission
    fn send_lost(&mut self, resend: Resend, out: &mut Vec<Burst>) {
        match resend {
            Resend::IfRoom => {
                if self.lost_out > self.retrans_out && self.ctl.cwnd > self.inflight() {
                    self.retransmit_lost(out);
                }
            }
            Resend::Nothing => {}
            Resend::Lost => self.retransmit_lost(out),
            Resend::NewFirst => {
                self.push_pending(Push::AsMany, out);
                self.frto &= self.snd_nxt > self.high_seq;
                if !self.frto {
                    self.retransmit_lost(out);
                }
            }
        }
    }

    /// There are unsent data, and the receive window has room for them.
    pub(crate) fn has_sendable(&self) -> bool {
        let mss = u64::from(self.config.mss_bytes);
        self.has_unsent() && u64::from(self.packets_out() + 1) * mss <= self.window_bytes
    }

    /// A packet has left the qdisc below TCP (with fq only: TCP small queues).
    pub fn departed(&mut self, packet: &Data) {
        let buffer_bytes = if packet.leads_burst { BUFFER_BYTES } else { 0 };
        let left_bytes = u64::from(packet.payload_bytes) + buffer_bytes;
        self.queued_bytes = self.queued_bytes.saturating_sub(left_bytes);
    }

    /// tcp_slow_start_after_idle_check(): RFC 2861, for algorithms that leave it to the host.
    #[inline(never)] // nothing is in flight
    fn restart_after_idle(&mut self) {
        let idle_ns = self.now_ns.saturating_sub(self.last_send_ns);
        let idle = self.snd_nxt > 0 && self.snd_nxt < self.written;
        if !idle || self.owns_cwnd() || idle_ns <= self.rtt.timeout_ns() {
            return;
        }
        self.cc_event(EventKind::CwndRestart, 0, 0);
        let restart = self.config.initial_cwnd.min(self.ctl.cwnd);
        self.ctl.ssthresh = self.current_ssthresh();
        let mut left_ns = idle_ns;
        let rto_ns = self.rtt.timeout_ns();
        while left_ns > rto_ns && self.ctl.cwnd > restart {
            self.ctl.cwnd >>= 1;
            left_ns -= rto_ns;
        }
        self.ctl.cwnd = self.ctl.cwnd.max(restart);
        self.cwnd_stamp_ns = self.now_ns;
        self.cwnd_used = 0;
    }

    /// The least packets of a burst, from the congestion control, which is called before every burst.
    #[inline(always)] // as `send_new`
    fn min_burst(&mut self) -> u32 {
        match self.owns_cwnd() {
            true => self.request_min_burst(),
            false => self.cc.least_burst(&mut self.ctl),
        }
    }

    #[inline(never)] // once a burst
    fn request_min_burst(&mut self) -> u32 {
        self.gather();
        self.cc.on_send(&self.conn, &mut self.ctl)
    }

    /// tcp_tso_autosize(): a burst lasts about a millisecond at the pacing rate.
    fn burst_packets(&self, least: u32) -> u32 {
        let mut bytes = self.ctl.pacing_rate_bytes_per_s >> self.config.pacing_shift;
        let shift = self.rtt.min_us() >> TSO_RTT_LOG;
        if shift < 32 {
            bytes += GSO_MAX_BYTES >> shift;
        }
        let bytes = bytes.min(GSO_MAX_BYTES);
        let packets = (bytes / u64::from(self.config.mss_bytes)) as u32;
        let most = match u32::from(self.ctl.tso_most) {
            0 => self.config.gso_max_segments,
            most => most.min(self.config.gso_max_segments),
        };
        packets.max(least).min(most)
    }

    /// Whether pacing forbids to send now; starts the pacing timer then (tcp_pacing_check()).
    fn pacing_blocks(&mut self) -> bool {
        if self.config.pacing == Pacing::Fq || !self.owns_cwnd() || self.conn.edt_ns <= self.now_ns
        {
            return false;
        }
        self.pacing_at_ns = self.conn.edt_ns;
        true
    }

    /// Whether too much is queued below TCP for a burst of `packets`; retransmissions may queue twice as
    /// much (tcp_small_queue_check()).
    fn small_queue_full(&self, packets: u32, again: bool) -> bool {
        if self.config.pacing != Pacing::Fq {
            return false;
        }
        let payload_bytes = u64::from(packets) * u64::from(self.config.mss_bytes);
        let two_bursts = 2 * (payload_bytes + BUFFER_BYTES);
        let allowed = self.ctl.pacing_rate_bytes_per_s >> self.config.pacing_shift;
        let allowed = allowed.max(two_bursts).min(self.output_limit_bytes);
        // sk_wmem_alloc counts the socket itself as one byte (sk_alloc()), so two equal bursts that wait
        // are already too much for a third.
        let allocated = self.queued_bytes + 1;
        allocated > allowed << u32::from(again) && !self.has_one_buffer_at_most()
    }

    /// tcp_rtx_queue_empty_or_single_skb().
    fn has_one_buffer_at_most(&self) -> bool {
        self.packets_out() == 0 || self.board.buffer_end(self.snd_una) >= self.snd_nxt
    }

    /// tcp_xmit_retransmit_queue(): buffer by buffer, as far as pacing, window and small queues allow.
    #[inline(never)] // rare
    pub(crate) fn retransmit_lost(&mut self, out: &mut Vec<Burst>) {
        if self.packets_out() == 0 {
            return;
        }
        let min_burst = self.min_burst();
        let max_burst = self.burst_packets(min_burst);
        self.board.split_bursts(self.snd_una);
        let mut number = self.retransmit_hint.max(self.snd_una);
        let mut has_head = false;
        // No packet from `lost_end` on is lost.
        while number < self.lost_end {
            let flags = self.board.own(number).flags;
            if flags & LOST == 0 || flags & (SACKED | RETRANS) != 0 {
                number += 1;
                self.retransmit_hint = number;
                continue;
            }
            let room = self.ctl.cwnd.saturating_sub(self.inflight());
            if self.pacing_blocks() || room == 0 {
                break;
            }
            let held = u32::from(self.board.own(number).behind) + 1;
            let count = held.min(room).min(max_burst);
            if self.small_queue_full(held, true) {
                break;
            }
            self.send_again(number, count, out);
            if self.in_cwnd_reduction() {
                self.prr_out += count;
            }
            has_head |= number == self.snd_una;
            number += count;
            self.retransmit_hint = number;
        }
        let reorders = matches!(self.timer, Some((TimerKind::Reorder, _)));
        if has_head && !reorders {
            self.set_timer(TimerKind::Retransmit, self.rtt.timeout_ns());
        }
    }

    /// Data or a FIN are unsent.
    fn has_unsent(&self) -> bool {
        self.snd_nxt < self.queue.end || self.lone_fin.is_some_and(|fin| fin >= self.snd_nxt)
    }

    /// __tcp_push_pending_frames().
    #[inline(never)]
    pub(crate) fn push_pending(&mut self, push: Push, out: &mut Vec<Burst>) {
        self.send_new(push, out);
    }

    #[inline(always)] // into `transmit`
    fn send_new(&mut self, push: Push, out: &mut Vec<Burst>) {
        if !self.has_unsent() {
            return;
        }
        // Most ACKs send nothing, as pacing or the window forbids it: an algorithm whose on_send() is pure
        // is only called if something can be sent.
        let calls_late = self.cc.on_send_is_pure();
        let mut min_burst = match calls_late {
            true => 0,
            false => self.min_burst(),
        };
        let mut max_burst = 0;
        let (mut limited, mut sent) = (false, 0);
        loop {
            if self.pacing_blocks() {
                break;
            }
            let inflight = self.inflight();
            if inflight >= self.ctl.cwnd {
                limited = true;
                break;
            }
            // A FIN needs room in the window too, since Linux 6.10 (tcp_cwnd_test()).
            if self.lone_fin == Some(self.snd_nxt) {
                self.send_burst(self.snd_nxt, 1, false, out);
                sent += 1;
                break;
            }
            let window_room = self.window_packets().saturating_sub(self.packets_out());
            if self.snd_nxt >= self.queue.end || window_room == 0 {
                break;
            }
            // tcp_cwnd_test(): at most half a window in one burst.
            let half = (self.ctl.cwnd / 2).max(1);
            let cwnd_room = (self.ctl.cwnd - inflight).min(half);
            let room = self.ctl.cwnd - inflight;
            if max_burst == 0 {
                if calls_late {
                    min_burst = self.min_burst();
                }
                max_burst = self.burst_packets(min_burst);
            }
            let most = max_burst.min(cwnd_room);
            let head = self.head(most);
            let burst = most.min(window_room).min(head.packets);
            if push == Push::AsMany
                && head.packets > 1
                && self.defers(room, window_room, max_burst, &head)
            {
                limited |= room < window_room && room <= head.packets;
                break;
            }
            if self.small_queue_full(burst, false) {
                break;
            }
            self.send_burst(self.snd_nxt, burst, false, out);
            self.check_space();
            sent += burst;
            if push == Push::One {
                break;
            }
        }
        if sent > 0 {
            if self.in_cwnd_reduction() {
                self.prr_out += sent;
            }
            self.schedule_loss_probe(self.timeout_left_ns());
        }
        if sent > 0 || limited {
            limited |= self.inflight() >= self.ctl.cwnd;
            self.validate_cwnd(limited);
        }
    }

    /// The receive window in packets.
    fn window_packets(&self) -> u32 {
        let window = self.window_bytes / u64::from(self.config.mss_bytes);
        window.min(u64::from(u32::MAX)) as u32
    }

    /// The first buffer of the write queue. It may be extended from the second up to `most` packets
    /// ([`crate::Rules::bursts_span_buffers`]).
    #[inline]
    fn head(&mut self, most: u32) -> Head {
        let grows = self.config.rules.bursts_span_buffers();
        let (packets, is_last) = self.queue.first_packets(self.snd_nxt, most, grows);
        Head {
            packets,
            may_grow: is_last && !(self.closed && self.queue.end == self.data_end()),
            is_last,
        }
    }

    /// tcp_tso_should_defer(): waits for a larger burst if an ACK is due soon. A buffer that is not the
    /// last is sent at once if all of it fits.
    #[inline(always)] // as `send_new`
    fn defers(&self, room: u32, window_room: u32, max_burst: u32, head: &Head) -> bool {
        let limit = room.min(window_room);
        // With pacing, tcp_wstamp_ns is the next departure that the rate allows, so a burst that the
        // pacing timer releases may still be deferred.
        if self.ca_state >= CaState::Recovery
            || self.now_ns.saturating_sub(self.conn.edt_ns) > NS_PER_MS
            || limit >= max_burst
            || !head.is_last && head.packets <= limit
            || self.packets_out() == 0
        {
            return false;
        }
        // sysctl tcp_tso_win_divisor: a third of the window is sent at once.
        let mss = u64::from(self.config.mss_bytes);
        let window_bytes = self.window_bytes.min(u64::from(self.ctl.cwnd) * mss);
        if u64::from(limit) * mss >= window_bytes / 3 {
            return false;
        }
        let srtt_ns = self.rtt.smoothed8() * 1000 / 8;
        let ack_at_ns = self.board.oldest_sent_ns(self.snd_una) + srtt_ns;
        let patience_ns = if self.config.rules.defers_at_most_1_ms() {
            NS_PER_MS.min(srtt_ns / 2)
        } else {
            srtt_ns / 2
        };
        // Data that the window has room for are deferred only if the application may add to them.
        ack_at_ns <= self.now_ns + patience_ns && (head.packets >= limit || head.may_grow)
    }

    /// tcp_cwnd_validate().
    fn validate_cwnd(&mut self, limited: bool) {
        let grew = self.packets_out() > self.max_packets_out;
        let is_new = if self.config.rules.remembers_cwnd_limited() {
            limited || !self.is_cwnd_limited && grew
        } else {
            grew
        };
        if self.snd_una >= self.cwnd_usage_seq || is_new {
            self.is_cwnd_limited = limited;
            self.max_packets_out = self.packets_out();
            self.cwnd_usage_seq = self.snd_nxt;
        }
        if self.owns_cwnd() {
            return;
        }
        if self.cwnd_limited() {
            self.cwnd_used = 0;
            self.cwnd_stamp_ns = self.now_ns;
        } else {
            self.validate_unused_cwnd();
        }
    }

    /// RFC 2861: a window that was not used for a timeout shrinks towards what was used of it
    /// (tcp_cwnd_application_limited()).
    #[inline(never)] // limited by the application or the receive window
    fn validate_unused_cwnd(&mut self) {
        self.cwnd_used = self.cwnd_used.max(self.packets_out());
        if self.now_ns - self.cwnd_stamp_ns < self.rtt.timeout_ns() {
            return;
        }
        if self.ca_state == CaState::Open && !self.queue.is_blocking {
            let used = self.cwnd_used.max(self.config.initial_cwnd);
            if used < self.ctl.cwnd {
                self.ctl.ssthresh = self.current_ssthresh();
                self.ctl.cwnd = (self.ctl.cwnd + used) / 2;
            }
            self.cwnd_used = 0;
        }
        self.cwnd_stamp_ns = self.now_ns;
    }

    /// Sends packets `number..number + count` as one burst, and advances the pacing clock.
    fn send_burst(&mut self, number: u32, count: u32, again: bool, out: &mut Vec<Burst>) {
        // tcp_event_data_sent(), for retransmissions too.
        if self.inflight() == 0 {
            self.cc_event(EventKind::TxStart, 0, 0);
        }
        let prior_edt_ns = self.conn.edt_ns;
        self.conn.edt_ns = self.conn.edt_ns.max(self.now_ns);
        let departs_ns = if self.config.pacing == Pacing::Fq {
            self.conn.edt_ns
        } else {
            self.now_ns
        };
        let has_psh = !again && self.queue.take_psh(number + count);
        let leader = out.len();
        let payload = self.record_burst(number, count, departs_ns, again, out);
        let burst = &mut out[leader..];
        if let Some(Burst { data: first, .. }) = burst.first_mut() {
            first.leads_burst = true;
            first.cwr = !again && std::mem::take(&mut self.cwr_pending);
        }
        // __tcp_transmit_skb() sets PSH on what GSO will cut.
        let is_pushed = count > 1 || has_psh;
        if let (Some(last), true) = (burst.last_mut(), is_pushed) {
            last.data.push = true;
        }
        self.last_send_ns = departs_ns;
        self.conn.last_send_us = departs_ns / 1000;
        self.data_segs_out += u64::from(count);
        if self.is_paced() && self.data_segs_out >= UNPACED_PACKETS {
            let rate = self.ctl.pacing_rate_bytes_per_s.max(1);
            let length_ns = payload * 1_000_000_000 / rate;
            // Credit for a late timer, up to half a burst.
            let credit_ns = self.conn.edt_ns - prior_edt_ns;
            self.conn.edt_ns += length_ns - (length_ns / 2).min(credit_ns);
        }
        if self.config.pacing == Pacing::Fq {
            self.queued_bytes += payload + BUFFER_BYTES;
        }
    }

    /// tcp_retransmit_skb(): a retransmission that counts as in flight. Loss probes do not
    /// (__tcp_retransmit_skb()).
    fn send_again(&mut self, number: u32, count: u32, out: &mut Vec<Burst>) {
        self.board.split_bursts(self.snd_una);
        self.cut_before(number + count, self.snd_una);
        self.send_burst(number, count, true, out);
        for place in number..number + count {
            let record = self.board.get_mut(place);
            record.flags = record.flags & !TIMED_OUT | RETRANS;
        }
        self.retrans_out += count;
        self.undo_retrans = self.undo_retrans.max(0) + count as i32;
        if self.retrans_ns == 0 {
            self.retrans_ns = self.last_send_ns;
        }
    }

    /// Records a burst on the scoreboard and appends it to `out`; returns its payload.
    fn record_burst(
        &mut self,
        first: u32,
        count: u32,
        departs_ns: u64,
        again: bool,
        out: &mut Vec<Burst>,
    ) -> u64 {
        let nothing_out = self.packets_out() == 0;
        let inflight = self.inflight();
        let restarts = match self.config.rate_restart {
            RateRestart::Unacknowledged => nothing_out,
            RateRestart::Inflight => inflight == 0,
        };
        let burst_inflight = inflight + count;
        let end = self.data_end();
        let are_full = self.shorts.is_empty() && first + count < end;
        let common = Data {
            payload_bytes: self.config.mss_bytes,
            departs_ns,
            echo_ns: self.echo_ns,
            is_retransmission: again,
            // Retransmissions are not ECN-capable (RFC 3168 section 6.1.5).
            ect: self.config.ecn && (!again || self.keeps_ect()),
            l4s: self.config.l4s && self.ctl.is_scalable != 0,
            ..Data::default()
        };
        let mut record = Sent::first_of(count, departs_ns, burst_inflight, self.conn.lost);
        self.rate.sent(&mut record, departs_ns / 1000, restarts);
        if again {
            self.totals.packets_retransmitted += u64::from(count);
            self.board.split_bursts(self.snd_una);
            for place in 0..count {
                self.board.sent_again(first + place, record.later(place));
            }
        } else {
            self.snd_nxt = first + count;
            self.conn.snd_nxt = self.snd_nxt.wrapping_mul(self.config.mss_bytes);
            self.queue.send(self.snd_nxt, self.snd_una);
            self.board.sent_first(first, count, record);
        }
        let payload = if are_full {
            let data = Data {
                number: first,
                ..common
            };
            out.push(Burst { data, count });
            u64::from(count) * u64::from(common.payload_bytes)
        } else {
            self.push_packets(first..first + count, common, out)
        };
        let lone_fins = u64::from(
            self.lone_fin
                .is_some_and(|fin| fin >= first && fin < first + count),
        );
        self.totals.packets_sent += u64::from(count) - lone_fins;
        let waits_for_timeout =
            matches!(self.timer, Some((kind, _)) if kind != TimerKind::LossProbe);
        if !again && (nothing_out || !waits_for_timeout) {
            self.arm_retransmit();
        }
        payload
    }

    /// Algorithms that need ECN have it on every packet (tcp_ecn_send()).
    fn keeps_ect(&self) -> bool {
        self.cc.wants(flags::WANTS_ECN)
    }

    /// Appends packets one by one, as they may be short or carry a FIN; returns their payload.
    fn push_packets(&self, numbers: Range<u32>, common: Data, out: &mut Vec<Burst>) -> u64 {
        let end = self.data_end();
        let mut payload = 0;
        for number in numbers {
            let data = Data {
                number,
                // Control packets are not ECN-capable (RFC 3168 section 6.1.1), with the same exception.
                ect: common.ect && (self.lone_fin != Some(number) || self.keeps_ect()),
                payload_bytes: self.payload_of(number, end),
                push: number + 1 == end,
                fin: self.closed && number + 1 == self.written,
                ..common
            };
            payload += u64::from(data.payload_bytes);
            out.push(Burst { data, count: 1 });
        }
        payload
    }

    /// Payload of a packet; data end at `end`.
    fn payload_of(&self, number: u32, end: u32) -> u32 {
        match number + 1 {
            _ if self.lone_fin == Some(number) => 0,
            next if self.closed && next == end => self.last_payload,
            _ => self.written_payload(number),
        }
    }

    /// A timer may have expired.
    pub fn on_timer(&mut self, now_ns: u64, out: &mut Vec<Burst>) {
        self.advance_clock(now_ns);
        self.recheck_app_limited();
        if self.cc_timer_ns() <= now_ns {
            self.on_cc_timer(out);
        }
        if self.pacing_at_ns <= now_ns {
            self.pacing_at_ns = NEVER_NS;
            self.transmit(now_ns, out);
        }
        let Some((kind, _)) = self.timer.filter(|(_, timer)| timer.expires_ns() <= now_ns) else {
            return;
        };
        match kind {
            TimerKind::Retransmit => {
                self.timer = None;
                self.on_retransmit_timeout(out);
            }
            TimerKind::LossProbe => self.send_loss_probe(out),
            TimerKind::Reorder => self.on_reorder_timeout(out),
        }
    }

    /// The congestion control asked to be called now.
    fn on_cc_timer(&mut self, out: &mut Vec<Burst>) {
        if self.is_finished() {
            self.ctl.timer_us = 0;
            return;
        }
        let late_us = self.conn.now_us - self.ctl.timer_us;
        self.cc_event(EventKind::Timer, late_us as u32, 0);
        self.transmit(self.now_ns, out);
    }

    /// tcp_send_loss_probe(): new data if there are any, else the last packet.
    fn send_loss_probe(&mut self, out: &mut Vec<Burst>) {
        if self.packets_out() == 0 || self.tlp_high.is_some() {
            self.arm_retransmit();
            return;
        }
        self.tlp_is_retrans = !self.has_sendable();
        if !self.tlp_is_retrans {
            self.min_burst();
            if self.pacing_blocks() {
                self.arm_retransmit();
                return;
            }
        }
        if self.tlp_is_retrans {
            let last = self.snd_nxt - 1;
            let flags = self.board.get(last).flags;
            self.tlp_app_limited = flags & APP_LIMITED != 0;
            if flags & (SACKED | RETRANS) == 0 {
                self.board.split_bursts(self.snd_una);
                self.cut_before(last, self.snd_una);
                self.send_burst(last, 1, true, out);
            }
        } else {
            self.send_burst(self.snd_nxt, 1, false, out);
        }
        self.tlp_high = Some(self.snd_nxt);
        self.timer = None; // restarts the full timeout
        self.arm_retransmit();
    }

    fn on_retransmit_timeout(&mut self, out: &mut Vec<Burst>) {
        if self.packets_out() == 0 {
            return;
        }
        self.enter_loss();
        let head = self.snd_una;
        let flags = self.board.get(head).flags;
        if flags & RETRANS == 0 {
            self.send_again(head, 1, out);
        }
        self.retransmits += 1;
        self.rtt.back_off();
        self.arm_retransmit();
    }

    /// tcp_rearm_rto(): restarts the retransmission timer. After a probe or reordering timer, the time
    /// since the first packet was sent counts.
    pub(crate) fn arm_retransmit(&mut self) {
        let since_head = matches!(
            self.timer,
            Some((TimerKind::LossProbe | TimerKind::Reorder, _))
        );
        self.timer = None;
        if self.packets_out() > 0 {
            let wait_ns = match since_head {
                true => self.timeout_left_ns().max(1000),
                false => self.rtt.timeout_ns(),
            };
            self.set_timer(TimerKind::Retransmit, wait_ns);
        }
    }

    #[inline]
    pub(crate) fn set_timer(&mut self, kind: TimerKind, wait_ns: u64) {
        let set_ns = self.now_ns;
        self.timer = Some((kind, Countdown { set_ns, wait_ns }));
    }

    /// What is left of the oldest packet's timeout; 0: it is overdue (tcp_rto_delta_us()).
    fn timeout_left_ns(&self) -> u64 {
        let expiry_ns = self.board.oldest_sent_ns(self.snd_una) + self.rtt.timeout_ns();
        expiry_ns.saturating_sub(self.now_ns)
    }

    /// tcp_schedule_loss_probe(): after two RTTs, or the timeout if that is sooner and not overdue. False
    /// if no probe is possible.
    pub(crate) fn schedule_loss_probe(&mut self, timeout_ns: u64) -> bool {
        if !matches!(self.ca_state, CaState::Open | CaState::Cwr) || self.packets_out() == 0 {
            return false;
        }
        let srtt_ns = u64::from(self.rtt.smoothed_us()) * 1000;
        let slack_ns = if self.packets_out() == 1 {
            200 * NS_PER_MS
        } else {
            2 * NS_PER_MS
        };
        let quiet_ns = 2 * srtt_ns + slack_ns;
        let wait_ns = match timeout_ns {
            0 => quiet_ns,
            _ => timeout_ns.min(quiet_ns),
        };
        self.set_timer(TimerKind::LossProbe, wait_ns);
        true
    }
}
