//! The application's stream of bytes cut into packets: how many it has written, what each of them carries,
//! and the FIN. Must never know which packets are out.

use std::ops::Range;

use crate::packet::{Burst, Data};

use super::config::SenderConfig;
use super::short_packets::ShortPackets;

/// Bytes of a stream without end.
const ENDLESS: u64 = u64::MAX;
/// Most packets of a stream that ends.
const PACKETS_MAX: u64 = u32::MAX as u64 - 1;

/// What the application writes. Packets that were sent keep their bytes; what is not sent counts as if only its
/// last packet were short.
#[derive(Debug)]
pub(super) struct Stream {
    mss_bytes: u32,
    /// Bytes that the application has or will write.
    data_bytes: u64,
    /// One past the last packet with data.
    end: u32,
    shorts: ShortPackets,
    is_closed: bool,
    /// The FIN is sent without data.
    fin_is_alone: bool,
    /// The application has data to write and is not blocked.
    is_ready: bool,
}

impl Stream {
    /// The stream of an application that writes by itself, or all at the start.
    pub(super) fn new(config: &SenderConfig) -> Self {
        let (data_bytes, is_closed) = match config.amount_bytes {
            _ if config.written_by_application => (0, false),
            None => (ENDLESS, false),
            Some(bytes) => (bytes, true),
        };
        let mut stream = Self {
            mss_bytes: config.mss_bytes,
            data_bytes: 0,
            end: 0,
            shorts: ShortPackets::default(),
            is_closed,
            fin_is_alone: false,
            is_ready: data_bytes > 0,
        };
        stream.set_data(data_bytes);
        stream
    }

    fn set_data(&mut self, bytes: u64) {
        self.data_bytes = bytes;
        self.end = self.packets_in(bytes);
    }

    /// How many packets hold the first `bytes`.
    fn packets_in(&self, bytes: u64) -> u32 {
        if bytes == ENDLESS {
            return u32::MAX;
        }
        let packets = (bytes + self.shorts.missing()).div_ceil(self.mss_bytes.into());
        packets.min(PACKETS_MAX) as u32
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

    /// The application writes.
    pub(super) fn write(&mut self, bytes: u64) {
        self.set_data(self.data_bytes.saturating_add(bytes));
    }

    /// The application writes without end.
    pub(super) fn write_without_end(&mut self) {
        self.is_ready = true;
        self.set_data(ENDLESS);
    }

    /// The application pauses: it has written `bytes`.
    pub(super) fn pause(&mut self, bytes: u64) {
        self.is_ready = false;
        self.set_data(bytes);
    }

    /// The application closes behind what it has written last.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }

    /// Whether the application has closed and everything is sent: nothing can be taken back.
    pub(super) fn is_all_sent(&self, next: u32) -> bool {
        self.is_closed && next == self.written()
    }

    /// The application stops behind `bytes` and closes. The FIN goes with the last packet, or alone if that is
    /// sent already.
    pub(super) fn stop(&mut self, bytes: u64, next: u32) {
        self.is_ready = false;
        self.set_data(bytes);
        self.is_closed = true;
        self.fin_is_alone = self.end == next;
    }

    /// Appends a FIN without data (tcp_send_fin()).
    pub(super) fn append_fin(&mut self) {
        self.fin_is_alone = true;
    }

    /// Whether the application closes only after packets up to `end` have been sent.
    pub(super) fn closes_by(&self, end: u32) -> bool {
        self.is_closed && !self.fin_is_alone && self.end <= end
    }

    /// One past the last packet, a FIN without data included.
    #[inline]
    pub(super) fn written(&self) -> u32 {
        self.end + u32::from(self.fin_is_alone)
    }

    /// Bytes that the application has or will write.
    #[inline]
    pub(super) fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The number of the FIN if it is sent without data.
    #[inline]
    pub(super) fn lone_fin(&self) -> Option<u32> {
        self.fin_is_alone.then_some(self.end)
    }

    /// The application has closed and packet `una` is the first that is not acknowledged: whether all data
    /// were.
    #[inline]
    pub(super) fn is_acked(&self, una: u32) -> bool {
        self.is_closed && una >= self.end
    }

    /// `bytes` are sent for the first time, in packets from `first` on: all but the last are full. Returns how
    /// many packets they are. The first that is not acknowledged is `una`.
    #[inline]
    pub(super) fn send(&mut self, first: u32, bytes: u64, una: u32) -> u32 {
        let mss = u64::from(self.mss_bytes);
        let count = bytes.div_ceil(mss);
        let missing = count * mss - bytes;
        if missing > 0 {
            self.shorts.push(first + count as u32 - 1, missing, una);
            self.set_data(self.data_bytes);
        }
        count as u32
    }

    /// Whether any packet was sent short.
    #[inline]
    pub(super) fn has_short(&self) -> bool {
        !self.shorts.is_empty()
    }

    /// Whether a packet carries less than a full payload.
    #[inline]
    pub(super) fn is_short(&self, number: u32) -> bool {
        self.payload(number) < self.mss_bytes
    }

    /// The packet that begins at a byte or holds it.
    #[inline]
    pub(super) fn packet_of(&self, byte: u64) -> u32 {
        let missing = self.shorts.missing_by(byte, self.mss_bytes);
        ((byte + missing) / u64::from(self.mss_bytes)) as u32
    }

    /// The packet that begins at a byte of the sequence space, in which the FIN counts as one; `None`: none
    /// does.
    pub(super) fn packet_at(&self, byte: u64) -> Option<u32> {
        let number = self.packet_of(byte);
        let mut candidates = [number, number.saturating_add(1)].into_iter();
        candidates.find(|&number| self.sequence_bytes(number) == byte)
    }

    /// Payload in packets before `number`.
    #[inline]
    pub(super) fn bytes_before(&self, number: u32) -> u64 {
        let missing = self.shorts.missing_before(number, self.mss_bytes);
        (u64::from(number) * u64::from(self.mss_bytes) - missing).min(self.data_bytes)
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

    /// Bytes of the sequence space before packet `number`; the FIN counts as one.
    pub(super) fn sequence_bytes(&self, number: u32) -> u64 {
        let fins = match self.is_closed && number >= self.end {
            true if self.fin_is_alone => number - self.end,
            true => 1,
            false => 0,
        };
        self.bytes_before(number) + u64::from(fins)
    }

    /// Payload of a packet.
    #[inline]
    fn payload(&self, number: u32) -> u32 {
        (self.bytes_before(number + 1) - self.bytes_before(number)) as u32
    }

    /// Whether all these packets have a full payload and nothing that the others have not.
    #[inline]
    pub(super) fn are_alike(&self, first: u32, end: u32) -> bool {
        end < self.end && self.shorts.are_none_of(first, end)
    }

    /// How many of these packets carry no data.
    #[inline]
    pub(super) fn lone_fins(&self, numbers: &Range<u32>) -> u32 {
        u32::from(self.fin_is_alone && numbers.contains(&self.end))
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
        let mut payload = 0;
        for number in numbers {
            let data = Data {
                number,
                ect: common.ect && (self.lone_fin() != Some(number) || fin_is_ect),
                payload_bytes: self.payload(number),
                fin: self.is_closed && number + 1 == self.written(),
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
        assert!(stream.are_alike(0, 2) && !stream.are_alike(0, 3));
        assert_eq!(stream.sequence_bytes(3), 2 * MSS + 10 + 1);
        assert!(stream.is_acked(3) && !stream.is_acked(2));
        assert!(stream.is_short(2) && !stream.is_short(1));
    }

    #[test]
    fn bytes_fill_a_short_packet_up_only_before_it_is_sent() {
        for (is_sent, packets) in [(false, 2), (true, 3)] {
            let mut stream = of(None);
            stream.write(100);
            if is_sent {
                assert_eq!(stream.send(0, 100, 0), 1);
            }
            stream.write(2 * MSS - 100);
            assert_eq!(stream.written(), packets, "sent: {is_sent}");
            assert_eq!(stream.bytes_before(packets), 2 * MSS);
        }
    }

    #[test]
    fn many_writes_of_any_size_that_are_sent_in_any_parts_add_up() {
        let mut stream = of(None);
        let (mut total, mut next, mut random) = (0, 0, 12_345_u64);
        for step in 0..200 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let bytes = random >> 50;
            stream.write(bytes);
            total += bytes;
            assert_eq!(stream.bytes_before(stream.written()), total);
            if step % 3 == 0 {
                let unsent = total - stream.bytes_before(next);
                next += stream.send(next, unsent - unsent % (random % 7 + 1), next);
            }
            for number in 0..stream.written() {
                assert_eq!(stream.packet_of(stream.bytes_before(number)), number);
            }
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
        stream.write(5 * MSS);
        stream.stop(3 * MSS, 3);
        assert_eq!((stream.written(), stream.lone_fin()), (4, Some(3)));
        let fin = packets(&stream, 3..4)[0];
        assert_eq!((fin.payload_bytes, fin.fin), (0, true));
        assert_eq!(stream.lone_fins(&(0..4)), 1);
        assert_eq!(stream.sequence_bytes(4), 3 * MSS + 1);
    }

    #[test]
    fn a_stream_that_stops_before_unsent_packets_has_the_fin_on_the_last() {
        let mut stream = of(Some(10 * MSS + 1));
        stream.stop(8 * MSS, 5);
        let last = packets(&stream, 7..8)[0];
        assert_eq!((last.payload_bytes, last.fin), (1448, true));
        assert!(stream.is_all_sent(8) && !stream.is_all_sent(5));
        assert_eq!(stream.bytes_before(20), 8 * MSS);
    }

    #[test]
    fn what_follows_a_packet_that_was_sent_short_is_cut_from_there_on() {
        // A window of 2 MSS and 700 bytes, then of 5 MSS.
        let mut stream = of(Some(5 * MSS));
        assert_eq!(stream.send(0, 2 * MSS + 700, 0), 3);
        let ends = [0, MSS, 2 * MSS, 2 * MSS + 700, 3 * MSS + 700, 4 * MSS + 700];
        for (packets, end) in ends.into_iter().enumerate() {
            assert_eq!(stream.bytes_before(packets as u32), end);
            assert_eq!(stream.packet_of(end), packets as u32);
            if packets > 0 {
                assert_eq!(stream.packet_of(end - 1), packets as u32 - 1, "{end}");
            }
        }
        assert_eq!(stream.written(), 6);
        assert_eq!(stream.bytes_before(6), 5 * MSS);
        assert!(stream.are_alike(0, 2) && stream.are_alike(3, 5));
        assert!(!stream.are_alike(1, 3) && !stream.are_alike(2, 4));
        assert!(stream.is_short(2) && !stream.is_short(3) && stream.is_short(5));
    }
}
