//! Loss detection: RACK (RFC 8985, tcp_recovery.c), and retransmission timeouts.

use fullpipe_cc::{flags, CaState, EventKind};
use fullpipe_plan::CcFacts;

use super::ack::AckInfo;
use super::scoreboard::{is_later, APP_LIMITED, LOST, NIL, RETRANS, SACKED, TIMED_OUT};
use super::{Sender, TimerKind};
use crate::packet::Burst;

/// Linux TCP_TIMEOUT_MIN_US.
const TIMEOUT_MIN_US: u64 = 2000;

impl Sender {
    /// RACK marks packets that were sent long enough before the newest delivered one, and sets a timer
    /// for those that are not overdue yet (RFC 8985 section 6.2, tcp_rack_mark_lost()).
    pub(crate) fn detect_losses(&mut self, info: &mut AckInfo) {
        if !self.rack.advanced {
            return;
        }
        self.rack.advanced = false;
        if let Some(wait_us) = self.mark_lost() {
            self.arm_reorder(wait_us);
            info.sets_timer = false;
        }
    }

    /// Marks lost packets (tcp_rack_detect_loss()); returns how long until the last pending one is lost.
    fn mark_lost(&mut self) -> Option<u64> {
        self.board.split_bursts(self.snd_una);
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

    /// tcp_rack_reo_wnd(): without reordering so far, three packets SACKed above a hole suffice.
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
        let is_new = flags & (LOST | RETRANS) != LOST;
        self.lost_out += u32::from(flags & LOST == 0);
        self.retrans_out -= u32::from(flags & RETRANS != 0);
        self.conn.lost = self.conn.lost.wrapping_add(u32::from(is_new));
        let record = self.board.get_mut(number);
        record.flags = (record.flags | LOST) & !RETRANS;
        let tx_inflight = record.burst_inflight - u32::from(record.behind);
        let lost = self.conn.lost.wrapping_sub(record.lost);
        let is_app_limited = record.flags & APP_LIMITED != 0;
        let age_us = (self.now_ns.saturating_sub(record.at_ns) / 1000) as u32;
        if is_new && self.reports_losses() {
            self.conn.lost_age_us = age_us;
            self.cc_packet_event(EventKind::Lost, tx_inflight, lost, is_app_limited);
            self.conn.lost_age_us = 0;
        }
        self.retransmit_hint = self.retransmit_hint.min(number);
        self.lost_end = self.lost_end.max(number + 1);
    }

    fn reports_losses(&self) -> bool {
        self.config.facts == CcFacts::Google && self.cc.wants(flags::WANTS_RING)
    }

    /// tcp_rack_mark_lost(): sets the reordering timer.
    fn arm_reorder(&mut self, wait_us: u64) {
        let wait_ns = (wait_us + TIMEOUT_MIN_US) * 1000;
        self.set_timer(TimerKind::Reorder, wait_ns);
    }

    /// tcp_rack_reo_timeout().
    pub(crate) fn on_reorder_timeout(&mut self, out: &mut Vec<Burst>) {
        let before = self.inflight();
        self.mark_lost();
        if self.inflight() != before && self.ca_state != CaState::Recovery {
            self.enter_recovery(false);
            if !self.owns_cwnd() {
                self.reduce_cwnd(1, 0, false);
            }
        }
        if self.inflight() != before {
            self.retransmit_lost(out);
        }
        self.arm_retransmit();
    }

    /// tcp_timeout_mark_lost(): marks the first buffer, and all packets sent more than an RTT ago.
    pub(crate) fn mark_timed_out(&mut self) {
        self.board.split_bursts(self.snd_una);
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
