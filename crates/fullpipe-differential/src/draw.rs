//! Random scripts: a random peer on a random path plays to the model, and what it did becomes the script. All
//! randomness comes from the seed and the script's number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fullpipe_net::derive_seed;
use fullpipe_plan::Kernel;

use crate::answer::{Flags, Packet};
use crate::compare::compare;
use crate::model::{Model, SYN_WINDOW_BYTES};
use crate::path::{Dice, Path};
use crate::peer::{PeerWindow, Receiver, Segment};
use crate::play::{play, Subject};
use crate::script::{Action, Event, Host, Peer, PeerAck, Script};

/// The purposes of the random numbers here.
const PURPOSE: u32 = 50;
const PAUSES: u32 = 51;
/// Of a thousand peers: those whose application stops reading now and then, for so long.
const PAUSING: u64 = 150;
const PAUSES_US: [u64; 5] = [30_000, 150_000, 400_000, 900_000, 2_500_000];
/// Of a thousand ACKs that open a window: those that are lost.
const OPENING_LOST: u64 = 300;
const PAYLOAD_BYTES: u64 = 1_000;
/// A script ends after so many events, or so much time.
const EVENTS_MAX: usize = 70;
const TIME_MAX_US: u64 = 20_000_000;
/// A kernel takes time for an event: the next one comes no sooner, and none comes so close to a timer that it
/// matters which of them is first.
const APART_US: u64 = 430;
const BEFORE_TIMER_US: u64 = 400;
const BEHIND_TIMER_US: u64 = 900;
/// A kernel's time for a packet must not decide in which tick its timers are set, nor the millisecond of its
/// timestamp, of which a tick has four.
const MS_US: u64 = 1_000;
const BEFORE_MS_US: u64 = 200;
/// No two packets need the same time, and none less than the handshake's: ties of an RTT and the least one
/// would be decided by the kernel's time for a packet.
const WOBBLE_US: u64 = 150;
/// What a delayed ACK waits.
const DELAYED_ACK_US: u64 = 40_000;
/// A SYN or SYN-ACK that nobody answers is sent again after a second.
const SYN_TIMEOUT_US: u64 = 1_000_000;
/// What a packet waits that is overtaken, and a duplicate.
const LATE_US: [u64; 4] = [3_000, 8_000, 20_000, 60_000];
const TWICE_US: [u64; 3] = [1_000, 5_000, 30_000];
/// The timer wheel's first level turns in this time: scripts begin anywhere in it.
const PHASE_MAX_US: u64 = 255_999;

/// Times that a script is played to a machine that takes its time, and its least events. It is drawn again so
/// many times, if it has fewer.
const LATE_PLAYS: u64 = 12;
const EVENTS_MIN: usize = 8;
const DRAWS: u64 = 20;

/// The script of that number. The error says what the model refused.
pub fn draw(seed: u64, number: u64, kernel: Kernel) -> Result<Script, String> {
    let seed_of = |attempt: u64| derive_seed(seed + (attempt << 32), PURPOSE, number as u32);
    let mut script = draw_whole(seed, number, seed_of(0), kernel)?;
    for attempt in 1..DRAWS {
        cut_where_time_decides(&mut script, kernel)?;
        if script.events.len() >= EVENTS_MIN {
            break;
        }
        script = draw_whole(seed, number, seed_of(attempt), kernel)?;
    }
    Ok(script)
}

/// Ends a script before the first event after which the model does something else if everything begins up to a
/// tenth of a millisecond late: there a kernel's own time would decide, say whether a timeout is 50 ticks or 51.
fn cut_where_time_decides(script: &mut Script, kernel: Kernel) -> Result<(), String> {
    let prompt = play(script, &mut Model::new(script, kernel)?);
    let mut end = script.events.len();
    for seed in 0..LATE_PLAYS {
        let late = play(script, &mut Model::late(script, kernel, seed)?);
        end = compare(&prompt, &late).map_or(end, |differs| end.min(differs.event));
    }
    script.events.truncate(end);
    Ok(())
}

fn draw_whole(seed: u64, number: u64, own_seed: u64, kernel: Kernel) -> Result<Script, String> {
    let mut dice = Dice::new(own_seed);
    let has_ecn = dice.happens(250);
    let script = Script {
        name: format!("{seed}-{number}"),
        phase_us: dice.up_to(PHASE_MAX_US),
        host: Host {
            cc: dice.choose(&["reno", "cubic"]).to_owned(),
            nodelay: dice.happens(700),
            ecn: has_ecn,
        },
        peer: Peer {
            payload_bytes: PAYLOAD_BYTES as u32,
            timestamps: dice.happens(500),
            ecn: has_ecn,
        },
        events: Vec::new(),
    };
    let mut path = Path::draw(&mut dice, has_ecn);
    let mut pauses = Dice::new(derive_seed(own_seed, PAUSES, 0));
    if pauses.happens(PAUSING) {
        path = path.with_pauses(&mut pauses);
    }
    Drawing::begin(script, path, [dice, pauses], kernel)?.finish()
}

/// Something that will reach the model or the peer.
#[derive(Clone, Debug)]
enum Arrival {
    Action(Action),
    Segment(Segment),
    DelayedAck,
    /// A probe of the peer's window.
    Probe,
    /// The peer's application reads again.
    Reading,
}

/// A script that is being drawn.
struct Drawing {
    script: Script,
    path: Path,
    dice: Dice,
    /// Those of the peer's pauses.
    pauses: Dice,
    model: Model,
    receiver: Receiver,
    window: PeerWindow,
    /// Arrivals by time and order, and what they are.
    agenda: BinaryHeap<Reverse<(u64, usize)>>,
    arrivals: Vec<Arrival>,
    /// When the last packet left the bottleneck, when the last event was, and the last timer.
    free_us: u64,
    last_us: u64,
    timer_us: u64,
    /// Payload that the application writes in all, and the highest byte sent.
    volume: u64,
    highest: u64,
}

impl Drawing {
    fn begin(
        script: Script,
        path: Path,
        [dice, pauses]: [Dice; 2],
        kernel: Kernel,
    ) -> Result<Self, String> {
        // The events decide which end opens, so the model is made once they are there.
        let mut drawing = Self {
            model: Model::new(&script, kernel)?,
            script,
            window: PeerWindow::new(path.window_bytes),
            path,
            dice,
            pauses,
            receiver: Receiver::default(),
            agenda: BinaryHeap::new(),
            arrivals: Vec::new(),
            free_us: 0,
            last_us: 0,
            timer_us: 0,
            volume: 0,
            highest: 0,
        };
        let opened_us = drawing.open();
        drawing.model = Model::new(&drawing.script, kernel)?;
        let opening = std::mem::take(&mut drawing.script.events);
        for event in opening {
            drawing.perform(event)?;
        }
        drawing.write(opened_us);
        Ok(drawing)
    }

    /// Draws the handshake; returns when it is over.
    fn open(&mut self) -> u64 {
        let (rtt_us, window) = (self.path.rtt_us, self.path.window_bytes);
        // Without timestamps the RTT of a repeated SYN is not known; the model always has them.
        let is_repeated = self.dice.happens(150) && self.script.peer.timestamps;
        let echoes_first = self.dice.happens(300);
        // The second one is sent by a timer, which is late by up to 64 ms in the second level of the wheel.
        let sent_us = if is_repeated { SYN_TIMEOUT_US } else { 0 };
        let answered_us = sent_us + rtt_us + if is_repeated { 70_000 } else { 0 };
        let echo_us = if echoes_first { 0 } else { sent_us };
        let event = |at_us, action| Event { at_us, action };
        if self.dice.happens(300) {
            // A SYN that is sent again no longer asks for ECN.
            self.script.peer.ecn &= !is_repeated;
            self.window.opened(SYN_WINDOW_BYTES);
            self.script.events = vec![
                event(0, Action::Connect {}),
                event(answered_us, Action::SynAck { echo_us }),
            ];
        } else {
            let ack = Action::Ack(PeerAck {
                window,
                echo_us,
                ..PeerAck::default()
            });
            self.script.events = vec![event(0, Action::Syn {}), event(answered_us, ack)];
        }
        answered_us
    }

    /// Draws what the application writes from `at_us` on.
    fn write(&mut self, at_us: u64) {
        let mut packets = self.dice.between(8, 60);
        let mut at_us = at_us + APART_US;
        // Bulk; chunks; bursts with long pauses; short ones that do not fill their last packet.
        let (most, pauses_us, short): (u64, &[u64], &[u64]) = self.dice.choose(&[
            (60, &[0], &[0]),
            (60, &[0], &[0]),
            (12, &[5_000, 20_000, 100_000, 300_000], &[0]),
            (25, &[500_000, 1_000_000, 3_000_000], &[0]),
            (8, &[5_000, 20_000, 100_000, 400_000], &[0, 0, 300, 999]),
        ]);
        let least = if most == 60 { packets } else { 1 };
        while packets > 0 {
            let count = self.dice.between(least.min(packets), most.min(packets));
            let bytes = count * PAYLOAD_BYTES - self.dice.choose(short);
            self.volume += bytes;
            self.schedule(at_us, Arrival::Action(Action::Write { bytes }));
            packets -= count;
            at_us += self.dice.choose(pauses_us);
        }
    }

    fn schedule(&mut self, at_us: u64, arrival: Arrival) {
        self.agenda.push(Reverse((at_us, self.arrivals.len())));
        self.arrivals.push(arrival);
    }

    fn finish(mut self) -> Result<Script, String> {
        while self.script.events.len() < EVENTS_MAX {
            let next_us = self.agenda.peek().map(|Reverse((at_us, _))| *at_us);
            let timer_us = self.model.timer_us();
            let first_us = next_us.into_iter().chain(timer_us).min();
            if first_us.is_none_or(|at_us| at_us > TIME_MAX_US) {
                break;
            }
            match (next_us, timer_us) {
                (next_us, Some(timer_us)) if next_us.is_none_or(|at_us| timer_us <= at_us) => {
                    self.expire(timer_us)?;
                }
                _ => self.handle_next()?,
            }
        }
        Ok(self.script)
    }

    /// A timer of the model expires; what it caused is looked at soon after.
    fn expire(&mut self, at_us: u64) -> Result<(), String> {
        self.timer_us = at_us;
        self.model.advance(at_us)?;
        if self.dice.happens(300) {
            self.schedule(at_us + BEHIND_TIMER_US, Arrival::Action(Action::Look {}));
        }
        self.forward();
        Ok(())
    }

    fn handle_next(&mut self) -> Result<(), String> {
        let Some(Reverse((at_us, number))) = self.agenda.pop() else {
            return Ok(());
        };
        match self.arrivals[number].clone() {
            Arrival::Segment(segment) => self.receive(at_us, &segment),
            Arrival::DelayedAck => {
                if self.receiver.owes_ack() {
                    self.acknowledge(at_us);
                }
            }
            Arrival::Probe => self.acknowledge(at_us),
            Arrival::Reading => {
                if !self.pauses.happens(OPENING_LOST) {
                    self.acknowledge(at_us);
                }
            }
            Arrival::Action(action) => {
                let free_us = self.free_time(at_us);
                if free_us > at_us {
                    self.schedule(free_us, Arrival::Action(action));
                } else {
                    self.perform(Event { at_us, action })?;
                }
            }
        }
        Ok(())
    }

    /// The first time from `at_us` on that is apart from the last event and from timers.
    fn free_time(&self, at_us: u64) -> u64 {
        let free_us = at_us.max(self.last_us + APART_US);
        let is_close = |timer_us: u64| {
            free_us + BEFORE_TIMER_US > timer_us && free_us < timer_us + BEHIND_TIMER_US
        };
        let timers = [Some(self.timer_us), self.model.timer_us()];
        let close = timers
            .into_iter()
            .flatten()
            .filter(|&at_us| is_close(at_us));
        let free_us = close
            .max()
            .map_or(free_us, |timer_us| timer_us + BEHIND_TIMER_US);
        let into_ms_us = (self.script.phase_us + free_us) % MS_US;
        match into_ms_us + BEFORE_MS_US > MS_US {
            true => free_us + BEFORE_MS_US,
            false => free_us,
        }
    }

    fn perform(&mut self, event: Event) -> Result<(), String> {
        self.model.advance(event.at_us)?;
        self.model.act(&event.action)?;
        self.last_us = event.at_us;
        self.script.events.push(event);
        self.forward();
        Ok(())
    }

    /// What the model has sent goes over the path.
    fn forward(&mut self) {
        for packet in self.model.take_sent() {
            if packet.bytes > 0 {
                self.forward_packet(&packet);
            } else if self.path.pauses > 0 && packet.flags == Flags::default() {
                let at_us = packet.at_us + self.path.rtt_us / 2;
                self.schedule(at_us, Arrival::Probe);
            }
        }
    }

    fn forward_packet(&mut self, packet: &Packet) {
        let end = packet.start + u64::from(packet.bytes);
        let is_new = end > self.highest;
        self.highest = self.highest.max(end);
        // A second loss is rarer, so that scripts come to an end.
        let lost = if is_new {
            self.path.lost
        } else {
            self.path.lost / 2
        };
        let is_tail = self.path.loses_tail && is_new && end + 3 * PAYLOAD_BYTES > self.volume;
        if self.dice.happens(lost) || is_tail {
            return;
        }
        let segment = Segment {
            start: packet.start,
            end,
            sent_us: packet.at_us,
            is_marked: packet.ecn > 0 && self.dice.happens(self.path.marked),
            has_cwr: packet.flags.has(Flags::CWR),
        };
        let jitter_us = self.dice.up_to(self.path.jitter_us) + self.wobble_us();
        let there_us = packet.at_us + self.path.rtt_us / 2 + jitter_us;
        let at_us = there_us.max(self.free_us + self.path.gap_us);
        if self.dice.happens(self.path.late) {
            let late_us = self.dice.choose(&LATE_US);
            self.schedule(at_us + late_us, Arrival::Segment(segment));
        } else {
            self.free_us = at_us;
            self.schedule(at_us, Arrival::Segment(segment));
        }
        if self.dice.happens(self.path.twice) {
            let behind_us = self.dice.choose(&TWICE_US);
            self.schedule(at_us + behind_us, Arrival::Segment(segment));
        }
    }

    fn receive(&mut self, at_us: u64, segment: &Segment) {
        if self.receiver.take(segment) || !self.path.delays_acks {
            self.acknowledge(at_us);
        } else {
            self.schedule(at_us + DELAYED_ACK_US, Arrival::DelayedAck);
        }
    }

    /// The peer sends an ACK, which may be lost.
    fn acknowledge(&mut self, at_us: u64) {
        let window = self.window.offer(self.receiver.next(), at_us);
        let ack = self.receiver.acknowledge(window);
        self.pause(at_us);
        if !self.dice.happens(self.path.acks_lost) {
            let back_us = self.path.rtt_us / 2 + self.wobble_us();
            self.schedule(at_us + back_us, Arrival::Action(Action::Ack(ack)));
        }
    }

    /// The peer's application may stop reading.
    fn pause(&mut self, at_us: u64) {
        if !self.window.is_paused(at_us) && self.pauses.happens(self.path.pauses) {
            let reads_us = at_us + self.pauses.choose(&PAUSES_US);
            self.window.pause(reads_us);
            self.schedule(reads_us, Arrival::Reading);
        }
    }

    fn wobble_us(&mut self) -> u64 {
        self.dice.between(WOBBLE_US / 3, WOBBLE_US)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_and_a_number_give_the_same_script_and_others_another() {
        let drawn = |seed, number| draw(seed, number, Kernel::default()).expect("a script");
        assert_eq!(drawn(1, 7), drawn(1, 7));
        assert_ne!(drawn(1, 7).events, drawn(1, 8).events);
        assert_ne!(drawn(1, 7).events, drawn(2, 7).events);
    }

    #[test]
    fn a_script_ends_before_a_kernels_own_time_would_decide() {
        let kernel = Kernel::default();
        let mut shortened = 0;
        for number in 0..40 {
            let mut script = draw_whole(3, number, number, kernel).expect("a script");
            let before = script.events.len();
            cut_where_time_decides(&mut script, kernel).expect("played");
            shortened += usize::from(script.events.len() < before);
            let prompt = play(&script, &mut Model::new(&script, kernel).expect("a model"));
            for seed in 0..LATE_PLAYS {
                let mut late = Model::late(&script, kernel, seed).expect("a model");
                assert_eq!(
                    compare(&prompt, &play(&script, &mut late)),
                    None,
                    "{number}"
                );
            }
        }
        assert!((1..20).contains(&shortened), "{shortened}");
    }

    #[test]
    fn events_keep_apart_and_packets_that_nobody_sent_are_not_acknowledged() {
        for number in 0..40 {
            let script = draw(3, number, Kernel::default()).expect("a script");
            let mut written = 0;
            for pair in script.events.windows(2) {
                assert!(pair[1].at_us >= pair[0].at_us + APART_US, "{}", script.name);
            }
            for event in &script.events {
                match &event.action {
                    Action::Write { bytes } => written += bytes,
                    Action::Ack(ack) => assert!(ack.next <= written, "{}", script.name),
                    _ => {}
                }
            }
        }
    }
}
