//! Packets in flight: which flow they belong to, their IP header, and what they carry.

use fullpipe_net::{Direction, Ecn, HostPair, Packet, PureAck};
use fullpipe_plan::Hosts;
use fullpipe_tcp::{Ack, Data, HandshakePacket};

/// Ethernet, IPv4 and TCP headers with timestamps: 14 + 20 + 20 + 12.
pub(crate) const HEADER_BYTES: u32 = 66;
/// An ICMP echo with 56 bytes of payload, as ping sends it; UDP probes have the same size.
const PROBE_BYTES: u32 = 98;
/// SYN and SYN-ACK have 20 bytes of options where data have 12: MSS, SACK-permitted and window scale
/// beside timestamps (tcp_syn_options()).
const SYN_BYTES: u32 = HEADER_BYTES + 8;
/// Ethernet, IPv4 and UDP headers: 14 + 20 + 8.
const UDP_HEADER_BYTES: u32 = 42;
/// What a packet takes of a kernel's memory (skb->truesize) beyond its bytes on the wire: a frame of 1514
/// bytes takes 2304 on Debian's 6.12 (docs/evidence/queues.md).
const MEMORY_OVERHEAD_BYTES: u32 = 790;

/// What a packet carries.
///
/// `repr(u64)` keeps the kind in a word of its own: it is read several times for every packet, and what
/// follows is copied word by word.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub(crate) enum Body {
    Data(Data),
    Ack(Ack),
    Handshake(HandshakePacket),
    /// The ACK of the receiver's FIN.
    LastAck,
    /// A probe's request or reply; `row` is its row in the recording.
    Probe {
        row: u32,
    },
    /// A DNS query for a connection of a page, or its reply.
    Dns {
        page: u32,
        number: u32,
        bytes: u32,
    },
    /// A datagram of a stream; `row` is its row in the recording.
    Datagram {
        row: u32,
        bytes: u32,
    },
    /// A datagram of another transport than TCP; `payload` is its number in [`crate::endpoints::Payloads`].
    Opaque {
        payload: u32,
        bytes: u32,
        ecn: Ecn,
        /// The sender of the data sent it.
        is_data: bool,
    },
}

impl Body {
    /// Whether the sender of a connection's data sent it, and not only to open or close the connection.
    pub(crate) fn is_data(&self) -> bool {
        match self {
            Self::Data(data) => data.payload_bytes > 0,
            Self::Opaque { is_data, .. } => *is_data,
            _ => false,
        }
    }

    /// Whether it opens or closes a connection and carries no data.
    pub(crate) fn is_control(&self) -> bool {
        match self {
            Self::Data(data) => data.payload_bytes == 0,
            Self::Handshake(_) | Self::LastAck => true,
            _ => false,
        }
    }

    /// Whether it belongs to a connection of TCP.
    pub(crate) fn is_of_connection(&self) -> bool {
        !matches!(
            self,
            Self::Probe { .. } | Self::Dns { .. } | Self::Datagram { .. } | Self::Opaque { .. }
        )
    }
}

/// Most hosts on either side.
pub(crate) const MAX_HOSTS: u16 = 1 << 12;

/// A packet's IP header: the numbers of both hosts (12 bits each), the DSCP (6 bits), the direction, and
/// whether the packet shares the addresses and ports of the flow before its own. Packed into one word, as
/// every packet has one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IpHeader(u32);

impl IpHeader {
    /// The header of forward packets.
    pub(crate) fn new(hosts: Hosts, dscp: u8) -> Self {
        let limit = MAX_HOSTS - 1;
        let (near, far) = (hosts.near & limit, hosts.far & limit);
        Self(u32::from(near) | u32::from(far) << 12 | u32::from(dscp & 63) << 24)
    }

    /// The header of packets in this direction.
    pub(crate) fn with_direction(self, direction: Direction) -> Self {
        Self(self.0 & !(1 << 30) | (direction as u32) << 30)
    }

    /// Number among all hosts of the host that packets in this direction reach.
    pub(crate) fn host_at_end(self, direction: Direction) -> usize {
        let shift = match direction {
            Direction::Forward => 12,
            Direction::Reverse => 0,
        };
        let host = self.0 >> shift & (u32::from(MAX_HOSTS) - 1);
        host as usize * 2 + direction.index()
    }

    /// The same for a flow that shares the addresses and ports of the flow before it.
    pub(crate) fn sharing_flow_key(self) -> Self {
        Self(self.0 | 1 << 31)
    }

    fn shares_flow_key(self) -> u32 {
        self.0 >> 31
    }

    fn without_dscp(self) -> Self {
        Self(self.0 & !(63 << 24))
    }

    fn dscp(self) -> u8 {
        (self.0 >> 24) as u8 & 63
    }

    fn hosts(self) -> HostPair {
        let limit = u32::from(MAX_HOSTS) - 1;
        let (near, far) = (self.0 & limit, u32::from(MAX_HOSTS) | self.0 >> 12 & limit);
        let (source, destination) = if self.0 >> 30 & 1 == 0 {
            (near, far)
        } else {
            (far, near)
        };
        HostPair {
            source,
            destination,
        }
    }
}

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    /// Identifies its flow to the network ([`crate::hosts::FlowIds`]).
    pub(crate) flow_id: u32,
    pub(crate) header: IpHeader,
    pub(crate) body: Body,
}

impl Packet for InFlight {
    fn wire_bytes(&self) -> u32 {
        match &self.body {
            Body::Data(data) => HEADER_BYTES + data.payload_bytes,
            Body::Ack(ack) => HEADER_BYTES + ack_option_bytes(ack),
            Body::Handshake(HandshakePacket::Syn { .. } | HandshakePacket::SynAck { .. }) => {
                SYN_BYTES
            }
            Body::Handshake(HandshakePacket::Ack { .. }) | Body::LastAck => HEADER_BYTES,
            Body::Probe { .. } => PROBE_BYTES,
            Body::Dns { bytes, .. } | Body::Datagram { bytes, .. } | Body::Opaque { bytes, .. } => {
                UDP_HEADER_BYTES + bytes
            }
        }
    }

    fn memory_bytes(&self) -> u32 {
        self.wire_bytes() + MEMORY_OVERHEAD_BYTES
    }

    fn flow_key(&self) -> u32 {
        self.flow_id - self.header.shares_flow_key()
    }

    fn ecn(&self) -> Ecn {
        match &self.body {
            Body::Data(data) if data.ect && data.ce => Ecn::Ce,
            Body::Data(data) if data.ect && data.l4s => Ecn::Ect1,
            Body::Data(data) if data.ect => Ecn::Ect0,
            Body::Opaque { ecn, .. } => *ecn,
            _ => Ecn::NotEct,
        }
    }

    fn ecn_capable(&self) -> bool {
        match &self.body {
            Body::Data(data) => data.ect,
            Body::Opaque { ecn, .. } => *ecn != Ecn::NotEct,
            _ => false,
        }
    }

    fn mark_ce(&mut self) {
        match &mut self.body {
            Body::Data(data) => data.ce = true,
            Body::Opaque { ecn, .. } => *ecn = Ecn::Ce,
            _ => {}
        }
    }

    fn hosts(&self) -> HostPair {
        self.header.hosts()
    }

    fn dscp(&self) -> u8 {
        self.header.dscp()
    }

    fn clear_dscp(&mut self) {
        self.header = self.header.without_dscp();
    }

    fn pure_ack(&self) -> Option<PureAck> {
        let Body::Ack(ack) = &self.body else {
            return None;
        };
        if ack.fin {
            return None;
        }
        Some(PureAck {
            next: ack.next,
            blocks: ack.blocks.map(|block| (block.start, block.end)),
            count: ack.count,
            ecn_flags: ack.marks,
        })
    }

    fn follows_in_burst(&self) -> bool {
        matches!(&self.body, Body::Data(data) if !data.leads_burst)
    }

    #[inline]
    fn clear_last_flags(&mut self) {
        if let Body::Data(data) = &mut self.body {
            data.clear_last_flags();
        }
    }

    #[inline]
    fn skip_first_of_burst(&mut self) {
        if let Body::Data(data) = &mut self.body {
            data.skip_first_of_burst();
        }
    }
}

/// Size of the SACK option: two bytes of padding, two of header, eight per block (RFC 2018 section 3).
fn ack_option_bytes(ack: &Ack) -> u32 {
    if ack.count == 0 {
        0
    } else {
        4 + 8 * u32::from(ack.count)
    }
}
