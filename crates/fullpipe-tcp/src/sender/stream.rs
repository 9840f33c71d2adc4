//! The application's stream of bytes cut into packets: how many it has written, what each of them carries,
//! and the FIN. Must never know which packets are out.

use std::ops::Range;

use crate::packet::{Burst, Data};

use super::config::SenderConfig;

/// Most packets that one write adds.
const WRITE_PACKETS_MAX: u64 = u32::MAX as u64 / 2;

/// What the application writes.
#[derive(Debug)]
pub(super) struct Stream {
    mss_bytes: u32,
    /// One past the last packet that the application has or will write.
    written: u32,
    /// Payload of the last packet with data once the application has closed.
    last_payload: u32,
    /// Packets that writes left short, each with the payload missing in it and all before
    /// ([`Self::write_bytes`]).
    shorts: Vec<(u32, u64)>,
    /// A write has added to a short packet.
    has_filled: bool,
    is_closed: bool,
    /// The number of the FIN if it is sent without data.
    lone_fin: Option<u32>,
    /// The application has data to write and is not blocked.
    is_ready: bool,
}

impl Stream {
    /// The stream of an application that writes by itself, or all at the start.
    pub(super) fn new(config: &SenderConfig) -> Self {
        let mss = u64::from(config.mss_bytes);
        let (written, last_payload, is_closed) = match config.amount_bytes {
            _ if config.written_by_application => (0, config.mss_bytes, false),
            None => (u32::MAX, config.mss_bytes, false),
            Some(bytes) => {
                let packets = bytes.div_ceil(mss).min(u64::from(u32::MAX - 1));
                let last = bytes - (packets.max(1) - 1) * mss;
                (packets as u32, last.min(mss) as u32, true)
            }
        };
        Self {
            mss_bytes: config.mss_bytes,
            written,
            last_payload,
            shorts: Vec::new(),
            has_filled: false,
            is_closed,
            lone_fin: None,
            is_ready: written > 0,
        }
    }

    /// Whether the application will write now.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// The application may write, or is blocked.
    pub(super) fn set_ready(&mut self, is_ready: bool) {
        self.is_ready = is_ready;
    }

    /// The application writes full packets.
    pub(super) fn write(&mut self, packets: u32) {
        self.written = self.written.saturating_add(packets);
    }

    /// The application writes bytes; they fill up a short packet that is not sent yet.
    pub(super) fn write_bytes(&mut self, bytes: u64, next: u32) {
        let mss = u64::from(self.mss_bytes);
        let mut left = bytes;
        if let Some((number, missing)) = self.shorts.pop() {
            let before = self.missing();
            let mut still = missing;
            if number >= next {
                let taken = left.min(missing - before);
                self.has_filled = true;
                left -= taken;
                still -= taken;
            }
            if still > before {
                self.shorts.push((number, still));
            }
        }
        let packets = left.div_ceil(mss).min(WRITE_PACKETS_MAX);
        self.written = self.written.saturating_add(packets as u32);
        let missing = (packets * mss).saturating_sub(left);
        if missing > 0 {
            self.shorts
                .push((self.written - 1, self.missing() + missing));
        }
    }

    /// Whether a write has added to a short packet since the last call.
    pub(super) fn take_has_filled(&mut self) -> bool {
        std::mem::take(&mut self.has_filled)
    }

    /// Payload missing in all packets.
    fn missing(&self) -> u64 {
        self.shorts.last().map_or(0, |&(_, missing)| missing)
    }

    /// The application writes without end.
    pub(super) fn write_without_end(&mut self) {
        self.is_ready = true;
        self.written = u32::MAX;
    }

    /// The application pauses: it has written packets up to `end`.
    pub(super) fn pause(&mut self, end: u32) {
        self.is_ready = false;
        self.written = end;
    }

    /// The application closes behind what it has written last.
    pub(super) fn close(&mut self) {
        self.last_payload = self.written_payload(self.written - 1);
        self.is_closed = true;
    }

    /// Whether the application has closed and everything is sent: nothing can be taken back.
    pub(super) fn is_all_sent(&self, next: u32) -> bool {
        self.is_closed && next == self.written
    }

    /// The application stops and closes: packets from `end` on are not sent. The FIN goes with the last
    /// packet, or alone if that is sent already.
    pub(super) fn stop(&mut self, end: u32, next: u32) {
        let had_all = self.is_closed.then(|| self.end());
        self.is_ready = false;
        self.written = end;
        if had_all != Some(end) {
            self.last_payload = self.written_payload(end.saturating_sub(1));
        }
        self.is_closed = true;
        self.lone_fin = None;
        if end == next {
            self.append_fin();
        }
    }

    /// Appends a FIN without data (tcp_send_fin()).
    pub(super) fn append_fin(&mut self) {
        self.lone_fin = Some(self.written);
        self.written += 1;
    }

    /// Whether the application closes only after packets up to `end` have been sent.
    pub(super) fn closes_by(&self, end: u32) -> bool {
        self.is_closed && self.lone_fin.is_none() && self.written <= end
    }

    /// One past the last packet, a FIN without data included.
    pub(super) fn written(&self) -> u32 {
        self.written
    }

    /// One past the last packet with data.
    #[inline]
    pub(super) fn end(&self) -> u32 {
        self.lone_fin.unwrap_or(self.written)
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The number of the FIN if it is sent without data.
    #[inline]
    pub(super) fn lone_fin(&self) -> Option<u32> {
        self.lone_fin
    }

    /// The application has closed and packet `una` is the first that is not acknowledged: whether all data
    /// were.
    #[inline]
    pub(super) fn is_acked(&self, una: u32) -> bool {
        self.is_closed && una >= self.end()
    }

    /// Whether a packet carries less than a full payload.
    #[inline]
    pub(super) fn is_short(&self, number: u32) -> bool {
        let may_be = self.is_closed || !self.shorts.is_empty();
        may_be && self.payload(number, self.end()) < self.mss_bytes
    }

    /// Whether writes have left packets short.
    #[inline]
    pub(super) fn has_short(&self) -> bool {
        !self.shorts.is_empty()
    }

    /// How many packets end before `bytes` or there.
    pub(super) fn packets_before(&self, bytes: u64) -> u32 {
        let mss = u64::from(self.mss_bytes);
        // Short packets only make it more.
        let mut packets = (bytes / mss).min(u64::from(u32::MAX - 1)) as u32;
        for &(short, missing) in &self.shorts {
            if short < packets || self.bytes_before(short + 1) <= bytes {
                packets = ((bytes + missing) / mss).min(u64::from(u32::MAX - 1)) as u32;
            }
        }
        packets
    }

    /// Payload in packets before `number`, each full unless a write left it short.
    pub(super) fn bytes_before(&self, number: u32) -> u64 {
        let count = self.shorts.partition_point(|&(short, _)| short < number);
        let missing = count.checked_sub(1).map_or(0, |at| self.shorts[at].1);
        u64::from(number) * u64::from(self.mss_bytes) - missing
    }

    /// How many full packets hold what those from `first` to `end` hold, rounded up.
    #[inline]
    pub(super) fn full_packets(&self, first: u32, end: u32) -> u32 {
        if self.shorts.is_empty() {
            return end.saturating_sub(first);
        }
        let bytes = self
            .bytes_before(end)
            .saturating_sub(self.bytes_before(first));
        bytes.div_ceil(u64::from(self.mss_bytes)) as u32
    }

    /// Payload of the packets before `number`, the short last packet included.
    pub(super) fn data_bytes(&self, number: u32) -> u64 {
        let end = self.end();
        match number.min(end) {
            0 => 0,
            last if self.is_closed && last == end => {
                self.bytes_before(last - 1) + u64::from(self.last_payload)
            }
            before => self.bytes_before(before),
        }
    }

    /// Bytes of the sequence space before packet `number`; the FIN counts as one.
    pub(super) fn sequence_bytes(&self, number: u32) -> u64 {
        let end = self.end();
        if !self.is_closed || number < end {
            return self.bytes_before(number);
        }
        let beyond = match self.lone_fin {
            Some(_) => number - end,
            None => 1,
        };
        self.data_bytes(end) + u64::from(beyond)
    }

    /// Payload of a packet: the MSS, or less if a write left it short.
    fn written_payload(&self, number: u32) -> u32 {
        if self.shorts.is_empty() {
            return self.mss_bytes;
        }
        (self.bytes_before(number + 1) - self.bytes_before(number)) as u32
    }

    /// Payload of a packet; data end at `end`.
    fn payload(&self, number: u32, end: u32) -> u32 {
        match number + 1 {
            _ if self.lone_fin == Some(number) => 0,
            next if self.is_closed && next == end => self.last_payload,
            _ => self.written_payload(number),
        }
    }

    /// Whether all packets before `end` have a full payload and nothing that the others have not.
    #[inline]
    pub(super) fn are_alike(&self, end: u32) -> bool {
        self.shorts.is_empty() && end < self.end()
    }

    /// How many of these packets carry no data.
    #[inline]
    pub(super) fn lone_fins(&self, numbers: &Range<u32>) -> u32 {
        u32::from(self.lone_fin.is_some_and(|fin| numbers.contains(&fin)))
    }

    /// Appends packets one by one, as they may be short or carry a FIN; returns their payload. A FIN without
    /// data is ECN-capable if `fin_is_ect`.
    #[inline(never)] // most packets are alike
    pub(super) fn packetize(
        &self,
        numbers: Range<u32>,
        common: Data,
        fin_is_ect: bool,
        out: &mut Vec<Burst>,
    ) -> u64 {
        let end = self.end();
        let mut payload = 0;
        for number in numbers {
            let data = Data {
                number,
                ect: common.ect && (self.lone_fin != Some(number) || fin_is_ect),
                payload_bytes: self.payload(number, end),
                fin: self.is_closed && number + 1 == self.written,
                ..common
            };
            payload += u64::from(data.payload_bytes);
            out.push(Burst { data, count: 1 });
        }
        payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender::testing::config;

    const MSS: u64 = 1448;

    fn of(amount_bytes: Option<u64>) -> Stream {
        Stream::new(&SenderConfig {
            amount_bytes,
            written_by_application: amount_bytes.is_none(),
            ..config()
        })
    }

    fn packets(stream: &Stream, numbers: Range<u32>) -> Vec<Data> {
        let mut out = Vec::new();
        stream.packetize(numbers, Data::default(), false, &mut out);
        out.into_iter().map(|burst| burst.data).collect()
    }

    #[test]
    fn an_amount_is_cut_into_full_packets_and_a_short_one_with_the_fin() {
        let stream = of(Some(2 * MSS + 10));
        let sent = packets(&stream, 0..3);
        let payloads: Vec<_> = sent.iter().map(|data| data.payload_bytes).collect();
        assert_eq!(payloads, [1448, 1448, 10]);
        assert!(sent[2].fin && !sent[1].fin);
        assert!(stream.are_alike(2) && !stream.are_alike(3));
        assert_eq!(stream.sequence_bytes(3), 2 * MSS + 10 + 1);
        assert!(stream.is_acked(3) && !stream.is_acked(2));
        assert!(stream.is_short(2) && !stream.is_short(1));
    }

    #[test]
    fn bytes_fill_a_short_packet_up_only_before_it_is_sent() {
        for (next, packets) in [(0, 2), (1, 3)] {
            let mut stream = of(None);
            stream.write_bytes(100, 0);
            stream.write_bytes(2 * MSS - 100, next);
            assert_eq!(stream.written(), packets, "sent up to {next}");
            assert_eq!(stream.bytes_before(packets), 2 * MSS);
        }
    }

    #[test]
    fn many_writes_of_any_size_add_up() {
        let mut stream = of(None);
        let (mut total, mut random) = (0, 12_345_u64);
        for step in 0..200 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let bytes = random >> 50;
            let next = if step % 3 == 0 { stream.written() } else { 0 };
            stream.write_bytes(bytes, next);
            total += bytes;
            assert_eq!(stream.bytes_before(stream.written()), total);
        }
        let payloads = packets(&stream, 0..stream.written());
        let sum: u64 = payloads
            .iter()
            .map(|data| u64::from(data.payload_bytes))
            .sum();
        assert_eq!(sum, total);
    }

    #[test]
    fn a_stream_that_stops_behind_what_was_sent_ends_with_a_fin_without_data() {
        let mut stream = of(None);
        stream.write(5);
        stream.stop(3, 3);
        assert_eq!((stream.written(), stream.end()), (4, 3));
        let fin = packets(&stream, 3..4)[0];
        assert_eq!((fin.payload_bytes, fin.fin), (0, true));
        assert_eq!(stream.lone_fins(&(0..4)), 1);
        assert_eq!(stream.sequence_bytes(4), 3 * MSS + 1);
    }

    #[test]
    fn a_stream_that_stops_before_unsent_packets_has_the_fin_on_the_last() {
        let mut stream = of(Some(10 * MSS + 1));
        stream.stop(8, 5);
        let last = packets(&stream, 7..8)[0];
        assert_eq!((last.payload_bytes, last.fin), (1448, true));
        assert!(stream.is_all_sent(8) && !stream.is_all_sent(5));
        assert_eq!(stream.data_bytes(20), 8 * MSS);
    }

    #[test]
    fn short_packets_leave_room_for_more_of_them() {
        let mut stream = of(None);
        stream.write_bytes(MSS + 100, 0); // 1448, 100
        stream.write_bytes(2 * MSS, 2); // 1448, 1448
        stream.write_bytes(10, 4); // 10
        let ends = [
            0,
            MSS,
            MSS + 100,
            2 * MSS + 100,
            3 * MSS + 100,
            3 * MSS + 110,
        ];
        for (packets, end) in ends.into_iter().enumerate() {
            assert_eq!(stream.packets_before(end), packets as u32, "{end}");
            assert_eq!(stream.bytes_before(packets as u32), end);
            if packets > 0 {
                assert_eq!(stream.packets_before(end - 1), packets as u32 - 1, "{end}");
            }
        }
    }
}
