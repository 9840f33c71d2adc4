//! A capture of packets at the senders' hosts: classic pcap with ns timestamps.
//!
//! Headers are complete, TCP options and ECN bits included. Payload is left out, as with a small snap
//! length. IP's checksum is computed; those of TCP, UDP and ICMP are 0, which analysers take for checksum
//! offload.

use std::io::{self, Write};

use fullpipe_tcp::{Ack, Data, HandshakePacket, MAX_BLOCKS};

/// Nanosecond magic (pcap-savefile(5)) and link type Ethernet.
const MAGIC: u32 = 0xa1b2_3c4d;
const SNAPLEN: u32 = 128;
const ETHERNET: u32 = 1;
const ETHERNET_BYTES: u32 = 14;
/// Protocols of IP (RFC 791, IANA).
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// First port of near ends.
const NEAR_PORT: u16 = 40_000;
/// Window scale of both ends, large enough for 64 MiB.
const WINDOW_SHIFT: u8 = 14;
/// Initial sequence number of both ends.
const ISN: u32 = 1_000_000;
/// Window of an end that receives no data.
const FIRST_WINDOW_BYTES: u64 = 65_536;
const FIN: u16 = 1;
const SYN: u16 = 2;
const PSH: u16 = 8;
const ACK: u16 = 16;
const ECE: u16 = 64;
const CWR: u16 = 128;
/// Accurate ECN: with ECE and CWR the ACE field (RFC 9768).
const AE: u16 = 256;
/// Initial value of the ACE counter.
const ACE_FIRST: u8 = 5;

/// Writes one capture.
pub struct PcapWriter {
    out: Box<dyn Write + Send>,
    buffer: Vec<u8>,
}

/// What a packet without a connection belongs to, and its number among the likes of it.
#[derive(Clone, Copy)]
pub(crate) enum Exchange {
    /// A stream of datagrams.
    Stream(u32),
    /// A page's DNS query or its reply.
    Dns(u32),
    /// A UDP request or its reply.
    UdpProbe(u32),
    /// An ICMP echo; the second number counts requests.
    Ping(u32, u16),
}

impl Exchange {
    /// Nets of its near and its far end, its number, and the port of its far end.
    fn ends(self) -> ([u8; 2], u32, u16) {
        match self {
            Self::Stream(number) => ([12, 13], number, 5202),
            Self::Dns(number) => ([14, 15], number, 53),
            Self::UdpProbe(number) => ([16, 17], number, 7),
            Self::Ping(number, _) => ([16, 17], number, 0),
        }
    }
}

/// The connection of a packet.
#[derive(Clone, Copy)]
pub(crate) struct Captured {
    /// Its number.
    pub(crate) flow: u32,
    /// The codepoint of its packets in both directions.
    pub(crate) dscp: u8,
}

/// Headers of Ethernet and IP.
struct Header {
    at_ns: u64,
    /// Near and far.
    ends: [[u8; 4]; 2],
    from_near: bool,
    tos: u8,
    protocol: u8,
    ip_bytes: u32,
}

struct Segment<'a> {
    at_ns: u64,
    of: Captured,
    from_sender: bool,
    seq: u32,
    ack: u32,
    flags: u16,
    window: u16,
    ecn: u8,
    timestamps: (u32, u32),
    options: &'a [u8],
    payload_bytes: u32,
}

impl PcapWriter {
    /// Starts a capture with its file header.
    pub fn new(mut out: Box<dyn Write + Send>) -> io::Result<Self> {
        let mut header = Vec::with_capacity(24);
        header.extend(MAGIC.to_le_bytes());
        header.extend(2u16.to_le_bytes());
        header.extend(4u16.to_le_bytes());
        header.extend([0; 8]);
        header.extend(SNAPLEN.to_le_bytes());
        header.extend(ETHERNET.to_le_bytes());
        out.write_all(&header)?;
        Ok(Self {
            out,
            buffer: Vec::with_capacity(SNAPLEN as usize + 16),
        })
    }

    /// A packet of a handshake leaves or arrives.
    pub(crate) fn handshake(
        &mut self,
        at_ns: u64,
        of: Captured,
        from_sender: bool,
        mss: u32,
        packet: &HandshakePacket,
    ) -> io::Result<()> {
        // The MSS option does not subtract timestamps (RFC 6691).
        let mss = (mss + 12).to_be_bytes();
        let options = [2, 4, mss[2], mss[3], 4, 2, 3, 3, WINDOW_SHIFT, 1, 1, 1];
        let ecn_flags = |agrees: bool, flags| if agrees { flags } else { 0 };
        let (flags, sent_ns, echo_ns, window, options) = match *packet {
            HandshakePacket::Syn { sent_ns, ecn } => {
                let flags = SYN | ecn_flags(ecn, ECE | CWR);
                (flags, sent_ns, 0, 64_240, &options[..])
            }
            HandshakePacket::SynAck {
                sent_ns,
                echo_ns,
                ecn,
                window_bytes,
            } => {
                let flags = SYN | ACK | ecn_flags(ecn, ECE);
                (flags, sent_ns, echo_ns, window_bytes as u16, &options[..])
            }
            HandshakePacket::Ack {
                sent_ns,
                echo_ns,
                window_bytes,
            } => (ACK, sent_ns, echo_ns, scaled(window_bytes), &[][..]),
        };
        self.segment(&Segment {
            at_ns,
            of,
            from_sender,
            seq: if flags & SYN != 0 { ISN } else { ISN + 1 },
            ack: if flags & ACK != 0 { ISN + 1 } else { 0 },
            flags,
            window,
            ecn: 0,
            timestamps: (clock(sent_ns), clock(echo_ns)),
            options,
            payload_bytes: 0,
        })
    }

    /// A data packet leaves; `begin` is its relative sequence number in bytes.
    pub(crate) fn data(&mut self, of: Captured, begin: u64, data: &Data) -> io::Result<()> {
        let flag = |is_set: bool, flag| if is_set { flag } else { 0 };
        self.segment(&Segment {
            at_ns: data.departs_ns,
            of,
            from_sender: true,
            seq: sequence(begin),
            ack: ISN + 1,
            flags: ACK | flag(data.push, PSH) | flag(data.cwr, CWR) | flag(data.fin, FIN),
            window: scaled(FIRST_WINDOW_BYTES),
            ecn: u8::from(data.ect) << u8::from(!data.l4s),
            timestamps: (clock(data.departs_ns), clock(data.echo_ns)),
            options: &[],
            payload_bytes: data.payload_bytes,
        })
    }

    /// An ACK arrives.
    pub(crate) fn ack(
        &mut self,
        at_ns: u64,
        of: Captured,
        edges: &AckEdges,
        ack: &Ack,
        is_accurate: bool,
    ) -> io::Result<()> {
        let mut options = [0u8; 28];
        let mut used = 0;
        if ack.count > 0 {
            options[..4].copy_from_slice(&[1, 1, 5, 2 + 8 * ack.count]);
            used = 4;
            for edge in edges.blocks[..usize::from(ack.count)].iter().flatten() {
                options[used..used + 4].copy_from_slice(&sequence(*edge).to_be_bytes());
                used += 4;
            }
        }
        self.segment(&Segment {
            at_ns,
            of,
            from_sender: false,
            seq: ISN + 1,
            ack: sequence(edges.next),
            flags: ACK | mark_flags(ack.marks, is_accurate) | if ack.fin { FIN } else { 0 },
            window: scaled(ack.window_bytes),
            ecn: 0,
            timestamps: (clock(ack.sent_ns), clock(ack.echo_ns)),
            options: &options[..used],
            payload_bytes: 0,
        })
    }

    /// The sender acknowledges the receiver's FIN; `end` is its relative sequence number in bytes.
    pub(crate) fn last_ack(&mut self, at_ns: u64, of: Captured, end: u64) -> io::Result<()> {
        self.segment(&Segment {
            at_ns,
            of,
            from_sender: true,
            seq: sequence(end),
            ack: ISN + 2,
            flags: ACK,
            window: scaled(FIRST_WINDOW_BYTES),
            ecn: 0,
            timestamps: (clock(at_ns), clock(at_ns)),
            options: &[],
            payload_bytes: 0,
        })
    }

    /// A packet without a connection, of so many bytes on the wire.
    pub(crate) fn exchange(
        &mut self,
        at_ns: u64,
        exchange: Exchange,
        from_near: bool,
        dscp: u8,
        wire_bytes: u32,
    ) -> io::Result<()> {
        let ([near, far], number, far_port) = exchange.ends();
        let ends = [address(near, number), address(far, number)];
        let ip_bytes = wire_bytes - ETHERNET_BYTES;
        let protocol = match exchange {
            Exchange::Ping(..) => ICMP,
            _ => UDP,
        };
        let header = Header {
            at_ns,
            ends,
            from_near,
            tos: dscp << 2,
            protocol,
            ip_bytes,
        };
        self.header(&header, 8);
        match exchange {
            Exchange::Ping(_, sequence) => {
                let kind = if from_near { 8 } else { 0 };
                self.buffer.extend([kind, 0, 0, 0]);
                self.buffer.extend((number as u16).to_be_bytes());
                self.buffer.extend(sequence.to_be_bytes());
            }
            _ => {
                self.ports(NEAR_PORT + (number % 20_000) as u16, far_port, from_near);
                self.buffer.extend((ip_bytes as u16 - 20).to_be_bytes());
                self.buffer.extend([0, 0]);
            }
        }
        self.out.write_all(&self.buffer)
    }

    /// Writes out what is buffered.
    pub fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn segment(&mut self, segment: &Segment<'_>) -> io::Result<()> {
        let Captured { flow, dscp } = segment.of;
        let tcp_bytes = 20 + 12 + segment.options.len();
        let header = Header {
            at_ns: segment.at_ns,
            ends: [address(10, flow), address(11, flow)],
            from_near: segment.from_sender,
            tos: dscp << 2 | segment.ecn,
            protocol: TCP,
            ip_bytes: 20 + tcp_bytes as u32 + segment.payload_bytes,
        };
        self.header(&header, tcp_bytes as u32);
        let port = NEAR_PORT + (flow % 20_000) as u16;
        self.ports(port, 5201, segment.from_sender);
        let buffer = &mut self.buffer;
        buffer.extend(segment.seq.to_be_bytes());
        buffer.extend(segment.ack.to_be_bytes());
        buffer.push(((tcp_bytes / 4) as u8) << 4 | (segment.flags >> 8) as u8);
        buffer.push(segment.flags as u8);
        buffer.extend(segment.window.to_be_bytes());
        buffer.extend([0; 4]);
        buffer.extend([1, 1, 8, 10]);
        buffer.extend(segment.timestamps.0.to_be_bytes());
        buffer.extend(segment.timestamps.1.to_be_bytes());
        buffer.extend(segment.options);
        self.out.write_all(buffer)
    }

    /// Begins a packet of which so many bytes behind IP's header are captured.
    fn header(&mut self, header: &Header, captured_bytes: u32) {
        let buffer = &mut self.buffer;
        buffer.clear();
        buffer.extend(((header.at_ns / 1_000_000_000) as u32).to_le_bytes());
        buffer.extend(((header.at_ns % 1_000_000_000) as u32).to_le_bytes());
        buffer.extend((ETHERNET_BYTES + 20 + captured_bytes).to_le_bytes());
        buffer.extend((header.ip_bytes + ETHERNET_BYTES).to_le_bytes());

        let [near, far] = header.ends;
        let (source, target) = if header.from_near {
            (near, far)
        } else {
            (far, near)
        };
        for end in [target, source] {
            buffer.extend([2, 0]);
            buffer.extend(end);
        }
        buffer.extend([8, 0]);

        let ip = buffer.len();
        buffer.extend([0x45, header.tos]);
        buffer.extend((header.ip_bytes as u16).to_be_bytes());
        buffer.extend([0, 0, 0x40, 0, 64, header.protocol, 0, 0]);
        buffer.extend(source);
        buffer.extend(target);
        let sum = internet_checksum(&buffer[ip..]);
        buffer[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
    }

    fn ports(&mut self, near: u16, far: u16, from_near: bool) {
        let ports = if from_near { [near, far] } else { [far, near] };
        for port in ports {
            self.buffer.extend(port.to_be_bytes());
        }
    }
}

/// The capture of a run, until writing it fails.
pub(crate) struct Capture {
    writer: Option<PcapWriter>,
    error: Option<io::Error>,
}

impl Capture {
    pub(super) fn new(writer: Option<PcapWriter>) -> Self {
        Self {
            writer,
            error: None,
        }
    }

    /// Whether packets are captured.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.writer.is_some()
    }

    pub(crate) fn write(&mut self, write: impl FnOnce(&mut PcapWriter) -> io::Result<()>) {
        if let Some(writer) = &mut self.writer {
            if let Err(error) = write(writer) {
                self.error = Some(error);
                self.writer = None;
            }
        }
    }

    /// Ends the capture; returns the first error.
    pub(crate) fn finish(mut self) -> Option<io::Error> {
        self.write(PcapWriter::finish);
        self.error
    }
}

/// The packet numbers of an ACK in bytes.
pub(crate) struct AckEdges {
    next: u64,
    blocks: [[u64; 2]; MAX_BLOCKS],
}

impl AckEdges {
    pub(crate) fn new(ack: &Ack, bytes: impl Fn(u32) -> u64) -> Self {
        Self {
            next: bytes(ack.next),
            blocks: ack
                .blocks
                .map(|block| [bytes(block.start), bytes(block.end)]),
        }
    }
}

fn sequence(bytes: u64) -> u32 {
    (ISN + 1).wrapping_add(bytes as u32)
}

fn scaled(window_bytes: u64) -> u16 {
    (window_bytes >> WINDOW_SHIFT).clamp(1, u64::from(u16::MAX)) as u16
}

/// TCP's timestamp clock: 1 ms, as in Linux.
fn clock(at_ns: u64) -> u32 {
    (at_ns / 1_000_000) as u32
}

fn address(net: u8, flow: u32) -> [u8; 4] {
    [10, net, (flow >> 8) as u8, (flow as u8).wrapping_add(1)]
}

fn internet_checksum(header: &[u8]) -> u16 {
    let words = header
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The ECN flags of an ACK: ECE, or the ACE field.
fn mark_flags(marks: u8, is_accurate: bool) -> u16 {
    let ace = match is_accurate {
        true => marks.wrapping_add(ACE_FIRST),
        false => u8::from(marks > 0),
    };
    [ECE, CWR, AE]
        .iter()
        .zip(0..)
        .filter(|(_, bit)| ace >> bit & 1 == 1)
        .map(|(flag, _)| flag)
        .sum()
}
