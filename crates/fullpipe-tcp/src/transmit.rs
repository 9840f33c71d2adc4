//! What may be sent, and when: tcp_output.c, tcp_write_xmit(), tcp_xmit_retransmit_queue().

use std::ops::Range;

use fullpipe_cc::{flags, CaState, EventKind};
use fullpipe_plan::Pacing;

use crate::packet::{Burst, Data};
use crate::scoreboard::{Sent, APP_LIMITED, LOST, RETRANS, SACKED, TIMED_OUT};
use crate::sender::{Resend, Sender, TimerKind, NEVER_NS};
use crate::ticks::Countdown;
use crate::write_queue::GSO_MAX_BYTES;

/// Below this RTT bursts may be larger: gso_max is allowed at 0, half of it every 2^9 us
/// (sysctl tcp_tso_rtt_log).
const TSO_RTT_LOG: u32 = 9;
/// The first packets are not paced, so that the initial window leaves at once
/// (tcp_update_skb_after_send(): data_segs_out >= TCP_INIT_CWND).
const UNPACED_PACKETS: u64 = 10;
const NS_PER_MS: u64 = 1_000_000;

/// How much a call sends (push_one of tcp_write_xmit()).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Push {
    AsMany,
    /// One burst, which is not asked to wait.
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
    /// Sends what may be sent now: retransmissions first, then new data. Packets are appended to
    /// `out` in the order of departure.
    #[inline(always)] // behind every ACK
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
        self.look_for_room();
        while self.may_write {
            self.write_on(out);
        }
    }

    #[inline(never)] // most ACKs ask for nothing
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

    /// There is something new, and the receiver has room for it.
    pub(crate) fn has_sendable(&self) -> bool {
        let mss = u64::from(self.config.mss_bytes);
        self.has_unsent() && u64::from(self.packets_out() + 1) * mss <= self.window_bytes
    }

    /// So much payload has left the host (only under fq: TSQ's feedback).
    pub fn departed(&mut self, payload_bytes: u64) {
        self.queued_bytes = self.queued_bytes.saturating_sub(payload_bytes);
    }

    /// tcp_slow_start_after_idle_check(): RFC 2861, for algorithms that leave it to the host.
    #[inline(never)] // nothing is on its way
    fn restart_after_idle(&mut self) {
        let idle_ns = self.now_ns.saturating_sub(self.last_send_ns);
        let idle = self.snd_nxt > 0 && self.snd_nxt < self.written;
        if !idle || self.owns_cwnd() || idle_ns <= self.rtt.timeout_ns() {
            return;
        }
        self.cc_event(EventKind::CwndRestart, 0, 0);
        let restart = self.config.initial_cwnd.min(self.ctl.cwnd);
        self.ctl.ssthresh = self.ctl.ssthresh.max(self.ctl.cwnd - self.ctl.cwnd / 4);
        let mut left_ns = idle_ns;
        let rto_ns = self.rtt.timeout_ns();
        while left_ns > rto_ns && self.ctl.cwnd > restart {
            self.ctl.cwnd >>= 1;
            left_ns -= rto_ns;
        }
        self.ctl.cwnd = self.ctl.cwnd.max(restart);
        self.max_packets_out = 0;
    }

    /// The least packets of a burst, by the congestion control: it is asked before every sending.
    #[inline(always)] // as `send_new`
    fn least_burst(&mut self) -> u32 {
        match self.owns_cwnd() {
            true => self.ask_for_burst(),
            false => self.cc.least_burst(&mut self.ctl),
        }
    }

    #[inline(never)] // once a burst
    fn ask_for_burst(&mut self) -> u32 {
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

    /// Whether the pacing timer must run first (tcp_pacing_check()).
    fn must_wait(&mut self) -> bool {
        if self.config.pacing == Pacing::Fq || !self.owns_cwnd() || self.conn.edt_ns <= self.now_ns
        {
            return false;
        }
        self.pacing_at_ns = self.conn.edt_ns;
        true
    }

    /// Too much waits below TCP already for a burst of `packets` more; retransmissions may wait twice
    /// as deep (tcp_small_queue_check()).
    fn small_queue_full(&self, packets: u32, again: bool) -> bool {
        if self.config.pacing != Pacing::Fq {
            return false;
        }
        let two_bursts = 2 * u64::from(packets) * u64::from(self.config.mss_bytes);
        let allowed = self.ctl.pacing_rate_bytes_per_s >> self.config.pacing_shift;
        let allowed = allowed.max(two_bursts).min(self.output_limit_bytes);
        self.queued_bytes > allowed << u32::from(again)
    }

    /// tcp_xmit_retransmit_queue(): buffer by buffer, each after the pacing clock, the window and the
    /// queue below were asked.
    #[inline(never)] // rare beside what is sent once
    pub(crate) fn retransmit_lost(&mut self, out: &mut Vec<Burst>) {
        if self.packets_out() == 0 {
            return;
        }
        let least_burst = self.least_burst();
        let max_burst = self.burst_packets(least_burst);
        self.board.spread_out(self.snd_una);
        let mut number = self.retransmit_hint.max(self.snd_una);
        let mut has_head = false;
        // What was sent after the last loss need not be looked at.
        while number < self.lost_end {
            let flags = self.board.own(number).flags;
            if flags & LOST == 0 || flags & (SACKED | RETRANS) != 0 {
                number += 1;
                self.retransmit_hint = number;
                continue;
            }
            let room = self.ctl.cwnd.saturating_sub(self.inflight());
            if self.must_wait() || room == 0 {
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

    /// What is written, or a FIN, waits to be sent.
    fn has_unsent(&self) -> bool {
        self.snd_nxt < self.queue.end || self.lone_fin.is_some_and(|fin| fin >= self.snd_nxt)
    }

    /// __tcp_push_pending_frames(), where few come.
    #[inline(never)]
    pub(crate) fn push_pending(&mut self, push: Push, out: &mut Vec<Burst>) {
        self.send_new(push, out);
    }

    #[inline(always)] // into `transmit`
    fn send_new(&mut self, push: Push, out: &mut Vec<Burst>) {
        if !self.has_unsent() {
            return;
        }
        // Most ACKs let nothing go: the clock of pacing or the window blocks.
        let is_asked_late = self.cc.on_send_is_pure();
        let mut least_burst = match is_asked_late {
            true => 0,
            false => self.least_burst(),
        };
        let mut max_burst = 0;
        let (mut limited, mut sent) = (false, 0);
        loop {
            if self.must_wait() {
                break;
            }
            let inflight = self.inflight();
            if inflight >= self.ctl.cwnd {
                limited = true;
                break;
            }
            // The congestion window counts for a FIN too since Linux 6.10 (tcp_cwnd_test()).
            if self.lone_fin == Some(self.snd_nxt) {
                self.send_burst(self.snd_nxt, 1, false, out);
                sent += 1;
                break;
            }
            let window_room = self.window_packets().saturating_sub(self.packets_out());
            if self.snd_nxt >= self.queue.end || window_room == 0 {
                break;
            }
            // tcp_cwnd_test(): never more than half a window in one burst.
            let half = (self.ctl.cwnd / 2).max(1);
            let cwnd_room = (self.ctl.cwnd - inflight).min(half);
            let room = self.ctl.cwnd - inflight;
            if max_burst == 0 {
                if is_asked_late {
                    least_burst = self.least_burst();
                }
                max_burst = self.burst_packets(least_burst);
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
            self.look_for_room();
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

    /// Packets that the receiver's window holds.
    fn window_packets(&self) -> u32 {
        let window = self.window_bytes / u64::from(self.config.mss_bytes);
        window.min(u64::from(u32::MAX)) as u32
    }

    /// The first buffer of the write queue. Since 6.10 it takes from the second what it lacks of the
    /// burst that may be sent; before, no burst reached beyond its end.
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

    /// tcp_tso_should_defer(): wait for a larger burst where an ACK will come soon. A buffer behind
    /// which others wait goes at once if there is room for all of it.
    #[inline(always)] // as `send_new`
    fn defers(&self, room: u32, window_room: u32, max_burst: u32, head: &Head) -> bool {
        let limit = room.min(window_room);
        // Of a flow that is paced the last departure is the one that its rate allows next
        // (tcp_wstamp_ns), so that a burst which its timer lets go may wait.
        if self.ca_state >= CaState::Recovery
            || self.now_ns.saturating_sub(self.conn.edt_ns) > NS_PER_MS
            || limit >= max_burst
            || !head.is_last && head.packets <= limit
            || self.packets_out() == 0
        {
            return false;
        }
        // sysctl tcp_tso_win_divisor: a third of the window is worth sending.
        let mss = u64::from(self.config.mss_bytes);
        let window_bytes = self.window_bytes.min(u64::from(self.ctl.cwnd) * mss);
        if u64::from(limit) * mss >= window_bytes / 3 {
            return false;
        }
        // Since late 2025 for an ACK that is due within a millisecond, before that for any that is
        // due within half a round trip.
        let srtt_ns = self.rtt.smoothed8() * 1000 / 8;
        let ack_at_ns = self.board.oldest_sent_ns(self.snd_una) + srtt_ns;
        let patience_ns = if self.config.rules.defers_at_most_1_ms() {
            NS_PER_MS.min(srtt_ns / 2)
        } else {
            srtt_ns / 2
        };
        // What the window has room for waits for more of the application's, if there will be more.
        ack_at_ns <= self.now_ns + patience_ns && (head.packets >= limit || head.may_grow)
    }

    /// tcp_cwnd_validate().
    fn validate_cwnd(&mut self, limited: bool) {
        let grew = self.packets_out() > self.max_packets_out;
        // Until 6.1 a larger flight that the window did not limit made it forget that it had.
        let is_news = if self.config.rules.remembers_cwnd_limited() {
            limited || !self.is_cwnd_limited && grew
        } else {
            grew
        };
        if self.snd_una >= self.cwnd_usage_seq || is_news {
            self.is_cwnd_limited = limited;
            self.max_packets_out = self.packets_out();
            self.cwnd_usage_seq = self.snd_nxt;
        }
    }

    /// Sends packets `number..number + count` back to back and moves the departure time on.
    fn send_burst(&mut self, number: u32, count: u32, again: bool, out: &mut Vec<Burst>) {
        // tcp_event_data_sent(), of what is sent again too.
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
        let is_marked = !again && self.queue.takes_mark(number + count);
        let leader = out.len();
        let payload = self.put_on_the_board(number, count, departs_ns, again, out);
        let burst = &mut out[leader..];
        if let Some(Burst { data: first, .. }) = burst.first_mut() {
            first.leads_burst = true;
            first.cwr = !again && std::mem::take(&mut self.cwr_pending);
        }
        // __tcp_transmit_skb() sets PSH on what GSO will cut.
        let is_pushed = count > 1 || is_marked;
        if let (Some(last), true) = (burst.last_mut(), is_pushed) {
            last.data.push = true;
        }
        self.last_send_ns = departs_ns;
        self.conn.last_send_us = departs_ns / 1000;
        self.data_segs_out += u64::from(count);
        if self.is_paced() && self.data_segs_out >= UNPACED_PACKETS {
            let rate = self.ctl.pacing_rate_bytes_per_s.max(1);
            let length_ns = payload * 1_000_000_000 / rate;
            // Time lost to a late timer is given back, up to half a burst.
            let credit_ns = self.conn.edt_ns - prior_edt_ns;
            self.conn.edt_ns += length_ns - (length_ns / 2).min(credit_ns);
        }
        if self.config.pacing == Pacing::Fq {
            self.queued_bytes += payload;
        }
    }

    /// tcp_retransmit_skb(): a retransmission that counts as being on its way again. A probe's does not
    /// (__tcp_retransmit_skb()).
    fn send_again(&mut self, number: u32, count: u32, out: &mut Vec<Burst>) {
        self.board.spread_out(self.snd_una);
        self.board.cut_before(number + count, self.snd_una);
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

    /// Keeps a record of each packet of a burst and writes it out; returns their payload.
    fn put_on_the_board(
        &mut self,
        first: u32,
        count: u32,
        departs_ns: u64,
        again: bool,
        out: &mut Vec<Burst>,
    ) -> u64 {
        let nothing_out = self.packets_out() == 0;
        let burst_inflight = self.inflight() + count;
        let end = self.data_end();
        let are_full = self.shorts.is_empty() && first + count < end;
        let common = Data {
            payload_bytes: self.config.mss_bytes,
            departs_ns,
            echo_ns: self.echo_ns,
            is_retransmission: again,
            // RFC 3168 section 6.1.5; tcp_ecn_send() excepts who needs ECN.
            ect: self.config.ecn && (!again || self.cc.wants(flags::WANTS_ECN)),
            l4s: self.config.l4s && self.ctl.is_scalable != 0,
            ..Data::default()
        };
        let mut record = Sent::first_of(count, departs_ns, burst_inflight, self.conn.lost);
        self.rate.sent(&mut record, departs_ns / 1000, nothing_out);
        if again {
            self.totals.packets_retransmitted += u64::from(count);
            self.board.spread_out(self.snd_una);
            for place in 0..count {
                self.board.sent_again(first + place, record.later(place));
            }
        } else {
            self.snd_nxt = first + count;
            self.conn.snd_nxt = self.snd_nxt.wrapping_mul(self.config.mss_bytes);
            self.queue.sends(self.snd_nxt, self.snd_una);
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
            self.put_out_singly(first..first + count, common, out)
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

    /// Packets that are not all alike, near an end of what the application wrote.
    fn put_out_singly(&self, numbers: Range<u32>, common: Data, out: &mut Vec<Burst>) -> u64 {
        let end = self.data_end();
        let mut payload = 0;
        for number in numbers {
            let data = Data {
                number,
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

    /// Payload of a packet where data end at `end`.
    fn payload_of(&self, number: u32, end: u32) -> u32 {
        match number + 1 {
            _ if self.lone_fin == Some(number) => 0,
            next if self.closed && next == end => self.last_payload,
            _ => self.full_or_short(number),
        }
    }

    /// A timer may have expired.
    pub fn on_timer(&mut self, now_ns: u64, out: &mut Vec<Burst>) {
        self.advance_clock(now_ns);
        self.check_app_limited_again();
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

    /// tcp_send_loss_probe(): new data if there is any, else the last packet again.
    fn send_loss_probe(&mut self, out: &mut Vec<Burst>) {
        if self.packets_out() == 0 || self.tlp_high.is_some() {
            self.arm_retransmit();
            return;
        }
        self.tlp_is_retrans = !self.has_sendable();
        if !self.tlp_is_retrans {
            self.least_burst();
            if self.must_wait() {
                self.arm_retransmit();
                return;
            }
        }
        if self.tlp_is_retrans {
            let last = self.snd_nxt - 1;
            let flags = self.board.get(last).flags;
            self.tlp_app_limited = flags & APP_LIMITED != 0;
            if flags & (SACKED | RETRANS) == 0 {
                self.board.spread_out(self.snd_una);
                self.board.cut_before(last, self.snd_una);
                self.send_burst(last, 1, true, out);
            }
        } else {
            self.send_burst(self.snd_nxt, 1, false, out);
        }
        self.tlp_high = Some(self.snd_nxt);
        self.timer = None; // the timeout starts anew
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

    /// The retransmission timer starts anew; behind a probe or a reordering timer it goes on where the
    /// timeout would be by now (tcp_rearm_rto()).
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
        let now_ns = self.now_ns;
        self.timer = Some((kind, Countdown { now_ns, wait_ns }));
    }

    /// What is left of the timeout of the oldest packet (tcp_rto_delta_us()); 0: it is overdue.
    fn timeout_left_ns(&self) -> u64 {
        let expiry_ns = self.board.oldest_sent_ns(self.snd_una) + self.rtt.timeout_ns();
        expiry_ns.saturating_sub(self.now_ns)
    }

    /// tcp_schedule_loss_probe(): two RTTs of silence, or the timeout if that is sooner and not overdue,
    /// when the probe takes its place. False if there is nothing to probe for.
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
