"""A chart as PNG or SVG, drawn by Matplotlib."""

from __future__ import annotations

import math
import secrets
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fullpipe.base.errors import UserError
from fullpipe.plots.sweep_chart import Chart, Panel
from fullpipe.report.style import NEUTRAL, cc_colour

_WIDTH_IN, _HEIGHT_IN = 4.6, 3.4
_COLUMNS = 3


def write_static(chart: Chart, path: Path) -> None:
    """Writes the chart by the file's name, whole or not at all. Raises UserError otherwise."""
    figure = figure_of(chart)
    partial = path.with_name(f".{secrets.token_hex(4)}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(partial, dpi=130)
        partial.replace(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)


def figure_of(chart: Chart) -> Figure:
    """The chart as a figure that belongs to no window."""
    columns = min(_COLUMNS, len(chart.panels))
    rows = math.ceil(len(chart.panels) / columns)
    figure = Figure(
        figsize=(_WIDTH_IN * columns + 1.4, _HEIGHT_IN * rows + 0.5), layout="constrained"
    )
    grid: Any = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axes in grid.flat[len(chart.panels) :]:
        axes.set_visible(False)
    scale = _scale(chart)
    for axes, panel in zip(grid.flat, chart.panels, strict=False):
        _draw(axes, chart, panel, scale)
    if scale is not None:
        figure.colorbar(
            ScalarMappable(Normalize(*scale), "viridis"), ax=grid, shrink=0.8,
            label=chart.title.partition(" by ")[0],
        )  # fmt: skip
    handles, labels = grid.flat[0].get_legend_handles_labels()
    if any(labels):
        figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=8)
    figure.suptitle(f"{chart.title}\n{chart.note}", fontsize=9)
    return figure


def _scale(chart: Chart) -> tuple[float, float] | None:
    """Least and largest mean of a heat map, the same for all panels."""
    heats = [panel.heat for panel in chart.panels if panel.heat is not None]
    if not heats:
        return None
    return (
        float(np.nanmin([np.nanmin(heat) for heat in heats])),
        float(np.nanmax([np.nanmax(heat) for heat in heats])),
    )


def _draw(axes: Any, chart: Chart, panel: Panel, scale: tuple[float, float] | None) -> None:
    axes.set_title(panel.title, fontsize=9)
    axes.set_xlabel(chart.x_title)
    axes.set_ylabel(chart.y_title)
    if chart.kind != "heat":
        axes.grid(color="#ececec")
    axes.set_axisbelow(True)
    if panel.heat is not None and scale is not None:
        axes.imshow(panel.heat, aspect="auto", origin="lower", vmin=scale[0], vmax=scale[1])
        axes.set_yticks(range(len(chart.y_labels)), chart.y_labels)
        for (line, column), value in np.ndenumerate(panel.heat):
            if panel.heat.size <= 150 and not np.isnan(value):
                dark = value < (scale[0] + scale[1]) / 2
                axes.text(column, line, f"{value:.3g}", ha="center", va="center", fontsize=7,
                          color="white" if dark else "black")  # fmt: skip
    for index, series in enumerate(panel.series):
        colour = cc_colour(series.name) if series.name else NEUTRAL
        if chart.kind == "cdf":
            axes.step(series.x, series.mean, where="post", color=colour, label=series.name)
        elif chart.kind == "pareto":
            axes.plot(series.x, series.mean, "o", color=colour, label=series.name, alpha=0.8)
        elif chart.kind == "box":
            _boxes(axes, panel, index, colour)
        else:
            marker = "o" if not chart.x_labels else "s"
            axes.plot(series.x, series.mean, marker=marker, ms=3.5, color=colour,
                      label=series.name, lw=1.4)  # fmt: skip
            axes.fill_between(series.x, series.low, series.high, color=colour, alpha=0.18, lw=0)
            axes.vlines(series.x, series.low, series.high, color=colour, lw=0.9)
    if panel.front is not None:
        axes.plot(panel.front[:, 0], panel.front[:, 1], "-", color=NEUTRAL, lw=1, zorder=0)
    if chart.x_labels:
        turned = 45 if sum(map(len, chart.x_labels)) > 40 else 0
        axes.set_xticks(range(len(chart.x_labels)), chart.x_labels, rotation=turned, fontsize=8)
    elif chart.log_x:
        axes.set_xscale("log")
    elif chart.kind != "heat":
        axes.xaxis.set_major_locator(MaxNLocator(5))


def _boxes(axes: Any, panel: Panel, index: int, colour: str) -> None:
    """Boxes of one series, beside those of the others at the same place."""
    series = panel.series[index]
    places = sorted({float(x) for one in panel.series for x in one.x})
    gaps = np.diff(places)
    step = float(gaps.min()) if gaps.size else 1.0
    width = 0.7 * step / len(panel.series)
    shift = (index - (len(panel.series) - 1) / 2) * width
    drawn = axes.boxplot(
        [list(run) for run in series.runs], positions=series.x + shift, widths=0.9 * width,
        manage_ticks=False, patch_artist=True, medianprops={"color": "black"},
        flierprops={"markersize": 3},
    )  # fmt: skip
    for box in drawn["boxes"]:
        box.set(facecolor=colour, alpha=0.6)
    axes.plot([], [], "s", color=colour, label=series.name)
