"""A plot as a small static SVG inside a page: no script, no library.

Knows plots, not recordings. Text of a plot may come from a foreign recording; Matplotlib escapes
it.
"""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace
from typing import Any

import matplotlib as mpl
from markupsafe import Markup

from fullpipe.report import style
from fullpipe.report.figures import draw
from fullpipe.report.plots import Plot, thin

#: Points of a trace: about one for each pixel that a line is wide.
MAX_POINTS = 360
_PIXELS = re.compile(r"(\d+\.\d)\d+")
_DRAWING = re.compile(r"\b(d|x|y|points|transform)=\"[^\"]*\"")
#: Matplotlib names every font that it knows; the page's browser chooses.
_FONT = re.compile(r"font-family: [^;\"]*;")
_SETTINGS: Any = {
    "svg.hashsalt": "fullpipe", "svg.fonttype": "none", "font.size": 9,
    "path.simplify_threshold": 0.5,
}  # fmt: skip


def svg(plot: Plot, alarm: str = "") -> Markup:
    """The plot as an SVG element without a title of its own; `alarm` is written above in red."""
    from matplotlib.figure import Figure

    few = [
        replace(trace, x=x, y=y)
        for trace in plot.traces
        for x, y in [thin(trace.x, trace.y, MAX_POINTS)]
    ]
    rows = len(plot.rows) or len(plot.boxes)
    height = max(1.0 + 0.3 * rows, 1.6) if rows else 2.4
    height += 0.16 * math.ceil((len(plot.traces) + len(plot.spans)) / 4)
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(5.6, height), layout="constrained")
        draw(figure.subplots(), replace(plot, traces=few, title=""), legend_below=True)
        if alarm:
            figure.suptitle(
                alarm[:90].replace("$", r"\$"), color=style.ALARM, fontsize=8, fontweight="bold"
            )
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
    return Markup(_shorter(text.getvalue()))


def _shorter(document: str) -> str:
    """The svg element alone, a tenth of a pixel exact, without what a page need not carry."""
    body = document[document.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", body, flags=re.DOTALL)
    body = _DRAWING.sub(lambda match: _PIXELS.sub(r"\1", match[0]), body)
    body = re.sub(r"\s*\n\s*", "\n", body)
    body = _FONT.sub("font-family:sans-serif;", body)
    # The page decides how wide it is.
    return re.sub(r'<svg([^>]*?) width="[^"]*"', r"<svg\1", body, count=1)
