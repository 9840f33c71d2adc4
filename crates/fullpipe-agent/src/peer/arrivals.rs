//! Connections that other threads made, handed to the thread that measures: it waits for descriptors
//! only, so an eventfd tells it that something has come.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::Arc;
use std::time::Duration;

use fullpipe_plan::{Flow, FlowDirection};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{connect, SockaddrIn};
use std::os::fd::AsRawFd;

use super::handshake::{self, Purpose};
use crate::flows::socket;

/// How long a connection and its handshake may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A flow's connection, ready for its data, or why there is none.
pub(crate) type Arrival = (usize, io::Result<OwnedFd>);

/// Where connections come in.
pub(crate) struct Arrivals {
    waiting: Receiver<Arrival>,
    bell: Arc<EventFd>,
}

/// Where they are handed over.
#[derive(Clone)]
pub(super) struct Door {
    hand_over: Sender<Arrival>,
    bell: Arc<EventFd>,
}

/// What a session needs of its peer.
pub(crate) struct Meeting {
    pub(crate) arrivals: Arrivals,
    /// The near end connects; the far end waits.
    pub(super) dial: Option<Dial>,
}

/// How the near end reaches the far end.
pub(super) struct Dial {
    pub(super) to: SocketAddrV4,
    pub(super) token: String,
    pub(super) door: Door,
}

impl Arrivals {
    pub(super) fn new() -> io::Result<(Self, Door)> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let bell = Arc::new(EventFd::from_flags(flags)?);
        let (hand_over, waiting) = mpsc::channel();
        let door = Door {
            hand_over,
            bell: Arc::clone(&bell),
        };
        Ok((Self { waiting, bell }, door))
    }

    /// Readable when something has come.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// All that has come.
    pub(crate) fn take(&self) -> Vec<Arrival> {
        // Nothing to read: another look took it already.
        let _ = self.bell.read();
        self.waiting.try_iter().collect()
    }
}

impl Door {
    /// Nobody behind the door: the run is over, and the connection closes.
    pub(super) fn hand_over(&self, arrival: Arrival) {
        if self.hand_over.send(arrival).is_ok() {
            let _ = self.bell.write(1);
        }
    }
}

impl Meeting {
    /// Whether this end has the scenario.
    pub(crate) fn is_near(&self) -> bool {
        self.dial.is_some()
    }

    /// Whether this end sends the flow's data, and so measures it.
    pub(crate) fn sends(&self, flow: &Flow) -> bool {
        (flow.direction == FlowDirection::Up) == self.is_near()
    }

    /// The far end's address, at the near end.
    pub(crate) fn address(&self) -> Option<Ipv4Addr> {
        self.dial.as_ref().map(|dial| *dial.to.ip())
    }

    /// The near end begins to connect; the far end has nothing to do.
    pub(crate) fn start(
        &self,
        index: usize,
        flow: &Flow,
        congestion_control: &str,
    ) -> io::Result<()> {
        let Some(dial) = &self.dial else {
            return Ok(());
        };
        let socket = socket::tcp(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))?;
        match flow.direction {
            FlowDirection::Up => socket::set_congestion_control(&socket, congestion_control)?,
            FlowDirection::Down => {
                if let Some(bytes) = flow.receive_window_bytes {
                    socket::fix_receive_window(&socket, bytes.try_into().unwrap_or(u32::MAX))?;
                }
            }
        }
        let (to, token, door) = (dial.to, dial.token.clone(), dial.door.clone());
        std::thread::Builder::new()
            .name("dial".to_owned())
            .spawn(move || {
                let done = reach(socket, to, &token, Purpose::Data(index as u32));
                door.hand_over((index, done.map(OwnedFd::from)));
            })?;
        Ok(())
    }
}

/// Connects a socket and proves who it is.
pub(super) fn reach(
    socket: OwnedFd,
    to: SocketAddrV4,
    token: &str,
    purpose: Purpose,
) -> io::Result<TcpStream> {
    let mut stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    connect(stream.as_raw_fd(), &SockaddrIn::from(to))?;
    handshake::near(&mut stream, token, purpose)?;
    Ok(stream)
}

/// The far end's part on a connection that somebody made.
pub(super) fn receive(mut stream: TcpStream, token: &str) -> io::Result<(Purpose, TcpStream)> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let purpose = handshake::far(&mut stream, token)?;
    Ok((purpose, stream))
}
