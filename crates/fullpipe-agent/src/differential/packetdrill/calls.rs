//! System calls of a program.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use fullpipe_differential::packetdrill::{Call, Returned};
use nix::errno::Errno;

use super::super::arena::{HOST, PEER};
use super::super::wire::Route;

/// A call with the sockets that it needs.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    pub(super) call: Call,
    pub(super) socket: Arc<OwnedFd>,
    pub(super) route: Route,
}

/// A socket.
pub(super) fn socket(nonblocking: bool) -> Result<OwnedFd, i32> {
    let flags = libc::SOCK_CLOEXEC | if nonblocking { libc::SOCK_NONBLOCK } else { 0 };
    // SAFETY: the new descriptor has no other owner.
    unsafe {
        let raw = libc::socket(libc::AF_INET, libc::SOCK_STREAM | flags, 0);
        match raw {
            -1 => Err(Errno::last_raw()),
            _ => Ok(OwnedFd::from_raw_fd(raw)),
        }
    }
}

/// Whether the kernel may keep the caller waiting.
pub(super) fn may_wait(call: &Call) -> bool {
    matches!(
        call,
        Call::Accept { .. } | Call::Connect { .. } | Call::Read { .. } | Call::Write { .. }
    )
}

impl Prepared {
    /// Makes the call; also the new socket of accept().
    pub(super) fn make(&self) -> (Returned, Option<OwnedFd>) {
        let fd = self.socket.as_raw_fd();
        let mut option = Vec::new();
        let mut accepted = None;
        // SAFETY: pointers are to memory that outlives the calls, of the lengths that are given; what accept()
        // returns has no other owner.
        let value = unsafe {
            match &self.call {
                Call::Socket { .. } | Call::Close { .. } => 0,
                Call::Bind { .. } => {
                    let to = address(HOST, self.route.to.1);
                    libc::bind(fd, (&raw const to).cast(), size_of_address()) as isize
                }
                Call::Listen { backlog, .. } => libc::listen(fd, *backlog) as isize,
                Call::Connect { .. } => {
                    let to = address(PEER, self.route.from.1);
                    libc::connect(fd, (&raw const to).cast(), size_of_address()) as isize
                }
                Call::Accept { .. } => {
                    let raw = libc::accept(fd, std::ptr::null_mut(), std::ptr::null_mut());
                    accepted = (raw >= 0).then(|| OwnedFd::from_raw_fd(raw));
                    raw as isize
                }
                Call::Setsockopt {
                    level, name, value, ..
                } => libc::setsockopt(
                    fd,
                    *level,
                    *name,
                    value.as_ptr().cast(),
                    value.len() as libc::socklen_t,
                ) as isize,
                Call::Getsockopt {
                    level,
                    name,
                    length,
                    ..
                } => {
                    option = vec![0_u8; *length as usize];
                    let mut got = *length as libc::socklen_t;
                    let done = libc::getsockopt(
                        fd,
                        *level,
                        *name,
                        option.as_mut_ptr().cast(),
                        &raw mut got,
                    );
                    option.truncate(got as usize);
                    done as isize
                }
                Call::Fcntl {
                    command, argument, ..
                } => libc::fcntl(fd, *command, *argument) as isize,
                Call::Write { bytes, flags, .. } => {
                    let payload = vec![0_u8; *bytes as usize];
                    libc::send(fd, payload.as_ptr().cast(), payload.len(), *flags)
                }
                Call::Read { bytes, flags, .. } => {
                    let mut payload = vec![0_u8; *bytes as usize];
                    libc::recv(fd, payload.as_mut_ptr().cast(), payload.len(), *flags)
                }
                Call::Shutdown { how, .. } => libc::shutdown(fd, *how) as isize,
            }
        };
        let errno = if value < 0 { Errno::last_raw() } else { 0 };
        let value = value as i64;
        (
            Returned {
                value,
                errno,
                option,
            },
            accepted,
        )
    }
}

fn address(host: std::net::Ipv4Addr, port: u16) -> libc::sockaddr_in {
    // SAFETY: the struct consists of integers.
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = libc::AF_INET as u16;
    address.sin_port = port.to_be();
    address.sin_addr.s_addr = u32::from_ne_bytes(host.octets());
    address
}

fn size_of_address() -> libc::socklen_t {
    std::mem::size_of::<libc::sockaddr_in>() as libc::socklen_t
}
