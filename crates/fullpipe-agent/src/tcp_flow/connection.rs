//! One connection of a plan: both ends, from the call to connect until the last byte is
//! acknowledged. It must never know how it is measured.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};

use fullpipe_plan::{Flow, FlowDirection};
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{listen, shutdown, Backlog, Shutdown};

use super::options::Options;
use super::supply::Supply;
use crate::clock::Poller;
use crate::kernel_cc::available;
use crate::net::Node;
use crate::peer::{FAR_BYTES, NEAR_BYTES};
use crate::sample::TcpInfo;
use crate::socket::{self, Payload};
use crate::token::{Role, Token};

/// Flow 0 connects from the first of these ports to the first of those.
const CLIENT_PORT: u16 = 20_000;
const SERVER_PORT: u16 = 10_000;
/// Most flows: the ports of their listeners end where those of the clients begin.
pub(crate) const MAX_FLOWS: usize = 10_000;
/// Once no more than this is left to write, the kernel reports when the last byte is
/// acknowledged.
const LAST_BYTES: u64 = 1 << 20;

/// include/net/tcp_states.h
const TCP_CLOSE: u8 = 7;

/// What an event meant.
#[derive(Debug)]
pub(crate) enum ConnectionEvent {
    Established,
    /// All that was written is acknowledged, and more will be written ([`Connection::write_in_chunks`]).
    Drained,
    Finished,
    Broken(String),
}

/// Where both ends of a connection are: senders' side and receivers' side.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) nodes: &'a [Node],
    pub(crate) ends: [(usize, Ipv4Addr); 2],
}

/// Which ends are on this host.
enum LocalEnds {
    /// Both: the client connects to the address of the listener.
    Both(OwnedFd, SocketAddrV4),
    /// The end that connects or the end that accepts; the other is on the peer's host.
    Near,
    Far,
}

/// Both ends of a flow, or the one that is on this host.
pub(crate) struct Connection {
    /// Names its descriptors.
    index: usize,
    token: fn(usize, Role) -> Token,
    options: Options,
    ends: LocalEnds,
    client: Option<OwnedFd>,
    server: Option<OwnedFd>,
    supply: Supply,
    /// It waits for the acknowledgement of each chunk.
    has_chunks: bool,
    /// The socket took less than the application has: EPOLLOUT tells when it takes more.
    pub(crate) is_blocked: bool,
    pub(crate) is_started: bool,
    pub(crate) is_established: bool,
    is_closing: bool,
    /// The receiver has closed its side too.
    has_answered: bool,
    /// All data were acknowledged.
    has_finished: bool,
    is_over: bool,
}

impl Connection {
    /// Sockets that are ready to connect; events carry `token` of the index. The congestion control
    /// comes with whether the receiver has it too.
    pub(crate) fn open(
        flow: &Flow,
        (index, token): (usize, fn(usize, Role) -> Token),
        (congestion_control, is_at_both_ends): (&str, bool),
        options: Options,
        Place { nodes, ends }: Place,
    ) -> Result<Self, String> {
        if index >= MAX_FLOWS {
            return Err(format!("flows: more than {MAX_FLOWS}"));
        }
        let port = index as u16;
        let addresses = [
            socket::at(ends[0].1, CLIENT_PORT + port),
            socket::at(ends[1].1, SERVER_PORT + port),
        ];
        let place = |what: &str| {
            let text = format!("flow {}: {what}", flow.name);
            move |error: io::Error| format!("{text}: {error}")
        };
        nodes[ends[1].0].enter()?;
        let listener = socket::tcp(addresses[1]).map_err(place("receiver's socket"))?;
        nodes[ends[0].0].enter()?;
        let client = socket::tcp(addresses[0]).map_err(place("sender's socket"))?;
        let (sends, receives) = match flow.direction {
            FlowDirection::Up => (&client, &listener),
            FlowDirection::Down => (&listener, &client),
        };
        let refused = |error: io::Error| {
            let reason = match error.raw_os_error() {
                Some(libc::ENOENT) => {
                    // Without those that a machine has made ready for later runs.
                    let mut names = available();
                    names.retain(|name| !name.starts_with("ready"));
                    format!("the kernel has only {}", names.join(", "))
                }
                _ => error.to_string(),
            };
            let name = &flow.name;
            format!("flow {name}: congestion control {congestion_control}: {reason}")
        };
        socket::set_congestion_control(sends, congestion_control).map_err(refused)?;
        if is_at_both_ends {
            socket::set_congestion_control(receives, congestion_control).map_err(refused)?;
        }
        options
            .limit_unsent(sends)
            .map_err(place("TCP_NOTSENT_LOWAT"))?;
        options
            .limit_pacing(sends)
            .map_err(place("SO_MAX_PACING_RATE"))?;
        options.set_nodelay(sends).map_err(place("TCP_NODELAY"))?;
        options
            .fix_window(receives)
            .map_err(|error| format!("flow {}: {error}", flow.name))?;
        options
            .set_low_water(receives)
            .map_err(place("SO_RCVLOWAT"))?;
        for end in [&client, &listener] {
            options.set_dscp(end).map_err(place("IP_TOS"))?;
        }
        let backlog = Backlog::new(1).map_err(|error| format!("backlog: {error}"))?;
        listen(&listener, backlog).map_err(|error| place("listen")(error.into()))?;
        let ends = LocalEnds::Both(listener, addresses[1]);
        let mut made = Self::new(flow, (index, token), ends, options);
        made.client = Some(client);
        Ok(made)
    }

    /// The end that is on this host; [`Connection::adopt`] hands it its connection.
    pub(crate) fn with_peer(
        flow: &Flow,
        names: (usize, fn(usize, Role) -> Token),
        is_near: bool,
        options: Options,
    ) -> Self {
        let end = match is_near {
            true => LocalEnds::Near,
            false => LocalEnds::Far,
        };
        Self::new(flow, names, end, options)
    }

    fn new(
        flow: &Flow,
        (index, token): (usize, fn(usize, Role) -> Token),
        ends: LocalEnds,
        options: Options,
    ) -> Self {
        let is_patient = flow.app_rate_bps.is_some() || flow.pattern.is_some();
        Self {
            index,
            token,
            options,
            ends,
            client: None,
            server: None,
            supply: Supply::new(flow.amount_bytes, is_patient),
            has_chunks: false,
            is_blocked: false,
            is_started: false,
            is_established: false,
            is_closing: false,
            has_answered: false,
            has_finished: false,
            is_over: false,
        }
    }

    /// Makes it write only what [`Connection::add_credit`] allows, and report when that has been
    /// acknowledged.
    pub(crate) fn write_in_chunks(&mut self) {
        self.supply.set_patient(true);
        self.has_chunks = true;
    }

    /// Calls connect().
    pub(crate) fn start(&mut self, poller: &Poller) -> io::Result<()> {
        self.is_started = true;
        let (LocalEnds::Both(listener, to), Some(client)) = (&self.ends, &self.client) else {
            return Ok(());
        };
        let client_flags = match self.options.direction {
            FlowDirection::Up => sender_flags(),
            FlowDirection::Down => receiver_flags(),
        };
        poller.watch(listener, EpollFlags::EPOLLIN, self.token_of(Role::Listener))?;
        poller.watch(client, client_flags, self.token_of(Role::Client))?;
        socket::connect(client, *to)
    }

    fn token_of(&self, role: Role) -> Token {
        (self.token)(self.index, role)
    }

    /// Takes a connection that was opened and authenticated elsewhere. The end that connected has its
    /// congestion control and its window already ([`crate::peer::PeerLink::start`]).
    pub(crate) fn adopt(
        &mut self,
        socket: OwnedFd,
        congestion_control: &str,
        poller: &Poller,
        payload: &Payload,
    ) -> io::Result<Option<ConnectionEvent>> {
        if self.is_established {
            return Err(io::Error::other("a second connection came for this flow"));
        }
        let is_near = matches!(self.ends, LocalEnds::Near);
        let sends = (self.options.direction == FlowDirection::Up) == is_near;
        socket::make_nonblocking(&socket)?;
        if sends {
            if !is_near {
                socket::set_congestion_control(&socket, congestion_control)?;
            }
            self.options.limit_unsent(&socket)?;
            self.options.limit_pacing(&socket)?;
            self.options.set_nodelay(&socket)?;
        } else {
            if !is_near {
                self.options.fix_window(&socket)?;
            }
            self.options.set_low_water(&socket)?;
        }
        self.options.set_dscp(&socket)?;
        let flags = match sends {
            true => sender_flags(),
            false => receiver_flags(),
        };
        let (end, role) = match is_near {
            true => (&mut self.client, Role::Client),
            false => (&mut self.server, Role::Server),
        };
        let socket = end.insert(socket);
        poller.watch(socket, flags, (self.token)(self.index, role))?;
        self.is_established = true;
        self.pump(payload)?;
        Ok(sends.then_some(ConnectionEvent::Established))
    }

    /// The end that sends data, once there is one.
    pub(crate) fn sender(&self) -> Option<&OwnedFd> {
        match self.options.direction {
            FlowDirection::Up => self.client.as_ref(),
            FlowDirection::Down => self.server.as_ref(),
        }
    }

    /// The end that receives data, once there is one.
    pub(crate) fn receiver(&self) -> Option<&OwnedFd> {
        match self.options.direction {
            FlowDirection::Up => self.server.as_ref(),
            FlowDirection::Down => self.client.as_ref(),
        }
    }

    /// What the application has written.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.supply.written_bytes()
    }

    /// Whether both ends are closed.
    pub(crate) fn is_gone(&self) -> bool {
        let ends = [&self.client, &self.server].into_iter().flatten();
        ends.map(TcpInfo::of)
            .all(|info| info.map_or(true, |info| info.state == TCP_CLOSE))
    }

    /// What tcpi_bytes_acked holds before any payload.
    pub(crate) fn acked_offset(&self) -> u64 {
        match (&self.ends, self.options.direction) {
            // The SYN counts, at the end that connects.
            (LocalEnds::Both(..), FlowDirection::Up) => 1,
            (LocalEnds::Both(..), FlowDirection::Down) => 0,
            (LocalEnds::Near, _) => 1 + NEAR_BYTES,
            (LocalEnds::Far, _) => FAR_BYTES,
        }
    }

    /// Handles what a descriptor is ready for.
    pub(crate) fn handle(
        &mut self,
        role: Role,
        flags: EpollFlags,
        poller: &Poller,
        payload: &Payload,
    ) -> Option<ConnectionEvent> {
        if self.is_over {
            return None;
        }
        let done = match role {
            Role::Listener => self.accept(poller, payload),
            Role::Client if self.options.direction == FlowDirection::Up => {
                self.sending(flags, payload)
            }
            Role::Server if self.options.direction == FlowDirection::Down => {
                self.sending(flags, payload)
            }
            Role::Client | Role::Server => self.receive(flags).map(|()| None),
        };
        done.unwrap_or_else(|error| {
            self.is_over = true;
            Some(ConnectionEvent::Broken(error.to_string()))
        })
    }

    fn accept(
        &mut self,
        poller: &Poller,
        payload: &Payload,
    ) -> io::Result<Option<ConnectionEvent>> {
        let LocalEnds::Both(listener, _) = &self.ends else {
            return Ok(None);
        };
        let server = socket::accept(listener)?;
        let flags = match self.options.direction {
            FlowDirection::Up => receiver_flags(),
            FlowDirection::Down => sender_flags(),
        };
        poller.watch(&server, flags, self.token_of(Role::Server))?;
        self.server = Some(server);
        if self.options.direction == FlowDirection::Up {
            return Ok(None);
        }
        self.is_established = true;
        self.pump(payload)?;
        Ok(Some(ConnectionEvent::Established))
    }

    fn sending(
        &mut self,
        flags: EpollFlags,
        payload: &Payload,
    ) -> io::Result<Option<ConnectionEvent>> {
        if let Some(error) = self.sender().and_then(socket::pending_error) {
            return Err(error);
        }
        let told = match self.sender() {
            Some(sender) if flags.contains(EpollFlags::EPOLLERR) => socket::forget_stamps(sender)?,
            _ => false,
        };
        if self.is_closing {
            // The peer's FIN counts too if the application stopped before its amount was sent.
            self.is_over = flags.intersects(EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP);
            let is_finished = self.is_over || told && self.is_drained()?;
            let is_new = is_finished && !std::mem::replace(&mut self.has_finished, is_finished);
            return Ok(is_new.then_some(ConnectionEvent::Finished));
        }
        if self.has_chunks && told && self.is_drained()? {
            return Ok(Some(ConnectionEvent::Drained));
        }
        let mut event = None;
        if !self.is_established && flags.contains(EpollFlags::EPOLLOUT) {
            self.is_established = true;
            event = Some(ConnectionEvent::Established);
        }
        if self.is_established {
            self.pump(payload)?;
        }
        Ok(event)
    }

    /// Every byte that the application of a flow with an amount may write has been acknowledged.
    fn is_drained(&self) -> io::Result<bool> {
        let (true, Some(sender)) = (self.supply.is_empty(), self.sender()) else {
            return Ok(false);
        };
        let acked = TcpInfo::of(sender)?.bytes_acked;
        Ok(acked >= self.acked_offset() + self.supply.written_bytes())
    }

    /// Writes as much as the application has and the socket takes; closes behind the last byte.
    pub(crate) fn pump(&mut self, payload: &Payload) -> io::Result<()> {
        if self.is_closing || !self.is_established {
            return Ok(());
        }
        self.is_blocked = false;
        loop {
            let wanted = self.supply.wanted_bytes();
            if wanted == 0 {
                break;
            }
            let Some(sender) = self.sender() else { break };
            if self.has_chunks || self.supply.ends_within(LAST_BYTES) {
                socket::ask_for_acknowledgement(sender)?;
            }
            let Some(sent) = payload.send(sender, wanted)? else {
                self.is_blocked = true;
                break;
            };
            self.supply.take(sent);
        }
        if self.supply.ends_within(0) {
            self.close()?;
        }
        Ok(())
    }

    /// The application may write more, at once unless it is blocked; false once the connection is closing.
    pub(crate) fn add_credit(&mut self, bytes: u64, payload: &Payload) -> io::Result<bool> {
        self.owe(bytes);
        if !self.is_blocked {
            self.pump(payload)?;
        }
        Ok(!self.is_closing && !self.is_over)
    }

    /// The application may write more when it writes next.
    pub(crate) fn owe(&mut self, bytes: u64) {
        self.supply.add_credit(bytes);
    }

    /// The application writes as much as TCP accepts, or nothing; false once the connection is
    /// closing.
    pub(crate) fn set_endless(&mut self, is_endless: bool, payload: &Payload) -> io::Result<bool> {
        self.supply.set_patient(!is_endless);
        self.pump(payload)?;
        Ok(!self.is_closing && !self.is_over)
    }

    /// The application stops: what is in the socket's buffer still goes.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        if self.is_closing || !self.is_established {
            self.supply.stop();
            return Ok(());
        }
        self.close()
    }

    fn close(&mut self) -> io::Result<()> {
        self.is_closing = true;
        self.sender().map_or(Ok(()), |sender| {
            Ok(shutdown(sender.as_raw_fd(), Shutdown::Write)?)
        })
    }

    /// Reads once, which takes all that has arrived; later data is another event. Only a FIN behind
    /// data has no event of its own.
    fn receive(&mut self, flags: EpollFlags) -> io::Result<()> {
        let Some(receiver) = self.receiver() else {
            return Ok(());
        };
        let mut read = socket::discard(receiver)?;
        if read.is_some_and(|bytes| bytes > 0) {
            self.options.limit_window(receiver)?;
            if flags.contains(EpollFlags::EPOLLRDHUP) {
                read = socket::discard(receiver)?;
            }
        }
        // Once: shutdown() wakes all who poll the socket (inet_shutdown()), so that this code would
        // run again and again until the last ACK.
        if read == Some(0) && !self.has_answered {
            // The sender has closed: closing this side too tells it that all data arrived. If its last
            // ACK came quickly, both are closed already at a further event.
            match shutdown(receiver.as_raw_fd(), Shutdown::Both) {
                Ok(()) | Err(Errno::ENOTCONN) => self.has_answered = true,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Drop for Connection {
    /// Resets what is still open, so that no socket outlives the run in its namespace.
    fn drop(&mut self) {
        for end in [&self.client, &self.server].into_iter().flatten() {
            socket::reset_at_close(end);
        }
    }
}

fn sender_flags() -> EpollFlags {
    EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET
}

fn receiver_flags() -> EpollFlags {
    EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET
}
