"""A plot as a piece of an HTML page, drawn by Plotly; its title is the page's, so that Plotly's
buttons cover nothing.

Knows plots, not recordings. Text of a plot may come from a foreign recording: Plotly reads a little
HTML in names and titles, so it gets none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from markupsafe import Markup

from fullpipe.report import style
from fullpipe.report.plots import Plot, Spans, Trace

_SYMBOLS = {"x": "x-thin", "triangle": "triangle-up", "circle": "circle-open", "dash": "line-ns"}
_SHAPES = {"linear": "linear", "before": "vh", "after": "hv"}
_CONFIG = {"displaylogo": False, "responsive": True}
_ROW_PX, _HEIGHT_PX, _LEGEND_PX = 34, 330, 20
#: A legend of more entries than this scrolls.
_MAX_LEGEND = 24
#: Seen on white and on black.
_GRID = "rgba(128,128,128,0.25)"
#: Half the height of a span in its row.
_SPAN = 0.36


def html(plot: Plot, identifier: str, alarm: str = "") -> Markup:
    """The plot as an HTML fragment; `alarm` is written across its top in red."""
    drawn = figure_of(plot, alarm)
    return Markup(
        drawn.to_html(full_html=False, include_plotlyjs=False, div_id=identifier, config=_CONFIG)
    )


def figure_of(plot: Plot, alarm: str = "") -> go.Figure:
    """The plot as a figure of Plotly."""
    figure = go.Figure(layout=_layout(plot, alarm))
    for box in plot.boxes:
        points = {"x": [box.points.tolist()], "boxpoints": "all"} if box.points.size else {}
        figure.add_box(
            y=[_plain(box.label)], q1=[box.q1], median=[box.median], q3=[box.q3],
            lowerfence=[box.low], upperfence=[box.high], name=_plain(box.label), orientation="h",
            jitter=0.4, pointpos=0, marker={"color": box.colour, "size": 5, "opacity": 0.6},
            line={"color": box.colour}, showlegend=False, **points,
        )  # fmt: skip
    for spans in plot.spans:
        figure.add_scatter(
            **_outline(spans), fill="toself", fillcolor=spans.colour, mode="lines",
            line={"width": 0}, name=_plain(spans.name), hoveron="fills", text=_plain(spans.name),
        )  # fmt: skip
    for trace in plot.traces:
        _add(figure, trace)
    _scale(figure, plot)
    return figure


def _layout(plot: Plot, alarm: str) -> dict[str, Any]:
    axis = {"gridcolor": _GRID, "zerolinecolor": _GRID, "linecolor": "#888"}
    rows = len(plot.rows) or 1.4 * len(plot.boxes)
    height = 130 + _ROW_PX * rows if rows else _HEIGHT_PX
    entries = len(plot.traces) + len(plot.spans)
    layout: dict[str, Any] = {
        "xaxis": {**axis, "title": {"text": _plain(plot.x_title)}},
        "yaxis": {**axis, "title": {"text": _plain(plot.y_title)}, "rangemode": "tozero"},
        "height": max(height, 100 + _LEGEND_PX * min(entries, _MAX_LEGEND)),
        # The same margins for all, so that axes of time lie below one another.
        "margin": {"l": 70, "r": 240, "t": 34, "b": 54, "autoexpand": not plot.over_time},
        # The page's own colours show through, whatever they are.
        "plot_bgcolor": "rgba(0,0,0,0)",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "modebar": {"bgcolor": "rgba(0,0,0,0)"},
        "font": {"family": "system-ui, sans-serif", "color": "#222", "size": 12},
        "hoverlabel": {"namelength": -1},
        "showlegend": not plot.boxes,
    }
    if alarm:
        layout["annotations"] = [{
            "text": f"<b>{_plain(alarm)}</b>", "xref": "paper", "yref": "paper", "x": 0.5, "y": 1.0,
            "yanchor": "bottom", "showarrow": False, "font": {"color": style.ALARM, "size": 12},
        }]  # fmt: skip
    return layout


def _add(figure: go.Figure, trace: Trace) -> None:
    if trace.mark:
        marker = {"color": trace.colour, "symbol": _SYMBOLS[trace.mark], "size": 7,
                  "line": {"width": 1.5, "color": trace.colour}}  # fmt: skip
        drawn = {"mode": "markers", "marker": marker}
    else:
        line = {"color": trace.colour, "dash": trace.dash, "width": trace.width,
                "shape": _SHAPES[trace.shape]}  # fmt: skip
        drawn = {"mode": "lines", "line": line}
    figure.add_scatter(
        x=trace.x, y=trace.y, name=_plain(trace.name), opacity=trace.opacity, **drawn
    )


def _scale(figure: go.Figure, plot: Plot) -> None:
    """Rows from the top down; a second unit on the right, which only holds while the vertical
    axis stays as it is."""
    if plot.over_time:
        ends = [trace.x for trace in plot.traces] + [spans.ends for spans in plot.spans]
        last = max((float(np.nanmax(values)) for values in ends if values.size), default=1.0)
        figure.update_xaxes(range=[0, last])
    if plot.boxes:
        figure.update_yaxes(autorange="reversed", automargin=True)
        figure.update_layout(margin={"r": 20, "autoexpand": True})
    elif plot.rows:
        if not plot.over_time:  # marks at the very end are not cut in half
            ends = [trace.x for trace in plot.traces] + [spans.ends for spans in plot.spans]
            right = [float(np.nanmax(values)) for values in ends if values.size]
            figure.update_xaxes(range=[0, 1.05 * max(right, default=1.0) or 1.0])
        ticks, names = list(range(len(plot.rows))), [_plain(row) for row in plot.rows]
        figure.update_yaxes(
            tickvals=ticks, ticktext=names, range=[len(ticks) - 0.5, -0.5], fixedrange=True
        )
    elif plot.right is not None:
        title, factor = plot.right
        top = 1.05 * max((float(np.nanmax(trace.y)) for trace in plot.traces), default=1.0) or 1.0
        figure.update_yaxes(range=[0, top], fixedrange=True)
        figure.add_scatter(x=[], y=[], yaxis="y2", showlegend=False)
        figure.update_layout(
            yaxis2={
                "overlaying": "y", "side": "right", "range": [0, top * factor], "showgrid": False,
                "title": {"text": _plain(title)}, "fixedrange": True,
            },
            legend={"x": 1.1},
        )  # fmt: skip


def _outline(spans: Spans) -> dict[str, list[float | None]]:
    """One closed outline a span: a single path, however many spans there are."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for row, start, end in zip(spans.rows, spans.starts, spans.ends, strict=True):
        low, high = float(row) - _SPAN, float(row) + _SPAN
        xs += [float(start), float(end), float(end), float(start), float(start), None]
        ys += [low, low, high, high, low, None]
    return {"x": xs, "y": ys}


def _plain(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
