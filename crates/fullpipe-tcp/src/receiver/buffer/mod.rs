//! The receive buffer: the memory that unread data take, autotuning of its size, and the window that it
//! allows. It must never know when ACKs are sent.
//!
//! Follows tcp_rcv_space_adjust() and tcp_rcv_rtt_update() of tcp_input.c.

mod round_trip;
mod unread;
mod window;

use crate::packet::Data;
use crate::rules::Rules;

use self::round_trip::RoundTrip;
use self::unread::{Skb, Unread};
use self::window::{Window, INITIAL_BYTES};

pub(super) use self::window::Offer;

/// TCPOLEN_TSTAMP_ALIGNED.
const TIMESTAMPS_BYTES: u64 = 12;
/// Cushion of tcp_rcv_space_adjust() before 6.16.
const CUSHION_PACKETS: u64 = 16;

/// The receive buffer of one connection.
#[derive(Debug)]
pub(super) struct ReceiveBuffer {
    mss_bytes: u64,
    rules: Rules,
    is_fixed: bool,
    /// One past the last packet that was read (copied_seq).
    read_next: u32,
    unread: Unread,
    window: Window,
    trip: RoundTrip,
}

impl ReceiveBuffer {
    /// The buffer of a connection; `window_bytes`: a fixed window.
    pub(super) fn new(
        mss_bytes: u64,
        rules: Rules,
        window_bytes: Option<u64>,
        rmem_max_bytes: u64,
    ) -> Self {
        let advertised_bytes = match rules.sizes_buffer_after_advmss() {
            true => mss_bytes,
            false => mss_bytes + TIMESTAMPS_BYTES,
        };
        let most_bytes = rmem_max_bytes.max(INITIAL_BYTES);
        let window = Window::new(mss_bytes, advertised_bytes, rules, most_bytes, window_bytes);
        let space_bytes = (10 * advertised_bytes).min(window.clamp_bytes());
        Self {
            mss_bytes,
            rules,
            is_fixed: window_bytes.is_some(),
            read_next: 0,
            unread: Unread::new(mss_bytes),
            window,
            trip: RoundTrip::new(mss_bytes, rules, space_bytes),
        }
    }

    /// The handshake is done: starts to count the first RTT.
    pub(super) fn establish(&mut self, now_ns: u64) {
        self.trip.restart(now_ns);
    }

    /// The window advertised last.
    #[inline(always)] // for every packet
    pub(super) fn window_bytes(&self) -> u64 {
        self.window.offered_bytes()
    }

    /// The RTT measured from data; 0 before the first sample.
    pub(super) fn rtt_ns(&self) -> u64 {
        self.trip.rtt_ns()
    }

    /// One past the last packet that was read.
    #[inline(always)] // for every packet
    pub(super) fn read_next(&self) -> u32 {
        self.read_next
    }

    /// Takes the RTT from a packet's timestamp echo.
    #[inline]
    pub(super) fn measure_rtt(&mut self, now_ns: u64, data: &Data) {
        self.trip.measure(now_ns, data, &self.unread);
    }

    /// Adds the next packet in order; true if the window grows.
    #[inline]
    pub(super) fn receive_in_order(&mut self, data: &Data) -> bool {
        if self.is_fixed {
            return false;
        }
        self.unread.add(data.number);
        self.window
            .grow(data.payload_bytes, self.unread.memory_bytes())
    }

    /// Adds a packet beyond the hole at `next`; true if the window grows (tcp_data_queue_ofo()).
    #[inline(never)] // holes are rare
    pub(super) fn receive_out_of_order(&mut self, data: &Data, next: u32) -> bool {
        if self.is_fixed {
            return false;
        }
        let is_coalesced = self.unread.coalesce_beyond(data.number);
        let grows = self
            .window
            .grow(data.payload_bytes, self.unread.memory_bytes());
        if !is_coalesced {
            // Linux charges its memory after the window has grown.
            self.unread.add_beyond(data.number);
        }
        if self.rules.grows_buffer_for_out_of_order() {
            self.grow_buffer(self.trip.space_bytes(), next);
        }
        grows
    }

    /// Holes below `next` are filled: their buffers are in order now.
    pub(super) fn merge_out_of_order(&mut self, next: u32) {
        self.unread.merge_beyond(next);
    }

    /// The application reads everything below `next`.
    #[inline]
    pub(super) fn read(&mut self, now_ns: u64, next: u32) {
        if self.is_fixed {
            self.read_next = next;
            return;
        }
        if !self.unread.earlier().is_empty() {
            self.read_earlier(now_ns, next);
        }
        if let Some(last) = self.unread.take_last() {
            self.read_one(last, now_ns, next);
        }
    }

    #[inline(never)] // an application that reads at once finds one buffer
    fn read_earlier(&mut self, now_ns: u64, next: u32) {
        for at in 0..self.unread.earlier().len() {
            self.read_one(self.unread.earlier()[at], now_ns, next);
        }
        self.unread.clear_earlier();
    }

    #[inline]
    fn read_one(&mut self, skb: Skb, now_ns: u64, next: u32) {
        self.read_next = skb.end;
        if self.trip.is_over(now_ns) {
            self.adjust(now_ns, next);
        }
        self.unread.free(skb);
    }

    /// The window of an ACK for `next`.
    #[inline]
    pub(super) fn offer(&mut self, next: u32) -> Offer {
        if self.is_fixed {
            return Offer {
                window_bytes: self.window.offered_bytes(),
                is_short: false,
            };
        }
        self.window.offer(next, self.unread.memory_bytes())
    }

    /// Whether the window after everything was read is at least twice what so many packets left of the last
    /// one. Windows of Linux's own size are too large for that: every second packet is acknowledged.
    pub(super) fn reading_doubles_window(&self, unacked: u32) -> bool {
        let window_bytes = self.window.offered_bytes();
        self.is_fixed && 2 * u64::from(unacked) * self.mss_bytes >= window_bytes
    }

    /// Whether the window is now at least twice what packets up to `next` left of the last one
    /// (__tcp_cleanup_rbuf()).
    pub(super) fn has_opened(&self, next: u32) -> bool {
        !self.is_fixed && self.window.doubles(next, self.unread.memory_bytes())
    }

    /// Whether the window would not be smaller than the one advertised last.
    #[inline]
    pub(super) fn keeps_window(&self) -> bool {
        self.window.keeps(self.unread.memory_bytes())
    }

    /// The first packet sets the scaling ratio.
    #[inline]
    pub(super) fn measure_scaling_ratio(&mut self) {
        if !self.is_fixed && self.window.measure_ratio() {
            self.trip.limit_space(self.window.clamp_bytes());
        }
    }

    /// tcp_rcv_space_adjust(): once an RTT, grows the buffer to twice what was read in it, and more while
    /// that rises, so that the window does not limit a sender in slow start. It runs after each buffer
    /// that is read: when a filled hole makes several readable, only the first counts for this RTT.
    #[inline(never)]
    fn adjust(&mut self, now_ns: u64, next: u32) {
        let copied = self.trip.copied_bytes(self.read_next, next);
        if copied > self.trip.space_bytes() {
            self.grow_buffer(copied, next);
            self.trip.set_space(copied);
        }
        self.trip.end(now_ns, self.read_next);
    }

    /// tcp_rcvbuf_grow(): for an RTT in which `copied_bytes` were read; `next` is the next packet expected.
    fn grow_buffer(&mut self, copied_bytes: u64, next: u32) {
        self.window.make_room(self.wanted_bytes(copied_bytes, next));
    }

    /// The window to allow for: twice the bytes of an RTT, the growth of slow start, and a cushion or the
    /// packets beyond a hole.
    fn wanted_bytes(&self, copied_bytes: u64, next: u32) -> u128 {
        let space_bytes = self.trip.space_bytes();
        let more = u128::from(copied_bytes - space_bytes);
        let space = u128::from(space_bytes.max(1));
        if !self.rules.grows_buffer_for_out_of_order() {
            let window = u128::from(2 * copied_bytes + CUSHION_PACKETS * self.mss_bytes);
            return window + 2 * (window * more / space);
        }
        let window = u128::from(2 * copied_bytes);
        let beyond = u64::from(self.unread.beyond_packets(next));
        window + 2 * window * more / space + u128::from(beyond * self.mss_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_plan::Kernel;

    const MSS: u32 = 1448;

    /// A buffer after its first packet.
    fn measured(kernel: Kernel) -> ReceiveBuffer {
        let mut buffer = ReceiveBuffer::new(MSS.into(), kernel.into(), None, 64 << 20);
        buffer.measure_scaling_ratio();
        buffer
    }

    /// Sizes of the buffer after RTTs, each with the packets read and the packets beyond a hole.
    fn sizes(kernel: Kernel, trips: &[(u64, u32)]) -> Vec<u64> {
        let mut buffer = measured(kernel);
        let size = |&(packets, beyond): &(u64, u32)| {
            let copied_bytes = packets * u64::from(MSS);
            if beyond > 0 {
                buffer.unread.add_beyond(beyond);
            }
            buffer.grow_buffer(copied_bytes, 1);
            buffer.trip.set_space(copied_bytes);
            buffer.window.size_bytes()
        };
        trips.iter().map(size).collect()
    }

    #[test]
    fn a_buffer_grows_as_traced_in_the_virtual_machine_with_7_3() {
        // tcp_rcvbuf_grow() in 7.3.4: two Reno flows, 10 Mbit/s, 40 ms, 4 BDP.
        let first = [(13, 0), (18, 0), (40, 0)];
        assert_eq!(sizes(Kernel::Linux7_3, &first), [131_072, 149_429, 646_487]);
        let second = [(11, 0), (20, 0), (40, 0), (80, 0), (147, 16)];
        let grown = [131_072, 247_409, 563_070, 1_126_140, 1_882_648];
        assert_eq!(sizes(Kernel::Linux7_3, &second), grown);
    }

    #[test]
    fn a_buffer_grows_as_traced_in_the_virtual_machine_with_6_12_117() {
        // sk_rcvbuf at each packet of the same scenario.
        let first = [(12, 0), (19, 0), (40, 0), (80, 0), (146, 9)];
        let grown = [131_383, 274_496, 723_099, 1_238_754, 1_914_905];
        assert_eq!(sizes(Kernel::default(), &first), grown);
    }

    #[test]
    fn a_buffer_grows_as_packets_arrive_beyond_a_hole_since_6_16() {
        // tcp_data_queue_ofo(); 158 of 256 bytes of memory are window.
        let size = |kernel: Kernel, count: u32| {
            let mut buffer = measured(kernel);
            for number in 11..11 + count {
                let data = Data {
                    number,
                    payload_bytes: MSS,
                    ..Data::default()
                };
                buffer.receive_out_of_order(&data, 10);
            }
            buffer.window.size_bytes()
        };
        assert_eq!(size(Kernel::default(), 52), INITIAL_BYTES);
        for kernel in [Kernel::Linux6_18, Kernel::Linux7_3] {
            for beyond in [50, 52] {
                let window_bytes = (2 * 10 + 1 + u64::from(beyond)) * u64::from(MSS);
                assert_eq!(size(kernel, beyond), window_bytes * 256 / 158);
            }
        }
    }
}
