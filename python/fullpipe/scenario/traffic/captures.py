"""Packet captures as traces: unidirectional flows by addresses and ports, cut into chunks where
nothing was sent for a while (bless2025, section VI) or the sender waited for its application. A
capture is read once, packet by packet; memory grows with its flows and chunks, not with its
packets. Captures are untrusted input.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import dpkt
import numpy as np

from fullpipe.base.errors import UserError
from fullpipe.base.supplied import open_regular
from fullpipe.scenario.traffic.traces import LARGEST, MAX_CHUNKS, Integers
from fullpipe.scenario.traffic.writing import Senders, Steady, steady

#: The silence of bless2025, section VI.
SILENCE_NS = 100 * 10**6
#: Flows that sent for longer are named where nothing tells what set their rate.
_LONG_NS = 10**9
#: Sizes of the headers of a record and a block; a capture may end only before one.
_HEADERS = (8, 16)


class _Whole:
    """A file that raises EOFError where it ends within a record."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.name = file.name

    def read(self, count: int = -1) -> bytes:
        data = self._file.read(count)
        if count > 0 and len(data) < count and (data or count not in _HEADERS):
            raise EOFError
        return data

    def seek(self, *where: int) -> int:
        return self._file.seek(*where)

    def tell(self) -> int:
        return self._file.tell()


class FlowTrace(NamedTuple):
    """The columns of a trace (`traces`) and what the capture tells of its applications. `steady`:
    flow -> its application, where it wrote at a steady rate; `untold`: flows that sent for over a
    second and of which it is not known whether their application or the path set their rate."""

    columns: dict[str, Integers]
    steady: dict[int, Steady]
    untold: list[int]


@dataclass(slots=True)
class _Flow:
    """A flow as it is read. `open_chunk`: position of the chunk that grows; `begins_us`: of its
    chunks."""

    number: int
    first_ns: int
    last_ns: int
    is_tcp: bool
    open_chunk: int = 0
    begins_us: array[int] = field(default_factory=lambda: array("Q"))


def read(path: Path, silence_ns: int = SILENCE_NS) -> FlowTrace:
    """A trace from a pcap or pcapng file: TCP and UDP payload by the IP headers, so that captures
    of headers alone do too. Times count from the first packet. A chunk ends where nothing was sent
    for `silence_ns`, and where a TCP sender waited for its application (`Senders.idle_ns`).

    Raises UserError where it cannot be read, is no capture, is cut off, or holds no payload."""
    flows: dict[bytes, _Flow] = {}
    senders = Senders()
    columns = {name: array("Q") for name in ("flow", "start_us", "pause_us", "bytes")}
    zero_ns: int | None = None
    for at_ns, packet in packets_of(path):
        transport = _transport_of(packet)
        if transport is None:
            continue
        ends, payload, is_tcp = transport
        idle_ns = senders.idle_ns(at_ns, ends, packet.data, payload) if is_tcp else 0
        if payload <= 0:
            continue
        zero_ns = at_ns if zero_ns is None else zero_ns
        since_ns = max(at_ns - zero_ns, 0)
        if since_ns // 1000 > LARGEST["start_us"]:
            raise UserError(
                f"{path}: a packet comes more than a week after the first; cut the capture"
            )
        key = ends[0] + ends[1] + bytes([is_tcp])
        flow = flows.get(key)
        pause_ns = 0
        if flow is None:
            flow = flows[key] = _Flow(len(flows), since_ns, since_ns, is_tcp)
        else:
            # Times of a capture may jump; no pause is longer than that between the packets.
            since_last_ns = max(since_ns - flow.last_ns, 0)
            idle_ns = min(idle_ns, since_last_ns)
            pause_ns = idle_ns or since_last_ns
            flow.last_ns = max(since_ns, flow.last_ns)
            if pause_ns < silence_ns and not idle_ns:
                columns["bytes"][flow.open_chunk] += payload
                continue
        if len(columns["flow"]) >= MAX_CHUNKS:
            raise UserError(f"{path}: more than {MAX_CHUNKS} chunks; cut the capture")
        flow.open_chunk = len(columns["flow"])
        flow.begins_us.append(since_ns // 1000)
        columns["flow"].append(flow.number)
        columns["start_us"].append(flow.first_ns // 1000)
        columns["pause_us"].append(pause_ns // 1000)
        columns["bytes"].append(payload)
    if not flows:
        raise UserError(f"{path}: holds no TCP or UDP payload; a trace has at least one flow")
    return _trace_of(columns, list(flows.values()))


def _trace_of(columns: Mapping[str, array[int]], flows: Sequence[_Flow]) -> FlowTrace:
    chunks: list[list[int]] = [[] for _ in flows]
    for number, size in zip(columns["flow"], columns["bytes"], strict=True):
        chunks[number].append(size)
    applications = {
        flow.number: application
        for flow in flows
        if flow.is_tcp and (application := steady(chunks[flow.number], flow.begins_us))
    }
    untold = [
        flow.number
        for flow in flows
        if flow.is_tcp and len(flow.begins_us) == 1 and flow.last_ns - flow.first_ns > _LONG_NS
    ]
    arrays = {name: np.array(values, np.uint64) for name, values in columns.items()}
    return FlowTrace(arrays, applications, untold)


def packets_of(path: Path) -> Iterator[tuple[int, Any]]:
    """(time in ns, to 1 us; IP packet as dpkt reads it) of every IP packet of a capture.

    Raises UserError where it cannot be read, is no capture, is empty, cut off or damaged."""
    try:
        with open_regular(path) as file:
            whole = _Whole(file)
            try:
                reader = dpkt.pcap.UniversalReader(whole)
            except (ValueError, dpkt.UnpackError, struct.error):
                raise UserError(f"{path}: no capture; pcap and pcapng files are") from None
            link = reader.datalink()
            for seconds, frame in reader:
                packet = _ip_of(link, frame)
                if packet is not None:
                    yield round(float(seconds) * 1e6) * 1000, packet
    except EOFError:
        if path.stat().st_size == 0:
            raise UserError(f"{path}: is empty; a capture has at least a header") from None
        raise UserError(f"{path}: is cut off: its last packet is not whole") from None
    except (ValueError, dpkt.UnpackError, struct.error) as error:
        raise UserError(f"{path}: damaged: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None


def _ip_of(link: int, frame: bytes) -> Any:
    """The IP packet in a frame; None for others."""
    try:
        if link == dpkt.pcap.DLT_EN10MB:
            packet = dpkt.ethernet.Ethernet(frame).data
        elif link == dpkt.pcap.DLT_LINUX_SLL:
            packet = dpkt.sll.SLL(frame).data
        elif frame[:1] and frame[0] >> 4 == 6:
            packet = dpkt.ip6.IP6(frame)
        else:
            packet = dpkt.ip.IP(frame)
    except (dpkt.UnpackError, struct.error, AttributeError, IndexError):
        return None
    return packet if isinstance(packet, dpkt.ip.IP | dpkt.ip6.IP6) else None


def _transport_of(packet: Any) -> tuple[tuple[bytes, bytes], int, bool] | None:
    """(address and port of sender and receiver, payload, whether it is TCP) of a packet of TCP or
    UDP; None for others."""
    segment = packet.data
    is_tcp = isinstance(segment, dpkt.tcp.TCP)
    if not is_tcp and not isinstance(segment, dpkt.udp.UDP):
        return None
    payload = payload_bytes(packet, segment.off * 4 if is_tcp else 8)
    near = packet.src + struct.pack("!H", segment.sport)
    far = packet.dst + struct.pack("!H", segment.dport)
    return (near, far), payload, is_tcp


def payload_bytes(packet: Any, header: int) -> int:
    """Payload of an IP packet behind a transport's header, by the headers' lengths: captures may
    hold headers only."""
    if isinstance(packet, dpkt.ip.IP):
        return int(packet.len - packet.hl * 4 - header)
    return int(packet.plen - header)
