//! Applications that write by the clock: streams of datagrams, and flows whose application is not
//! always ready. Must never know what carries what they send.

use fullpipe_net::Rng;
use fullpipe_plan::{Datagrams, Pattern, Turns};

use crate::draw::exponential;

/// One datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Counts from 0.
    pub seq: u64,
    /// The frame that it is a part of; its own number where there are no frames.
    pub frame: u64,
    /// Payload.
    pub bytes: u32,
}

/// Alternating times of sending and of silence.
#[derive(Clone, Debug)]
struct Clock {
    turns: Turns,
    rng: Rng,
    is_on: bool,
    until_ns: u64,
}

impl Clock {
    fn new(turns: Turns, start_ns: u64, seed: u64) -> Self {
        let mut clock = Self {
            turns,
            rng: Rng::new(seed),
            is_on: false,
            until_ns: start_ns,
        };
        clock.turn();
        clock
    }

    fn turn(&mut self) {
        self.is_on = !self.is_on;
        let mean_ns = if self.is_on {
            self.turns.on_ns
        } else {
            self.turns.off_ns
        };
        let lasts_ns = match self.turns.is_random {
            true => (mean_ns as f64 * exponential(&mut self.rng)) as u64,
            false => mean_ns,
        };
        self.until_ns = self.until_ns.saturating_add(lasts_ns.max(1));
    }
}

/// A stream of datagrams of a plan.
#[derive(Clone, Debug)]
pub struct DatagramSource {
    payload_bytes: u32,
    interval_ns: u64,
    frame_bytes: Option<u32>,
    stop_ns: u64,
    clock: Option<Clock>,
    at_ns: u64,
    seq: u64,
    frame: u64,
    /// What is left of the frame that leaves now.
    left_bytes: u32,
}

impl DatagramSource {
    /// The stream; `seed` is its own.
    pub fn new(stream: &Datagrams, seed: u64) -> Self {
        let mut source = Self {
            payload_bytes: stream.payload_bytes.max(1),
            interval_ns: stream.interval_ns.max(1),
            frame_bytes: stream.frame_bytes,
            stop_ns: stream.stop_ns.unwrap_or(u64::MAX),
            clock: stream
                .turns
                .map(|turns| Clock::new(turns, stream.start_ns, seed)),
            at_ns: stream.start_ns,
            seq: 0,
            frame: 0,
            left_bytes: 0,
        };
        source.refill();
        source
    }

    /// When the next datagram leaves; `None`: none will.
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

    /// Silence moves what would be sent in it behind it.
    fn advance(&mut self) {
        self.at_ns = self.at_ns.saturating_add(self.interval_ns);
        let Some(clock) = &mut self.clock else {
            return;
        };
        while clock.until_ns <= self.at_ns && clock.until_ns < u64::MAX {
            clock.turn();
            if !clock.is_on {
                self.at_ns = self.at_ns.max(clock.until_ns);
            }
        }
    }
}

/// What the application of a flow does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// It writes so much more.
    Write(u64),
    /// From now on as much as TCP takes.
    Always,
    /// From now on nothing: what TCP has not sent is not sent.
    Never,
}

/// The application of a flow with a pattern.
#[derive(Clone, Debug)]
pub struct Writer {
    pattern: Pattern,
    clock: Option<Clock>,
    at_ns: u64,
}

impl Writer {
    /// An application that begins at `start_ns`; `seed` is its own.
    pub fn new(pattern: Pattern, start_ns: u64, seed: u64) -> Self {
        let clock = match pattern {
            Pattern::Turns { turns } => Some(Clock::new(turns, start_ns, seed)),
            Pattern::Paced { .. } => None,
        };
        Self {
            pattern,
            clock,
            at_ns: start_ns,
        }
    }

    /// What it does at the time for which it asked, and when it wants to be asked again.
    pub fn turn(&mut self) -> (Writing, u64) {
        match (&self.pattern, &mut self.clock) {
            (Pattern::Turns { .. }, Some(clock)) => {
                let writing = if clock.is_on {
                    Writing::Always
                } else {
                    Writing::Never
                };
                let until_ns = clock.until_ns;
                clock.turn();
                (writing, until_ns)
            }
            (
                Pattern::Paced {
                    write_bytes,
                    interval_ns,
                },
                _,
            ) => {
                self.at_ns = self.at_ns.saturating_add((*interval_ns).max(1));
                (Writing::Write(*write_bytes), self.at_ns)
            }
            (Pattern::Turns { .. }, None) => (Writing::Always, u64::MAX),
        }
    }
}
