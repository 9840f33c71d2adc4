"""A group of runs over time: many flows as sum or mean, repetitions as mean with an interval.

With one run of few flows every flow has its line (`timeline`). Otherwise a line stands for a flow
in all runs, or, with too many flows, for those of one `[[flow]]`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fullpipe.metrics import View, smooth_throughput_over_time
from fullpipe.metrics.view import Floats
from fullpipe.plots import style
from fullpipe.plots.model import MAX_POINTS, Plot, Trace, thinned
from fullpipe.report.runs import Group
from fullpipe.report.timeline import MAX_FLOWS, time_plots, window_s
from fullpipe.statistics.intervals import half_widths

#: Points of a line that is a mean: a band of more cannot be told from one of these.
_MAX_POINTS = 800
#: Percentiles of the flows of one run, where no repetition gives an interval.
_SPREAD = (10.0, 90.0)
#: Bands of more flows than this hide each other.
_MAX_BANDS = 6
#: With fewer runs an interval says little: with two it is 13 standard errors wide
_FEWEST_RUNS = 3
#: Plots of samples: key of the plot -> (column, what it is divided by).
_COLUMNS = {
    "cwnd": ("cwnd_packets", 1.0),
    "rtt": ("srtt_us", 1e3),
    "rates": ("pacing_rate_bps", 1e6),
}


@dataclass(frozen=True)
class _Line:
    """What one line stands for: flows by their positions in the plan."""

    name: str
    cc: str
    flows: list[int]


def group_plots(group: Group, most: int | None = None) -> list[Plot]:
    """Every plot over time that the group has data for. Queues, phases and probes are those of the
    first run. With `most` a line always stands for a flow, or, with more flows than that, for those
    of one `[[flow]]`."""
    plots = time_plots(group.runs[0])
    views = [View(run.recording, start_s=0.0) for run in group.runs]
    flows = views[0].flows["flow_id"].size
    alike = [view for view in views if view.flows["flow_id"].size == flows]
    if flows == 0 or (most is None and flows <= MAX_FLOWS and len(alike) == 1):
        return plots
    lines = _lines(views[0], most or (MAX_FLOWS if len(alike) == 1 else _MAX_BANDS))
    return [_over_runs(plot, group, alike, lines) for plot in plots]


def _lines(view: View, most: int) -> list[_Line]:
    """A line for each flow where there are at most so many, else for each `[[flow]]`."""
    names = [str(name) for name in view.flows["flow"]]
    ccs = [str(cc) for cc in view.flows["cc"]]
    if len(names) <= most:
        return [_Line(name, cc, [i]) for i, (name, cc) in enumerate(zip(names, ccs, strict=True))]
    members: dict[tuple[str, str], list[int]] = {}
    for index, (name, cc) in enumerate(zip(names, ccs, strict=True)):
        members.setdefault((name.rpartition(".")[0] or name, cc), []).append(index)
    return [
        _Line(f"{name} ({len(flows)} flows)" if len(flows) > 1 else name, cc, flows)
        for (name, cc), flows in members.items()
    ]


def _over_runs(plot: Plot, group: Group, views: list[View], lines: list[_Line]) -> Plot:
    if plot.key == "throughput":
        window = window_s(group.runs[0], views[0])
        read = _throughputs(views, window)
    elif plot.key in _COLUMNS:
        read = _samples(views, *_COLUMNS[plot.key])
    else:
        return plot
    x, of_flow = read
    positions: dict[str, int] = {}
    traces = []
    for line in lines:
        position = positions.setdefault(line.cc, -1) + 1
        positions[line.cc] = position
        values = [[of_flow(run, flow) for flow in line.flows] for run in range(len(views))]
        trace = _trace(line, position, x, np.array(values), plot.key == "throughput")
        if np.isfinite(trace.y).any():  # an algorithm may have no such variable
            traces.append(trace)
    references = [trace for trace in plot.traces if trace.is_reference]
    note = _note(len(views), any(len(line.flows) > 1 for line in lines), plot.key)
    plot_note = plot.note if plot.key == "throughput" else ""  # others speak of single flows
    return replace(
        plot, traces=traces + references, note="; ".join(filter(None, (plot_note, note)))
    )


def _note(runs: int, is_many: bool, key: str) -> str:
    each = ("sum" if key == "throughput" else "mean") + " over the flows of a group"
    parts = [each] if is_many else []
    if runs >= _FEWEST_RUNS:
        parts.append(f"mean of {runs} runs with its 95 % interval (Student's t), cut at 0")
    elif runs > 1:
        parts.append(f"mean of {runs} runs; an interval needs {_FEWEST_RUNS}")
    elif is_many and key != "throughput":
        parts.append(f"band: {_SPREAD[0]:g}th to {_SPREAD[1]:g}th percentile of the flows")
    return "; ".join(parts)


def _trace(line: _Line, position: int, x: Floats, values: Floats, is_sum: bool) -> Trace:
    """`values` [run, flow, time]."""
    with np.errstate(all="ignore"):
        of_runs = _nan_mean(values, 1) * (values.shape[1] if is_sum else 1)
        y = _nan_mean(of_runs, 0)
        band = None
        if values.shape[0] >= _FEWEST_RUNS:
            half = half_widths(of_runs)
            band = (np.maximum(y - half, 0.0), y + half)  # none of these can be negative
        elif values.shape[0] == 1 and values.shape[1] > 1 and not is_sum:
            low, high = (_percentile(values[0], q) for q in _SPREAD)
            band = (low, high)
    trace = Trace(
        line.name,
        style.cc_colour(line.cc),
        x,
        y,
        dash=style.dash(position),
        width=1.5,
        opacity=style.opacity(position),
        shape="before" if is_sum else "linear",
        band=band,
    )
    return thinned(trace, MAX_POINTS if band is None else _MAX_POINTS)


def _nan_mean(values: Floats, axis: int) -> Floats:
    valid = ~np.isnan(values)
    total = np.where(valid, values, 0.0).sum(axis=axis)
    counts = valid.sum(axis=axis)
    mean: Floats = np.where(counts > 0, total / np.maximum(counts, 1), np.nan)
    return mean


def _percentile(values: Floats, q: float) -> Floats:
    columns = [column[~np.isnan(column)] for column in values.T]
    percentiles = [np.percentile(column, q) if column.size else np.nan for column in columns]
    return np.array(percentiles, dtype=np.float64)


_Read = tuple[Floats, Callable[[int, int], Floats]]


def _throughputs(views: list[View], window: float) -> _Read:
    throughputs = [smooth_throughput_over_time(view, window) for view in views]
    size = min(ends.size for ends, _ in throughputs)
    x = throughputs[0][0][:size]
    return x, lambda run, flow: throughputs[run][1][flow, :size] / 1e6


def _samples(views: list[View], column: str, divisor: float) -> _Read:
    """Samples of all runs at the times of the first: engines of real time sample a little beside
    them."""
    x = np.unique(views[0].samples("flow_samples")["t_us"]) / 1e6

    def read(run: int, flow: int) -> Floats:
        samples = views[run].flow_samples(flow)
        times, values = samples["t_us"] / 1e6, samples[column] / divisor
        valid = ~np.isnan(values)
        if not valid.any():
            return np.full(x.shape, np.nan)
        interpolated: Floats = np.interp(x, times[valid], values[valid], left=np.nan, right=np.nan)
        return interpolated

    return x, read
