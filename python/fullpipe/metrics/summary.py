"""The metrics of one run as one document: what `fullpipe run --json` prints."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fullpipe import _native
from fullpipe.metrics.flows import spread
from fullpipe.metrics.groups import flow_groups
from fullpipe.metrics.limiting import limiting_link
from fullpipe.metrics.probes import probes
from fullpipe.metrics.view import Row, View
from fullpipe.recording.recording import Recording

#: Parts of metrics' names that are keys of their own: `rtt_p95_us` is `rtt_us.p95`.
_STATISTICS = {"mean", "min", "p5", "p50", "p95", "p99", "max"}
_COUNTED = {"packets", "flows"}


def summarise(recording: Recording) -> dict[str, Any]:
    """The summary of a recording's part after the warm-up: `summary_of` its default view."""
    return summary_of(View(recording))


def summary_of(view: View) -> dict[str, Any]:
    """Engine, seed, scenario, `health`, `settling`, and the metrics of this view
    (docs/reference/metrics.md).

    They are those of the run, `flows`, `groups` (one an entry of the scenario's flows),
    `completion` of flows with an end, `path` (the queue that the data goes through), `links` (every
    queue of the row), `limit` (the link that limited the run), and where there are any, `probes`,
    `pages`, `streams` of datagrams and `traffic` (see `summarise_pages`, `summarise_streams`,
    `summarise_traffic`). None stands where there is nothing to measure."""
    recording = view.recording
    path = {"queue": view.main_queue, **nested("queue", view.path_metrics)}
    links = [
        {
            "link": queue.link,
            "direction": queue.direction,
            "rate_bps": queue.rate_bps,
            **nested("queue", metrics),
        }
        for queue, metrics in view.link_metrics
    ]
    of_applications = applications(view)
    return {
        "engine": recording.metadata.get("engine"),
        "seed": recording.metadata.get("seed"),
        "scenario": view.plan.get("name"),
        "health": {"problems": recording.problems},
        "settling": view.settling,
        "interrupted": bool(recording.metadata.get("interrupted")),
        "failure": recording.metadata.get("failure"),
        **nested("run", view.run_metrics),
        "flows": [
            {
                **{name: str(view.flows[name][flow]) for name in ("flow", "cc", "direction")},
                **nested("flow", metrics),
            }
            for flow, metrics in enumerate(view.flow_metrics)
        ],
        "completion": _completion(view),
        "groups": [
            {
                "group": group.name,
                "cc": str(view.flows["cc"][group.members[0]]),
                **nested("group", view.group_metrics(group.members)),
            }
            for group in flow_groups(view)
        ],
        "path": path,
        "links": links,
        "limit": limiting_link(links, path),
        **{key: rows for key, rows in of_applications.items() if rows},
    }


def has_names(links: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a summary's links are a row of named ones, not the one of `[path]`."""
    return any(link["link"] != "path" for link in links)


def nested(table: str, metrics: Row) -> dict[str, Any]:
    """A row of metrics as JSON has it: statistics of one thing together, counts as integers, None
    for NaN."""
    document: dict[str, Any] = {}
    for name, unit, _ in _native.metrics.TABLES[table]:
        value = None if math.isnan(metrics[name]) else metrics[name]
        parts = name.split("_")
        statistic = next((part for part in parts if part in _STATISTICS), None)
        if statistic is not None:
            parts.remove(statistic)
            document.setdefault("_".join(parts), {})[statistic] = value
        else:
            document[name] = value if value is None or unit not in _COUNTED else int(value)
    return document


def _completion(view: View) -> dict[str, Any] | None:
    """Of the flows that have an end: how many there are and how many had not reached it when the
    run ended (`censored`), their goodput over their own time, and completion times, in which a
    censored flow counts with the time that it had taken by then. None where there are none."""
    planned = view.plan.get("flows", [])
    if len(planned) != len(view.flow_metrics):
        return None
    finite_flows = [
        (metrics["completion_s"], view.end_s - metrics["start_s"], metrics["goodput_bps"])
        for flow, metrics in zip(planned, view.flow_metrics, strict=True)
        if flow.get("amount_bytes") is not None and metrics["start_s"] < view.end_s
    ]
    if not finite_flows:
        return None
    times = np.array([left if math.isnan(time) else time for time, left, _ in finite_flows])
    rates = spread(np.array([rate for *_, rate in finite_flows]), ("mean", "p5", "p50", "p95"))
    return {
        "flows": len(finite_flows),
        "censored": sum(math.isnan(time) for time, *_ in finite_flows),
        "is_all": len(finite_flows) == len(planned),
        "goodput_bps": rates,
        "completion_s": spread(times, ("mean", "p50", "p95", "max")),
    }


def applications(view: View) -> dict[str, list[dict[str, Any]]]:
    """Probes, pages, streams and groups of a run, each where it has such (`kinds.KINDS`). What
    measures them is loaded then."""
    summaries = {}
    pings = view.samples("ping_samples")
    if pings["t_us"].size:
        summaries["probes"] = probes(pings, view.plan.get("duration_ns", math.inf) / 1e9)
    if view.recording.has("page_loads"):
        from fullpipe.metrics.pages import summarise_pages

        summaries["pages"] = summarise_pages(view)
    if view.recording.has("datagrams"):
        from fullpipe.metrics.datagrams import summarise_streams

        summaries["streams"] = summarise_streams(view)
    if view.recording.has("traffic"):
        from fullpipe.metrics.traffic import summarise_traffic

        summaries["traffic"] = summarise_traffic(view)
    return summaries
