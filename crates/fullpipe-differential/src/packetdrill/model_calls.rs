//! System calls of the model's socket.

use super::machine::{Halt, Machine, Returned};
use super::model::Model;
use super::program::Call;
use super::settings::{IPPROTO_TCP, TCP_CONGESTION, TCP_NODELAY};

/// Linux's numbers (asm-generic/socket.h, linux/in.h, fcntl.h).
const SOL_SOCKET: i32 = 1;
const SO_REUSEADDR: i32 = 2;
const SO_SNDBUF: i32 = 7;
const SO_LINGER: i32 = 13;
const IPPROTO_IP: i32 = 0;
const IP_TOS: i32 = 1;
const IP_MTU_DISCOVER: i32 = 10;
const F_GETFL: i32 = 3;
const F_SETFL: i32 = 4;
const O_RDWR: i32 = 2;
const O_NONBLOCK: i32 = 0o4000;
const MSG_DONTWAIT: i32 = 0x40;
const MSG_NOSIGNAL: i32 = 0x4000;
const SHUT_WR: i32 = 1;
const EAGAIN: i32 = 11;
const EPIPE: i32 = 32;
const EINPROGRESS: i32 = 115;

impl Model {
    pub(super) fn do_call(&mut self, call: &Call, blocks: bool) -> Result<(), Halt> {
        match self.attempt(call)? {
            Some(returned) => self.returned = Some((self.now_us(), returned)),
            None if blocks || !self.is_nonblocking(call) => self.blocked = Some(call.clone()),
            None => {
                let errno = match call {
                    Call::Connect { .. } => EINPROGRESS,
                    _ => EAGAIN,
                };
                self.returned = Some((self.now_us(), Returned::error(errno)));
            }
        }
        Ok(())
    }

    /// A call that blocks may be able to return now.
    pub(super) fn retry(&mut self) {
        let Some(call) = self.blocked.take() else {
            return;
        };
        let is_waiting_to_connect = matches!(call, Call::Connect { .. }) && !self.is_established();
        let returned = match is_waiting_to_connect {
            true => None,
            false => self.again(&call),
        };
        match returned {
            Some(returned) => self.returned = Some((self.now_us(), returned)),
            None => self.blocked = Some(call),
        }
    }

    fn again(&mut self, call: &Call) -> Option<Returned> {
        match call {
            Call::Connect { .. } => Some(Returned::of(0)),
            _ => self.attempt(call).ok().flatten(),
        }
    }

    fn is_nonblocking(&self, call: &Call) -> bool {
        match *call {
            Call::Accept { fd, .. } | Call::Connect { fd } => {
                self.sockets.nonblocking.contains(&fd)
            }
            Call::Read { fd, flags, .. } => {
                flags & MSG_DONTWAIT != 0 || self.sockets.nonblocking.contains(&fd)
            }
            _ => false,
        }
    }

    /// `None`: the call would block.
    fn attempt(&mut self, call: &Call) -> Result<Option<Returned>, Halt> {
        let done = Ok(Some(Returned::of(0)));
        match *call {
            Call::Socket { fd, nonblocking } => {
                if nonblocking {
                    self.sockets.nonblocking.insert(fd);
                }
                Ok(Some(Returned::of(fd.into())))
            }
            Call::Setsockopt {
                level,
                name,
                ref value,
                ..
            } => {
                self.check_option(level, name, value)?;
                done
            }
            Call::Getsockopt { .. } => Err(unsupported("getsockopt()")),
            Call::Bind { .. } => done,
            Call::Listen { fd, .. } => {
                self.sockets.listener = Some(fd);
                self.listen();
                done
            }
            Call::Connect { fd } => {
                self.sockets.connection = Some(fd);
                self.connect();
                Ok(None)
            }
            Call::Accept { new_fd, .. } => Ok(match self.is_established() {
                true if self.sockets.connection.is_some() => {
                    return Err(unsupported("a second connection"));
                }
                true => {
                    self.sockets.connection = Some(new_fd);
                    Some(Returned::of(new_fd.into()))
                }
                false => None,
            }),
            Call::Fcntl {
                fd,
                command,
                argument,
            } => self.fcntl(fd, command, argument),
            Call::Write { fd, bytes, flags } => {
                if flags & !(MSG_DONTWAIT | MSG_NOSIGNAL) != 0 {
                    return Err(unsupported("flags of send()"));
                }
                if self.sockets.connection != Some(fd) || !self.is_established() {
                    return Err(unsupported("writing without a connection"));
                }
                if self.sockets.is_closed {
                    return Ok(Some(Returned::error(EPIPE)));
                }
                self.sockets.has_written = true;
                self.write(bytes.into());
                Ok(Some(Returned::of(bytes.into())))
            }
            Call::Read { bytes, flags, .. } => {
                if flags & !MSG_DONTWAIT != 0 {
                    return Err(unsupported("flags of recv()"));
                }
                let taken = self.readable_bytes().min(bytes.into());
                self.read_bytes += taken;
                Ok((taken > 0).then(|| Returned::of(taken as i64)))
            }
            Call::Shutdown { how, .. } => match how {
                SHUT_WR => self.finish_once(),
                _ => Err(unsupported("shutdown() of reading")),
            },
            Call::Close { fd } => match self.sockets.connection == Some(fd) {
                true if self.readable_bytes() > 0 => Err(unsupported("close() with unread data")),
                true => self.finish_once(),
                false => done,
            },
        }
    }

    fn finish_once(&mut self) -> Result<Option<Returned>, Halt> {
        if !self.is_established() {
            return Err(unsupported(
                "close() of a connection that is not established",
            ));
        }
        if !std::mem::replace(&mut self.sockets.is_closed, true) {
            self.finish();
        }
        Ok(Some(Returned::of(0)))
    }

    fn fcntl(&mut self, fd: i32, command: i32, argument: i32) -> Result<Option<Returned>, Halt> {
        let is_nonblocking = self.sockets.nonblocking.contains(&fd);
        match command {
            F_GETFL => {
                let flags = O_RDWR | if is_nonblocking { O_NONBLOCK } else { 0 };
                Ok(Some(Returned::of(flags.into())))
            }
            F_SETFL => {
                match argument & O_NONBLOCK {
                    0 => self.sockets.nonblocking.remove(&fd),
                    _ => self.sockets.nonblocking.insert(fd),
                };
                Ok(Some(Returned::of(0)))
            }
            _ => Err(unsupported("fcntl()")),
        }
    }

    fn check_option(&self, level: i32, name: i32, value: &[u8]) -> Result<(), Halt> {
        let number = value.first_chunk().copied().map_or(0, u32::from_le_bytes);
        match (level, name) {
            (SOL_SOCKET, SO_SNDBUF) if u64::from(number) >= self.settings.ample_bytes => Ok(()),
            (SOL_SOCKET, SO_REUSEADDR | SO_LINGER) | (IPPROTO_IP, IP_TOS | IP_MTU_DISCOVER) => {
                Ok(())
            }
            (IPPROTO_TCP, TCP_NODELAY | TCP_CONGESTION) if !self.sockets.has_written => Ok(()),
            _ => Err(unsupported("setsockopt()")),
        }
    }
}

fn unsupported(what: &str) -> Halt {
    Halt::Unsupported(what.to_owned())
}
