"""What is kept of a run: hashes of its plan, of each table and of its metrics, and a few figures
that tell a person what moved.

Must never know where digests are kept, nor which runs there are.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fullpipe import _native
from fullpipe.metrics.samples import samples_of
from fullpipe.plan.facts import facts_of, link_queues
from fullpipe.scenario.traffic.traces import traces_of
from golden_runs import Scenario

Column = npt.NDArray[Any]
Table = dict[str, Column]
Keys = dict[str, Any]

#: Of more flows one figure is their sum.
_LISTED_FLOWS = 4
#: Tables that neither metrics nor figures read.
_ONLY_HASHED = {"cc_samples", "traffic_samples", "page_objects"}
#: Hexadecimal digits of a hash.
_DIGITS = 10


@dataclass(frozen=True)
class Digest:
    """A run in short. `tables`: name -> hash; `figures` are sums over flows or queues, without
    those that are 0."""

    plan: str
    tables: dict[str, str]
    metrics: str
    figures: Keys

    def as_json(self) -> Keys:
        return asdict(self)


def digest_of(scenario: Scenario, folder: Path) -> Digest:
    """Runs a scenario, whose files are written into this folder."""
    plan = scenario.plan(folder)
    run = _native.sim.run(json.dumps(plan), traces=traces_of(plan))
    health, interrupted = run.pop("health"), run.pop("interrupted")
    assert not interrupted
    # How many events a run took is its cost, not its result.
    counts = {name: count for name, count in health.items() if name != "events"}
    hashes = {name: _table_hash(table) for name, table in run.items()}
    tables = {
        name: {title: _column(*column) for title, column in table.items()}
        for name, table in run.items()
        if name not in _ONLY_HASHED
    }
    return Digest(
        plan=_plan_hash(plan, folder),
        tables=hashes | {"health": _text_hash(repr(sorted(counts.items())))},
        metrics=_text_hash(repr(_metrics(plan, tables, scenario.warmup_ns))),
        figures=_figures(tables) | {"events": health["events"]},
    )


def _text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _plan_hash(plan: Keys, folder: Path) -> str:
    """Names of files have no folder in it, which is another one in each run."""
    return _text_hash(json.dumps(plan, sort_keys=True).replace(f"{folder.resolve()}/", ""))


def _table_hash(table: Keys) -> str:
    """Over names, kinds and values, in their order."""
    found = hashlib.sha256()
    for title, (kind, values) in table.items():
        found.update(f"{title}\0{kind}\0".encode())
        if kind == "text":
            found.update("\0".join([*values, ""]).encode())
        elif kind.startswith("opt_"):
            # What is not there is 0 in the first part.
            found.update(b"".join(values))
        elif kind == "f64":
            # NaN has many patterns of bits.
            numbers = np.frombuffer(values, _TYPES[kind])
            found.update(np.where(np.isnan(numbers), np.nan, numbers).tobytes())
        else:
            found.update(values)
    return found.hexdigest()[:_DIGITS]


def _column(kind: str, values: Any) -> Column:
    """As metrics read it: float64 with NaN for null, or text."""
    if kind == "text":
        return np.array(values, dtype=object)
    if not kind.startswith("opt_"):
        return np.frombuffer(values, _TYPES[kind]).astype(np.float64)
    data, valid = values
    there = np.frombuffer(valid, np.uint8).astype(bool)
    return np.where(there, np.frombuffer(data, _TYPES[kind.removeprefix("opt_")]), np.nan)


_TYPES = {"u64": "<u8", "i64": "<i8", "f64": "<f8"}


def _metrics(plan: Keys, tables: dict[str, Table], warmup_ns: int) -> list[Any]:
    """All metrics of crates/fullpipe-metrics."""
    directions = [str(direction) for direction in tables["flows"]["direction"]]
    facts = facts_of(plan, directions, warmup_ns)
    facts = facts._replace(queues=(*facts.queues, *[one.queue for one in link_queues(plan)]))
    queues = [queue.name for queue in facts.queues]
    samples = samples_of(lambda table, column: tables[table][column], queues)
    run = _native.metrics.Run(facts, samples)
    everyone = list(range(len(directions)))
    window = _native.metrics.window(facts, tables["flow_samples"]["t_us"].tobytes())
    return [window, run.run(), run.flows(), run.group(everyone), run.queues()]


def _figures(tables: dict[str, Table]) -> Keys:
    flows, pings = tables["flows"], tables["ping_samples"]
    queues = _last_of_queues(tables["queue_samples"])
    found = {
        "delivered bytes": _each(flows["bytes_delivered"]),
        "retransmitted": _each(flows["packets_retransmitted"]),
        "timeouts": _total(flows["timeouts"]),
        "drops": _total(queues["dropped_packets"]),
        "marks": _total(queues["marked_packets"]),
        "random losses": _total(queues["random_lost_packets"]),
        "mean queue bytes": _mean(tables["queue_samples"]["queue_bytes"]),
        "mean srtt us": _mean(tables["flow_samples"]["srtt_us"]),
        "mean ping us": _mean(pings["rtt_us"]),
        "events of flows": len(tables["events"]["t_us"]),
    }
    if traffic := tables.get("traffic"):
        found["traffic bytes"] = _total(traffic["bytes_acked"])
        found["mean completion us"] = _mean(traffic["completion_us"] - traffic["start_us"])
    if loads := tables.get("page_loads"):
        found["mean load us"] = _mean(loads["done_us"] - loads["start_us"])
    if datagrams := tables.get("datagrams"):
        found["datagrams"] = int((~np.isnan(datagrams["delay_us"])).sum())
        found["mean delay us"] = _mean(datagrams["delay_us"])
    return {name: value for name, value in found.items() if value}


def _last_of_queues(samples: Table) -> Table:
    """The last sample of each queue, whose counters are totals."""
    _, first = np.unique(samples["queue"][::-1].astype(str), return_index=True)
    last = len(samples["queue"]) - 1 - first
    return {name: values[last] for name, values in samples.items()}


def _total(values: Column) -> int:
    return int(values.sum())


def _each(values: Column) -> int | list[int]:
    return [int(value) for value in values] if 1 < len(values) <= _LISTED_FLOWS else _total(values)


def _mean(values: Column) -> float:
    """Of those that there are. Sums of whole numbers do not depend on the order in which they are
    added."""
    known = values[~np.isnan(values)]
    return round(_total(known) / known.size, 1) if known.size else 0.0
