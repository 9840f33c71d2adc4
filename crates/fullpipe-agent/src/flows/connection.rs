//! One connection of a plan: both ends, from the call to connect until the last byte is
//! acknowledged. It must never know how it is measured.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use fullpipe_plan::{Flow, FlowDirection};
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{listen, shutdown, Backlog, Shutdown};
use std::os::fd::AsRawFd;

use crate::clock::Poller;
use crate::net::Node;
use crate::peer::{FAR_BYTES, NEAR_BYTES};
use crate::sample::TcpInfo;
use crate::socket::{self, Payload};

/// Flow 0 connects from the first of these ports to the first of those.
const CLIENT_PORT: u16 = 20_000;
const SERVER_PORT: u16 = 10_000;
/// Most flows: the ports of their listeners end where those of the clients begin.
pub(super) const MAX_FLOWS: usize = 10_000;
/// Once no more than this is left to write, the kernel reports when the last byte is
/// acknowledged.
const LAST_BYTES: u64 = 1 << 20;

/// include/net/tcp_states.h
const TCP_CLOSE: u8 = 7;

/// The descriptor of a connection that an event concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Listener,
    Client,
    Server,
}

/// What an event meant.
#[derive(Debug)]
pub(crate) enum ConnectionEvent {
    Established,
    /// All that was written is acknowledged, and more will be written ([`Connection::write_in_chunks`]).
    Drained,
    Finished,
    Broken(String),
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
    index: usize,
    direction: FlowDirection,
    window_bytes: Option<u32>,
    ends: LocalEnds,
    client: Option<OwnedFd>,
    server: Option<OwnedFd>,
    /// SO_RCVLOWAT of its receiver.
    low_water_bytes: u32,
    dscp: u8,
    unsent_most_bytes: Option<u32>,
    /// Bytes that the application has yet to write; `None`: no limit.
    left_bytes: Option<u64>,
    /// Bytes that it may write now, if it writes at a rate or in chunks.
    credit_bytes: Option<u64>,
    /// It waits for the acknowledgement of each chunk.
    has_chunks: bool,
    /// The socket took less than the application has: EPOLLOUT tells when it takes more.
    pub(crate) is_blocked: bool,
    pub(crate) written_bytes: u64,
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
    /// Sockets that are ready to connect; `ends` are senders' side and receivers' side. The
    /// congestion control comes with whether the receiver has it too.
    pub(crate) fn open(
        flow: &Flow,
        index: usize,
        (congestion_control, is_at_both_ends): (&str, bool),
        nodes: &[Node],
        ends: [(usize, Ipv4Addr); 2],
        low_water_bytes: u32,
        unsent_most_bytes: Option<u32>,
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
        let choose = format!("congestion control {congestion_control}");
        socket::set_congestion_control(sends, congestion_control).map_err(place(&choose))?;
        if is_at_both_ends {
            socket::set_congestion_control(receives, congestion_control).map_err(place(&choose))?;
        }
        if let Some(bytes) = unsent_most_bytes {
            socket::set_unsent_limit(sends, bytes).map_err(place("TCP_NOTSENT_LOWAT"))?;
        }
        if let Some(bytes) = window_of(flow) {
            let what = format!("receive window of {bytes} bytes");
            socket::fix_receive_window(receives, bytes).map_err(place(&what))?;
        }
        socket::set_low_water(receives, low_water_bytes).map_err(place("SO_RCVLOWAT"))?;
        for end in [&client, &listener] {
            socket::set_dscp(end, flow.dscp).map_err(place("IP_TOS"))?;
        }
        let backlog = Backlog::new(1).map_err(|error| format!("backlog: {error}"))?;
        listen(&listener, backlog).map_err(|error| place("listen")(error.into()))?;
        let ends = LocalEnds::Both(listener, addresses[1]);
        let mut made = Self::new(flow, index, ends, low_water_bytes, unsent_most_bytes);
        made.client = Some(client);
        Ok(made)
    }

    /// The end that is on this host; [`Connection::adopt`] hands it its connection.
    pub(crate) fn with_peer(
        flow: &Flow,
        index: usize,
        is_near: bool,
        low_water_bytes: u32,
        unsent_most_bytes: Option<u32>,
    ) -> Self {
        let end = if is_near {
            LocalEnds::Near
        } else {
            LocalEnds::Far
        };
        Self::new(flow, index, end, low_water_bytes, unsent_most_bytes)
    }

    fn new(
        flow: &Flow,
        index: usize,
        ends: LocalEnds,
        low_water_bytes: u32,
        unsent_most_bytes: Option<u32>,
    ) -> Self {
        Self {
            index,
            direction: flow.direction,
            window_bytes: window_of(flow),
            ends,
            client: None,
            server: None,
            low_water_bytes,
            dscp: flow.dscp,
            unsent_most_bytes,
            left_bytes: flow.amount_bytes,
            credit_bytes: (flow.app_rate_bps.is_some() || flow.pattern.is_some()).then_some(0),
            has_chunks: false,
            is_blocked: false,
            written_bytes: 0,
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
        self.credit_bytes = Some(0);
        self.has_chunks = true;
    }

    /// Calls connect().
    pub(crate) fn start(&mut self, poller: &Poller) -> io::Result<()> {
        self.is_started = true;
        let (LocalEnds::Both(listener, to), Some(client)) = (&self.ends, &self.client) else {
            return Ok(());
        };
        poller.watch(
            listener,
            EpollFlags::EPOLLIN,
            token(self.index, Role::Listener),
        )?;
        let client_flags = match self.direction {
            FlowDirection::Up => sender_flags(),
            FlowDirection::Down => receiver_flags(),
        };
        poller.watch(client, client_flags, token(self.index, Role::Client))?;
        socket::connect(client, *to)
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
        let sends = (self.direction == FlowDirection::Up) == is_near;
        socket::make_nonblocking(&socket)?;
        if !is_near && sends {
            socket::set_congestion_control(&socket, congestion_control)?;
        }
        if let (true, Some(bytes)) = (sends, self.unsent_most_bytes) {
            socket::set_unsent_limit(&socket, bytes)?;
        }
        if let (false, false, Some(bytes)) = (is_near, sends, self.window_bytes) {
            socket::fix_receive_window(&socket, bytes)?;
        }
        if !sends {
            socket::set_low_water(&socket, self.low_water_bytes)?;
        }
        socket::set_dscp(&socket, self.dscp)?;
        let (place, role) = match is_near {
            true => (&mut self.client, Role::Client),
            false => (&mut self.server, Role::Server),
        };
        let socket = place.insert(socket);
        let flags = match sends {
            true => sender_flags(),
            false => receiver_flags(),
        };
        poller.watch(socket, flags, token(self.index, role))?;
        self.is_established = true;
        self.pump(payload)?;
        Ok(sends.then_some(ConnectionEvent::Established))
    }

    /// Flow and role of a token.
    pub(crate) fn of_token(token: u64) -> (usize, Role) {
        let role = match token & 3 {
            0 => Role::Listener,
            1 => Role::Client,
            _ => Role::Server,
        };
        ((token >> 2) as usize, role)
    }

    /// The end that sends data, once there is one.
    pub(crate) fn sender(&self) -> Option<&OwnedFd> {
        match self.direction {
            FlowDirection::Up => self.client.as_ref(),
            FlowDirection::Down => self.server.as_ref(),
        }
    }

    /// The end that receives data, once there is one.
    pub(crate) fn receiver(&self) -> Option<&OwnedFd> {
        match self.direction {
            FlowDirection::Up => self.server.as_ref(),
            FlowDirection::Down => self.client.as_ref(),
        }
    }

    /// Whether both ends are closed.
    pub(crate) fn is_gone(&self) -> bool {
        let ends = [&self.client, &self.server].into_iter().flatten();
        ends.map(TcpInfo::of)
            .all(|info| info.map_or(true, |info| info.state == TCP_CLOSE))
    }

    /// What tcpi_bytes_acked holds before any payload.
    pub(crate) fn acked_offset(&self) -> u64 {
        match (&self.ends, self.direction) {
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
            Role::Client if self.direction == FlowDirection::Up => self.sending(flags, payload),
            Role::Server if self.direction == FlowDirection::Down => self.sending(flags, payload),
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
        let flags = match self.direction {
            FlowDirection::Up => receiver_flags(),
            FlowDirection::Down => sender_flags(),
        };
        poller.watch(&server, flags, token(self.index, Role::Server))?;
        self.server = Some(server);
        if self.direction == FlowDirection::Up {
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
        let may = self
            .left_bytes
            .map(|left| left.min(self.credit_bytes.unwrap_or(left)));
        let (Some(0), Some(sender)) = (may, self.sender()) else {
            return Ok(false);
        };
        let acked = TcpInfo::of(sender)?.bytes_acked;
        Ok(acked >= self.acked_offset() + self.written_bytes)
    }

    /// Writes as much as the application has and the socket takes; closes behind the last byte.
    pub(crate) fn pump(&mut self, payload: &Payload) -> io::Result<()> {
        if self.is_closing || !self.is_established {
            return Ok(());
        }
        self.is_blocked = false;
        loop {
            let may = self.credit_bytes.unwrap_or(u64::MAX);
            let wanted = may.min(self.left_bytes.unwrap_or(u64::MAX));
            if wanted == 0 {
                break;
            }
            let Some(sender) = self.sender() else { break };
            if self.has_chunks || self.left_bytes.is_some_and(|left| left <= LAST_BYTES) {
                socket::ask_for_acknowledgement(sender)?;
            }
            let Some(sent) = payload.send(sender, wanted)? else {
                self.is_blocked = true;
                break;
            };
            self.written_bytes += sent;
            for budget in [&mut self.left_bytes, &mut self.credit_bytes] {
                *budget = budget.map(|bytes| bytes - sent);
            }
        }
        if self.left_bytes == Some(0) {
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
        self.credit_bytes = self.credit_bytes.map(|credit| credit + bytes);
    }

    /// The application writes as much as TCP accepts, or nothing; false once the connection is
    /// closing.
    pub(crate) fn set_endless(&mut self, is_endless: bool, payload: &Payload) -> io::Result<bool> {
        self.credit_bytes = (!is_endless).then_some(0);
        self.pump(payload)?;
        Ok(!self.is_closing && !self.is_over)
    }

    /// The application stops: what is in the socket's buffer still goes.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        if self.is_closing || !self.is_established {
            self.left_bytes = Some(0);
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
            if let Some(bytes) = self.window_bytes {
                socket::limit_receive_window(receiver, bytes)?;
            }
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

fn window_of(flow: &Flow) -> Option<u32> {
    let bytes = flow.receive_window_bytes?;
    Some(u32::try_from(bytes).unwrap_or(u32::MAX))
}

fn token(index: usize, role: Role) -> u64 {
    (index as u64) << 2 | role as u64
}

fn sender_flags() -> EpollFlags {
    EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET
}

fn receiver_flags() -> EpollFlags {
    EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET
}
