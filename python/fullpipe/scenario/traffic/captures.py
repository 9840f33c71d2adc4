"""Packet captures as traces: unidirectional flows by addresses and ports, cut into chunks where
nothing was sent for a while (bless2025, section VI). A capture is read once, packet by packet;
memory grows with its flows and chunks, not with its packets. Captures are untrusted input.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import dpkt
import numpy as np

from fullpipe.base.errors import UserError
from fullpipe.scenario.traffic.traces import LARGEST, MAX_CHUNKS, Integers

#: The silence of bless2025, section VI.
SILENCE_NS = 100 * 10**6
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


def read(path: Path, silence_ns: int = SILENCE_NS) -> dict[str, Integers]:
    """The columns of a trace (`traces`) from a pcap or pcapng file: TCP and UDP
    payload by the IP headers, so that captures of headers alone do too. Times count from the first
    packet.

    Raises UserError where it cannot be read, is no capture, is cut off, or holds no payload."""
    # By flow: its number, and when it last sent.
    flows: dict[bytes, list[int]] = {}
    columns = {name: array("Q") for name in ("flow", "start_us", "pause_us", "bytes")}
    starts = array("Q")
    # Position of each flow's open chunk; a chunk grows until a silence.
    open_chunks = array("Q")
    zero_ns: int | None = None
    for at_ns, key, payload in _packets(path):
        zero_ns = at_ns if zero_ns is None else zero_ns
        since_ns = max(at_ns - zero_ns, 0)
        if since_ns // 1000 > LARGEST["start_us"]:
            raise UserError(
                f"{path}: a packet comes more than a week after the first; cut the capture"
            )
        state = flows.get(key)
        if state is None:
            state = flows[key] = [len(flows), since_ns]
            starts.append(since_ns // 1000)
            open_chunks.append(0)
            pause_ns = 0
        else:
            pause_ns = max(since_ns - state[1], 0)
            state[1] = max(since_ns, state[1])
            if pause_ns < silence_ns:
                columns["bytes"][open_chunks[state[0]]] += payload
                continue
        if len(columns["flow"]) >= MAX_CHUNKS:
            raise UserError(f"{path}: more than {MAX_CHUNKS} chunks; cut the capture")
        open_chunks[state[0]] = len(columns["flow"])
        columns["flow"].append(state[0])
        columns["start_us"].append(starts[state[0]])
        columns["pause_us"].append(pause_ns // 1000)
        columns["bytes"].append(payload)
    if not flows:
        raise UserError(f"{path}: holds no TCP or UDP payload; a trace has at least one flow")
    return {name: np.array(values, np.uint64) for name, values in columns.items()}


def _packets(path: Path) -> Iterator[tuple[int, bytes, int]]:
    """(time in ns, addresses and ports, payload bytes) of every packet with payload."""
    for at_ns, packet in packets_of(path):
        flow = _flow_of(packet)
        if flow is not None:
            yield at_ns, *flow


def packets_of(path: Path) -> Iterator[tuple[int, Any]]:
    """(time in ns, to 1 us; IP packet as dpkt reads it) of every IP packet of a capture.

    Raises UserError where it cannot be read, is no capture, is empty, cut off or damaged."""
    try:
        with path.open("rb") as file:
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


def _flow_of(packet: Any) -> tuple[bytes, int] | None:
    """(addresses and ports, payload) of a TCP or UDP packet; None for others."""
    segment = packet.data
    if isinstance(segment, dpkt.tcp.TCP):
        header = segment.off * 4
    elif isinstance(segment, dpkt.udp.UDP):
        header = 8
    else:
        return None
    payload = payload_bytes(packet, header)
    if payload <= 0:
        return None
    ports = struct.pack("!BHH", header == 8, segment.sport, segment.dport)
    return packet.src + packet.dst + ports, payload


def payload_bytes(packet: Any, header: int) -> int:
    """Payload of an IP packet behind a transport's header, by the headers' lengths: captures may
    hold headers only."""
    if isinstance(packet, dpkt.ip.IP):
        return int(packet.len - packet.hl * 4 - header)
    return int(packet.plen - header)
