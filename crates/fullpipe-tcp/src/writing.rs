//! What an application does that always has more, or as much as it was told of: it writes until its
//! socket refuses, and again when it is woken: tcp.c, tcp_sendmsg_locked(), and tcp_input.c,
//! tcp_check_space(). Must never know why it writes.

use crate::packet::Burst;
use crate::sender::Sender;
use crate::transmit::Push;

/// What one call hands over: a pipe of 16 pages, as sendfile() uses (splice_direct_to_actor()).
const WRITE_BYTES: u64 = 65_536;

impl Sender {
    /// tcp_check_space(): the application that waits is woken where there is room by now; and there is
    /// to be room for what the congestion window needs, unless that is full (tcp_should_expand_sndbuf()).
    #[inline(always)] // asked after every ACK and burst
    pub(crate) fn look_for_room(&mut self) {
        if self.queue.may_wake(self.snd_una, self.ctl.cwnd) {
            self.make_room();
        }
    }

    #[inline(never)] // once in many
    fn make_room(&mut self) {
        let has_grown = self.inflight() < self.ctl.cwnd && {
            let window = self.ctl.cwnd.max(self.reordering.threshold() + 1);
            self.queue.expand(window, self.ctl.sndbuf_factor)
        };
        self.may_write = self.queue.wakes(self.snd_nxt, self.snd_una, has_grown);
    }

    /// The application writes until its socket refuses or it has no more.
    #[inline(never)] // once in hundreds of packets
    pub(crate) fn write_on(&mut self, out: &mut Vec<Burst>) {
        self.may_write = false;
        let end_bytes = u64::from(self.data_end()) * u64::from(self.config.mss_bytes);
        self.queue.begin_call();
        loop {
            let left_bytes = end_bytes.saturating_sub(self.queue.written_bytes());
            if left_bytes == 0 || !self.write_once(left_bytes.min(WRITE_BYTES), out) {
                break;
            }
        }
    }

    /// One call; false: the socket takes no more.
    fn write_once(&mut self, bytes: u64, out: &mut Vec<Burst>) -> bool {
        self.check_app_limited();
        self.queue.set_goal(self.window_bytes);
        let mut left_bytes = bytes;
        while left_bytes > 0 {
            let taken = self.queue.take(left_bytes, self.snd_nxt, self.snd_una);
            if taken == 0 {
                self.queue.is_refusing = true;
                break;
            }
            left_bytes -= taken;
            if left_bytes == 0 || !self.queue.is_last_full(self.snd_nxt) {
                continue;
            }
            if self.queue.must_push() {
                self.queue.mark();
                self.push_pending(Push::AsMany, out);
            } else if self.queue.has_one() {
                self.push_pending(Push::One, out);
            }
        }
        let is_refused = left_bytes > 0;
        if left_bytes < bytes {
            if is_refused {
                // Before it would wait for memory.
                self.queue.mark();
                self.push_pending(Push::AsMany, out);
            }
            if self.queue.must_push() {
                self.queue.pushed();
            }
            self.push_pending(Push::AsMany, out);
        }
        !is_refused
    }
}
