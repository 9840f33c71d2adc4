//! The receive buffer: what waits in it and the memory that this takes, how large it may become and
//! how much of it is offered as window. It must never know when something is acknowledged.
//!
//! Follows tcp_input.c: tcp_rcv_space_adjust() for autotuning, tcp_grow_window(), tcp_try_coalesce();
//! and __tcp_select_window().

use crate::packet::Data;
use crate::receiver::ReceiverConfig;
use crate::rules::Rules;
use crate::write_queue::{MAX_PAGES, PAGE_BYTES};

/// Its first size (sysctl tcp_rmem[1]).
const INITIAL_BYTES: u64 = 131_072;
/// What a packet takes besides its payload, which lies in pages: the kernel's record of it and the
/// memory of its headers. A packet of 1448 bytes has a truesize of 2344 where a virtual card brought it.
const OVERHEAD_BYTES: u64 = 896;
/// Of that many parts of memory so many are window (tp->scaling_ratio): half until a packet has come.
const RATIO_UNIT: u64 = 256;
const INITIAL_RATIO: u64 = 128;
/// Shorter packets make no window grow (tcp_event_data_recv()).
const LEAST_GROWING_BYTES: u32 = 128;
/// What timestamps take of a segment.
const TIMESTAMPS_BYTES: u64 = 12;
const MAX_SHIFT: u32 = 14;
/// What a buffer is larger than needed by (tcp_rcv_space_adjust() before 6.16).
const CUSHION_PACKETS: u64 = 16;

const NS_PER_US: u64 = 1000;
const NS_PER_MS: u64 = 1_000_000;

/// No RTT is measured that could pass.
const NEVER_NS: u64 = u64::MAX;
/// No timestamp has come back: later than any by more than a millisecond.
const NO_ECHO_NS: u64 = u64::MAX - NS_PER_MS;

/// Packets in one of the kernel's buffers. Pages of a lone one are counted when another joins it: most are
/// read before; until then they are 0.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    start: u32,
    end: u32,
    pages: u64,
}

impl Waiting {
    #[inline]
    fn lone(number: u32) -> Self {
        Self {
            start: number,
            end: number + 1,
            pages: 0,
        }
    }

    /// There is no such buffer.
    #[inline]
    fn is_nothing(self) -> bool {
        self.end == 0
    }
}

/// What an ACK says of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) window_bytes: u64,
    /// More than half of the buffer is in use.
    pub(crate) is_short: bool,
}

/// A receiver's buffer.
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
    /// What has come in order and is not read: the last buffer, which is mostly the only one, and those
    /// before it. Then what lies beyond a hole. Both lists ascend.
    last: Waiting,
    unread: Vec<Waiting>,
    beyond: Vec<Waiting>,
    /// One past the last packet that was read (copied_seq).
    read_next: u32,
    /// How far the window may grow, and has grown (window_clamp, rcv_ssthresh).
    clamp_bytes: u64,
    threshold_bytes: u64,
    /// What the window's shift does not tell of it.
    rest_mask: u64,
    /// What was offered last (rcv_wnd), to whom all below this packet had come (rcv_wup).
    offered_bytes: u64,
    offered_at: u32,
    /// When the millisecond began that its last timestamp which came back tells (rcv_rtt_last_tsecr).
    echoed_ns: u64,
    /// Eight times the RTT (rcv_rtt_est).
    rtt_us8: u64,
    /// What an RTT brought, and since when and which packet the next one is counted (rcvq_space).
    space_bytes: u64,
    space_from: u32,
    space_since_us: u64,
    /// When that RTT will have passed.
    adjusts_at_ns: u64,
}

impl ReceiveBuffer {
    /// That of a connection whose handshake is done.
    pub(crate) fn new(config: &ReceiverConfig) -> Self {
        let mss_bytes = u64::from(config.mss_bytes);
        let full_ratio = match config.rules.measures_scaling_ratio() {
            true => mss_bytes * RATIO_UNIT / (mss_bytes + OVERHEAD_BYTES),
            false => INITIAL_RATIO,
        };
        let advertised_bytes = match config.rules.sizes_buffer_after_advmss() {
            true => mss_bytes,
            false => mss_bytes + TIMESTAMPS_BYTES,
        };
        let most_bytes = config.rmem_max_bytes.max(INITIAL_BYTES);
        let space_bytes = INITIAL_BYTES * INITIAL_RATIO / RATIO_UNIT;
        let clamp_bytes = space_bytes - advertised_bytes.min(space_bytes / 2);
        let offered_bytes = space_bytes / mss_bytes * mss_bytes;
        let scaled_bytes = most_bytes.max(config.rules.rmem_max_bytes());
        let shift = (scaled_bytes.ilog2() - 15).min(MAX_SHIFT);
        Self {
            mss_bytes,
            rules: config.rules,
            is_fixed: config.window_bytes.is_some(),
            size_bytes: INITIAL_BYTES,
            most_bytes,
            ratio: INITIAL_RATIO,
            full_ratio,
            memory_bytes: 0,
            last: Waiting::default(),
            unread: Vec::new(),
            beyond: Vec::new(),
            read_next: 0,
            clamp_bytes,
            threshold_bytes: clamp_bytes,
            rest_mask: (1 << shift) - 1,
            offered_bytes: config.window_bytes.unwrap_or(offered_bytes),
            offered_at: 0,
            echoed_ns: NO_ECHO_NS,
            rtt_us8: 0,
            space_bytes: (10 * advertised_bytes).min(clamp_bytes),
            space_from: 0,
            space_since_us: 0,
            adjusts_at_ns: NEVER_NS,
        }
    }

    /// The handshake is done: what comes is counted from now on.
    pub(crate) fn establish(&mut self, now_ns: u64) {
        self.space_since_us = now_ns / NS_PER_US;
        self.await_rtt();
    }

    /// The window that was offered last.
    pub(crate) fn window_bytes(&self) -> u64 {
        self.offered_bytes
    }

    /// The RTT as data say it; 0: not measured.
    pub(crate) fn rtt_ns(&self) -> u64 {
        self.rtt_us8 * NS_PER_US / 8
    }

    /// One past the last packet that was read.
    pub(crate) fn read_next(&self) -> u32 {
        self.read_next
    }

    /// tcp_rcv_rtt_measure_ts(): one sample for each echo, of timestamps that count milliseconds.
    #[inline]
    pub(crate) fn measure_rtt(&mut self, now_ns: u64, data: &Data) {
        if data.echo_ns.wrapping_sub(self.echoed_ns) >= NS_PER_MS {
            self.take_echo(now_ns, data);
        }
    }

    #[inline(never)] // once a millisecond at most
    fn take_echo(&mut self, now_ns: u64, data: &Data) {
        if data.echo_ns == 0 {
            return; // nothing is echoed
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
        // Else an average that follows the queue (tcp_rcv_rtt_update() with timestamps): a minimum alone
        // would starve a flow whose own window fills a deep buffer.
        self.rtt_us8 = match self.rtt_us8 {
            0 => 8 * sample_us,
            _ if is_less => 8 * sample_us,
            smoothed => smoothed - smoothed / 8 + sample_us,
        };
        self.await_rtt();
    }

    /// A larger RTT counts, or is the first.
    fn may_rise(&self) -> bool {
        let waits = !self.last.is_nothing();
        self.rtt_us8 == 0 || !waits || !self.rules.rcv_rtt_ignores_queued()
    }

    /// What is counted for an RTT is looked at when that has passed; not before one is measured.
    fn await_rtt(&mut self) {
        self.adjusts_at_ns = match self.rtt_us8 {
            0 => NEVER_NS,
            rtt_us8 => (self.space_since_us + rtt_us8 / 8) * NS_PER_US,
        };
    }

    /// Takes in the packet that was expected; true: the window grows.
    #[inline]
    pub(crate) fn take(&mut self, data: &Data) -> bool {
        if self.is_fixed {
            return false;
        }
        self.memory_bytes += match self.joins_last(Waiting::lone(data.number)) {
            true => self.mss_bytes,
            false => self.mss_bytes + OVERHEAD_BYTES,
        };
        self.grow(data.payload_bytes)
    }

    /// Takes in a packet beyond the hole that begins at `next`; true: the window grows
    /// (tcp_data_queue_ofo()).
    #[inline(never)] // holes are rare
    pub(crate) fn take_beyond(&mut self, data: &Data, next: u32) -> bool {
        if self.is_fixed {
            return false;
        }
        let grows = self.insert_beyond(data);
        if self.rules.grows_buffer_for_out_of_order() {
            self.enlarge(self.space_bytes, next);
        }
        grows
    }

    fn insert_beyond(&mut self, data: &Data) -> bool {
        let packet = Waiting::lone(data.number);
        let at = match self.beyond.last() {
            Some(last) if last.end <= packet.start => self.beyond.len(),
            _ => self.beyond.partition_point(|one| one.end <= packet.start),
        };
        if let Some(&before) = at.checked_sub(1).and_then(|at| self.beyond.get(at)) {
            let pages = self.pages(before) + self.pages(packet);
            if before.end == packet.start && pages <= MAX_PAGES {
                self.beyond[at - 1].end = packet.end;
                self.beyond[at - 1].pages = pages;
                self.memory_bytes += self.mss_bytes;
                return self.grow(data.payload_bytes);
            }
        }
        // Its memory is counted after the window has grown.
        let grows = self.grow(data.payload_bytes);
        self.beyond.insert(at, packet);
        self.memory_bytes += self.mss_bytes + OVERHEAD_BYTES;
        grows
    }

    /// A hole is filled up to a packet: what waited for that may be read (tcp_ofo_queue()).
    #[inline(never)]
    pub(crate) fn join(&mut self, next: u32) {
        let count = self.beyond.partition_point(|one| one.start < next);
        for at in 0..count {
            if self.joins_last(self.beyond[at]) {
                self.memory_bytes -= OVERHEAD_BYTES;
            }
        }
        self.beyond.drain(..count);
    }

    /// What is next in order goes into the last buffer, or is the last one from now on: false
    /// (tcp_try_coalesce()).
    #[inline]
    fn joins_last(&mut self, next: Waiting) -> bool {
        if self.last.is_nothing() {
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

    /// The application reads all that has come in order.
    #[inline]
    pub(crate) fn read(&mut self, now_ns: u64, next: u32) {
        if self.is_fixed {
            self.read_next = next;
            return;
        }
        if !self.unread.is_empty() {
            self.read_earlier(now_ns, next);
        }
        if !self.last.is_nothing() {
            self.read_one(self.last, now_ns, next);
            self.last.end = 0;
        }
    }

    #[inline(never)] // who reads at once finds one buffer
    fn read_earlier(&mut self, now_ns: u64, next: u32) {
        for at in 0..self.unread.len() {
            self.read_one(self.unread[at], now_ns, next);
        }
        self.unread.clear();
    }

    #[inline]
    fn read_one(&mut self, buffer: Waiting, now_ns: u64, next: u32) {
        self.read_next = buffer.end;
        if now_ns >= self.adjusts_at_ns {
            self.adjust(now_ns, next);
        }
        let bytes = u64::from(buffer.end - buffer.start) * self.mss_bytes;
        self.memory_bytes -= bytes + OVERHEAD_BYTES;
    }

    /// What the ACK of all below `next` offers: never less than was offered (tcp_select_window()).
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
        let new = self.may_offer();
        self.offered_bytes = self.rounded_up(new.window_bytes.max(left_bytes));
        self.offered_at = next;
        Offer {
            window_bytes: self.offered_bytes,
            is_short: new.is_short,
        }
    }

    /// As much might be offered as was last, though nobody has read what came since.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.rounded_up(self.may_offer().window_bytes) >= self.offered_bytes
    }

    /// __tcp_select_window(), of which the window is still to be rounded up.
    #[inline(always)] // asked twice for most ACKs
    fn may_offer(&self) -> Offer {
        let mut free_bytes = self.free_bytes();
        let is_short = free_bytes < self.clamp_bytes / 2;
        if is_short {
            free_bytes &= !self.rest_mask;
            if free_bytes < self.clamp_bytes / 16 || free_bytes < self.mss_bytes {
                free_bytes = 0;
            }
        }
        Offer {
            window_bytes: free_bytes.min(self.threshold_bytes),
            is_short,
        }
    }

    /// To what the window's shift can tell.
    #[inline]
    fn rounded_up(&self, bytes: u64) -> u64 {
        (bytes + self.rest_mask) & !self.rest_mask
    }

    fn pages(&self, buffer: Waiting) -> u64 {
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

    /// tcp_grow_window(): by two packets for each that comes, as far as there is room.
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

    /// tcp_measure_rcv_mss(): the first packet says how much of the memory payload is. Later ones need not
    /// ask.
    pub(crate) fn measure_overhead(&mut self) {
        if self.is_fixed || self.ratio == self.full_ratio {
            return;
        }
        self.ratio = self.full_ratio;
        self.clamp_bytes = self.window_of(self.size_bytes);
        self.space_bytes = self.space_bytes.min(self.clamp_bytes);
    }

    /// tcp_rcv_space_adjust(): once an RTT, as the application reads, offer twice what it read in it,
    /// and more while that grows, so that the window never stops a sender in slow start. It is asked
    /// after each buffer that is read: of what a filled hole lets be read at once only the first counts
    /// for this RTT, the others for the next.
    #[inline(never)]
    fn adjust(&mut self, now_ns: u64, next: u32) {
        let mut copied = u64::from(self.read_next - self.space_from) * self.mss_bytes;
        if self.rules.excludes_unread_from_copied() {
            copied = copied.saturating_sub(u64::from(next - self.read_next) * self.mss_bytes);
        }
        if copied > self.space_bytes {
            self.enlarge(copied, next);
            self.space_bytes = copied;
        }
        self.space_from = self.read_next;
        self.space_since_us = now_ns / NS_PER_US;
        self.await_rtt();
    }

    /// tcp_rcvbuf_grow(): for a round trip that brought so much, when all below `next` has come.
    fn enlarge(&mut self, copied_bytes: u64, next: u32) {
        let size =
            self.wanted_bytes(copied_bytes, next) * u128::from(RATIO_UNIT) / u128::from(self.ratio);
        let size_bytes =
            u64::try_from(size).map_or(self.most_bytes, |size| size.min(self.most_bytes));
        if size_bytes > self.size_bytes {
            self.size_bytes = size_bytes;
            self.clamp_bytes = self.window_of(size_bytes);
        }
    }

    /// The window for it: twice as much, as this round trip's is not counted yet, and what a sender in slow
    /// start adds; then a cushion, or what lies beyond a hole.
    fn wanted_bytes(&self, copied_bytes: u64, next: u32) -> u128 {
        let more = u128::from(copied_bytes - self.space_bytes);
        let space = u128::from(self.space_bytes.max(1));
        if !self.rules.grows_buffer_for_out_of_order() {
            let window = u128::from(2 * copied_bytes + CUSHION_PACKETS * self.mss_bytes);
            return window + 2 * (window * more / space);
        }
        let window = u128::from(2 * copied_bytes);
        let beyond = self.beyond.last().map_or(0, |last| last.end - next);
        // 6.18 doubles what it has rounded, as before: a byte.
        window + 2 * window * more / space + u128::from(u64::from(beyond) * self.mss_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receiver::Feedback;
    use fullpipe_plan::{AckPolicy, Kernel};

    const MSS: u32 = 1448;

    /// A buffer that knows from its first packets how much of its memory is payload.
    fn begun(kernel: Kernel) -> ReceiveBuffer {
        let mut buffer = ReceiveBuffer::new(&ReceiverConfig {
            mss_bytes: MSS,
            ack_policy: AckPolicy::Linux,
            rules: kernel.into(),
            window_bytes: None,
            rmem_max_bytes: 64 << 20,
            low_water_bytes: 1,
            work_ns: 0,
            absences: None,
            aggregation_ns: 0,
            feedback: Feedback::Latched,
        });
        buffer.measure_overhead();
        buffer
    }

    /// Its sizes as round trips bring so many packets, while so many lie beyond a hole.
    fn sizes(kernel: Kernel, trips: &[(u64, u32)]) -> Vec<u64> {
        let mut buffer = begun(kernel);
        let size = |&(packets, beyond): &(u64, u32)| {
            let copied_bytes = packets * u64::from(MSS);
            buffer.beyond = vec![Waiting {
                start: 1,
                end: 1 + beyond,
                pages: 1,
            }];
            buffer.enlarge(copied_bytes, 1);
            buffer.space_bytes = copied_bytes;
            buffer.size_bytes
        };
        trips.iter().map(size).collect()
    }

    #[test]
    fn a_buffer_grows_by_what_was_read_and_lies_beyond_a_hole_as_the_machines_7_3_does() {
        // tcp_rcvbuf_grow, traced in the virtual machine (7.3.4): two Reno flows, 10 Mbit/s, 40 ms, 4 BDP.
        let first = [(13, 0), (18, 0), (40, 0)];
        assert_eq!(sizes(Kernel::Linux7_3, &first), [131_072, 149_429, 646_487]);
        let second = [(11, 0), (20, 0), (40, 0), (80, 0), (147, 16)];
        let grown = [131_072, 247_409, 563_070, 1_126_140, 1_882_648];
        assert_eq!(sizes(Kernel::Linux7_3, &second), grown);
    }

    #[test]
    fn a_buffer_is_larger_by_a_cushion_as_in_the_machines_6_12() {
        // sk_rcvbuf at each packet there (6.12.117), of the same contest; what waits beyond holes is left out.
        let first = [(12, 0), (19, 0), (40, 0), (80, 0), (146, 9)];
        let grown = [131_383, 274_496, 723_099, 1_238_754, 1_914_905];
        assert_eq!(sizes(Kernel::default(), &first), grown);
    }

    #[test]
    fn a_buffer_grows_as_packets_come_beyond_a_hole_since_6_16() {
        // tcp_data_queue_ofo(); 158 of 256 bytes are window.
        let size = |kernel: Kernel, count: u32| {
            let mut buffer = begun(kernel);
            for number in 11..11 + count {
                let data = Data {
                    number,
                    payload_bytes: MSS,
                    ..Data::default()
                };
                buffer.take_beyond(&data, 10);
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
