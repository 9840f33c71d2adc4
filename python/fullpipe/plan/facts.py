"""What metrics need of a plan beside a run's tables (crates/fullpipe-metrics/src/facts.rs).

Plans may come from older programs and from elsewhere: what one does not say is not known.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fullpipe.plan.bottleneck import (
    DIRECTIONS,
    Capacity,
    Direction,
    link_capacity,
    link_rates_bps,
    main_queue,
    policed_bps,
    queue_name,
)

#: Of a flow in a plan, what says nothing of how much its application wants to send, and where.
_NOT_DEMAND = {
    "name",
    "cc",
    "start_ns",
    "stop_ns",
    "forward_delay_ns",
    "reverse_delay_ns",
    "jitter",
    "ecn",
    "ecn_kind",
    "hosts",
}
_LIMITS = ("amount_bytes", "app_rate_bps")


class Queue(NamedTuple):
    """A queue that is measured: its name in `queue_samples`, what its link can carry, and what a
    policer before it lets through (None: without one)."""

    name: str
    capacity: Capacity
    policed_bps: float | None = None


class Facts(NamedTuple):
    """Where the window begins and when it ends at the latest (infinite: with the last sample), the
    time between samples (0: not known), the base RTT (NaN: not known), the flows of equal demand,
    and the queues, of which the first is the bottleneck that the data goes through."""

    start_s: float
    end_s: float
    sample_interval_s: float
    rtt_s: float
    equal_demand: tuple[int, ...]
    queues: tuple[Queue, ...]


def facts_of(plan: Mapping[str, Any], directions: Sequence[str], warmup_ns: int) -> Facts:
    """The facts of a plan whose flows have these directions, with its bottleneck's queue alone."""
    path = plan.get("path")
    rtt_ns = path["forward_delay_ns"] + path["reverse_delay_ns"] if path else math.nan
    main = main_queue(plan, directions)
    return Facts(
        warmup_ns / 1e9,
        plan.get("duration_ns", 0) / 1e9 or math.inf,
        plan.get("sample_interval_ns", 0) / 1e9,
        rtt_ns / 1e9,
        equal_demand(plan, directions),
        (Queue(main.queue, main.capacity, main.policed_bps),),
    )


class LinkQueue(NamedTuple):
    """A queue of a row of links; `rate_bps`: of its link at the start, or of a policer
    that lets less through; None: not limited."""

    link: str
    direction: Direction
    rate_bps: float | None
    queue: Queue


def link_queues(plan: Mapping[str, Any]) -> list[LinkQueue]:
    """Every queue that has a rate, and both of a link that is no wire."""
    limits = []
    mtu = (plan.get("path") or {}).get("mtu_bytes", 1500)
    for link in plan.get("links", []):
        for direction, rate_bps in zip(DIRECTIONS, link_rates_bps(link), strict=True):
            if rate_bps or link["medium"].get("kind", "wire") != "wire":
                name = queue_name(link["name"], direction)
                queue = Queue(
                    name, link_capacity(link, direction, mtu), policed_bps(link, direction)
                )
                if rate_bps and queue.policed_bps is not None:
                    rate_bps = min(rate_bps, queue.policed_bps)
                limits.append(LinkQueue(link["name"], direction, rate_bps, queue))
    return limits


def equal_demand(plan: Mapping[str, Any], directions: Sequence[str]) -> tuple[int, ...]:
    """The flows whose goodputs can be compared: at least two, of the same direction and limits,
    that send as much as they may; where all flows are limited, all, if equally. Empty where there
    are none."""
    plans = plan.get("flows")
    if not isinstance(plans, list) or len(plans) != len(directions):
        plans = [{} for _ in directions]
    classes: dict[str, list[int]] = {}
    limited = set()
    for flow, (planned, direction) in enumerate(zip(plans, directions, strict=True)):
        demand: dict[str, Any] = {k: v for k, v in planned.items() if k not in _NOT_DEMAND}
        key = json.dumps({**demand, "direction": direction}, sort_keys=True)
        classes.setdefault(key, []).append(flow)
        if any(demand.get(limit) is not None for limit in _LIMITS):
            limited.add(key)
    free = [members for key, members in classes.items() if key not in limited]
    candidates = free or (list(classes.values()) if len(classes) == 1 else [])
    largest = max(candidates, key=len, default=[])
    return tuple(largest) if len(largest) > 1 else ()
