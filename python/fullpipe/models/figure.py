"""Observed shares and models' lines, one figure a panel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from fullpipe.base.errors import UserError
from fullpipe.base.writing import write_figure
from fullpipe.models.observed import Panel
from fullpipe.models.validate import Line, Validation

_STYLES = ["-", "--", "-.", ":"]
_COLUMNS = 3


def write_figures(validation: Validation, folder: Path) -> list[Path]:
    """Writes PNG and SVG of each panel: share over buffer, one plot a number of flows. Returns
    the paths.

    Raises UserError where the folder cannot be written."""
    mpl.use("Agg")
    panels: dict[int, tuple[Panel, list[Line]]] = {}
    for line in validation.lines:
        panels.setdefault(id(line.panel), (line.panel, []))[1].append(line)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for number, (panel, lines) in enumerate(panels.values()):
            written += _draw(panel, lines, folder / f"panel-{_slug(panel.figure, number)}")
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror}") from None
    return written


def _slug(figure: str, number: int) -> str:
    kept = "".join(letter for letter in figure if letter.isascii() and letter.isalnum())
    return kept[:20] or str(number)


def _draw(panel: Panel, lines: Sequence[Line], stem: Path) -> list[Path]:
    counts = sorted({point.contest.flows for point in panel.points})
    rows = -(-len(counts) // _COLUMNS)
    with mpl.rc_context({"svg.hashsalt": "fullpipe", "svg.fonttype": "none", "font.size": 8}):
        figure, grid = plt.subplots(
            rows, _COLUMNS, figsize=(9, 2.5 * rows), sharex=True, sharey=True, squeeze=False,
            layout="constrained",
        )  # fmt: skip
        axes = list(grid.flat)
        for plot, flows in zip(axes, counts, strict=False):
            _plot(plot, panel, lines, flows)
        for plot in axes[len(counts) :]:
            plot.axis("off")
        first = panel.points[0].contest
        figure.suptitle(
            f"{panel.figure}: {first.cc} against one {first.against} flow, "
            f"{first.rate_bps / 1e6:g} Mbit/s, {first.rtt_s * 1000:g} ms"
        )
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
        paths = write_figure(figure, stem)
        plt.close(figure)
    return paths


def _plot(plot: Axes, panel: Panel, lines: Sequence[Line], flows: int) -> None:
    chosen = [i for i, point in enumerate(panel.points) if point.contest.flows == flows]
    chosen.sort(key=lambda i: panel.points[i].contest.buffer_bdp)
    buffers = [panel.points[i].contest.buffer_bdp for i in chosen]
    observed = [panel.points[i].share for i in chosen]
    plot.plot(buffers, observed, "ko", markersize=4, label="observed")
    for position, line in enumerate(lines):
        label = f"{line.model} (MSE {line.mse:.4f})"
        shares = [line.shares[i] for i in chosen]
        plot.plot(buffers, shares, _STYLES[position % len(_STYLES)], linewidth=1.2, label=label)
    plot.set_xscale("log", base=2)
    plot.set_ylim(0, 1)
    plot.set_title(f"{flows} BBR flow{'s' if flows > 1 else ''}", fontsize=8)
    plot.set_xlabel("buffer in BDP")
    plot.set_ylabel("share of capacity")
    plot.grid(color="#e8e8e8", linewidth=0.6)
