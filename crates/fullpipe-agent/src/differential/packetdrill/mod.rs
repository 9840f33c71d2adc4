//! Programs of packetdrill's language on this kernel's sockets. `machine.rs` lets time pass and moves packets,
//! `calls.rs` makes system calls, `wire.rs` knows packets as bytes, `info.rs` the fields of tcp_info.

mod calls;
mod info;
mod machine;
mod wire;

use fullpipe_differential::packetdrill::{run, Answer, Program};

use self::machine::Machine;
use super::arena::Arena;

/// Limits of buffers as on a host with some gigabytes of memory; kernels choose them by the machine's.
const BUFFERS: [(&str, &str); 2] = [
    ("tcp_rmem", "4096 131072 6291456"),
    ("tcp_wmem", "4096 16384 4194304"),
];

/// The kernel's answer. Each program has a network of its own, so that its settings end with it.
pub(super) fn answer(program: &Program, number: usize) -> Result<Answer, String> {
    let mut arena = Arena::build()?;
    for (key, value) in BUFFERS {
        arena.host().set(key, value)?;
    }
    for (key, value) in program.defaults.iter().chain(&program.sysctls) {
        // A file of defaults may be of another kernel.
        let set = arena.host().set(key, value);
        if program.sysctls.iter().any(|(own, _)| own == key) {
            if let Err(sentence) = set {
                return Ok(Answer::unsupported(program, sentence));
            }
        }
    }
    let mut machine = Machine::open(&mut arena, number)?;
    Ok(run(program, &mut machine))
}
