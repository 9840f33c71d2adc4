//! The application of a flow that is not always ready: when it writes, and how much. Must never know
//! what carries the bytes.

use fullpipe_plan::Pattern;

use crate::on_off::OnOffClock;

/// What the application does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// It writes this many bytes.
    Bytes(u64),
    /// From now on it writes as much as TCP takes.
    Unlimited,
    /// From now on it writes nothing.
    Nothing,
}

/// The application of a flow with a [`Pattern`].
#[derive(Clone, Debug)]
pub struct Writer(State);

#[derive(Clone, Debug)]
enum State {
    OnOff(OnOffClock),
    Paced {
        write_bytes: u64,
        interval_ns: u64,
        next_ns: u64,
    },
}

impl Writer {
    /// An application that starts at `start_ns`, with a random seed of its own.
    pub fn new(pattern: Pattern, start_ns: u64, seed: u64) -> Self {
        Self(match pattern {
            Pattern::OnOff(durations) => State::OnOff(OnOffClock::new(durations, start_ns, seed)),
            Pattern::Paced {
                write_bytes,
                interval_ns,
            } => State::Paced {
                write_bytes,
                interval_ns: interval_ns.max(1),
                next_ns: start_ns,
            },
        })
    }

    /// What the application does now, and when to call again.
    pub fn step(&mut self) -> (Writing, u64) {
        match &mut self.0 {
            State::OnOff(clock) => {
                let writing = if clock.is_on {
                    Writing::Unlimited
                } else {
                    Writing::Nothing
                };
                let until_ns = clock.until_ns;
                clock.switch();
                (writing, until_ns)
            }
            State::Paced {
                write_bytes,
                interval_ns,
                next_ns,
            } => {
                *next_ns = next_ns.saturating_add(*interval_ns);
                (Writing::Bytes(*write_bytes), *next_ns)
            }
        }
    }
}
