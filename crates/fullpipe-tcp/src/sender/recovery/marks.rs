//! Which packets are marked lost, and when: tcp_rack_mark_lost() and tcp_rack_reo_timeout() of
//! tcp_recovery.c, tcp_timeout_mark_lost() of tcp_input.c.

use fullpipe_cc::CaState;

use crate::sender::flight::Flight;
use crate::sender::rtt::Rtt;

use super::rack::Verdict;
use super::{Context, Decision, Recovery};

impl Recovery {
    /// Marks lost packets if an ACK delivered some, and decides when to look again for those that are not
    /// overdue yet (tcp_rack_mark_lost()).
    pub(super) fn detect_losses(
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
    /// Linux walks all packets that are older than the newest delivered one. They are in the order of
    /// transmission, so the lost ones come first, and the last of the others waits longest.
    fn mark_lost(&mut self, context: &mut impl Context, flight: &mut Flight) -> Option<u64> {
        flight.split_bursts();
        let window_us = self.reorder_window_us(context.rtt(), flight.sacked());
        let now_ns = context.now_ns();
        while let Some(number) = flight.oldest() {
            match self.rack.judge(flight.record(number), now_ns, window_us) {
                Verdict::TooNew => return None,
                Verdict::Lost => {
                    self.mark_packet_lost(context, flight, number);
                    flight.unlink(number);
                }
                Verdict::WaitUs(_) => break,
            }
        }
        let last = flight.newest_before(self.rack.newest())?;
        match self.rack.judge(flight.record(last), now_ns, window_us) {
            Verdict::WaitUs(wait_us) => Some(wait_us),
            Verdict::TooNew | Verdict::Lost => None,
        }
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
    pub(in crate::sender) fn reorder_timed_out(
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

    /// tcp_timeout_mark_lost(): marks the first buffer, and all packets sent more than an RTT ago.
    pub(super) fn mark_timed_out(&mut self, context: &mut impl Context, flight: &mut Flight) {
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
}
