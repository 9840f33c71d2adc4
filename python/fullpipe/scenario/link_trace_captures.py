"""A link's trace from a capture behind it: what left a link that had packets waiting is what it
could carry. Where nothing waited its rate is not known, and is taken from before and after.

Whether packets waited is read from TCP's timestamps (RFC 7323): a packet that took longer than the
fastest of its flow was in a queue. Captures are untrusted input.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dpkt
import numpy as np
import numpy.typing as npt

from fullpipe.base.errors import UserError
from fullpipe.base.packets import FULL_FRAME_BYTES, LINK_HEADER_BYTES
from fullpipe.scenario.link_trace_generators import Made
from fullpipe.scenario.traffic.capture_packets import ip_bytes, packets_of, payload_bytes

Floats = npt.NDArray[np.float64]

#: Windows, in seconds, for which we judge whether the link was full; packets that one needs.
WINDOW_S, LEAST_PACKETS = 0.1, 2
#: Packets that waited less are not counted as having waited: timers and hosts make them late, too.
LEAST_WAIT_S = 0.005
#: A capture of a link that was full for a smaller share of the time says too little.
LEAST_SHARE = 0.5
_TIMESTAMPS = 8
_WRAP = 1 << 32
#: Ticks a second of clocks of timestamps (RFC 7323: 1 ms to 1 s a tick; Linux, BSD, Windows).
_CLOCKS_HZ = (1000, 250, 100, 1_000_000)


@dataclass(frozen=True)
class Captured:
    """A trace, its length, and the share of the time in which the link was full."""

    made: Made
    length_s: float
    full: float


@dataclass
class _Flow:
    """Data packets of one direction of a connection: times and timestamps. `handshake_s`: when SYN,
    SYN-ACK and the first ACK came; `ends`: sequence numbers behind data -> when it came; `answers`:
    how long until it was acknowledged."""

    times: array[float] = field(default_factory=lambda: array("d"))
    stamps: array[float] = field(default_factory=lambda: array("d"))
    payload: int = 0
    ends: dict[int, float] = field(default_factory=dict)
    answers: list[float] = field(default_factory=list)
    handshake_s: list[float] = field(default_factory=list)


def link_trace(capture: Path) -> Captured:
    """The trace of the link that the capture lies behind, towards the host that received most.

    Raises UserError where the file is no capture, was taken before the link, or does not show that
    the link was full for long enough."""
    times, sizes, flows = _read(capture)
    if not any(flow.payload for flow in flows):
        raise UserError(
            f"{capture}: holds no data of TCP with timestamps, which tell what waited; capture 128 "
            "bytes of each packet, and with net.ipv4.tcp_timestamps = 1"
        )
    _check_side(capture, max(flows, key=lambda flow: flow.payload))
    count = max(1, round(float(times[-1]) / WINDOW_S))
    edges = np.linspace(0.0, max(float(times[-1]), 1e-3), count + 1)
    full = _full_windows(flows, edges)
    share = float(full.mean())
    if share < LEAST_SHARE:
        raise UserError(
            f"{capture}: packets waited for the link in {100 * share:.0f} % of the time only, so "
            f"its rate is not known; at least {100 * LEAST_SHARE:.0f} % are needed: send more"
        )
    carried = np.histogram(times, edges, weights=sizes)[0]
    middles = (edges[1:] + edges[:-1]) / 2
    carried = np.where(full, carried, np.interp(middles, middles[full], carried[full]))
    return Captured(
        Made(_opportunities(times, sizes, edges, carried, full)), float(edges[-1]), share
    )


def _read(capture: Path) -> tuple[Floats, Floats, list[_Flow]]:
    """(times, bytes on the wire) of what the busiest host received, and its flows of TCP."""
    packets: dict[bytes, tuple[array[float], array[float]]] = {}
    flows: dict[tuple[bytes, int, bytes, int], _Flow] = {}
    zero_ns: int | None = None
    for at_ns, packet in packets_of(capture):
        zero_ns = at_ns if zero_ns is None else zero_ns
        time_s = (at_ns - zero_ns) / 1e9
        times, sizes = packets.setdefault(bytes(packet.dst), (array("d"), array("d")))
        times.append(time_s)
        sizes.append(ip_bytes(packet) + LINK_HEADER_BYTES)
        if isinstance(packet.data, dpkt.tcp.TCP):
            _take(flows, packet, time_s)
    if not packets:
        raise UserError(f"{capture}: holds no IP packets")
    received = Counter({host: sum(sizes) for host, (_, sizes) in packets.items()})
    ((host, _),) = received.most_common(1)
    times, sizes = packets[host]
    order = np.argsort(np.array(times), kind="stable")
    towards = [flow for (_, _, end, _), flow in flows.items() if end == host]
    return np.array(times)[order], np.array(sizes)[order], towards


def _take(flows: dict[tuple[bytes, int, bytes, int], _Flow], packet: Any, time_s: float) -> None:
    segment = packet.data
    near, far = (bytes(packet.src), segment.sport), (bytes(packet.dst), segment.dport)
    sender, receiver = (flows.setdefault(ends, _Flow()) for ends in ((*near, *far), (*far, *near)))
    if len(sender.handshake_s) < 3:
        sender.handshake_s.append(time_s)
        receiver.handshake_s.append(time_s)
    length = payload_bytes(packet, segment.off * 4)
    if segment.flags & dpkt.tcp.TH_ACK:
        came_s = receiver.ends.pop(segment.ack, None)
        if came_s is not None:
            receiver.answers.append(time_s - came_s)
    stamp = dict(dpkt.tcp.parse_opts(segment.opts)).get(_TIMESTAMPS, b"")
    if length <= 0 or len(stamp) != 8:
        return
    sender.payload += length
    sender.ends[(segment.seq + length) % _WRAP] = time_s
    sender.times.append(time_s)
    sender.stamps.append(int.from_bytes(stamp[:4], "big"))


def _check_side(capture: Path, flow: _Flow) -> None:
    """Raises UserError where the answers to data come after a round trip: the capture is the
    sender's."""
    first, *_, last = flow.handshake_s
    round_trip_s = last - first
    if flow.answers and float(np.median(flow.answers)) > max(0.5 * round_trip_s, LEAST_WAIT_S):
        raise UserError(
            f"{capture}: was taken before the link, where data is acknowledged after a round trip; "
            "capture at the receiver"
        )


def _full_windows(flows: list[_Flow], edges: Floats) -> npt.NDArray[np.bool_]:
    """In which windows the packets had waited for the link."""
    waited, arrived = np.zeros(edges.size - 1), np.zeros(edges.size - 1)
    for flow in flows:
        times = np.array(flow.times)
        if times.size < LEAST_PACKETS:
            continue
        waits = _waits_s(times, np.array(flow.stamps))
        arrived += np.histogram(times, edges)[0]
        waited += np.histogram(times[waits >= LEAST_WAIT_S], edges)[0]
    return np.asarray((arrived >= LEAST_PACKETS) & (waited >= 0.9 * arrived))


def _waits_s(times: Floats, stamps: Floats) -> Floats:
    """How much longer than the fastest each packet took, by the sender's clock."""
    ticks = (stamps - stamps[0] + _WRAP / 2) % _WRAP - _WRAP / 2
    span = times[-1] - times[0]
    measured_hz = (ticks[-1] - ticks[0]) / span if span > 0 else 1000.0
    hz = min(_CLOCKS_HZ, key=lambda clock: abs(np.log(max(measured_hz, 1.0) / clock)))
    took = times - ticks / hz
    return np.asarray(took - took.min())


def _opportunities(
    times: Floats, sizes: Floats, edges: Floats, carried: Floats, full: npt.NDArray[np.bool_]
) -> list[int]:
    """Times in ms at which the link could have sent a packet: when it did, and evenly in windows
    in which it was not full."""
    at, volumes = [times[_within(times, edges, full)]], [sizes[_within(times, edges, full)]]
    for index in np.flatnonzero(~full):
        number = max(1, round(carried[index] / FULL_FRAME_BYTES))
        at.append(np.linspace(edges[index], edges[index + 1], number, endpoint=False))
        volumes.append(np.full(number, carried[index] / number))
    every, bytes_ = np.concatenate(at), np.concatenate(volumes)
    order = np.argsort(every, kind="stable")
    total = np.cumsum(bytes_[order])
    wanted = np.arange(1, int(total[-1] // FULL_FRAME_BYTES) + 1) * FULL_FRAME_BYTES
    times_s = every[order][np.searchsorted(total, wanted - 1e-6)]
    made = [int(value) for value in np.floor(1e3 * times_s)]
    return [*made, max(made[-1] if made else 0, round(1e3 * edges[-1]), 1)]


def _within(times: Floats, edges: Floats, full: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    windows = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, full.size - 1)
    return np.asarray(full[windows])
