"""The metrics of one run as one document: what `fullpipe run --json` prints."""

from __future__ import annotations

from typing import Any

import numpy as np

from fullpipe.metrics.fairness import jain
from fullpipe.metrics.flows import (
    completion_s,
    delivered_bytes,
    finite,
    goodput_bps,
    mean,
    quantiles,
    spread,
)
from fullpipe.metrics.groups import FlowGroup, equal_demand, flow_groups
from fullpipe.metrics.links import summarise_links
from fullpipe.metrics.queue import ping_ms, queue_bytes, queue_delay_rttmin
from fullpipe.metrics.view import Floats, View
from fullpipe.recording.recording import Recording


def summarise(recording: Recording) -> dict[str, Any]:
    """Engine, seed, scenario, `health`, `flows`, `groups` (one an entry of the scenario's flows),
    `goodput_bps` (of all flows together, over the whole window), `path` (the first bottleneck),
    `links` (every queue of the row, see `summarise_links`), `ping_ms`, `jain` (over the
    `jain_flows` flows of equal demand), and where there are any, `pages`, `streams` of
    datagrams and `traffic` (see `summarise_pages`, `summarise_streams`, `summarise_traffic`): all
    after the warm-up.

    Shares and goodput count payload, utilisation counts bytes on the wire. RTTs are the smoothed
    ones at the samples (the kernel exports no others), their `min` the connection's minimum. A
    completion time is from a flow's start to its last acknowledged byte, also of flows that ended
    in the warm-up. None stands where there is nothing to measure."""
    view = View(recording)
    rates, fair = goodput_bps(view), equal_demand(view)
    flows = _flows(view, rates)
    applications = _applications(view)
    return {
        "engine": recording.metadata.get("engine"),
        "seed": recording.metadata.get("seed"),
        "scenario": view.plan.get("name"),
        "health": {"problems": recording.problems},
        "interrupted": bool(recording.metadata.get("interrupted")),
        "failure": recording.metadata.get("failure"),
        "flows": flows,
        "groups": [_group(view, group, rates, flows) for group in flow_groups(view)],
        "goodput_bps": finite(_total_bps(view)),
        "path": _path(view),
        "links": summarise_links(view),
        "ping_ms": spread(ping_ms(view), ("p50", "p95", "p99", "max")),
        "jain": finite(jain(rates[fair])),
        "jain_flows": len(fair),
        **{key: found for key, found in applications.items() if found},
    }


def _applications(view: View) -> dict[str, list[dict[str, Any]]]:
    """Of what few runs have; what measures it is loaded then."""
    found = {}
    if view.recording.has("page_loads"):
        from fullpipe.metrics.pages import summarise_pages

        found["pages"] = summarise_pages(view)
    if view.recording.has("datagrams"):
        from fullpipe.metrics.datagrams import summarise_streams

        found["streams"] = summarise_streams(view)
    if view.recording.has("traffic"):
        from fullpipe.metrics.traffic import summarise_traffic

        found["traffic"] = summarise_traffic(view)
    return found


def _flows(view: View, rates: Floats) -> list[dict[str, Any]]:
    volumes, times = delivered_bytes(view), completion_s(view)
    total = float(volumes.sum())
    return [
        {
            "flow": str(view.flows["flow"][flow]),
            "cc": str(view.flows["cc"][flow]),
            "goodput_bps": finite(float(rates[flow])),
            "share": float(volumes[flow]) / total if total > 0 else None,
            "retransmit_ratio": _ratio(view, (flow,)),
            "rtt_us": _rtt(view, (flow,)),
            "cwnd_packets": _cwnd(view, (flow,)),
            "completion_s": finite(float(times[flow])),
        }
        for flow in range(rates.size)
    ]


def _group(
    view: View, group: FlowGroup, rates: Floats, flows: list[dict[str, Any]]
) -> dict[str, Any]:
    members = list(group.members)
    mine = [flows[flow] for flow in members]
    shares = [flow["share"] for flow in mine]
    done = completion_s(view)[members]
    keys = ("mean", "p5", "p50", "p95")
    return {
        "group": group.name,
        "cc": mine[0]["cc"],
        "flows": len(members),
        "goodput_bps": spread(rates[members], keys),
        "share": None if None in shares else sum(shares),
        "retransmit_ratio": _ratio(view, group.members),
        "rtt_us": _rtt(view, group.members),
        "cwnd_packets": _cwnd(view, group.members),
        "finished": int(np.count_nonzero(~np.isnan(done))),
        "completion_s": spread(done, ("mean", "p50", "p95", "p99", "max")),
        "jain": finite(jain(rates[members])) if len(members) > 1 else None,
    }


def _total_bps(view: View) -> float:
    seconds = view.end_s - view.start_s
    return 8 * float(delivered_bytes(view).sum()) / seconds if seconds > 0 else np.nan


def _ratio(view: View, flows: tuple[int, ...]) -> float | None:
    sent, again = (
        sum(
            view.counter(flow, name, view.end_s) - view.counter(flow, name, view.start_s)
            for flow in flows
        )
        for name in ("packets_sent", "packets_retransmitted")
    )
    return again / sent if sent > 0 else None


def _sampled(view: View, flows: tuple[int, ...], column: str) -> Floats:
    return np.concatenate([view.flow_samples(flow)[column] for flow in flows])


def _rtt(view: View, flows: tuple[int, ...]) -> dict[str, float | None]:
    smoothed = _sampled(view, flows, "srtt_us")
    p50, p95, p99 = quantiles(smoothed, (0.5, 0.95, 0.99))
    least = _sampled(view, flows, "min_rtt_us")
    least = least[~np.isnan(least)]
    return {
        "min": float(least.min()) if least.size else None,
        "p50": p50, "p95": p95, "p99": p99, "mean": mean(smoothed),
    }  # fmt: skip


def _cwnd(view: View, flows: tuple[int, ...]) -> dict[str, float | None]:
    values = _sampled(view, flows, "cwnd_packets")
    return {"mean": mean(values), "p50": quantiles(values, (0.5,))[0]}


def _path(view: View) -> dict[str, Any]:
    queue, seconds = view.main_queue, view.end_s - view.start_s
    sent, packets, drops, marks, lost, random_marks = (
        view.queue_counter(queue, name, view.end_s) - view.queue_counter(queue, name, view.start_s)
        for name in (
            "sent_bytes", "sent_packets", "dropped_packets", "marked_packets",
            "random_lost_packets", "random_marked_packets",
        )
    )  # fmt: skip
    offered = packets + drops + lost
    keys = ("mean", "p50", "p95", "max")
    seen = view.queue(queue)["t_us"].size > 0
    return {
        "utilisation": finite(8 * sent / (view.rate_bps * seconds)) if seen else None,
        "queue_delay_rttmin": spread(queue_delay_rttmin(view), keys),
        "queue_bytes": spread(queue_bytes(view), keys),
        "drops": drops if seen else None,
        "marks": marks + random_marks if seen else None,
        "loss_ratio": (drops + lost) / offered if offered > 0 else None,
    }
