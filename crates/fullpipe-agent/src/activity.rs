//! What a run is made of: activities that wait for descriptors and for times. This module must not know
//! which activities there are.

use fullpipe_plan::Plan;
use nix::sys::epoll::EpollFlags;

use crate::agenda::Agenda;
use crate::clock::{now_ns, Poller};
use crate::congestion::Congestion;
use crate::health::Health;
use crate::net::Topology;
use crate::peer::PeerLink;
use crate::request::Request;
use crate::sample::Processors;
use crate::sink::Sink;
use crate::socket::Payload;

/// A part of a run, such as its flows or its probes. All times are in ns since the start of the run.
pub(crate) trait Activity: Sized {
    /// Names its descriptors; [`std::convert::Infallible`] if it has none.
    type Socket;
    /// Names its tasks.
    type Task;

    /// Opens what it needs, starts nothing, and puts its first tasks on the agenda.
    fn open(run: &mut Run) -> Result<Self, String>;

    /// A descriptor is ready.
    fn handle(
        &mut self,
        _socket: Self::Socket,
        _flags: EpollFlags,
        _run: &mut Run,
        _sink: &mut dyn Sink,
    ) {
    }

    /// A task is due. The error ends the run.
    fn due(
        &mut self,
        task: Self::Task,
        due_ns: u64,
        run: &mut Run,
        sink: &mut dyn Sink,
    ) -> Result<(), String>;

    /// Puts the rows of a sample that is taken at `t_ns`.
    fn rows(&mut self, _t_ns: u64, _run: &mut Run, _sink: &mut dyn Sink) -> Result<(), String> {
        Ok(())
    }

    /// Puts the last rows, and reports the problems. The sockets are closed when it is dropped.
    fn end(&mut self, _t_ns: u64, _run: &mut Run, _sink: &mut dyn Sink) -> Result<(), String> {
        Ok(())
    }
}

/// What the activities of a run share.
pub(crate) struct Run<'a> {
    pub(crate) request: &'a Request,
    pub(crate) processors: Processors,
    pub(crate) topology: Topology,
    /// The connection to the other host, in a run between two hosts.
    pub(crate) peer_link: Option<PeerLink>,
    pub(crate) congestion: Congestion,
    pub(crate) poller: Poller,
    pub(crate) payload: Payload,
    pub(crate) agenda: Agenda,
    pub(crate) health: Health,
    /// When the run starts, by this machine's clock.
    pub(crate) start_ns: u64,
}

impl<'a> Run<'a> {
    pub(crate) fn plan(&self) -> &'a Plan {
        &self.request.plan
    }

    /// The present. A connection of the other host may arrive before this one starts: then it is 0.
    pub(crate) fn t_ns(&self) -> u64 {
        now_ns().saturating_sub(self.start_ns)
    }
}
