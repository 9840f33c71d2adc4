//! The tasks of a run in the order of their times. It must never know the current time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A task. Tasks that are due at the same time run in the order of this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Task {
    /// A change of the network, by its index in the topology's list.
    Change(usize),
    /// Read every flow and queue.
    Sample,
    /// Read how busy the processors were.
    Cpu,
    /// Report the run's progress.
    Progress,
    /// Start the background processes.
    Background,
    /// Of the plan's flows.
    Flow(FlowTask),
    /// A probe sends a request.
    Probe(usize),
    /// A page's timer.
    Page(usize),
    /// A stream of datagrams sends.
    Stream(usize),
    /// Of the pool of short flows.
    Pool(PoolTask),
    /// Read the counters of processors, ports and TCP memory.
    Host,
    /// Read what was captured.
    Capture,
    /// The run is over.
    End,
}

/// A task of the plan's flows, with the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FlowTask {
    /// It connects.
    Start(usize),
    /// Its application stops.
    Stop(usize),
    /// Its application writes.
    Write(usize),
}

/// A task of the pool of short flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PoolTask {
    /// A flow of this group arrives.
    Arrive(usize),
    /// The flow with this arrival number, in this slot, writes its next chunk.
    Chunk(usize, u64),
}

/// Tasks in the order of their times.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    tasks: BinaryHeap<Reverse<(u64, Task)>>,
}

impl Agenda {
    pub(crate) fn add(&mut self, at_ns: u64, task: Task) {
        self.tasks.push(Reverse((at_ns, task)));
    }

    /// When the next task is due.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.tasks.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// Takes the next task that is due at `now_ns`, with the time at which it was.
    pub(crate) fn take(&mut self, now_ns: u64) -> Option<(u64, Task)> {
        self.next_ns().filter(|&at_ns| at_ns <= now_ns)?;
        self.tasks.pop().map(|Reverse(entry)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_come_by_time_and_the_last_sample_comes_before_the_end() {
        let mut agenda = Agenda::default();
        agenda.add(20, Task::End);
        agenda.add(20, Task::Sample);
        agenda.add(10, Task::Flow(FlowTask::Stop(3)));
        assert_eq!(agenda.take(9), None);
        assert_eq!(agenda.take(30), Some((10, Task::Flow(FlowTask::Stop(3)))));
        assert_eq!(agenda.take(30), Some((20, Task::Sample)));
        assert_eq!(agenda.take(30), Some((20, Task::End)));
        assert_eq!(agenda.take(30), None);
    }
}
