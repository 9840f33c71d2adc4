//! Packets as bytes, and what they say: IPv4 (RFC 791), TCP (RFC 9293), UDP (RFC 768).

use std::net::Ipv4Addr;

pub(super) const IP_BYTES: usize = 20;
pub(super) const TCP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
/// Flags of TCP's header.
pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const PSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;
pub(super) const ECE: u8 = 0x40;
pub(super) const CWR: u8 = 0x80;
/// Kinds of options.
pub(super) mod option {
    pub(in super::super) const EOL: u8 = 0;
    pub(in super::super) const NOP: u8 = 1;
    pub(in super::super) const MSS: u8 = 2;
    pub(in super::super) const WINDOW_SCALE: u8 = 3;
    pub(in super::super) const SACK_PERMITTED: u8 = 4;
    pub(in super::super) const SACK: u8 = 5;
    pub(in super::super) const TIMESTAMP: u8 = 8;
}

/// Two addresses with their ports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) from: (Ipv4Addr, u16),
    pub(super) to: (Ipv4Addr, u16),
}

/// A packet without data, as it leaves the peer.
#[derive(Clone, Debug, Default)]
pub(super) struct Outgoing {
    pub(super) sequence: u32,
    pub(super) acknowledges: u32,
    pub(super) flags: u8,
    /// As in the header.
    pub(super) window: u16,
    /// Of a SYN: the MSS and the window scale. It permits SACK.
    pub(super) syn: Option<(u16, u8)>,
    /// Value and echo.
    pub(super) timestamps: Option<(u32, u32)>,
    pub(super) sack: Vec<(u32, u32)>,
}

impl Outgoing {
    pub(super) fn bytes(&self, route: Route) -> Vec<u8> {
        let header = Header {
            sequence: self.sequence,
            acknowledges: self.acknowledges,
            flags: self.flags,
            window: self.window,
            tos: 0,
        };
        tcp_packet(route, header, &self.options(), 0)
    }

    fn options(&self) -> Vec<u8> {
        let mut options = Vec::new();
        if let Some((mss, scale)) = self.syn {
            options.extend([option::MSS, 4]);
            options.extend(mss.to_be_bytes());
            options.extend([option::NOP, option::WINDOW_SCALE, 3, scale]);
            options.extend([option::NOP, option::NOP, option::SACK_PERMITTED, 2]);
        }
        if let Some((value, echo)) = self.timestamps {
            options.extend([option::NOP, option::NOP, option::TIMESTAMP, 10]);
            options.extend(value.to_be_bytes());
            options.extend(echo.to_be_bytes());
        }
        if !self.sack.is_empty() {
            let bytes = 2 + 8 * self.sack.len() as u8;
            options.extend([option::NOP, option::NOP, option::SACK, bytes]);
            for (start, end) in &self.sack {
                options.extend(start.to_be_bytes());
                options.extend(end.to_be_bytes());
            }
        }
        options
    }
}

/// Fields of a packet's headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) sequence: u32,
    pub(super) acknowledges: u32,
    pub(super) flags: u8,
    pub(super) window: u16,
    pub(super) tos: u8,
}

/// A packet with options of whole words, and so much payload of zeros.
pub(super) fn tcp_packet(
    route: Route,
    header: Header,
    options: &[u8],
    payload_bytes: usize,
) -> Vec<u8> {
    let header_bytes = TCP_BYTES + options.len();
    let mut packet = vec![0; IP_BYTES + TCP_BYTES];
    packet.extend(options);
    packet.resize(IP_BYTES + header_bytes + payload_bytes, 0);
    let (ip, tcp) = packet.split_at_mut(IP_BYTES);
    let hosts = [route.from.0, route.to.0];
    write_ip(ip, tcp.len(), libc::IPPROTO_TCP, header.tos, hosts);
    tcp[0..2].copy_from_slice(&route.from.1.to_be_bytes());
    tcp[2..4].copy_from_slice(&route.to.1.to_be_bytes());
    tcp[4..8].copy_from_slice(&header.sequence.to_be_bytes());
    tcp[8..12].copy_from_slice(&header.acknowledges.to_be_bytes());
    tcp[12] = (header_bytes as u8 / 4) << 4;
    tcp[13] = header.flags;
    tcp[14..16].copy_from_slice(&header.window.to_be_bytes());
    let mut pseudo = [0; 12];
    pseudo[..8].copy_from_slice(&ip[12..20]);
    pseudo[9] = libc::IPPROTO_TCP as u8;
    pseudo[10..].copy_from_slice(&(tcp.len() as u16).to_be_bytes());
    let sum = checksum(&[&pseudo, tcp]);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// Writes a header of IPv4 for a payload.
fn write_ip(
    ip: &mut [u8],
    payload_bytes: usize,
    protocol: libc::c_int,
    tos: u8,
    hosts: [Ipv4Addr; 2],
) {
    ip[0] = 0x45;
    ip[1] = tos;
    ip[2..4].copy_from_slice(&((IP_BYTES + payload_bytes) as u16).to_be_bytes());
    ip[8] = 64;
    ip[9] = protocol as u8;
    ip[12..16].copy_from_slice(&hosts[0].octets());
    ip[16..20].copy_from_slice(&hosts[1].octets());
    let sum = checksum(&[ip]);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// A datagram of UDP without a checksum, whose payload begins with a number.
pub(super) fn datagram(route: Route, ip_bytes: usize, tos: u8, number: u32) -> Vec<u8> {
    let mut packet = vec![0; ip_bytes.max(IP_BYTES + UDP_BYTES + size_of::<u32>())];
    let (ip, udp) = packet.split_at_mut(IP_BYTES);
    let hosts = [route.from.0, route.to.0];
    write_ip(ip, udp.len(), libc::IPPROTO_UDP, tos, hosts);
    udp[0..2].copy_from_slice(&route.from.1.to_be_bytes());
    udp[2..4].copy_from_slice(&route.to.1.to_be_bytes());
    let udp_bytes = udp.len() as u16;
    udp[4..6].copy_from_slice(&udp_bytes.to_be_bytes());
    udp[UDP_BYTES..UDP_BYTES + 4].copy_from_slice(&number.to_be_bytes());
    packet
}

/// Number and TOS of such a datagram; `None`: it is another packet.
pub(super) fn read_datagram(packet: &[u8]) -> Option<(u32, u8)> {
    if *packet.get(9)? != libc::IPPROTO_UDP as u8 {
        return None;
    }
    let number = packet.get(IP_BYTES + UDP_BYTES..)?.first_chunk()?;
    Some((u32::from_be_bytes(*number), packet[1]))
}

/// The Internet checksum (RFC 1071) of parts that are even but for the last.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let mut sum: u32 = words
        .map(|word| u32::from(word[0]) << 8 | u32::from(word.get(1).copied().unwrap_or(0)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A packet that the socket sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Incoming {
    pub(super) to_port: u16,
    pub(super) from_port: u16,
    pub(super) sequence: u32,
    pub(super) acknowledges: u32,
    pub(super) payload_bytes: u32,
    pub(super) flags: u8,
    /// Codepoint of its IP header.
    pub(super) ecn: u8,
    /// Its timestamp.
    pub(super) stamp: Option<u32>,
}

impl Incoming {
    /// `None`: it is no TCP packet.
    pub(super) fn read(packet: &[u8]) -> Option<Self> {
        let u16_at = |at: usize| Some(u16::from_be_bytes(*packet.get(at..)?.first_chunk()?));
        let u32_at = |at: usize| Some(u32::from_be_bytes(*packet.get(at..)?.first_chunk()?));
        let tcp = usize::from(packet.first()? & 0xf) * 4;
        if *packet.get(9)? != libc::IPPROTO_TCP as u8 {
            return None;
        }
        let data = tcp + usize::from(packet.get(tcp + 12)? >> 4) * 4;
        Some(Self {
            from_port: u16_at(tcp)?,
            to_port: u16_at(tcp + 2)?,
            sequence: u32_at(tcp + 4)?,
            acknowledges: u32_at(tcp + 8)?,
            payload_bytes: u32::from(u16_at(2)?).checked_sub(data as u32)?,
            flags: *packet.get(tcp + 13)?,
            ecn: packet[1] & 3,
            stamp: stamp(packet.get(tcp + TCP_BYTES..data)?),
        })
    }
}

/// The value of the timestamp option.
fn stamp(mut options: &[u8]) -> Option<u32> {
    loop {
        match *options.first()? {
            option::EOL => return None,
            option::NOP => options = &options[1..],
            option::TIMESTAMP => {
                return Some(u32::from_be_bytes(*options.get(2..)?.first_chunk()?));
            }
            _ => options = options.get(usize::from(*options.get(1)?).max(1)..)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTE: Route = Route {
        from: (Ipv4Addr::new(10, 50, 0, 9), 7_000),
        to: (Ipv4Addr::new(10, 50, 0, 1), 5_000),
    };

    #[test]
    fn a_packet_is_read_as_it_was_written_and_its_checksums_are_right() {
        let out = Outgoing {
            sequence: 0xfedc_ba98,
            acknowledges: 77,
            flags: ACK | ECE,
            window: 1000,
            syn: Some((1460, 3)),
            timestamps: Some((123_456, 9)),
            // With these the options have 36 of the 40 bytes that a header has for them.
            sack: vec![(1, 2)],
        };
        let bytes = out.bytes(ROUTE);
        assert_eq!(checksum(&[&bytes[..IP_BYTES]]), 0);
        let tcp = &bytes[IP_BYTES..];
        let mut pseudo = bytes[12..20].to_vec();
        pseudo.extend([0, 6, 0, tcp.len() as u8]);
        assert_eq!(checksum(&[&pseudo, tcp]), 0);
        let read = Incoming::read(&bytes).expect("a TCP packet");
        let expected = Incoming {
            from_port: 7_000,
            to_port: 5_000,
            sequence: 0xfedc_ba98,
            acknowledges: 77,
            payload_bytes: 0,
            flags: ACK | ECE,
            ecn: 0,
            stamp: Some(123_456),
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn a_datagram_is_read_as_it_was_written() {
        let bytes = datagram(ROUTE, 200, 0xba, 7);
        assert_eq!((bytes.len(), checksum(&[&bytes[..IP_BYTES]])), (200, 0));
        assert_eq!(read_datagram(&bytes), Some((7, 0xba)));
        assert_eq!(read_datagram(&bytes[..30]), None);
        assert_eq!(Incoming::read(&bytes), None);
    }

    #[test]
    fn a_packet_that_is_cut_anywhere_is_not_read_beyond_its_end() {
        let bytes = Outgoing {
            timestamps: Some((1, 2)),
            ..Outgoing::default()
        }
        .bytes(ROUTE);
        for end in 0..bytes.len() {
            let _ = Incoming::read(&bytes[..end]);
        }
    }
}
