"""Two recordings of the same path over time, each plot of one above that of the other."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

from fullpipe.plots.matplotlib_renderer import draw
from fullpipe.plots.model import Plot
from fullpipe.recording.recording import Recording
from fullpipe.report.runs import read_run
from fullpipe.report.timeline import time_plots

#: Plots that both have, in this order.
_SHOWN = ("throughput", "cwnd", "rtt", "queue", "phases")
_PHASE_ROW_INCHES, _PLOT_INCHES, _WIDTH_INCHES = 0.3, 2.0, 11.0


def draw_pair(kernel: Recording, ours: Recording, title: str, path: Path) -> None:
    """Writes one PNG: of each kind of plot the kernel's above ours, with the same axes."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt  # only after the backend is chosen

    sides = [{plot.key: plot for plot in time_plots(read_run(run))} for run in (kernel, ours)]
    shown = [key for key in _SHOWN if all(key in side for side in sides)]
    heights = [_height(side[key]) for key in shown for side in sides]
    with mpl.rc_context({"font.size": 8}):
        figure, axes = plt.subplots(
            len(heights), figsize=(_WIDTH_INCHES, sum(heights)), height_ratios=heights,
            sharex=True, layout="constrained",
        )  # fmt: skip
        for row, key in enumerate(shown):
            pair = axes[2 * row : 2 * row + 2]
            for axis, side, name in zip(pair, sides, ("kernel", _name(ours)), strict=True):
                draw(axis, side[key])
                axis.set_title(f"{side[key].title}: {name}", loc="left", fontweight="bold")
                axis.set_xlabel("")
            if not sides[0][key].rows:
                top = max(axis.get_ylim()[1] for axis in pair)
                for axis in pair:
                    axis.set_ylim(0, top)
        axes[-1].set_xlabel("time (s)")
        figure.suptitle(
            f"{title}\nThroughput: the kernel's by bytes acknowledged, ours by bytes delivered"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=100)
        plt.close(figure)


def _height(plot: Plot) -> float:
    return 0.7 + _PHASE_ROW_INCHES * len(plot.rows) if plot.rows else _PLOT_INCHES


def _name(recording: Recording) -> str:
    return f"ours, {recording.metadata['engine']}, seed {recording.metadata['seed']}"
