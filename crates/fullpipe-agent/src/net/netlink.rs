//! Route netlink: messages out, answers in. It knows the wire format (linux/netlink.h), and must
//! never know what a link or a qdisc is.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    bind, recv, send, socket, AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol,
    SockType,
};

const HEADER_BYTES: usize = 16;
const SOL_NETLINK: i32 = 270;
/// Attribute of an answer that holds an error message (linux/netlink.h, enum nlmsgerr_attrs).
const ERROR_SENTENCE: u16 = 1;
/// More than any single qdisc's statistics.
const ANSWER_BYTES: usize = 1 << 16;

pub(crate) const CREATE: u16 = (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
pub(crate) const ECHO: u16 = libc::NLM_F_ECHO as u16;
/// Answers until NLMSG_DONE, without an acknowledgement.
pub(crate) const DUMP: u16 = libc::NLM_F_DUMP as u16;

/// A request, or the contents of an attribute.
pub(crate) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// A request of this type with these flags, beginning with the fixed struct of its family.
    pub(crate) fn request(kind: u16, flags: u16, fixed: &[u8]) -> Self {
        let flags = flags | (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        let mut message = Self { bytes };
        message.put(fixed);
        message
    }

    /// Attributes without a request around them.
    pub(crate) fn attributes() -> Self {
        Self { bytes: Vec::new() }
    }

    /// Appends bytes, padded.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    pub(crate) fn attribute(&mut self, kind: u16, value: &[u8]) {
        let length = (value.len() + 4) as u16;
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.put(value);
    }

    pub(crate) fn attribute_u32(&mut self, kind: u16, value: u32) {
        self.attribute(kind, &value.to_ne_bytes());
    }

    pub(crate) fn attribute_u64(&mut self, kind: u16, value: u64) {
        self.attribute(kind, &value.to_ne_bytes());
    }

    /// Text with its final zero.
    pub(crate) fn attribute_text(&mut self, kind: u16, text: &str) {
        let mut value = text.as_bytes().to_vec();
        value.push(0);
        self.attribute(kind, &value);
    }

    /// An attribute that `fill` fills.
    pub(crate) fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.attribute(kind, &[]);
        fill(self);
        let length = (self.bytes.len() - start) as u16;
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A socket in the namespace in which it was opened.
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
    answer: Vec<u8>,
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Self> {
        let socket = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkRoute,
        )?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        let on: i32 = 1;
        // Extended acknowledgements explain errors; older kernels refuse them.
        // SAFETY: the option takes an int.
        unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                SOL_NETLINK,
                libc::NETLINK_EXT_ACK,
                (&raw const on).cast(),
                4,
            );
        }
        Ok(Self {
            socket,
            sequence: 0,
            answer: vec![0; ANSWER_BYTES],
        })
    }

    /// Sends a request and waits until the kernel has done it; the error is the kernel's message.
    pub(crate) fn ask(&mut self, message: Message) -> Result<(), String> {
        self.ask_for(message, |_| ())
    }

    /// As [`Netlink::ask`]; `each` is given the body of every answer.
    pub(crate) fn ask_for(
        &mut self,
        message: Message,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), String> {
        self.sequence += 1;
        let mut bytes = message.bytes;
        let length = bytes.len() as u32;
        bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        let told = |error: nix::Error| format!("netlink: {error}");
        send(self.socket.as_raw_fd(), &bytes, MsgFlags::empty()).map_err(told)?;
        loop {
            let count =
                recv(self.socket.as_raw_fd(), &mut self.answer, MsgFlags::empty()).map_err(told)?;
            let mut rest = &self.answer[..count];
            while let Some((kind, body, tail)) = next_message(rest) {
                rest = tail;
                if kind == libc::NLMSG_ERROR as u16 {
                    return verdict(body, bytes.len());
                }
                if kind == libc::NLMSG_DONE as u16 {
                    return Ok(());
                }
                each(body);
            }
        }
    }
}

fn next_message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    let body = bytes.get(HEADER_BYTES..length)?;
    let tail = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    Some((kind, body, tail))
}

/// An acknowledgement's error: the number, and the kernel's message if it gives one. The
/// request is repeated in between, its body only where there was an error.
fn verdict(body: &[u8], request_bytes: usize) -> Result<(), String> {
    let number = body.first_chunk().map_or(0, |raw| i32::from_ne_bytes(*raw));
    if number == 0 {
        return Ok(());
    }
    let error = io::Error::from_raw_os_error(-number);
    let tail = body.get(4 + request_bytes.next_multiple_of(4)..);
    let sentence = tail
        .and_then(|tail| attribute(tail, ERROR_SENTENCE))
        .map(|text| String::from_utf8_lossy(text.strip_suffix(&[0]).unwrap_or(text)).into_owned());
    Err(match sentence {
        Some(sentence) => format!("{error}: {sentence}"),
        None => error.to_string(),
    })
}

/// The first attribute of this type.
pub(crate) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    let mut rest = bytes;
    loop {
        let length = usize::from(u16::from_ne_bytes(*rest.first_chunk()?));
        // The two upper bits are flags (NLA_F_NESTED, NLA_F_NET_BYTEORDER).
        let found = u16::from_ne_bytes(*rest.get(2..)?.first_chunk()?) & 0x3fff;
        let value = rest.get(4..length)?;
        if found == kind {
            return Some(value);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

/// The `index`th u32 of a struct.
pub(crate) fn u32_at(bytes: &[u8], index: usize) -> Option<u32> {
    let raw = bytes.get(index * 4..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*raw))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_attributes_are_found_again_and_damage_ends_the_search() {
        let mut message = Message::attributes();
        message.attribute_text(1, "abc");
        message.nested(2, |inner| {
            inner.attribute_u32(7, 70);
            inner.attribute_u64(8, 80);
        });
        let bytes = message.bytes();
        assert_eq!(attribute(bytes, 1), Some(&b"abc\0"[..]));
        let inner = attribute(bytes, 2).expect("the nested one");
        assert_eq!(attribute(inner, 8), Some(&80u64.to_ne_bytes()[..]));
        assert_eq!(attribute(inner, 9), None);
        for end in 0..bytes.len() {
            let _ = attribute(&bytes[..end], 2);
        }
        assert_eq!(attribute(&[0, 0, 5, 0, 1, 2, 3, 4], 2), None);
    }
}
