//! The flows of a plan: each connects and stops at its times, is measured, and is summed up.

mod application;
mod flow;
mod pace;

use fullpipe_plan::stream::Frame;
use fullpipe_plan::EcnKind;
use nix::sys::epoll::EpollFlags;

use crate::activity::{Activity, Run};
use crate::agenda::FlowTask;
use crate::sample::{socket_text, EcnMode, MAX_HOSTS};
use crate::sink::Sink;
use crate::token::{FlowSocket, Token};

use flow::PlannedFlow;

/// The flows of the plan. Between two hosts each end measures those that it sends.
pub(super) struct Flows(Vec<PlannedFlow>);

impl Activity for Flows {
    type Socket = FlowSocket;
    type Task = FlowTask;

    fn open(run: &mut Run) -> Result<Self, String> {
        let mut flows = Vec::with_capacity(run.plan().flows.len());
        for index in 0..run.plan().flows.len() {
            flows.push(PlannedFlow::open(index, run)?);
        }
        if let Some(peer_link) = &run.peer_link {
            let token = Token::Flow(FlowSocket::Arrivals);
            run.poller
                .watch(peer_link.arrivals.ready(), EpollFlags::EPOLLIN, token)
                .map_err(|error| format!("arrivals: {error}"))?;
        }
        Ok(Self(flows))
    }

    fn handle(
        &mut self,
        socket: FlowSocket,
        flags: EpollFlags,
        run: &mut Run,
        sink: &mut dyn Sink,
    ) {
        match socket {
            FlowSocket::Arrivals => self.adopt(run, sink),
            FlowSocket::Connection(index, role) => self.0[index].handle(role, flags, run, sink),
        }
    }

    fn due(
        &mut self,
        task: FlowTask,
        due_ns: u64,
        run: &mut Run,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        match task {
            FlowTask::Start(index) => self.0[index].start(run, sink),
            FlowTask::Stop(index) => self.0[index].stop(run),
            FlowTask::Write(index) => self.0[index].write(due_ns, run),
        }
        Ok(())
    }

    fn rows(&mut self, t_ns: u64, run: &mut Run, sink: &mut dyn Sink) -> Result<(), String> {
        let measured = self.0.iter_mut().filter(|flow| flow.is_measured);
        for flow in measured {
            flow.sample(t_ns / 1000, run, sink)?;
        }
        Ok(())
    }

    fn end(&mut self, t_ns: u64, run: &mut Run, sink: &mut dyn Sink) -> Result<(), String> {
        let measured = self.0.iter_mut().filter(|flow| flow.is_measured);
        for flow in measured {
            flow.total(t_ns / 1000, run, sink);
        }
        self.put_sockets(run, sink);
        self.put_negotiated(run, sink);
        Ok(())
    }
}

impl Flows {
    /// Hands connections that have arrived to their flows.
    fn adopt(&mut self, run: &mut Run, sink: &mut dyn Sink) {
        let peer_link = run.peer_link.as_ref();
        let arrived = peer_link.map(|peer_link| peer_link.arrivals.take());
        for (index, socket) in arrived.unwrap_or_default() {
            // The other end may name a flow that does not exist.
            if let Some(flow) = self.0.get_mut(index) {
                flow.adopt(socket, run, sink);
            }
        }
    }

    /// The sending sockets at their last look, as `ss -i` shows them: a line with the flow, and a line of
    /// facts.
    fn put_sockets(&self, run: &Run, sink: &mut dyn Sink) {
        let measured = self.0.iter().zip(&run.plan().flows);
        let text: String = measured
            .filter(|(flow, _)| flow.is_measured)
            .take(MAX_HOSTS)
            .map(|(flow, planned)| {
                let cc = &planned.cc.name;
                let line = socket_text(flow.sender(), cc.strip_prefix("kernel:").unwrap_or(cc));
                format!("{}\n\t {line}\n", planned.name)
            })
            .collect();
        if !text.is_empty() {
            sink.put(&Frame::Fact("ss -i".into(), text));
        }
    }

    /// Reports which flows negotiated accurate ECN. A flow that requested it and lacks it is a problem,
    /// except with L4S on kernels without accurate ECN.
    fn put_negotiated(&self, run: &mut Run, sink: &mut dyn Sink) {
        let mut lines = Vec::new();
        for (flow, planned) in self.0.iter().zip(&run.plan().flows) {
            let is_asked = planned.ecn && planned.ecn_kind != EcnKind::Classic && flow.is_measured;
            let (modes, marks) = flow.negotiated();
            let told: Vec<EcnMode> = modes.into_iter().flatten().collect();
            // A flow that never connected negotiated nothing.
            if !is_asked || told.is_empty() {
                continue;
            }
            let may_do_without = planned.ecn_kind == EcnKind::L4s;
            if told.iter().all(|mode| *mode == EcnMode::Accurate) {
                lines.push(format!("{} {marks}", planned.name));
            } else if !(may_do_without && told.iter().all(|mode| *mode == EcnMode::None)) {
                let [sender, receiver] = modes.map(|mode| mode.map_or("unknown", EcnMode::words));
                run.health.add_problem(format!(
                    "flow {}: accurate ECN was requested, and its ends have: sender {sender}, \
                     receiver {receiver}",
                    planned.name
                ));
            }
        }
        if !lines.is_empty() {
            // Each line has a flow and the marked packets that its receiver counted.
            sink.put(&Frame::Fact("accurate_ecn".into(), lines.join("\n")));
        }
    }
}
