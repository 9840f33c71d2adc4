"""Which queues of a plan the data goes through, and their rates. Knows plans, and no recording."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

Way = Literal["forward", "reverse"]


class Bottleneck(NamedTuple):
    """The queue that data of one direction goes through. `rate_bps`: None where it is not limited,
    or not known; `qdisc`: as the plan has it."""

    queue: str
    rate_bps: float | None
    qdisc: Mapping[str, Any]


def queue_name(link: str, way: str) -> str:
    """What a link's queue of one way is called in `queue_samples`
    (crates/fullpipe-plan/src/links.rs)."""
    return way if link == "path" else f"{link}.{way}"


def link_rates_bps(link: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Rates of a plan's link, forward and reverse, at the start; None: not limited."""
    medium = link["medium"]
    forward, reverse = medium.get("forward") or {}, medium.get("reverse") or {}
    return forward.get("rate_bps"), reverse.get("rate_bps")


def bottleneck(plan: Mapping[str, Any]) -> str:
    """The link that a plan's `path` is about: the slowest of the row, of equals the first."""
    slowest = _slowest(plan, "forward")
    return str(slowest["name"]) if slowest else "path"


def bottleneck_of(plan: Mapping[str, Any], way: Way) -> Bottleneck:
    """The slowest queue of a plan in one direction, of equals the first."""
    slowest, of_path = _slowest(plan, way), of_path_alone(plan, way)
    if way == "forward" or slowest is None or slowest["name"] == "path":
        return of_path
    wire = slowest["medium"]["reverse"]
    return Bottleneck(queue_name(slowest["name"], way), float(wire["rate_bps"]), wire["qdisc"])


def of_path_alone(plan: Mapping[str, Any], way: Way) -> Bottleneck:
    """What a plan's `path` says, which of a row is the link that is slowest forward."""
    path, before = plan.get("path") or {}, "reverse_" if way == "reverse" else ""
    rate_bps, qdisc = path.get(f"{before}rate_bps"), path.get(f"{before}qdisc", {})
    return Bottleneck(
        queue_name(bottleneck(plan), way), float(rate_bps) if rate_bps else None, qdisc
    )


def data_ways(plan: Mapping[str, Any], flow_directions: Iterable[str]) -> list[Way]:
    """In which directions a plan's data goes, with flows of these directions; datagrams count where
    there is nothing else."""
    found = {*flow_directions, *[str(group["direction"]) for group in plan.get("traffic", ())]}
    if plan.get("pages"):
        found.add("down")
    if not found:
        found = {str(one["direction"]) for one in plan.get("datagrams", ())}
    ways: list[Way] = ["forward"] if "up" in found or "down" not in found else []
    return [*ways, "reverse"] if "down" in found else ways


def main_queue(plan: Mapping[str, Any], flow_directions: Iterable[str]) -> Bottleneck:
    """The queue that metrics are about: the reverse one where everything is a download."""
    return bottleneck_of(plan, data_ways(plan, flow_directions)[0])


def _slowest(plan: Mapping[str, Any], way: Way) -> Mapping[str, Any] | None:
    """The slowest link of a plan's row in one direction, of equals the first."""
    place, slowest, least_bps = ("forward", "reverse").index(way), None, math.inf
    for link in plan.get("links", []):
        rate_bps = link_rates_bps(link)[place]
        if rate_bps and rate_bps < least_bps:
            slowest, least_bps = link, rate_bps
    return slowest
