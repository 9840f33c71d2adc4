//! Segments of a program as bytes.

use fullpipe_differential::packetdrill::{Segment, TcpOption};

use super::super::wire::option::{EOL, MSS, NOP, SACK, SACK_PERMITTED, TIMESTAMP, WINDOW_SCALE};
use super::super::wire::{tcp_packet, Header, Route, IP_BYTES, TCP_BYTES};

/// What sequence numbers of both ends begin with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origins {
    pub(super) peer: u32,
    pub(super) own: u32,
}

/// A packet of the peer.
pub(super) fn bytes(segment: &Segment, route: Route, origins: Origins) -> Vec<u8> {
    let header = Header {
        sequence: segment.sequence.wrapping_add(origins.peer),
        acknowledges: segment.ack.wrapping_add(origins.own),
        flags: segment.flags as u8,
        window: segment.window,
        tos: segment.ecn,
    };
    let mut options = Vec::new();
    for option in &segment.options {
        write(option, origins.own, &mut options);
    }
    // As packetdrill, which fills the header up to whole words.
    options.resize(options.len().next_multiple_of(4), EOL);
    tcp_packet(route, header, &options, segment.bytes as usize)
}

fn write(option: &TcpOption, own: u32, out: &mut Vec<u8>) {
    match option {
        TcpOption::Eol => out.push(EOL),
        TcpOption::Nop => out.push(NOP),
        TcpOption::SackOk => out.extend([SACK_PERMITTED, 2]),
        TcpOption::Wscale(shift) => out.extend([WINDOW_SCALE, 3, *shift]),
        TcpOption::Mss(mss) => {
            out.extend([MSS, 4]);
            out.extend(mss.to_be_bytes());
        }
        TcpOption::Ts(value, echo) => {
            out.extend([TIMESTAMP, 10]);
            out.extend(value.to_be_bytes());
            out.extend(echo.to_be_bytes());
        }
        TcpOption::Sack(blocks) => {
            out.extend([SACK, 2 + 8 * blocks.len() as u8]);
            for number in blocks.iter().flat_map(|&(start, end)| [start, end]) {
                out.extend(number.wrapping_add(own).to_be_bytes());
            }
        }
        TcpOption::Other(kind, content) => {
            out.extend([*kind, 2 + content.len() as u8]);
            out.extend(content);
        }
    }
}

/// Ports (from, to) and header of a packet that was sent; numbers as they are on the wire.
pub(super) fn read(packet: &[u8]) -> Option<((u16, u16), Segment)> {
    let u16_at = |at: usize| Some(u16::from_be_bytes(*packet.get(at..)?.first_chunk()?));
    let u32_at = |at: usize| Some(u32::from_be_bytes(*packet.get(at..)?.first_chunk()?));
    if *packet.get(9)? != libc::IPPROTO_TCP as u8 || packet[0] & 0xf != 5 {
        return None;
    }
    let tcp = IP_BYTES;
    let data = tcp + usize::from(packet.get(tcp + 12)? >> 4) * 4;
    let segment = Segment {
        at_us: 0,
        ecn: packet[1] & 3,
        flags: u16_at(tcp + 12)? & 0x1ff,
        sequence: u32_at(tcp + 4)?,
        bytes: u32::from(u16_at(2)?).checked_sub(data as u32)?,
        ack: u32_at(tcp + 8)?,
        window: u16_at(tcp + 14)?,
        options: read_options(packet.get(tcp + TCP_BYTES..data)?)?,
    };
    Some(((u16_at(tcp)?, u16_at(tcp + 2)?), segment))
}

fn read_options(mut left: &[u8]) -> Option<Vec<TcpOption>> {
    let mut options = Vec::new();
    while let [kind, rest @ ..] = left {
        if *kind <= NOP {
            options.push(if *kind == EOL {
                TcpOption::Eol
            } else {
                TcpOption::Nop
            });
            left = rest;
            continue;
        }
        let length = usize::from(*rest.first()?);
        let content = left.get(2..length)?;
        let number = |at: usize| {
            content
                .get(at..)?
                .first_chunk()
                .copied()
                .map(u32::from_be_bytes)
        };
        options.push(match (*kind, content) {
            (MSS, &[high, low]) => TcpOption::Mss(u16::from_be_bytes([high, low])),
            (WINDOW_SCALE, &[shift]) => TcpOption::Wscale(shift),
            (SACK_PERMITTED, []) => TcpOption::SackOk,
            (TIMESTAMP, [_, _, _, _, _, _, _, _]) => TcpOption::Ts(number(0)?, number(4)?),
            (SACK, blocks) => {
                let starts = (0..blocks.len()).step_by(8);
                let pairs = starts.map(|at| Some((number(at)?, number(at + 4)?)));
                TcpOption::Sack(pairs.collect::<Option<_>>()?)
            }
            (kind, content) => TcpOption::Other(kind, content.to_vec()),
        });
        left = &left[length..];
    }
    Some(options)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_packet_is_the_same_after_it_was_written_and_read() {
        let end = |last, port| (Ipv4Addr::new(10, 0, 0, last), port);
        let route = Route {
            from: end(1, 5),
            to: end(2, 6),
        };
        let segment = Segment {
            at_us: 0,
            ecn: 3,
            flags: 0x1d0,
            sequence: 11,
            bytes: 7,
            ack: 90,
            window: 512,
            options: vec![
                TcpOption::Mss(1_000),
                TcpOption::Nop,
                TcpOption::Wscale(7),
                TcpOption::SackOk,
                TcpOption::Ts(3, 4),
                TcpOption::Sack(vec![(1, 2), (5, 9)]),
                TcpOption::Nop,
                TcpOption::Eol,
            ],
        };
        let origins = Origins { peer: 0, own: 0 };
        let written = bytes(&segment, route, origins);
        let (ports, read) = read(&written).expect("a packet of TCP");
        assert_eq!(ports, (5, 6));
        // The ninth flag is in the byte of the header's length, which is written without it.
        assert_eq!(read.flags, segment.flags & 0xff);
        assert_eq!(
            Segment {
                flags: segment.flags,
                ..read
            },
            segment
        );
    }
}
