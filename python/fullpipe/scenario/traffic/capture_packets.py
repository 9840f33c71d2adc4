"""The IP packets in the frames of a capture, through the link layers that hosts capture on, VLAN
tags, PPPoE and MPLS. Frames are untrusted input.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dpkt

from fullpipe.base.errors import UserError
from fullpipe.scenario.traffic.capture_frames import Frame, frames_of

#: Link layers (https://www.tcpdump.org/linktypes.html): where the type of what is within lies, and
#: where that begins. Where the type is None, the packet's version tells it.
_LAYERS: dict[int, tuple[int | None, int]] = {
    0: (None, 4),  # BSD's loopback
    1: (12, 14),  # Ethernet
    12: (None, 0),  # raw IP, as 14 and 101
    14: (None, 0),
    101: (None, 0),
    108: (None, 4),  # OpenBSD's loopback
    113: (14, 16),  # Linux cooked
    228: (None, 0),  # raw IPv4
    229: (None, 0),  # raw IPv6
    276: (0, 20),  # Linux cooked, version 2
}
#: PPP, which a frame may begin with address and control.
_PPP, _PPP_TYPES = (9, 50), (b"\x00\x21", b"\x00\x57")
_VLAN_TAGS, _PPPOE, _MPLS = (0x8100, 0x88A8, 0x9100, 0x9200), 0x8864, (0x8847, 0x8848)
_TCP, _UDP = 6, 17
#: Ethernet and IPv4 headers.
_LEAST_KEPT = 14 + 20
_READ = "Ethernet, Linux cooked, raw IP, loopback and PPP"


def packets_of(path: Path) -> Iterator[tuple[int, Any]]:
    """(time in ns, IP packet as dpkt reads it) of every IP packet of a capture. Where a host left
    the length to its network card (0 in the header), it is that of the frame.

    Raises UserError where it cannot be read, is no capture, is empty, cut off or damaged, has
    another link layer, or keeps too little of each packet."""
    for number, frame in enumerate(frames_of(path), 1):
        if frame.link not in _LAYERS and frame.link not in _PPP:
            raise UserError(
                f"{path}: packet {number}: link layer {frame.link} of tcpdump.org/linktypes.html; "
                f"must be {_READ}"
            )
        packet = _ip_of(frame)
        if len(frame.data) < frame.wire_bytes and _ends_within_headers(frame, packet):
            raise UserError(
                f"{path}: packet {number}: only {len(frame.data)} of its {frame.wire_bytes} bytes "
                "were kept, which ends within its headers; capture 128 of each (tcpdump -s 128)"
            )
        if packet is not None:
            yield frame.at_ns, packet


def ip_bytes(packet: Any) -> int:
    """Length of an IP packet by its header."""
    return int(packet.len if isinstance(packet, dpkt.ip.IP) else packet.plen + 40)


def header_bytes(packet: Any) -> int:
    """Length of an IP packet's headers, with the extensions of IPv6."""
    if isinstance(packet, dpkt.ip.IP):
        return int(packet.hl * 4)
    return 40 + sum(int(extension.length) for extension in packet.all_extension_headers)


def payload_bytes(packet: Any, header: int) -> int:
    """Payload of an IP packet behind a transport's header, by the headers' lengths: captures may
    hold headers only."""
    return ip_bytes(packet) - header_bytes(packet) - header


def _ip_of(frame: Frame) -> Any:
    """The IP packet in a frame; None for others."""
    data = _network(frame)
    version = data[0] >> 4 if data else 0
    if version not in (4, 6):
        return None
    try:
        packet = dpkt.ip.IP(data) if version == 4 else dpkt.ip6.IP6(data)
    except (dpkt.UnpackError, struct.error, AttributeError, IndexError):
        return None
    whole = frame.wire_bytes - (len(frame.data) - len(data))
    if isinstance(packet, dpkt.ip.IP):
        packet.len = packet.len or whole
    else:
        packet.plen = packet.plen or whole - 40
    return packet


def _network(frame: Frame) -> bytes:
    """What a frame carries, from its IP header on; empty where that is no IP."""
    data = frame.data
    if frame.link in _PPP:
        return _of_ppp(data.removeprefix(b"\xff\x03"))
    type_at, begins = _LAYERS[frame.link]
    kind = None if type_at is None else _uint16(data, type_at)
    data = data[begins:]
    while kind in _VLAN_TAGS:
        kind, data = _uint16(data, 2), data[4:]
    if kind == _PPPOE:
        return _of_ppp(data[6:])
    if kind in _MPLS:
        while len(data) >= 4 and not data[2] & 1:  # not the lowest label of the stack
            data = data[4:]
        kind, data = None, data[4:]
    return data if kind in (None, 0x0800, 0x86DD) else b""


def _of_ppp(data: bytes) -> bytes:
    if data[:1] in (b"\x21", b"\x57"):  # the first byte left out (RFC 1661, section 6.5)
        data = b"\0" + data
    return data[2:] if data[:2] in _PPP_TYPES else b""


def _uint16(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "big")


def _ends_within_headers(frame: Frame, packet: Any) -> bool:
    """Whether what was kept of a packet lacks part of its headers of IP, TCP or UDP."""
    if packet is None:
        return len(frame.data) < _LEAST_KEPT
    is_opaque = packet.p in (_TCP, _UDP) and isinstance(packet.data, bytes)
    return is_opaque and not _is_later_fragment(packet)


def _is_later_fragment(packet: Any) -> bool:
    if isinstance(packet, dpkt.ip.IP):
        return bool(packet.offset)
    return any(getattr(h, "frag_off", 0) for h in packet.all_extension_headers)
