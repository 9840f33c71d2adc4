//! Connections that other threads made, handed over to the thread that measures. That thread waits in
//! epoll, so an eventfd announces them.

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
use super::timed::Timed;
use crate::socket;

/// How long the handshake of a connection may take as a whole.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// A flow and its connection, ready for data, or the error.
pub(crate) type Arrival = (usize, io::Result<OwnedFd>);

/// The receiving end of the hand-over.
pub(crate) struct Arrivals {
    waiting: Receiver<Arrival>,
    ready: Arc<EventFd>,
}

/// The sending end of the hand-over.
#[derive(Clone)]
pub(crate) struct ArrivalSender {
    hand_over: Sender<Arrival>,
    ready: Arc<EventFd>,
}

/// A session's side of the connection to its peer.
pub(crate) struct PeerLink {
    pub(crate) arrivals: Arrivals,
    /// How to connect; `None` at the far end, which waits.
    pub(crate) dial: Option<Dial>,
}

/// How the near end connects to the far end.
pub(crate) struct Dial {
    pub(crate) to: SocketAddrV4,
    pub(crate) token: String,
    pub(crate) arrivals: ArrivalSender,
}

impl Arrivals {
    pub(crate) fn new() -> io::Result<(Self, ArrivalSender)> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let ready = Arc::new(EventFd::from_flags(flags)?);
        let (hand_over, waiting) = mpsc::channel();
        let sender = ArrivalSender {
            hand_over,
            ready: Arc::clone(&ready),
        };
        Ok((Self { waiting, ready }, sender))
    }

    /// Readable when there are arrivals.
    pub(crate) fn ready(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }

    /// All arrivals since the last call.
    pub(crate) fn take(&self) -> Vec<Arrival> {
        // An earlier call may have read the counter already.
        let _ = self.ready.read();
        self.waiting.try_iter().collect()
    }
}

impl ArrivalSender {
    /// Hands a connection over, or closes it if the run is over.
    pub(crate) fn hand_over(&self, arrival: Arrival) {
        if self.hand_over.send(arrival).is_ok() {
            let _ = self.ready.write(1);
        }
    }
}

impl PeerLink {
    /// Whether this is the near end, which has the scenario.
    pub(crate) fn is_near(&self) -> bool {
        self.dial.is_some()
    }

    /// Whether this end sends the flow's data and therefore measures it.
    pub(crate) fn sends(&self, flow: &Flow) -> bool {
        (flow.direction == FlowDirection::Up) == self.is_near()
    }

    /// The far end's address, at the near end.
    pub(crate) fn address(&self) -> Option<Ipv4Addr> {
        self.dial.as_ref().map(|dial| *dial.to.ip())
    }

    /// Starts to connect a flow at the near end; does nothing at the far end.
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
        let (to, token, arrivals) = (dial.to, dial.token.clone(), dial.arrivals.clone());
        std::thread::Builder::new()
            .name("dial".to_owned())
            .spawn(move || {
                let done = connect_peer(socket, to, &token, Purpose::Data(index as u32));
                arrivals.hand_over((index, done.map(OwnedFd::from)));
            })?;
        Ok(())
    }
}

/// Connects a socket and authenticates it.
pub(crate) fn connect_peer(
    socket: OwnedFd,
    to: SocketAddrV4,
    token: &str,
    purpose: Purpose,
) -> io::Result<TcpStream> {
    let mut stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(HANDSHAKE_TIMEOUT))?;
    connect(stream.as_raw_fd(), &SockaddrIn::from(to))?;
    let mut timed = Timed::new(&mut stream, HANDSHAKE_TIMEOUT);
    handshake::near(&mut timed, token, purpose)?;
    timed.end()?;
    Ok(stream)
}

/// Authenticates a connection that was accepted at the far end.
pub(crate) fn accept_peer(mut stream: TcpStream, token: &str) -> io::Result<(Purpose, TcpStream)> {
    let mut timed = Timed::new(&mut stream, HANDSHAKE_TIMEOUT);
    let purpose = handshake::far(&mut timed, token)?;
    timed.end()?;
    Ok((purpose, stream))
}
