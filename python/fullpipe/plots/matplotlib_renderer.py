"""Plots as static figures, drawn by Matplotlib: files for papers, and small SVGs inside pages.

The same plot gives the same bytes. Text of a plot may come from an untrusted recording; Matplotlib
escapes it. This module must not know a recording.
"""

from __future__ import annotations

import io
import itertools
import math
import re
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from markupsafe import Markup
from matplotlib.backend_bases import get_registered_canvas_class
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
)

from fullpipe.base.writing import atomic_file
from fullpipe.plots import style
from fullpipe.plots.look import Look, dressed
from fullpipe.plots.model import Grid, Plot, Trace, thinned_plot

_LINES = {"solid": "-", "dot": ":", "dash": "--", "dashdot": "-."}
_MARKS = {
    "x": "x",
    "triangle": "^",
    "circle": "o",
    "dash": "|",
    "dot": "o",
    "square": "s",
    "diamond": "D",
    "down": "v",
    "plus": "P",
    "star": "*",
    "cross": "X",
    "up": "^",
}
#: Marks that are drawn as outlines.
_OPEN = ("x", "triangle", "circle", "dash")
_STEPS = {"linear": "default", "before": "steps-pre", "after": "steps-post"}
_SETTINGS: Any = {
    "svg.hashsalt": "fullpipe",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.size": Look.font_pt,
    "font.family": "sans-serif",
}
#: Formats of a figure: for papers, for pages, for slides.
SUFFIXES = (".pdf", ".svg", ".png")
_WIDTH_IN = 7.5
#: Narrower figures have their legend below.
_NARROW_IN = 5.0
_DEFAULT = Look()
#: A longer legend beside a plot is set in columns.
_MAX_LEGEND_ROWS = 14
#: Entries in one line of a legend below a plot, at most.
_COLUMNS_BELOW = 4
#: Mean width of a character over the text's size; bold titles are larger. A line's sample and the
#: gap behind an entry of a legend are as wide as so many characters.
_CHARACTER, _TITLE_CHARACTER, _LEGEND_CHARACTER, _LEGEND_SAMPLE = 0.58, 0.83, 0.52, 6
#: Names of rows are wrapped to this share of a narrow figure.
_ROW_NAMES = 0.35
_PANEL_WIDTH_IN, _PANEL_HEIGHT_IN, _LEGEND_IN = 3.3, 2.7, 1.6
#: Narrower panels are stacked.
_LEAST_PANEL_IN = 1.5
#: Cells of heat maps that are narrower have no room for a number.
_NUMBER_IN = 0.45
#: Heat maps with more cells than this show no numbers.
_MAX_NUMBERS = 150
#: Points of a trace in a page: about one for each pixel of a line's width.
_POINTS_IN_PAGE = 360
_PIXELS = re.compile(r"(\d+\.\d)\d+")
_DRAWING = re.compile(r"\b(d|x|y|points|transform)=\"[^\"]*\"")
#: Matplotlib names every font that it knows; the page's browser chooses.
_FONT = re.compile(r"font-family: [^;\"]*;")


def write(plot: Plot | Grid, stem: Path, alarm: str = "", look: Look = _DEFAULT) -> list[Path]:
    """Writes STEM.pdf, STEM.svg and STEM.png, each whole or not at all; returns the paths. `alarm`
    is written above the plot in red. Raises UserError if a file cannot be written."""
    paths = [stem.with_name(f"{stem.name}{suffix}") for suffix in SUFFIXES]
    with mpl.rc_context({**_SETTINGS, "font.size": look.font_pt}):
        figure = figure_of(plot, alarm, look)
        for path in paths:
            _save(figure, path)
    return paths


def write_file(plot: Plot | Grid, path: Path, look: Look = _DEFAULT) -> None:
    """Writes one file, whole or not at all, in the format of its suffix. Raises UserError if it
    cannot be written."""
    with mpl.rc_context({**_SETTINGS, "font.size": look.font_pt}):
        _save(figure_of(plot, look=look), path)


def figure_of(plot: Plot | Grid, alarm: str = "", look: Look = _DEFAULT) -> Figure:
    """A figure that belongs to no window, with its legend. `alarm` is written above it in red."""
    plot = dressed(plot, look)
    if isinstance(plot, Grid):
        grid = _grid(plot, look)
        _alarm(grid, alarm[:150])
        return grid
    rows = len(plot.rows) or (0 if plot.upright else len(plot.boxes))
    height = max(1.2 + 0.3 * rows if rows else 2.8, 1.8)
    width = look.width_in or _WIDTH_IN
    entries = len(plot.traces) + len(plot.spans)
    if width < _NARROW_IN and not rows:
        height = 0.68 * width
    below = _is_below(look, width)
    if below and entries > 1:
        names = [trace.name for trace in plot.traces] + [spans.name for spans in plot.spans]
        columns = _columns_below(width, names, look.font_pt)
        height += 0.016 * look.font_pt * math.ceil(entries / columns)
    figure = Figure(figsize=(width, height), layout="constrained")
    if width < _NARROW_IN:
        plot = _wrapped(plot, width, look.font_pt)
    draw(figure.subplots(), plot, below, look)
    _alarm(figure, alarm[:150])
    untangle(figure)
    return figure


def _is_below(look: Look, width_in: float) -> bool:
    return look.legend == "below" or (look.legend == "auto" and width_in < _NARROW_IN)


def _columns_below(width_in: float, names: Iterable[str], font_pt: float) -> int:
    """How many columns of these names fit into a legend as wide as the figure."""
    longest = max(map(len, names), default=0) + _LEGEND_SAMPLE
    column_in = longest * _LEGEND_CHARACTER * font_pt / 72
    return max(1, min(_COLUMNS_BELOW, int(width_in / column_in)))


def _wrapped(plot: Plot, width_in: float, font_pt: float) -> Plot:
    """The plot with its title and the names of its rows broken to fit a narrow figure."""

    def wrapped(text: str, share: float, character: float) -> str:
        return textwrap.fill(text, max(8, int(share * width_in * 72 / (character * font_pt))))

    return replace(
        plot,
        title=wrapped(plot.title, 0.85, _TITLE_CHARACTER),
        rows=tuple(wrapped(row, _ROW_NAMES, _CHARACTER) for row in plot.rows),
        boxes=[
            box if plot.upright else replace(box, label=wrapped(box.label, _ROW_NAMES, _CHARACTER))
            for box in plot.boxes
        ],
    )


def svg(plot: Plot, alarm: str = "") -> Markup:
    """The plot as an SVG element without its title; `alarm` is written above it in red."""
    few = thinned_plot(plot, _POINTS_IN_PAGE)
    rows = len(plot.rows) or len(plot.boxes)
    height = max(1.0 + 0.3 * rows, 1.6) if rows else 2.4
    height += 0.16 * math.ceil((len(plot.traces) + len(plot.spans)) / 4)
    with mpl.rc_context({**_SETTINGS, "path.simplify_threshold": 0.5}):
        figure = Figure(figsize=(5.6, height), layout="constrained")
        axes: Any = figure.subplots()
        draw(axes, replace(few, title=""), legend_below=True)
        _alarm(figure, alarm[:90])
        for transparent in (figure, axes, *axes.child_axes):
            transparent.patch.set_facecolor("none")
        return Markup(_shorter(_svg_text(figure)))


def svg_document(grid: Grid, look: Callable[[Figure], None] = lambda _: None) -> str:
    """The grid as an SVG document, with as many points as its panels have pixels. `look` gets the
    finished figure, to inspect it."""
    panels = [thinned_plot(panel, _POINTS_IN_PAGE) for panel in grid.panels]
    with mpl.rc_context(_SETTINGS):
        figure = _grid(replace(grid, panels=panels))
        text = _svg_text(figure)
        look(figure)
    return _fewer_digits(text)


def draw(axes: Any, plot: Plot, legend_below: bool = False, look: Look = _DEFAULT) -> None:
    """Draws a plot with its legend into Matplotlib axes: beside them, or below in a narrow
    figure."""
    _draw(axes, plot, None)
    axes.set_title(_plain(plot.title), loc="left", fontweight="bold")
    if plot.zero and not (plot.log_y or plot.rows or (plot.boxes and not plot.upright)):
        _from_zero(axes)
    if plot.right is not None:
        title, factor = plot.right
        right = axes.secondary_yaxis(
            "right", functions=(lambda y: y * factor, lambda y: y / factor)
        )
        right.set_ylabel(_plain(title))
    if look.legend != "none":
        _legend(axes, plot, legend_below, look)


def untangle(figure: Figure) -> None:
    """Turns tick labels of an x axis that overlap, and leaves out some of those that still do."""
    figure.draw_without_rendering()
    axes = [panel for panel in figure.axes if panel.get_visible()]
    for axis in [axis for panel in axes for axis in (panel.xaxis, panel.yaxis)]:
        if not _overlap(axis):
            continue
        if isinstance(axis.get_major_locator(), FixedLocator):  # values by their order
            if axis.axis_name == "x":
                axis.set_tick_params(rotation=45)
            _fewer(figure, axis)
        else:
            axis.set_major_locator(_with_fewer(axis))
            figure.draw_without_rendering()


def overlapping(figure: Figure) -> list[str]:
    """The titles of axes whose tick labels overlap, once the figure is drawn."""
    return [
        axis.get_label_text() or axes.get_title()
        for axes in figure.axes
        if axes.get_visible()
        for axis in (axes.xaxis, axes.yaxis)
        if _overlap(axis)
    ]


def _overlap(axis: Any) -> bool:
    """Whether two labels of ticks in view touch; of turned ones, whether their lines are too
    close."""
    labels = _visible_labels(axis)
    if len(labels) < 2:
        return False
    turned = [label.get_rotation() for label in labels]
    boxes = [label.get_window_extent() for label in labels]
    if axis.axis_name == "x":
        if any(turned):
            least = 1.1 * labels[0].get_fontsize() / 72 * axis.figure.dpi * math.sqrt(2)
            ends = sorted(box.x1 for box in boxes)
            return any(b - a < least for a, b in itertools.pairwise(ends))
        spans = sorted((box.x0, box.x1) for box in boxes)
    else:
        spans = sorted((box.y0, box.y1) for box in boxes)
    return any(after[0] < before[1] for before, after in itertools.pairwise(spans))


def _visible_labels(axis: Any) -> list[Any]:
    low, high = sorted(axis.get_view_interval())
    return [
        tick.label1
        for tick in axis.get_major_ticks()
        if tick.label1.get_visible()
        and tick.label1.get_text()
        and low - 1e-9 <= tick.get_loc() <= high + 1e-9
    ]


def _fewer(figure: Figure, axis: Any) -> None:
    """Every second label, every third, ... until none overlaps."""
    positions = list(axis.get_majorticklocs())
    texts = [label.get_text() for label in axis.get_ticklabels()]
    for step in range(1, len(positions) + 1):
        axis.set_ticks(positions[::step], labels=texts[::step])
        figure.draw_without_rendering()
        if not _overlap(axis):
            return


def _with_fewer(axis: Any) -> Any:
    """A locator of numbers with fewer ticks."""
    if axis.get_scale() == "log":
        return LogLocator(subs=(1,), numticks=5)
    return MaxNLocator(3, steps=[1, 2, 5, 10])


def _from_zero(axes: Any) -> None:
    """Lets the y axis begin at 0. A narrow range far from 0 has no room above its marks."""
    axes.set_ylim(0, max(axes.get_ylim()[1], 1.05 * axes.dataLim.y1) or 1.0)


def points_outside(figure: Figure) -> list[str]:
    """Which lines, markers and boxes of a figure have points that their axes do not show."""
    return [text for axes in figure.axes if axes.get_visible() for text in _outside(axes)]


def _grid(grid: Grid, look: Look = _DEFAULT) -> Figure:
    columns = grid.columns
    if look.width_in:
        columns = max(1, min(columns, int(look.width_in / _LEAST_PANEL_IN)))
    rows = math.ceil(len(grid.panels) / columns)
    width = 7.6 if columns == 1 else _PANEL_WIDTH_IN * columns + _LEGEND_IN
    height = _PANEL_HEIGHT_IN * rows + (0.6 if grid.title else 0.3)
    if look.width_in:
        # Panels keep their shape until the title of their y axis no longer fits.
        shrunk = min(1.0, look.width_in / width)
        longest = max(len(panel.y_title) for panel in grid.panels)
        least = 1.3 + longest * _CHARACTER * look.font_pt / 72
        height = max(shrunk * _PANEL_HEIGHT_IN, least) * rows + (0.6 if grid.title else 0.3)
        width = look.width_in
    below = _is_below(look, width)
    figure = Figure(figsize=(width, height), layout="constrained")
    every: Any = figure.subplots(
        rows, columns, squeeze=False, sharex=grid.share_x, sharey=grid.share_y
    )
    for axes, panel in zip(every.flat, grid.panels, strict=False):
        _draw(axes, panel, grid.heat_range)
        letters = max(8, int(0.8 * width / columns * 72 / (_CHARACTER * look.font_pt)))
        axes.set_title(_plain(textwrap.fill(panel.title, letters)), fontsize=look.font_pt)
        if panel.zero and not (grid.share_y or panel.log_y or panel.rows or panel.heat):
            _from_zero(axes)
    for unused in every.flat[len(grid.panels) :]:
        unused.set_visible(False)
    for inner in every[:, 1:].flat:
        inner.set_ylabel("")
    low, high = every.flat[0].get_ylim()
    if grid.share_y and all(panel.zero and panel.heat is None for panel in grid.panels) and low > 0:
        # A limit ends the scaling of the shared axis, so it comes after all panels.
        every.flat[0].set_ylim(0.0, 1.05 * high)
    if grid.heat_range is not None:
        heat = next(panel.heat for panel in grid.panels if panel.heat is not None)
        colours = _colour_map(grid.heat_range, grid.heat_middle)
        scale = ScalarMappable(Normalize(*grid.heat_range), colours)
        figure.colorbar(scale, ax=every, shrink=0.8, label=_plain(heat.title))
    if look.legend != "none":
        _common_legend(figure, every.flat[: len(grid.panels)], below, look)
    if grid.title:
        title = f"{grid.title}\n{grid.note}" if grid.note else grid.title
        letters = max(20, int(width * 72 / (_CHARACTER * look.font_pt)))
        lines = [textwrap.fill(line, letters) for line in title.split("\n")]
        figure.suptitle(_plain("\n".join(lines)), fontsize=look.font_pt)
    untangle(figure)
    return figure


def _draw(axes: Any, plot: Plot, heat_range: tuple[float, float] | None) -> None:
    if plot.log_x:
        axes.set_xscale("log", base=plot.log_x)
    if plot.log_y:
        axes.set_yscale("log")
    if plot.warmup_s:
        axes.axvspan(0, plot.warmup_s, color=style.WARMUP, linewidth=0, zorder=0)
    for spans in plot.spans:
        axes.barh(
            spans.rows,
            spans.ends - spans.starts,
            left=spans.starts,
            height=0.72,
            color=spans.colour,
            label=_plain(spans.name),
        )
    if plot.heat is not None:
        _heat(axes, plot, heat_range)
    for trace in plot.traces:
        _line(axes, trace)
    _boxes(axes, plot)
    for x, y, text in plot.labels:
        axes.annotate(_plain(text), (x, y), textcoords="offset points", xytext=(6, 5), fontsize=8)
    axes.set(xlabel=_plain(plot.x_title), ylabel=_plain(plot.y_title))
    if plot.heat is None:
        axes.grid(color=style.GRID, linewidth=0.6)
        axes.set_axisbelow(True)
    if plot.boxes and not plot.upright:
        axes.set_yticks(range(len(plot.boxes)), [_plain(box.label) for box in plot.boxes])
        axes.set_ylim(len(plot.boxes) - 0.5, -0.5)
    elif plot.rows:
        axes.set_yticks(range(len(plot.rows)), [_plain(row) for row in plot.rows])
        axes.set_ylim(len(plot.rows) - 0.5, -0.5)
        axes.set_xlim(left=0)
    _x_axis(axes, plot)
    if plot.log_x == 10 and not plot.x_ticks:
        _decades(axes.xaxis)
    if plot.log_y:
        _decades(axes.yaxis)


def _decades(axis: Any) -> None:
    """Plain numbers at 1, 2 and 5 of each decade, of many decades only at 1; Matplotlib's own are
    powers of ten, of which a narrow range has one or none."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high <= 200 * low else (1,), numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _x_axis(axes: Any, plot: Plot) -> None:
    ticks = [tick for tick in plot.x_ticks if tick[0] > 0 or not plot.log_x]
    if ticks:
        positions, texts = zip(*ticks, strict=True)
        axes.set_xticks(positions, [_plain(text) for text in texts], fontsize=7)
        axes.minorticks_off()
    elif not (plot.log_x or plot.heat or plot.over_time or plot.boxes):
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))


def _line(axes: Any, trace: Trace) -> None:
    look: dict[str, Any] = {"color": trace.colour, "label": _plain(trace.name)}
    if trace.mark:
        look |= {"marker": _MARKS[trace.mark], "markersize": 3 if trace.joined else 4}
        look |= {"fillstyle": "none" if trace.mark in _OPEN else "full"}
    if trace.mark and not trace.joined:
        axes.plot(trace.x, trace.y, linestyle="none", alpha=trace.opacity, **look)
    else:
        axes.plot(
            trace.x,
            trace.y,
            linestyle=_LINES[trace.dash],
            linewidth=0.7 * trace.width,
            alpha=trace.opacity,
            drawstyle=_STEPS[trace.shape],
            **look,
        )
    if trace.band is not None and not (trace.mark and not trace.joined):
        low, high = trace.band
        step = {"before": "pre", "after": "post"}.get(trace.shape)
        axes.fill_between(
            trace.x, low, high, color=trace.colour, alpha=0.15, linewidth=0, step=step
        )
    if trace.band is not None and trace.mark:
        low, high = trace.band
        shown = trace.x > 0 if axes.get_xscale() == "log" else np.full(trace.x.shape, True)
        axes.vlines(trace.x[shown], low[shown], high[shown], color=trace.colour, linewidth=0.6)


def _boxes(axes: Any, plot: Plot) -> None:
    named: set[str] = set()
    for position, box in enumerate(plot.boxes):
        values = {
            "whislo": box.low,
            "q1": box.q1,
            "med": box.median,
            "q3": box.q3,
            "whishi": box.high,
        }
        line = {"color": box.colour, "linewidth": 0.9}
        drawn = axes.bxp(
            [values],
            positions=[position if box.at is None else box.at],
            widths=box.width,
            showfliers=False,
            manage_ticks=box.at is None,
            boxprops=line,
            medianprops=line,
            whiskerprops=line,
            capprops=line,
            orientation="horizontal" if box.at is None else "vertical",
        )
        spread = 0.25 * (np.arange(box.points.size) % 5 / 5 - 0.4)
        if box.at is None:
            points = (box.points, position + spread)
        else:
            points = (box.at + spread * box.width, box.points)
            if box.label not in named:
                drawn["boxes"][0].set_label(_plain(box.label))
                named.add(box.label)
        axes.plot(*points, ".", color=box.colour, alpha=0.5, markersize=4)


def _colour_map(limits: tuple[float, float], middle: float | None) -> Any:
    if middle is None:
        return "viridis"
    return LinearSegmentedColormap.from_list("around", style.scale_around(*limits, middle))


def _heat(axes: Any, plot: Plot, heat_range: tuple[float, float] | None) -> None:
    heat = plot.heat
    assert heat is not None
    low, high = heat_range or Grid("", [plot]).heat_range or (0.0, 1.0)
    colours = _colour_map((low, high), heat.middle)
    axes.imshow(heat.values, aspect="auto", origin="lower", vmin=low, vmax=high, cmap=colours)
    axes.set_xticks(range(len(heat.x_labels)), [_plain(x) for x in heat.x_labels], fontsize=8)
    axes.set_yticks(range(len(heat.y_labels)), [_plain(y) for y in heat.y_labels])
    for line, column in heat.crossed:
        axes.plot(column, line, "x", color="#c0392b", markersize=9)
    width_in = axes.figure.get_figwidth() / axes.get_gridspec().ncols
    if heat.values.size > _MAX_NUMBERS or width_in / len(heat.x_labels) < _NUMBER_IN:
        return
    for (line, column), value in np.ndenumerate(heat.values):
        if not np.isnan(value):
            axes.text(
                column,
                line,
                f"{value:.3g}",
                ha="center",
                va="center",
                fontsize=7,
                color="white" if _is_dark(value, low, high, heat.middle) else "black",
            )


def _is_dark(value: float, low: float, high: float, middle: float | None) -> bool:
    """Whether the colour of a value in a heat map is dark."""
    if middle is None:
        return value < (low + high) / 2
    return abs(value - middle) > 0.3 * (high - low)


def _legend(axes: Any, plot: Plot, below: bool, look: Look) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if not labels:
        return
    if below:
        axes.figure.legend(
            fontsize="small",
            frameon=False,
            loc="outside lower left",
            ncols=_columns_below(axes.figure.get_figwidth(), labels, look.font_pt),
            borderaxespad=0.0,
        )
    else:
        axes.legend(
            handles,
            labels,
            fontsize="small",
            frameon=False,
            loc="upper left",
            bbox_to_anchor=(1.12 if plot.right else 1.01, 1.0),
            ncols=1 + (len(labels) - 1) // _MAX_LEGEND_ROWS,
            borderaxespad=0.0,
        )


def _common_legend(figure: Figure, panels: Iterable[Any], below: bool, look: Look) -> None:
    """One legend for all panels: not every panel needs to show every trace."""
    shown: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        for label, handle in zip(labels, handles, strict=True):
            shown.setdefault(label, handle)
    shown.pop("", None)
    if len(shown) > 1:
        wide = _columns_below(figure.get_figwidth(), shown, look.font_pt)
        columns = wide if below else 1 + (len(shown) - 1) // 24
        figure.legend(
            list(shown.values()),
            list(shown),
            fontsize="small",
            frameon=False,
            ncols=columns,
            loc="outside lower left" if below else "outside right upper",
        )


def _alarm(figure: Figure, text: str) -> None:
    if text:
        figure.suptitle(_plain(text), color=style.ALARM, fontsize=8, fontweight="bold")


#: How far beyond the axes a point may be, as a share of them, by rounding alone.
_EDGE = 1e-6


def _outside(axes: Any) -> list[str]:
    outside = []
    panel = f"panel {axes.get_title()}: " if axes.get_title() else ""
    for line in axes.lines:
        label = "a box" if line.get_label().startswith("_") else line.get_label()
        points = np.asarray(line.get_xydata(), dtype=float)
        if not points.size and label == "a box":
            continue  # a box without single points
        points = points[np.isfinite(points).all(axis=1)]
        if not points.size:
            outside.append(f"{panel}{label}: nothing to measure")
            continue
        with np.errstate(all="ignore"):  # the logarithm of 0 is outside, too
            placed = axes.transAxes.inverted().transform(axes.transData.transform(points))
        inside = ((placed > -_EDGE) & (placed < 1 + _EDGE)).all(axis=1)
        if not inside.all():
            outside.append(f"{panel}{label}: {np.sum(~inside)} of {inside.size} points")
    return outside


def _save(figure: Figure, path: Path) -> None:
    figure.set_dpi(150)
    with atomic_file(path) as partial:
        _print(figure, path.suffix[1:], partial)


def _svg_text(figure: Figure) -> str:
    text = io.StringIO()
    _print(figure, "svg", text)
    return text.getvalue()


def _print(figure: Figure, suffix: str, out: Path | io.StringIO) -> None:
    """Draws the figure once. savefig() draws it twice, the first time to lay it out, which each
    drawing of a constrained layout does itself."""
    canvas = get_registered_canvas_class(suffix)(figure)
    getattr(canvas, f"print_{suffix}")(out, metadata=_undated(f".{suffix}"))


def _undated(suffix: str) -> dict[str, Any]:
    return {
        ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
        ".svg": {"Date": None, "Creator": None},
        ".png": {"Software": None},
    }[suffix]


def _shorter(document: str) -> str:
    """The svg element alone, exact to a tenth of a pixel, without metadata and font lists."""
    body = document[document.index("<svg") :]
    body = _fewer_digits(re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL))
    # The page decides how wide it is.
    return re.sub(r'<svg([^>]*?) width="[^"]*"', r"<svg\1", body, count=1)


def _fewer_digits(svg: str) -> str:
    """The same drawing, exact to a tenth of a pixel, without comments, indents and font lists."""
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = _DRAWING.sub(lambda match: _PIXELS.sub(r"\1", match[0]), svg)
    svg = re.sub(r"\s*\n\s*", "\n", svg)
    return _FONT.sub("font-family:sans-serif;", svg)


def _plain(text: str) -> str:
    """Matplotlib reads mathematics between dollar signs: it gets none."""
    return text.replace("$", r"\$")
