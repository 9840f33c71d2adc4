"""An iperf3 result (`iperf3 --json`, `--json-stream`) as a recording: of each stream bytes, window,
RTT and retransmissions over time. Columns that iperf3 does not report are null.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fullpipe.base.errors import UserError
from fullpipe.base.supplied import read_regular
from fullpipe.base.text import decoded
from fullpipe.base.unpacking import UnpackError, unpacked
from fullpipe.flent.container import FlentError
from fullpipe.flent.description import metadata_of
from fullpipe.flent.document import clean
from fullpipe.flent.importing import table_of
from fullpipe.recording.recording import TABLES, Recording, write_recording

#: iperf3 writes "start" first, behind what --title and --extra-data say.
_BEGIN = re.compile(r'\s*\{\s*(?:"start"\s*:|"event"\s*:\s*"start")')
#: Where a tool sorted the keys, or the command and its prompt are in the file.
_KEYS = ('"test_start"', '"intervals"', '"connected"')
_MOST_BYTES = 48 << 20
_MOST_STREAMS, _MOST_INTERVALS = 1000, 1_000_000


@dataclass(frozen=True)
class Iperf3:
    """What a file holds of a test of TCP."""

    path: Path
    sha256: str
    document: Mapping[str, Any]
    #: Of each stream, by its socket, its intervals in order.
    streams: Mapping[int, Sequence[Mapping[str, Any]]]

    @property
    def mss_bytes(self) -> int | None:
        """The largest payload of a packet."""
        mss = self.document["start"].get("tcp_mss") or self.document["start"].get("tcp_mss_default")
        return mss if isinstance(mss, int) and 0 < mss < 65536 else None

    @property
    def cc(self) -> str:
        """The sender's congestion control, as the kernel calls it."""
        end = self.document.get("end") or {}
        name = end.get("sender_tcp_congestion") or self.document["start"].get("congestion_used")
        return f"kernel:{clean(name)}" if isinstance(name, str) and name else "unknown"

    def direction(self, socket: int) -> str:
        """Up where the client sends. The file may be its or the server's."""
        is_sender = self.streams[socket][0].get("sender")
        if is_sender is None:
            return "down" if self.document["start"]["test_start"].get("reverse") else "up"
        is_server = "accepted_connection" in self.document["start"]
        return "up" if is_sender != is_server else "down"

    def total_bytes(self, socket: int) -> int:
        """What arrived, or where the file does not say it what was sent."""
        for stream in (self.document.get("end") or {}).get("streams", []):
            for end in ("receiver", "sender"):
                totals = stream.get(end) or {}
                if totals.get("socket") == socket and totals.get("bytes"):
                    return int(totals["bytes"])
        return int(sum(piece["bytes"] for piece in self.streams[socket]))


def is_iperf3(path: Path) -> bool:
    """Whether a file is an iperf3 result, by its beginning or its keys."""
    try:
        text = decoded(unpacked(read_regular(path, _MOST_BYTES), _MOST_BYTES))
    except (OSError, ValueError):
        return False
    return _BEGIN.match(text) is not None or all(key in text for key in _KEYS)


def _pasted(text: str) -> str:
    """The JSON of a text that has a prompt or a command before or after it."""
    if text.lstrip().startswith("{"):
        return text
    begin = re.search(r"^[ \t]*\{", text, re.M)
    end = text.rfind("}")
    return text[begin.start() : end + 1] if begin else text


def read_iperf3(path: Path) -> Iperf3:
    """The file. Raises FlentError, which names it and the key, for one that is damaged or has no
    test of TCP."""
    try:
        data = read_regular(path, _MOST_BYTES)
        content = unpacked(data, _MOST_BYTES)
    except OSError as error:
        raise FlentError(f"{path}: cannot be read: {error.strerror}") from None
    except UnpackError as error:
        raise FlentError(f"{path}: {error}") from None
    try:
        text = _pasted(decoded(content))
        document = _of_stream(text) if _is_stream(text) else json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise FlentError(
                f"{path}: line {error.lineno}: another iperf3 result begins; one file is one result"
            ) from None
        raise FlentError(f"{path}: is no whole iperf3 result: its JSON is damaged") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FlentError(f"{path}: is no whole iperf3 result: its JSON is damaged") from None
    try:
        _refuse_other(path, document)
        streams = _streams(document)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise FlentError(f"{path}: is no whole iperf3 result: {clean(str(error))[:80]}") from None
    return Iperf3(path, hashlib.sha256(data).hexdigest(), document, streams)


def _refuse_other(path: Path, document: Mapping[str, Any]) -> None:
    """Raises FlentError for a result that has no test of TCP."""
    if (message := document.get("error")) and not document.get("intervals"):
        raise FlentError(f"{path}: the test did not run; iperf3 says: {clean(str(message))[:200]}")
    protocol = document["start"]["test_start"]["protocol"]
    if protocol != "TCP":
        raise FlentError(
            f"{path}: is an iperf3 result of a test of {clean(str(protocol))[:20]}; "
            "those of TCP are read"
        )


def _is_stream(text: str) -> bool:
    return text.lstrip().startswith("{") and '"event"' in text[:64]


def _of_stream(text: str) -> dict[str, Any]:
    """The result that the events of --json-stream make up. The last line may be cut off."""
    document: dict[str, Any] = {"intervals": []}
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    for number, line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            if number == lines[-1][0]:
                break
            raise
        if event["event"] == "start" and "start" in document:
            at = sum(map(len, text.splitlines(keepends=True)[: number - 1]))
            raise json.JSONDecodeError("Extra data", text, at)
        if event["event"] == "interval":
            document["intervals"].append(event["data"])
        else:
            document[event["event"]] = event["data"]
    return document


def _streams(document: Mapping[str, Any]) -> dict[int, list[Mapping[str, Any]]]:
    streams: dict[int, list[Mapping[str, Any]]] = {}
    for interval in document["intervals"]:
        for piece in interval["streams"]:
            if not piece.get("omitted"):
                streams.setdefault(int(piece["socket"]), []).append(piece)
            checked = [float(piece[key]) for key in ("start", "end", "bytes")]
            if not all(0 <= value < 2**53 for value in checked) or checked[1] < checked[0]:
                raise ValueError(f"intervals: {checked}")
    if not streams or len(streams) > _MOST_STREAMS:
        raise ValueError(f"intervals: {len(streams)} streams")
    if sum(map(len, streams.values())) > _MOST_INTERVALS:
        raise ValueError(f"intervals: more than {_MOST_INTERVALS}")
    return streams


def import_iperf3(file: Iperf3, out: Path | str) -> Recording:
    """Writes the recording of a file into the folder `out`. Raises FlentError for values that no
    recording can hold, UserError if `out` exists or cannot be written."""
    try:
        tables = {
            **{
                name: TABLES[name].empty_table()
                for name in ("queue_samples", "ping_samples", "cc_samples", "events")
            },
            "flows": _flows(file),
            "flow_samples": _samples(file),
        }
    except (ValueError, OverflowError, TypeError) as error:
        raise FlentError(f"{file.path}: {error}") from None
    return write_recording(out, _metadata(file), "", tables)


def _flows(file: Iperf3) -> pa.Table:
    rows = [
        {
            "flow_id": index,
            "flow": f"stream.{index + 1}",
            "cc": file.cc,
            "direction": file.direction(socket),
            "start_us": round(pieces[0]["start"] * 1e6),
            "completion_us": round(pieces[-1]["end"] * 1e6),
            "bytes_delivered": file.total_bytes(socket),
            "packets_retransmitted": (
                _retransmits(pieces)[-1] if _has(pieces, "retransmits") else None
            ),
            "mss_bytes": file.mss_bytes,
        }
        for index, (socket, pieces) in enumerate(file.streams.items())
    ]
    return table_of("flows", {key: [row[key] for row in rows] for key in rows[0]})


def _samples(file: Iperf3) -> pa.Table:
    parts = []
    for index, (socket, pieces) in enumerate(file.streams.items()):
        counted = np.cumsum([piece["bytes"] for piece in pieces]).astype(float)
        total = float(file.total_bytes(socket))
        counted = np.append(np.minimum(counted[:-1], total), total)  # the end is what arrived
        mss = file.mss_bytes
        part = {
            "t_us": _numbers(pieces, "end", 1e6),
            "flow_id": np.full(len(pieces), float(index)),
            "bytes_delivered": counted,
            "cwnd_packets": _numbers(pieces, "snd_cwnd", 1 / mss if mss else np.nan),
            "srtt_us": _numbers(pieces, "rtt", 1.0),
            "packets_retransmitted": _retransmits(pieces),
        }
        parts.append(part)
    columns = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    order = np.argsort(columns["t_us"], kind="stable")
    return table_of("flow_samples", {key: values[order] for key, values in columns.items()})


def _has(pieces: Sequence[Mapping[str, Any]], key: str) -> bool:
    return all(isinstance(piece.get(key), int | float) for piece in pieces)


def _numbers(pieces: Sequence[Mapping[str, Any]], key: str, unit: float) -> Any:
    """A column of the pieces; NaN where one has none, and for 0, which no window or RTT is."""
    values = np.array([float(piece.get(key) or np.nan) for piece in pieces])
    return values * unit


def _retransmits(pieces: Sequence[Mapping[str, Any]]) -> Any:
    if not _has(pieces, "retransmits"):
        return np.full(len(pieces), np.nan)
    return np.cumsum([float(piece["retransmits"]) for piece in pieces])


def _metadata(file: Iperf3) -> dict[str, Any]:
    start = file.document["start"]
    last_s = max(piece["end"] for pieces in file.streams.values() for piece in pieces)
    steps = [piece["end"] - piece["start"] for pieces in file.streams.values() for piece in pieces]
    stamp = (start.get("timestamp") or {}).get("timesecs")
    plan = {
        "name": clean(file.path.stem),
        "duration_ns": round(last_s * 1e9),
        "sample_interval_ns": round(float(np.median(steps)) * 1e9),
    }
    about = {
        "file": clean(file.path.name),
        "sha256": file.sha256,
        "version": clean(str(start.get("version", ""))),
        "started_unix_s": stamp if isinstance(stamp, int) else None,
    }
    is_whole = "end" in file.document and "error" not in file.document
    return metadata_of("iperf3", plan, about, is_whole=is_whole)


def described(file: Iperf3) -> str:
    """What a file carried, in a line."""
    parts = []
    for direction in ("up", "down"):
        sockets = [socket for socket in file.streams if file.direction(socket) == direction]
        if not sockets:
            continue
        pieces = [piece for socket in sockets for piece in file.streams[socket]]
        span_s = max(p["end"] for p in pieces) - min(p["start"] for p in pieces)
        total = sum(file.total_bytes(socket) for socket in sockets)
        if span_s <= 0:
            raise UserError(f"{file.path}: its intervals take no time")
        parts.append(f"{len(sockets)} {direction} {total * 8 / span_s / 1e6:.2f} Mbit/s")
    if message := file.document.get("error"):
        parts.append(f"ended early (iperf3 says: {clean(str(message))[:200]})")
    return ", ".join(parts)
