//! The activities of a run, which are one activity together: a new one has its file, its names in
//! token.rs and agenda.rs, and its lines here. This module must not know what they do.

mod background;
mod capture;
mod flow_pool;
mod flows;
mod host_load;
mod pages;
mod path;
mod probes;
mod streams;

use nix::sys::epoll::EpollFlags;

use crate::activity::{Activity, Run};
use crate::agenda::Task;
use crate::sink::Sink;
use crate::token::Token;

use background::Background;
use capture::Capture;
use flow_pool::FlowPool;
use flows::Flows;
use host_load::HostLoad;
use pages::Pages;
use path::Path;
use probes::Probes;
use streams::Streams;

/// All activities, in the order in which they open, sample and end.
pub(crate) struct Activities {
    flows: Flows,
    pool: FlowPool,
    path: Path,
    pages: Pages,
    streams: Streams,
    probes: Probes,
    host: HostLoad,
    background: Background,
    capture: Capture,
}

impl Activity for Activities {
    type Socket = Token;
    type Task = Task;

    fn open(run: &mut Run) -> Result<Self, String> {
        Ok(Self {
            flows: Flows::open(run)?,
            pool: FlowPool::open(run)?,
            path: Path::open(run)?,
            pages: Pages::open(run)?,
            streams: Streams::open(run)?,
            probes: Probes::open(run)?,
            host: HostLoad::open(run)?,
            background: Background::open(run)?,
            capture: Capture::open(run)?,
        })
    }

    fn handle(&mut self, token: Token, flags: EpollFlags, run: &mut Run, sink: &mut dyn Sink) {
        match token {
            Token::Flow(socket) => self.flows.handle(socket, flags, run, sink),
            Token::Pool(index, role) => self.pool.handle((index, role), flags, run, sink),
            Token::Page(index, socket) => self.pages.handle((index, socket), flags, run, sink),
            Token::Stream(index) => self.streams.handle(index, flags, run, sink),
            Token::Probe(index, socket) => self.probes.handle((index, socket), flags, run, sink),
            // The session's and the poller's own.
            Token::End | Token::Alarm => {}
        }
    }

    fn due(
        &mut self,
        task: Task,
        due_ns: u64,
        run: &mut Run,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        match task {
            Task::Flow(task) => self.flows.due(task, due_ns, run, sink),
            Task::Pool(task) => self.pool.due(task, due_ns, run, sink),
            Task::Change(index) => self.path.due(index, due_ns, run, sink),
            Task::Page(index) => self.pages.due(index, due_ns, run, sink),
            Task::Stream(index) => self.streams.due(index, due_ns, run, sink),
            Task::Probe(index) => self.probes.due(index, due_ns, run, sink),
            Task::Host => self.host.due((), due_ns, run, sink),
            Task::Capture => self.capture.due((), due_ns, run, sink),
            Task::Background => self.background.due((), due_ns, run, sink),
            // The session's own.
            Task::Sample | Task::Cpu | Task::Progress | Task::End => Ok(()),
        }
    }

    fn rows(&mut self, t_ns: u64, run: &mut Run, sink: &mut dyn Sink) -> Result<(), String> {
        self.flows.rows(t_ns, run, sink)?;
        self.pool.rows(t_ns, run, sink)?;
        self.path.rows(t_ns, run, sink)?;
        self.pages.rows(t_ns, run, sink)?;
        self.streams.rows(t_ns, run, sink)?;
        self.probes.rows(t_ns, run, sink)
    }

    fn end(&mut self, t_ns: u64, run: &mut Run, sink: &mut dyn Sink) -> Result<(), String> {
        self.flows.end(t_ns, run, sink)?;
        self.pool.end(t_ns, run, sink)?;
        self.path.end(t_ns, run, sink)?;
        self.pages.end(t_ns, run, sink)?;
        self.streams.end(t_ns, run, sink)?;
        self.probes.end(t_ns, run, sink)?;
        self.host.end(t_ns, run, sink)?;
        self.capture.end(t_ns, run, sink)
    }
}
