"""Figures of an entry's results, as SVG: the same bytes for the same results.

Draws what `[[plot]]` asks for; must never judge or run anything.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt

from fullpipe.congestion.registry import cc_sets
from fullpipe.papers.entry import Plot
from fullpipe.papers.results import Results
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
#: A longer label of the upright axis would be cut.
_LABEL_WIDTH = 38
#: How far beyond the axes a point may lie, as a share of them, by rounding alone.
_EDGE = 1e-6
_UNITS = {
    "queue_delay_rttmin": "queueing delay (RTTmin)", "ping_ms": "ping (ms)",
    "goodput_mbps": "goodput of flows (Mbit/s)",
}  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """A drawn plot, and how to read it. `lost`: what it should show and does not (a series of a
    panel with points outside the axes); empty for a figure that can be trusted."""

    title: str
    svg: str
    note: str
    lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class Series:
    """A line of a figure: the same colour and, of boxes, the same place in every panel."""

    label: str
    colour: str
    position: int
    count: int


def figures(results: Results) -> list[Figure]:
    """What the entry's plots show of these results; plots without anything to see are left out."""
    found = []
    for plot in results.entry.plot:
        figure = _figure(results, plot)
        if figure is not None:
            found.append(figure)
    return found


def lost_series(results: Results) -> list[str]:
    """What the entry's figures should show and do not, without rendering them."""
    found = []
    for plot in results.entry.plot:
        with _drawn(results, plot) as figure:
            found += [] if figure is None else _lost(figure)
    return found


def _figure(results: Results, plot: Plot) -> Figure | None:
    with _drawn(results, plot) as figure:
        if figure is None:
            return None
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        lost = tuple(_lost(figure))
    return Figure(plot.title or _title(results, plot), buffer.getvalue(), _note(plot), lost)


@contextmanager
def _drawn(results: Results, plot: Plot) -> Iterator[Any]:
    """A figure of matplotlib; None where there is nothing to see."""
    wanted = [i for i in range(len(results.points)) if _seen(results, plot, i)]
    panels = _grouped(results, wanted, plot.panel)
    if not panels:
        yield None
        return
    mpl.use("Agg")
    import matplotlib.pyplot as plt  # only after the backend is chosen

    settings: Any = {"svg.hashsalt": "fullpipe", "svg.fonttype": "none", "font.size": 9,
                     "font.family": "sans-serif"}  # fmt: skip
    with mpl.rc_context(settings):
        columns = 2 if len(panels) == 4 else min(len(panels), _PANELS_A_ROW)
        rows = math.ceil(len(panels) / columns)
        width = 7.6 if columns == 1 else 3.3 * columns + 1.6
        figure, axes = plt.subplots(
            rows, columns, figsize=(width, 2.7 * rows + 0.3), squeeze=False, sharey=True,
            layout="constrained",
        )  # fmt: skip
        series = _series(results, plot, wanted)
        for one, (label, points) in zip(axes.flat, panels.items(), strict=False):
            _panel(one, results, plot, series, points, label)
        for unused in axes.flat[len(panels) :]:
            unused.set_visible(False)
        for inner in axes[:, 1:].flat:
            inner.set_ylabel("")
        _scale(axes.flat[0])
        _legend(figure, axes.flat[: len(panels)])
        try:
            yield figure
        finally:
            plt.close(figure)


def _scale(axes: Any) -> None:
    """Lets the shared axis begin at 0, once all panels are drawn: a limit ends its scaling."""
    low, high = axes.get_ylim()
    if low > 0:
        axes.set_ylim(0.0, 1.05 * high)


def _lost(figure: Any) -> list[str]:
    return [text for axes in figure.axes if axes.get_visible() for text in outside(axes)]


def outside(axes: Any) -> list[str]:
    """Which lines, markers and boxes of a panel have points that its axes do not show."""
    found = []
    panel = f"panel {axes.get_title()}: " if axes.get_title() else ""
    for line in axes.lines:
        label = "a box" if line.get_label().startswith("_") else line.get_label()
        points = np.asarray(line.get_xydata(), dtype=float)
        points = points[np.isfinite(points).all(axis=1)]
        if not points.size:
            found.append(f"{panel}{label}: nothing to measure")
            continue
        with np.errstate(all="ignore"):  # a logarithm of what has none is outside, too
            placed = axes.transAxes.inverted().transform(axes.transData.transform(points))
        inside = ((placed > -_EDGE) & (placed < 1 + _EDGE)).all(axis=1)
        if not inside.all():
            found.append(f"{panel}{label}: {np.sum(~inside)} of {inside.size} points")
    return found


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


def _series(results: Results, plot: Plot, points: list[int]) -> dict[str, Series]:
    """What every panel draws by, so that a colour means the same in all of them."""
    groups = _grouped(results, points, plot.by)
    return {
        name: Series(name or "runs", _colour(results, plot, members, index), index, len(groups))
        for index, (name, members) in enumerate(groups.items())
    }


def _panel(
    axes: Any, results: Results, plot: Plot, series: dict[str, Series], points: list[int],
    label: str,
) -> None:  # fmt: skip
    for name, members in _grouped(results, points, plot.by).items():
        draw = {"line": _line, "cdf": _cdf, "box": _boxes}[plot.kind]
        draw(axes, results, plot, members, series[name])
    axes.set_title(label, fontsize=9)
    axes.grid(color=style.GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    metric = results.entry.metric.get(plot.of)
    if plot.kind == "line" and metric is not None:
        unit = f" ({metric.unit})" if metric.unit else ""
        title = textwrap.fill((metric.title or plot.of) + unit, _LABEL_WIDTH)
        axes.set(xlabel=plot.x or "", ylabel=title)
    elif plot.kind == "cdf":
        axes.set(xlabel=_UNITS[plot.of], ylabel="share")
    else:
        axes.set(xlabel=plot.x or "", ylabel=_UNITS[plot.of])


def _line(axes: Any, results: Results, plot: Plot, members: list[int], series: Series) -> None:
    values = results.values(plot.of)
    estimates = results.estimates(plot.of)
    known = [point for point in members if np.isfinite(estimates[point])]
    at = dict(zip(known, _positions(axes, results, plot, known), strict=True))
    known.sort(key=lambda point: at[point])
    x = [at[point] for point in known]
    colour = series.colour
    axes.plot(x, estimates[known], "-o", color=colour, label=series.label, markersize=3,
              linewidth=1.2)  # fmt: skip
    low = [float(values[point].min()) for point in known]
    high = [float(values[point].max()) for point in known]
    if any(len(values[point]) > 1 for point in known):
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    models = [model for _, metric, model in results.beside if model and metric == plot.of]
    for (kind, metric, model), beside in results.beside.items():
        there = [(position, beside[point]) for position, point in zip(x, known, strict=True)
                 if point in beside]  # fmt: skip
        if metric != plot.of or not there or (model and series.count > _MAX_LINES_WITH_MODELS):
            continue
        where, what = zip(*there, strict=True)
        if model:
            line = _MODEL_LINES[models.index(model) % len(_MODEL_LINES)]
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


def _cdf(axes: Any, results: Results, plot: Plot, members: list[int], series: Series) -> None:
    quantiles = _quantiles(results, plot, members)
    if quantiles.size:
        axes.plot(quantiles, np.linspace(0, 1, quantiles.size), color=series.colour, linewidth=1.2,
                  label=series.label)  # fmt: skip


def _boxes(axes: Any, results: Results, plot: Plot, members: list[int], series: Series) -> None:
    order = list(dict.fromkeys(str(point.axes.get(plot.x or "")) for point in results.points))
    width = 0.8 / series.count
    line = {"color": series.colour, "linewidth": 0.9}
    named = False
    for label in order:
        mine = [p for p in members if str(results.points[p].axes.get(plot.x or "")) == label]
        quantiles = _quantiles(results, plot, mine)
        if not quantiles.size:
            continue
        low, q1, median, q3, high = np.interp([5, 25, 50, 75, 95], np.arange(101), quantiles)
        box = {"whislo": low, "q1": q1, "med": median, "q3": q3, "whishi": high}
        centre = order.index(label) + (series.position + 0.5) * width - 0.4
        drawn = axes.bxp(
            [box], positions=[centre], widths=0.8 * width, showfliers=False, manage_ticks=False,
            boxprops=line, medianprops=line, whiskerprops=line, capprops=line,
        )  # fmt: skip
        if not named:
            drawn["boxes"][0].set_label(series.label)
            named = True
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


def _legend(figure: Any, panels: Iterable[Any]) -> None:
    """One for all panels: no panel need show every series."""
    shown: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        for label, handle in zip(labels, handles, strict=True):
            shown.setdefault(label, handle)
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
