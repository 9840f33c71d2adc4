"""Plots of pages: how long loads took, over time and as a distribution, and the objects of one load
as a waterfall."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fullpipe.base.units import format_size
from fullpipe.metrics import View
from fullpipe.metrics.pages import PageLoads, page_loads, page_objects
from fullpipe.plots import style
from fullpipe.plots.model import Plot, Spans, Trace, cdf, thin
from fullpipe.report.runs import Group

#: More rows than this in a waterfall cannot be told apart.
MAX_OBJECTS = 60
_DEFINED = "from a load's start to the last byte of its last object"


def page_cdfs(groups: Sequence[Group]) -> list[Plot]:
    """Over the runs of each group: the distribution of page times."""
    traces: list[Trace] = []
    for group in groups:
        for label, members in group.senders(page_loads):
            colour = style.cc_colour(members[0].cc)
            dash = style.dash(sum(trace.colour == colour for trace in traces))
            x, y = cdf(1e3 * np.concatenate([loads.time_s for loads in members]))
            name = f"{label} ({group.count})"
            traces.append(Trace(name, colour, x, y, dash, 1.6, 1.0, "after"))
    plot = Plot(
        "page_cdf",
        "Page time: distribution",
        x_title="page time (ms)",
        y_title="share of loads",
        traces=traces,
        note=_DEFINED,
    )
    return [plot] if traces and not plot.empty else []


def page_plots(view: View) -> list[Plot]:
    """Of one run: page time of each load, and of each page a waterfall."""
    pages = page_loads(view)
    traces = []
    for position, loads in enumerate(pages):
        x, y = thin(loads.start_s, 1e3 * loads.time_s)
        colour = style.cc_colour(loads.cc)
        traces.append(Trace(loads.name, colour, x, y, style.dash(position), 1.2))
    course = Plot(
        "page_time",
        "Page time",
        x_title="time (s)",
        y_title="page time (ms)",
        traces=traces,
        over_time=True,
        note=f"{_DEFINED}; drawn at the load's start",
    )
    return [course, *(_waterfall(view, index, loads) for index, loads in enumerate(pages))]


def _waterfall(view: View, index: int, loads: PageLoads) -> Plot:
    """The objects of the load whose time is the median of those that ended (the lower of two)."""
    shown = np.flatnonzero(~np.isnan(loads.time_s))
    title = f"Objects of {loads.name}"
    if not shown.size:
        return Plot(f"waterfall{index}", title, "", "")
    middle = shown[np.argsort(loads.time_s[shown], kind="stable")[(shown.size - 1) // 2]]
    every, objects = view._all("page_loads"), page_objects(view)
    selected = (every["page_id"] == index) & (
        every["start_us"] == round(loads.start_s[middle] * 1e6)
    )
    number, start_us = every["load"][selected][0], every["start_us"][selected][0]
    of_load = (objects["page_id"] == index) & (objects["load"] == number)
    of_load &= objects["object"] < MAX_OBJECTS
    row = objects["object"][of_load].astype(float)
    asked, first, done = (
        (objects[name][of_load] - start_us) / 1e3
        for name in ("asked_us", "first_byte_us", "done_us")
    )
    spans = [
        Spans("until its first byte", style.REFERENCE, row, asked, first),
        Spans("until its last byte", style.cc_colour(loads.cc), row, first, done),
    ]
    sizes = loads.object_bytes[:MAX_OBJECTS]
    names = tuple(f"{position + 1}: {format_size(size)}" for position, size in enumerate(sizes))
    return Plot(
        f"waterfall{index}",
        title,
        x_title="time since the load's start (ms)",
        y_title="",
        rows=names,
        spans=spans if row.size else [],
        note=f"load {int(number) + 1}, whose {1e3 * loads.time_s[middle]:.0f} ms are the median "
        f"of {shown.size} loads; an object begins when its connection turns to it",
    )
