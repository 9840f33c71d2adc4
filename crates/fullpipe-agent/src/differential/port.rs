//! Packet sockets: they write and read packets at a port by themselves.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// More than the packets of a script.
const BUFFER_BYTES: libc::c_int = 8 << 20;

/// Where IPv4 packets go that a port sends to a neighbour; `mac: None`: the port itself.
pub(super) fn link_address(index: u32, mac: Option<[u8; 6]>) -> libc::sockaddr_ll {
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
pub(super) fn packet_socket(index: u32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let address = link_address(index, None);
    // SAFETY: the new descriptor has no other owner; the address outlives the call that is given its
    // length.
    let socket = unsafe {
        let raw = libc::socket(libc::AF_PACKET, kind, 0);
        let socket = OwnedFd::from_raw_fd(nix::errno::Errno::result(raw)?);
        let bound = libc::bind(
            raw,
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        );
        nix::errno::Errno::result(bound)?;
        socket
    };
    set_option(&socket, libc::SO_RCVBUFFORCE, BUFFER_BYTES)?;
    set_option(&socket, libc::SO_SNDBUFFORCE, BUFFER_BYTES)?;
    Ok(socket)
}

/// Sets a number of a socket.
pub(super) fn set_option(
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
pub(super) fn send(socket: &OwnedFd, to: &libc::sockaddr_ll, packet: &[u8]) -> io::Result<()> {
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
