"""Which flows belong together: those of one `[[flow]]` entry, and those of equal demand.

What a group is called comes from the names of its flows.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fullpipe.metrics.view import View

#: Of a flow in a plan, what says nothing of how much its application wants to send, and where.
_NOT_DEMAND = {
    "name", "cc", "start_ns", "stop_ns", "forward_delay_ns", "reverse_delay_ns", "jitter", "ecn",
    "ecn_kind", "hosts",
}  # fmt: skip
_LIMITS = ("amount_bytes", "app_rate_bps")


@dataclass(frozen=True)
class FlowGroup:
    """Flows that one entry of the scenario describes."""

    name: str
    members: tuple[int, ...]


def flow_groups(view: View) -> list[FlowGroup]:
    """The flows by the `[[flow]]` entries of the recorded scenario, in order; each flow by itself
    where the scenario is not recorded or tells another number of flows."""
    names = [str(name) for name in view.flows["flow"]]
    counts = _counts(view.recording.scenario_toml)
    if sum(counts) != len(names):
        counts = [1] * len(names)
    groups, first = [], 0
    for count in counts:
        members = tuple(range(first, first + count))
        groups.append(FlowGroup(_name([names[flow] for flow in members]), members))
        first += count
    return groups


def equal_demand(view: View) -> list[int]:
    """The flows whose shares can be held against each other: at least two, of the same direction
    and limits, that send as much as they may; where all flows are limited, all, if equally. Empty
    where there are none."""
    plans = view.plan.get("flows")
    directions = [str(way) for way in view.flows["direction"]]
    if not isinstance(plans, list) or len(plans) != len(directions):
        plans = [{} for _ in directions]
    classes: dict[str, list[int]] = {}
    limited = set()
    for flow, (planned, way) in enumerate(zip(plans, directions, strict=True)):
        demand: dict[str, Any] = {k: v for k, v in planned.items() if k not in _NOT_DEMAND}
        key = json.dumps({**demand, "direction": way}, sort_keys=True)
        classes.setdefault(key, []).append(flow)
        if any(demand.get(limit) is not None for limit in _LIMITS):
            limited.add(key)
    free = [members for key, members in classes.items() if key not in limited]
    candidates = free or (list(classes.values()) if len(classes) == 1 else [])
    largest = max(candidates, key=len, default=[])
    return largest if len(largest) > 1 else []


def _counts(scenario_toml: str) -> list[int]:
    try:
        entries = tomllib.loads(scenario_toml).get("flow")
    except tomllib.TOMLDecodeError:
        return []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return []
    counts = [entry.get("count", 1) for entry in entries]
    return counts if all(type(count) is int and count > 0 for count in counts) else []


def _name(names: Sequence[str]) -> str:
    """`web.1` for one, `web.1-40` for more."""
    if len(names) == 1:
        return names[0]
    return f"{names[0]}-{names[-1].rpartition('.')[2]}"
