//! The kernel's side of the differential test (crates/fullpipe-differential): scripts are played to sockets of
//! this kernel. `wire.rs` knows packets, `arena.rs` the two namespaces, `socket.rs` one script's socket.

mod arena;
mod socket;
mod wire;

use fullpipe_differential::{play, Script};
use fullpipe_plan::stream::Frame;

use crate::session::kernel_fact;
use crate::sink::Sink;

use self::arena::Arena;
use self::socket::Subject;

/// Plays the scripts one after the other, and puts an answer for each.
pub(crate) fn answer(scripts: &[Script], sink: &mut dyn Sink) {
    sink.put(&kernel_fact());
    let done = answer_all(scripts, sink);
    sink.put(&done.map_or_else(Frame::Failure, |()| Frame::End));
}

fn answer_all(scripts: &[Script], sink: &mut dyn Sink) -> Result<(), String> {
    let mut arena = Arena::build()?;
    for (number, script) in scripts.iter().enumerate() {
        let mut subject = Subject::open(&mut arena, script, number)
            .map_err(|error| format!("{}: {error}", script.name))?;
        let answer = play(script, &mut subject);
        drop(subject);
        let text = serde_json::to_string(&answer).map_err(|error| error.to_string())?;
        sink.put(&Frame::Answer(text));
        sink.put(&Frame::Progress(number as u64 + 1));
        if sink.is_full() {
            return Err("the answers do not fit into the machine's memory".to_owned());
        }
    }
    Ok(())
}
