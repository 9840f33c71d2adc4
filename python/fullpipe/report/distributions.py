"""Distributions over the runs of each group: queueing delay, ping, goodput; as CDFs and boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fullpipe.metrics.view import Floats
from fullpipe.plots import style
from fullpipe.plots.model import BOX_QUANTILES, Box, Plot, Trace, box_of, cdf
from fullpipe.report.completions import completion_cdfs
from fullpipe.report.pages import page_cdfs
from fullpipe.report.runs import Group, Run
from fullpipe.report.traffic import traffic_cdfs

#: More points than this beside a box are a blur.
MAX_BOX_POINTS = 200

#: Fewer flows than this are listed, not drawn as a distribution.
MIN_CDF_FLOWS = 5

_SAMPLED: list[tuple[str, str, str, Callable[[Run], Floats]]] = [
    ("queue", "Queueing delay", "queueing delay (RTTmin)", lambda run: run.queue_delay_rttmin),
    ("ping", "Ping", "ping RTT (ms)", lambda run: run.ping_ms),
]
_WHISKERS = "box: quartiles and median; whiskers: 5th and 95th percentile"


def cdf_plots(groups: Sequence[Group]) -> list[Plot]:
    """Distribution functions: of the samples of all runs of a group, of flows' goodput, of
    traffic's slowdown and of page times."""
    plots = []
    for key, title, x_title, values in _SAMPLED:
        lines = _Lines()
        for group in groups:
            lines.add(_name(group), _colour(group), _pooled(group, values))
        plots.append(
            Plot(
                f"{key}_cdf",
                f"{title}: distribution",
                x_title=x_title,
                y_title="share of samples",
                traces=lines.traces,
                note="samples of all runs together, after the warm-up",
            )
        )
    lines = _Lines()
    for group in groups:
        for cc in group.ccs:
            rates = _goodputs(group, cc)
            if rates.size >= MIN_CDF_FLOWS:
                lines.add(_name(group, cc, len(groups) == 1), style.cc_colour(cc), rates)
    plots.append(
        Plot(
            "goodput_cdf",
            "Goodput of flows: distribution",
            x_title="goodput (Mbit/s)",
            y_title="share of flows",
            traces=lines.traces,
            note="one value for each flow of each run, after the warm-up",
        )
    )
    plots += completion_cdfs(groups) + traffic_cdfs(groups) + page_cdfs(groups)
    return [plot for plot in plots if not plot.empty]


def box_plots(groups: Sequence[Group]) -> list[Plot]:
    """Boxes of the same, one a group (goodput: one a congestion control of a group)."""
    plots = []
    for key, title, x_title, values in _SAMPLED:
        boxes = [
            _box(_name(group), _colour(group), pooled)
            for group in groups
            if (pooled := _pooled(group, values)).size
        ]
        note = f"{_WHISKERS} of the samples of all runs together"
        plots.append(Plot(f"{key}_box", title, x_title, "", boxes=boxes, note=note))
    boxes = [
        _box(_name(group, cc, len(groups) == 1), style.cc_colour(cc), rates, points=True)
        for group in groups
        for cc in group.ccs
        if (rates := _goodputs(group, cc)).size
    ]
    note = f"{_WHISKERS}; a point is one flow of one run"
    plots.append(
        Plot("goodput_box", "Goodput of flows", "goodput (Mbit/s)", "", boxes=boxes, note=note)
    )
    return [plot for plot in plots if not plot.empty]


class _Lines:
    """Traces of distributions; lines of one colour differ in their dashes."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []

    def add(self, name: str, colour: str, values: Floats) -> None:
        if values.size:
            position = sum(trace.colour == colour for trace in self.traces)
            x, y = cdf(values)
            dash, opacity = style.dash(position), style.opacity(position)
            self.traces.append(Trace(name, colour, x, y, dash, 1.6, opacity, "after"))


def _name(group: Group, cc: str | None = None, alone: bool = False) -> str:
    """The name of a group or of a congestion control in it; `alone`: no other group is shown."""
    label = group.label if cc is None or group.ccs == [cc] else f"{group.label}: {cc}"
    return f"{cc if cc and alone else label} ({group.count})"


def _colour(group: Group) -> str:
    return style.cc_colour(group.ccs[0]) if len(group.ccs) == 1 else style.NEUTRAL


def _pooled(group: Group, values: Callable[[Run], Floats]) -> Floats:
    pooled = np.concatenate([values(run) for run in group.runs])
    finite: Floats = pooled[np.isfinite(pooled)]
    return finite


def _goodputs(group: Group, cc: str) -> Floats:
    rates = [
        float(rate) / 1e6
        for run in group.runs
        for name, rate in zip(run.ccs, run.goodput_bps, strict=True)
        if name == cc and np.isfinite(rate)
    ]
    return np.array(rates)


def _box(label: str, colour: str, values: Floats, points: bool = False) -> Box:
    shown = values if points and values.size <= MAX_BOX_POINTS else None
    return box_of(label, colour, np.quantile(values, BOX_QUANTILES), shown)
