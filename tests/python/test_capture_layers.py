"""Captures of the same datagrams in the link layers and files that tools write, built by hand from
RFC 791 and 8200, tcpdump.org's link types and the drafts of pcap and pcapng."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from fullpipe.base.errors import UserError
from fullpipe.scenario.traffic import captures
from fullpipe.scenario.traffic.capture_packets import packets_of

PAYLOAD, START_NS = 200, 1_700_000_000_000_000_123
UDP = struct.pack("!HHHH", 2000, 3000, 8 + PAYLOAD, 0) + b"y" * PAYLOAD
FROM_4, TO_4 = (socket.inet_aton(f"10.0.0.{host}") for host in (1, 2))
FROM_6, TO_6 = (socket.inet_pton(socket.AF_INET6, f"fd00::{host}") for host in (1, 2))
MACS = b"\2" * 6 + b"\4" * 6


def ip4(length: int) -> bytes:
    header = struct.pack("!BBHHHBBH", 0x45, 0, length, 1, 0x4000, 64, 17, 0)
    return header + FROM_4 + TO_4 + UDP


def ip6(extension: bytes = b"") -> bytes:
    begin = 0 if extension else 17
    length = len(extension) + len(UDP)
    header = struct.pack("!IHBB", 0x60000000, length, begin, 64)
    return header + FROM_6 + TO_6 + extension + UDP


IP4, IP6 = ip4(20 + len(UDP)), ip6()
#: Hop-by-hop options of 8 bytes before UDP (17).
OPTIONS = struct.pack("!BBBBI", 17, 0, 1, 4, 0)
SLL = struct.pack("!HHHQ", 4, 1, 6, 0)
SLL2 = struct.pack("!HHIHBBQ", 0x0800, 0, 2, 1, 4, 6, 0)
PPPOE = struct.pack("!HBBHHH", 0x8864, 0x11, 0, 7, len(IP4) + 2, 0x21)
#: Two labels, of which the second is the lowest.
MPLS = struct.pack("!HII", 0x8847, 16 << 12 | 64, 17 << 12 | 0x100 | 64)


def pcap(link: int, frames: Sequence[bytes], kept: int = 65535, wide: bool = False) -> bytes:
    """A frame a millisecond, with times in ns."""
    order = ">" if wide else "<"
    content = struct.pack(order + "IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, kept, link)
    for index, frame in enumerate(frames):
        seconds, ns = divmod(START_NS + index * 10**6, 10**9)
        cut = frame[:kept]
        content += struct.pack(order + "IIII", seconds, ns, len(cut), len(frame)) + cut
    return content


def block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length


def pcapng(*interfaces: tuple[int, int], packets: Sequence[tuple[int, bytes]]) -> bytes:
    """`interfaces`: link layer and if_tsresol; a packet a millisecond of an interface each."""
    content = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    for link, resolution in interfaces:
        content += block(1, struct.pack("<HHIHHB3xI", link, 0, 0, 9, 1, resolution, 0))
    for index, (interface, frame) in enumerate(packets):
        resolution = interfaces[interface][1]
        ticks = 2 ** (resolution & 127) if resolution & 128 else 10**resolution
        high, low = divmod((START_NS + index * 10**6) * ticks // 10**9, 2**32)
        head = struct.pack("<IIIII", interface, high, low, len(frame), len(frame))
        content += block(6, head + frame)
    return content


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "capture"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("link", "frame"),
    [
        (1, MACS + b"\x08\0" + IP4),
        (1, MACS + b"\x86\xdd" + IP6),
        (1, MACS + struct.pack("!HHHHH", 0x88A8, 5, 0x8100, 6, 0x0800) + IP4),
        (1, MACS + PPPOE + IP4),
        (1, MACS + MPLS + IP4),
        (113, SLL + b"\x08\0" + IP4),
        (113, SLL + struct.pack("!HHH", 0x8100, 5, 0x86DD) + IP6),
        (276, SLL2 + IP4),
        (101, IP4),
        (101, IP6),
        (228, IP4),
        (0, struct.pack("<I", 2) + IP4),
        (108, struct.pack("!I", 30) + IP6),
        (9, b"\xff\x03\0\x21" + IP4),
        # Extensions are no payload, and neither is what fills an Ethernet frame.
        (101, ip6(OPTIONS)),
        (1, MACS + b"\x08\0" + IP4 + bytes(50)),
        # The network card fills the length in.
        (101, ip4(0)),
    ],
)
def test_payload_is_that_of_the_headers_in_every_link_layer(
    tmp_path: Path, link: int, frame: bytes
) -> None:
    columns = captures.read(written(tmp_path, pcap(link, [frame, frame]))).columns
    assert columns["bytes"].tolist() == [2 * PAYLOAD]


def test_a_datagram_in_fragments_counts_once_and_whole(tmp_path: Path) -> None:
    """RFC 791: offsets count in 8 bytes, and all fragments but the last say that more follow."""

    def fragment(begin: int, end: int) -> bytes:
        more = 0x2000 if end < len(UDP) else 0
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + end - begin, 1, more | begin // 8, 64, 17, 0)
        return head + FROM_4 + TO_4 + UDP[begin:end]

    frames = [fragment(0, 80), fragment(80, 160), fragment(160, len(UDP))]
    columns = captures.read(written(tmp_path, pcap(101, frames))).columns
    assert columns["bytes"].tolist() == [PAYLOAD]


def test_frames_of_which_headers_alone_were_kept_count_whole(tmp_path: Path) -> None:
    file = written(tmp_path, pcap(1, [MACS + b"\x08\0" + IP4] * 3, kept=42, wide=True))
    assert captures.read(file).columns["bytes"].tolist() == [3 * PAYLOAD]


def test_each_interface_of_a_pcapng_has_its_link_layer_and_clock(tmp_path: Path) -> None:
    packets = [(0, MACS + b"\x08\0" + IP4), (1, IP4), (2, SLL2 + IP4), (1, IP4)]
    file = written(tmp_path, pcapng((1, 6), (101, 9), (276, 0x80 | 20), packets=packets))
    times = [at_ns for at_ns, _ in packets_of(file)]
    exact = [START_NS + index * 10**6 for index in range(4)]
    # Clocks of 1 us, 1 ns and 2^-20 s round down.
    assert times[1] == exact[1] and times[3] == exact[3]
    assert times[0] == exact[0] // 1000 * 1000
    assert 0 <= exact[2] - times[2] < 1e9 / 2**20
    assert captures.read(file).columns["bytes"].tolist() == [4 * PAYLOAD]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (pcap(127, [bytes(40)]), r"packet 1: link layer 127 .*must be Ethernet, .*raw IP"),
        (pcap(1, [MACS + b"\x08\0" + IP4], kept=40), "packet 1: only 40 of its 242 bytes were"),
        (pcap(1, [MACS + b"\x08\0" + IP4], kept=20), "packet 1: only 20 of its 242 bytes were"),
        (pcapng((1, 6), packets=[])[:-4], "cut off"),
        (pcapng(packets=[]) + block(6, bytes(24)), "damaged: a packet of interface 0"),
        (pcapng(packets=[]) + block(3, bytes(8)), "damaged: its packets have no times"),
        (b"\x1f\x8b" + bytes(20), "is a file compressed by gzip, no capture; pcap and pcapng"),
    ],
)
def test_what_cannot_be_read_of_a_capture_is_said(
    tmp_path: Path, content: bytes, says: str
) -> None:
    with pytest.raises(UserError, match=says):
        captures.read(written(tmp_path, content))
