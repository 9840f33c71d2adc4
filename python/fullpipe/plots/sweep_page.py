"""A chart as a page of its own, drawn by Plotly; nothing is loaded from elsewhere."""

from __future__ import annotations

import html
import math
import secrets
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fullpipe.base.errors import UserError
from fullpipe.plots.sweep_chart import Chart, Panel, Series
from fullpipe.report.style import GRID, NEUTRAL, cc_colour

_COLUMNS = 3
_HEIGHT_PX = 340


def figure_of(chart: Chart) -> go.Figure:
    """The chart as a Plotly figure; text of the store is escaped, Plotly reads a little HTML."""
    columns = min(_COLUMNS, len(chart.panels))
    rows = math.ceil(len(chart.panels) / columns)
    figure = make_subplots(
        rows, columns, shared_xaxes=True, shared_yaxes=True,
        subplot_titles=[html.escape(panel.title) for panel in chart.panels],
    )  # fmt: skip
    for index, panel in enumerate(chart.panels):
        place = {"row": index // columns + 1, "col": index % columns + 1}
        _add(figure, chart, panel, place, index == 0)
    figure.update_xaxes(gridcolor=GRID, zeroline=False)
    figure.update_yaxes(gridcolor=GRID, zeroline=False)
    if chart.x_labels and chart.kind != "heat":
        figure.update_xaxes(
            tickvals=list(range(len(chart.x_labels))),
            ticktext=[html.escape(x) for x in chart.x_labels],
        )
    if chart.log_x:
        figure.update_xaxes(type="log")
    for column in range(columns):
        figure.update_xaxes(title_text=html.escape(chart.x_title), row=rows, col=column + 1)
    for row in range(rows):
        figure.update_yaxes(title_text=html.escape(chart.y_title), row=row + 1, col=1)
    title = f"<b>{html.escape(chart.title)}</b><br><sup>{html.escape(chart.note)}</sup>"
    figure.update_layout(
        title={"text": title},
        height=_HEIGHT_PX * rows + 120, plot_bgcolor="white",
        font={"family": "system-ui, sans-serif", "size": 12}, boxmode="group",
    )  # fmt: skip
    return figure


def write_page(chart: Chart, path: Path) -> None:
    """Writes the page, whole or not at all. Raises UserError where it cannot be written."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        config = {"displaylogo": False, "responsive": True}
        figure_of(chart).write_html(partial, include_plotlyjs=True, config=config)
        partial.replace(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)


def _add(figure: Any, chart: Chart, panel: Panel, place: dict[str, int], first: bool) -> None:
    if panel.heat is not None:
        figure.add_heatmap(
            z=panel.heat, x=[html.escape(x) for x in chart.x_labels],
            y=[html.escape(y) for y in chart.y_labels], coloraxis="coloraxis", **place,
        )  # fmt: skip
        figure.update_layout(coloraxis={"colorscale": "Viridis"})
    for series in panel.series:
        name = html.escape(series.name)
        colour = cc_colour(series.name) if series.name else NEUTRAL
        common = {"name": name, "legendgroup": name, "showlegend": first and bool(name), **place}
        if chart.kind == "box":
            at = [x for x, run in zip(series.x, series.runs, strict=True) for _ in run]
            values = [value for run in series.runs for value in run]
            figure.add_box(x=at, y=values, marker_color=colour, boxpoints="all", **common)
        elif chart.kind == "pareto":
            figure.add_scatter(
                x=series.x, y=series.mean, mode="markers", marker_color=colour, **common
            )
        else:
            line = {"color": colour, "shape": "hv" if chart.kind == "cdf" else "linear"}
            mode = "lines" if chart.kind == "cdf" else "lines+markers"
            figure.add_scatter(
                x=series.x, y=series.mean, mode=mode, line=line, error_y=_errors(chart, series),
                **common,
            )  # fmt: skip
    if panel.front is not None:
        figure.add_scatter(
            x=panel.front[:, 0], y=panel.front[:, 1], mode="lines", line={"color": NEUTRAL},
            name="front", legendgroup="front", showlegend=first, **place,
        )  # fmt: skip


def _errors(chart: Chart, series: Series) -> dict[str, Any] | None:
    if chart.kind == "cdf":
        return None
    return {"type": "data", "array": series.high - series.mean, "thickness": 1, "width": 2}
