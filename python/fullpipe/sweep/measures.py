"""What a sweep's store keeps of runs: the tables' columns, and the measures of many runs at once.

The measures are those that `fullpipe.metrics` defines, computed where the simulator is
(crates/fullpipe-measures): a run of two simulated seconds takes a millisecond, and one metric of
one run in Python as long as that. `tests/python/test_sweep_measures.py` holds every column against
`fullpipe.metrics`. Must never know an engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fullpipe import _native
from fullpipe.bottleneck import main_queue
from fullpipe.columns import as_numpy, column, text
from fullpipe.recording import QUEUE_COUNTERS, Recording

#: What of a recording's tables the measures read.
COLUMNS: dict[str, tuple[str, ...]] = {
    "flows": ("flow", "cc", "direction", "start_us", "completion_us"),
    "flow_samples": (
        "t_us", "flow_id", "srtt_us", "min_rtt_us", "cwnd_packets", "bytes_delivered",
        "packets_sent", "packets_retransmitted",
    ),
    "queue_samples": ("t_us", "queue", "queue_bytes", *QUEUE_COUNTERS),
    "ping_samples": ("t_us", "rtt_us"),
}  # fmt: skip
_U, _F, _T = pa.uint64(), pa.float64(), pa.string()
_KINDS = {"u64": _U, "f64": _F}

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


class Facts(NamedTuple):
    """What is known of a run beside its tables. `queue`: the one that the data goes through, of
    this rate (None: not limited)."""

    key: str
    seed: int
    engine: str
    warmup_ns: int
    duration_ns: int
    queue: str
    rate_bps: float | None
    rtt_ns: int
    problems: str = ""
    interrupted: bool = False


def facts_of(key: str, plan: Mapping[str, Any], seed: int, engine: str, warmup_ns: int) -> Facts:
    """The facts of a plan with this seed."""
    path = plan["path"]
    queue, rate_bps = main_queue(plan, [flow["direction"] for flow in plan["flows"]])
    rtt_ns = path["forward_delay_ns"] + path["reverse_delay_ns"]
    return Facts(key, seed, engine, warmup_ns, plan["duration_ns"], queue, rate_bps, rtt_ns)


def version_of(plan: Mapping[str, Any], queue: str) -> int:
    """Of what the stored columns mean for runs of this plan, whose data goes through `queue`
    (`Facts`); part of their keys.

    1 but for runs without flows, whose goodput an early build stored as 0 and which is null (2),
    and for those whose data goes through another queue than builds took then: that of a row of
    links, or of pages and traffic alone (3)."""
    ways = [flow["direction"] for flow in plan["flows"]]
    early = "reverse" if ways and set(ways) == {"down"} else "forward"
    if queue != early:
        return 3
    return 1 if ways else 2


class Rows:
    """Measures runs, one after another."""

    def __init__(self) -> None:
        self._facts: list[Facts] = []
        self._measures = _native.Measures()

    def __bool__(self) -> bool:
        return bool(self._facts)

    def add(self, facts: Facts, tables: Mapping[str, pa.Table]) -> None:
        """Adds a run by its tables."""
        self._measures.add_recorded(
            _columns(tables, facts.queue), facts.warmup_ns, facts.duration_ns, facts.rate_bps,
            facts.rtt_ns,
        )  # fmt: skip
        self._facts.append(facts)

    def simulate(self, runs: Sequence[tuple[Facts, bytes]]) -> list[tuple[int, Exception]]:
        """Runs plans (JSON, no trace of traffic in them) in the simulator and adds them; gives the
        places of those that could not be run, with why."""
        failures = self._measures.simulate([
            (text, one.warmup_ns, one.duration_ns, one.queue, one.rate_bps, one.rtt_ns)
            for one, text in runs
        ])  # fmt: skip
        failed = {place for place, _ in failures}
        self._facts += [facts for place, (facts, _) in enumerate(runs) if place not in failed]
        return failures

    @property
    def simulator_s(self) -> float:
        """CPU seconds of all `simulate` within the simulator."""
        return self._measures.simulator_s

    def take(self) -> dict[str, pa.Table]:
        """The rows of every table of SCHEMAS for these runs, in their order. None is left."""
        facts, self._facts = self._facts, []
        found = self._measures.take()
        known = dict(zip(Facts._fields, zip(*facts, strict=True), strict=True)) if facts else {}
        keys = known.get("key", ())
        of_flows = [keys[run] for run in _numbers(found["flows"]["run"]).tolist()]
        tables = {}
        for name, schema in SCHEMAS.items():
            measured, facts_of_row = found[name], {"key": of_flows} if name == "flows" else known
            columns = [
                _column(measured[one.name]) if one.name in measured
                else column(facts_of_row.get(one.name, ()), one.type)
                for one in schema
            ]  # fmt: skip
            tables[name] = pa.table(columns, schema=schema)
        return tables


def measured(
    runs: Iterable[tuple[Facts, Mapping[str, pa.Table]]],
) -> dict[str, pa.Table]:
    """The rows of every table of SCHEMAS for these runs, in their order."""
    rows = Rows()
    for facts, tables in runs:
        rows.add(facts, tables)
    return rows.take()


def recorded(key: str, recording: Recording) -> tuple[Facts, dict[str, pa.Table]]:
    """A run as `measured` takes it, from its recording."""
    about = recording.metadata
    plan = about["plan"]
    facts = facts_of(key, plan, plan["seed"], about["engine"], about["warmup_ns"])._replace(
        problems="; ".join(recording.problems), interrupted=bool(about.get("interrupted"))
    )
    return facts, {name: recording.table(name) for name in COLUMNS}


def _columns(tables: Mapping[str, pa.Table], queue: str) -> dict[str, dict[str, Any]]:
    """The columns of COLUMNS as the native module takes them; of the queues only this one's."""
    found = {}
    for name, columns in COLUMNS.items():
        values = {one: as_numpy(tables[name][one].combine_chunks()) for one in columns}
        if name == "queue_samples":
            mine = values.pop("queue") == queue
            values = {one: array[mine] for one, array in values.items()}
        found[name] = {
            one: array.tolist() if array.dtype == object else array.tobytes()
            for one, array in values.items()
        }
    return found


def _column(found: tuple[str, Any]) -> pa.Array:
    kind, values = found
    return text(*values) if kind == "text" else column(_numbers(found), _KINDS[kind])


def _numbers(found: tuple[str, Any]) -> np.ndarray[Any, np.dtype[Any]]:
    kind, values = found
    return np.frombuffer(values, "<f8" if kind == "f64" else "<u8")
