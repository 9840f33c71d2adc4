"""What a sweep's store keeps of runs: the measures of many runs at once.

The measures are those that `fullpipe.metrics` defines, computed where the simulator is
(crates/fullpipe-metrics): a run of two simulated seconds takes a millisecond, and one metric of
one run in Python as long as that. `tests/python/test_sweep_measures.py` holds every column against
`fullpipe.metrics`. Must never know an engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fullpipe import _native
from fullpipe.base.columns import as_numpy, column
from fullpipe.plan.bottleneck import main_queue, of_path_alone
from fullpipe.recording.recording import QUEUE_COUNTERS, Recording

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
    sample_interval_ns: int
    problems: str = ""
    interrupted: bool = False

    @property
    def of_plan(self) -> tuple[Any, ...]:
        """What the metrics need, as the native module takes it."""
        return self[3:9]


def facts_of(key: str, plan: Mapping[str, Any], seed: int, engine: str, warmup_ns: int) -> Facts:
    """The facts of a plan with this seed."""
    path = plan["path"]
    queue, rate_bps, _ = main_queue(plan, [flow["direction"] for flow in plan["flows"]])
    rtt_ns = path["forward_delay_ns"] + path["reverse_delay_ns"]
    return Facts(
        key, seed, engine, warmup_ns, plan["duration_ns"], queue, rate_bps, rtt_ns,
        plan["sample_interval_ns"],
    )  # fmt: skip


def version_of(plan: Mapping[str, Any]) -> int:
    """Of what the stored columns mean for runs of this plan; part of their keys.

    1 but for runs without flows, whose goodput an early build stored as 0 and which is null (2),
    and for those whose data goes through another queue than builds took then: that of a row of
    links, or of pages and traffic alone (3), and of a row whose downloads have their bottleneck
    elsewhere than uploads would (4)."""
    ways = [flow["direction"] for flow in plan["flows"]]
    early = "reverse" if ways and set(ways) == {"down"} else "forward"
    main = main_queue(plan, ways)
    if main.queue == early:
        return 1 if ways else 2
    is_known = main in (of_path_alone(plan, "forward"), of_path_alone(plan, "reverse"))
    return 3 if is_known else 4


class Rows:
    """Measures runs, one after another."""

    def __init__(self) -> None:
        self._measures = _native.Measures()
        self._facts: list[Facts] = []

    def __bool__(self) -> bool:
        return bool(self._facts)

    def add(self, facts: Facts, tables: Mapping[str, pa.Table]) -> None:
        """Adds a run by its tables."""
        self._measures.add_recorded(_columns(tables, facts.queue), facts.of_plan)
        self._facts.append(facts)

    def simulate(self, runs: Sequence[tuple[Facts, bytes]]) -> list[tuple[int, Exception]]:
        """Runs plans (JSON, without traces of traffic) in the simulator and adds them; returns the
        places of those that failed, with the errors."""
        failures = self._measures.simulate([(facts.of_plan, plan) for facts, plan in runs])
        failed = {place for place, _ in failures}
        self._facts += [facts for place, (facts, _) in enumerate(runs) if place not in failed]
        return failures

    @property
    def simulator_s(self) -> float:
        """CPU seconds of all `simulate` within the simulator."""
        return self._measures.simulator_s

    def take(self) -> dict[str, pa.Table]:
        """The rows of every table of a store for these runs, in their order; removes them here."""
        facts, self._facts = self._facts, []
        taken = self._measures.take()
        runs, flows, path = (
            {name: _array(*values) for name, values in taken[table].items()}
            for table in ("runs", "flows", "path")
        )
        key = column([one.key for one in facts], pa.string())
        return {
            "runs": pa.table({
                "key": key, "seed": column([one.seed for one in facts], pa.uint64()),
                "engine": column([one.engine for one in facts], pa.string()), **runs,
                "problems": column([one.problems for one in facts], pa.string()),
                "interrupted": column([one.interrupted for one in facts], pa.bool_()),
            }),
            "flows": pa.table({"key": key.take(flows.pop("run")), **flows}),
            "path": pa.table({
                "key": key, "queue": column([one.queue for one in facts], pa.string()), **path
            }),
        }  # fmt: skip


def _array(kind: str, values: Any) -> pa.Array:
    """A column of the native module (crates/fullpipe-py/src/tables.rs); NaN becomes null."""
    if kind == "text":
        return column(values, pa.string())
    if kind == "f64":
        return column(np.frombuffer(values, np.float64), pa.float64())
    return column(np.frombuffer(values, np.uint64), pa.uint64())


def measured(runs: Iterable[tuple[Facts, Mapping[str, pa.Table]]]) -> dict[str, pa.Table]:
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
