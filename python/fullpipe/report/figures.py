"""Static figures for papers: PNG and SVG, the same bytes for the same recordings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from fullpipe.base.errors import UserError
from fullpipe.base.writing import write_figure
from fullpipe.recording.recording import Recording
from fullpipe.report import style
from fullpipe.report.distributions import box_plots, cdf_plots
from fullpipe.report.plots import Plot, Trace
from fullpipe.report.predictions import compare
from fullpipe.report.runs import grouped, read_run
from fullpipe.report.timeline import time_plots

_LINES = {"solid": "-", "dot": ":", "dash": "--", "dashdot": "-."}
_MARKS = {"x": "x", "triangle": "^", "circle": "o", "dash": "|"}
_STEPS = {"linear": "default", "before": "steps-pre", "after": "steps-post"}
#: Legends of more entries than this stand beside the plot, in columns they would hide it.
_MAX_LEGEND_ROWS = 14
#: Entries of a legend below the plot in one line.
_COLUMNS_BELOW = 4


def write_figures(recordings: Sequence[Recording], folder: Path) -> list[Path]:
    """Writes PNG and SVG of the first run of every group over time, of all runs' distributions and
    of the models' predictions; returns the paths.

    Raises UserError where there is nothing to draw or the folder cannot be written."""
    if not recordings:
        raise UserError("figures: no recordings given")
    groups = grouped([read_run(recording) for recording in recordings])
    drawn: list[tuple[str, Plot, str]] = []
    for index, group in enumerate(groups):
        prefix = f"run{index + 1}_" if len(groups) > 1 else ""
        alarm = "; ".join(group.runs[0].warnings)
        drawn += [(prefix + plot.key, plot, alarm) for plot in time_plots(group.runs[0])]
        predicted = compare(group)
        if predicted is not None:
            drawn.append((prefix + predicted.plot.key, predicted.plot, group.alarm))
    alarm = "; ".join(group.alarm for group in groups if group.alarm)
    drawn += [(plot.key, plot, alarm) for plot in [*cdf_plots(groups), *box_plots(groups)]]
    mpl.use("Agg")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [path for key, plot, alarm in drawn for path in _write(plot, folder / key, alarm)]
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror}") from None


def draw(axes: Any, plot: Plot, legend_below: bool = False) -> None:
    """Draws a plot into Matplotlib axes, its legend included: beside, or below where the figure is
    narrow."""
    for spans in plot.spans:
        axes.barh(
            spans.rows, spans.ends - spans.starts, left=spans.starts, height=0.72,
            color=spans.colour, label=_plain(spans.name),
        )  # fmt: skip
    for trace in plot.traces:
        _line(axes, trace)
    for position, box in enumerate(plot.boxes):
        _box(axes, position, plot)
        scatter = position + 0.25 * (np.arange(box.points.size) % 5 / 5 - 0.4)
        axes.plot(box.points, scatter, ".", color=box.colour, alpha=0.5, markersize=4)
    axes.set_title(_plain(plot.title), loc="left", fontweight="bold")
    axes.set(xlabel=_plain(plot.x_title), ylabel=_plain(plot.y_title))
    axes.grid(color=style.GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    if plot.boxes:
        axes.set_yticks(range(len(plot.boxes)), [_plain(box.label) for box in plot.boxes])
        axes.set_ylim(len(plot.boxes) - 0.5, -0.5)
    elif plot.rows:
        axes.set_yticks(range(len(plot.rows)), [_plain(row) for row in plot.rows])
        axes.set_ylim(len(plot.rows) - 0.5, -0.5)
        axes.set_xlim(left=0)
    else:
        axes.set_ylim(bottom=0)
    if plot.right is not None:
        title, factor = plot.right
        right = axes.secondary_yaxis(
            "right", functions=(lambda y: y * factor, lambda y: y / factor)
        )
        right.set_ylabel(_plain(title))
    _legend(axes, plot, legend_below)


def _write(plot: Plot, stem: Path, alarm: str) -> list[Path]:
    import matplotlib.pyplot as plt  # only after the backend is chosen

    settings: Any = {"svg.hashsalt": "fullpipe", "svg.fonttype": "none", "font.size": 9}
    with mpl.rc_context(settings):
        rows = len(plot.rows) or len(plot.boxes)
        height = 1.2 + 0.3 * rows if rows else 2.8
        figure, axes = plt.subplots(figsize=(7.5, max(height, 1.8)), layout="constrained")
        draw(axes, plot)
        if alarm:
            figure.suptitle(_plain(alarm[:150]), color=style.ALARM, fontsize=8, fontweight="bold")
        paths = write_figure(figure, stem)
        plt.close(figure)
    return paths


def _line(axes: Any, trace: Trace) -> None:
    name = _plain(trace.name)
    if trace.mark:
        axes.plot(
            trace.x, trace.y, linestyle="none", marker=_MARKS[trace.mark], markersize=4,
            color=trace.colour, label=name, fillstyle="none",
        )  # fmt: skip
    else:
        axes.plot(
            trace.x, trace.y, _LINES[trace.dash], color=trace.colour, label=name,
            linewidth=0.7 * trace.width, alpha=trace.opacity, drawstyle=_STEPS[trace.shape],
        )  # fmt: skip


def _box(axes: Any, position: int, plot: Plot) -> None:
    box = plot.boxes[position]
    values = {"whislo": box.low, "q1": box.q1, "med": box.median, "q3": box.q3, "whishi": box.high}
    line = {"color": box.colour}
    axes.bxp(
        [values], positions=[position], widths=0.5, showfliers=False, boxprops=line,
        medianprops=line, whiskerprops=line, capprops=line, orientation="horizontal",
    )  # fmt: skip


def _legend(axes: Any, plot: Plot, below: bool) -> None:
    count = len(plot.traces) + len(plot.spans)
    if count and below:
        axes.figure.legend(
            fontsize=7, frameon=False, loc="outside lower left",
            ncols=_COLUMNS_BELOW, borderaxespad=0.0,
        )  # fmt: skip
    elif count:
        axes.legend(
            fontsize=7, frameon=False, loc="upper left",
            bbox_to_anchor=(1.12 if plot.right else 1.01, 1.0),
            ncols=1 + (count - 1) // _MAX_LEGEND_ROWS, borderaxespad=0.0,
        )  # fmt: skip


def _plain(text: str) -> str:
    """Matplotlib reads mathematics between dollar signs: it gets none."""
    return text.replace("$", r"\$")
