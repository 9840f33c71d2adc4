//! The load of the measured machine, ten times a second.

use std::convert::Infallible;

use fullpipe_plan::stream::Frame;

use crate::activity::{Activity, Run};
use crate::agenda::Task;
use crate::sample::{qdisc_text, HostMeter, HOST_INTERVAL_NS, MAX_HOSTS};
use crate::sink::Sink;

/// Reads the machine's counters; the first reading is their zero.
pub(super) struct HostLoad(HostMeter);

impl Activity for HostLoad {
    type Socket = Infallible;
    type Task = ();

    fn open(run: &mut Run) -> Result<Self, String> {
        let machine = match &run.peer_link {
            None => "local",
            Some(peer_link) if peer_link.is_near() => "near",
            Some(_) => "far",
        };
        let meter = HostMeter::new(machine, run.processors, &run.topology)?;
        run.agenda.add(0, Task::Host);
        Ok(Self(meter))
    }

    fn due(
        &mut self,
        (): (),
        due_ns: u64,
        run: &mut Run,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        if due_ns == 0 {
            self.0.begin();
        } else {
            self.0.rows(run.t_ns() / 1000, |frame| sink.put(&frame));
        }
        run.agenda.add(due_ns + HOST_INTERVAL_NS, Task::Host);
        Ok(())
    }

    fn end(&mut self, _t_ns: u64, run: &mut Run, sink: &mut dyn Sink) -> Result<(), String> {
        for (host, text) in self.0.counted() {
            sink.put(&Frame::Fact(format!("nstat {host}"), text));
        }
        for node in run.topology.nodes.iter_mut().take(MAX_HOSTS) {
            let text = qdisc_text(node)?;
            if !text.is_empty() {
                sink.put(&Frame::Fact(format!("tc -s {}", node.name), text));
            }
        }
        Ok(())
    }
}
