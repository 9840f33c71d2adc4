"""Packet captures as traces: unidirectional flows by addresses and ports, cut into chunks where
nothing was sent for a while (bless2025, section VI) or the sender waited for its application. A
capture is read once, packet by packet; memory grows with its flows and chunks, not with its
packets. Captures are untrusted input.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import dpkt
import numpy as np

from fullpipe.base.errors import UserError
from fullpipe.scenario.traffic.capture_packets import packets_of, payload_bytes
from fullpipe.scenario.traffic.traces import LARGEST, MAX_CHUNKS, Integers
from fullpipe.scenario.traffic.writing import Senders, Steady, steady

#: The silence of bless2025, section VI.
SILENCE_NS = 100 * 10**6
#: Flows that sent for longer are named where nothing tells what set their rate.
_LONG_NS = 10**9


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
    if not is_tcp and segment.ulen > 8:
        payload = segment.ulen - 8  # of which the IP packet may be the first fragment
    return (near, far), payload, is_tcp
