"""Plots as pieces of an HTML page, drawn by Plotly's script.

The title of a plot is the page's, so that Plotly's buttons cover nothing. Figures are written as
the JSON that the script reads (plotly.com/javascript/reference): loading and filling Plotly's
classes takes half a second. Text of a plot may come from an untrusted recording; Plotly reads a
little HTML in names and titles, so all of it is escaped. This module must not know a recording.
"""

from __future__ import annotations

import base64
import json
import math
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from fullpipe.base.templates import environment
from fullpipe.base.writing import write_text
from fullpipe.plots import plotly_script, style
from fullpipe.plots.model import Box, Floats, Grid, Heat, Plot, Spans, Trace

_SYMBOLS = {
    "x": "x-thin",
    "triangle": "triangle-up",
    "circle": "circle-open",
    "dash": "line-ns",
    "square": "square",
    "diamond": "diamond",
    "down": "triangle-down",
    "plus": "cross",
    "star": "star",
    "cross": "x",
    "up": "triangle-up",
}
_SHAPES = {"linear": "linear", "before": "vh", "after": "hv"}
_CONFIG = '{"displaylogo": false, "responsive": true}'
_ROW_PX, _HEIGHT_PX, _LEGEND_PX, _PANEL_PX = 34, 330, 20, 340
#: A legend of more entries than this scrolls.
_MAX_LEGEND = 24
#: Seen on white and on black.
_GRID = "rgba(128,128,128,0.25)"
_SHADE = "rgba(128,128,128,0.12)"
_AXIS = {
    "automargin": True,
    "gridcolor": _GRID,
    "zerolinecolor": _GRID,
    "zerolinewidth": 2,
    "linecolor": "#888",
    "ticks": "",
}
_LOOK: dict[str, Any] = {
    # The page's own colours show through, whatever they are.
    "plot_bgcolor": "rgba(0,0,0,0)",
    "paper_bgcolor": "rgba(0,0,0,0)",
    "modebar": {"bgcolor": "rgba(0,0,0,0)"},
    "font": {"family": "system-ui, sans-serif", "color": "#222", "size": 12},
    "hovermode": "closest",
    "hoverlabel": {"namelength": -1, "align": "left"},
    # Names that look like numbers or dates stay names.
    "autotypenumbers": "strict",
}
#: Letters of a line of a row's name.
_ROW_LETTERS = 10
#: Half the height of a span in its row.
_SPAN = 0.36


def html(plot: Plot, identifier: str, alarm: str = "") -> Markup:
    """The plot as an HTML fragment; `alarm` is written across its top in red."""
    return _element(figure_of(plot, alarm), identifier)


def write_page(grid: Grid, path: Path) -> None:
    """Writes the grid as a page of its own that loads nothing from elsewhere. Raises UserError if
    it cannot be written."""
    page = environment("fullpipe.plots").get_template("chart_page.html")
    figure = Markup(_script_json(grid_figure_of(grid)))
    library = plotly_script.inline()
    write_text(path, page.render(title=grid.title, note=grid.note, figure=figure, library=library))


def figure_of(plot: Plot, alarm: str = "") -> dict[str, Any]:
    """The plot as `data` and `layout` for Plotly's script: JSON values, NaN for missing ones."""
    layout = _layout(plot, alarm)
    data = _data(plot)
    _scale(data, layout, plot)
    return {"data": data, "layout": layout}


def grid_figure_of(grid: Grid) -> dict[str, Any]:
    """The grid as `data` and `layout` for Plotly's script: JSON values, NaN for missing ones.
    `narrow` is the layout of one column. `title` and `note` are the page's to show."""
    data: list[dict[str, Any]] = []
    named: set[str] = set()
    for index, panel in enumerate(grid.panels):
        number = _number(index)
        for drawn in _data(panel):
            name = drawn.get("name", "")
            drawn |= {"xaxis": f"x{number}", "yaxis": f"y{number}", "legendgroup": name}
            drawn["showlegend"] = bool(name) and name not in named
            named.add(name)
            data.append(drawn)
    wide, narrow = (
        {**_grid_layout(grid, is_narrow), "showlegend": bool(named - {""})}
        for is_narrow in (False, True)
    )
    return {"data": data, "layout": wide, "narrow": narrow, "title": grid.title, "note": grid.note}


def _grid_layout(grid: Grid, is_narrow: bool) -> dict[str, Any]:
    columns = 1 if is_narrow else grid.columns
    rows = math.ceil(len(grid.panels) / columns)
    layout: dict[str, Any] = {
        **_LOOK,
        "height": _PANEL_PX * rows + 60,
        "annotations": [],
        "boxmode": "overlay",
        "margin": {"l": 56 if is_narrow else 70, "r": 14, "t": 30, "b": 60},
    }
    if grid.heat_range is not None:
        layout["coloraxis"] = _colour_axis(grid, *grid.heat_range, is_narrow)
        if is_narrow:
            layout["margin"]["t"] = 110
    for index, panel in enumerate(grid.panels):
        row, column = divmod(index, columns)
        number = _number(index)
        across, up = _part(column, columns, 0.05), _part(rows - 1 - row, rows, 0.3 / rows)
        is_lowest = row == rows - 1 or index + columns >= len(grid.panels)
        x_axis = _panel_axis(panel.x_title if is_lowest else "", across, f"y{number}")
        y_axis = _panel_axis(panel.y_title if column == 0 else "", up, f"x{number}")
        if index:
            if grid.share_y:
                y_axis["matches"] = "y"
            if grid.share_x and panel.heat is None:
                x_axis["matches"] = "x"
        _x_scale(x_axis, panel)
        if panel.log_y:
            y_axis["type"] = "log"
        layout |= {f"xaxis{number}": x_axis, f"yaxis{number}": y_axis}
        if panel.title:
            layout["annotations"].append(_panel_title(panel.title, sum(across) / 2, up[1]))
    return layout


def _panel_title(title: str, x: float, y: float) -> dict[str, Any]:
    return {
        "text": _plain(title),
        "showarrow": False,
        "xref": "paper",
        "yref": "paper",
        "x": x,
        "y": y,
        "xanchor": "center",
        "yanchor": "bottom",
    }


def _colour_axis(grid: Grid, low: float, high: float, is_narrow: bool) -> dict[str, Any]:
    heat = next(panel.heat for panel in grid.panels if panel.heat is not None)
    bar = {"title": {"text": _plain(heat.title)}}
    above = {"orientation": "h", "yref": "container", "y": 1, "yanchor": "top", "thickness": 12}
    return {
        "colorscale": _colour_scale(grid, low, high),
        "cmin": low,
        "cmax": high,
        "colorbar": bar | above if is_narrow else bar,
    }


def _colour_scale(grid: Grid, low: float, high: float) -> Any:
    if grid.heat_middle is None:
        return "Viridis"
    return [list(stop) for stop in style.scale_around(low, high, grid.heat_middle)]


def _number(index: int) -> str:
    """What Plotly appends to the names of a panel's axes."""
    return "" if index == 0 else str(index + 1)


def as_json(value: Any) -> str:
    """JSON for a browser. Numbers that JSON cannot express become null."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), separators=(",", ":"))


def _part(position: int, count: int, gap: float) -> list[float]:
    """The share of the page, [from, to], of one of several panels side by side."""
    size = (1 - gap * (count - 1)) / count
    return [position * (size + gap), position * (size + gap) + size]


def _panel_axis(title: str, domain: list[float], anchor: str) -> dict[str, Any]:
    axis = {**_AXIS, "zeroline": False, "domain": domain, "anchor": anchor}
    return axis | ({"title": _title(title)} if title else {})


def _x_scale(axis: dict[str, Any], plot: Plot) -> None:
    if plot.log_x:
        values = _decades(np.concatenate([trace.x for trace in plot.traces] or [np.ones(1)]))
        axis |= {"type": "log", "tickvals": values, "ticktext": [f"{value:g}" for value in values]}
    if plot.x_ticks:
        axis |= {
            "tickvals": [position for position, _ in plot.x_ticks],
            "ticktext": [_plain(text) for _, text in plot.x_ticks],
        }


def _decades(values: Floats) -> list[float]:
    """1, 2 and 5 of each decade of the values; of many decades only 1. Plotly would write the digit
    without its power of ten."""
    positive = values[np.isfinite(values) & (values > 0)]
    if not positive.size:
        return []
    low, high = math.floor(math.log10(positive.min())), math.ceil(math.log10(positive.max()))
    digits = (1, 2, 5) if high - low <= 4 else (1,)
    return [digit * 10.0**power for power in range(low, high + 1) for digit in digits]


def _data(plot: Plot) -> list[dict[str, Any]]:
    data = [_box(box) for box in plot.boxes]
    data += [_filled(spans) for spans in plot.spans]
    if plot.heat is not None:
        data += _heat_map(plot.heat)
    for trace in plot.traces:
        if trace.band is not None and not trace.mark:
            data += _band(trace, trace.band)
        data.append(_drawn(trace))
    return data + [_label(x, y, text) for x, y, text in plot.labels]


def _filled(spans: Spans) -> dict[str, Any]:
    return {
        "type": "scatter",
        **_outline(spans),
        "fill": "toself",
        "fillcolor": spans.colour,
        "mode": "lines",
        "line": {"width": 0},
        "name": _plain(spans.name),
        "hoveron": "fills",
        "text": _plain(spans.name),
    }


def _heat_map(heat: Heat) -> list[dict[str, Any]]:
    """The map, and crosses on its cells without a result."""
    cells = {
        "type": "heatmap",
        "z": heat.values.tolist(),
        "coloraxis": "coloraxis",
        "x": [_plain(x) for x in heat.x_labels],
        "y": [_plain(y) for y in heat.y_labels],
    }
    crosses = {
        "type": "scatter",
        "mode": "markers",
        "showlegend": False,
        "x": [_plain(heat.x_labels[x]) for _, x in heat.crossed],
        "y": [_plain(heat.y_labels[y]) for y, _ in heat.crossed],
        "marker": {"symbol": "x-thin-open", "size": 14, "color": "#c0392b"},
        "hovertemplate": "no result<extra></extra>",
    }
    return [cells, crosses] if heat.crossed else [cells]


def _label(x: float, y: float, text: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "text",
        "x": [x],
        "y": [y],
        "text": [_plain(text)],
        "textposition": "top right",
        "showlegend": False,
        "hoverinfo": "skip",
    }


def _box(box: Box) -> dict[str, Any]:
    trace: dict[str, Any] = {
        "type": "box",
        "q1": [box.q1],
        "median": [box.median],
        "q3": [box.q3],
        "lowerfence": [box.low],
        "upperfence": [box.high],
        "name": _plain(box.label),
        "jitter": 0.4,
        "pointpos": 0,
        "marker": {"color": box.colour, "size": 5, "opacity": 0.6},
        "line": {"color": box.colour},
        "showlegend": False,
    }
    along, across = ("x", "y") if box.at is None else ("y", "x")
    if box.points.size:
        trace |= {along: [box.points.tolist()], "boxpoints": "all"}
    if box.at is None:
        return trace | {across: [_plain(box.label)], "orientation": "h"}
    return trace | {across: [box.at], "width": box.width}


def _layout(plot: Plot, alarm: str) -> dict[str, Any]:
    rows = len(plot.rows) or 1.4 * len(plot.boxes)
    height = 130 + _ROW_PX * rows if rows else _HEIGHT_PX
    entries = len(plot.traces) + len(plot.spans)
    layout: dict[str, Any] = {
        "xaxis": {**_AXIS, "title": _title(plot.x_title)},
        "yaxis": {**_AXIS, "title": _title(plot.y_title), "rangemode": "tozero"},
        "height": max(height, 100 + _LEGEND_PX * min(entries, _MAX_LEGEND)),
        # The same margins for all, so that time axes are aligned.
        "margin": {"l": 70, "r": 240, "t": 34, "b": 54, "autoexpand": not plot.over_time},
        **_LOOK,
        "showlegend": not plot.boxes,
    }
    if plot.runs:
        layout["meta"] = {"runs": [_plain(name) for name in plot.runs]}
    if plot.warmup_s:
        layout["shapes"] = [
            {
                "type": "rect",
                "x0": 0,
                "x1": plot.warmup_s,
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "fillcolor": _SHADE,
                "line": {"width": 0},
                "layer": "below",
            }
        ]
    if alarm:
        layout["annotations"] = [
            {
                "text": f"<b>{_plain(alarm)}</b>",
                "xref": "paper",
                "yref": "paper",
                "x": 0.5,
                "y": 1.0,
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"color": style.ALARM, "size": 12},
            }
        ]
    return layout


def _title(text: str) -> dict[str, Any]:
    return {"text": _plain(text), "standoff": 15}


def _drawn(trace: Trace) -> dict[str, Any]:
    marker = {
        "color": trace.colour,
        "symbol": _SYMBOLS.get(trace.mark, "circle"),
        "size": 7,
        "line": {"width": 1.5, "color": trace.colour},
    }
    line = {
        "color": trace.colour,
        "dash": trace.dash,
        "width": trace.width,
        "shape": _SHAPES[trace.shape],
    }
    if not trace.mark:
        drawn: dict[str, Any] = {"mode": "lines", "line": line}
    elif trace.joined:
        drawn = {"mode": "lines+markers", "line": line, "marker": marker}
    else:
        drawn = {"mode": "markers", "marker": marker}
    if trace.band is not None and trace.mark:
        low, high = trace.band
        drawn["error_y"] = {
            "type": "data",
            "symmetric": False,
            "thickness": 1,
            "width": 2,
            "array": _numbers(high - trace.y),
            "arrayminus": _numbers(trace.y - low),
        }
    return {
        "type": "scatter",
        "x": _numbers(trace.x),
        "y": _numbers(trace.y),
        "name": _plain(trace.name),
        "opacity": trace.opacity,
        **drawn,
        **({"legendgroup": _plain(trace.name)} if trace.band is not None else {}),
        **({} if trace.name else {"showlegend": False, "hoverinfo": "skip"}),
        **({"customdata": list(trace.keys)} if trace.keys else {}),
        **({"meta": trace.run} if trace.run >= 0 else {}),
    }


def _band(trace: Trace, band: tuple[Floats, Floats]) -> list[dict[str, Any]]:
    """An interval around a line: its lower edge, and the upper one filled down to it."""
    edge = {
        "type": "scatter",
        "x": _numbers(trace.x),
        "mode": "lines",
        "showlegend": False,
        "line": {"width": 0, "shape": _SHAPES[trace.shape], "color": trace.colour},
        "hoverinfo": "skip",
        "legendgroup": _plain(trace.name),
        **({"meta": trace.run} if trace.run >= 0 else {}),
    }
    red, green, blue = (int(trace.colour[i : i + 2], 16) for i in (1, 3, 5))
    filled = {"fill": "tonexty", "fillcolor": f"rgba({red},{green},{blue},0.18)"}
    low, high = band
    return [{**edge, "y": _numbers(low)}, {**edge, "y": _numbers(high), **filled}]


def _numbers(values: Floats) -> dict[str, str]:
    """An array as Plotly reads it without parsing: its bytes, little-endian. Seven digits are more
    than a screen shows."""
    stored = np.ascontiguousarray(values, dtype="<f4").tobytes()
    return {"dtype": "f4", "bdata": base64.b64encode(stored).decode("ascii")}


def _scale(data: list[dict[str, Any]], layout: dict[str, Any], plot: Plot) -> None:
    """Rows from the top down; a second unit on the right, which only holds while the vertical
    axis stays as it is."""
    horizontal, vertical = layout["xaxis"], layout["yaxis"]
    _x_scale(horizontal, plot)
    if plot.log_y:
        vertical["type"] = "log"
    ends = [trace.x for trace in plot.traces] + [spans.ends for spans in plot.spans]
    right = max((float(np.nanmax(values)) for values in ends if values.size), default=1.0)
    if plot.over_time:
        horizontal["range"] = [0, right]
    if plot.boxes and not plot.upright:
        vertical["autorange"] = "reversed"
        layout["margin"] |= {"r": 20, "autoexpand": True}
    elif plot.rows:
        if not plot.over_time:  # marks at the very end are not cut in half
            horizontal["range"] = [0, 1.05 * right or 1.0]
        ticks, names = list(range(len(plot.rows))), [_wrapped(row) for row in plot.rows]
        vertical |= {
            "tickvals": ticks,
            "ticktext": names,
            "range": [len(ticks) - 0.5, -0.5],
            "fixedrange": True,
        }
    elif plot.right is not None:
        title, factor = plot.right
        top = 1.05 * max((float(np.nanmax(trace.y)) for trace in plot.traces), default=1.0) or 1.0
        vertical |= {"range": [0, top], "fixedrange": True}
        data.append({"type": "scatter", "x": [], "y": [], "yaxis": "y2", "showlegend": False})
        layout["yaxis2"] = {
            "overlaying": "y",
            "side": "right",
            "range": [0, top * factor],
            "showgrid": False,
            "zeroline": False,
            "title": _title(title),
            "ticks": "",
            "automargin": True,
            "fixedrange": True,
            "tickmode": "auto",
        }
        layout["legend"] = {"x": 1.1}


def _wrapped(name: str) -> str:
    """The name of a row in lines that fit beside the axis."""
    lines = textwrap.wrap(name, _ROW_LETTERS, max_lines=3, placeholder="…")
    return "<br>".join(_plain(line) for line in lines)


def _outline(spans: Spans) -> dict[str, dict[str, str]]:
    """One closed outline a span: a single path, however many spans there are."""
    low, high = spans.rows - _SPAN, spans.rows + _SPAN
    gap = np.full(spans.rows.size, np.nan)
    starts, ends = spans.starts, spans.ends
    xs = np.column_stack((starts, ends, ends, starts, starts, gap)).ravel()
    ys = np.column_stack((low, low, high, high, low, gap)).ravel()
    return {"x": _numbers(xs), "y": _numbers(ys)}


def _element(figure: dict[str, Any], identifier: str) -> Markup:
    data, layout = (_script_json(figure[key]) for key in ("data", "layout"))
    return Markup(
        f'<div style="height:{figure["layout"]["height"]}px; width:100%;">'
        f'<div id="{identifier}" class="plotly-graph-div" style="height:100%; width:100%;"></div>'
        f'<script>Plotly.newPlot("{identifier}", {data}, {layout}, {_CONFIG});</script></div>'
    )


def _script_json(value: Any) -> str:
    """JSON that neither ends a script nor begins an element."""
    text = as_json(value)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("/", "\\u002f")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
