//! What expired timers cause: tcp_retransmit_timer() of tcp_timer.c, tcp_send_loss_probe() of tcp_output.c,
//! tcp_rack_reo_timeout() of tcp_recovery.c. Window probes have a file of their own.

use fullpipe_cc::EventKind;

use crate::packet::Burst;

use super::scoreboard::{APP_LIMITED, RETRANS, SACKED};
use super::timers::{Timeout, TimerKind};
use super::transmit::Push;
use super::Sender;

impl Sender {
    /// A timer may have expired.
    pub fn on_timer(&mut self, now_ns: u64, out: &mut Vec<Burst>) {
        self.advance_clock(now_ns);
        self.read_clock();
        self.small_queue.begin_softirq();
        self.handle_timers(now_ns, out);
        self.end_softirq(out);
    }

    fn handle_timers(&mut self, now_ns: u64, out: &mut Vec<Burst>) {
        self.recheck_app_limited();
        if self.control.timer_ns() <= now_ns {
            self.on_cc_timer(out);
        }
        if self.pacing.take_expired(now_ns) {
            self.transmit(now_ns, out);
        }
        let Some(expired) = self.timers.expired(now_ns) else {
            return;
        };
        self.timers.set_in_handler(true);
        match expired {
            TimerKind::Retransmit => {
                self.timers.stop();
                self.on_retransmit_timeout(out);
            }
            TimerKind::LossProbe => self.send_loss_probe(out),
            TimerKind::Reorder => self.on_reorder_timeout(out),
            TimerKind::WindowProbe => self.send_window_probe(out),
        }
        self.timers.set_in_handler(false);
    }

    /// The congestion control asked to be called now.
    fn on_cc_timer(&mut self, out: &mut Vec<Burst>) {
        if self.is_finished() {
            self.control.ctl_mut().timer_us = 0;
            return;
        }
        let late_us = self.control.now_us() - self.control.ctl().timer_us;
        self.tell(EventKind::Timer, late_us as u32);
        self.transmit(self.now_ns, out);
    }

    fn on_retransmit_timeout(&mut self, out: &mut Vec<Burst>) {
        if self.flight.is_empty() {
            return;
        }
        let (recovery, flight, mut surroundings) = self.parts();
        recovery.timed_out(&mut surroundings, flight);
        self.send_again(self.flight.una(), 1, out);
        self.recovery.count_timeout();
        self.rtt.back_off();
        self.restart_timeout();
    }

    /// Packets may be lost that were waited for, as they might have been reordered.
    fn on_reorder_timeout(&mut self, out: &mut Vec<Burst>) {
        let (recovery, flight, mut surroundings) = self.parts();
        if recovery.reorder_timed_out(&mut surroundings, flight) {
            self.retransmit_lost(out);
        }
        self.restart_timeout();
    }

    /// Sends new data if there are any, else the last packet.
    fn send_loss_probe(&mut self, out: &mut Vec<Burst>) {
        if self.flight.is_empty() || self.recovery.has_probe_out() {
            self.restart_timeout();
            return;
        }
        let next = self.flight.next();
        if self.has_sendable() {
            self.push_pending(Push::Probe, out);
            if self.flight.next() == next {
                self.restart_timeout();
                return;
            }
            self.recovery.probe_sent(self.flight.next(), None);
        } else {
            let flags = self.flight.flags(next - 1);
            if flags & (SACKED | RETRANS) == 0 {
                self.flight.split_bursts();
                self.cut_before(next - 1);
                self.send_burst(next - 1, 1, true, out);
            }
            let is_app_limited = flags & APP_LIMITED != 0;
            self.recovery.probe_sent(next, Some(is_app_limited));
        }
        self.timers.stop(); // restarts the full timeout
        self.restart_timeout();
    }

    /// When the packets that are out time out.
    #[inline]
    pub(super) fn timeout(&self) -> Timeout {
        Timeout {
            now_ns: self.now_ns,
            timeout_ns: self.rtt.timeout_ns(),
            first_sent_ns: self.flight.first_sent_ns(),
        }
    }

    /// Restarts the retransmission timer, or stops it if nothing is out.
    #[inline]
    pub(super) fn restart_timeout(&mut self) {
        match self.flight.is_empty() {
            true => self.timers.stop(),
            false => self.timers.restart(self.timeout()),
        }
    }

    /// Schedules a loss probe for the time before the timeout. False if none is possible.
    #[inline]
    pub(super) fn schedule_loss_probe(&mut self, timeout_ns: u64) -> bool {
        let is_possible = self.recovery.allows_probe() && !self.flight.is_empty();
        if is_possible {
            let srtt_us = self.rtt.smoothed_us();
            let is_one_packet = self.flight.out() == 1;
            self.timers
                .schedule_probe(self.now_ns, srtt_us, is_one_packet, timeout_ns);
        }
        is_possible
    }
}
