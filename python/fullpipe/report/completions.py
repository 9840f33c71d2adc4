"""How long flows with an end took, by their size: a distribution for each class of sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fullpipe.metrics import View, completion_s, traffic_flows
from fullpipe.metrics.traffic import SIZE_CLASSES
from fullpipe.metrics.view import Floats
from fullpipe.plots import style
from fullpipe.plots.model import Plot, Trace, thin
from fullpipe.report.runs import Group

#: Fewer flows than this are listed, not drawn as a distribution.
MIN_FLOWS = 5


def completion_cdfs(groups: Sequence[Group]) -> list[Plot]:
    """The plot; none where no class of any group has flows enough that ended."""
    traces: list[Trace] = []
    for group in groups:
        for cc, (sizes, times) in _flows(group).items():
            traces += _lines(group if len(groups) > 1 else None, cc, sizes, times)
    plot = Plot(
        "completion_cdf",
        "Completion time by size: distribution",
        x_title="completion time (ms)",
        y_title="share of flows",
        traces=traces,
        log_x=10,
        note="flows of all runs that began after the warm-up, from connect to the last "
        "acknowledged byte; a line ends below 1 where some did not finish",
    )
    return [] if plot.empty else [plot]


def _lines(group: Group | None, cc: str, sizes: Floats, times: Floats) -> list[Trace]:
    traces, low = [], 0.0
    for position, (high, name) in enumerate(SIZE_CLASSES):
        in_class = times[(sizes > low) & (sizes <= high)]
        done = np.sort(in_class[~np.isnan(in_class)])
        if done.size >= MIN_FLOWS:
            x, y = thin(1e3 * np.append(done[:1], done), np.arange(done.size + 1) / in_class.size)
            label = f"{group.label}: {name}" if group else f"{cc}, {name}"
            traces.append(
                Trace(
                    f"{label} ({in_class.size} flows)",
                    style.cc_colour(cc),
                    x,
                    y,
                    dash=style.dash(position),
                    width=1.6,
                    opacity=style.opacity(position),
                    shape="after",
                )
            )
        low = high
    return traces


def _flows(group: Group) -> dict[str, tuple[Floats, Floats]]:
    """Congestion control -> (sizes, completion times; NaN of flows that did not end) of flows with
    an end and of traffic, in all runs."""
    by_cc: dict[str, list[tuple[Floats, Floats]]] = {}
    for run in group.runs:
        view = View(run.recording)
        for flows in traffic_flows(view):
            by_cc.setdefault(flows.cc, []).append((flows.size_bytes, flows.completion_s))
        times = completion_s(view)
        started = view.flows["start_us"] >= view.start_s * 1e6
        for cc in run.shares:
            ended = np.array([name == cc for name in run.ccs]) & started & ~np.isnan(times)
            if ended.any():
                by_cc.setdefault(cc, []).append((view.flows["bytes_acked"][ended], times[ended]))
    return {
        cc: (
            np.concatenate([sizes for sizes, _ in parts]),
            np.concatenate([times for _, times in parts]),
        )
        for cc, parts in by_cc.items()
    }
