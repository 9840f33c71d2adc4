"""What can be had of a path: goodput over added delay, a mark for each queue discipline and a
colour for each congestion control."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fullpipe.base.writing import write_figure
from fullpipe.choose import Option
from fullpipe.report import style

_MARKS = "osD^vP*X"
#: Below this an added delay is drawn here: the axis is logarithmic.
_LEAST_MS = 0.1
#: Ranks that are written beside their marks.
_NUMBERED = 5


def write_tradeoffs(options: Sequence[Option], folder: Path, title: str) -> list[Path]:
    """Writes tradeoffs.png and tradeoffs.svg; returns the paths. Raises UserError where they cannot
    be written."""
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = figure.subplots()
    queues = sorted({option.queue for option in options})
    controls = sorted({option.cc for option in options})
    for rank, option in enumerate(options):
        x, y = max(_LEAST_MS, option.added_p95_ms), option.goodput_bps / 1e6
        mark = _MARKS[queues.index(option.queue) % len(_MARKS)]
        axes.plot(
            x, y, mark, color=style.cc_colour(option.cc), markersize=8, alpha=0.8,
            markeredgecolor="white",
        )  # fmt: skip
        if rank < _NUMBERED:
            axes.annotate(
                f"{rank + 1}", (x, y), textcoords="offset points", xytext=(6, 5), fontsize=8
            )
    axes.set_xscale("log")
    axes.margins(0.08, 0.15)  # the vertical axis does not begin at 0: differences are small
    axes.grid(color=style.GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title(title.replace("$", r"\$"), loc="left", fontweight="bold", fontsize=10)
    axes.set(
        xlabel="ping above the base RTT, 95th percentile (ms); left is better",
        ylabel="goodput of all flows (Mbit/s); not from 0",
    )
    handles = [
        Line2D([], [], linestyle="", marker=_MARKS[i % len(_MARKS)], color="#777", label=queue)
        for i, queue in enumerate(queues)
    ]
    handles += [
        Line2D([], [], linestyle="", marker="s", color=style.cc_colour(cc), label=cc)
        for cc in controls
    ]
    handles.append(Line2D([], [], linestyle="", label=f"1 to {_NUMBERED}: rank"))
    figure.legend(handles=handles, loc="outside right upper", fontsize=8, frameon=False)
    return write_figure(figure, folder / "tradeoffs")
