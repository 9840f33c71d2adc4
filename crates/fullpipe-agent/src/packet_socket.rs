//! Packet sockets: they write and read packets at a port by themselves, or see those of others.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// More than the packets of a script.
const BUFFER_BYTES: libc::c_int = 8 << 20;
/// More than the packets of all others between two looks.
const CAPTURE_BYTES: libc::c_int = 128 << 20;
const NS_PER_S: u64 = 1_000_000_000;

/// Where IPv4 packets go that a port sends to a neighbour; `mac: None`: the port itself.
pub(crate) fn link_address(index: u32, mac: Option<[u8; 6]>) -> libc::sockaddr_ll {
    // SAFETY: the struct consists of integers.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_IP as u16).to_be();
    address.sll_ifindex = index as i32;
    if let Some(mac) = mac {
        address.sll_halen = 6;
        address.sll_addr[..6].copy_from_slice(&mac);
    }
    address
}

/// A socket that writes and reads IP packets at a port of the namespace that the thread is in.
pub(crate) fn packet_socket(index: u32) -> io::Result<OwnedFd> {
    let socket = opened(libc::SOCK_DGRAM, &link_address(index, None))?;
    set_option(&socket, libc::SO_RCVBUFFORCE, BUFFER_BYTES)?;
    set_option(&socket, libc::SO_SNDBUFFORCE, BUFFER_BYTES)?;
    Ok(socket)
}

/// A socket that sees all frames that a port of that namespace sends and receives, with their times.
pub(crate) fn capture_socket(index: u32) -> io::Result<OwnedFd> {
    let mut address = link_address(index, None);
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    let socket = opened(libc::SOCK_RAW, &address)?;
    set_option(&socket, libc::SO_RCVBUFFORCE, CAPTURE_BYTES)?;
    set_option(&socket, libc::SO_TIMESTAMPNS, 1)?;
    Ok(socket)
}

fn opened(kind: libc::c_int, address: &libc::sockaddr_ll) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the new descriptor has no other owner; the address outlives the call that is given its
    // length.
    unsafe {
        let raw = libc::socket(libc::AF_PACKET, kind, 0);
        let socket = OwnedFd::from_raw_fd(nix::errno::Errno::result(raw)?);
        let bound = libc::bind(
            raw,
            std::ptr::from_ref(address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        );
        nix::errno::Errno::result(bound)?;
        Ok(socket)
    }
}

/// How many packets a socket had no room for since the last call.
pub(crate) fn missed(socket: &OwnedFd) -> io::Result<u32> {
    // struct tpacket_stats: packets and drops.
    let mut counted = [0u32; 2];
    let mut length = size_of::<[u32; 2]>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, and both outlive the call.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            counted.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    nix::errno::Errno::result(done)?;
    Ok(counted[1])
}

/// Sets a number of a socket.
pub(crate) fn set_option(
    socket: &OwnedFd,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the number outlives the call that is given its length.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    nix::errno::Errno::result(set)?;
    Ok(())
}

/// Sends an IP packet to a neighbour.
pub(crate) fn send(socket: &OwnedFd, to: &libc::sockaddr_ll, packet: &[u8]) -> io::Result<()> {
    // SAFETY: the address is plain data of the length given, and both outlive the call.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            packet.as_ptr().cast(),
            packet.len(),
            0,
            std::ptr::from_ref(to).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    nix::errno::Errno::result(sent)?;
    Ok(())
}

/// How long the next packet is, whose first bytes `buffer` then has, and when it passed, in ns of
/// CLOCK_REALTIME; `None`: there is none.
pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<Option<(usize, u64)>> {
    let mut control = [0u64; 8];
    let mut vector = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: the header is plain data that names buffers with their lengths, which outlive the call.
    let (received, stamp) = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut vector;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of::<[u64; 8]>() as _;
        let received = libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_TRUNC);
        (received, stamp_of(&header))
    };
    match nix::errno::Errno::result(received) {
        Ok(bytes) => Ok(Some((bytes as usize, stamp))),
        Err(nix::Error::EAGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The time of SCM_TIMESTAMPNS in ns; 0: there is none.
///
/// # Safety
/// The header's control buffer is what recvmsg() has filled.
unsafe fn stamp_of(header: &libc::msghdr) -> u64 {
    let first = libc::CMSG_FIRSTHDR(header);
    if first.is_null() || (*first).cmsg_type != libc::SCM_TIMESTAMPNS {
        return 0;
    }
    let time: libc::timespec = std::ptr::read_unaligned(libc::CMSG_DATA(first).cast());
    time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64
}
