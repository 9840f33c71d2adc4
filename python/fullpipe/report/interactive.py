"""A plot as a piece of an HTML page, drawn by Plotly's script; its title is the page's, so that
Plotly's buttons cover nothing.

Figures are made as the JSON that the script reads (plotly.com/javascript/reference): Plotly's
classes, which check each value, take half a second to load and to fill. Knows plots, not
recordings. Text of a plot may come from a foreign recording: Plotly reads a little HTML in names
and titles, so it gets none.
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np
from markupsafe import Markup

from fullpipe.metrics.view import Floats
from fullpipe.report import style
from fullpipe.report.plots import Plot, Spans, Trace

_SYMBOLS = {"x": "x-thin", "triangle": "triangle-up", "circle": "circle-open", "dash": "line-ns"}
_SHAPES = {"linear": "linear", "before": "vh", "after": "hv"}
_CONFIG = '{"displaylogo": false, "responsive": true}'
_ROW_PX, _HEIGHT_PX, _LEGEND_PX = 34, 330, 20
#: A legend of more entries than this scrolls.
_MAX_LEGEND = 24
#: Seen on white and on black.
_GRID = "rgba(128,128,128,0.25)"
_AXIS = {
    "automargin": True, "gridcolor": _GRID, "zerolinecolor": _GRID, "zerolinewidth": 2,
    "linecolor": "#888", "ticks": "",
}  # fmt: skip
#: Half the height of a span in its row.
_SPAN = 0.36


def html(plot: Plot, identifier: str, alarm: str = "") -> Markup:
    """The plot as an HTML fragment; `alarm` is written across its top in red."""
    figure = figure_of(plot, alarm)
    data, layout = (_json(figure[key]) for key in ("data", "layout"))
    return Markup(
        f'<div style="height:{figure["layout"]["height"]}px; width:100%;">'
        f'<div id="{identifier}" class="plotly-graph-div" style="height:100%; width:100%;"></div>'
        f'<script>Plotly.newPlot("{identifier}", {data}, {layout}, {_CONFIG});</script></div>'
    )


def figure_of(plot: Plot, alarm: str = "") -> dict[str, Any]:
    """The plot as Plotly's script reads it: `data` and `layout`, of what JSON has but for NaN."""
    layout = _layout(plot, alarm)
    data: list[dict[str, Any]] = []
    for box in plot.boxes:
        points = {"x": [box.points.tolist()], "boxpoints": "all"} if box.points.size else {}
        data.append({
            "type": "box", "y": [_plain(box.label)], "q1": [box.q1], "median": [box.median],
            "q3": [box.q3], "lowerfence": [box.low], "upperfence": [box.high],
            "name": _plain(box.label), "orientation": "h", "jitter": 0.4, "pointpos": 0,
            "marker": {"color": box.colour, "size": 5, "opacity": 0.6},
            "line": {"color": box.colour}, "showlegend": False, **points,
        })  # fmt: skip
    for spans in plot.spans:
        data.append({
            "type": "scatter", **_outline(spans), "fill": "toself", "fillcolor": spans.colour,
            "mode": "lines", "line": {"width": 0}, "name": _plain(spans.name), "hoveron": "fills",
            "text": _plain(spans.name),
        })  # fmt: skip
    data += [_drawn(trace) for trace in plot.traces]
    _scale(data, layout, plot)
    return {"data": data, "layout": layout}


def _layout(plot: Plot, alarm: str) -> dict[str, Any]:
    rows = len(plot.rows) or 1.4 * len(plot.boxes)
    height = 130 + _ROW_PX * rows if rows else _HEIGHT_PX
    entries = len(plot.traces) + len(plot.spans)
    layout: dict[str, Any] = {
        "xaxis": {**_AXIS, "title": _title(plot.x_title)},
        "yaxis": {**_AXIS, "title": _title(plot.y_title), "rangemode": "tozero"},
        "height": max(height, 100 + _LEGEND_PX * min(entries, _MAX_LEGEND)),
        # The same margins for all, so that axes of time lie below one another.
        "margin": {"l": 70, "r": 240, "t": 34, "b": 54, "autoexpand": not plot.over_time},
        # The page's own colours show through, whatever they are.
        "plot_bgcolor": "rgba(0,0,0,0)",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "modebar": {"bgcolor": "rgba(0,0,0,0)"},
        "font": {"family": "system-ui, sans-serif", "color": "#222", "size": 12},
        "hovermode": "closest",
        "hoverlabel": {"namelength": -1, "align": "left"},
        # Names that look like numbers or dates stay names.
        "autotypenumbers": "strict",
        "showlegend": not plot.boxes,
    }
    if alarm:
        layout["annotations"] = [{
            "text": f"<b>{_plain(alarm)}</b>", "xref": "paper", "yref": "paper", "x": 0.5, "y": 1.0,
            "yanchor": "bottom", "showarrow": False, "font": {"color": style.ALARM, "size": 12},
        }]  # fmt: skip
    return layout


def _title(text: str) -> dict[str, Any]:
    return {"text": _plain(text), "standoff": 15}


def _drawn(trace: Trace) -> dict[str, Any]:
    if trace.mark:
        marker = {"color": trace.colour, "symbol": _SYMBOLS[trace.mark], "size": 7,
                  "line": {"width": 1.5, "color": trace.colour}}  # fmt: skip
        drawn: dict[str, Any] = {"mode": "markers", "marker": marker}
    else:
        line = {"color": trace.colour, "dash": trace.dash, "width": trace.width,
                "shape": _SHAPES[trace.shape]}  # fmt: skip
        drawn = {"mode": "lines", "line": line}
    return {
        "type": "scatter", "x": _numbers(trace.x), "y": _numbers(trace.y),
        "name": _plain(trace.name), "opacity": trace.opacity, **drawn,
    }  # fmt: skip


def _numbers(values: Floats) -> dict[str, str]:
    """An array as Plotly reads it without parsing: its bytes, little-endian."""
    stored = np.ascontiguousarray(values, dtype="<f8").tobytes()
    return {"dtype": "f8", "bdata": base64.b64encode(stored).decode("ascii")}


def _scale(data: list[dict[str, Any]], layout: dict[str, Any], plot: Plot) -> None:
    """Rows from the top down; a second unit on the right, which only holds while the vertical
    axis stays as it is."""
    horizontal, vertical = layout["xaxis"], layout["yaxis"]
    ends = [trace.x for trace in plot.traces] + [spans.ends for spans in plot.spans]
    right = max((float(np.nanmax(values)) for values in ends if values.size), default=1.0)
    if plot.over_time:
        horizontal["range"] = [0, right]
    if plot.boxes:
        vertical["autorange"] = "reversed"
        layout["margin"] |= {"r": 20, "autoexpand": True}
    elif plot.rows:
        if not plot.over_time:  # marks at the very end are not cut in half
            horizontal["range"] = [0, 1.05 * right or 1.0]
        ticks, names = list(range(len(plot.rows))), [_plain(row) for row in plot.rows]
        vertical |= {
            "tickvals": ticks, "ticktext": names, "range": [len(ticks) - 0.5, -0.5],
            "fixedrange": True,
        }  # fmt: skip
    elif plot.right is not None:
        title, factor = plot.right
        top = 1.05 * max((float(np.nanmax(trace.y)) for trace in plot.traces), default=1.0) or 1.0
        vertical |= {"range": [0, top], "fixedrange": True}
        data.append({"type": "scatter", "x": [], "y": [], "yaxis": "y2", "showlegend": False})
        layout["yaxis2"] = {
            "overlaying": "y", "side": "right", "range": [0, top * factor], "showgrid": False,
            "zeroline": False, "title": _title(title), "ticks": "", "automargin": True,
            "fixedrange": True,
        }  # fmt: skip
        layout["legend"] = {"x": 1.1}


def _outline(spans: Spans) -> dict[str, list[float | None]]:
    """One closed outline a span: a single path, however many spans there are."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for row, start, end in zip(spans.rows, spans.starts, spans.ends, strict=True):
        low, high = float(row) - _SPAN, float(row) + _SPAN
        xs += [float(start), float(end), float(end), float(start), float(start), None]
        ys += [low, low, high, high, low, None]
    return {"x": xs, "y": ys}


def _json(value: Any) -> str:
    """JSON that ends no script and begins no element; numbers that are none, which JSON does not
    have, as null."""
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("/", "\\u002f")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
