//! Processes that exit at once, started like those of a script that reads queues with tc. Creating,
//! loading and reaping them is the load.

use std::convert::Infallible;
use std::process::{Command, Stdio};

use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};

use crate::activity::{Activity, Run};
use crate::agenda::Task;
use crate::sink::Sink;

/// The period of a script that sleeps 100 ms between two reads. It is no multiple of the kernel's tick,
/// so that the processes meet every phase of the tick.
const PERIOD_NS: u64 = 110_300_000;

/// So many processes in each period.
pub(super) struct Background {
    processes: u32,
}

impl Activity for Background {
    type Socket = Infallible;
    type Task = ();

    fn open(run: &mut Run) -> Result<Self, String> {
        let processes = run.request.background_processes;
        if processes > 0 {
            run.agenda.add(PERIOD_NS, Task::Background);
        }
        Ok(Self { processes })
    }

    fn due(
        &mut self,
        (): (),
        due_ns: u64,
        run: &mut Run,
        _sink: &mut dyn Sink,
    ) -> Result<(), String> {
        // Reaps those of the last period.
        while let Ok(WaitStatus::Exited(..)) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {}
        for _ in 0..self.processes {
            // Failing to start one is no error of the run.
            let _ = Command::new("/proc/self/exe")
                .arg("version")
                .stdout(Stdio::null())
                .spawn();
        }
        run.agenda.add(due_ns + PERIOD_NS, Task::Background);
        Ok(())
    }
}
