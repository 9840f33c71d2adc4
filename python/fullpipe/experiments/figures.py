"""Figures of an entry's results, as SVG: the same bytes for the same results.

Draws what `[[plot]]` asks for; must never judge or run anything.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fullpipe.congestion.registry import cc_sets
from fullpipe.experiments import over_time
from fullpipe.experiments.entry import DRAWN, Plot
from fullpipe.experiments.results import Results
from fullpipe.plots import style
from fullpipe.plots.matplotlib_renderer import points_outside, svg_document
from fullpipe.plots.model import BOX_QUANTILES, Box, Floats, Grid, Trace, box_of
from fullpipe.plots.model import Plot as Panel

_BESIDE = {"published": "x", "observed": "circle"}
#: Width of lines over x, in points of the page.
_WIDTH = 1.2 / 0.7
_MODEL_DASHES = ("dash", "dot", "dashdot")
#: A figure with more lines than this shows no models' lines.
_MAX_LINES_WITH_MODELS = 8
#: A longer label of the upright axis would be cut.
_LABEL_WIDTH = 38

#: Positions on an axis and what is written there.
Ticks = tuple[tuple[float, str], ...]


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
    return [figure for plot in results.entry.plot if (figure := _figure(results, plot))]


def _figure(results: Results, plot: Plot) -> Figure | None:
    wanted = [i for i in range(len(results.points)) if _drawable(results, plot, i)]
    panels = _grouped(results, wanted, plot.panel)
    if not panels:
        return None
    series = _series(results, plot, wanted)
    drawn = [_panel(results, plot, series, points, label) for label, points in panels.items()]
    grid = Grid("", drawn, share_x=False)
    lost: list[str] = []
    svg = svg_document(grid, lambda figure: lost.extend(points_outside(figure)))
    note = _note(plot, _numbers(results, plot) is None)
    return Figure(plot.title or _title(results, plot), svg, note, tuple(lost))


def _drawable(results: Results, plot: Plot, point: int) -> bool:
    """Whether a point has something to draw."""
    runs = results.runs[point]
    name = over_time.name_of(plot) if plot.kind == "time" else plot.of
    has_data = plot.kind == "line" or any(run.distributions.get(name) for run in runs)
    return bool(runs) and has_data


def _grouped(results: Results, points: Sequence[int], axes: Sequence[str]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for point in points:
        values = results.points[point].axes
        label = ", ".join(f"{name} {values[name]}" for name in axes)
        groups.setdefault(label, []).append(point)
    return groups


def _series(results: Results, plot: Plot, points: list[int]) -> dict[str, Series]:
    """The series of all panels, so that a colour means the same in each."""
    groups = _grouped(results, points, plot.by)
    return {
        name: Series(name or "runs", _colour(results, plot, members, index), index, len(groups))
        for index, (name, members) in enumerate(groups.items())
    }


def _panel(
    results: Results, plot: Plot, series: dict[str, Series], points: list[int], label: str
) -> Panel:
    traces, boxes = _drawn(results, plot, series, points)
    x_title, y_title, ticks, log_x = _axes(results, plot, boxes)
    return Panel(
        label,
        label,
        x_title=x_title,
        y_title=y_title,
        traces=traces,
        boxes=boxes,
        x_ticks=ticks,
        log_x=log_x,
        log_y=plot.log_y,
    )


def _drawn(
    results: Results, plot: Plot, series: dict[str, Series], points: list[int]
) -> tuple[list[Trace], list[Box]]:
    """What a panel shows of these points."""
    traces: list[Trace] = []
    boxes: list[Box] = []
    for name, members in _grouped(results, points, plot.by).items():
        if plot.of == "stream_goodput_mbps":
            boxes += _boxes_of_flows(results, members, series[name])
        elif plot.kind == "box":
            boxes += _boxes(results, plot, members, series[name])
        elif plot.kind == "line" and _numbers(results, plot) is None:
            boxes += _boxes_of_runs(results, plot, members, series[name])
            traces += _beside(results, plot, members, series[name])
        elif plot.kind == "time":
            legend = series[name]
            runs = [run for point in members for run in results.runs[point]]
            traces += over_time.traces(plot, runs, legend.label if plot.by else "", legend.colour)
        else:
            draw = {"line": _line, "cdf": _cdf}[plot.kind]
            traces += draw(results, plot, members, series[name])
    if plot.phases:
        of_panel = [run for point in points for run in results.runs[point]]
        traces += over_time.phases(plot, of_panel, traces)
    return traces, boxes


def _axes(results: Results, plot: Plot, boxes: Sequence[Box]) -> tuple[str, str, Ticks, float]:
    """Titles of a panel's axes, the ticks of x, and the base of its logarithm (0: linear)."""
    if plot.kind == "line":
        metric = results.entry.metric.get(plot.of)
        unit = f" ({metric.unit})" if metric and metric.unit else ""
        title = (metric.title if metric else "") or plot.of
        ticks, log_x = _x_axis(results, plot)
        return plot.x or "", textwrap.fill(title + unit, _LABEL_WIDTH), ticks, log_x
    y_title = DRAWN[plot.kind][plot.of]
    if plot.kind == "cdf":
        return y_title, "share", (), 10.0 if plot.log_x else 0.0
    if plot.kind == "time":
        return "time (s)", y_title, (), 0.0
    if plot.of == "stream_goodput_mbps":
        most = round(max((box.at or 0.0 for box in boxes), default=0.0))
        return "flow", y_title, tuple((float(flow), str(flow)) for flow in range(1, most + 1)), 0.0
    ticks = tuple((float(i), text) for i, text in enumerate(_texts(results, plot)))
    return plot.x or "", y_title, ticks, 0.0


def _line(results: Results, plot: Plot, members: list[int], series: Series) -> list[Trace]:
    values = results.values(plot.of)
    estimates = results.estimates(plot.of)
    measured = [point for point in members if np.isfinite(estimates[point])]
    at = dict(zip(measured, _positions(results, plot, measured), strict=True))
    measured.sort(key=lambda point: at[point])
    x = np.array([at[point] for point in measured])
    band = None
    if any(len(values[point]) > 1 for point in measured):
        low = np.array([float(values[point].min()) for point in measured])
        high = np.array([float(values[point].max()) for point in measured])
        band = low, high
    y = estimates[measured]
    line = Trace(
        series.label, series.colour, x, y, width=_WIDTH, mark="dot", joined=True, band=band
    )
    return [line, *_beside(results, plot, members, series)]


def _beside(results: Results, plot: Plot, members: list[int], series: Series) -> list[Trace]:
    """What was published, observed and predicted at the points of a series."""
    estimates = results.estimates(plot.of)
    measured = [point for point in members if np.isfinite(estimates[point])]
    at = dict(zip(measured, _positions(results, plot, measured), strict=True))
    if _numbers(results, plot) is None:
        at = {point: _box_at(position, series) for point, position in at.items()}
    traces = []
    models = [model for _, metric, model in results.beside if model and metric == plot.of]
    for (kind, metric, model), beside in results.beside.items():
        there = [(at[point], beside[point]) for point in measured if point in beside]
        if metric != plot.of or not there or (model and series.count > _MAX_LINES_WITH_MODELS):
            continue
        x, y = np.array(there).T
        if model and _numbers(results, plot) is None:
            traces.append(Trace(model, series.colour, x, y, mark="triangle"))
        elif model:
            dash = _MODEL_DASHES[models.index(model) % len(_MODEL_DASHES)]
            traces.append(Trace(model, series.colour, x, y, dash, width=1.1))
        else:
            traces.append(Trace(kind, series.colour, x, y, mark=_BESIDE[kind]))
    return traces


def _positions(results: Results, plot: Plot, points: list[int]) -> list[float]:
    """The x of the points: their number, or their place among the axis's texts."""
    numbers = _numbers(results, plot)
    if numbers is not None:
        return [numbers[point] for point in points]
    order = _texts(results, plot)
    texts = (str(results.points[point].axes.get(plot.x or "")) for point in points)
    return [float(order.index(text)) for text in texts]


def _x_axis(results: Results, plot: Plot) -> tuple[Ticks, float]:
    """The ticks of the x axis, and the base of its logarithm (0: linear)."""
    numbers = _numbers(results, plot)
    if numbers is None:
        return tuple((float(i), text) for i, text in enumerate(_texts(results, plot))), 0.0
    if not plot.log_x:
        return (), 0.0
    return tuple((number, f"{number:g}") for number in sorted(set(numbers))), 2.0


def _numbers(results: Results, plot: Plot) -> list[float] | None:
    """The x of every point if all are numbers."""
    everything = [point.axes.get(plot.x or "") for point in results.points]
    numbers = [float(value) for value in everything if isinstance(value, int | float)]
    return numbers if len(numbers) == len(everything) else None


def _texts(results: Results, plot: Plot) -> list[str]:
    """The values of the x axis as text, each once."""
    return list(dict.fromkeys(str(point.axes.get(plot.x or "")) for point in results.points))


def _cdf(results: Results, plot: Plot, members: list[int], series: Series) -> list[Trace]:
    quantiles = _quantiles(results, plot, members)
    if not quantiles.size:
        return []
    shares = np.linspace(0, 1, quantiles.size)
    return [Trace(series.label, series.colour, quantiles, shares, width=_WIDTH)]


def _box_at(position: float, series: Series) -> float:
    """The x of a series' box at a position of the axis."""
    return position + (series.position + 0.5) * 0.8 / series.count - 0.4


def _boxes_of_runs(results: Results, plot: Plot, members: list[int], series: Series) -> list[Box]:
    """A box of the runs' values at each position of an axis without order, such as algorithms: no
    line leads from one to the next."""
    values, positions = results.values(plot.of), _positions(results, plot, members)
    boxes = []
    for point, position in zip(members, positions, strict=True):
        finite = values[point][np.isfinite(values[point])]
        if finite.size:
            wanted = np.quantile(finite, (0, 0.25, 0.5, 0.75, 1))
            at, width = _box_at(position, series), 0.64 / series.count
            boxes.append(box_of(series.label, series.colour, wanted, at=at, width=width))
    return boxes


def _boxes(results: Results, plot: Plot, members: list[int], series: Series) -> list[Box]:
    width = 0.8 / series.count
    boxes = []
    for position, text in enumerate(_texts(results, plot)):
        selected = [p for p in members if str(results.points[p].axes.get(plot.x or "")) == text]
        quantiles = _quantiles(results, plot, selected)
        if quantiles.size:
            wanted = np.interp(100 * np.array(BOX_QUANTILES), np.arange(101), quantiles)
            if plot.whiskers == "1.5 IQR":
                wanted[0], wanted[-1] = _tukey(quantiles)
            at = _box_at(position, series)
            boxes.append(box_of(series.label, series.colour, wanted, at=at, width=0.8 * width))
    return boxes


def _boxes_of_flows(results: Results, members: list[int], series: Series) -> list[Box]:
    """A box for each flow of the run with seed 1 in the first of these points that has one."""
    runs = [run for point in members for run in results.runs[point]]
    rows = next((v for run in runs if (v := run.distributions.get("stream_goodput_mbps"))), [])
    width, boxes = 0.64 / series.count, []
    for number, quantiles in enumerate(np.asarray(rows).reshape(-1, 101), 1):
        if np.isfinite(quantiles).all():
            wanted = quantiles[[0, 25, 50, 75, 100]]
            wanted[0], wanted[-1] = _tukey(quantiles)
            at = _box_at(number, series)
            boxes.append(box_of(series.label, series.colour, wanted, at=at, width=width))
    return boxes


def _tukey(quantiles: Floats) -> tuple[float, float]:
    """The least and the largest percentile within 1.5 interquartile ranges of the box."""
    low, high = quantiles[25], quantiles[75]
    reach = 1.5 * (high - low)
    within = quantiles[(quantiles >= low - reach) & (quantiles <= high + reach)]
    return float(within.min()), float(within.max())


def _quantiles(results: Results, plot: Plot, members: list[int]) -> Floats:
    """Percentiles 0 to 100: of all flows' goodputs, or the means of the runs' percentiles."""
    percentiles = [
        run.distributions.get(plot.of, []) for point in members for run in results.runs[point]
    ]
    percentiles = [values for values in percentiles if values]
    if not percentiles:
        return np.empty(0)
    if plot.of == "goodput_mbps":
        pooled = np.concatenate([np.asarray(values) for values in percentiles])
        return np.asarray(np.quantile(pooled, np.linspace(0, 1, 101)))
    return np.asarray(np.mean(np.asarray(percentiles), axis=0))


def _colour(results: Results, plot: Plot, members: list[int], position: int) -> str:
    """A congestion control's own colour where lines stand for congestion controls."""
    if len(plot.by) == 1:
        value = str(results.points[members[0]].axes[plot.by[0]])
        if value in cc_sets():
            return style.cc_colour(value)
    return style.line_colour(position)


def _title(results: Results, plot: Plot) -> str:
    metric = results.entry.metric.get(plot.of)
    title = (metric.title or plot.of) if metric else DRAWN[plot.kind][plot.of]
    return title[:1].upper() + title[1:]


def _note(plot: Plot, has_no_order: bool) -> str:
    if plot.kind == "line" and has_no_order:
        return "boxes: quartiles of the runs, whiskers least and largest; x: published; o: observed"
    if plot.kind == "line":
        return "bands: least and largest run; x: published; o: observed; broken lines: models"
    if plot.kind == "time":
        runs = "runs one after another" if plot.consecutive else "the run with seed 1"
        if plot.quartiles:
            runs = "lines: median of the runs; bands: their quartiles"
        lines = f"; vertical lines: the first flow begins {' or '.join(plot.phases)}"
        return runs + (lines if plot.phases else "")
    if plot.of == "stream_goodput_mbps":
        return "windows of 0.2 s of the run with seed 1; whiskers: within 1.5 interquartile ranges"
    if plot.kind == "cdf":
        return "means of the runs' percentiles, after the warm-up"
    whiskers = {"5-95": "5th and 95th percentile", "1.5 IQR": "within 1.5 interquartile ranges"}
    return f"box: quartiles and median; whiskers: {whiskers[plot.whiskers]}; after the warm-up"
