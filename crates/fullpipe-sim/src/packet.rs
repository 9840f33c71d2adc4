//! Packets in flight: which flow they belong to, their IP header, and what they carry.

use fullpipe_net::{Direction, Ecn, HostPair, Packet, PureAck, LINK_HEADER_BYTES};
use fullpipe_plan::{Hosts, TCP_HEADERS_BYTES};
use fullpipe_tcp::{Ack, Data, HandshakePacket};

/// What a packet of TCP has beside its payload.
pub(crate) const HEADER_BYTES: u32 = LINK_HEADER_BYTES + TCP_HEADERS_BYTES;
/// An ICMP echo with 56 bytes of payload, as ping sends it; UDP probes have the same size.
const PROBE_BYTES: u32 = 98;
/// SYN and SYN-ACK have 20 bytes of options where data have 12: MSS, SACK-permitted and window scale
/// beside timestamps (tcp_syn_options()).
const SYN_BYTES: u32 = HEADER_BYTES + 8;
/// Headers of Ethernet, IPv4 and UDP.
const UDP_HEADER_BYTES: u32 = LINK_HEADER_BYTES + 20 + 8;
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

/// A packet's headers, as far as the network reads them: `word` has the numbers of both hosts (12 bits each),
/// the DSCP (6 bits) and the direction; `ports` is the number of its flow's addresses and ports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IpHeader {
    word: u32,
    ports: u32,
}

impl IpHeader {
    /// The header of forward packets.
    pub(crate) fn new(hosts: Hosts, dscp: u8, ports: u32) -> Self {
        let limit = MAX_HOSTS - 1;
        let (near, far) = (hosts.near & limit, hosts.far & limit);
        let word = u32::from(near) | u32::from(far) << 12 | u32::from(dscp & 63) << 24;
        Self { word, ports }
    }

    /// The header of packets in this direction.
    pub(crate) fn with_direction(self, direction: Direction) -> Self {
        let word = self.word & !(1 << 30) | (direction as u32) << 30;
        Self { word, ..self }
    }

    /// Number among all hosts of the host that packets in this direction reach.
    pub(crate) fn host_at_end(self, direction: Direction) -> usize {
        let shift = match direction {
            Direction::Forward => 12,
            Direction::Reverse => 0,
        };
        let host = self.word >> shift & (u32::from(MAX_HOSTS) - 1);
        host as usize * 2 + direction.index()
    }

    /// The same for a flow with other addresses and ports.
    pub(crate) fn with_ports(self, ports: u32) -> Self {
        Self { ports, ..self }
    }

    pub(crate) fn ports(self) -> u32 {
        self.ports
    }

    fn without_dscp(self) -> Self {
        let word = self.word & !(63 << 24);
        Self { word, ..self }
    }

    pub(crate) fn dscp(self) -> u8 {
        (self.word >> 24) as u8 & 63
    }

    fn hosts(self) -> HostPair {
        let limit = u32::from(MAX_HOSTS) - 1;
        let (near, far) = (
            self.word & limit,
            u32::from(MAX_HOSTS) | self.word >> 12 & limit,
        );
        let (source, destination) = if self.word >> 30 & 1 == 0 {
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
        self.header.ports()
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

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_tcp::Block;

    fn header(near: u16, far: u16, dscp: u8) -> IpHeader {
        IpHeader::new(Hosts { near, far }, dscp, 7)
    }

    fn packet(body: Body) -> InFlight {
        InFlight {
            flow_id: 7,
            header: header(1, 2, 0),
            body,
        }
    }

    fn data(payload_bytes: u32) -> Data {
        Data {
            number: 5,
            payload_bytes,
            departs_ns: 0,
            echo_ns: 0,
            is_retransmission: false,
            leads_burst: true,
            cwr: false,
            push: true,
            fin: false,
            ect: false,
            l4s: false,
            ce: false,
        }
    }

    fn ack(count: u8, fin: bool) -> Ack {
        Ack {
            next: 9,
            blocks: [Block { start: 11, end: 12 }; 3],
            count,
            dsack: false,
            marks: 3,
            fin,
            window_bytes: 0,
            echo_ns: 0,
            sent_ns: 0,
        }
    }

    #[test]
    fn an_ip_header_holds_hosts_of_both_sides_the_dscp_and_the_direction() {
        for (near, far, dscp) in [(0, 0, 0), (4095, 1, 46), (3, 4095, 63)] {
            let forward = header(near, far, dscp);
            let reverse = forward.with_direction(Direction::Reverse);
            let (near, far) = (u32::from(near), 4096 + u32::from(far));
            let hosts = |source, destination| HostPair {
                source,
                destination,
            };
            assert_eq!(forward.hosts(), hosts(near, far));
            assert_eq!(reverse.hosts(), hosts(far, near));
            let again = reverse.with_direction(Direction::Forward);
            assert_eq!(again.hosts(), hosts(near, far));
            for header in [forward, reverse, forward.with_ports(u32::MAX)] {
                assert_eq!(header.dscp(), dscp);
                assert_eq!(header.without_dscp().dscp(), 0);
                assert_eq!(header.without_dscp().hosts(), header.hosts());
            }
            // Hosts at the far end have even numbers, those at the near end odd ones.
            assert_eq!(
                forward.host_at_end(Direction::Forward),
                2 * (far as usize - 4096)
            );
            assert_eq!(
                forward.host_at_end(Direction::Reverse),
                2 * near as usize + 1
            );
        }
    }

    #[test]
    fn queues_tell_flows_by_their_ports_in_both_directions() {
        let mut packet = packet(Body::LastAck);
        assert_eq!(packet.flow_key(), 7);
        packet.header = packet.header.with_ports(6);
        packet.header = packet.header.with_direction(Direction::Reverse);
        assert_eq!(packet.flow_key(), 6);
    }

    #[test]
    fn packets_have_the_bytes_of_their_headers_options_and_payload() {
        // Ethernet 14, IPv4 20, TCP 20 with timestamps 12; SACK: 2 of padding, 2, and 8 a block; SYN: MSS 4,
        // SACK-permitted 2, window scale 3, of which timestamps fill 2 and padding 1; UDP 8; ICMP 8 and 56.
        let syn = HandshakePacket::Syn {
            sent_ns: 0,
            ecn: true,
        };
        let syn_ack = HandshakePacket::SynAck {
            sent_ns: 0,
            echo_ns: 0,
            ecn: false,
            window_bytes: 0,
        };
        let third = HandshakePacket::Ack {
            sent_ns: 0,
            echo_ns: 0,
            window_bytes: 0,
        };
        let opaque = Body::Opaque {
            payload: 0,
            bytes: 1200,
            ecn: Ecn::Ect0,
            is_data: true,
        };
        for (body, wire_bytes) in [
            (Body::Data(data(1448)), 1514),
            (Body::Data(data(0)), 66),
            (Body::Ack(ack(0, false)), 66),
            (Body::Ack(ack(1, false)), 78),
            (Body::Ack(ack(3, false)), 94),
            (Body::Handshake(syn), 74),
            (Body::Handshake(syn_ack), 74),
            (Body::Handshake(third), 66),
            (Body::LastAck, 66),
            (Body::Probe { row: 0 }, 98),
            (
                Body::Dns {
                    page: 0,
                    number: 0,
                    bytes: 50,
                },
                92,
            ),
            (
                Body::Datagram {
                    row: 0,
                    bytes: 1000,
                },
                1042,
            ),
            (opaque, 1242),
        ] {
            let packet = packet(body);
            assert_eq!(packet.wire_bytes(), wire_bytes, "{body:?}");
            assert_eq!(packet.memory_bytes(), wire_bytes + 790);
        }
    }

    #[test]
    fn kinds_of_packets_are_told_apart() {
        let opaque = |is_data| Body::Opaque {
            payload: 0,
            bytes: 1,
            ecn: Ecn::NotEct,
            is_data,
        };
        // Data, control, of a connection.
        for (body, expected) in [
            (Body::Data(data(1)), (true, false, true)),
            (Body::Data(data(0)), (false, true, true)),
            (Body::Ack(ack(0, false)), (false, false, true)),
            (Body::LastAck, (false, true, true)),
            (Body::Probe { row: 0 }, (false, false, false)),
            (
                Body::Dns {
                    page: 0,
                    number: 0,
                    bytes: 1,
                },
                (false, false, false),
            ),
            (Body::Datagram { row: 0, bytes: 1 }, (false, false, false)),
            (opaque(true), (true, false, false)),
            (opaque(false), (false, false, false)),
        ] {
            let kind = (body.is_data(), body.is_control(), body.is_of_connection());
            assert_eq!(kind, expected, "{body:?}");
        }
    }

    #[test]
    fn the_ecn_bits_are_those_of_the_sender_until_a_mark() {
        for (ect, l4s, before, after) in [
            (false, false, Ecn::NotEct, Ecn::NotEct),
            (false, true, Ecn::NotEct, Ecn::NotEct),
            (true, false, Ecn::Ect0, Ecn::Ce),
            (true, true, Ecn::Ect1, Ecn::Ce),
        ] {
            let mut packet = packet(Body::Data(Data {
                ect,
                l4s,
                ..data(1)
            }));
            assert_eq!((packet.ecn(), packet.ecn_capable()), (before, ect));
            packet.mark_ce();
            assert_eq!((packet.ecn(), packet.ecn_capable()), (after, ect));
        }
        let mut opaque = packet(Body::Opaque {
            payload: 0,
            bytes: 1,
            ecn: Ecn::Ect0,
            is_data: true,
        });
        assert!(opaque.ecn_capable());
        opaque.mark_ce();
        assert_eq!(opaque.ecn(), Ecn::Ce);
        assert_eq!(packet(Body::LastAck).ecn(), Ecn::NotEct);
        assert!(!packet(Body::LastAck).ecn_capable());
    }

    #[test]
    fn an_ack_filter_sees_acks_without_a_fin_and_nothing_else() {
        let seen = packet(Body::Ack(ack(2, false))).pure_ack().expect("an ACK");
        assert_eq!((seen.next, seen.count, seen.ecn_flags), (9, 2, 3));
        assert_eq!(seen.blocks[1], (11, 12));
        assert!(packet(Body::Ack(ack(0, true))).pure_ack().is_none());
        assert!(packet(Body::LastAck).pure_ack().is_none());
    }

    #[test]
    fn only_data_behind_the_first_of_a_burst_follow_in_it() {
        let behind = Data {
            leads_burst: false,
            ..data(1)
        };
        assert!(packet(Body::Data(behind)).follows_in_burst());
        assert!(!packet(Body::Data(data(1))).follows_in_burst());
        assert!(!packet(Body::LastAck).follows_in_burst());
        let mut burst = packet(Body::Data(data(1)));
        let first = burst.split_first(1);
        let is_last = |packet: &InFlight| matches!(&packet.body, Body::Data(data) if data.push);
        let number = |packet: &InFlight| match &packet.body {
            Body::Data(data) => data.number,
            _ => 0,
        };
        assert_eq!((number(&first), is_last(&first)), (5, false));
        assert_eq!((number(&burst), is_last(&burst)), (6, true));
    }
}
