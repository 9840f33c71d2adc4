"""The frames of a packet capture in pcap or pcapng (draft-ietf-opsawg-pcap, -pcapng). A capture is
untrusted input, and is read frame by frame. dpkt reads all interfaces of a pcapng by the clock and
link layer of the first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO, NamedTuple

from fullpipe.base.errors import UserError
from fullpipe.base.filekind import no_such_file
from fullpipe.base.supplied import open_regular

#: First bytes of a pcap -> byte order, nanoseconds a tick, and bytes of a record's header (16, with
#: eight more as Kuznetsov's Linux wrote them).
_PCAP = {
    struct.pack(order + "I", magic): (order, tick_ns, header)
    for order in "<>"
    for magic, tick_ns, header in (
        (0xA1B2C3D4, 1000, 16),
        (0xA1B23C4D, 1, 16),
        (0xA1B2CD34, 1000, 24),
    )
}
_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_SECTION_BYTES = struct.pack("<I", _SECTION)
_BYTE_ORDER = {struct.pack(order + "I", 0x1A2B3C4D): order for order in "<>"}
#: Options of an interface: the resolution of its times, and the seconds that are added to them.
_RESOLUTION, _OFFSET = 9, 14
#: Of a frame (tcpdump takes 256 KiB, super-packets of loopback 512), and of any other block.
_MAX_FRAME, _MAX_BLOCK = 1 << 20, 1 << 25


class Frame(NamedTuple):
    """`link`: its link layer, as https://www.tcpdump.org/linktypes.html numbers them;
    `wire_bytes`: its length, of which `data` may be only the beginning."""

    at_ns: int
    link: int
    data: bytes
    wire_bytes: int


class _Interface(NamedTuple):
    link: int
    tick_ns: Fraction
    offset_ns: int


def frames_of(path: Path) -> Iterator[Frame]:
    """Every frame of a capture. Raises UserError where it cannot be read, is no capture, is empty,
    cut off or damaged, or has no times."""
    try:
        with open_regular(path) as file:
            begin = file.read(4)
            if begin in _PCAP:
                yield from _of_pcap(file, *_PCAP[begin])
            elif begin == _SECTION_BYTES:
                yield from _of_pcapng(file)
            elif not begin:
                raise UserError(f"{path}: is empty; a capture has at least a header")
            else:
                kind = no_such_file("capture", begin + file.read(1 << 12))
                raise UserError(f"{path}: {kind or 'no capture'}; pcap and pcapng files are")
    except EOFError:
        raise UserError(f"{path}: is cut off: its last packet is not whole") from None
    except (ValueError, struct.error) as error:
        raise UserError(f"{path}: damaged: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None


def _of_pcap(file: BinaryIO, order: str, tick_ns: int, header: int) -> Iterator[Frame]:
    # The upper half of the link layer tells of check sequences.
    link = struct.unpack(order + "16xI", _exactly(file, 20))[0] & 0xFFFF
    while begin := file.read(header):
        if len(begin) < header:
            raise EOFError
        seconds, ticks, kept, whole = struct.unpack_from(order + "IIII", begin)
        yield Frame(seconds * 10**9 + ticks * tick_ns, link, _kept(file, kept), whole)


def _of_pcapng(file: BinaryIO) -> Iterator[Frame]:
    """The first four bytes of the file have been read."""
    order, interfaces, begin = "<", list[_Interface](), _SECTION_BYTES
    while begin:
        begin += _exactly(file, 8 - len(begin))
        if begin.startswith(_SECTION_BYTES):
            magic = _exactly(file, 4)
            if magic not in _BYTE_ORDER:
                raise ValueError("a section whose byte order is none")
            order, interfaces = _BYTE_ORDER[magic], []
        kind, length = struct.unpack(order + "II", begin)
        read = 12 if kind == _SECTION else 8
        if length % 4 or not read + 4 <= length <= _MAX_BLOCK:
            raise ValueError(f"a block of {length} bytes")
        body = _exactly(file, length - read)[:-4]
        if kind == _INTERFACE:
            interfaces.append(_interface(order, body))
        elif kind in (_PACKET, _OLD_PACKET):
            yield _frame(order, kind, body, interfaces)
        elif kind == _SIMPLE_PACKET:
            raise ValueError("its packets have no times (Simple Packet Blocks)")
        begin = file.read(8)


def _interface(order: str, body: bytes) -> _Interface:
    (link,) = struct.unpack_from(order + "H", body)
    tick_ns, offset_ns, at = Fraction(1000), 0, 8
    while at + 4 <= len(body):
        code, length = struct.unpack_from(order + "HH", body, at)
        value = body[at + 4 : at + 4 + length]
        if code == _RESOLUTION and length == 1:
            # The highest bit: a power of two.
            base = 2 if value[0] & 0x80 else 10
            tick_ns = Fraction(10**9, base ** (value[0] & 0x7F))
        elif code == _OFFSET and length == 8:
            offset_ns = struct.unpack(order + "q", value)[0] * 10**9
        elif code == 0:
            break
        at += 4 + length + -length % 4
    return _Interface(link, tick_ns, offset_ns)


def _frame(order: str, kind: int, body: bytes, interfaces: list[_Interface]) -> Frame:
    layout = "IIIII" if kind == _PACKET else "H2xIIII"
    index, high, low, kept, whole = struct.unpack_from(order + layout, body)
    if index >= len(interfaces):
        raise ValueError(f"a packet of interface {index}, which it does not describe")
    data = body[20 : 20 + kept]
    if len(data) < kept:
        raise ValueError(f"a packet of {kept} bytes in a block of {len(body)}")
    link, tick_ns, offset_ns = interfaces[index]
    return Frame(int((high << 32 | low) * tick_ns) + offset_ns, link, data, whole)


def _kept(file: BinaryIO, count: int) -> bytes:
    if count > _MAX_FRAME:
        raise ValueError(f"a packet of {count} bytes")
    return _exactly(file, count)


def _exactly(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise EOFError
    return data
