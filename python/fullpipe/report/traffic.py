"""Plots of traffic: slowdown by size, its distribution, and how many flows there were at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fullpipe.metrics import TrafficFlows, View, at_once, traffic_flows
from fullpipe.metrics.view import Floats
from fullpipe.plots import style
from fullpipe.plots.model import Plot, Trace, cdf, thin
from fullpipe.report.runs import Group, Run

#: Points of a line of slowdown over size: so many flows each, at least.
MIN_FLOWS_A_POINT, MAX_POINTS = 20, 30
#: More windows than this in one plot cannot be told apart.
MAX_SAMPLED = 16


def traffic_cdfs(groups: Sequence[Group]) -> list[Plot]:
    """Over the runs of each group: the distribution of slowdown, and its mean over size."""
    over_all: list[Trace] = []
    over_size: list[Trace] = []
    for group in groups:
        for label, members in group.senders(traffic_flows):
            name = f"{label} ({group.count})"
            colour = style.cc_colour(members[0].cc)
            dash = style.dash(sum(trace.colour == colour for trace in over_all))
            slow = np.concatenate([flows.slowdown for flows in members])
            x, y = cdf(slow)
            over_all.append(Trace(name, colour, x, y, dash, 1.6, 1.0, "after"))
            sizes = np.concatenate([flows.size_bytes for flows in members])
            x, y = _means(sizes, slow)
            over_size.append(Trace(name, colour, x, y, dash, 1.6))
            ideal = np.concatenate([flows.slowdown_under("srpt") for flows in members])
            x, y = _means(sizes, ideal)
            over_size.append(Trace(f"{label}: SRPT", style.REFERENCE, x, y, dash, 1.0))
    note = "completion over size / rate + RTT; handshake and slow start are no part of the ideal"
    plots = [
        Plot(
            "slowdown_cdf",
            "Slowdown of flows: distribution",
            x_title="slowdown",
            y_title="share of flows",
            traces=over_all,
            note=note,
        ),
        Plot(
            "slowdown_size",
            "Slowdown by size",
            x_title="log10 of size in bytes",
            y_title="mean slowdown",
            traces=over_size,
            note=f"{note}; SRPT: what an ideal link would do with the same arrivals",
        ),
    ]
    return [plot for plot in plots if not plot.empty]


def flows_at_once(run: Run, view: View) -> Plot:
    """How many flows of traffic there were over time."""
    traces = []
    until_s = run.metadata.plan.duration_ns / 1e9
    for position, flows in enumerate(traffic_flows(view)):
        x, y = thin(*_steps(flows, until_s))
        colour = style.cc_colour(flows.cc)
        traces.append(Trace(flows.name, colour, x, y, style.dash(position), 1.2, shape="after"))
    return Plot(
        "at_once",
        "Flows at once",
        x_title="time (s)",
        y_title="flows",
        traces=traces,
        over_time=True,
        note="from the call to connect to the last acknowledged byte",
    )


def sampled_windows(view: View) -> Plot:
    """Windows of the flows of traffic that were sampled."""
    traces = []
    if view.recording.has("traffic_samples"):
        columns = view._all("traffic_samples")
        asked = np.unique(np.stack((columns["group_id"], columns["number"]), axis=1), axis=0)
        for position, (index, number) in enumerate(asked[:MAX_SAMPLED]):
            group = view.plan["traffic"][int(index)]
            of_flow = (columns["group_id"] == index) & (columns["number"] == number)
            x, y = thin(columns["t_us"][of_flow] / 1e6, columns["cwnd_packets"][of_flow])
            colour, dash = style.cc_colour(group["cc"]["name"]), style.dash(position)
            traces.append(Trace(f"{group['name']} flow {number:.0f}", colour, x, y, dash, 1.2))
    return Plot(
        "traffic_cwnd",
        "Windows of sampled flows",
        x_title="time (s)",
        y_title="packets",
        traces=traces,
        over_time=True,
        note=f"the first {MAX_SAMPLED} of traffic.samples",
    )


def _steps(flows: TrafficFlows, until_s: float) -> tuple[Floats, Floats]:
    times, counts = at_once(flows, until_s)
    keep = times <= until_s
    return times[keep], counts[keep]


def _means(sizes: Floats, values: Floats) -> tuple[Floats, Floats]:
    """(log10 of sizes, means of values) of flows ordered by size, in parts of equal number."""
    valid = ~np.isnan(values) & (sizes > 0)
    sizes, values = sizes[valid], values[valid]
    parts = int(np.clip(sizes.size // MIN_FLOWS_A_POINT, 1, MAX_POINTS))
    if not sizes.size:
        return sizes, values
    order = np.array_split(np.argsort(sizes, kind="stable"), parts)
    x = np.array([np.log10(sizes[part]).mean() for part in order])
    return x, np.array([values[part].mean() for part in order])
