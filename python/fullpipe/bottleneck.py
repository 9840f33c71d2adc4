"""Which queue of a plan the data goes through, and its rate. Knows plans, and no recording."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def queue_name(link: str, way: str) -> str:
    """What a link's queue of one way is called in `queue_samples`
    (crates/fullpipe-scenario/src/links.rs)."""
    return way if link == "path" else f"{link}.{way}"


def link_rates_bps(link: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Rates of a plan's link, forward and reverse, at the start; None: not limited."""
    medium = link["medium"]
    forward, reverse = medium.get("forward") or {}, medium.get("reverse") or {}
    return forward.get("rate_bps"), reverse.get("rate_bps")


def bottleneck(plan: Mapping[str, Any]) -> str:
    """The link that a plan's `path` is about: the slowest of the row, of equals the first."""
    name, least_bps = "path", None
    for link in plan.get("links", []):
        rate_bps = link_rates_bps(link)[0]
        if rate_bps and (least_bps is None or rate_bps < least_bps):
            name, least_bps = link["name"], rate_bps
    return name


def main_queue(plan: Mapping[str, Any], flow_directions: Iterable[str]) -> tuple[str, float | None]:
    """The queue that the data of a plan goes through, with flows of these directions, and its rate
    (None: not limited, or not known). The reverse one where everything is a download."""
    ways = {*flow_directions, *[str(group["direction"]) for group in plan.get("traffic", ())]}
    if plan.get("pages"):
        ways.add("down")
    if not ways:
        ways = {str(one["direction"]) for one in plan.get("datagrams", ())}
    way = "reverse" if ways == {"down"} else "forward"
    rate = (plan.get("path") or {}).get("reverse_rate_bps" if way == "reverse" else "rate_bps")
    return queue_name(bottleneck(plan), way), float(rate) if rate else None
