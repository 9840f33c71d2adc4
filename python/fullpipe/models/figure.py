"""Observed shares and the models' lines, one figure for each panel of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fullpipe.models.observed import Panel
from fullpipe.models.validate import Line, Validation
from fullpipe.plots import style
from fullpipe.plots.matplotlib_renderer import write
from fullpipe.plots.model import Grid, Plot, Trace


def write_figures(validation: Validation, folder: Path) -> list[Path]:
    """Writes PNG and SVG of each panel: share over buffer, one plot for each number of flows.
    Returns the paths.

    Raises UserError if the folder cannot be written."""
    panels: dict[int, tuple[Panel, list[Line]]] = {}
    for line in validation.lines:
        panels.setdefault(id(line.panel), (line.panel, []))[1].append(line)
    return [
        path
        for number, (panel, lines) in enumerate(panels.values())
        for path in write(_grid(panel, lines), folder / f"panel-{_slug(panel.figure, number)}")
    ]


def _slug(figure: str, number: int) -> str:
    letters = "".join(letter for letter in figure if letter.isascii() and letter.isalnum())
    return letters[:20] or str(number)


def _grid(panel: Panel, lines: Sequence[Line]) -> Grid:
    counts = sorted({point.contest.flows for point in panel.points})
    first = panel.points[0].contest
    title = (
        f"{panel.figure}: {first.cc} against one {first.against} flow, "
        f"{first.rate_bps / 1e6:g} Mbit/s, {first.rtt_s * 1000:g} ms"
    )
    return Grid(title, [_plot(panel, lines, flows) for flows in counts])


def _plot(panel: Panel, lines: Sequence[Line], flows: int) -> Plot:
    chosen = [i for i, point in enumerate(panel.points) if point.contest.flows == flows]
    chosen.sort(key=lambda i: panel.points[i].contest.buffer_bdp)
    buffers = np.array([panel.points[i].contest.buffer_bdp for i in chosen])
    observed = np.array([panel.points[i].share for i in chosen])
    traces = [Trace("observed", style.NEUTRAL, buffers, observed, mark="dot")]
    traces += [
        Trace(
            f"{line.model} (MSE {line.mse:.4f})",
            style.line_colour(position),
            buffers,
            np.array([line.shares[i] for i in chosen]),
            style.dash(position),
        )
        for position, line in enumerate(lines)
    ]
    title = f"{flows} BBR flow{'s' if flows > 1 else ''}"
    return Plot(str(flows), title, "buffer (BDP)", "share of capacity", traces, log_x=2)
