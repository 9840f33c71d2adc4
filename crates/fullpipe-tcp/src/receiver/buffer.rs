//! The receive buffer: the memory that unread data take, autotuning of its size, and the window that it
//! allows. It must never know when ACKs are sent.
//!
//! Follows tcp_rcv_space_adjust(), tcp_grow_window() and tcp_try_coalesce() of tcp_input.c, and
//! __tcp_select_window() of tcp_output.c.

use crate::packet::Data;
use crate::rules::Rules;
use crate::skb::{MAX_PAGES, PAGE_BYTES};

/// Initial size (sysctl tcp_rmem[1]).
const INITIAL_BYTES: u64 = 131_072;
/// truesize of a packet less its payload: struct sk_buff and the headers. A packet of 1448 bytes from a
/// virtual device has a truesize of 2344.
const OVERHEAD_BYTES: u64 = 896;
/// tp->scaling_ratio: the part of memory that counts as window, in 256ths. Half until a packet arrived.
const RATIO_UNIT: u64 = 256;
const INITIAL_RATIO: u64 = 128;
/// Shorter packets do not make the window grow (tcp_event_data_recv()).
const LEAST_GROWING_BYTES: u32 = 128;
/// TCPOLEN_TSTAMP_ALIGNED.
const TIMESTAMPS_BYTES: u64 = 12;
const MAX_SHIFT: u32 = 14;
/// Cushion of tcp_rcv_space_adjust() before 6.16.
const CUSHION_PACKETS: u64 = 16;

const NS_PER_US: u64 = 1000;
const NS_PER_MS: u64 = 1_000_000;

/// There is no RTT sample yet.
const NEVER_NS: u64 = u64::MAX;
/// No timestamp was echoed: differs from any by more than a millisecond.
const NO_ECHO_NS: u64 = u64::MAX - NS_PER_MS;

/// A buffer of the kernel (struct sk_buff) with packets `start..end`.
#[derive(Clone, Copy, Debug, Default)]
struct Skb {
    start: u32,
    end: u32,
    /// Page fragments; 0 until a second packet is coalesced.
    pages: u64,
}

impl Skb {
    #[inline]
    fn of_packet(number: u32) -> Self {
        Self {
            start: number,
            end: number + 1,
            pages: 0,
        }
    }

    #[inline]
    fn is_empty(self) -> bool {
        self.end == 0
    }
}

/// The window of an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) window_bytes: u64,
    /// More than half of the buffer is in use.
    pub(crate) is_short: bool,
}

/// The receive buffer of one connection.
#[derive(Debug)]
pub(crate) struct ReceiveBuffer {
    mss_bytes: u64,
    rules: Rules,
    is_fixed: bool,
    /// sk_rcvbuf and tcp_rmem[2].
    size_bytes: u64,
    most_bytes: u64,
    ratio: u64,
    full_ratio: u64,
    /// sk_rmem_alloc.
    memory_bytes: u64,
    /// Unread data in order: the last buffer, mostly the only one, and those before it.
    last: Skb,
    unread: Vec<Skb>,
    /// Buffers beyond a hole, ascending.
    out_of_order: Vec<Skb>,
    /// One past the last packet that was read (copied_seq).
    read_next: u32,
    /// Upper limit of the window, and the current one (window_clamp, rcv_ssthresh).
    clamp_bytes: u64,
    threshold_bytes: u64,
    /// The bits of a window below its scale.
    scale_mask: u64,
    /// The window advertised last (rcv_wnd), and `next` of that ACK (rcv_wup).
    offered_bytes: u64,
    offered_at: u32,
    /// The last timestamp echo, in whole milliseconds (rcv_rtt_last_tsecr).
    echoed_ns: u64,
    /// Eight times the RTT (rcv_rtt_est).
    rtt_us8: u64,
    /// Bytes read in an RTT; the packet and time from which the next RTT is counted (rcvq_space).
    space_bytes: u64,
    space_from: u32,
    space_since_us: u64,
    /// When that RTT ends.
    adjusts_at_ns: u64,
}

impl ReceiveBuffer {
    /// The buffer of a connection; `window_bytes`: a fixed window.
    pub(crate) fn new(
        mss_bytes: u64,
        rules: Rules,
        window_bytes: Option<u64>,
        rmem_max_bytes: u64,
    ) -> Self {
        let full_ratio = match rules.measures_scaling_ratio() {
            true => mss_bytes * RATIO_UNIT / (mss_bytes + OVERHEAD_BYTES),
            false => INITIAL_RATIO,
        };
        let advertised_bytes = match rules.sizes_buffer_after_advmss() {
            true => mss_bytes,
            false => mss_bytes + TIMESTAMPS_BYTES,
        };
        let most_bytes = rmem_max_bytes.max(INITIAL_BYTES);
        let space_bytes = INITIAL_BYTES * INITIAL_RATIO / RATIO_UNIT;
        let clamp_bytes = space_bytes - advertised_bytes.min(space_bytes / 2);
        let offered_bytes = space_bytes / mss_bytes * mss_bytes;
        let scaled_bytes = most_bytes.max(rules.rmem_max_bytes());
        let shift = (scaled_bytes.ilog2() - 15).min(MAX_SHIFT);
        Self {
            mss_bytes,
            rules,
            is_fixed: window_bytes.is_some(),
            size_bytes: INITIAL_BYTES,
            most_bytes,
            ratio: INITIAL_RATIO,
            full_ratio,
            memory_bytes: 0,
            last: Skb::default(),
            unread: Vec::new(),
            out_of_order: Vec::new(),
            read_next: 0,
            clamp_bytes,
            threshold_bytes: clamp_bytes,
            scale_mask: (1 << shift) - 1,
            offered_bytes: window_bytes.unwrap_or(offered_bytes),
            offered_at: 0,
            echoed_ns: NO_ECHO_NS,
            rtt_us8: 0,
            space_bytes: (10 * advertised_bytes).min(clamp_bytes),
            space_from: 0,
            space_since_us: 0,
            adjusts_at_ns: NEVER_NS,
        }
    }

    /// The handshake is done: starts to count the first RTT.
    pub(crate) fn establish(&mut self, now_ns: u64) {
        self.space_since_us = now_ns / NS_PER_US;
        self.schedule_adjustment();
    }

    /// The window advertised last.
    pub(crate) fn window_bytes(&self) -> u64 {
        self.offered_bytes
    }

    /// The RTT measured from data; 0 before the first sample.
    pub(crate) fn rtt_ns(&self) -> u64 {
        self.rtt_us8 * NS_PER_US / 8
    }

    /// One past the last packet that was read.
    pub(crate) fn read_next(&self) -> u32 {
        self.read_next
    }

    /// tcp_rcv_rtt_measure_ts(): one sample for each new timestamp echo, in milliseconds.
    #[inline]
    pub(crate) fn measure_rtt(&mut self, now_ns: u64, data: &Data) {
        if data.echo_ns.wrapping_sub(self.echoed_ns) >= NS_PER_MS {
            self.sample_rtt(now_ns, data);
        }
    }

    #[inline(never)] // once a millisecond at most
    fn sample_rtt(&mut self, now_ns: u64, data: &Data) {
        if data.echo_ns == 0 {
            return; // no echo
        }
        let echo_ms = data.echo_ns / NS_PER_MS;
        self.echoed_ns = echo_ms * NS_PER_MS;
        if u64::from(data.payload_bytes) < self.mss_bytes {
            return;
        }
        let mut sample_ms = (now_ns / NS_PER_MS).saturating_sub(echo_ms);
        if sample_ms == 0 {
            if self.rules.ignores_rcv_rtt_below_1_ms() {
                return;
            }
            sample_ms = 1;
        }
        let sample_us = sample_ms * NS_PER_MS / NS_PER_US;
        let is_less = 8 * sample_us < self.rtt_us8 && self.rules.rcv_rtt_falls_at_once();
        if !is_less && !self.may_rise() {
            return;
        }
        // tcp_rcv_rtt_update() with timestamps: a moving average. A minimum would starve a flow that fills
        // a deep buffer.
        self.rtt_us8 = match self.rtt_us8 {
            0 => 8 * sample_us,
            _ if is_less => 8 * sample_us,
            smoothed => smoothed - smoothed / 8 + sample_us,
        };
        self.schedule_adjustment();
    }

    /// Whether a larger sample counts.
    fn may_rise(&self) -> bool {
        let has_unread = !self.last.is_empty();
        self.rtt_us8 == 0 || !has_unread || !self.rules.rcv_rtt_ignores_queued()
    }

    /// Schedules the next [`Self::adjust`], an RTT after the last one.
    fn schedule_adjustment(&mut self) {
        self.adjusts_at_ns = match self.rtt_us8 {
            0 => NEVER_NS,
            rtt_us8 => (self.space_since_us + rtt_us8 / 8) * NS_PER_US,
        };
    }

    /// Adds the next packet in order; true if the window grows.
    #[inline]
    pub(crate) fn receive_in_order(&mut self, data: &Data) -> bool {
        if self.is_fixed {
            return false;
        }
        self.memory_bytes += match self.coalesce(Skb::of_packet(data.number)) {
            true => self.mss_bytes,
            false => self.mss_bytes + OVERHEAD_BYTES,
        };
        self.grow(data.payload_bytes)
    }

    /// Adds a packet beyond the hole at `next`; true if the window grows (tcp_data_queue_ofo()).
    #[inline(never)] // holes are rare
    pub(crate) fn receive_out_of_order(&mut self, data: &Data, next: u32) -> bool {
        if self.is_fixed {
            return false;
        }
        let grows = self.insert_out_of_order(data);
        if self.rules.grows_buffer_for_out_of_order() {
            self.grow_buffer(self.space_bytes, next);
        }
        grows
    }

    fn insert_out_of_order(&mut self, data: &Data) -> bool {
        let packet = Skb::of_packet(data.number);
        let at = match self.out_of_order.last() {
            Some(last) if last.end <= packet.start => self.out_of_order.len(),
            _ => self
                .out_of_order
                .partition_point(|one| one.end <= packet.start),
        };
        if let Some(&before) = at.checked_sub(1).and_then(|at| self.out_of_order.get(at)) {
            let pages = self.pages(before) + self.pages(packet);
            if before.end == packet.start && pages <= MAX_PAGES {
                self.out_of_order[at - 1].end = packet.end;
                self.out_of_order[at - 1].pages = pages;
                self.memory_bytes += self.mss_bytes;
                return self.grow(data.payload_bytes);
            }
        }
        // Linux charges its memory after the window has grown.
        let grows = self.grow(data.payload_bytes);
        self.out_of_order.insert(at, packet);
        self.memory_bytes += self.mss_bytes + OVERHEAD_BYTES;
        grows
    }

    /// Holes below `next` are filled: their buffers are in order now (tcp_ofo_queue()).
    #[inline(never)]
    pub(crate) fn merge_out_of_order(&mut self, next: u32) {
        let count = self.out_of_order.partition_point(|one| one.start < next);
        for at in 0..count {
            if self.coalesce(self.out_of_order[at]) {
                self.memory_bytes -= OVERHEAD_BYTES;
            }
        }
        self.out_of_order.drain(..count);
    }

    /// Coalesces the next buffer in order with the last one; false if it becomes the last one itself
    /// (tcp_try_coalesce()).
    #[inline]
    fn coalesce(&mut self, next: Skb) -> bool {
        if self.last.is_empty() {
            self.last = next;
            return false;
        }
        let pages = self.pages(self.last) + self.pages(next);
        if pages > MAX_PAGES {
            self.unread.push(self.last);
            self.last = next;
            return false;
        }
        self.last.end = next.end;
        self.last.pages = pages;
        true
    }

    /// The application reads everything below `next`.
    #[inline]
    pub(crate) fn read(&mut self, now_ns: u64, next: u32) {
        if self.is_fixed {
            self.read_next = next;
            return;
        }
        if !self.unread.is_empty() {
            self.read_earlier(now_ns, next);
        }
        if !self.last.is_empty() {
            self.read_one(self.last, now_ns, next);
            self.last.end = 0;
        }
    }

    #[inline(never)] // an application that reads at once finds one buffer
    fn read_earlier(&mut self, now_ns: u64, next: u32) {
        for at in 0..self.unread.len() {
            self.read_one(self.unread[at], now_ns, next);
        }
        self.unread.clear();
    }

    #[inline]
    fn read_one(&mut self, buffer: Skb, now_ns: u64, next: u32) {
        self.read_next = buffer.end;
        if now_ns >= self.adjusts_at_ns {
            self.adjust(now_ns, next);
        }
        let bytes = u64::from(buffer.end - buffer.start) * self.mss_bytes;
        self.memory_bytes -= bytes + OVERHEAD_BYTES;
    }

    /// The window of an ACK for `next`; it never shrinks (tcp_select_window()).
    #[inline]
    pub(crate) fn offer(&mut self, next: u32) -> Offer {
        if self.is_fixed {
            return Offer {
                window_bytes: self.offered_bytes,
                is_short: false,
            };
        }
        let used_bytes = u64::from(next - self.offered_at) * self.mss_bytes;
        let left_bytes = self.offered_bytes.saturating_sub(used_bytes);
        let new = self.select_window();
        self.offered_bytes = self.round_up(new.window_bytes.max(left_bytes));
        self.offered_at = next;
        Offer {
            window_bytes: self.offered_bytes,
            is_short: new.is_short,
        }
    }

    /// Whether the window would not be smaller than the one advertised last.
    #[inline]
    pub(crate) fn keeps_window(&self) -> bool {
        self.round_up(self.select_window().window_bytes) >= self.offered_bytes
    }

    /// __tcp_select_window() without the final rounding.
    #[inline(always)] // called twice for most ACKs
    fn select_window(&self) -> Offer {
        let mut free_bytes = self.free_bytes();
        let is_short = free_bytes < self.clamp_bytes / 2;
        if is_short {
            free_bytes &= !self.scale_mask;
            if free_bytes < self.clamp_bytes / 16 || free_bytes < self.mss_bytes {
                free_bytes = 0;
            }
        }
        Offer {
            window_bytes: free_bytes.min(self.threshold_bytes),
            is_short,
        }
    }

    /// Rounds up to a multiple of the window's scale.
    #[inline]
    fn round_up(&self, bytes: u64) -> u64 {
        (bytes + self.scale_mask) & !self.scale_mask
    }

    fn pages(&self, buffer: Skb) -> u64 {
        if buffer.pages > 0 {
            return buffer.pages;
        }
        let first_byte = u64::from(buffer.start) * self.mss_bytes;
        let last_byte = first_byte % PAGE_BYTES + self.mss_bytes - 1;
        last_byte / PAGE_BYTES + 1
    }

    fn window_of(&self, memory_bytes: u64) -> u64 {
        memory_bytes * self.ratio / RATIO_UNIT
    }

    /// tcp_space().
    fn free_bytes(&self) -> u64 {
        self.window_of(self.size_bytes.saturating_sub(self.memory_bytes))
    }

    /// tcp_grow_window(): by two packets for each packet, as far as memory allows.
    #[inline]
    fn grow(&mut self, payload_bytes: u32) -> bool {
        if self.threshold_bytes >= self.clamp_bytes || payload_bytes < LEAST_GROWING_BYTES {
            return false;
        }
        let limit_bytes = self.clamp_bytes.min(self.free_bytes());
        if limit_bytes <= self.threshold_bytes {
            return false;
        }
        self.threshold_bytes = limit_bytes.min(self.threshold_bytes + 2 * self.mss_bytes);
        true
    }

    /// tcp_measure_rcv_mss(): the first packet sets the scaling ratio.
    pub(crate) fn measure_scaling_ratio(&mut self) {
        if self.is_fixed || self.ratio == self.full_ratio {
            return;
        }
        self.ratio = self.full_ratio;
        self.clamp_bytes = self.window_of(self.size_bytes);
        self.space_bytes = self.space_bytes.min(self.clamp_bytes);
    }

    /// tcp_rcv_space_adjust(): once an RTT, grows the buffer to twice what was read in it, and more while
    /// that rises, so that the window does not limit a sender in slow start. It runs after each buffer
    /// that is read: when a filled hole makes several readable, only the first counts for this RTT.
    #[inline(never)]
    fn adjust(&mut self, now_ns: u64, next: u32) {
        let mut copied = u64::from(self.read_next - self.space_from) * self.mss_bytes;
        if self.rules.excludes_unread_from_copied() {
            copied = copied.saturating_sub(u64::from(next - self.read_next) * self.mss_bytes);
        }
        if copied > self.space_bytes {
            self.grow_buffer(copied, next);
            self.space_bytes = copied;
        }
        self.space_from = self.read_next;
        self.space_since_us = now_ns / NS_PER_US;
        self.schedule_adjustment();
    }

    /// tcp_rcvbuf_grow(): for an RTT in which `copied_bytes` were read; `next` is the next packet expected.
    fn grow_buffer(&mut self, copied_bytes: u64, next: u32) {
        let size =
            self.wanted_bytes(copied_bytes, next) * u128::from(RATIO_UNIT) / u128::from(self.ratio);
        let size_bytes =
            u64::try_from(size).map_or(self.most_bytes, |size| size.min(self.most_bytes));
        if size_bytes > self.size_bytes {
            self.size_bytes = size_bytes;
            self.clamp_bytes = self.window_of(size_bytes);
        }
    }

    /// The window to allow for: twice the bytes of an RTT, the growth of slow start, and a cushion or the
    /// packets beyond a hole.
    fn wanted_bytes(&self, copied_bytes: u64, next: u32) -> u128 {
        let more = u128::from(copied_bytes - self.space_bytes);
        let space = u128::from(self.space_bytes.max(1));
        if !self.rules.grows_buffer_for_out_of_order() {
            let window = u128::from(2 * copied_bytes + CUSHION_PACKETS * self.mss_bytes);
            return window + 2 * (window * more / space);
        }
        let window = u128::from(2 * copied_bytes);
        let beyond = self.out_of_order.last().map_or(0, |last| last.end - next);
        window + 2 * window * more / space + u128::from(u64::from(beyond) * self.mss_bytes)
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
            buffer.out_of_order = vec![Skb {
                start: 1,
                end: 1 + beyond,
                pages: 1,
            }];
            buffer.grow_buffer(copied_bytes, 1);
            buffer.space_bytes = copied_bytes;
            buffer.size_bytes
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
            buffer.size_bytes
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
