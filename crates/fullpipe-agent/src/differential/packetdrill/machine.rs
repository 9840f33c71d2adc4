//! A kernel's TCP as programs see it.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{channel, Receiver, TryRecvError};
use std::sync::Arc;

use fullpipe_differential::packetdrill::{Call, Halt, Returned, Segment, TcpOption, Until, SYN};
use nix::poll::{PollFd, PollFlags};

use super::super::alarm::Alarm;
use super::super::arena::{route, Arena, BIGGEST_PACKET, PEER_SEQUENCE};
use super::super::wire::Route;
use super::calls::{may_wait, socket, Prepared};
use super::info::fields;
use super::wire::{bytes, read, Origins};
use crate::clock::{now_ns, sleep_until};
use crate::sample::TcpInfo;
use crate::socket::reset_at_close;

/// What the kernel does because of a packet is over in this time.
const SETTLE_NS: u64 = 100_000;
/// Ports of programs.
const LOCAL_PORTS: u16 = 8_080;
/// Most bytes of one call, and of an option.
const BIGGEST_CALL: u32 = 16 << 20;
const BIGGEST_OPTION: u32 = 4_096;

/// What a thread that waits in a call sends when it returns.
type Outcome = (u64, Returned, Option<OwnedFd>);

/// This kernel.
pub(super) struct Machine<'a> {
    arena: &'a mut Arena,
    route: Route,
    start_ns: u64,
    /// Descriptors of the program.
    sockets: HashMap<i32, Arc<OwnedFd>>,
    /// That of the connection.
    connection: Option<i32>,
    origins: Origins,
    sent: Vec<Segment>,
    returned: Option<(u64, Returned)>,
    waiting: Option<Waiting>,
    buffer: Vec<u8>,
    alarm: Alarm,
}

/// A call that a thread has made.
struct Waiting {
    new_fd: Option<i32>,
    outcome: Receiver<Outcome>,
    /// Closed when there is an outcome.
    bell: UnixStream,
}

impl<'a> Machine<'a> {
    /// Waits until a program may begin.
    pub(super) fn open(arena: &'a mut Arena, number: usize) -> Result<Self, String> {
        arena.host().enter()?;
        let start_ns = arena.next_start_ns();
        sleep_until(start_ns);
        Ok(Self {
            route: route(number, LOCAL_PORTS),
            arena,
            start_ns,
            sockets: HashMap::new(),
            connection: None,
            origins: Origins {
                peer: PEER_SEQUENCE,
                own: 0,
            },
            sent: Vec::new(),
            returned: None,
            waiting: None,
            buffer: vec![0; BIGGEST_PACKET],
            alarm: Alarm::new()?,
        })
    }

    fn time_us(&self) -> u64 {
        now_ns().saturating_sub(self.start_ns) / 1000
    }

    /// Notes the packets that the socket has sent.
    fn collect(&mut self) -> Result<(), Halt> {
        loop {
            let received = self.arena.receive(&mut self.buffer).map_err(failed)?;
            let Some(length) = received else {
                return Ok(());
            };
            let Some(((from, to), segment)) = read(&self.buffer[..length]) else {
                continue;
            };
            if to != self.route.from.1 {
                continue;
            }
            // A socket that was not bound has a port of its own.
            self.route.to.1 = from;
            self.note(segment);
        }
    }

    fn note(&mut self, mut segment: Segment) {
        if segment.has(SYN) {
            self.origins.own = segment.sequence;
        }
        segment.at_us = self.time_us();
        segment.sequence = segment.sequence.wrapping_sub(self.origins.own);
        if segment.ack != 0 {
            segment.ack = segment.ack.wrapping_sub(self.origins.peer);
        }
        for option in &mut segment.options {
            if let TcpOption::Sack(blocks) = option {
                for (start, end) in blocks {
                    *start = start.wrapping_sub(self.origins.peer);
                    *end = end.wrapping_sub(self.origins.peer);
                }
            }
        }
        self.sent.push(segment);
    }

    /// Notes what a waiting call has returned.
    fn hear(&mut self) {
        let Some(waiting) = &mut self.waiting else {
            return;
        };
        match waiting.outcome.try_recv() {
            Ok((at_us, mut returned, accepted)) => {
                if let (Some(fd), Some(socket)) = (waiting.new_fd, accepted) {
                    self.sockets.insert(fd, Arc::new(socket));
                    self.connection = Some(fd);
                    // The script's number of it.
                    returned.value = fd.into();
                }
                self.waiting = None;
                self.returned = Some((at_us, returned));
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => self.waiting = None,
        }
    }

    fn wait(&mut self, until_ns: u64, until: Until) -> Result<(), Halt> {
        loop {
            self.collect()?;
            self.hear();
            let is_over = match until {
                Until::Time => false,
                Until::Packet => !self.sent.is_empty(),
                Until::Return => self.returned.is_some(),
            };
            if is_over || now_ns() >= until_ns {
                return Ok(());
            }
            let packets = self.arena.packets().as_fd();
            let mut ready = vec![PollFd::new(packets, PollFlags::POLLIN)];
            if let Some(waiting) = &self.waiting {
                ready.push(PollFd::new(waiting.bell.as_fd(), PollFlags::POLLIN));
            }
            self.alarm
                .wait(until_ns, &mut ready)
                .map_err(Halt::Failed)?;
        }
    }

    fn fd(&self, fd: i32) -> Option<Arc<OwnedFd>> {
        self.sockets.get(&fd).cloned()
    }

    fn return_now(&mut self, returned: Returned) {
        self.returned = Some((self.time_us(), returned));
    }

    /// A thread makes the call, since it may wait.
    fn spawn(&mut self, prepared: Prepared) -> Result<(), Halt> {
        let (tell, outcome) = channel();
        let (bell, ringer) = UnixStream::pair().map_err(failed)?;
        bell.set_nonblocking(true).map_err(failed)?;
        let new_fd = match prepared.call {
            Call::Accept { new_fd, .. } => Some(new_fd),
            _ => None,
        };
        let start_ns = self.start_ns;
        std::thread::spawn(move || {
            let (returned, accepted) = prepared.make();
            let at_us = now_ns().saturating_sub(start_ns) / 1000;
            // Nobody listens if the program has ended.
            let _ = tell.send((at_us, returned, accepted));
            drop(ringer);
        });
        self.waiting = Some(Waiting {
            new_fd,
            outcome,
            bell,
        });
        Ok(())
    }
}

fn failed(error: std::io::Error) -> Halt {
    Halt::Failed(error.to_string())
}

impl fullpipe_differential::packetdrill::Machine for Machine<'_> {
    fn now_us(&self) -> u64 {
        self.time_us()
    }

    fn advance(&mut self, until_us: u64, until: Until) -> Result<(), Halt> {
        self.wait(self.start_ns + until_us * 1000, until)
    }

    fn call(&mut self, call: &Call, _blocks: bool) -> Result<(), Halt> {
        let size = match call {
            Call::Write { bytes, .. } | Call::Read { bytes, .. } => *bytes / BIGGEST_CALL,
            Call::Getsockopt { length, .. } => *length / BIGGEST_OPTION,
            _ => 0,
        };
        if size > 0 {
            return Err(Halt::Unsupported("calls of more than 16 MiB".to_owned()));
        }
        let fd = match *call {
            Call::Socket { fd, nonblocking } => {
                let returned = match socket(nonblocking) {
                    Ok(socket) => {
                        self.sockets.insert(fd, Arc::new(socket));
                        Returned::of(fd.into())
                    }
                    Err(errno) => Returned::error(errno),
                };
                self.return_now(returned);
                return Ok(());
            }
            Call::Close { fd } => {
                let returned = match self.sockets.remove(&fd) {
                    Some(_) => Returned::of(0),
                    None => Returned::error(libc::EBADF),
                };
                self.return_now(returned);
                return Ok(());
            }
            Call::Connect { fd } => {
                self.connection = Some(fd);
                fd
            }
            Call::Setsockopt { fd, .. }
            | Call::Getsockopt { fd, .. }
            | Call::Bind { fd }
            | Call::Listen { fd, .. }
            | Call::Accept { fd, .. }
            | Call::Fcntl { fd, .. }
            | Call::Write { fd, .. }
            | Call::Read { fd, .. }
            | Call::Shutdown { fd, .. } => fd,
        };
        let Some(socket) = self.fd(fd) else {
            self.return_now(Returned::error(libc::EBADF));
            return Ok(());
        };
        let prepared = Prepared {
            call: call.clone(),
            socket,
            route: self.route,
        };
        if may_wait(call) {
            self.spawn(prepared)?;
            // Mostly it returns at once.
            return self.wait(now_ns() + SETTLE_NS, Until::Return);
        }
        let (returned, _) = prepared.make();
        self.return_now(returned);
        Ok(())
    }

    fn take_returned(&mut self) -> Option<(u64, Returned)> {
        self.returned.take()
    }

    fn inject(&mut self, segment: &Segment) -> Result<(), Halt> {
        let packet = bytes(segment, self.route, self.origins);
        self.arena.inject(&packet).map_err(failed)?;
        self.wait(now_ns() + SETTLE_NS, Until::Time)
    }

    fn take_sent(&mut self) -> Vec<Segment> {
        std::mem::take(&mut self.sent)
    }

    fn info(&mut self) -> Result<BTreeMap<String, u64>, Halt> {
        let socket = self.connection.and_then(|fd| self.fd(fd));
        let missing = || Halt::Failed("tcp_info: there is no connection".to_owned());
        let (info, bytes) = TcpInfo::with_length(&*socket.ok_or_else(missing)?).map_err(failed)?;
        Ok(fields(&info, bytes))
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        for socket in self.sockets.values() {
            reset_at_close(socket);
            // A thread that waits in a call returns.
            let _ = nix::sys::socket::shutdown(
                std::os::fd::AsRawFd::as_raw_fd(&**socket),
                nix::sys::socket::Shutdown::Both,
            );
        }
    }
}
