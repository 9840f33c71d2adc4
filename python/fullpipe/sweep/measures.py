"""The metrics of many runs at once: what `fullpipe.metrics` defines, over columns of a whole chunk.

A run of two simulated seconds takes a millisecond, and one metric of one run in NumPy as long as
that; over a chunk the same arithmetic costs next to nothing. `tests/python/test_sweep_measures.py`
holds every column against `fullpipe.metrics`. Must never know an engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fullpipe.columns import column
from fullpipe.recording import QUEUE_COUNTERS, Recording

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
#: A table's columns: (kind, values) as the native module hands them over.
Raw = Mapping[str, Mapping[str, Any]]

_FLOW_COUNTERS = ("bytes_delivered", "packets_sent", "packets_retransmitted")
#: A matrix of groups of unequal lengths may be so many times as large as their values.
_MOST_PADDING = 4
#: What of a recording's tables these metrics read.
COLUMNS: dict[str, set[str]] = {
    "flows": {"flow", "cc", "direction", "start_us", "completion_us"},
    "flow_samples": {
        "t_us", "flow_id", "srtt_us", "min_rtt_us", "cwnd_packets", *_FLOW_COUNTERS,
    },
    "queue_samples": {"t_us", "queue", "queue_bytes", *QUEUE_COUNTERS},
    "ping_samples": {"t_us", "rtt_us"},
}  # fmt: skip
_U, _F, _T = pa.uint64(), pa.float64(), pa.string()

#: The tables of a store; `key` names the run. Shares and goodput count payload after the warm-up.
SCHEMAS: dict[str, pa.Schema] = {
    "runs": pa.schema([
        ("key", _T), ("seed", _U), ("engine", _T), ("goodput_bps", _F), ("jain", _F),
        ("retransmit_ratio", _F), ("ping_p50_ms", _F), ("ping_p95_ms", _F), ("ping_p99_ms", _F),
        ("ping_max_ms", _F), ("problems", _T), ("interrupted", pa.bool_()),
    ]),
    "flows": pa.schema([
        ("key", _T), ("flow_id", _U), ("flow", _T), ("cc", _T), ("direction", _T),
        ("start_s", _F), ("completion_s", _F), ("goodput_bps", _F), ("share", _F),
        ("retransmit_ratio", _F), ("rtt_min_us", _F), ("rtt_p50_us", _F), ("rtt_p95_us", _F),
        ("rtt_p99_us", _F), ("rtt_mean_us", _F), ("cwnd_mean_packets", _F),
    ]),
    "path": pa.schema([
        ("key", _T), ("queue", _T), ("utilisation", _F), ("queue_delay_mean_rttmin", _F),
        ("queue_delay_p50_rttmin", _F), ("queue_delay_p95_rttmin", _F),
        ("queue_delay_p99_rttmin", _F), ("queue_delay_max_rttmin", _F),
        ("queue_delay_p50_ms", _F), ("queue_delay_p95_ms", _F), ("queue_bytes_mean", _F),
        ("loss_ratio", _F), ("drops", _F), ("marks", _F),
    ]),
}  # fmt: skip


@dataclass(frozen=True)
class Facts:
    """What is known of a run beside its tables."""

    key: str
    seed: int
    engine: str
    warmup_ns: int
    duration_ns: int
    rate_bps: int
    reverse_rate_bps: int | None
    rtt_ns: int
    problems: str = ""
    interrupted: bool = False


def facts_of(key: str, plan: Mapping[str, Any], seed: int, engine: str, warmup_ns: int) -> Facts:
    """The facts of a plan with this seed."""
    path = plan["path"]
    return Facts(
        key, seed, engine, warmup_ns, plan["duration_ns"], path["rate_bps"],
        path["reverse_rate_bps"], path["forward_delay_ns"] + path["reverse_delay_ns"],
    )  # fmt: skip


def measured(runs: Sequence[tuple[Facts, Raw]]) -> dict[str, pa.Table]:
    """The rows of every table of SCHEMAS for these runs, in their order."""
    chunk = _Chunk(runs)
    tables = {"runs": chunk.runs(), "flows": chunk.flows, "path": chunk.path()}
    return {
        name: pa.table([column(tables[name][c.name], c.type) for c in schema], schema=schema)
        for name, schema in SCHEMAS.items()
    }


class _Chunk:
    def __init__(self, runs: Sequence[tuple[Facts, Raw]]) -> None:
        self.facts = [facts for facts, _ in runs]
        self.raws = [raw for _, raw in runs]
        self.flow_counts = np.array([len(raw["flows"]["flow"][1]) for raw in self.raws])
        self.first_flow = np.cumsum(self.flow_counts) - self.flow_counts
        self.flow_run = np.repeat(np.arange(len(runs)), self.flow_counts)
        self.sample_run = self._runs_of("flow_samples", "t_us")
        self.sample_s = self.column("flow_samples", "t_us") / 1e6
        self.sample_flow = (
            self.first_flow[self.sample_run]
            + self.column("flow_samples", "flow_id").astype(np.int64)
        )  # fmt: skip
        self.start_s = np.array([facts.warmup_ns / 1e9 for facts in self.facts])
        self.end_s = self._ends()

    def column(self, table: str, name: str) -> Floats:
        """A numeric column of all runs, one after another; NaN for null."""
        return _floats([raw[table][name] for raw in self.raws])

    def texts(self, table: str, name: str) -> list[str]:
        """A column of text of all runs."""
        return [text for raw in self.raws for text in raw[table][name][1]]

    def _runs_of(self, table: str, name: str) -> Ints:
        counts = [_rows(raw[table][name]) for raw in self.raws]
        return np.repeat(np.arange(len(counts)), counts)

    def _ends(self) -> Floats:
        """The last sample, or the planned end where there is none (metrics.View)."""
        planned = np.array([facts.duration_ns / 1e9 for facts in self.facts])
        last = np.full(len(planned), -1.0)
        np.maximum.at(last, self.sample_run, self.sample_s)
        return np.where(last >= 0, np.minimum(last, planned), planned)

    def _window(self, run: Ints, seconds: Floats) -> npt.NDArray[np.bool_]:
        return (seconds > self.start_s[run] + 1e-9) & (seconds <= self.end_s[run] + 1e-9)

    def _ends_of(self, group: Ints, groups: int, run: Ints, seconds: Floats) -> tuple[Ints, Ints]:
        """Of each group, its last row before the window begins and before it ends, -1 for none;
        rows are in the order of time."""
        ends = []
        for limit in (self.start_s, self.end_s):
            before = np.flatnonzero(seconds * 1e6 <= limit[run] * 1e6 + 1)
            last = np.full(groups, -1, dtype=np.int64)
            last[group[before]] = before
            ends.append(last)
        return ends[0], ends[1]

    @cached_property
    def grown(self) -> dict[str, Floats]:
        """How much each flow's counters grew within the window."""
        count = len(self.flow_run)
        ends = self._ends_of(self.sample_flow, count, self.sample_run, self.sample_s)
        return {name: _grown(self.column("flow_samples", name), ends) for name in _FLOW_COUNTERS}

    @cached_property
    def flows(self) -> dict[str, Any]:
        """The columns of `flows`."""
        count = len(self.flow_run)
        grown = self.grown
        start = self.column("flows", "start_us") / 1e6
        done = self.column("flows", "completion_us") / 1e6
        begin = np.maximum(self.start_s[self.flow_run], start)
        end = np.fmin(self.end_s[self.flow_run], done)
        active = np.maximum(begin, end) - begin
        volume = grown["bytes_delivered"]
        total = np.bincount(self.flow_run, volume, len(self.facts))[self.flow_run]
        inside = np.flatnonzero(self._window(self.sample_run, self.sample_s))
        flow = self.sample_flow[inside]
        srtt, least, cwnd = (
            self.column("flow_samples", name)[inside]
            for name in ("srtt_us", "min_rtt_us", "cwnd_packets")
        )
        rtt = _quantiles(srtt, flow, count, (0.5, 0.95, 0.99))
        return {
            "key": [self.facts[run].key for run in self.flow_run],
            "flow_id": np.arange(count) - self.first_flow[self.flow_run],
            "flow": self.texts("flows", "flow"),
            "cc": self.texts("flows", "cc"),
            "direction": self.texts("flows", "direction"),
            "start_s": start,
            "completion_s": done - start,
            "goodput_bps": np.divide(8 * volume, active, np.zeros(count), where=active > 0),
            "share": _ratio(volume, total),
            "retransmit_ratio": _ratio(grown["packets_retransmitted"], grown["packets_sent"]),
            "rtt_min_us": _quantiles(least, flow, count, (0.0,))[0],
            "rtt_p50_us": rtt[0],
            "rtt_p95_us": rtt[1],
            "rtt_p99_us": rtt[2],
            "rtt_mean_us": _means(srtt, flow, count),
            "cwnd_mean_packets": _means(cwnd, flow, count),
        }

    def runs(self) -> dict[str, Any]:
        """The columns of `runs`."""
        count = len(self.facts)
        rate = self.flows["goodput_bps"]
        total = np.bincount(self.flow_run, rate, count)
        square = self.flow_counts * np.bincount(self.flow_run, rate**2, count)
        grown = [
            np.bincount(self.flow_run, self.grown[name], count)
            for name in ("packets_retransmitted", "packets_sent")
        ]
        ping_run = self._runs_of("ping_samples", "t_us")
        inside = self._window(ping_run, self.column("ping_samples", "t_us") / 1e6)
        ping = _quantiles(
            self.column("ping_samples", "rtt_us")[inside] / 1000, ping_run[inside], count,
            (0.5, 0.95, 0.99, 1.0),
        )  # fmt: skip
        return {
            "key": [facts.key for facts in self.facts],
            "seed": [facts.seed for facts in self.facts],
            "engine": [facts.engine for facts in self.facts],
            "goodput_bps": np.where(self.flow_counts > 0, total, np.nan),
            "jain": _ratio(total**2, square),
            "retransmit_ratio": _ratio(*grown),
            "ping_p50_ms": ping[0],
            "ping_p95_ms": ping[1],
            "ping_p99_ms": ping[2],
            "ping_max_ms": ping[3],
            "problems": [facts.problems for facts in self.facts],
            "interrupted": [facts.interrupted for facts in self.facts],
        }

    def path(self) -> dict[str, Any]:
        """One row a run: the bottleneck that the data goes through."""
        count = len(self.facts)
        directions = [raw["flows"]["direction"][1] for raw in self.raws]
        queues = [
            "reverse" if every and all(one == "down" for one in every) else "forward"
            for every in directions
        ]
        rate = np.array([
            float((f.reverse_rate_bps if queue == "reverse" else f.rate_bps) or np.nan)
            for f, queue in zip(self.facts, queues, strict=True)
        ])  # fmt: skip
        rtt_s = np.array([facts.rtt_ns / 1e9 for facts in self.facts])
        run = self._runs_of("queue_samples", "t_us")
        names = self.texts("queue_samples", "queue")
        mine = np.array([name == queues[r] for name, r in zip(names, run, strict=True)], bool)
        run, seconds = run[mine], self.column("queue_samples", "t_us")[mine] / 1e6
        ends = self._ends_of(run, count, run, seconds)
        grown = {
            name: _grown(self.column("queue_samples", name)[mine], ends) for name in QUEUE_COUNTERS
        }
        inside = self._window(run, seconds)
        waiting = self.column("queue_samples", "queue_bytes")[mine][inside]
        run = run[inside]
        seen = np.bincount(run, minlength=count) > 0
        delay = waiting * 8 / rate[run] / rtt_s[run]
        spread = _quantiles(delay, run, count, (0.5, 0.95, 0.99, 1.0))
        gone = grown["dropped_packets"] + np.nan_to_num(grown["random_lost_packets"])
        offered = grown["sent_packets"] + gone
        window_s = self.end_s - self.start_s
        marks = grown["marked_packets"] + np.nan_to_num(grown["random_marked_packets"])
        return {
            "key": [facts.key for facts in self.facts],
            "queue": queues,
            "utilisation": np.where(seen, _ratio(8 * grown["sent_bytes"], rate * window_s), np.nan),
            "queue_delay_mean_rttmin": _means(delay, run, count),
            "queue_delay_p50_rttmin": spread[0],
            "queue_delay_p95_rttmin": spread[1],
            "queue_delay_p99_rttmin": spread[2],
            "queue_delay_max_rttmin": spread[3],
            "queue_delay_p50_ms": spread[0] * rtt_s * 1e3,
            "queue_delay_p95_ms": spread[1] * rtt_s * 1e3,
            "queue_bytes_mean": _means(waiting, run, count),
            "loss_ratio": _ratio(gone, offered),
            "drops": np.where(seen, grown["dropped_packets"], np.nan),
            "marks": np.where(seen, marks, np.nan),
        }


def recorded(key: str, recording: Recording) -> tuple[Facts, Raw]:
    """A run as `measured` takes it, from its recording."""
    about = recording.metadata
    plan = about["plan"]
    facts = replace(
        facts_of(key, plan, plan["seed"], about["engine"], about["warmup_ns"]),
        problems="; ".join(recording.problems), interrupted=bool(about.get("interrupted")),
    )  # fmt: skip
    return facts, raw_of({name: recording.table(name) for name in COLUMNS})


def raw_of(tables: Mapping[str, pa.Table]) -> dict[str, dict[str, Any]]:
    """A recording's tables as columns (kind, values), as `measured` takes them."""
    return {
        name: {
            column: ("text", values.to_pylist())
            if pa.types.is_string(values.type)
            else ("array", values.to_numpy(zero_copy_only=False).astype(np.float64))
            for column, values in zip(table.column_names, table.columns, strict=True)
        }
        for name, table in tables.items()
    }


def _floats(columns: Sequence[tuple[str, Any]]) -> Floats:
    """The same column of all runs as one; an engine gives it to all in the same form."""
    kind = columns[0][0]
    if kind == "array":
        return np.concatenate([values for _, values in columns], dtype=np.float64)
    if kind == "opt_u64":
        numbers = np.frombuffer(b"".join(data for _, (data, _) in columns), dtype="<u8")
        valid = np.frombuffer(b"".join(valid for _, (_, valid) in columns), dtype=np.uint8)
        return np.where(valid > 0, numbers.astype(np.float64), np.nan)
    data = b"".join(values for _, values in columns)
    if kind == "f64":
        return np.frombuffer(data, dtype="<f8")
    return np.frombuffer(data, dtype="<u8").astype(np.float64)


def _rows(column: tuple[str, Any]) -> int:
    kind, values = column
    return len(values) if kind in ("array", "text") else len(values) // 8


def _grown(values: Floats, ends: tuple[Ints, Ints]) -> Floats:
    """How much a counter grew between these rows; it begins with 0."""
    if not values.size:
        return np.zeros(len(ends[0]))
    first, last = (np.where(end >= 0, values[end], 0.0) for end in ends)
    return np.asarray(last - first)


def _ratio(above: npt.NDArray[Any], below: npt.NDArray[Any]) -> Floats:
    """NaN where there is nothing below."""
    nothing = np.full(np.shape(below), np.nan)
    return np.asarray(np.divide(above, below, nothing, where=below > 0))


def _means(values: Floats, group: Ints, groups: int) -> Floats:
    known = ~np.isnan(values)
    counts = np.bincount(group[known], minlength=groups)
    return _ratio(np.bincount(group[known], values[known], groups), counts.astype(np.float64))


def _quantiles(values: Floats, group: Ints, groups: int, which: tuple[float, ...]) -> list[Floats]:
    """Of each group's values that are not NaN, with NumPy's linear interpolation; NaN for none."""
    known = np.flatnonzero(~np.isnan(values))
    counts = np.bincount(group[known], minlength=groups)
    first = np.cumsum(counts) - counts
    ordered = _ordered(values[known], group[known], counts, first)
    some = counts > 0
    found = []
    for share in which:
        result = np.full(groups, np.nan)
        place = (counts[some] - 1) * share
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, counts[some] - 1)
        a, b = ordered[first[some] + low], ordered[first[some] + high]
        result[some] = a + (b - a) * (place - low)
        found.append(result)
    return found


def _ordered(values: Floats, group: Ints, counts: Ints, first: Ints) -> Floats:
    """The values, groups one after another, and in each from the least up."""
    width = int(counts.max(initial=0))
    if width * len(counts) > _MOST_PADDING * max(len(values), 1):
        return values[np.lexsort((values, group))]
    # Groups of one length or nearly: rows of a matrix, which are sorted several times as fast.
    by_group = np.argsort(group, kind="stable")
    rows = np.full((len(counts), width), np.inf)
    sorted_group = group[by_group]
    rows[sorted_group, np.arange(len(values)) - first[sorted_group]] = values[by_group]
    rows.sort(axis=1)
    return rows[np.arange(width) < counts[:, None]]
