//! Plays a program to a machine: times as packetdrill reckons them (adjust_relative_event_times() of its run.c).

use std::collections::{HashMap, VecDeque};

use super::answer::{Answer, Entry, Stop};
use super::machine::{Halt, Machine, Until};
use super::program::{Action, Anchor, Op, Program};
use super::segment::{Segment, TcpOption};

/// An expected packet that has not come by so much later does not come.
const PATIENCE_US: u64 = 5_000_000;

/// What the machine does at the events of the program.
pub fn run(program: &Program, machine: &mut dyn Machine) -> Answer {
    let mut player = Player {
        machine,
        entries: Vec::with_capacity(program.ops.len()),
        sent: VecDeque::new(),
        stamps: HashMap::new(),
        first_stamp: None,
        calling: None,
        injected_us: None,
    };
    let done = program.ops.iter().try_for_each(|op| player.play(op));
    let done = done.and_then(|()| player.await_return());
    let event = player.entries.len().saturating_sub(1);
    let stop = done.err().map(|halt| {
        let (is_unsupported, sentence) = match halt {
            Halt::Unsupported(sentence) => (true, sentence),
            Halt::Failed(sentence) => (false, sentence),
        };
        Stop {
            event,
            is_unsupported,
            sentence,
        }
    });
    Answer {
        name: program.name.clone(),
        entries: player.entries,
        stop,
    }
}

struct Player<'a> {
    machine: &'a mut dyn Machine,
    entries: Vec<Entry>,
    /// Packets that no event has asked for yet.
    sent: VecDeque<Segment>,
    /// Timestamps of the script and the machine's; the first pair.
    stamps: HashMap<u32, u32>,
    first_stamp: Option<(u32, u32)>,
    /// The entry of the call that has not returned.
    calling: Option<usize>,
    /// The time of the event before, if that was a packet of the peer.
    injected_us: Option<u64>,
}

impl Player<'_> {
    fn play(&mut self, op: &Op) -> Result<(), Halt> {
        let is_inbound = matches!(op.action, Action::Inject(_));
        let base_us = match op.anchor {
            Anchor::Start => 0,
            Anchor::Before if is_inbound => self.injected_us.unwrap_or(self.machine.now_us()),
            Anchor::Before | Anchor::Any => self.machine.now_us(),
        };
        let due_us = base_us + op.at_us;
        self.injected_us = is_inbound.then_some(due_us);
        self.entries.push(Entry {
            due_us,
            ..Entry::default()
        });
        let waits = op.anchor != Anchor::Any && !matches!(op.action, Action::Expect { .. });
        if waits {
            self.advance(due_us, Until::Time)?;
        }
        match &op.action {
            Action::Call { call, blocks } => {
                self.await_return()?;
                self.stamp_entry();
                self.calling = Some(self.entries.len() - 1);
                self.machine.call(call, *blocks)?;
                self.note_return();
                if !blocks {
                    self.await_return()?;
                }
            }
            Action::Inject(segment) => {
                self.stamp_entry();
                let live = self.with_live_stamps(segment);
                self.machine.inject(&live)?;
                self.note_return();
            }
            &Action::Expect { bytes, stamp } => {
                let latest_us = op.end_us.map_or(due_us, |end_us| base_us + end_us);
                self.expect(bytes, stamp, latest_us)?;
            }
            Action::Info {} => {
                self.stamp_entry();
                let info = self.machine.info()?;
                self.entry().info = Some(info);
            }
        }
        Ok(())
    }

    fn entry(&mut self) -> &mut Entry {
        self.entries.last_mut().expect("an event is played")
    }

    fn stamp_entry(&mut self) {
        let at_us = self.machine.now_us();
        self.entry().at_us = at_us;
    }

    fn advance(&mut self, until_us: u64, until: Until) -> Result<(), Halt> {
        self.machine.advance(until_us, until)?;
        self.sent.extend(self.machine.take_sent());
        self.note_return();
        Ok(())
    }

    fn note_return(&mut self) {
        self.sent.extend(self.machine.take_sent());
        if let Some(index) = self.calling {
            if let Some(returned) = self.machine.take_returned() {
                self.entries[index].returned = Some(returned);
                self.calling = None;
            }
        }
    }

    /// Waits until the call before has returned, as packetdrill does before the next one.
    fn await_return(&mut self) -> Result<(), Halt> {
        if self.calling.is_some() {
            let latest_us = self.machine.now_us() + PATIENCE_US;
            self.advance(latest_us, Until::Return)?;
        }
        match self.calling {
            Some(_) => Err(Halt::Failed("the system call does not return".to_owned())),
            None => Ok(()),
        }
    }

    /// Takes packets of so many bytes.
    fn expect(&mut self, bytes: u32, stamp: Option<u32>, latest_us: u64) -> Result<(), Halt> {
        let deadline_us = latest_us.max(self.machine.now_us()) + PATIENCE_US;
        let (mut got_bytes, mut next) = (0, None);
        loop {
            while self.sent.is_empty() && self.machine.now_us() < deadline_us {
                self.advance(deadline_us, Until::Packet)?;
            }
            // The packets of a burst follow one another; another one ends it.
            let follows = |segment: &&Segment| next.is_none_or(|next| segment.sequence == next);
            if self.sent.front().filter(follows).is_none() {
                break;
            }
            let Some(segment) = self.sent.pop_front() else {
                break;
            };
            got_bytes += segment.bytes;
            next = Some(segment.end());
            if let (Some(script), Some((live, _))) = (stamp, segment.timestamps()) {
                self.stamps.insert(script, live);
                self.first_stamp.get_or_insert((script, live));
            }
            let is_last = got_bytes >= bytes || segment.bytes == 0;
            self.entry().sent.push(segment);
            if is_last {
                break;
            }
        }
        if next.is_none() {
            return Err(Halt::Failed("no packet came".to_owned()));
        }
        self.stamp_entry();
        Ok(())
    }

    /// The packet with the machine's timestamp in place of the script's echo.
    fn with_live_stamps(&self, segment: &Segment) -> Segment {
        let mut live = segment.clone();
        for option in &mut live.options {
            if let TcpOption::Ts(_, echo) = option {
                if *echo > 0 {
                    *echo = self.live_stamp(*echo);
                }
            }
        }
        live
    }

    fn live_stamp(&self, script: u32) -> u32 {
        let same = self.stamps.get(&script).copied();
        let shifted = self.first_stamp;
        let shifted = shifted.map(|(from, to)| script.wrapping_sub(from).wrapping_add(to));
        same.or(shifted).unwrap_or(script)
    }
}
