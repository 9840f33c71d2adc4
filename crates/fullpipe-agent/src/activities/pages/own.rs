//! A page that the agent loads over its own sockets. The state machine of fullpipe-workload decides what
//! is opened and written, and when; this module executes its steps.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};

use fullpipe_plan::stream::Frame;
use fullpipe_plan::Page;
use fullpipe_workload::{PageLoader, Step};
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{getpeername, listen, setsockopt, sockopt, Backlog, SockaddrIn};

use crate::activity::Run;
use crate::sink::Sink;
use crate::socket;
use crate::token::{PageSocket, Token};

const PAGE_PORT: u16 = 42_000;
const NAME_SERVER_PORT: u16 = 43_000;
const NAME_CLIENT_PORT: u16 = 44_000;
const CLIENT_PORT: u16 = 45_000;
const CLIENT_PORTS: u16 = 15_000;
/// TCP_NOTSENT_LOWAT of a server's socket.
const UNSENT_BYTES: u32 = 128 * 1024;
/// Payload of a query, and of its answer, as in the simulator.
const QUERY_BYTES: usize = 50;
const ANSWER_BYTES: usize = 100;
#[derive(Default)]
struct Slot {
    client: Option<OwnedFd>,
    client_port: u16,
    server: Option<OwnedFd>,
    is_open: bool,
    /// Bytes that the server has to write and TCP has not accepted yet.
    backlog_bytes: u64,
}

/// One page of the plan.
pub(super) struct PageFlow {
    loader: PageLoader,
    index: usize,
    congestion_control: String,
    dscp: u8,
    nodelay: bool,
    ends: [(usize, Ipv4Addr); 2],
    to: SocketAddrV4,
    listener: OwnedFd,
    name_client: OwnedFd,
    name_server: OwnedFd,
    name_to: SocketAddrV4,
    slots: Vec<Slot>,
    opened: u16,
    armed_ns: Option<u64>,
    steps: Vec<Step>,
}

impl PageFlow {
    /// Opens the listening sockets.
    pub(super) fn open(
        page: &Page,
        index: u32,
        congestion_control: &str,
        ends: [(usize, Ipv4Addr); 2],
        run: &Run,
    ) -> Result<Self, String> {
        let place = |error: io::Error| format!("page {}: {error}", page.name);
        let port = index as u16;
        let to = socket::at(ends[1].1, PAGE_PORT + port);
        let name_to = socket::at(ends[1].1, NAME_SERVER_PORT + port);
        let nodes = &run.topology.nodes;
        nodes[ends[1].0].enter()?;
        let listener = socket::tcp(to).map_err(place)?;
        let name_server = socket::udp(name_to).map_err(place)?;
        socket::set_congestion_control(&listener, congestion_control).map_err(place)?;
        socket::set_unsent_limit(&listener, UNSENT_BYTES).map_err(place)?;
        nodes[ends[0].0].enter()?;
        let name_client =
            socket::udp(socket::at(ends[0].1, NAME_CLIENT_PORT + port)).map_err(place)?;
        for end in [&listener, &name_server, &name_client] {
            socket::set_dscp(end, page.dscp).map_err(place)?;
        }
        let backlog = Backlog::new(256).map_err(|error| format!("backlog: {error}"))?;
        listen(&listener, backlog).map_err(|error| place(error.into()))?;
        let waiting = [
            (&listener, PageSocket::Listener),
            (&name_client, PageSocket::NameClient),
            (&name_server, PageSocket::NameServer),
        ];
        let index = index as usize;
        for (end, socket) in waiting {
            run.poller
                .watch(end, EpollFlags::EPOLLIN, Token::Page(index, socket))
                .map_err(place)?;
        }
        Ok(Self {
            loader: PageLoader::new(page, index as u32),
            index,
            congestion_control: congestion_control.to_owned(),
            dscp: page.dscp,
            nodelay: page.nodelay,
            ends,
            to,
            listener,
            name_client,
            name_server,
            name_to,
            slots: (0..page.connections).map(|_| Slot::default()).collect(),
            opened: index.wrapping_mul(1000) as u16,
            armed_ns: None,
            steps: Vec::new(),
        })
    }

    /// When the page's next timer is due, if it is not on the agenda yet.
    pub(super) fn arm_ns(&mut self) -> Option<u64> {
        let due_ns = self.loader.due_ns()?;
        let is_new = self.armed_ns.is_none_or(|armed_ns| due_ns < armed_ns);
        is_new.then(|| *self.armed_ns.insert(due_ns))
    }

    /// A timer of the page may have expired.
    pub(super) fn on_timer(&mut self, t_ns: u64, run: &Run) -> io::Result<()> {
        if self.armed_ns.is_some_and(|armed_ns| armed_ns <= t_ns) {
            self.armed_ns = None;
        }
        self.loader.on_timer(t_ns, &mut self.steps);
        self.do_steps(run)
    }

    /// A socket is ready.
    pub(super) fn handle(
        &mut self,
        socket: PageSocket,
        flags: EpollFlags,
        t_ns: u64,
        run: &Run,
    ) -> io::Result<()> {
        match socket {
            PageSocket::Listener => self.accept(run)?,
            PageSocket::NameClient => self.answers()?,
            PageSocket::NameServer => self.answer()?,
            PageSocket::Client(number) => self.client(number, flags, t_ns)?,
            PageSocket::Server(number) => self.server(number, t_ns, run)?,
            PageSocket::Program => {}
        }
        self.do_steps(run)
    }

    /// Rows of loads that have ended; at the end, of all.
    pub(super) fn rows(&mut self, is_end: bool, sink: &mut dyn Sink) {
        let (loads, objects) = self.loader.take_rows(is_end);
        for row in loads {
            sink.put(&Frame::Page(row));
        }
        for row in objects {
            sink.put(&Frame::Object(row));
        }
    }

    fn accept(&mut self, run: &Run) -> io::Result<()> {
        loop {
            let server = match socket::accept(&self.listener) {
                Ok(server) => server,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            let peer: SockaddrIn = getpeername(server.as_raw_fd())?;
            let found = self
                .slots
                .iter()
                .position(|slot| slot.client.is_some() && slot.client_port == peer.port());
            // A connection that was closed meanwhile is dropped.
            let Some(number) = found else { continue };
            setsockopt(&server, sockopt::TcpNoDelay, &self.nodelay)?;
            let token = Token::Page(self.index, PageSocket::Server(number));
            run.poller.watch(&server, both_flags(), token)?;
            self.slots[number].server = Some(server);
        }
    }

    fn answers(&mut self) -> io::Result<()> {
        let mut packet = [0u8; 256];
        while let Some((count, _)) = socket::receive_datagram(&self.name_client, &mut packet)? {
            if let Some(raw) = packet[..count].first_chunk() {
                self.loader
                    .on_answer(u32::from_be_bytes(*raw), &mut self.steps);
            }
        }
        Ok(())
    }

    fn answer(&mut self) -> io::Result<()> {
        let mut packet = [0u8; 256];
        while let Some((_, from)) = socket::receive_datagram(&self.name_server, &mut packet)? {
            if let Some(from) = from {
                socket::send_datagram(&self.name_server, &packet[..ANSWER_BYTES], &from)?;
            }
        }
        Ok(())
    }

    fn client(&mut self, number: usize, flags: EpollFlags, t_ns: u64) -> io::Result<()> {
        let Some(slot) = self.slots.get_mut(number) else {
            return Ok(());
        };
        let Some(client) = &slot.client else {
            return Ok(());
        };
        if let Some(error) = socket::pending_error(client) {
            return Err(error);
        }
        if !slot.is_open && flags.contains(EpollFlags::EPOLLOUT) {
            slot.is_open = true;
            self.loader.on_open(number as u32, t_ns, &mut self.steps);
        }
        while let Some(bytes) = socket::discard(client)?.filter(|&bytes| bytes > 0) {
            self.loader
                .on_response_bytes(number as u32, bytes, t_ns, &mut self.steps);
        }
        Ok(())
    }

    fn server(&mut self, number: usize, t_ns: u64, run: &Run) -> io::Result<()> {
        let server = self.slots.get(number).and_then(|slot| slot.server.as_ref());
        let Some(server) = server else {
            return Ok(());
        };
        while let Some(bytes) = socket::discard(server)?.filter(|&bytes| bytes > 0) {
            self.loader
                .on_request_bytes(number as u32, bytes, t_ns, &mut self.steps);
        }
        self.serve(number, run)
    }

    /// Writes what the server has, until TCP takes no more.
    fn serve(&mut self, number: usize, run: &Run) -> io::Result<()> {
        let slot = &mut self.slots[number];
        let Some(server) = &slot.server else {
            return Ok(());
        };
        loop {
            if slot.backlog_bytes == 0 {
                slot.backlog_bytes = self.loader.next_write(number as u32);
            }
            if slot.backlog_bytes == 0 {
                return Ok(());
            }
            match run.payload.send(server, slot.backlog_bytes)? {
                Some(sent) => slot.backlog_bytes -= sent,
                None => return Ok(()),
            }
        }
    }

    fn do_steps(&mut self, run: &Run) -> io::Result<()> {
        while !self.steps.is_empty() {
            for step in std::mem::take(&mut self.steps) {
                match step {
                    Step::Lookup(number) => {
                        let mut query = [0u8; QUERY_BYTES];
                        query[..4].copy_from_slice(&number.to_be_bytes());
                        let to = SockaddrIn::from(self.name_to);
                        socket::send_datagram(&self.name_client, &query, &to)?;
                    }
                    Step::Open(number) => self.connect(number as usize, run)?,
                    Step::Request(number, bytes) => {
                        if let Some(client) = &self.slots[number as usize].client {
                            // A request is smaller than any send buffer.
                            run.payload.send(client, u64::from(bytes))?;
                        }
                    }
                    Step::Respond(number) => self.serve(number as usize, run)?,
                    Step::Close(number) => self.slots[number as usize] = Slot::default(),
                }
            }
        }
        Ok(())
    }

    fn connect(&mut self, number: usize, run: &Run) -> io::Result<()> {
        let port = CLIENT_PORT + self.opened % CLIENT_PORTS;
        self.opened = self.opened.wrapping_add(1) % CLIENT_PORTS;
        run.topology.nodes[self.ends[0].0]
            .enter()
            .map_err(io::Error::other)?;
        let client = socket::tcp(socket::at(self.ends[0].1, port))?;
        socket::set_congestion_control(&client, &self.congestion_control)?;
        socket::set_dscp(&client, self.dscp)?;
        setsockopt(&client, sockopt::TcpNoDelay, &self.nodelay)?;
        let token = Token::Page(self.index, PageSocket::Client(number));
        run.poller.watch(&client, both_flags(), token)?;
        socket::connect(&client, self.to)?;
        let slot = &mut self.slots[number];
        *slot = Slot::default();
        slot.client = Some(client);
        slot.client_port = port;
        Ok(())
    }
}

impl Drop for Slot {
    /// Resets what is open, so that the port is free for the next connection.
    fn drop(&mut self) {
        for end in [&self.client, &self.server].into_iter().flatten() {
            socket::reset_at_close(end);
        }
    }
}

fn both_flags() -> EpollFlags {
    EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET
}
