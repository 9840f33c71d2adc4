//! A packet on its way: who it belongs to and what it carries.

use fullpipe_net::{Direction, Ecn, HostPair, Packet, PureAck};
use fullpipe_plan::Hosts;
use fullpipe_tcp::{Ack, Data, HandshakePacket};

/// Ethernet, IPv4 and TCP headers with timestamps: 14 + 20 + 20 + 12.
pub(crate) const HEADER_BYTES: u32 = 66;
/// ICMP echo with 56 bytes of payload, as ping sends it; the UDP probe is as large.
pub(crate) const PROBE_BYTES: u32 = 98;

/// SYN and SYN-ACK carry MSS, SACK-permitted and window scale beside timestamps, padded: 20 bytes of
/// options where data have 12 (tcp_syn_options()).
const SYN_BYTES: u32 = HEADER_BYTES + 8;

/// Ethernet, IPv4 and UDP: 14 + 20 + 8.
pub(crate) const UDP_HEADER_BYTES: u32 = 42;

/// What a packet carries. Its kind is asked for several times on every packet's way: in a place of its
/// own it is read at once, where Rust would hide it in the values that a flag cannot have. A word of
/// its own, so that what is copied behind it begins where words do.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub(crate) enum Body {
    Data(Data),
    Ack(Ack),
    /// A packet of a handshake.
    Handshake(HandshakePacket),
    /// The acknowledgement of the receiver's FIN.
    LastAck,
    /// A probe's request or answer, by its row in the recording.
    Probe {
        row: u32,
    },
    /// A query for a name, or its answer, of a connection of a page.
    Name {
        page: u32,
        number: u32,
        bytes: u32,
    },
    /// A datagram, by its row in the recording.
    Datagram {
        row: u32,
        bytes: u32,
    },
}

impl Body {
    /// It carries payload.
    pub(crate) fn is_data(&self) -> bool {
        matches!(self, Self::Data(data) if data.payload_bytes > 0)
    }

    /// It opens or ends a connection and carries nothing else.
    pub(crate) fn is_control(&self) -> bool {
        match self {
            Self::Data(data) => data.payload_bytes == 0,
            Self::Handshake(_) | Self::LastAck => true,
            Self::Ack(_) | Self::Probe { .. } | Self::Name { .. } | Self::Datagram { .. } => false,
        }
    }

    /// Its owner is a connection.
    pub(crate) fn is_of_connection(&self) -> bool {
        !matches!(
            self,
            Self::Probe { .. } | Self::Name { .. } | Self::Datagram { .. }
        )
    }
}

/// Most hosts on either side.
pub(crate) const MAX_HOSTS: u16 = 1 << 12;

/// The fields of the IP header that are not the owner's number: the hosts at its ends (12 bits
/// each), its direction and its DSCP. In one word, for every packet carries it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label(u32);

impl Label {
    /// Of what goes forward.
    pub(crate) fn new(hosts: Hosts, dscp: u8) -> Self {
        let limit = MAX_HOSTS - 1;
        let (near, far) = (hosts.near & limit, hosts.far & limit);
        Self(u32::from(near) | u32::from(far) << 12 | u32::from(dscp & 63) << 24)
    }

    /// The same hosts and DSCP in this direction.
    pub(crate) fn towards(self, direction: Direction) -> Self {
        Self(self.0 & !(1 << 30) | (direction as u32) << 30)
    }

    /// Number of the host at the end of this way, among all hosts.
    pub(crate) fn end(self, direction: Direction) -> usize {
        let shift = match direction {
            Direction::Forward => 12,
            Direction::Reverse => 0,
        };
        let host = self.0 >> shift & (u32::from(MAX_HOSTS) - 1);
        host as usize * 2 + direction.index()
    }

    /// Of an owner whose packets are those of the connection before it.
    pub(crate) fn second(self) -> Self {
        Self(self.0 | 1 << 31)
    }

    fn is_second(self) -> u32 {
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

/// A packet of flow `owner` (or probe `owner - flows`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) owner: u32,
    pub(crate) label: Label,
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
            Body::Name { bytes, .. } | Body::Datagram { bytes, .. } => UDP_HEADER_BYTES + bytes,
        }
    }

    fn flow_key(&self) -> u32 {
        self.owner - self.label.is_second()
    }

    fn ecn(&self) -> Ecn {
        match &self.body {
            Body::Data(data) if data.ect && data.ce => Ecn::Ce,
            Body::Data(data) if data.ect && data.l4s => Ecn::Ect1,
            Body::Data(data) if data.ect => Ecn::Ect0,
            _ => Ecn::NotEct,
        }
    }

    fn ecn_capable(&self) -> bool {
        matches!(&self.body, Body::Data(data) if data.ect)
    }

    fn mark_ce(&mut self) {
        if let Body::Data(data) = &mut self.body {
            data.ce = true;
        }
    }

    fn hosts(&self) -> HostPair {
        self.label.hosts()
    }

    fn dscp(&self) -> u8 {
        self.label.dscp()
    }

    fn clear_dscp(&mut self) {
        self.label = self.label.without_dscp();
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

/// SACK option: two bytes of padding, two of header, eight a block (RFC 2018 section 3).
pub(crate) fn ack_option_bytes(ack: &Ack) -> u32 {
    if ack.count == 0 {
        0
    } else {
        4 + 8 * u32::from(ack.count)
    }
}
