"""Runs in which nothing arrived: their other metrics say nothing of the algorithms.

An empty queue of a path that carries nothing is not a short one. Must never know an engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from fullpipe import _native
from fullpipe.base.columns import as_numpy
from fullpipe.metrics.samples import samples_of
from fullpipe.plan.blocked import blocked_flows
from fullpipe.plan.facts import facts_of

_MOST_NAMES = 3


def silence(plan: Mapping[str, Any], tables: Mapping[str, pa.Table], warmup_ns: int) -> list[str]:
    """What was not delivered in a run, and why; empty where something arrived."""

    def read(table: str, column: str) -> Any:
        return as_numpy(tables[table][column].combine_chunks())

    names = tables["flows"]["flow"].to_pylist()
    facts = facts_of(plan, tables["flows"]["direction"].to_pylist(), warmup_ns)
    run = _native.metrics.Run(facts, samples_of(read, [queue.name for queue in facts.queues]))
    columns = [name for name, _, _ in _native.metrics.TABLES["queue"]]
    lost = run.queues()[0][columns.index("loss_ratio")]
    blocked = blocked_flows(plan)
    return sentences(names, run.silent_flows(), blocked, facts.queues[0].name if lost == 1 else "")


def sentences(
    names: Sequence[str], silent: Sequence[int], blocked: Mapping[int, str], dead_queue: str
) -> list[str]:
    """The same of flows of these names: which delivered nothing, which cannot by the plan and why,
    and the queue that passed no packet on, if there is one.

    One silent flow among others may have lost against them, which is a result; it is named where
    the plan is the cause, and where no flow delivered anything."""
    is_all = bool(names) and len(silent) == len(names)
    causes: dict[str, list[str]] = {}
    for flow in silent:
        if is_all or flow in blocked:
            causes.setdefault(blocked.get(flow, ""), []).append(names[flow])
    texts = [
        f"{_delivered(flows, names)}{cause and f': {cause}'}" for cause, flows in causes.items()
    ]
    if dead_queue and not texts:
        texts.append(f"the queue {dead_queue} passed no packet on")
    return texts


def _delivered(flows: Sequence[str], names: Sequence[str]) -> str:
    if len(flows) == len(names):
        return "nothing was delivered"
    shown = ", ".join(flows[:_MOST_NAMES])
    more = f" and {len(flows) - _MOST_NAMES} more" if len(flows) > _MOST_NAMES else ""
    return f"{shown}{more} delivered nothing"
