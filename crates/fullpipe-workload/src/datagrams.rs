//! Streams of datagrams: when each leaves, and its size. Must never know what carries them.

use fullpipe_plan::Datagrams;

use crate::on_off::OnOffClock;

/// One datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Counts from 0.
    pub seq: u64,
    /// The video frame it belongs to; without frames its own number.
    pub frame: u64,
    /// Payload.
    pub bytes: u32,
}

/// A stream of datagrams of a plan.
#[derive(Clone, Debug)]
pub struct DatagramSource {
    payload_bytes: u32,
    interval_ns: u64,
    frame_bytes: Option<u32>,
    stop_ns: u64,
    clock: Option<OnOffClock>,
    at_ns: u64,
    seq: u64,
    frame: u64,
    /// Unsent payload of the current frame.
    left_bytes: u32,
}

impl DatagramSource {
    /// The stream, with a random seed of its own.
    pub fn new(stream: &Datagrams, seed: u64) -> Self {
        let mut source = Self {
            payload_bytes: stream.payload_bytes.max(1),
            interval_ns: stream.interval_ns.max(1),
            frame_bytes: stream.frame_bytes,
            stop_ns: stream.stop_ns.unwrap_or(u64::MAX),
            clock: stream
                .on_off
                .map(|durations| OnOffClock::new(durations, stream.start_ns, seed)),
            at_ns: stream.start_ns,
            seq: 0,
            frame: 0,
            left_bytes: 0,
        };
        source.refill();
        source
    }

    /// When the next datagram leaves; `None` after the last.
    pub fn due_ns(&self) -> Option<u64> {
        (self.at_ns < self.stop_ns).then_some(self.at_ns)
    }

    /// The datagram that is due at `now_ns`, if one is.
    pub fn take(&mut self, now_ns: u64) -> Option<Datagram> {
        self.due_ns().filter(|&at_ns| at_ns <= now_ns)?;
        let bytes = self.left_bytes.min(self.payload_bytes);
        let datagram = Datagram {
            seq: self.seq,
            frame: self.frame,
            bytes,
        };
        self.seq += 1;
        self.left_bytes -= bytes;
        if self.left_bytes == 0 {
            self.frame += 1;
            self.advance();
            self.refill();
        }
        Some(datagram)
    }

    fn refill(&mut self) {
        self.left_bytes = self.frame_bytes.unwrap_or(self.payload_bytes).max(1);
    }

    /// A datagram that is due in an off period leaves at its end.
    fn advance(&mut self) {
        self.at_ns = self.at_ns.saturating_add(self.interval_ns);
        let Some(clock) = &mut self.clock else {
            return;
        };
        while clock.until_ns <= self.at_ns && clock.until_ns < u64::MAX {
            clock.switch();
            if !clock.is_on {
                self.at_ns = self.at_ns.max(clock.until_ns);
            }
        }
    }
}
