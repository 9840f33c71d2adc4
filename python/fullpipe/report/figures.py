"""Static figures for papers: PNG and SVG, the same bytes for the same recordings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

from fullpipe.errors import UserError
from fullpipe.recording import Recording
from fullpipe.report.series import Plot, cdf_plots, time_plots
from fullpipe.report.style import colour

_LINES = ["-", ":", "--", "-."]


def write_figures(recordings: Sequence[Recording], folder: Path) -> list[Path]:
    """Writes PNG and SVG of the first run over time and of all runs' distributions; returns the
    paths.

    Raises UserError where there is nothing to draw or the folder cannot be written."""
    if not recordings:
        raise UserError("figures: no recordings given")
    mpl.use("Agg")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for plot in [*time_plots(recordings[0]), *cdf_plots(recordings)]:
            written += _draw(plot, folder)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror}") from None
    return written


def _draw(plot: Plot, folder: Path) -> list[Path]:
    with mpl.rc_context({"svg.hashsalt": "fullpipe", "svg.fonttype": "none", "font.size": 9}):
        figure, axes = plt.subplots(figsize=(7, 2.8), layout="constrained")
        for line in plot.lines:
            style = _LINES[line.position % 4]
            where = "steps-post" if plot.categories else "default"
            axes.plot(
                line.x, line.y, style, color=colour(line.group), label=line.name, linewidth=1,
                drawstyle=where,
            )  # fmt: skip
        axes.set(title=plot.title, xlabel=plot.x_title, ylabel=plot.y_title)
        if plot.categories:
            axes.set_yticks(range(len(plot.categories)), plot.categories)
        else:
            axes.set_ylim(bottom=0)
        axes.grid(color="#e8e8e8", linewidth=0.6)
        axes.legend(fontsize=8, frameon=False)
        paths = [folder / f"{plot.key}.png", folder / f"{plot.key}.svg"]
        figure.savefig(paths[0], dpi=150, metadata={"Software": None})
        figure.savefig(paths[1], metadata={"Date": None})
        plt.close(figure)
    return paths
