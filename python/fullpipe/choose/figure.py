"""The trade-off of a path: goodput over added delay, a mark for each queue discipline and a colour
for each congestion control."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fullpipe.choose.ranking import Option
from fullpipe.plots import style
from fullpipe.plots.matplotlib_renderer import write
from fullpipe.plots.model import Plot, Trace

_MARKS = ("dot", "square", "diamond", "up", "down", "plus", "star", "cross")
#: Smaller added delays are drawn here: the axis is logarithmic.
_LEAST_MS = 0.1
#: Ranks with a label at their mark.
_NUMBERED = 5


def write_tradeoffs(options: Sequence[Option], folder: Path, title: str) -> list[Path]:
    """Writes tradeoffs.png and tradeoffs.svg; returns the paths. Raises UserError if they cannot
    be written."""
    queues = sorted({option.queue for option in options})
    points = [(max(_LEAST_MS, option.added_p95_ms), option.goodput_bps / 1e6) for option in options]
    traces = [
        Trace(
            f"{option.cc}, {option.queue}",
            style.cc_colour(option.cc),
            np.array([x]),
            np.array([y]),
            opacity=0.8,
            mark=_MARKS[queues.index(option.queue) % len(_MARKS)],
        )
        for option, (x, y) in zip(options, points, strict=True)
    ]
    numbers = [(x, y, f"{rank + 1}") for rank, (x, y) in enumerate(points[:_NUMBERED])]
    plot = Plot(
        "tradeoffs",
        title,
        x_title="ping above the base RTT, 95th percentile (ms); left is better",
        y_title="goodput of all flows (Mbit/s); not from 0",
        traces=traces,
        log_x=10,
        zero=False,
        labels=tuple(numbers),
    )
    return write(plot, folder / plot.key)
