//! Sends packets: tcp_write_xmit() and tcp_xmit_retransmit_queue() of tcp_output.c.

use fullpipe_cc::{flags, CaState, EventKind};
use fullpipe_plan::RateRestart;
use fullpipe_ticks::elapsed_ns;

use crate::packet::{Burst, Data};

use super::pacing::BurstSize;
use super::recovery::Resend;
use super::scoreboard::Sent;
use super::timers::TimerKind;
use super::write_queue::Progress;
use super::Sender;

const NS_PER_MS: u64 = 1_000_000;
/// A tasklet runs after what raised it, and RTTs count microseconds.
const TASKLET_NS: u64 = 1_000;

/// How much tcp_write_xmit() sends (its push_one).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Push {
    AsMany,
    /// The same of a writer that announces more (MSG_MORE): the last packet waits while it is short.
    Corked,
    /// The same of a writer that pushes (TCP_NAGLE_PUSH): a short packet leaves.
    Forced,
    /// One burst, which is not deferred.
    One,
    /// The same of a loss probe, for which a full window has room for a packet.
    Probe,
}

impl Push {
    fn is_of_one(self) -> bool {
        matches!(self, Self::One | Self::Probe)
    }
}

/// The first buffer of the write queue.
struct Head {
    bytes: u64,
    is_last: bool,
    /// The application may still add to it.
    may_grow: bool,
}

/// What the algorithm was asked of the bursts that are about to be sent.
struct Bounds {
    least: u32,
    /// 0: it was not asked yet.
    most: u32,
}

/// Why no burst is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    CwndFull,
    Other,
}

impl Sender {
    /// Sends what may be sent now: retransmissions first, then new data. Appends bursts to `out` in the
    /// order of departure.
    #[inline(always)] // after every ACK
    pub fn transmit(&mut self, now_ns: u64, out: &mut Vec<Burst>) {
        self.advance_clock(now_ns);
        if !self.is_established {
            return;
        }
        let resend = std::mem::take(&mut self.resend);
        if resend != Resend::Nothing {
            self.send_lost(resend, out);
        }
        // An application that is about to write adds to what waits before anything is sent.
        if !self.stream.is_ready() {
            self.send_new(Push::AsMany, out);
        }
        self.check_space();
        self.end_softirq(out);
        while self.stream.is_ready() {
            self.write_until_blocked(out);
        }
    }

    /// What was sent leaves. The rest of what TCP small queues held back follows, lost packets first
    /// (tcp_tsq_write()).
    #[inline(always)] // as `transmit`
    pub(super) fn end_softirq(&mut self, out: &mut Vec<Burst>) {
        while self.small_queue.take_throttled() {
            self.advance_clock(self.now_ns + TASKLET_NS);
            self.send_lost(Resend::IfRoom, out);
            self.push_pending(Push::AsMany, out);
        }
        self.small_queue.end_softirq();
    }

    /// A packet has left the qdisc below TCP (with fq only: TCP small queues).
    pub fn departed(&mut self, packet: &Data) {
        self.small_queue.leave(packet);
    }

    #[inline(never)] // most ACKs cause no retransmission
    fn send_lost(&mut self, resend: Resend, out: &mut Vec<Burst>) {
        match resend {
            Resend::IfRoom => {
                let is_waiting = self.flight.lost() > self.flight.retransmitted();
                if is_waiting && self.control.cwnd() > self.flight.inflight() {
                    self.retransmit_lost(out);
                }
            }
            Resend::Nothing => {}
            Resend::Lost => self.retransmit_lost(out),
            Resend::NewFirst => {
                self.push_pending(Push::AsMany, out);
                if self.recovery.end_frto_without_new_data(&self.flight) {
                    self.retransmit_lost(out);
                }
            }
        }
    }

    /// Data or a FIN are unsent.
    #[inline]
    pub(super) fn has_unsent(&self) -> bool {
        let next = self.flight.next();
        self.queue.written_bytes() > self.next_byte()
            || self.stream.lone_fin().is_some_and(|fin| fin >= next)
    }

    /// There are unsent data, and the receive window has room for them.
    pub(super) fn has_sendable(&self) -> bool {
        let unsent_bytes = self.queue.unsent_bytes(self.next_byte());
        self.has_unsent() && self.window_admits(unsent_bytes)
    }

    /// How far the stream is sent and acknowledged.
    #[inline]
    pub(super) fn progress(&self) -> Progress {
        let una_packet = self.flight.una();
        Progress {
            next: self.next_byte(),
            una: self.stream.bytes_before(una_packet),
            una_packet,
        }
    }

    /// `snd_nxt`, in bytes.
    #[inline]
    pub(super) fn next_byte(&self) -> u64 {
        self.stream.bytes_before(self.flight.next())
    }

    /// tcp_slow_start_after_idle_check(), where a buffer is begun or the window changes while nothing is in
    /// flight (RFC 2861). For algorithms that leave it to the host.
    #[inline(never)] // nothing is in flight
    pub(super) fn restart_after_idle(&mut self) {
        let idle_ns = elapsed_ns(self.pacing.last_ns(), self.now_ns);
        let is_kept = self.config.sysctl.tcp_slow_start_after_idle == Some(0);
        let is_idle = !is_kept && self.flight.next() > 0;
        let timeout_ns = self.rtt.timeout_ns();
        if !is_idle || self.control.owns_cwnd() || idle_ns <= timeout_ns {
            return;
        }
        self.tell(EventKind::CwndRestart, 0);
        let ctl = self.control.ctl_mut();
        ctl.ssthresh = self.recovery.current_ssthresh(ctl);
        ctl.cwnd = self
            .cwnd_use
            .restart(self.now_ns, idle_ns, timeout_ns, ctl.cwnd);
    }

    /// The least packets of a burst, from the congestion control, which is called before every burst.
    #[inline(always)] // as `send_new`
    pub(super) fn min_burst(&mut self) -> u32 {
        match self.control.owns_cwnd() {
            true => self.request_min_burst(),
            false => {
                let least = self.control.least_burst();
                self.config.sysctl.tcp_min_tso_segs.unwrap_or(least)
            }
        }
    }

    #[inline(never)] // once a burst
    fn request_min_burst(&mut self) -> u32 {
        self.show();
        self.control.on_send()
    }

    #[inline]
    fn max_burst(&self, least: u32) -> u32 {
        self.pacing.burst_packets(BurstSize {
            rate_bytes_per_s: self.control.pacing_rate(),
            min_rtt_us: self.rtt.min_us(),
            least,
            most: self.control.ctl().tso_most.into(),
        })
    }

    /// Whether too much is queued below TCP for a burst with this payload. One buffer may always be.
    #[inline]
    fn small_queue_is_full(&mut self, payload_bytes: u64, again: bool) -> bool {
        if self.small_queue.is_empty() {
            return false;
        }
        let rate = self.control.pacing_rate();
        let is_full = self.small_queue.is_full(payload_bytes, again, rate)
            && !self.flight.has_one_buffer_at_most();
        if is_full {
            self.small_queue.throttle();
        }
        is_full
    }

    /// tcp_xmit_retransmit_queue(): buffer by buffer, as far as pacing, window and small queues allow.
    #[inline(never)] // rare
    pub(super) fn retransmit_lost(&mut self, out: &mut Vec<Burst>) {
        if self.flight.is_empty() {
            return;
        }
        let least = self.min_burst();
        let max_burst = self.max_burst(least);
        self.flight.split_bursts();
        let mut has_head = false;
        while let Some(number) = self.flight.next_to_retransmit() {
            let room = self.control.cwnd().saturating_sub(self.flight.inflight());
            if self.pacing.hold_back(self.now_ns) || room == 0 {
                break;
            }
            if self.flight.retransmitted() >= self.flight.lost() {
                break;
            }
            let buffered = self.flight.buffered_from(number);
            let end_byte = self.stream.bytes_before(number + buffered);
            let payload_bytes = end_byte - self.stream.bytes_before(number);
            if self.small_queue_is_full(payload_bytes, true) {
                break;
            }
            let count = buffered.min(room).min(max_burst);
            self.send_again(number, count, out);
            self.recovery.sent(count);
            has_head |= number == self.flight.una();
        }
        if has_head && !self.timers.awaits_reordered() {
            let timeout_ns = self.rtt.timeout_ns();
            self.timers
                .set(TimerKind::Retransmit, self.now_ns, timeout_ns);
        }
    }

    /// tcp_retransmit_skb(): a retransmission that counts as in flight. Loss probes do not
    /// (__tcp_retransmit_skb()).
    pub(super) fn send_again(&mut self, number: u32, count: u32, out: &mut Vec<Burst>) {
        self.flight.split_bursts();
        self.cut_before(number + count);
        self.send_burst(number, count, true, out);
        self.flight.count_retransmitted(number, count);
        self.recovery.sent_again(count, self.pacing.last_ns());
    }

    /// Splits the buffer that contains packets on both sides of `number` (tcp_fragment()).
    pub(super) fn cut_before(&mut self, number: u32) {
        let una = self.flight.una();
        if self.flight.cut_before(number, una) {
            let byte = self.stream.bytes_before(number);
            self.queue.cut_before(byte, self.stream.bytes_before(una));
        }
    }

    /// __tcp_push_pending_frames().
    #[inline(never)]
    pub(super) fn push_pending(&mut self, push: Push, out: &mut Vec<Burst>) {
        self.send_new(push, out);
    }

    /// tcp_write_xmit().
    #[inline(always)] // into `transmit`
    fn send_new(&mut self, push: Push, out: &mut Vec<Burst>) {
        if !self.has_unsent() {
            return;
        }
        self.read_clock();
        // Most ACKs send nothing, as pacing or the window forbids it: an algorithm whose on_send() is pure
        // is only called if something can be sent.
        let mut bounds = Bounds { least: 0, most: 0 };
        let asks_late = self.control.asks_late();
        if !asks_late {
            bounds.least = self.min_burst();
        }
        let mut sent = 0;
        let stop = loop {
            let bytes = match self.next_burst(push, asks_late, &mut bounds) {
                Ok(bytes) => bytes,
                Err(stop) => break stop,
            };
            let first = self.flight.next();
            if bytes == 0 {
                self.send_burst(first, 1, false, out);
                sent += 1;
                break Stop::Other;
            }
            sent += self.send_data(first, bytes, out);
            self.check_space();
            if push.is_of_one() {
                break Stop::Other;
            }
        };
        if sent > 0 {
            self.recovery.sent(sent);
            if push != Push::Probe {
                let left_ns = self.timeout().left_ns();
                self.schedule_loss_probe(left_ns);
            }
        }
        if sent == 0 && self.flight.is_empty() {
            self.await_window();
        }
        if sent > 0 || stop == Stop::CwndFull {
            let is_full = self.flight.inflight() >= self.control.cwnd();
            self.validate_cwnd(stop == Stop::CwndFull || is_full);
        }
    }

    /// Payload of the next burst, 0 for a FIN alone, or why there is none.
    #[inline(always)] // as `send_new`
    fn next_burst(
        &mut self,
        push: Push,
        asks_late: bool,
        bounds: &mut Bounds,
    ) -> Result<u64, Stop> {
        if self.pacing.hold_back(self.now_ns) {
            return Err(Stop::Other);
        }
        let (inflight, cwnd) = (self.flight.inflight(), self.control.cwnd());
        let room = match cwnd.saturating_sub(inflight) {
            0 if push == Push::Probe => 1,
            0 => return Err(Stop::CwndFull),
            room => room,
        };
        // A FIN needs room in the window too, since Linux 6.10 (tcp_cwnd_test()).
        if self.stream.lone_fin() == Some(self.flight.next()) {
            return Ok(0);
        }
        let next = self.next_byte();
        if next >= self.queue.written_bytes() {
            return Err(Stop::Other);
        }
        if bounds.most == 0 {
            if asks_late {
                bounds.least = self.min_burst();
            }
            bounds.most = self.max_burst(bounds.least);
        }
        // tcp_cwnd_test(): at most half a window in one burst.
        let most = bounds.most.min(room.min((cwnd / 2).max(1)));
        let mss = u64::from(self.config.mss_bytes);
        let head = self.head(next, u64::from(most) * mss);
        if !self.window_admits(head.bytes) {
            return Err(Stop::Other);
        }
        if !push.is_of_one() && head.bytes > mss {
            if let Some(stop) = self.defers(room, bounds.most, &head) {
                return Err(stop);
            }
        }
        let bytes = self.split_point(push, &head, u64::from(most) * mss);
        if bytes == 0 {
            return Err(Stop::Other);
        }
        if self.small_queue_is_full(bytes, false) {
            if bytes < head.bytes {
                self.queue.cut_first(next + bytes);
            }
            return Err(Stop::Other);
        }
        Ok(bytes)
    }

    /// How much of the first buffer is sent: what `most_bytes`, which are full packets, and the receive window
    /// admit. A short packet at its end may have to wait (tcp_mss_split_point(), tcp_nagle_test()). What an
    /// application has closed behind leaves with its FIN.
    #[inline]
    fn split_point(&self, push: Push, head: &Head, most_bytes: u64) -> u64 {
        let mss = u64::from(self.config.mss_bytes);
        let window_left = self.window_left();
        if !head.is_last && (most_bytes <= window_left || head.bytes <= mss) {
            return head.bytes.min(most_bytes);
        }
        let needed = head.bytes.min(window_left).min(most_bytes);
        let short_bytes = needed % mss;
        if short_bytes == 0 {
            return needed;
        }
        let waits = match push {
            Push::Corked => true,
            Push::AsMany => self.nagle.holds(self.flight.una()) && !self.stream.is_closed(),
            Push::Forced | Push::One | Push::Probe => false,
        };
        needed - if waits { short_bytes } else { 0 }
    }

    /// Bytes for which the receive window has room.
    #[inline]
    pub(super) fn window_left(&self) -> u64 {
        let Progress { next, una, .. } = self.progress();
        self.peer.window_bytes().saturating_sub(next - una)
    }

    /// Whether the receive window has room for the first packet of a buffer (tcp_snd_wnd_test()).
    #[inline]
    fn window_admits(&self, buffer_bytes: u64) -> bool {
        self.window_left() >= buffer_bytes.min(self.config.mss_bytes.into())
    }

    /// The first buffer of the write queue. It may be extended from the second up to `most_bytes`
    /// ([`crate::Rules::bursts_span_buffers`]).
    #[inline]
    fn head(&mut self, next: u64, most_bytes: u64) -> Head {
        let grows = self.config.rules.bursts_span_buffers();
        let (bytes, is_last) = self.queue.first_bytes(next, most_bytes, grows);
        let has_all =
            self.stream.is_closed() && self.queue.written_bytes() == self.stream.data_bytes();
        Head {
            bytes,
            may_grow: is_last && !has_all,
            is_last,
        }
    }

    /// tcp_tso_should_defer(): waits for a larger burst if an ACK is due soon. A buffer that is not the
    /// last is sent at once if all of it fits.
    #[inline(always)] // as `send_new`
    fn defers(&self, room: u32, max_burst: u32, head: &Head) -> Option<Stop> {
        let mss = u64::from(self.config.mss_bytes);
        let window_left = self.window_left();
        let cwnd_left = u64::from(room) * mss;
        let limit = window_left.min(cwnd_left);
        // With pacing, tcp_wstamp_ns is the next departure that the rate allows, so a burst that the
        // pacing timer releases may still be deferred.
        if self.recovery.state() >= CaState::Recovery
            || self.now_ns.saturating_sub(self.pacing.next_ns()) > NS_PER_MS
            || limit >= u64::from(max_burst) * mss
            || !head.is_last && head.bytes <= limit
            || self.flight.is_empty()
        {
            return None;
        }
        // sysctl tcp_tso_win_divisor: a third of the window is sent at once.
        let cwnd_bytes = u64::from(self.control.cwnd()) * mss;
        let window_bytes = self.peer.window_bytes().min(cwnd_bytes);
        if limit >= window_bytes / 3 {
            return None;
        }
        let srtt_ns = self.rtt.smoothed8() * 1000 / 8;
        let ack_at_ns = self.flight.first_sent_ns() + srtt_ns;
        let patience_ns = match self.config.rules.defers_at_most_1_ms() {
            true => NS_PER_MS.min(srtt_ns / 2),
            false => srtt_ns / 2,
        };
        // Data that the window has room for are deferred only if the application may add to them.
        let waits = ack_at_ns <= self.now_ns + patience_ns;
        let stop = match cwnd_left < window_left && cwnd_left <= head.bytes {
            true => Stop::CwndFull,
            false => Stop::Other,
        };
        (waits && (head.bytes >= limit || head.may_grow)).then_some(stop)
    }

    /// tcp_cwnd_validate().
    #[inline]
    pub(super) fn validate_cwnd(&mut self, is_full: bool) {
        let (una, next) = (self.flight.una(), self.flight.next());
        self.cwnd_use.sent(is_full, una, next);
        if self.control.owns_cwnd() {
            return;
        }
        if self.cwnd_use.is_limited(self.control.ctl()) {
            self.cwnd_use.note_limited(self.now_ns);
        } else {
            self.validate_unused_cwnd();
        }
    }

    /// tcp_cwnd_application_limited().
    #[inline(never)] // limited by the application or the receive window
    fn validate_unused_cwnd(&mut self) {
        let is_unused = self.recovery.state() == CaState::Open && !self.queue.is_blocking();
        let ctl = self.control.ctl_mut();
        let cwnd = self.cwnd_use.note_unused(
            self.now_ns,
            self.flight.out(),
            self.rtt.timeout_ns(),
            is_unused,
            ctl.cwnd,
        );
        if let Some(cwnd) = cwnd {
            ctl.ssthresh = self.recovery.current_ssthresh(ctl);
            ctl.cwnd = cwnd;
        }
    }

    /// Sends payload for the first time, in packets from `first` on; returns how many they are.
    #[inline(always)] // as `send_new`
    pub(super) fn send_data(&mut self, first: u32, bytes: u64, out: &mut Vec<Burst>) -> u32 {
        let count = self.stream.send(first, bytes, self.flight.una());
        if self.stream.is_short(first + count - 1) {
            self.nagle.sent_short(first + count - 1);
        }
        self.send_burst(first, count, false, out);
        count
    }

    /// Sends packets `number..number + count` as one burst, and advances the pacing clock.
    #[inline]
    pub(super) fn send_burst(
        &mut self,
        number: u32,
        count: u32,
        again: bool,
        out: &mut Vec<Burst>,
    ) {
        // tcp_event_data_sent(), for retransmissions too.
        if self.flight.inflight() == 0 {
            self.tell(EventKind::TxStart, 0);
        }
        let departure = self.pacing.depart(self.now_ns);
        let end_byte = self.stream.bytes_before(number + count);
        let has_psh = match again {
            true => self.queue.had_psh(end_byte),
            false => self.queue.take_psh(end_byte),
        };
        let leader = out.len();
        let payload = self.hand_down(number, count, departure.at_ns, again, out);
        let burst = &mut out[leader..];
        if let Some(Burst { data: first, .. }) = burst.first_mut() {
            first.leads_burst = true;
            first.cwr = !again && self.recovery.take_cwr();
        }
        // __tcp_transmit_skb() sets PSH on what GSO will cut.
        let is_pushed = count > 1 || has_psh;
        if let (Some(last), true) = (burst.last_mut(), is_pushed) {
            last.data.push = true;
        }
        let rate = self.control.pacing_rate();
        self.pacing.charge(departure, count, payload, rate);
        self.control.see_next_departure(self.pacing.next_ns());
        self.control.see_sent(departure.at_ns, self.flight.next());
        self.small_queue.enter(payload, count);
    }

    /// Records a burst on the scoreboard and appends it to `out`; returns its payload.
    #[inline]
    fn hand_down(
        &mut self,
        first: u32,
        count: u32,
        departs_ns: u64,
        again: bool,
        out: &mut Vec<Burst>,
    ) -> u64 {
        let was_empty = self.flight.is_empty();
        self.record_burst(first, count, departs_ns, again);
        let needs_ecn = self.control.wants(flags::WANTS_ECN);
        let common = Data {
            number: first,
            payload_bytes: self.config.mss_bytes,
            departs_ns,
            echo_ns: self.peer.newest_ns(),
            is_retransmission: again,
            ect: self.ecn.is_capable(again, needs_ecn),
            l4s: self.ecn.is_l4s() && self.control.ctl().is_scalable != 0,
            ..Data::default()
        };
        let payload = match self.stream.are_alike(first, first + count) {
            true => {
                out.push(Burst {
                    data: common,
                    count,
                });
                u64::from(count) * u64::from(common.payload_bytes)
            }
            false => self
                .stream
                .packetize(first..first + count, common, needs_ecn, out),
        };
        if !again && (was_empty || !self.timers.awaits_loss()) {
            self.restart_timeout();
        }
        payload
    }

    #[inline]
    fn record_burst(&mut self, first: u32, count: u32, departs_ns: u64, again: bool) {
        let inflight = self.flight.inflight();
        let restarts = match self.config.rate_restart {
            RateRestart::Unacknowledged => self.flight.is_empty(),
            RateRestart::Inflight => inflight == 0,
        };
        let lost = self.flight.total_lost();
        let mut record = Sent::first_of(count, departs_ns, inflight + count, lost);
        record.reading = self.readings;
        self.rate.sent(&mut record, departs_ns / 1000, restarts);
        if again {
            self.journal.sent_again(count);
            self.flight.send_again(first, count, record);
        } else {
            self.flight.send(count, record);
            let Progress { next, una, .. } = self.progress();
            self.queue.send(next, una);
        }
        let numbers = first..first + count;
        self.journal.sent(count - self.stream.lone_fins(&numbers));
    }
}
