"""The time-sequence graph of one TCP connection in a capture, in the manner of tcptrace: what was
sent, sent again, acknowledged and selectively acknowledged, and the receiver's window.

Captures are untrusted input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dpkt
import numpy as np

from fullpipe.base.errors import UserError
from fullpipe.base.units import KIB, format_time
from fullpipe.metrics.view import Floats
from fullpipe.plots import style
from fullpipe.plots.model import Plot, Trace
from fullpipe.scenario.traffic.capture_packets import packets_of, payload_bytes

_WRAP = 1 << 32
_SACK, _SCALE = 5, 3
_AGAIN, _SACKED, _WINDOW = "#b3261e", "#8e44ad", "#b0a000"


@dataclass
class _Side:
    """What one end of a connection sent. `sent`: (s, first byte, end, whether again). `acks`: (s,
    bytes acknowledged, window as written, SACK blocks). Bytes count from the first."""

    base: int | None = None
    scale: int | None = None
    highest: int = 0
    payload: int = 0
    sent: list[tuple[float, int, int, bool]] = field(default_factory=list)
    acks: list[tuple[float, int, int, list[tuple[int, int]]]] = field(default_factory=list)

    def offset(self, sequence: int) -> int:
        """A sequence number in bytes since the first, the nearest to what was last sent."""
        assert self.base is not None
        near = (sequence - self.base - self.highest) % _WRAP
        return self.highest + (near - _WRAP if near >= _WRAP // 2 else near)

    def transmit(self, time_s: float, sequence: int, length: int) -> None:
        """Data leaves."""
        self.base = sequence if self.base is None else self.base
        first = self.offset(sequence)
        self.sent.append((time_s, first, first + length, first < self.highest))
        self.highest = max(self.highest, first + length)
        self.payload += length


def time_sequence(
    capture: Path, number: int = 1, start_s: float = 0.0, end_s: float = np.inf
) -> Plot:
    """The graph of the connection with this number, in the order in which they appear, of the end
    that sent more. Times count from the capture's first packet.

    Raises UserError where the file is no capture or has no such connection."""
    data, reply = sorted(_connection(capture, number), key=lambda side: side.payload, reverse=True)
    if not data.sent:
        raise UserError(f"{capture}: connection {number} carries no data")
    traces = [trace for trace in _traces(data, reply, start_s, end_s) if trace.x.size]
    if not traces:
        raise UserError(
            f"{capture}: connection {number} has no packet between --from and --to; it sends from "
            f"{format_time(data.sent[0][0] * 1e9)} to {format_time(data.sent[-1][0] * 1e9)}"
        )
    note = ""
    if reply.scale is None:
        note = (
            "the capture lacks the handshake: the window's scale is not known, and it is not drawn"
        )
    return Plot(
        "time_sequence",
        f"Time and sequence, connection {number}",
        x_title="time (s)",
        y_title="sequence number (KiB)",
        traces=traces,
        note=note,
        zero=False,
    )


def _connection(capture: Path, number: int) -> tuple[_Side, _Side]:
    numbers: dict[frozenset[tuple[bytes, int]], int] = {}
    sides: dict[tuple[bytes, int], _Side] = {}
    zero_ns = 0
    for index, (at_ns, packet) in enumerate(packets_of(capture)):
        zero_ns = at_ns if index == 0 else zero_ns
        segment = packet.data
        if not isinstance(segment, dpkt.tcp.TCP):
            continue
        near, far = (packet.src, segment.sport), (packet.dst, segment.dport)
        if numbers.setdefault(frozenset((near, far)), len(numbers) + 1) == number:
            sender, peer = (sides.setdefault(end, _Side()) for end in (near, far))
            _take(sender, peer, (at_ns - zero_ns) / 1e9, packet, segment)
    if len(sides) != 2:
        raise UserError(f"{capture}: has {len(numbers)} TCP connections, none with number {number}")
    first, second = sides.values()
    return first, second


def _take(sender: _Side, peer: _Side, time_s: float, packet: Any, segment: Any) -> None:
    """A segment that one end sends to the other."""
    options = dict(dpkt.tcp.parse_opts(segment.opts))
    if segment.flags & dpkt.tcp.TH_SYN:
        sender.base = (segment.seq + 1) % _WRAP
        sender.scale = options[_SCALE][0] if options.get(_SCALE) else 0
        return
    length = payload_bytes(packet, segment.off * 4)
    if length > 0:
        sender.transmit(time_s, segment.seq, length)
    if segment.flags & dpkt.tcp.TH_ACK and peer.base is not None:
        blocks = _blocks(options.get(_SACK, b""), peer)
        sender.acks.append((time_s, peer.offset(segment.ack), segment.win, blocks))


def _blocks(value: bytes, peer: _Side) -> list[tuple[int, int]]:
    edges = [int.from_bytes(value[i : i + 4], "big") for i in range(0, len(value) // 8 * 8, 4)]
    return [
        (peer.offset(low), peer.offset(high))
        for low, high in zip(edges[::2], edges[1::2], strict=True)
    ]


def _traces(data: _Side, reply: _Side, start_s: float, end_s: float) -> list[Trace]:
    def within(time_s: float) -> bool:
        return start_s <= time_s <= end_s

    sent = [segment for segment in data.sent if within(segment[0])]
    acks = [ack for ack in reply.acks if within(ack[0])]
    new = [(at, low, high) for at, low, high, again in sent if not again]
    again = [(at, low, high) for at, low, high, again in sent if again]
    sacked = [(at, low, high) for at, _, _, blocks in acks for low, high in blocks]
    times = np.array([at for at, *_ in acks])
    traces = [
        Trace(f"sent ({len(new)})", style.NEUTRAL, *_bars(new), width=1.4),
        Trace(f"sent again ({len(again)})", _AGAIN, *_bars(again), width=2.6),
        Trace(
            "acknowledged",
            style.CC_COLOURS["bbr2"],
            times,
            np.array([ack for _, ack, _, _ in acks]) / KIB,
            shape="after",
            width=1.2,
        ),
        Trace("SACKed", _SACKED, *_bars(sacked), width=1.0),
    ]
    if reply.scale is not None:
        edges = np.array([ack + (window << reply.scale) for _, ack, window, _ in acks]) / KIB
        traces.append(Trace("window's edge", _WINDOW, times, edges, "dash", 1.0, shape="after"))
    return traces


def _bars(parts: Sequence[tuple[float, int, int]]) -> tuple[Floats, Floats]:
    """Upright lines, one a part, as one line with gaps."""
    times = np.array([at for at, _, _ in parts], dtype=np.float64)
    lows, highs = (np.array([part[i] for part in parts], dtype=np.float64) / KIB for i in (1, 2))
    gap = np.full(times.size, np.nan)
    x = np.column_stack((times, times, gap)).ravel()
    return x, np.column_stack((lows, highs, gap)).ravel()
