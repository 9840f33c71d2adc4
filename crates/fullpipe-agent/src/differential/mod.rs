//! The kernel's side of the differential tests (crates/fullpipe-differential): scripts are played to sockets
//! and to queue disciplines of this kernel. `wire.rs` knows packets, `port.rs` packet sockets, `hosts.rs` the
//! two namespaces, `arena.rs` those of TCP, `alarm.rs` waiting, `socket.rs` one script's socket, `queue.rs` one
//! script's queue, `packetdrill` scripts that users bring.

mod alarm;
mod arena;
mod hosts;
mod packetdrill;
mod queue;
mod socket;
mod ticks;
mod wire;

use fullpipe_differential::packetdrill::Program;
use fullpipe_differential::{play, queue as queues, Script};
use fullpipe_plan::stream::Frame;
use serde::{Deserialize, Serialize};

use crate::session::kernel_fact;
use crate::sink::Sink;

use self::arena::Arena;
use self::socket::Subject;
use self::ticks::Ticks;

/// What is to be played; one of the lists has scripts.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Scripts {
    /// For TCP.
    tcp: Vec<Script>,
    /// For queue disciplines.
    queues: Vec<queues::Script>,
    /// For sockets, in packetdrill's language.
    packetdrill: Vec<Program>,
}

/// Plays the scripts one after the other, and puts an answer for each.
pub(crate) fn answer(scripts: &Scripts, sink: &mut dyn Sink) {
    sink.put(&kernel_fact());
    let done = answer_all(&scripts.tcp, sink)
        .and_then(|()| answer_queues(&scripts.queues, sink))
        .and_then(|()| answer_programs(&scripts.packetdrill, sink));
    sink.put(&done.map_or_else(Frame::Failure, |()| Frame::End));
}

fn answer_all(scripts: &[Script], sink: &mut dyn Sink) -> Result<(), String> {
    if scripts.is_empty() {
        return Ok(());
    }
    let mut arena = Arena::build()?;
    for (number, script) in scripts.iter().enumerate() {
        let mut subject = Subject::open(&mut arena, script, number)
            .map_err(|error| format!("{}: {error}", script.name))?;
        let answer = play(script, &mut subject);
        drop(subject);
        put(&answer, number, sink)?;
    }
    Ok(())
}

fn answer_queues(scripts: &[queues::Script], sink: &mut dyn Sink) -> Result<(), String> {
    if scripts.is_empty() {
        return Ok(());
    }
    let ticks = Ticks::read()?;
    for (number, script) in scripts.iter().enumerate() {
        let answer = queue::answer(script, &ticks);
        let answer = answer.map_err(|error| format!("{}: {error}", script.name))?;
        put(&answer, number, sink)?;
    }
    Ok(())
}

fn answer_programs(programs: &[Program], sink: &mut dyn Sink) -> Result<(), String> {
    for (number, program) in programs.iter().enumerate() {
        let answer = packetdrill::answer(program, number);
        let answer = answer.map_err(|error| format!("{}: {error}", program.name))?;
        put(&answer, number, sink)?;
    }
    Ok(())
}

fn put(answer: &impl Serialize, number: usize, sink: &mut dyn Sink) -> Result<(), String> {
    let text = serde_json::to_string(answer).map_err(|error| error.to_string())?;
    sink.put(&Frame::Answer(text));
    sink.put(&Frame::Progress(number as u64 + 1));
    match sink.is_full() {
        true => Err("the answers do not fit into the machine's memory".to_owned()),
        false => Ok(()),
    }
}
