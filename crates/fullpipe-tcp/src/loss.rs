//! Which packets are taken for lost: by RACK (RFC 8985, tcp_recovery.c), or by a timeout.

use fullpipe_cc::{flags, CaState, EventKind};
use fullpipe_plan::CcFacts;

use crate::ack::Incoming;
use crate::packet::Burst;
use crate::scoreboard::{is_later, APP_LIMITED, LOST, NIL, RETRANS, SACKED, TIMED_OUT};
use crate::sender::{Sender, TimerKind};

/// Linux TCP_TIMEOUT_MIN_US.
const TIMEOUT_MIN_US: u64 = 2000;

impl Sender {
    /// RACK marks what was sent long enough before the newest delivery (RFC 8985 section 6.2,
    /// tcp_rack_detect_loss()); what is nearly due gets a timer.
    pub(crate) fn detect_losses(&mut self, incoming: &mut Incoming) {
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
        self.conn.lost = self.conn.lost.wrapping_add(u32::from(is_news));
        let record = self.board.get_mut(number);
        record.flags = (record.flags | LOST) & !RETRANS;
        let tx_inflight = record.burst_inflight - u32::from(record.behind);
        let lost = self.conn.lost.wrapping_sub(record.lost);
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
    pub(crate) fn on_reorder_timeout(&mut self, out: &mut Vec<Burst>) {
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

    /// tcp_timeout_mark_lost(): the first buffer, and of the rest what was sent more than an RTT ago.
    pub(crate) fn mark_timed_out(&mut self) {
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
}
