"""Every queue of a row of links, by the link's name and the way: what waited, was dropped, marked
or lost by chance there. `path` in a summary is the first bottleneck's alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fullpipe.metrics.flows import spread
from fullpipe.metrics.view import View
from fullpipe.plan.bottleneck import link_rates_bps, queue_name
from fullpipe.recording.recording import QUEUE_COUNTERS

_WAYS = ("forward", "reverse")
_SPREAD = ("p50", "p95", "max")


def summarise_links(view: View) -> list[dict[str, Any]]:
    """Of each queue that has a rate, and of both ways of a Wi-Fi channel: `link`, `way`, `rate_bps`
    (at the start; None of a channel), `throughput_bps` on the wire, counters over the window, the
    backlog at the samples (`queue_bytes`) and the queueing delay (`queue_delay_ms`: backlog over
    rate, None where there is no one rate)."""
    found = []
    for link in view.plan.get("links", []):
        is_channel = link["medium"].get("kind") == "wifi"
        for way, rate_bps in zip(_WAYS, link_rates_bps(link), strict=True):
            if rate_bps or is_channel:
                steady = rate_bps if _is_steady(link["medium"].get(way) or {}) else None
                found.append(_queue(view, link["name"], way, rate_bps, steady))
    return found


def has_names(links: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a summary's links are a row of named ones, not the one of `[path]`."""
    return any(link["link"] != "path" for link in links)


def _is_steady(way: Mapping[str, Any]) -> bool:
    """Whether a wire keeps its rate; an outage is a step too."""
    return not way.get("rate_steps") and not way.get("rate_trace")


def _queue(
    view: View, link: str, way: str, rate_bps: float | None, steady_bps: float | None
) -> dict[str, Any]:
    name, seconds = queue_name(link, way), view.end_s - view.start_s
    totals = {
        key: view.queue_counter(name, key, view.end_s) - view.queue_counter(name, key, view.start_s)
        for key in QUEUE_COUNTERS
    }
    backlog = view.queue(name)["queue_bytes"]
    delay_ms = backlog * 8e3 / (steady_bps or np.nan)
    return {
        "link": link,
        "way": way,
        "rate_bps": rate_bps,
        "throughput_bps": 8 * totals["sent_bytes"] / seconds if seconds > 0 else None,
        **{key: int(value) for key, value in totals.items()},
        "queue_bytes": spread(backlog, _SPREAD),
        "queue_delay_ms": spread(delay_ms, _SPREAD),
    }
