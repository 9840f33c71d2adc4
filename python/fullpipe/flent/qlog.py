"""A qlog file of a QUIC stack as recordings: window, RTTs, flight and losses over time, and bytes.

It reads JSON, JSON-SEQ and JSON lines, with events as objects (drafts 02 and later) or as arrays
(drafts 00 and 01, picoquic, mvfst). Each connection, and each end of one, is a recording. Columns
that a file does not report are null.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fullpipe.base.errors import UserError
from fullpipe.base.supplied import open_regular
from fullpipe.flent.container import FlentError
from fullpipe.flent.description import metadata_of
from fullpipe.flent.document import clean
from fullpipe.flent.importing import table_of
from fullpipe.recording.recording import TABLES, Recording, write_recording

_SUFFIXES = (".qlog", ".sqlog")
#: What a file's first object has in any draft.
_BEGIN = re.compile(rb'(?:\xef\xbb\xbf)?[\s\x1e]*\{[^{]*"(?:qlog_version|qlog_format|file_schema)"')
_MOST_BYTES = 256 << 20
_MOST_EVENTS = 5_000_000
#: Three years: times are kept as whole ns.
_MOST_MS = 1e11
#: Packets that may still be acknowledged, in a space of numbers; of more the oldest are forgotten.
_MOST_OPEN = 1 << 16
#: Shorter intervals tell nothing that is drawn.
_SAMPLE_MS = 10.0
#: RFC 9000, section 14: the least that a path carries, and the usual size of a packet.
_USUAL_PACKET_BYTES = 1200
#: Traces of a file, and connections of a trace.
_MOST_CONNECTIONS = 100
#: RFC 9002, section 6.2.2: the RTT before there is a sample of it, in seconds.
_INITIAL_RTT_S = 0.333
#: The name of an event, whatever its draft calls it, and mvfst's (QLoggerTypes.cpp).
_KINDS = {
    "metrics_updated": "metrics",
    "metric_update": "metrics",
    "recovery_metrics_updated": "metrics",
    "congestion_metric_update": "metrics",
    "packet_sent": "sent",
    "packet_received": "received",
    "packet_lost": "lost",
    "packets_lost": "lost",
}
#: Of metrics, the name here by the names in files.
_METRICS = {
    "congestion_window": "cwnd",
    "cwnd": "cwnd",
    "current_cwnd": "cwnd",
    "bytes_in_flight": "inflight",
    "smoothed_rtt": "srtt",
    "min_rtt": "min_rtt",
    "pacing_rate": "pacing_rate",
    "ssthresh": "ssthresh",
}
_TIMES = ("srtt", "min_rtt")
#: Of older drafts: the names of an array's parts.
_FIELDS = {
    "relative_time": "time",
    "delta_time": "time",
    "time": "time",
    "category": "category",
    "event": "name",
    "event_type": "name",
    "data": "data",
}


@dataclass
class _Sums:
    """What has been counted up to now."""

    sent: int = 0
    lost: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    acked_bytes: int = 0
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass
class Qlog:
    """What a file holds of one connection, as one end saw it."""

    path: Path
    sha256: str
    title: str
    #: Tells it from the others of the file; empty where there is no other.
    name: str
    #: Time in ms since the first event, what was counted by then, and the metrics as last reported.
    samples: list[tuple[float, _Sums]]
    packet_bytes: int
    #: The file has RTTs in seconds, against the drafts.
    has_seconds: bool

    @property
    def direction(self) -> str:
        """Up where the end that wrote the file sends more than it receives, or counts no bytes."""
        last = self.samples[-1][1]
        return "down" if last.received_bytes > last.sent_bytes else "up"

    def delivered(self, sums: _Sums) -> int:
        """Bytes of packets that arrived: those received, or of those sent, those acknowledged."""
        return sums.received_bytes if self.direction == "down" else sums.acked_bytes


def is_qlog(path: Path) -> bool:
    """Whether a file is a qlog, by its beginning or its name."""
    try:
        with open_regular(path) as file:
            begin = file.read(4096)
    except OSError:
        return False
    is_compressed = begin.startswith(b"\x1f\x8b")
    return _BEGIN.match(begin) is not None or (path.suffix in _SUFFIXES and not is_compressed)


def read_qlogs(path: Path) -> list[Qlog]:
    """The file's connections. Raises FlentError, which names the file and what is wrong."""
    try:
        with open_regular(path) as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise FlentError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > _MOST_BYTES:
        raise FlentError(f"{path}: is larger than 256 MiB")
    digest = hashlib.sha256(data).hexdigest()
    try:
        header, traces = _parts(data.decode("utf-8-sig"))
        connections = [
            (trace, _samples(_events(trace, events)))
            for trace, all_events in traces
            for events in _connections(all_events)
        ]
    except (
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise FlentError(f"{path}: is no whole qlog: {clean(str(error))[:80]}") from None
    connections = [(trace, sampled) for trace, sampled in connections if sampled[0]]
    if not connections:
        raise FlentError(f"{path}: has no event of recovery or of packets")
    if len(connections) > _MOST_CONNECTIONS:
        raise FlentError(f"{path}: has {len(connections)} connections; at most {_MOST_CONNECTIONS}")
    title = header.get("title")
    title = clean(title) if isinstance(title, str) and title else clean(path.stem)
    names = _names([trace for trace, _ in connections])
    return [
        Qlog(path, digest, f"{title} {name}".strip(), name, *sampled)
        for name, (_, sampled) in zip(names, connections, strict=True)
    ]


def _names(traces: Sequence[Mapping[str, Any]]) -> list[str]:
    """What tells the traces apart: their ends, where these differ, else numbers."""
    if len(traces) == 1:
        return [""]
    ends = [str((trace.get("vantage_point") or {}).get("type")) for trace in traces]
    if len(set(ends)) == len(ends) and set(ends) <= {"client", "server", "network"}:
        return ends
    return [str(number) for number in range(1, len(traces) + 1)]


def _parts(text: str) -> tuple[Mapping[str, Any], list[tuple[Mapping[str, Any], Sequence[Any]]]]:
    """The header, and the traces with their events."""
    if "\x1e" in text[:4096]:
        objects = [json.loads(part) for part in text.split("\x1e") if part.strip()]
    else:
        try:
            objects = [json.loads(text)]
        except ValueError:  # a line for each
            objects = [json.loads(line) for line in text.splitlines() if line.strip()]
    header = objects[0]
    traces: list[tuple[Mapping[str, Any], Sequence[Any]]]
    traces = [(header.get("trace") or {}, objects[1:])]
    if "traces" in header:
        traces = [(trace, trace["events"]) for trace in header["traces"] if trace.get("events")]
        if not traces:
            raise ValueError("no trace has events")
    if sum(len(events) for _, events in traces) > _MOST_EVENTS:
        raise ValueError(f"more than {_MOST_EVENTS} events")
    return header, traces


def _connections(events: Sequence[Any]) -> list[Sequence[Any]]:
    """The events of each connection, where the events name several groups."""
    groups: dict[str, list[Any]] = {}
    for event in events:
        if isinstance(event, dict) and "group_id" in event:
            groups.setdefault(str(event["group_id"]), []).append(event)
    return [events] if len(groups) < 2 else list(groups.values())


def _events(
    trace: Mapping[str, Any], events: Sequence[Any]
) -> Iterator[tuple[float, str, Mapping[str, Any]]]:
    common = trace.get("common_fields") or {}
    fields = [_FIELDS.get(str(name).lower()) for name in trace.get("event_fields") or ()]
    units = (trace.get("configuration") or {}).get("time_units")
    per_ms = 1e3 if units == "us" else 1.0
    is_delta = common.get("time_format") in ("delta", "relative_to_previous_event") or (
        "delta_time" in (trace.get("event_fields") or ())
    )
    first, last = None, 0.0
    for event in events:
        if isinstance(event, list):
            event = {name: value for name, value in zip(fields, event, strict=False) if name}
        kind = _KINDS.get(str(event.get("name")).rpartition(":")[2].lower())
        if "time" not in event:
            continue
        time = float(event["time"]) / per_ms
        last = last + time if is_delta else time
        first = last if first is None else first
        if not abs(last - first) <= _MOST_MS:  # nor is it where one of them is no number
            raise ValueError(f"time: {time:g} ms is no time of a connection")
        data = event.get("data")
        if kind is not None and isinstance(data, dict):
            yield last - first, kind, _in_ms(data, per_ms) if kind == "metrics" else data


def _in_ms(data: Mapping[str, Any], per_ms: float) -> dict[str, float]:
    """Metrics by their names here, times in ms."""
    read = {}
    for name, value in data.items():
        ours = _METRICS.get(name)
        if ours is not None and isinstance(value, int | float) and 0 < value < 2**53:
            read[ours] = value / per_ms if ours in _TIMES else float(value)
    return read


def _samples(
    events: Iterator[tuple[float, str, Mapping[str, Any]]],
) -> tuple[list[tuple[float, _Sums]], int, bool]:
    """Samples, the largest packet, and whether RTTs were in seconds; they are ms in the samples."""
    sums, samples, largest = _Sums(), list[tuple[float, _Sums]](), 0
    spaces: defaultdict[str, _Open] = defaultdict(_Open)
    first_rtt, shortest_ms = None, float("inf")
    time_ms = 0.0
    for time_ms, kind, data in events:
        if samples and time_ms < samples[-1][0]:
            raise ValueError(f"time: {time_ms:g} ms comes after {samples[-1][0]:g} ms")
        if kind == "metrics":
            sums.metrics.update(data)
            first_rtt = first_rtt or sums.metrics.get("smoothed_rtt", sums.metrics.get("srtt"))
        elif kind == "lost":
            sums.lost += _whole(data.get("lost_packets"), 2**32) or 1
        else:
            header = data.get("header") or {}
            size = _size(data, header)
            largest = max(largest, size)
            space = spaces[_space(header.get("packet_type") or data.get("packet_type"))]
            if kind == "sent":
                sums.sent += 1
                sums.sent_bytes += size
                space.add(int(header.get("packet_number", -sums.sent)), size, time_ms)
            else:
                sums.received_bytes += size
                sums.acked_bytes += _acknowledged(space, data.get("frames") or ())
                shortest_ms = min(shortest_ms, time_ms - space.newest_ms)
        if not samples or time_ms - samples[-1][0] >= _SAMPLE_MS:
            samples.append((time_ms, _copy(sums)))
    if samples and samples[-1][0] == time_ms:
        samples.pop()
    if sums.sent or sums.received_bytes or sums.lost or sums.metrics:
        samples.append((time_ms, _copy(sums)))
    has_seconds = _are_seconds(first_rtt, sums.metrics.get("min_rtt"), shortest_ms)
    if has_seconds:
        for _, sampled in samples:
            for name in _TIMES:
                if name in sampled.metrics:
                    sampled.metrics[name] *= 1e3
    return samples, largest or _USUAL_PACKET_BYTES, has_seconds


def _are_seconds(first: float | None, least: float | None, shortest_ms: float) -> bool:
    """Whether RTTs are in seconds, as quinn writes them (paths.rs), where the drafts say ms. They
    begin with RFC 9002's initial value; or they are far below the time from any packet to its
    acknowledgment, though a thousandfold they are not above it."""
    if first is not None and abs(first - _INITIAL_RTT_S) < 1e-6:
        return True
    if least is None or not math.isfinite(shortest_ms):
        return False
    return 20 * least < shortest_ms and 1e3 * least <= 1.05 * shortest_ms


def _space(packet_type: Any) -> str:
    """RFC 9000, section 12.3: 0-RTT and 1-RTT packets share a space of numbers. Where a converter
    knows no type, most are of these."""
    name = str(packet_type).lower().replace("-", "")
    return "1rtt" if name in ("0rtt", "unknown", "none") else name


def _copy(sums: _Sums) -> _Sums:
    return _Sums(**{**vars(sums), "metrics": dict(sums.metrics)})


def _size(data: Mapping[str, Any], header: Mapping[str, Any]) -> int:
    """Bytes of a packet; 0 where the file does not say."""
    raw = data.get("raw") or {}
    for value in (raw.get("length"), header.get("packet_size"), data.get("packet_size")):
        if size := _whole(value, 65536):
            return size
    return 0


def _whole(value: Any, end: int) -> int:
    """A whole number above 0, which draft 01 wrote as text too; else 0."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 12:
        value = int(value)
    return value if isinstance(value, int) and 0 < value < end else 0


class _Open:
    """The packets of a space of numbers that nothing has acknowledged: bytes and times of sending.

    `newest_ms` is when the newest of those that were acknowledged was sent.
    """

    def __init__(self) -> None:
        self._numbers: list[int] = []  # sorted
        self._packets: dict[int, tuple[int, float]] = {}
        self.newest_ms = float("-inf")

    def add(self, number: int, size: int, time_ms: float) -> None:
        if number not in self._packets:
            insort(self._numbers, number)
        self._packets[number] = (size, time_ms)
        if len(self._numbers) > 2 * _MOST_OPEN:
            self._take(0, _MOST_OPEN)

    def acknowledge(self, low: int, high: int) -> int:
        """The bytes of those from `low` to `high`, which count once."""
        return self._take(bisect_left(self._numbers, low), bisect_right(self._numbers, high))

    def _take(self, first: int, end: int) -> int:
        gone = self._numbers[first:end]
        del self._numbers[first:end]
        packets = [self._packets.pop(number) for number in gone]
        self.newest_ms = max([self.newest_ms, *(time_ms for _, time_ms in packets[-1:])])
        return sum(size for size, _ in packets)


def _acknowledged(packets: _Open, frames: Sequence[Mapping[str, Any]]) -> int:
    """Bytes that the frames of a received packet acknowledge for the first time."""
    return sum(
        packets.acknowledge(int(limits[0]), int(limits[-1]))
        for frame in frames
        if str(frame.get("frame_type")).lower() == "ack"
        for limits in frame.get("acked_ranges") or ()
    )


def import_qlog(file: Qlog, out: Path | str) -> Recording:
    """Writes the recording of a file into the folder `out`. Raises UserError if `out` exists or
    cannot be written."""
    last_ms, last = file.samples[-1]
    has_packets = last.sent > 0
    has_bytes = last.sent_bytes + last.received_bytes > 0
    flow = {
        "flow_id": 0,
        "flow": "quic",
        "cc": "unknown",
        "direction": file.direction,
        "start_us": 0,
        "bytes_delivered": file.delivered(last) if has_bytes else None,
        "packets_lost": last.lost,
        "packets_sent": last.sent if has_packets else None,
        "mss_bytes": file.packet_bytes,
    }

    def metric(name: str, unit: float) -> Any:
        return np.array([sums.metrics.get(name, np.nan) for _, sums in file.samples]) * unit

    packets = 1 / file.packet_bytes
    counted = [(file.delivered(sums), sums.sent, sums.lost) for _, sums in file.samples]
    delivered, sent, lost = np.array(counted, dtype=float).T
    absent = np.full(len(sent), np.nan)
    tables = {
        **{
            name: TABLES[name].empty_table()
            for name in ("queue_samples", "ping_samples", "cc_samples", "events")
        },
        "flows": table_of("flows", {key: [value] for key, value in flow.items()}),
        "flow_samples": table_of(
            "flow_samples",
            {
                "t_us": np.array([time_ms * 1e3 for time_ms, _ in file.samples]),
                "flow_id": np.zeros(len(file.samples)),
                "bytes_delivered": delivered if has_bytes else absent,
                "cwnd_packets": metric("cwnd", packets),
                "inflight_packets": metric("inflight", packets),
                "ssthresh_packets": metric("ssthresh", packets),
                "srtt_us": metric("srtt", 1e3),
                "min_rtt_us": metric("min_rtt", 1e3),
                "pacing_rate_bps": metric("pacing_rate", 1.0),
                "packets_sent": sent if has_packets else absent,
                "packets_lost": lost,
            },
        ),
    }
    if last_ms <= 0:
        raise UserError(f"{file.path}: its events take no time")
    return write_recording(out, _metadata(file, last_ms), "", tables)


def _metadata(file: Qlog, last_ms: float) -> dict[str, Any]:
    plan = {
        "name": file.title,
        "duration_ns": round(last_ms * 1e6),
        "sample_interval_ns": round(_SAMPLE_MS * 1e6),
    }
    about = {
        "file": clean(file.path.name),
        "sha256": file.sha256,
        "rtts_were_seconds": file.has_seconds,
    }
    return metadata_of("qlog", plan, about)


def described(file: Qlog) -> str:
    """What a file carried, in a line."""
    last_ms, last = file.samples[-1]
    carried = file.delivered(last)
    rate = f"1 {file.direction} {carried * 8 / last_ms / 1e3:.2f} Mbit/s" if carried else "no bytes"
    return f"{rate}, {last.lost} packets lost, {len(file.samples)} samples"
