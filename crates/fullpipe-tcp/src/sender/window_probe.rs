//! Probes of a closed receive window: tcp_check_probe_timer() and tcp_ack_probe() decide when, tcp_send_probe0()
//! and tcp_write_wakeup() of tcp_output.c what (RFC 9293 section 3.8.6.1). Without them a connection stands still
//! if the ACK that opens the window is lost.

use crate::packet::{Burst, Data};

use super::timers::TimerKind;
use super::Sender;

impl Sender {
    /// Nothing is in flight and what is unsent cannot leave: asks after a timeout whether it can
    /// (tcp_check_probe_timer()).
    #[inline(never)] // a closed window, or nothing is written
    pub(super) fn await_window(&mut self) {
        if self.has_unsent() && !self.timers.is_running() {
            self.set_window_probe(self.rtt.first_probe_wait_ns());
        }
    }

    /// An ACK came while nothing is in flight: ends the probes if what is next fits into the window, else puts
    /// the next one off (tcp_ack_probe()).
    pub(super) fn answer_window_probe(&mut self) {
        if !self.has_unsent() {
            return;
        }
        if self.queue.head_bytes(self.next_byte()) <= self.window_left() {
            self.rtt.reset_probes();
            if self.timers.awaits_window() {
                self.timers.stop();
            }
            return;
        }
        self.set_window_probe(self.rtt.probe_wait_ns());
    }

    /// tcp_send_probe0(): sends what the window has room for, else a packet without data that is acknowledged
    /// already, so that the peer repeats its window.
    pub(super) fn send_window_probe(&mut self, out: &mut Vec<Burst>) {
        self.timers.stop();
        if !self.flight.is_empty() || !self.has_unsent() {
            self.rtt.reset_probes();
            return;
        }
        if self.window_left() > 0 {
            self.send_into_window(out);
            self.rtt.reset_probes();
            return;
        }
        self.send_empty(out);
        self.rtt.count_probe();
        self.set_window_probe(self.rtt.probe_wait_ns());
    }

    fn set_window_probe(&mut self, wait_ns: u64) {
        self.timers
            .set(TimerKind::WindowProbe, self.now_ns, wait_ns);
    }

    /// A packet that the window has room for, full or not.
    fn send_into_window(&mut self, out: &mut Vec<Burst>) {
        let first = self.flight.next();
        let next = self.next_byte();
        let bytes = self
            .window_left()
            .min(self.queue.head_bytes(next))
            .min(self.mss_bytes().into());
        if bytes == 0 {
            return self.send_burst(first, 1, false, out); // a FIN
        }
        self.queue.mark_psh_at(next + bytes);
        self.send_data(first, bytes, out);
    }

    /// tcp_xmit_probe_skb().
    fn send_empty(&mut self, out: &mut Vec<Burst>) {
        let Some(number) = self.flight.una().checked_sub(1) else {
            return;
        };
        out.push(Burst {
            data: Data {
                number,
                departs_ns: self.now_ns,
                echo_ns: self.peer.newest_ns(),
                leads_burst: true,
                ..Data::default()
            },
            count: 1,
        });
        self.small_queue.enter(0, 1);
    }
}
