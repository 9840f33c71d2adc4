"""Throughput against delay: a point for each algorithm of each group, an ellipse of its
repetitions. The figure of Pantheon (Yan et al., USENIX ATC 2018) and Copa (Arun and Balakrishnan,
NSDI 2018)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fullpipe.metrics.view import Floats
from fullpipe.plots import style
from fullpipe.plots.model import Plot, Trace, ellipse
from fullpipe.report.runs import Group

#: An ellipse of fewer runs says nothing of how they vary.
LEAST_RUNS = 3
MARKS = ("dot", "square", "diamond", "up", "down", "star", "cross", "plus")


def tradeoff(groups: Sequence[Group]) -> Plot:
    """The plot; empty where there are not two points to compare."""
    points = [point for group in groups for point in _points(group)]
    names = [name for name, _, _, _ in points]
    colours = {colour for _, colour, _, _ in points}
    traces: list[Trace] = []
    for index, (name, cc_colour, x, y) in enumerate(points):
        # Several groups of one algorithm have a colour each.
        colour = style.line_colour(index) if len(colours) == 1 and len(names) > 1 else cc_colour
        before = sum(trace.colour == colour and bool(trace.mark) for trace in traces)
        mean = np.array([x.mean()]), np.array([y.mean()])
        traces.append(Trace(name, colour, *mean, mark=MARKS[before % len(MARKS)]))
        if x.size >= LEAST_RUNS:
            traces.append(Trace("", colour, *ellipse(x, y), width=1.2))
    runs = "; ".join(sorted({group.count for group in groups}))
    return Plot(
        "tradeoff",
        "Throughput against delay",
        x_title="RTT, 95th percentile (ms)",
        y_title="goodput (Mbit/s)",
        traces=traces if len(points) > 1 else [],
        note=f"a point is the mean of the runs ({runs}), the ellipse one standard deviation around "
        "it; up and to the left is better",
    )


def _points(group: Group) -> list[tuple[str, str, Floats, Floats]]:
    """(name, colour, RTTs, goodputs), a value for each run, of each `[[flow]]`."""
    points = []
    of_runs = [{row["group"]: row for row in run.summary["groups"]} for run in group.runs]
    for name, first in of_runs[0].items():
        rows = [rows[name] for rows in of_runs if name in rows]
        complete = [
            row
            for row in rows
            if row["rtt_us"]["p95"] is not None and row["goodput_all_bps"] is not None
        ]
        if complete:
            label = group.label if len(of_runs[0]) == 1 else f"{group.label}: {name}"
            x = np.array([row["rtt_us"]["p95"] / 1e3 for row in complete])
            y = np.array([row["goodput_all_bps"] / 1e6 for row in complete])
            points.append((label, style.cc_colour(first["cc"]), x, y))
    return points
