//! The path of namespaces: its changes, its queues, and the delay lines that must not drop.

use std::convert::Infallible;

use fullpipe_plan::stream::Frame;

use crate::activity::{Activity, Run};
use crate::agenda::Task;
use crate::sample::{counters, QueueMeter};
use crate::sink::Sink;

/// The path that this machine built; a path to another host has none of it.
pub(super) struct Path {
    queues: QueueMeter,
}

impl Activity for Path {
    type Socket = Infallible;
    /// The index of a change.
    type Task = usize;

    fn open(run: &mut Run) -> Result<Self, String> {
        let queues = QueueMeter::new(&run.topology, run.plan().access.mtu_bytes)?;
        schedule(0, run);
        Ok(Self { queues })
    }

    fn due(
        &mut self,
        index: usize,
        _due_ns: u64,
        run: &mut Run,
        _sink: &mut dyn Sink,
    ) -> Result<(), String> {
        run.topology.changes[index].apply(&mut run.topology.nodes)?;
        schedule(index + 1, run);
        Ok(())
    }

    fn rows(&mut self, t_ns: u64, run: &mut Run, sink: &mut dyn Sink) -> Result<(), String> {
        self.queues
            .rows(&mut run.topology.nodes, t_ns / 1000, |row| {
                sink.put(&Frame::Queue(row));
            })
    }

    fn end(&mut self, _t_ns: u64, run: &mut Run, _sink: &mut dyn Sink) -> Result<(), String> {
        for place in &run.topology.delays {
            let dropped = counters(&mut run.topology.nodes, *place)?.dropped_packets;
            if dropped > 0 {
                run.health.add_problem(format!(
                    "a delay line (netem) was full and dropped {dropped} packets"
                ));
            }
        }
        Ok(())
    }
}

/// Puts a change on the agenda, if there are so many.
fn schedule(index: usize, run: &mut Run) {
    if let Some(change) = run.topology.changes.get(index) {
        run.agenda.add(change.at_ns, Task::Change(index));
    }
}
