"""What a packet on the wire is made of."""

from __future__ import annotations

#: Ethernet's header, which htb and bfifo count with every packet.
LINK_HEADER_BYTES = 14
#: IPv4, TCP, and the timestamp option with its padding (RFC 7323): 20 + 20 + 12.
TCP_HEADERS_BYTES = 52
#: IPv4 and UDP: 20 + 8.
_UDP_HEADERS_BYTES = 28
#: What a TCP packet on the wire has beside its payload.
FRAME_HEADERS_BYTES = LINK_HEADER_BYTES + TCP_HEADERS_BYTES
#: An ACK without SACK blocks on the wire.
ACK_BYTES = FRAME_HEADERS_BYTES
#: A full packet of Ethernet's MTU, 1500 bytes, on the wire.
FULL_FRAME_BYTES = 1500 + LINK_HEADER_BYTES


def wire_bytes(mtu_bytes: int) -> int:
    """The size of a full packet on the wire, as htb and bfifo count it."""
    return mtu_bytes + LINK_HEADER_BYTES


def mss_bytes(mtu_bytes: int) -> int:
    """The payload of TCP's largest packet."""
    return mtu_bytes - TCP_HEADERS_BYTES


def datagram_bytes(mtu_bytes: int) -> int:
    """The payload of the largest UDP datagram that is not fragmented."""
    return mtu_bytes - _UDP_HEADERS_BYTES
