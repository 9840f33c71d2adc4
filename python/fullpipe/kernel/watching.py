"""Periodic samples of this host's sockets that run our congestion controls.

The agent samples; this module turns its frames into rows and, on request, a recording. Must never
know a screen.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import tomli_w

import fullpipe
from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.base.scratch import scratch
from fullpipe.congestion.registry import changed_name, own_variables, sets_of
from fullpipe.engines.streams import decoded
from fullpipe.engines.tables import arrow_tables
from fullpipe.kernel.agent import lasting
from fullpipe.kernel.registration import Loaded, list_loaded
from fullpipe.recording.recording import Recording, write_recording

#: Columns of a row besides `flow` and `cc`: the socket's, and the algorithm's own.
_OF_SOCKET = (
    "t_us",
    "srtt_us",
    "cwnd_packets",
    "inflight_packets",
    "pacing_rate_bps",
    "delivery_rate_bps",
    "packets_retransmitted",
    "bytes_delivered",
)
_OF_ALGORITHM = (
    "phase",
    "bw_bps",
    "max_bw_bps",
    "bw_shortterm_bps",
    "min_rtt_us",
    "inflight_longterm_packets",
    "inflight_shortterm_packets",
)


def watch(
    interval_ms: int, record: Path | None = None, looks: int | None = None
) -> Generator[list[dict[str, Any]], None, None]:
    """Yields the rows of each sample, one for each socket, until the generator is closed or after
    `looks` samples. A value is None if the algorithm has none. With `record` the samples are also
    written there as a recording.

    Raises UserError if the kernel or the rights do not allow it, or `record` exists."""
    if record is not None and record.exists():
        raise UserError(f"{record}: exists already; name another folder")
    with scratch("fullpipe-watch-") as folder:
        stream = folder / "stream"
        begin = time.monotonic()
        try:
            with lasting("watch", {"out": str(stream), "interval_ms": interval_ms}):
                yield from _follow(stream, interval_ms, looks)
        finally:
            if record is not None and stream.exists():
                _record(stream.read_bytes(), record, interval_ms, time.monotonic() - begin)


def _follow(stream: Path, interval_ms: int, looks: int | None) -> Iterator[list[dict[str, Any]]]:
    unread, count = b"", 0
    with stream.open("rb") as reader:
        while looks is None or count < looks:
            unread += reader.read()
            progress, used = _native.stream.follow(unread, 0)
            if progress is None:
                time.sleep(min(0.05, interval_ms / 4e3))
                continue
            yield _rows(arrow_tables(_decoded(unread[:used])["tables"]))
            unread, count = unread[used:], count + 1


def _rows(tables: dict[str, pa.Table]) -> list[dict[str, Any]]:
    """The newest row of each socket."""
    loaded = list_loaded()
    names = _names(loaded)
    variables = _variables(loaded).get("variables", {})
    flows = {row["flow_id"]: row for row in tables["flows"].to_pylist()}
    samples = {row["flow_id"]: row for row in tables["flow_samples"].to_pylist()}
    states = {row["flow_id"]: row for row in tables["cc_samples"].to_pylist()}
    return [
        {
            "flow": flow["flow"],
            "cc": names.get(flow["cc"], flow["cc"]),
            "kernel_name": flow["cc"],
            **{name: samples[number][name] for name in _OF_SOCKET},
            **{name: states.get(number, {}).get(name) for name in _OF_ALGORITHM},
            "variables": {
                name: states[number][name]
                for name in variables.get(names.get(flow["cc"], flow["cc"]), ())
                if number in states
            },
        }
        for number, flow in sorted(flows.items())
        if number in samples
    ]


def _decoded(stream: bytes) -> dict[str, Any]:
    """Without the states of algorithms that this host does not know."""
    return decoded(stream, [item.algorithm for item in list_loaded() if sets_of(item.algorithm)])


def _names(loaded: list[Loaded]) -> dict[str, str]:
    """Kernel name -> our name with set and changed constants."""
    return {item.kernel_name: _name(item) for item in loaded}


def _variables(loaded: list[Loaded]) -> dict[str, Any]:
    """What metadata says of the algorithms' own variables."""
    described = [item for item in loaded if sets_of(item.algorithm)]
    return own_variables({_name(item): item.algorithm for item in described})


def _name(item: Loaded) -> str:
    return changed_name(item.base, item.params)


def _record(stream: bytes, out: Path, interval_ms: int, lasted_s: float) -> Recording:
    received = _decoded(stream)
    loaded = list_loaded()
    tables, names = arrow_tables(received["tables"]), _names(loaded)
    flows = tables["flows"].sort_by("flow_id")
    ccs = [names.get(name, name) for name in flows["cc"].to_pylist()]
    index = flows.column_names.index("cc")
    tables["flows"] = flows.set_column(index, "cc", pa.array(ccs, pa.string()))
    constants = {
        _name(item): {
            param.name: param.value(value)
            for param, value in zip(item.base.params, item.params, strict=True)
        }
        for item in loaded
        if _name(item) in ccs
    }
    metadata = {
        "engine": "watch",
        "fullpipe_version": fullpipe.__version__,
        "kernel": os.uname().release,
        "plan": {
            "name": "kernel watch",
            "duration_ns": round(lasted_s * 1e9),
            "sample_interval_ns": interval_ms * 10**6,
        },
        "warmup_ns": 0,
        "constants": constants,
        **_variables([item for item in loaded if _name(item) in ccs]),
        "health": {"problems": list(received["problems"])},
    }
    return write_recording(out, metadata, tomli_w.dumps({}), tables)
