//! One flow of a plan: its connection, its application and its measurement.

use std::fmt::Display;
use std::io;
use std::os::fd::OwnedFd;

use fullpipe_plan::stream::Frame;
use fullpipe_plan::{EcnKind, EventRow, FlowDirection, FlowRow, Pacing, Plan};
use nix::sys::epoll::EpollFlags;

use super::application::Application;
use crate::activity::Run;
use crate::agenda::{FlowTask, Task};
use crate::sample::{EcnMode, TcpInfo};
use crate::sink::Sink;
use crate::tcp_flow::{Connection, ConnectionEvent, FlowMeter, Options, Place};
use crate::token::{FlowSocket, Role, Token};

/// One flow of the run.
pub(super) struct PlannedFlow {
    index: usize,
    /// Whether this end measures it: between two hosts, the end that sends.
    pub(super) is_measured: bool,
    connection: Connection,
    meter: FlowMeter,
    /// Once the connection is established, if the application is not always ready.
    application: Option<Application>,
    completion_us: Option<u64>,
}

impl PlannedFlow {
    /// Opens its sockets and puts start and stop on the agenda.
    pub(super) fn open(index: usize, run: &mut Run) -> Result<Self, String> {
        let plan = run.plan();
        let flow = &plan.flows[index];
        let options = Options::of(plan, flow);
        let congestion = &run.congestion;
        // With accurate ECN the receiver counts marks, which replaces DCTCP's echo.
        let echoes_marks = congestion.is_at_both_ends(index) && flow.ecn_kind != EcnKind::Accecn;
        let connection = match &run.peer_link {
            None => Connection::open(
                flow,
                (index, token),
                (congestion.name(index), echoes_marks),
                options,
                Place {
                    nodes: &run.topology.nodes,
                    ends: run.topology.flow_ends[index],
                },
            )?,
            Some(peer_link) => {
                Connection::with_peer(flow, (index, token), peer_link.is_near(), options)
            }
        };
        let is_paced = plan.host.pacing == Pacing::Fq || congestion.paces(index);
        let start = Task::Flow(FlowTask::Start(index));
        run.agenda.add(flow.start_ns, start);
        if let Some(stop_ns) = flow.stop_ns {
            run.agenda.add(stop_ns, Task::Flow(FlowTask::Stop(index)));
        }
        let peer_link = run.peer_link.as_ref();
        Ok(Self {
            index,
            is_measured: peer_link.is_none_or(|peer_link| peer_link.sends(flow)),
            connection,
            meter: FlowMeter::new(index as u64, is_paced),
            application: None,
            completion_us: None,
        })
    }

    /// Connects.
    pub(super) fn start(&mut self, run: &mut Run, sink: &mut dyn Sink) {
        let started = match &run.peer_link {
            None => self.connection.start(&run.poller),
            Some(peer_link) => {
                self.connection.is_started = true;
                let flow = &run.plan().flows[self.index];
                peer_link.start(self.index, flow, run.congestion.name(self.index))
            }
        };
        if self.is_measured {
            self.put_event(run.t_ns() / 1000, "start", 0, sink);
        }
        self.note(started, run);
    }

    /// Its application stops.
    pub(super) fn stop(&mut self, run: &mut Run) {
        let stopped = self.connection.stop();
        self.note(stopped, run);
    }

    /// Its application writes.
    pub(super) fn write(&mut self, due_ns: u64, run: &mut Run) {
        let Some(application) = &mut self.application else {
            return;
        };
        match application.write(due_ns, &mut self.connection, &run.payload) {
            Ok(true) => self.write_on(run),
            Ok(false) => self.application = None,
            Err(error) => self.add_problem(&error, run),
        }
    }

    /// Plans the next write of its application.
    fn write_on(&self, run: &mut Run) {
        let application = self.application.as_ref();
        let next_ns = application.and_then(|application| application.next_ns(&self.connection));
        if let Some(next_ns) = next_ns {
            let task = Task::Flow(FlowTask::Write(self.index));
            run.agenda.add(next_ns, task);
        }
    }

    /// A descriptor of its connection is ready.
    pub(super) fn handle(
        &mut self,
        role: Role,
        flags: EpollFlags,
        run: &mut Run,
        sink: &mut dyn Sink,
    ) {
        let mut is_woken = false;
        if let (true, Some(application)) =
            (flags.contains(EpollFlags::EPOLLOUT), &mut self.application)
        {
            is_woken = application.owe(&mut self.connection, || run.t_ns());
        }
        let event = self
            .connection
            .handle(role, flags, &run.poller, &run.payload);
        if let Some(event) = event {
            self.react(event, run, sink);
        }
        if is_woken {
            self.write_on(run);
        }
    }

    /// Takes a connection that was opened elsewhere.
    pub(super) fn adopt(
        &mut self,
        socket: io::Result<OwnedFd>,
        run: &mut Run,
        sink: &mut dyn Sink,
    ) {
        let name = run.congestion.name(self.index);
        let adopted = socket.and_then(|socket| {
            self.connection
                .adopt(socket, name, &run.poller, &run.payload)
        });
        match adopted {
            Ok(Some(event)) => self.react(event, run, sink),
            Ok(None) => {}
            Err(error) => self.add_problem(&error, run),
        }
    }

    fn react(&mut self, event: ConnectionEvent, run: &mut Run, sink: &mut dyn Sink) {
        let t_ns = run.t_ns();
        if let ConnectionEvent::Broken(error) = &event {
            self.add_problem(error, run);
        }
        if !self.is_measured {
            return;
        }
        if matches!(event, ConnectionEvent::Established) {
            self.application = Application::new(run.plan(), self.index, t_ns);
            if self.application.is_some() {
                let task = Task::Flow(FlowTask::Write(self.index));
                run.agenda.add(t_ns, task);
            }
        }
        let t_us = t_ns / 1000;
        self.look(t_us, run, sink);
        match event {
            ConnectionEvent::Established => {
                let cwnd = u64::from(self.meter.sender().snd_cwnd);
                self.put_event(t_us, "established", cwnd, sink);
            }
            ConnectionEvent::Finished => {
                self.completion_us = Some(t_us);
                let acked_bytes = self.meter.acked_bytes(&self.connection);
                self.put_event(t_us, "finish", acked_bytes, sink);
            }
            ConnectionEvent::Broken(_) | ConnectionEvent::Drained => {}
        }
    }

    /// Reads its counters and emits events for what changed.
    fn look(&mut self, t_us: u64, run: &mut Run, sink: &mut dyn Sink) {
        let looked = self
            .meter
            .look(&self.connection, t_us, |row| sink.put(&Frame::Event(row)));
        self.note(looked, run);
    }

    /// Rows of a sample: its congestion control's and its own.
    pub(super) fn sample(
        &mut self,
        t_us: u64,
        run: &mut Run,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        if !self.connection.is_started {
            return Ok(());
        }
        self.look(t_us, run, sink);
        if let (Some(socket), true) = (self.connection.sender(), self.connection.is_established) {
            let info = self.meter.sender();
            sink.put(&run.congestion.ask(self.index, socket, info, t_us)?);
        }
        let row = self.meter.sample(&self.connection, t_us);
        sink.put(&Frame::FlowSample(row));
        Ok(())
    }

    /// The row of its totals.
    pub(super) fn total(&mut self, t_us: u64, run: &mut Run, sink: &mut dyn Sink) {
        self.look(t_us, run, sink);
        let row = self
            .meter
            .total(&self.connection, self.describe(run.plan()));
        sink.put(&Frame::Flow(row));
    }

    /// The ECN that its ends negotiated, and the marked packets that the receiver counted.
    pub(super) fn negotiated(&self) -> ([Option<EcnMode>; 2], u32) {
        (self.meter.ecn_modes(), self.meter.received_ce())
    }

    /// Its sending socket at the last look.
    pub(super) fn sender(&self) -> &TcpInfo {
        self.meter.sender()
    }

    /// The part of its row that the plan decides.
    fn describe(&self, plan: &Plan) -> FlowRow {
        let flow = &plan.flows[self.index];
        let direction = match flow.direction {
            FlowDirection::Up => "up",
            FlowDirection::Down => "down",
        };
        FlowRow {
            flow_id: self.index as u64,
            flow: flow.name.clone().into(),
            cc: flow.cc.name.clone().into(),
            direction: direction.into(),
            start_us: flow.start_ns / 1000,
            completion_us: self.completion_us,
            base_rtt_us: plan.base_rtt_ns(flow) / 1000,
            mss_bytes: u64::from(plan.access.mss_bytes()),
            ..FlowRow::default()
        }
    }

    fn put_event(&self, t_us: u64, event: &'static str, value: u64, sink: &mut dyn Sink) {
        sink.put(&Frame::Event(EventRow {
            t_us,
            flow_id: Some(self.index as u64),
            event: event.into(),
            value,
        }));
    }

    /// An error is a problem of the run.
    fn note(&self, done: io::Result<()>, run: &mut Run) {
        if let Err(error) = done {
            self.add_problem(&error, run);
        }
    }

    fn add_problem(&self, error: &dyn Display, run: &mut Run) {
        let name = &run.plan().flows[self.index].name;
        run.health.add_problem(format!("flow {name}: {error}"));
    }
}

fn token(index: usize, role: Role) -> Token {
    Token::Flow(FlowSocket::Connection(index, role))
}
