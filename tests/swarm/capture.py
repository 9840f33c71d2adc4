"""Reads the captures that `fullpipe run --pcap` writes: TCP's packets at each sender's host, as
they leave or arrive. Shares no code with what writes them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

#: Of captures with times in ns (pcap-savefile(5)).
_MAGIC_NS = 0xA1B23C4D
#: IP's number of the protocol.
_TCP = 6
FIN, SYN, PSH, ACK, ECE, CWR, AE = 1, 2, 8, 16, 64, 128, 256


@dataclass(slots=True)
class Segment:
    """One packet."""

    at_ns: int
    #: Whether the host of the flow's sender sent it; else it arrived there.
    leaves: bool
    ecn: int
    seq: int
    ack: int
    flags: int
    window: int
    payload: int
    tsval: int = 0
    tsecr: int = 0
    window_shift: int | None = None
    sack: list[tuple[int, int]] = field(default_factory=list)


def read(path: Path) -> dict[int, list[Segment]]:
    """The packets of each flow of TCP by its id, in the order of the file."""
    data = path.read_bytes()
    magic, *_, link = struct.unpack_from("<IHHiIII", data)
    if magic != _MAGIC_NS or link != 1:
        raise ValueError(f"{path}: no capture of Ethernet in ns")
    flows: dict[int, list[Segment]] = {}
    at = 24
    while at < len(data):
        seconds, ns, captured, original = struct.unpack_from("<IIII", data, at)
        at += 16
        frame = data[at : at + captured]
        if len(frame) != captured:
            raise ValueError(f"{path}: ends within a packet")
        at += captured
        version, _, length = struct.unpack_from("!BBH", frame, 14)
        if version != 0x45 or original != length + 14:
            raise ValueError("a packet is no IPv4, or its lengths differ")
        if frame[23] == _TCP:
            flow, segment = _segment(frame, seconds * 10**9 + ns)
            flows.setdefault(flow, []).append(segment)
    return flows


def _segment(frame: bytes, at_ns: int) -> tuple[int, Segment]:
    tos, length = struct.unpack_from("!BH", frame, 15)
    source, target = frame[26:30], frame[30:34]
    leaves = source[1] == 10
    host = source if leaves else target
    _, _, seq, ack, offset_flags, window = struct.unpack_from("!HHIIHH", frame, 34)
    header = (offset_flags >> 12) * 4
    segment = Segment(
        at_ns, leaves, tos & 3, seq, ack, offset_flags & 0x1FF, window, length - 20 - header
    )
    _read_options(frame[54 : 34 + header], segment)
    return (host[2] << 8) + (host[3] - 1) % 256, segment


def _read_options(options: bytes, segment: Segment) -> None:
    at = 0
    while at < len(options):
        kind = options[at]
        if kind == 0:
            return
        if kind == 1:
            at += 1
            continue
        body = options[at + 2 : at + options[at + 1]]
        if kind == 8:
            segment.tsval, segment.tsecr = struct.unpack("!II", body)
        elif kind == 5:
            edges = struct.unpack(f"!{len(body) // 4}I", body)
            segment.sack = list(zip(edges[::2], edges[1::2], strict=True))
        elif kind == 3:
            segment.window_shift = body[0]
        at += options[at + 1]
