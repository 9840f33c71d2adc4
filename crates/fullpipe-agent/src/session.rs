//! One run on this kernel, or this end's part of a run between two hosts: open, wait, work, sum up. This
//! module has the order; the activities know what is done.

use std::io;
use std::os::fd::AsFd;

use fullpipe_plan::stream::Frame;
use nix::sys::epoll::EpollFlags;
use nix::sys::signalfd::SignalFd;

use crate::activities::Activities;
use crate::activity::{Activity, Run};
use crate::agenda::{Agenda, Task};
use crate::check::check;
use crate::clock::{now_ns, Poller};
use crate::congestion::Congestion;
use crate::health::Health;
use crate::kernel_cc::{kernel_release, watch_sockets, Loaded};
use crate::net::{self, Home, Topology};
use crate::peer::PeerLink;
use crate::request::Request;
use crate::sample::Processors;
use crate::sink::Sink;
use crate::socket::Payload;
use crate::token::Token;

/// The run begins at a multiple of this, so that its phase against the kernel's tick is always the
/// same.
const START_GRID_NS: u64 = 100_000_000;
const PROGRESS_NS: u64 = 100_000_000;

/// Does a run in namespaces of this kernel. `ready` has the congestion controls that are loaded already.
pub(crate) fn run_here(
    request: &Request,
    processors: Processors,
    ready: &mut Vec<Loaded>,
    sink: &mut dyn Sink,
) -> Result<(), String> {
    check(&request.plan)?;
    let _home = Home::remember().map_err(|error| format!("network namespace: {error}"))?;
    let congestion = Congestion::load(request, ready, |_| true)?;
    let topology = net::build(&request.plan)?;
    sink.put(&Frame::Fact("qdiscs".into(), topology.lines.join("\n")));
    let session = Session::open(request, topology, congestion, processors, None)?;
    let start_ns = (now_ns() + START_GRID_NS / 10).next_multiple_of(START_GRID_NS);
    session.run_from(start_ns, sink)
}

/// The release of this kernel.
pub(crate) fn kernel_fact() -> Frame {
    Frame::Fact("kernel".into(), kernel_release())
}

/// A run that has been opened.
pub(crate) struct Session<'a> {
    run: Run<'a>,
    activities: Activities,
    _requests_to_end: SignalFd,
}

impl<'a> Session<'a> {
    /// This end's part of a run between two hosts.
    pub(crate) fn with_peer(request: &'a Request, peer_link: PeerLink) -> Result<Self, String> {
        let congestion = Congestion::load(request, &mut Vec::new(), |flow| peer_link.sends(flow))?;
        let topology = Topology::beyond_our_control(peer_link.address(), request.plan.probes.len());
        let processors = Processors::default();
        Self::open(request, topology, congestion, processors, Some(peer_link))
    }

    /// Creates everything and starts nothing.
    fn open(
        request: &'a Request,
        topology: Topology,
        congestion: Congestion,
        processors: Processors,
        peer_link: Option<PeerLink>,
    ) -> Result<Self, String> {
        // Where it cannot be done, totals have no number, and carry_out() says why.
        let _ = watch_sockets(&request.objects, request.cc_states);
        let poller = Poller::new().map_err(|error| format!("epoll: {error}"))?;
        let requests_to_end = poller
            .watch_end_signals()
            .map_err(|error| format!("signals: {error}"))?;
        let mut run = Run {
            request,
            processors,
            topology,
            peer_link,
            congestion,
            poller,
            payload: Payload::new(request.plan.host.wmem_max_bytes)
                .map_err(|error| format!("memory for payload: {error}"))?,
            agenda: Agenda::default(),
            health: Health::start(processors, now_ns(), request.plan.sample_interval_ns),
            start_ns: 0,
        };
        run.agenda
            .add(request.plan.sample_interval_ns, Task::Sample);
        run.agenda.add(PROGRESS_NS, Task::Progress);
        run.agenda.add(request.plan.duration_ns, Task::End);
        Ok(Self {
            activities: Activities::open(&mut run)?,
            run,
            _requests_to_end: requests_to_end,
        })
    }

    /// Ends the run when `descriptor` becomes readable.
    pub(crate) fn end_with(&self, descriptor: &impl AsFd) -> io::Result<()> {
        let poller = &self.run.poller;
        poller.watch(descriptor.as_fd(), EpollFlags::EPOLLIN, Token::End)
    }

    /// Runs until the end of the plan's duration or a request to end; then emits the totals and the
    /// problems of the run.
    pub(crate) fn run_from(mut self, start_ns: u64, sink: &mut dyn Sink) -> Result<(), String> {
        for flow in 0..self.run.plan().flows.len() {
            if let Some(introduction) = self.run.congestion.introduction(flow) {
                sink.put(&introduction);
            }
        }
        self.run.start_ns = start_ns;
        self.run.health.cpu.begin(start_ns);
        self.plan_cpu();
        self.work(sink)?;
        self.finish(sink)
    }

    fn work(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        while let Some(next_ns) = self.run.agenda.next_ns() {
            let (count, is_due) = self
                .run
                .poller
                .wait_until(self.run.start_ns + next_ns)
                .map_err(|error| format!("epoll: {error}"))?;
            let mut is_over = false;
            for index in 0..count {
                match self.run.poller.event(index) {
                    Some((Token::End, _)) => is_over = true,
                    Some((token, flags)) => {
                        self.activities.handle(token, flags, &mut self.run, sink);
                    }
                    None => {}
                }
            }
            if is_over {
                return Ok(());
            }
            // In User Mode Linux even the clock is a system call, and those are most of what a packet costs.
            if !is_due {
                continue;
            }
            while let Some((due_ns, task)) = self.run.agenda.take(self.run.t_ns()) {
                if task == Task::End {
                    return Ok(());
                }
                self.perform(task, due_ns, sink)?;
            }
        }
        Ok(())
    }

    /// A task of the session's own, or of an activity.
    fn perform(&mut self, task: Task, due_ns: u64, sink: &mut dyn Sink) -> Result<(), String> {
        let run = &mut self.run;
        match task {
            Task::Sample => {
                let t_ns = run.t_ns();
                run.health.note_sample(due_ns, t_ns);
                self.activities.rows(t_ns, run, sink)?;
                let next_ns = due_ns + run.plan().sample_interval_ns;
                run.agenda.add(next_ns, task);
            }
            Task::Cpu => {
                run.health.cpu.look(now_ns());
                self.plan_cpu();
            }
            Task::Progress => {
                sink.put(&Frame::Progress(run.t_ns()));
                run.agenda.add(due_ns + PROGRESS_NS, task);
            }
            _ => self.activities.due(task, due_ns, run, sink)?,
        }
        Ok(())
    }

    /// The processors are read by this machine's clock.
    fn plan_cpu(&mut self) {
        let due_ns = self.run.health.cpu.due_ns();
        self.run
            .agenda
            .add(due_ns.saturating_sub(self.run.start_ns), Task::Cpu);
    }

    fn finish(self, sink: &mut dyn Sink) -> Result<(), String> {
        let (mut run, mut activities) = (self.run, self.activities);
        let t_ns = run.t_ns();
        run.health.cpu.look(run.start_ns + t_ns);
        activities.end(t_ns, &mut run, sink)?;
        // A trace ends after the sockets that it follows.
        drop(activities);
        run.congestion.finish()?;
        if let Some(cost) = run.congestion.cost() {
            sink.put(&cost);
        }
        sink.put(&Frame::Progress(t_ns));
        run.health.report(run.request.clock, sink);
        Ok(())
    }
}
