//! Sockets with fixed addresses and ports, so that runs repeat. It must never know what a plan is.

use std::io;
use std::mem::size_of;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::memfd::{memfd_create, MFdFlags};
use nix::sys::socket::{
    bind, getsockopt, recvfrom, sendto, setsockopt, socket, sockopt, AddressFamily, MsgFlags,
    SockFlag, SockProtocol, SockType, SockaddrIn,
};

/// Bytes that one call of sendfile() may hand over.
const PAYLOAD_BYTES: usize = 1 << 20;
/// The same where the buffer is looked at: what sendfile() hands to TCP at once.
const BURST_BYTES: usize = 64 << 10;
/// Buffers of this size limit nothing on the paths that fit into a machine's memory.
const LARGE_BUFFER_BYTES: u64 = 16 << 20;
/// ECN's bits of the byte that IP_TOS is (INET_ECN_MASK).
const ECN_BITS: i32 = 3;
/// More than TCP can have queued.
const READ_BYTES: usize = 1 << 30;

/// A TCP socket, bound to an address; a port of 0 leaves the port to the kernel.
pub(crate) fn tcp(address: SocketAddrV4) -> io::Result<OwnedFd> {
    let socket = make(SockType::Stream, SockProtocol::Tcp)?;
    setsockopt(&socket, sockopt::ReuseAddr, &true)?;
    bind(socket.as_raw_fd(), &SockaddrIn::from(address))?;
    Ok(socket)
}

/// A UDP socket, bound to an address.
pub(crate) fn udp(address: SocketAddrV4) -> io::Result<OwnedFd> {
    let socket = make(SockType::Datagram, SockProtocol::Udp)?;
    bind(socket.as_raw_fd(), &SockaddrIn::from(address))?;
    Ok(socket)
}

/// A ping socket; the port becomes the echo identifier.
pub(crate) fn ping(address: SocketAddrV4) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket() takes no pointers; the new descriptor has no other owner.
    let socket = unsafe {
        let raw = libc::socket(libc::AF_INET, flags, libc::IPPROTO_ICMP);
        nix::errno::Errno::result(raw).map(|raw| OwnedFd::from_raw_fd(raw))?
    };
    bind(socket.as_raw_fd(), &SockaddrIn::from(address))?;
    Ok(socket)
}

fn make(kind: SockType, protocol: SockProtocol) -> io::Result<OwnedFd> {
    Ok(socket(
        AddressFamily::Inet,
        kind,
        SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
        protocol,
    )?)
}

/// Sets O_NONBLOCK.
pub(crate) fn make_nonblocking(socket: &OwnedFd) -> io::Result<()> {
    use nix::fcntl::{fcntl, FcntlArg, OFlag};
    fcntl(socket, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(())
}

/// Gives a socket its congestion control by the kernel's name.
pub(crate) fn set_congestion_control(socket: &OwnedFd, name: &str) -> io::Result<()> {
    Ok(setsockopt(socket, sockopt::TcpCongestion, &name.into())?)
}

/// Whether a congestion control of the kernel is at work only with ECN (TCP_CONG_NEEDS_ECN): its
/// sockets' packets can carry marks from the SYN on, which a listening socket takes for ECN only if
/// its own needs ECN too (tcp_ecn_create_request()). False for a name that the kernel does not have.
pub(crate) fn needs_ecn(name: &str) -> bool {
    let can_carry_marks = || -> io::Result<bool> {
        let socket = make(SockType::Stream, SockProtocol::Tcp)?;
        set_congestion_control(&socket, name)?;
        Ok(getsockopt(&socket, sockopt::Ipv4Tos)? & ECN_BITS != 0)
    };
    can_carry_marks().unwrap_or(false)
}

/// Keeps the unsent part of the send buffer short.
pub(crate) fn set_unsent_limit(socket: &OwnedFd, bytes: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes)
}

/// Sets the DSCP of all that the socket sends; connections accepted by a listening socket inherit it.
/// A new socket has 0.
pub(crate) fn set_dscp(socket: &OwnedFd, dscp: u8) -> io::Result<()> {
    if dscp == 0 {
        return Ok(());
    }
    set(socket, libc::IPPROTO_IP, libc::IP_TOS, u32::from(dscp) << 2)
}

/// Wakes the application when this much has arrived, or no more will (SO_RCVLOWAT).
pub(crate) fn set_low_water(socket: &OwnedFd, bytes: u32) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes)
}

/// Makes the kernel report (EPOLLERR) when the last byte of a send() has been acknowledged
/// (Documentation/networking/timestamping.rst). Packets stay the same.
pub(crate) fn ask_for_acknowledgement(socket: &OwnedFd) -> io::Result<()> {
    let flags = libc::SOF_TIMESTAMPING_TX_ACK | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags)
}

/// Discards the kernel's reports of acknowledgements; returns whether there were any.
pub(crate) fn forget_stamps(socket: &OwnedFd) -> io::Result<bool> {
    let mut has_told = false;
    loop {
        // SAFETY: a null buffer of no bytes; recv() writes nothing.
        let got = unsafe {
            libc::recv(
                socket.as_raw_fd(),
                std::ptr::null_mut(),
                0,
                libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT,
            )
        };
        match nix::errno::Errno::result(got) {
            Ok(_) => has_told = true,
            Err(nix::Error::EAGAIN) => return Ok(has_told),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Gives a socket a receive buffer that autotuning leaves alone, large enough for `bytes` of window
/// in whatever packets they come, and limits the window itself.
pub(crate) fn fix_receive_window(socket: &OwnedFd, bytes: u32) -> io::Result<()> {
    let buffer = bytes.saturating_mul(4).min(i32::MAX as u32 / 2);
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, buffer)?;
    limit_receive_window(socket, bytes)
}

/// Limits the window. The kernel forgets it when the size of packets changes
/// (tcp_measure_rcv_mss() since Linux 6.6), so it is set again with data.
pub(crate) fn limit_receive_window(socket: &OwnedFd, bytes: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, bytes)
}

/// Limits the rate at which TCP, or fq below it, spaces packets (socket(7) has no word of it;
/// sk_setsockopt(), SO_MAX_PACING_RATE).
pub(crate) fn limit_pacing(socket: &OwnedFd, bytes_per_s: u64) -> io::Result<()> {
    set(
        socket,
        libc::SOL_SOCKET,
        libc::SO_MAX_PACING_RATE,
        bytes_per_s,
    )
}

fn set<T: Copy>(socket: &OwnedFd, level: i32, option: i32, value: T) -> io::Result<()> {
    // SAFETY: the option takes an int or an unsigned long, which outlives the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    nix::errno::Errno::result(done)?;
    Ok(())
}

/// Makes close() reset the connection, so that its port is free at once (SO_LINGER).
pub(crate) fn reset_at_close(socket: &OwnedFd) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    // A socket that is closed already cannot be reset.
    let _ = setsockopt(socket, sockopt::Linger, &linger);
}

/// Begins to connect; the socket becomes writable when it is done.
pub(crate) fn connect(socket: &OwnedFd, to: SocketAddrV4) -> io::Result<()> {
    match nix::sys::socket::connect(socket.as_raw_fd(), &SockaddrIn::from(to)) {
        Ok(()) | Err(nix::Error::EINPROGRESS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The socket's pending error (SO_ERROR), such as a refused connection.
pub(crate) fn pending_error(socket: &OwnedFd) -> Option<io::Error> {
    let number = nix::sys::socket::getsockopt(socket, sockopt::SocketError).unwrap_or(0);
    (number != 0).then(|| io::Error::from_raw_os_error(number))
}

/// Takes a connection from a listening socket.
pub(crate) fn accept(listener: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let raw = nix::sys::socket::accept4(listener.as_raw_fd(), flags)?;
    // SAFETY: the new descriptor has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Discards what a TCP socket has received, without copying (tcp(7), MSG_TRUNC). `None`: nothing
/// was received; `Some(0)`: the other side has closed.
pub(crate) fn discard(socket: &OwnedFd) -> io::Result<Option<u64>> {
    // SAFETY: with MSG_TRUNC, TCP writes nothing to the buffer.
    let count = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            std::ptr::null_mut(),
            READ_BYTES,
            libc::MSG_TRUNC | libc::MSG_DONTWAIT,
        )
    };
    if count >= 0 {
        return Ok(Some(count as u64));
    }
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::WouldBlock => Ok(None),
        _ => Err(error),
    }
}

/// The next datagram's length and sender; `None`: there is none.
pub(crate) fn receive_datagram(
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
pub(crate) fn send_datagram(socket: &OwnedFd, bytes: &[u8], to: &SockaddrIn) -> io::Result<()> {
    match sendto(socket.as_raw_fd(), bytes, to, MsgFlags::empty()) {
        Ok(_) | Err(nix::Error::EAGAIN | nix::Error::ENOBUFS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What all flows send: pages that the kernel refers to instead of copying.
///
/// TCP tells a full send buffer when it begins another packet buffer, and not while it appends to one
/// whose first part it has sent. On a host the device holds what was sent, so that TCP small queues
/// stop this; here devices are pairs of veth, which hold nothing. Where buffers are small, the
/// application therefore looks before it writes.
pub(crate) struct Payload {
    pages: OwnedFd,
    looks: bool,
}

impl Payload {
    /// For send buffers up to this size.
    pub(crate) fn new(buffer_bytes: u64) -> io::Result<Self> {
        let pages = memfd_create(c"payload", MFdFlags::MFD_CLOEXEC)?;
        let zeros = vec![0u8; PAYLOAD_BYTES];
        let mut file = std::fs::File::from(pages);
        io::Write::write_all(&mut file, &zeros)?;
        Ok(Self {
            pages: file.into(),
            looks: buffer_bytes < LARGE_BUFFER_BYTES,
        })
    }

    /// Hands up to `bytes` to a socket; `None`: it takes no more now.
    pub(crate) fn send(&self, socket: &OwnedFd, bytes: u64) -> io::Result<Option<u64>> {
        if self.looks && is_full(socket)? {
            return Ok(None);
        }
        let most = match self.looks {
            true => BURST_BYTES,
            false => PAYLOAD_BYTES,
        };
        let mut offset: libc::off_t = 0;
        let count = usize::try_from(bytes).map_or(most, |bytes| bytes.min(most));
        // SAFETY: the offset outlives the call.
        let sent = unsafe {
            libc::sendfile(
                socket.as_raw_fd(),
                self.pages.as_raw_fd(),
                &raw mut offset,
                count,
            )
        };
        if sent >= 0 {
            return Ok(Some(sent as u64));
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::WouldBlock => Ok(None),
            _ => Err(error),
        }
    }
}

/// Whether the send buffer is full, as TCP judges it (__sk_stream_memory_free()). If so, an event comes
/// when it no longer is.
fn is_full(socket: &OwnedFd) -> io::Result<bool> {
    /// Places in the answer to SO_MEMINFO (linux/sock_diag.h).
    const SNDBUF: usize = 3;
    const WMEM_QUEUED: usize = 5;
    let mut figures = [0u32; 9];
    let mut length = size_of_val(&figures) as libc::socklen_t;
    // SAFETY: the figures and their length outlive the call.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            figures.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    if figures[WMEM_QUEUED] < figures[SNDBUF] {
        return Ok(false);
    }
    // Asking is what makes TCP tell (tcp_poll() sets SOCK_NOSPACE).
    let mut asked = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
    poll(&mut asked, PollTimeout::ZERO)?;
    Ok(true)
}

/// `address:port`.
pub(crate) fn at(address: Ipv4Addr, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(address, port)
}
