"""Figures of an entry's results, as SVG: the same bytes for the same results.

Draws what `[[plot]]` asks for; must never judge or run anything.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt

from fullpipe.cc_sets import cc_sets
from fullpipe.experiments.entry import Plot
from fullpipe.experiments.verdicts import Results
from fullpipe.report import style

Floats = npt.NDArray[np.float64]

#: Lines that stand for no congestion control (Okabe and Ito, as in `style`).
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#e69f00", "#8e44ad", "#56b4e9", "#7f7f7f", "#8c2d19",
            "#cc79a7", "#5e3c99", "#000000", "#b0a000")  # fmt: skip
_PANELS_A_ROW = 3
_BESIDE = {"published": "x", "observed": "o"}
#: Models' lines; a figure of more lines of ours than this would drown in them.
_MODEL_LINES = ("--", ":", "-.")
_MAX_LINES_WITH_MODELS = 8
_UNITS = {
    "queue_delay_rttmin": "queueing delay (RTTmin)", "ping_ms": "ping (ms)",
    "goodput_mbps": "goodput of flows (Mbit/s)",
}  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """A drawn plot, and how to read it."""

    title: str
    svg: str
    note: str


def figures(results: Results) -> list[Figure]:
    """What the entry's plots show of these results; plots without anything to see are left out."""
    found = []
    for plot in results.entry.plot:
        figure = _figure(results, plot)
        if figure is not None:
            found.append(figure)
    return found


def _figure(results: Results, plot: Plot) -> Figure | None:
    wanted = [i for i in range(len(results.points)) if _seen(results, plot, i)]
    panels = _grouped(results, wanted, plot.panel)
    if not panels:
        return None
    mpl.use("Agg")
    import matplotlib.pyplot as plt  # only after the backend is chosen

    settings: Any = {"svg.hashsalt": "fullpipe", "svg.fonttype": "none", "font.size": 9,
                     "font.family": "sans-serif"}  # fmt: skip
    with mpl.rc_context(settings):
        columns = min(len(panels), _PANELS_A_ROW)
        rows = math.ceil(len(panels) / columns)
        width = 7.6 if columns == 1 else 3.3 * columns + 1.6
        figure, axes = plt.subplots(
            rows, columns, figsize=(width, 2.7 * rows + 0.3), squeeze=False, sharey=True,
            layout="constrained",
        )  # fmt: skip
        for position, (label, points) in enumerate(panels.items()):
            _panel(axes.flat[position], results, plot, points, label)
        for unused in axes.flat[len(panels) :]:
            unused.set_visible(False)
        _legend(figure, axes.flat[0])
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(figure)
    return Figure(plot.title or _title(results, plot), buffer.getvalue(), _note(plot))


def _seen(results: Results, plot: Plot, point: int) -> bool:
    """Whether there is something of a point to draw."""
    runs = results.runs[point]
    kept = plot.kind == "line" or any(run.distributions.get(plot.of) for run in runs)
    return bool(runs) and kept


def _grouped(results: Results, points: Sequence[int], axes: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for point in points:
        values = results.points[point].axes
        label = ", ".join(f"{name} {values[name]}" for name in axes)
        found.setdefault(label, []).append(point)
    return found


def _panel(axes: Any, results: Results, plot: Plot, points: list[int], label: str) -> None:
    groups = _grouped(results, points, plot.by)
    for position, (name, members) in enumerate(groups.items()):
        colour = _colour(results, plot, members, position)
        if plot.kind == "line":
            models = len(groups) <= _MAX_LINES_WITH_MODELS
            _line(axes, results, plot, members, name, colour, models)
        elif plot.kind == "cdf":
            _cdf(axes, results, plot, members, name, colour)
        else:
            _boxes(axes, results, plot, members, name, colour, position, len(groups))
    axes.set_title(label, fontsize=9)
    axes.grid(color=style.GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    metric = results.entry.metric.get(plot.of)
    if plot.kind == "line" and metric is not None:
        unit = f" ({metric.unit})" if metric.unit else ""
        axes.set(xlabel=plot.x or "", ylabel=(metric.title or plot.of) + unit)
    elif plot.kind == "cdf":
        axes.set(xlabel=_UNITS[plot.of], ylabel="share")
    else:
        axes.set(xlabel=plot.x or "", ylabel=_UNITS[plot.of])
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))


def _line(
    axes: Any, results: Results, plot: Plot, members: list[int], name: str, colour: str,
    models: bool,
) -> None:  # fmt: skip
    values = results.values(plot.of)
    estimates = results.estimates(plot.of)
    known = [point for point in members if np.isfinite(values[point]).all()]
    x = _positions(axes, results, plot, known)
    axes.plot(x, estimates[known], "-o", color=colour, label=name or "runs", markersize=3,
              linewidth=1.2)  # fmt: skip
    low = [float(values[point].min()) for point in known]
    high = [float(values[point].max()) for point in known]
    if any(len(values[point]) > 1 for point in known):
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    drawn = 0
    for (kind, metric, model), beside in results.beside.items():
        there = [(position, beside[point]) for position, point in zip(x, known, strict=True)
                 if point in beside]  # fmt: skip
        if metric != plot.of or not there or (model and not models):
            continue
        where, what = zip(*there, strict=True)
        if model:
            line = _MODEL_LINES[drawn % len(_MODEL_LINES)]
            drawn += 1
            axes.plot(where, what, line, color=colour, linewidth=0.8, label=model)
        else:
            axes.plot(where, what, linestyle="none", marker=_BESIDE[kind], color=colour,
                      fillstyle="none", markersize=6, label=kind)  # fmt: skip


def _positions(axes: Any, results: Results, plot: Plot, points: list[int]) -> list[float]:
    """Where the points lie along x: their number, or their place among the axis's texts."""
    everything = [point.axes.get(plot.x or "") for point in results.points]
    numbers = [float(value) for value in everything if isinstance(value, int | float)]
    if len(numbers) == len(everything):
        if plot.log_x:
            axes.set_xscale("log", base=2)
            ticks = sorted(set(numbers))
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=7)
            axes.minorticks_off()
        return [numbers[point] for point in points]
    order = list(dict.fromkeys(everything))
    axes.set_xticks(range(len(order)), [str(value) for value in order], fontsize=7)
    return [float(order.index(everything[point])) for point in points]


def _cdf(
    axes: Any, results: Results, plot: Plot, members: list[int], name: str, colour: str
) -> None:
    quantiles = _quantiles(results, plot, members)
    if quantiles.size:
        axes.plot(quantiles, np.linspace(0, 1, quantiles.size), color=colour, linewidth=1.2,
                  label=name or "runs")  # fmt: skip


def _boxes(
    axes: Any, results: Results, plot: Plot, members: list[int], name: str, colour: str,
    position: int, count: int,
) -> None:  # fmt: skip
    order = list(dict.fromkeys(str(point.axes.get(plot.x or "")) for point in results.points))
    width = 0.8 / count
    line = {"color": colour, "linewidth": 0.9}
    axes.plot([], [], color=colour, label=name or "runs")
    for label in order:
        mine = [p for p in members if str(results.points[p].axes.get(plot.x or "")) == label]
        quantiles = _quantiles(results, plot, mine)
        if not quantiles.size:
            continue
        low, q1, median, q3, high = np.interp([5, 25, 50, 75, 95], np.arange(101), quantiles)
        box = {"whislo": low, "q1": q1, "med": median, "q3": q3, "whishi": high}
        centre = order.index(label) + (position + 0.5) * width - 0.4
        axes.bxp(
            [box], positions=[centre], widths=0.8 * width, showfliers=False, manage_ticks=False,
            boxprops=line, medianprops=line, whiskerprops=line, capprops=line,
        )  # fmt: skip
    axes.set_xticks(range(len(order)), order, fontsize=7)


def _quantiles(results: Results, plot: Plot, members: list[int]) -> Floats:
    """Percentiles 0 to 100: of all flows' goodputs, or the means of the runs' percentiles."""
    found = [run.distributions.get(plot.of, []) for point in members for run in results.runs[point]]
    found = [values for values in found if values]
    if not found:
        return np.empty(0)
    if plot.of == "goodput_mbps":
        pooled = np.concatenate([np.asarray(values) for values in found])
        return np.asarray(np.quantile(pooled, np.linspace(0, 1, 101)))
    return np.asarray(np.mean(np.asarray(found), axis=0))


def _colour(results: Results, plot: Plot, members: list[int], position: int) -> str:
    """A congestion control's own colour where lines stand for congestion controls."""
    if len(plot.by) == 1:
        value = str(results.points[members[0]].axes[plot.by[0]])
        if value in cc_sets():
            return style.cc_colour(value)
    return _COLOURS[position % len(_COLOURS)]


def _legend(figure: Any, axes: Any) -> None:
    handles, labels = axes.get_legend_handles_labels()
    shown = dict(zip(labels, handles, strict=True))
    if len(shown) > 1 or list(shown) != ["runs"]:
        figure.legend(
            list(shown.values()), list(shown), fontsize=7, frameon=False,
            loc="outside right upper", ncols=1 + (len(shown) - 1) // 24,
        )  # fmt: skip


def _title(results: Results, plot: Plot) -> str:
    metric = results.entry.metric.get(plot.of)
    what = (metric.title or plot.of) if metric else _UNITS[plot.of]
    return what[:1].upper() + what[1:]


def _note(plot: Plot) -> str:
    if plot.kind == "line":
        return "bands: least and largest run; x: published; o: observed; broken lines: models"
    if plot.kind == "cdf":
        return "means of the runs' percentiles, after the warm-up"
    return "box: quartiles and median; whiskers: 5th and 95th percentile; after the warm-up"
