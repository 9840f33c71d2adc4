//! Writing into the socket: an application writes until its socket blocks, and again when it is woken.
//! tcp_sendmsg_locked() of tcp.c, tcp_check_space() of tcp_input.c. Must never know why it writes.

use super::transmit::Push;
use super::write_queue::Progress;
use super::Sender;
use crate::packet::Burst;

/// Size of one write: the pipe of 16 pages that sendfile() uses (splice_direct_to_actor()).
const WRITE_BYTES: u64 = 65_536;

impl Sender {
    /// tcp_check_space(): expands the send buffer if the congestion window needs more, and wakes a blocked
    /// application if there is space.
    #[inline(always)] // after every ACK and burst
    pub(super) fn check_space(&mut self) {
        if self.queue.may_wake(self.flight.una(), self.control.cwnd()) {
            self.new_space();
        }
    }

    #[inline(never)] // rare
    fn new_space(&mut self) {
        let ctl = self.control.ctl();
        let may_grow = self.flight.inflight() < ctl.cwnd;
        let has_grown = may_grow && {
            let window = ctl.cwnd.max(self.recovery.dupthresh() + 1);
            self.queue.expand(window, ctl.sndbuf_factor)
        };
        if may_grow {
            self.cwnd_use.restamp(self.now_ns);
        }
        let progress = self.progress();
        if self.queue.wakes(progress, has_grown) {
            self.stream.set_ready(true);
        }
    }

    /// The application writes until its socket blocks or it has no more data.
    #[inline(never)] // once in hundreds of packets
    pub(super) fn write_until_blocked(&mut self, out: &mut Vec<Burst>) {
        self.stream.set_ready(false);
        if !self.queue.has_space(self.progress()) {
            return;
        }
        let end = self.stream.data_bytes();
        self.queue.begin_write(self.next_byte());
        loop {
            let left_bytes = end.saturating_sub(self.queue.written_bytes());
            let is_last = left_bytes <= WRITE_BYTES;
            if left_bytes == 0 || !self.write_once(left_bytes.min(WRITE_BYTES), is_last, out) {
                break;
            }
        }
    }

    /// One write; false if the socket blocked. All but the last announce more (MSG_MORE).
    fn write_once(&mut self, bytes: u64, is_last: bool, out: &mut Vec<Burst>) -> bool {
        self.check_app_limited();
        self.queue.set_goal(self.peer.window_bytes());
        let Progress { next, una, .. } = self.progress();
        self.queue.begin_call(next, una);
        let mut left_bytes = bytes;
        while left_bytes > 0 {
            let next = self.next_byte();
            if self.flight.is_empty() && self.queue.begins_buffer(next) {
                self.restart_after_idle();
            }
            let taken = self.queue.append(left_bytes, next, una);
            if taken == 0 {
                self.queue.block();
                break;
            }
            left_bytes -= taken;
            if left_bytes == 0 || !self.queue.is_last_full(next) {
                continue;
            }
            if self.queue.must_push() {
                self.queue.mark_push(next);
                self.push_pending(Push::Forced, out);
            } else if self.queue.has_one_buffer() {
                self.push_pending(Push::One, out);
            }
        }
        let is_blocked = left_bytes > 0;
        let has_written = left_bytes < bytes;
        if is_blocked && (has_written || self.queue.sends_page_by_page()) {
            // tcp_sendmsg_locked(), wait_for_space; do_tcp_sendpages() pushes even if it has written nothing.
            self.queue.mark_push(self.next_byte());
            self.push_pending(Push::Forced, out);
        }
        if has_written {
            // tcp_push().
            if is_last || self.queue.must_push() {
                self.queue.mark_push(self.next_byte());
            }
            let push = match is_last {
                true => Push::AsMany,
                false => Push::Corked,
            };
            self.push_pending(push, out);
        }
        !is_blocked
    }
}
