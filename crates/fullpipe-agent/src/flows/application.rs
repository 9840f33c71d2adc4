//! Pages and streams of datagrams over sockets. The state machines of fullpipe-workload decide what is
//! opened and written, and when; this module executes their steps.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};

use fullpipe_plan::stream::Frame;
use fullpipe_plan::{DatagramRow, Datagrams, FlowDirection, Page};
use fullpipe_workload::{DatagramSource, PageLoader, Step};
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{
    getpeername, listen, recvfrom, sendto, setsockopt, sockopt, Backlog, MsgFlags, SockaddrIn,
};

use crate::clock::Poller;
use crate::net::Node;
use crate::socket::{self, Payload};

const PAGE_PORT: u16 = 42_000;
const NAME_SERVER_PORT: u16 = 43_000;
const NAME_CLIENT_PORT: u16 = 44_000;
const CLIENT_PORT: u16 = 45_000;
const CLIENT_PORTS: u16 = 15_000;
const STREAM_PORT: u16 = 62_000;
const SINK_PORT: u16 = 63_000;
/// TCP_NOTSENT_LOWAT of a server's socket.
const UNSENT_BYTES: u32 = 128 * 1024;
/// Payload of a query, and of its answer, as in the simulator.
const QUERY_BYTES: usize = 50;
const ANSWER_BYTES: usize = 100;
/// A datagram that has not arrived after this long counts as lost, and later rows are written.
const LOST_AFTER_NS: u64 = 10_000_000_000;

/// The socket that an event of a page concerns; three bits of its token.
const LISTENER: u64 = 0;
const NAME_CLIENT: u64 = 1;
const NAME_SERVER: u64 = 2;
const CLIENT: u64 = 3;
const SERVER: u64 = 4;

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
pub(crate) struct PageFlow {
    loader: PageLoader,
    token: u64,
    congestion_control: String,
    dscp: u8,
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

/// What a page borrows from the session.
pub(crate) struct Context<'a> {
    pub(crate) poller: &'a Poller,
    pub(crate) payload: &'a Payload,
    pub(crate) nodes: &'a [Node],
    /// Since the start of the run.
    pub(crate) t_ns: u64,
}

impl PageFlow {
    /// Opens the listening sockets; events carry `token` with the connection and the socket below it.
    pub(crate) fn open(
        page: &Page,
        index: u32,
        congestion_control: &str,
        nodes: &[Node],
        ends: [(usize, Ipv4Addr); 2],
        poller: &Poller,
        token: u64,
    ) -> Result<Self, String> {
        let place = |error: io::Error| format!("page {}: {error}", page.name);
        let port = index as u16;
        let to = socket::at(ends[1].1, PAGE_PORT + port);
        let name_to = socket::at(ends[1].1, NAME_SERVER_PORT + port);
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
            (&listener, LISTENER),
            (&name_client, NAME_CLIENT),
            (&name_server, NAME_SERVER),
        ];
        for (end, role) in waiting {
            poller
                .watch(end, EpollFlags::EPOLLIN, token | role)
                .map_err(place)?;
        }
        Ok(Self {
            loader: PageLoader::new(page, index),
            token,
            congestion_control: congestion_control.to_owned(),
            dscp: page.dscp,
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
    pub(crate) fn arm_ns(&mut self) -> Option<u64> {
        let due_ns = self.loader.due_ns()?;
        let is_new = self.armed_ns.is_none_or(|armed_ns| due_ns < armed_ns);
        is_new.then(|| *self.armed_ns.insert(due_ns))
    }

    /// A timer of the page may have expired.
    pub(crate) fn on_timer(&mut self, context: &Context) -> io::Result<()> {
        if self
            .armed_ns
            .is_some_and(|armed_ns| armed_ns <= context.t_ns)
        {
            self.armed_ns = None;
        }
        self.loader.on_timer(context.t_ns, &mut self.steps);
        self.do_steps(context)
    }

    /// A socket is ready; `below` are the bits of the token below the page's.
    pub(crate) fn handle(
        &mut self,
        below: u64,
        flags: EpollFlags,
        context: &Context,
    ) -> io::Result<()> {
        let number = (below >> 3) as usize;
        match below & 7 {
            LISTENER => self.accept(context)?,
            NAME_CLIENT => self.answers()?,
            NAME_SERVER => self.answer()?,
            CLIENT => self.client(number, flags, context)?,
            SERVER => self.server(number, context)?,
            _ => {}
        }
        self.do_steps(context)
    }

    /// Rows of loads that have ended; at the end, of all.
    pub(crate) fn rows(&mut self, is_end: bool, mut put: impl FnMut(Frame)) {
        let (loads, objects) = self.loader.take_rows(is_end);
        loads.into_iter().map(Frame::Page).for_each(&mut put);
        objects.into_iter().map(Frame::Object).for_each(&mut put);
    }

    fn accept(&mut self, context: &Context) -> io::Result<()> {
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
            setsockopt(&server, sockopt::TcpNoDelay, &true)?;
            let token = self.token | (number as u64) << 3 | SERVER;
            context.poller.watch(&server, both_flags(), token)?;
            self.slots[number].server = Some(server);
        }
    }

    fn answers(&mut self) -> io::Result<()> {
        let mut packet = [0u8; 256];
        while let Some((count, _)) = received(&self.name_client, &mut packet)? {
            if let Some(raw) = packet[..count].first_chunk() {
                self.loader
                    .on_answer(u32::from_be_bytes(*raw), &mut self.steps);
            }
        }
        Ok(())
    }

    fn answer(&mut self) -> io::Result<()> {
        let mut packet = [0u8; 256];
        while let Some((_, from)) = received(&self.name_server, &mut packet)? {
            if let Some(from) = from {
                send_datagram(&self.name_server, &packet[..ANSWER_BYTES], &from)?;
            }
        }
        Ok(())
    }

    fn client(&mut self, number: usize, flags: EpollFlags, context: &Context) -> io::Result<()> {
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
            self.loader
                .on_open(number as u32, context.t_ns, &mut self.steps);
        }
        while let Some(bytes) = socket::discard(client)?.filter(|&bytes| bytes > 0) {
            self.loader
                .on_response_bytes(number as u32, bytes, context.t_ns, &mut self.steps);
        }
        Ok(())
    }

    fn server(&mut self, number: usize, context: &Context) -> io::Result<()> {
        let server = self.slots.get(number).and_then(|slot| slot.server.as_ref());
        let Some(server) = server else {
            return Ok(());
        };
        while let Some(bytes) = socket::discard(server)?.filter(|&bytes| bytes > 0) {
            self.loader
                .on_request_bytes(number as u32, bytes, context.t_ns, &mut self.steps);
        }
        self.serve(number, context)
    }

    /// Writes what the server has, until TCP takes no more.
    fn serve(&mut self, number: usize, context: &Context) -> io::Result<()> {
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
            match context.payload.send(server, slot.backlog_bytes)? {
                Some(sent) => slot.backlog_bytes -= sent,
                None => return Ok(()),
            }
        }
    }

    fn do_steps(&mut self, context: &Context) -> io::Result<()> {
        while !self.steps.is_empty() {
            for step in std::mem::take(&mut self.steps) {
                match step {
                    Step::Lookup(number) => {
                        let mut query = [0u8; QUERY_BYTES];
                        query[..4].copy_from_slice(&number.to_be_bytes());
                        let to = SockaddrIn::from(self.name_to);
                        send_datagram(&self.name_client, &query, &to)?;
                    }
                    Step::Open(number) => self.connect(number as usize, context)?,
                    Step::Request(number, bytes) => {
                        if let Some(client) = &self.slots[number as usize].client {
                            // A request is smaller than any send buffer.
                            context.payload.send(client, u64::from(bytes))?;
                        }
                    }
                    Step::Respond(number) => self.serve(number as usize, context)?,
                    Step::Close(number) => self.slots[number as usize] = Slot::default(),
                }
            }
        }
        Ok(())
    }

    fn connect(&mut self, number: usize, context: &Context) -> io::Result<()> {
        let port = CLIENT_PORT + self.opened % CLIENT_PORTS;
        self.opened = self.opened.wrapping_add(1) % CLIENT_PORTS;
        context.nodes[self.ends[0].0]
            .enter()
            .map_err(io::Error::other)?;
        let client = socket::tcp(socket::at(self.ends[0].1, port))?;
        socket::set_congestion_control(&client, &self.congestion_control)?;
        socket::set_dscp(&client, self.dscp)?;
        setsockopt(&client, sockopt::TcpNoDelay, &true)?;
        let token = self.token | (number as u64) << 3 | CLIENT;
        context.poller.watch(&client, both_flags(), token)?;
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

/// One stream of datagrams of the plan.
pub(crate) struct StreamFlow {
    source: DatagramSource,
    stream_id: u64,
    socket: OwnedFd,
    sink: OwnedFd,
    to: SockaddrIn,
    /// Rows not returned yet, with the time of sending.
    pending: VecDeque<(u64, DatagramRow)>,
    packet: Vec<u8>,
}

impl StreamFlow {
    /// Both sockets; events carry `token`.
    pub(crate) fn open(
        stream: &Datagrams,
        index: u32,
        seed: u64,
        nodes: &[Node],
        ends: [(usize, Ipv4Addr); 2],
        poller: &Poller,
        token: u64,
    ) -> Result<Self, String> {
        let place = |error: io::Error| format!("udp {}: {error}", stream.name);
        let [from, to] = match stream.direction {
            FlowDirection::Up => ends,
            FlowDirection::Down => [ends[1], ends[0]],
        };
        nodes[from.0].enter()?;
        let socket = socket::udp(socket::at(from.1, STREAM_PORT + index as u16)).map_err(place)?;
        socket::set_dscp(&socket, stream.dscp).map_err(place)?;
        nodes[to.0].enter()?;
        let to = socket::at(to.1, SINK_PORT + index as u16);
        let sink = socket::udp(to).map_err(place)?;
        poller
            .watch(&sink, EpollFlags::EPOLLIN, token)
            .map_err(place)?;
        Ok(Self {
            source: DatagramSource::new(stream, seed),
            stream_id: u64::from(index),
            socket,
            sink,
            to: SockaddrIn::from(to),
            pending: VecDeque::new(),
            packet: vec![0; stream.payload_bytes.max(16) as usize],
        })
    }

    /// When the next datagram leaves.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.source.due_ns()
    }

    /// Sends what is due; `t_ns` is since the start of the run.
    pub(crate) fn send(&mut self, t_ns: u64) -> io::Result<()> {
        while let Some(datagram) = self.source.take(t_ns) {
            self.packet[..8].copy_from_slice(&datagram.seq.to_be_bytes());
            let bytes = &self.packet[..datagram.bytes.max(8) as usize];
            let row = DatagramRow {
                t_us: t_ns / 1000,
                stream_id: self.stream_id,
                seq: datagram.seq,
                frame: datagram.frame,
                bytes: u64::from(datagram.bytes),
                delay_us: None,
            };
            self.pending.push_back((t_ns, row));
            send_datagram(&self.socket, bytes, &self.to)?;
        }
        Ok(())
    }

    /// Reads what has arrived.
    pub(crate) fn receive(&mut self, t_ns: u64) -> io::Result<()> {
        let mut packet = [0u8; 16];
        while let Some((count, _)) = received(&self.sink, &mut packet)? {
            let (Some(raw), Some(first)) = (packet[..count].first_chunk(), self.pending.front())
            else {
                continue;
            };
            let place = u64::from_be_bytes(*raw).checked_sub(first.1.seq);
            let row = place.and_then(|place| self.pending.get_mut(place as usize));
            if let Some((sent_ns, row)) = row {
                row.delay_us.get_or_insert((t_ns - *sent_ns) / 1000);
            }
        }
        Ok(())
    }

    /// Rows of datagrams that arrived or are lost, in the order of sending; at the end all others too.
    pub(crate) fn rows(&mut self, t_ns: u64, is_end: bool, mut put: impl FnMut(DatagramRow)) {
        while let Some((sent_ns, row)) = self.pending.front() {
            let is_lost = is_end || t_ns - sent_ns > LOST_AFTER_NS;
            if row.delay_us.is_none() && !is_lost {
                break;
            }
            if let Some((_, row)) = self.pending.pop_front() {
                put(row);
            }
        }
    }
}

fn both_flags() -> EpollFlags {
    EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET
}

/// The next datagram's length and sender; `None`: there is none.
fn received(
    socket: &OwnedFd,
    packet: &mut [u8],
) -> io::Result<Option<(usize, Option<SockaddrIn>)>> {
    match recvfrom::<SockaddrIn>(socket.as_raw_fd(), packet) {
        Ok(got) => Ok(Some(got)),
        Err(nix::Error::EAGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A datagram for which the device has no room is lost, as it would be in a queue.
fn send_datagram(socket: &OwnedFd, bytes: &[u8], to: &SockaddrIn) -> io::Result<()> {
    match sendto(socket.as_raw_fd(), bytes, to, MsgFlags::empty()) {
        Ok(_) | Err(nix::Error::EAGAIN | nix::Error::ENOBUFS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
