//! One connection of a plan: both ends, from the call to connect until the last byte is
//! acknowledged. It must never know how it is measured.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use fullpipe_scenario::{Direction, Flow};
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{listen, setsockopt, shutdown, sockopt, Backlog, Shutdown};
use std::os::fd::AsRawFd;

use super::socket::{self, Payload};
use crate::clock::Poller;
use crate::net::Node;
use crate::peer::{FAR_BYTES, NEAR_BYTES};

/// Flow 0 connects from the first of these ports to the first of those.
const CLIENT_PORT: u16 = 20_000;
const SERVER_PORT: u16 = 10_000;
const MAX_FLOWS: usize = 10_000;
/// A flow that stops before the run ends keeps no more than this unsent, because TCP sends what is
/// in its buffer although its application has stopped.
const UNSENT_BYTES: u32 = 128 * 1024;

/// A receiver reads when this much waits: a wake-up for every packet would cost a fifth of all
/// instructions of a virtual machine. TCP acknowledges as if it had been read
/// (__tcp_ack_snd_check() looks at sk_rcvlowat).
const READ_BYTES: u32 = 8 * 1024;

/// Which descriptor of a connection an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Listener,
    Client,
    Server,
}

/// What an event meant.
#[derive(Debug)]
pub(crate) enum Happening {
    Established,
    Finished,
    Broken(String),
}

/// Where a listener waits for the client.
struct Call {
    listener: OwnedFd,
    to: SocketAddrV4,
}

/// Both ends of a flow, or the one that is on this host.
pub(crate) struct Connection {
    index: usize,
    direction: Direction,
    window_bytes: Option<u32>,
    /// What the end that connects needs, where both ends are here.
    call: Option<Call>,
    client: Option<OwnedFd>,
    server: Option<OwnedFd>,
    /// What tcpi_bytes_acked holds before any payload.
    acked_offset: u64,
    stops_early: bool,
    /// What the application has yet to write; `None`: without end.
    left_bytes: Option<u64>,
    /// What it may write now, where it writes at a rate.
    credit_bytes: Option<u64>,
    pub(crate) written_bytes: u64,
    pub(crate) is_started: bool,
    pub(crate) is_established: bool,
    is_closing: bool,
    pub(crate) is_over: bool,
}

impl Connection {
    /// Sockets that are ready to connect; `ends` are senders' side and receivers' side.
    pub(crate) fn open(
        flow: &Flow,
        index: usize,
        congestion_control: &str,
        nodes: &[Node],
        ends: [(usize, Ipv4Addr); 2],
        stops_early: bool,
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
            Direction::Up => (&client, &listener),
            Direction::Down => (&listener, &client),
        };
        let choose = format!("congestion control {congestion_control}");
        socket::set_congestion_control(sends, congestion_control).map_err(place(&choose))?;
        if stops_early {
            socket::set_unsent_limit(sends, UNSENT_BYTES).map_err(place("TCP_NOTSENT_LOWAT"))?;
        }
        let window_bytes = window_of(flow);
        match window_bytes {
            Some(bytes) => {
                let what = format!("receive window of {bytes} bytes");
                socket::fix_receive_window(receives, bytes).map_err(place(&what))?;
            }
            None => socket::set_low_water(receives, READ_BYTES).map_err(place("SO_RCVLOWAT"))?,
        }
        let backlog = Backlog::new(1).map_err(|error| format!("backlog: {error}"))?;
        listen(&listener, backlog).map_err(|error| place("listen")(error.into()))?;
        Ok(Self {
            index,
            direction: flow.direction,
            window_bytes,
            call: Some(Call {
                listener,
                to: addresses[1],
            }),
            client: Some(client),
            server: None,
            // The SYN counts, at the end that connects.
            acked_offset: match flow.direction {
                Direction::Up => 1,
                Direction::Down => 0,
            },
            stops_early,
            left_bytes: flow.amount_bytes,
            credit_bytes: flow.app_rate_bps.map(|_| 0),
            written_bytes: 0,
            is_started: false,
            is_established: false,
            is_closing: false,
            is_over: false,
        })
    }

    /// Calls connect().
    pub(crate) fn start(&mut self, poller: &Poller) -> io::Result<()> {
        self.is_started = true;
        let (Some(call), Some(client)) = (&self.call, &self.client) else {
            return Ok(());
        };
        poller.watch(
            &call.listener,
            EpollFlags::EPOLLIN,
            self.token(Role::Listener),
        )?;
        let client_flags = match self.direction {
            Direction::Up => sender_flags(),
            Direction::Down => EpollFlags::EPOLLIN,
        };
        poller.watch(client, client_flags, self.token(Role::Client))?;
        socket::connect(client, call.to)
    }

    /// The end that is on this host, before there is a connection: [`Connection::adopt`] brings it.
    pub(crate) fn with_peer(flow: &Flow, index: usize, is_near: bool, stops_early: bool) -> Self {
        Self {
            index,
            direction: flow.direction,
            window_bytes: window_of(flow),
            call: None,
            client: None,
            server: None,
            acked_offset: match is_near {
                true => 1 + NEAR_BYTES,
                false => FAR_BYTES,
            },
            stops_early,
            left_bytes: flow.amount_bytes,
            credit_bytes: flow.app_rate_bps.map(|_| 0),
            written_bytes: 0,
            is_started: false,
            is_established: false,
            is_closing: false,
            is_over: false,
        }
    }

    /// Takes a connection that was made and identified elsewhere; the near end's `call` it.
    pub(crate) fn adopt(
        &mut self,
        socket: OwnedFd,
        congestion_control: &str,
        poller: &Poller,
        payload: &Payload,
    ) -> io::Result<Option<Happening>> {
        if self.is_established {
            return Err(io::Error::other("a second connection came for this flow"));
        }
        let is_near = self.acked_offset == 1 + NEAR_BYTES;
        let sends = (self.direction == Direction::Up) == is_near;
        socket::make_nonblocking(&socket)?;
        let role = if is_near { Role::Client } else { Role::Server };
        let flags = if sends {
            sender_flags()
        } else {
            EpollFlags::EPOLLIN
        };
        if sends {
            socket::set_congestion_control(&socket, congestion_control)?;
            if self.stops_early {
                socket::set_unsent_limit(&socket, UNSENT_BYTES)?;
            }
        } else if let Some(bytes) = self.window_bytes {
            socket::fix_receive_window(&socket, bytes)?;
        }
        poller.watch(&socket, flags, self.token(role))?;
        let place = if is_near {
            &mut self.client
        } else {
            &mut self.server
        };
        *place = Some(socket);
        self.is_established = true;
        self.pump(payload)?;
        Ok(sends.then_some(Happening::Established))
    }

    fn token(&self, role: Role) -> u64 {
        (self.index as u64) << 2 | role as u64
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
            Direction::Up => self.client.as_ref(),
            Direction::Down => self.server.as_ref(),
        }
    }

    /// The end that receives data, once there is one.
    pub(crate) fn receiver(&self) -> Option<&OwnedFd> {
        match self.direction {
            Direction::Up => self.server.as_ref(),
            Direction::Down => self.client.as_ref(),
        }
    }

    /// What tcpi_bytes_acked holds before any payload.
    pub(crate) fn acked_offset(&self) -> u64 {
        self.acked_offset
    }

    /// Handles what a descriptor is ready for.
    pub(crate) fn handle(
        &mut self,
        role: Role,
        flags: EpollFlags,
        poller: &Poller,
        payload: &Payload,
    ) -> Option<Happening> {
        if self.is_over {
            return None;
        }
        let done = match role {
            Role::Listener => self.accept(poller, payload),
            Role::Client if self.direction == Direction::Up => self.sending(flags, payload),
            Role::Server if self.direction == Direction::Down => self.sending(flags, payload),
            Role::Client | Role::Server => self.receive().map(|()| None),
        };
        done.unwrap_or_else(|error| {
            self.is_over = true;
            Some(Happening::Broken(error.to_string()))
        })
    }

    fn accept(&mut self, poller: &Poller, payload: &Payload) -> io::Result<Option<Happening>> {
        let Some(call) = &self.call else {
            return Ok(None);
        };
        let server = socket::accept(&call.listener)?;
        let flags = match self.direction {
            Direction::Up => EpollFlags::EPOLLIN,
            Direction::Down => sender_flags(),
        };
        poller.watch(&server, flags, self.token(Role::Server))?;
        self.server = Some(server);
        if self.direction == Direction::Up {
            return Ok(None);
        }
        self.is_established = true;
        self.pump(payload)?;
        Ok(Some(Happening::Established))
    }

    fn sending(&mut self, flags: EpollFlags, payload: &Payload) -> io::Result<Option<Happening>> {
        if let Some(error) = self.sender().and_then(socket::pending_error) {
            return Err(error);
        }
        if self.is_closing && flags.intersects(EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP) {
            self.is_over = true;
            return Ok(Some(Happening::Finished));
        }
        let mut happening = None;
        if !self.is_established && flags.contains(EpollFlags::EPOLLOUT) {
            self.is_established = true;
            happening = Some(Happening::Established);
        }
        if self.is_established {
            self.pump(payload)?;
        }
        Ok(happening)
    }

    /// Writes as much as the application has and the socket takes; closes behind the last byte.
    pub(crate) fn pump(&mut self, payload: &Payload) -> io::Result<()> {
        if self.is_closing || !self.is_established {
            return Ok(());
        }
        loop {
            let may = self.credit_bytes.unwrap_or(u64::MAX);
            let wanted = may.min(self.left_bytes.unwrap_or(u64::MAX));
            if wanted == 0 {
                break;
            }
            let sent = self
                .sender()
                .map_or(Ok(None), |sender| payload.send(sender, wanted))?;
            let Some(sent) = sent else { break };
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

    /// The application hands over more; false when it never will again.
    pub(crate) fn add_credit(&mut self, bytes: u64, payload: &Payload) -> io::Result<bool> {
        self.credit_bytes = self.credit_bytes.map(|credit| credit + bytes);
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

    fn receive(&mut self) -> io::Result<()> {
        let Some(receiver) = self.receiver() else {
            return Ok(());
        };
        match socket::discard(receiver)? {
            // The sender has closed: closing this side too tells it that all has arrived.
            Some(0) => shutdown(receiver.as_raw_fd(), Shutdown::Both)?,
            Some(_) => {
                if let Some(bytes) = self.window_bytes {
                    socket::limit_receive_window(receiver, bytes)?;
                }
            }
            None => {}
        }
        Ok(())
    }
}

impl Drop for Connection {
    /// Resets what is still open, so that no socket outlives the run in its namespace.
    fn drop(&mut self) {
        let linger = libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        for end in [&self.client, &self.server].into_iter().flatten() {
            // A socket that is closed already has nothing to reset.
            let _ = setsockopt(end, sockopt::Linger, &linger);
        }
    }
}

fn window_of(flow: &Flow) -> Option<u32> {
    let bytes = flow.receive_window_bytes?;
    Some(u32::try_from(bytes).unwrap_or(u32::MAX))
}

fn sender_flags() -> EpollFlags {
    EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET
}
